"""Who may import whom: the contracts of pyproject.toml hold, and what they cannot say is read from the files."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from importlinter.api import read_configuration

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "plugins" / "kafka_audit"
HEAVY = {"pyspark", "great_expectations", "kafka", "confluent_kafka", "pandas", "airflow"}
MOST_IMPORTS_INSIDE = 14
NAMELESS = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def imports(tree: ast.AST, *, top_level_only: bool = False) -> set[str]:
    """Dotted names that a file imports; with ``top_level_only`` those that run when it is loaded."""

    def walk(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if top_level_only and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            yield child
            yield from walk(child)

    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
    return found


def loaded_by(path: Path) -> set[str]:
    return imports(ast.parse(path.read_text(encoding="utf-8")), top_level_only=True)


def roots(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_the_tree_exists_so_that_the_other_tests_cannot_pass_on_nothing() -> None:
    folders = (PACKAGE, PACKAGE / "airflow", PACKAGE / "cluster", ROOT / "spark_jobs", ROOT / "expectations", ROOT / "dags")
    assert [folder for folder in folders if not modules(folder)] == []
    configuration = read_configuration(str(ROOT / "pyproject.toml"))
    assert configuration["session_options"]["root_packages"] == ["kafka_audit", "spark_jobs", "expectations"]
    assert len(configuration["contracts_options"]) == 11


def test_every_contract_on_imports_is_kept() -> None:
    # A process of its own: import-linter configures logging, which disables every logger that is there, and tests read what is logged.
    command = [str(Path(sys.executable).with_name("lint-imports")), "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    linted = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_the_contracts_name_every_room_of_the_package() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    contracts = {one["name"]: one for one in read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]}
    sources = {
        source.removeprefix("kafka_audit.")
        for name, contract in contracts.items()
        if name.startswith("Only kafka_audit.airflow")
        for source in contract["source_modules"]
    }
    assert sources == rooms - {"airflow", "cli"}, "cli starts Airflow, airflow uses it; every other room must do without"


def test_a_dag_file_only_asks_for_its_dags_and_their_definitions_load_nothing_heavy() -> None:
    for path in modules(ROOT / "dags"):
        assert loaded_by(path) == {"kafka_audit.airflow"}, path
    for path in modules(PACKAGE / "airflow" / "dags"):
        loaded = loaded_by(path)
        ours = {name for name in loaded if name.split(".")[0] == "kafka_audit"}
        assert all(name.startswith(("kafka_audit.airflow.", "kafka_audit.audit.", "kafka_audit.errors")) for name in ours), path
        assert not roots(loaded) & (HEAVY - {"airflow"}), path
        assert len(path.read_text().splitlines()) <= 120, f"{path}: it holds the order of tasks, not logic"


def test_the_plugin_file_loads_nothing_heavy() -> None:
    loaded = roots(loaded_by(PACKAGE / "airflow" / "plugin.py"))
    assert loaded <= {"airflow", "typing", "collections", "kafka_audit", "urllib", "functools", "__future__"}


def test_every_module_has_a_telling_name_a_docstring_and_one_way_to_be_imported() -> None:
    wrong = []
    for path in [p for f in ("plugins", "spark_jobs", "expectations", "dags", "tests", "bench") for p in modules(ROOT / f)]:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        if path.stem in NAMELESS:
            wrong.append(f"{path}: the name says nothing")
        if not ast.get_docstring(tree):
            wrong.append(f"{path}: say in one sentence what the module is")
        if roots(imports(tree)) & {"plugins", "dags"}:
            wrong.append(f"{path}: import kafka_audit, spark_jobs or expectations; they are installed packages")
        if "obstore" in roots(imports(tree)) and path != PACKAGE / "store" / "objects.py":
            wrong.append(f"{path}: use kafka_audit.store.objects, which says what the store refused and tells no secret")
        if path != Path(__file__) and "sys.path." in text:
            wrong.append(f"{path}: nothing edits sys.path")
    assert wrong == []


def test_every_room_says_its_rule_and_no_product_file_has_more_than_300_lines() -> None:
    silent = [path for path in PACKAGE.glob("*/__init__.py") if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    product = [path for folder in ("plugins", "spark_jobs", "expectations", "dags") for path in modules(ROOT / folder)]
    long = [path for path in product if len(path.read_text(encoding="utf-8").splitlines()) > 300]
    assert (silent, long) == ([], [])


def test_imports_inside_functions_stay_few() -> None:
    """Ruff asks for the reason of each; what a task, a command or a checker of signatures must not load is a reason."""
    found = []
    for path in [path for folder in ("plugins", "spark_jobs", "expectations", "dags") for path in modules(ROOT / folder)]:
        functions = [
            n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        lines = {n.lineno for one in functions for n in ast.walk(one) if isinstance(n, ast.Import | ast.ImportFrom)}
        found += [f"{path.relative_to(ROOT)}:{line}" for line in sorted(lines)]
    assert len(found) <= MOST_IMPORTS_INSIDE, found
