"""Run a suite with Great Expectations, and read its answer so that nothing untested counts as passed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from expectations.suites import Rule, Suite, Table
from kafka_audit.audit.gate_result import RuleResult
from kafka_audit.errors import ConfigurationError, IncompleteError
from kafka_audit.findings import Verdict

_DTYPES = {"count": "Int64", "number": "Float64", "text": "object"}
_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The judged rules in the order of the suite, and Great Expectations' own result per table as JSON."""

    results: tuple[RuleResult, ...]
    raw: dict[str, Any]


def library() -> Any:  # noqa: ANN401 - Great Expectations has no usable types
    """The module that imports Great Expectations and pandas: when a suite is judged, because it takes seconds and 290 MB."""
    from expectations import library as loaded  # noqa: PLC0415 - so that importing a gate stays cheap

    return loaded


def validate(suite: Suite, tables: Sequence[Table], parameters: Mapping[str, Any]) -> Validation:
    """Judge ``tables`` by ``suite``; ``parameters`` fill the suite's ``$PARAMETER`` places.

    ConfigurationError (exit 2) when suite, tables and parameters do not belong together, or when Great Expectations did not
    load or evaluate every rule.
    """
    by_name = {table.name: table for table in tables}
    wanted = {rule.meta.table for rule in suite.expectations}
    if wanted != set(by_name):
        raise ConfigurationError(f"suite {suite.name} has rules for the tables {sorted(wanted)}, and is given {sorted(by_name)}")
    source = _data_source(suite)
    with library().configurations_made_once():
        raw = {name: _run(suite, table, parameters, source) for name, table in by_name.items()}
    answers = {item["expectation_config"]["meta"]["rule_id"]: item for answer in raw.values() for item in answer["results"]}
    promised = [rule.meta.rule_id for rule in suite.expectations]
    if sorted(answers) != sorted(promised):
        lost = sorted(set(promised) - set(answers))
        raise ConfigurationError(f"Great Expectations did not evaluate {lost} of suite {suite.name}: check type and kwargs of these rules")
    results = tuple(
        _judge(rule, by_name[rule.meta.table], answers[rule.meta.rule_id], suite.meta.error_exit_code) for rule in suite.expectations
    )
    return Validation(results=results, raw=raw)


def _data_source(suite: Suite) -> Any:  # noqa: ANN401 - the library has no usable types
    """A pandas source in a new context that lives in memory only: nothing is read from or written to a project folder."""
    found = library()
    stores = found.InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
    config = found.DataContextConfig(store_backend_defaults=stores, analytics_enabled=False)
    context = found.gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    return context.data_sources.add_pandas(suite.name)


