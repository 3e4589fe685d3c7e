# make help lists the targets. Needs Python 3.10+ and Java 17+; everything else is installed into .venv and a cache.
PYTHON ?= python3
SEED   ?= faulty
ROOT   ?= audit-root
# Processes that share the tests; each may hold a Spark session and six brokers, about 6 GB.
WORKERS ?= 2
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
export KAFKA_AUDIT_ROOT := $(abspath $(ROOT))

.DEFAULT_GOAL := help
.PHONY: help prerequisites install jars demo ui test test-fast lint types bench docs lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

prerequisites: ## Check that Python and Java are new enough
	@$(PYTHON) plugins/kafka_audit/prerequisites.py

$(STAMP): requirements.txt constraints.txt pyproject.toml | prerequisites
	@echo "==> Installing the Python environment into $(VENV) (about a minute the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet "uv==0.13.8"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.txt -c constraints.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@

install: $(STAMP) ## Install the Python environment

jars: $(STAMP) ## Fetch Kafka's jars and Spark's Kafka connector from Maven Central
	@$(BIN)/python -m kafka_audit.sandbox.jars

demo: jars ## Start a seeded three-broker Kafka and audit it through Airflow (SEED=faulty or SEED=healthy)
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/kafka-audit demo --seed $(SEED) --root $(ROOT)

ui: $(STAMP) ## Run Airflow with its UI on http://127.0.0.1:8080 (user admin, password admin)
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m kafka_audit.airflow.standalone --root $(ROOT)

lint: $(STAMP) ## Lint and check types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

test: jars lint ## Lint, types and all tests, with real brokers, Spark, Airflow and a browser
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder

test-fast: $(STAMP) ## Only the tests that start no broker, Spark, Airflow or browser
	@$(BIN)/pytest tests/unit tests/test_architecture.py -m "not kafka and not spark and not airflow and not browser"

bench: jars ## Measure, side by side with Kafka's own tools
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python bench/run.py

docs: $(STAMP) ## Write docs/controls.md anew from the controls and the frameworks
	@$(BIN)/kafka-audit controls docs --write docs/controls.md

lock: ## Write constraints.txt anew from requirements.txt
	@$(BIN)/uv pip compile requirements.txt --universal --python-version 3.10 --no-header --no-annotate -q -o constraints.txt

clean: ## Remove the environment, audits and caches of this checkout
	@rm -rf $(VENV) .airflow .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info plugins/*.egg-info
