"""Who may import whom: the table of CONTRIBUTING, kept as a test."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "plugins" / "kafka_audit"
HEAVY = {"pyspark", "great_expectations", "kafka", "confluent_kafka", "pandas", "airflow"}
NAMELESS = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def imports(path: Path, *, top_level_only: bool = False) -> set[str]:
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
    for node in walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
    return found


def roots(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_the_tables_tree_exists_so_that_the_other_tests_cannot_pass_on_nothing() -> None:
    for folder in (PACKAGE, PACKAGE / "airflow", PACKAGE / "cluster", ROOT / "spark_jobs", ROOT / "expectations", ROOT / "dags"):
        assert modules(folder), folder


@pytest.mark.parametrize("path", modules(PACKAGE), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_core_package_imports_no_airflow_spark_or_great_expectations(path: Path) -> None:
    part = path.relative_to(PACKAGE).parts[0]
    allowed = {"airflow": {"airflow", "expectations", "spark_jobs"}, "cluster": {"kafka"}, "sandbox": {"kafka", "confluent_kafka"}}.get(
        part, set()
    )
    forbidden = {"airflow", "pyspark", "great_expectations", "kafka", "confluent_kafka", "pandas"} - allowed
    assert not roots(imports(path)) & forbidden


@pytest.mark.parametrize("path", modules(ROOT / "dags"), ids=lambda p: p.name)
def test_a_dag_file_imports_only_airflow_and_the_folders_of_an_audit(path: Path) -> None:
    loaded = imports(path, top_level_only=True)
    assert {name for name in loaded if name.split(".")[0] == "kafka_audit"} <= {
        n for n in loaded if n.startswith(("kafka_audit.airflow.", "kafka_audit.audit."))
    }
    assert not roots(loaded) & (HEAVY - {"airflow"})
    assert len(path.read_text().splitlines()) <= 120, "a DAG file holds the order of tasks, not logic"


def test_the_plugin_file_loads_nothing_heavy() -> None:
    loaded = imports(ROOT / "plugins" / "kafka_audit_plugin.py", top_level_only=True)
    assert roots(loaded) <= {"airflow", "typing", "collections", "kafka_audit", "urllib", "functools", "__future__"}
    assert "fastapi" not in roots(loaded)


@pytest.mark.parametrize("path", modules(ROOT / "spark_jobs"), ids=lambda p: str(p.relative_to(ROOT)))
def test_spark_jobs_import_no_airflow_kafka_or_great_expectations(path: Path) -> None:
    assert not roots(imports(path)) & {"airflow", "kafka", "confluent_kafka", "great_expectations", "expectations"}


@pytest.mark.parametrize("path", modules(ROOT / "expectations"), ids=lambda p: str(p.relative_to(ROOT)))
def test_expectations_import_no_airflow_kafka_or_spark_jobs(path: Path) -> None:
    assert not roots(imports(path)) & {"airflow", "kafka", "confluent_kafka", "pyspark", "spark_jobs"}


@pytest.mark.parametrize(
    "path",
    [p for f in ("plugins", "spark_jobs", "expectations", "dags", "tests", "bench") for p in modules(ROOT / f)],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_every_module_has_a_telling_name_a_docstring_and_one_way_to_be_imported(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert path.stem not in NAMELESS
    assert (path.name == "__init__.py" and not text.strip()) or ast.get_docstring(tree), "say in one sentence what the module is"
    loaded = roots(imports(path))
    assert not loaded & {"plugins", "dags"}, "import kafka_audit, spark_jobs or expectations; they are installed packages"
    assert path == Path(__file__) or "sys.path." not in text, "nothing edits sys.path"