def _run(suite: Suite, table: Table, parameters: Mapping[str, Any], source: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    gx = library().gx
    rules = [rule for rule in suite.expectations if rule.meta.table == table.name]
    loaded = gx.ExpectationSuite(name=f"{suite.name}.{table.name}", expectations=[rule.model_dump() for rule in rules])
    if len(loaded.expectations) != len(rules):
        kept = {item.meta["rule_id"] for item in loaded.expectations}
        lost = [f"{rule.meta.rule_id} ({rule.type})" for rule in rules if rule.meta.rule_id not in kept]
        raise ConfigurationError(f"Great Expectations dropped {', '.join(lost)} from suite {suite.name}: it does not know the type")
    batch = source.add_dataframe_asset(table.name).add_batch_definition_whole_dataframe("whole").get_batch({"dataframe": _frame(table)})
    try:
        answer = batch.validate(
            loaded,
            expectation_parameters=dict(parameters),
            result_format={
                "result_format": "SUMMARY",
                "unexpected_index_column_names": [table.key],
                "partial_unexpected_count": _SHOWN,
                "return_unexpected_index_query": False,
            },
        )
    except gx.exceptions.SuiteParameterError as problem:
        raise ConfigurationError(f"suite {suite.name} needs a parameter that was not given: {problem}") from problem
    found: dict[str, Any] = answer.to_json_dict()
    # When Great Expectations loaded the frame, by its own clock: the one value that would differ when a gate is run again.
    found.get("meta", {}).get("batch_markers", {}).pop("ge_load_time", None)
    return found


def _frame(table: Table) -> Any:  # noqa: ANN401 - a pandas.DataFrame
    pd = library().pd
    return pd.DataFrame({name: pd.Series(table.column(name), dtype=_DTYPES[kind]) for name, kind in table.columns.items()})


def _judge(rule: Rule, table: Table, answer: Mapping[str, Any], error_exit_code: int) -> RuleResult:
    result = answer.get("result") or {}
    columns = [str(value) for key, value in sorted(rule.kwargs.items()) if key in ("column", "column_A", "column_B")]
    errors = exception_messages(answer.get("exception_info"))
    rows = int(result.get("element_count", len(table.rows)))
    missing = int(result.get("missing_count") or 0)
    if errors:
        status, detail = Verdict.ERROR, "; ".join(errors)
    elif not bool(answer.get("success")):
        status, detail = Verdict.FAIL, _unexpected(table, result)
    elif rows - missing == 0:
        status, detail = Verdict.VACUOUS, "Nothing was tested: " + ("the value is not known." if rows else "there was no row.")
    elif missing:
        status, detail = Verdict.FAIL, ""
    else:
        status, detail = Verdict.PASS, ""
    if status is Verdict.FAIL and missing:
        detail = f"{detail} Not known for: {_some(table.unknown(columns))}.".strip()
    names = () if table.single else _short_names(table, result)
    codes = {Verdict.ERROR: error_exit_code, Verdict.VACUOUS: IncompleteError.exit_code}
    return RuleResult(
        rule_id=rule.meta.rule_id,
        severity=rule.severity,
        status=status,
        description=rule.description,
        expected=_expected(answer),
        observed=_observed(table, columns, rows, result),
        detail=detail,
        exit_code=codes.get(status, rule.meta.exit_code),
        rows=names,
        more=max(0, int(result.get("unexpected_count") or 0) - len(names)) if names else 0,
    )


def exception_messages(info: Any) -> list[str]:  # noqa: ANN401 - two shapes, both seen: flat, and one per metric
    """The distinct messages of what Great Expectations caught while it computed a rule; empty when nothing was raised."""
    if not info:
        return []
    items = [info] if "raised_exception" in info else list(info.values())
    return sorted({str(item.get("exception_message")) for item in items if item.get("raised_exception")})


def _short_names(table: Table, result: Mapping[str, Any]) -> tuple[str, ...]:
    """The first word of each failing row's key: a control's code, a dataset's name."""
    return tuple(str(row.get(table.key)).split(" ")[0] for row in result.get("partial_unexpected_index_list") or ())


def _expected(answer: Mapping[str, Any]) -> str:
    kwargs = {key: value for key, value in answer["expectation_config"]["kwargs"].items() if key != "batch_id"}
    condition = kwargs.pop("row_condition", None)
    text = ", ".join(f"{key}={_shown(value)}" for key, value in sorted(kwargs.items()))
    return f"{text}, where {condition['column']['name']} {condition['operator']} {condition['parameter']}" if condition else text


def _observed(table: Table, columns: Sequence[str], rows: int, result: Mapping[str, Any]) -> str:
    if table.single and len(table.rows) == len(columns) == 1:
        return _shown(table.rows[0].get(columns[0]))
    unexpected = result.get("unexpected_count")
    return f"{unexpected} of {rows} break this rule" if unexpected is not None else _shown(result.get("observed_value"))


def _unexpected(table: Table, result: Mapping[str, Any]) -> str:
    found = result.get("partial_unexpected_index_list")
    if not found:
        return f"Found {_shown(result.get('observed_value', 'rows outside the limit'))}."
    values = [", ".join(f"{name}={_shown(value)}" for name, value in row.items() if name != table.key) for row in found]
    lines = values if table.single else [f"{row.get(table.key)} ({text})" for row, text in zip(found, values, strict=True)]
    return f"Found: {_some(lines, of=int(result.get('unexpected_count') or len(lines)))}."


def _shown(value: object) -> str:
    """Great Expectations makes floats of all numbers: 0 is shown as 0 again."""
    if value is None:
        return "not known"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _some(names: Sequence[str], of: int | None = None) -> str:
    count = len(names) if of is None else of
    shown = "; ".join(names[:_SHOWN])
    return f"{shown} and {count - _SHOWN} more" if count > _SHOWN else shown
