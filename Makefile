# make help lists the targets. Needs Python 3.11+ and Java 17+; everything else is installed into .venv and a cache.
PYTHON ?= python3
SEED   ?= faulty
ROOT   ?= audit-root
# Further options of kafka-audit ui.
UI     ?=
# Number of test processes. Three of them need 13 GB of memory together, and keep two cores busy.
WORKERS ?= 3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CLASSES := $(VENV)/share/kafka-audit/spark-classes.bytes
export KAFKA_AUDIT_ROOT := $(abspath $(ROOT))

.DEFAULT_GOAL := help
.PHONY: help prerequisites install jars demo ui test test-fast test-unit test-versions test-stores test-spark-masters lint types record bench conformance docs sbom lock lock-jars lock-images clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

prerequisites: ## Check that Python and Java are recent enough
	@$(PYTHON) plugins/kafka_audit/prerequisites.py

$(STAMP): constraints.txt build-constraints.txt pyproject.toml | prerequisites
	@echo "==> Installing the Python environment into $(VENV) (about a minute the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r build-constraints.txt
	@# pyspark comes as source only. Without build isolation it is built with the setuptools just installed, instead of one fetched without a hash.
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-build-isolation -r constraints.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(CLASSES): $(STAMP)
	@echo "==> Archiving Spark's classes, so that its jobs start quicker (half a minute)"
	@$(BIN)/python -m spark_jobs.engine.class_data >$(VENV)/class_data.log 2>&1 || echo "    not done, jobs work without it; reason: $(VENV)/class_data.log"

install: $(STAMP) $(CLASSES) ## Install the Python environment

jars: install ## Fetch Kafka's jars and Spark's Kafka connector from Maven Central
	@$(BIN)/python -m kafka_audit.jars
	@$(BIN)/python -m kafka_audit.sandbox.class_data >$(VENV)/kafka_class_data.log 2>&1 || echo "    Kafka's classes are not archived, it starts slower; reason: $(VENV)/kafka_class_data.log"

demo: jars ## Start a seeded three-broker Kafka and audit it through Airflow (SEED=faulty or SEED=healthy)
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/kafka-audit demo --seed $(SEED) --root $(ROOT)

ui: jars ## Run Airflow's UI on http://127.0.0.1:8080 (admin, admin), with a sandbox to audit and sample history (UI="--port 8081 --no-sample")
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/kafka-audit ui --root $(ROOT) $(UI)

lint: $(STAMP) ## Run ruff (check, format) and mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# All tests of a part run in the same process (tests/conftest.py).
IN_PROCESSES := -n $(WORKERS) --dist loadscope --no-loadscope-reorder

test: $(STAMP) ## Run lint, types and all tests, with real brokers, Spark, Airflow and a browser
	@$(MAKE) --no-print-directory -j 2 jars lint
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pytest $(IN_PROCESSES)

UNIT := $(IN_PROCESSES) tests/unit -m "not kafka and not spark and not airflow and not browser"

test-fast: $(STAMP) ## Run the quick ones of the unit tests, in a minute
	@$(BIN)/pytest --fast $(UNIT)

test-unit: $(STAMP) ## Run all tests that start no broker, Spark, Airflow or browser
	@$(BIN)/pytest $(UNIT) tests/test_architecture.py

test-versions: jars ## Run a short story on every release of Kafka that the sandbox can start
	@KAFKA_AUDIT_TEST_RELEASES="3.9 4.3 4.4" PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pytest tests/integration/test_versions.py

test-stores: $(STAMP) ## Run the tests of object stores on Google's kind, too (the first time this builds fake-gcs-server: two CPU minutes)
	@KAFKA_AUDIT_TEST_GOOGLE=1 $(BIN)/pytest tests/unit/test_store_root.py tests/unit/test_store_steps.py

test-spark-masters: jars ## Run jobs on YARN, and with executors that read S3 by URL (the first time this fetches 800 MB of Hadoop's jars)
	@KAFKA_AUDIT_TEST_SPARK_MASTERS=1 PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pytest tests/spark/test_yarn.py tests/spark/test_evidence_by_url.py

record: jars ## Record what real clients commit, for tests/recorded (two minutes, on a machine with nothing else to do)
	@$(BIN)/python tests/integration/commit_clients.py tests/recorded/commits_of_real_clients.parquet

bench: jars ## Measure this platform and Kafka's own tools side by side
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python bench/run.py

conformance: $(STAMP) ## Answer the cases of tests/conformance and write docs/conformance.md (a minute)
	@PYTHONPATH=tests:tests/spark $(BIN)/python -m conformance.score docs/conformance.md

docs: $(STAMP) ## Regenerate docs/controls.md from the controls, and the schema of report.json from the report model
	@$(BIN)/kafka-audit controls docs --write docs/controls.md
	@$(BIN)/python -m kafka_audit.report.schema

sbom: $(STAMP) ## Write build/sbom.cdx.json (CycloneDX): every package and jar with version and sha256
	@$(BIN)/python .ci/sbom.py build/sbom.cdx.json

# Versions that the files already contain are kept if they still satisfy the requirements.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url

lock: $(STAMP) ## Regenerate constraints.txt, build-constraints.txt, docker/constraints.txt and the test tools' lock from their requirements files
	@$(LOCK) requirements.txt -o constraints.txt
	@$(LOCK) build-requirements.txt -c constraints.txt -o build-constraints.txt
	@sed '/^# Tests and checks/,$$d' requirements.txt | $(LOCK) - docker/requirements.txt -c constraints.txt -o docker/constraints.txt
	@$(LOCK) tests/formats/tools/oscal.txt -o tests/formats/tools/oscal.lock

lock-jars: install ## After a change of ivy.xml: download every jar again and record its sha256
	@$(BIN)/python -m kafka_audit.jars --record

lock-images: ## Update the digests of the container images (asks the registry through docker)
	@$(PYTHON) docker/lock_images.py

clean: ## Delete the environment and the caches of this checkout
	@rm -rf $(VENV) .airflow .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info plugins/*.egg-info
