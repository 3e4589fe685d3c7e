"""The engine: judges every control of a subject in one pass over its wide rows.

A rule's SQL is the text from its control file, evaluated by Spark. SQL's three values are the verdict: TRUE passes, FALSE fails, NULL
is not assessed. Evidence that is missing can stop a pass and never a failure, because what was seen is enough to fail.

Only rules are parsed as SQL, each on its own, after catalogue.rule_sql has checked it. All other text, such as titles, expectations
and messages, is given to Spark as data: as literals, or as one literal of JSON that Spark reads into an array.
"""

from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.catalogue.rule import rule_of
from kafka_audit.catalogue.rule_sql import Reference
from kafka_audit.errors import ConfigurationError
from kafka_audit.findings import Status
from spark_jobs.engine.tables import constant, schema_of, table_of
from spark_jobs.judge.policy_columns import SEVERITIES, PolicyColumns, tier_of_row

_NOT_KNOWN = "not known"
BASELINE_TAKEN = "baseline taken: this is the cluster's first audit, which took the baseline that later audits compare with"
"""Why a control that compares with the past is not applicable in the first audit."""
UNDECLARED = "not declared: only an owner can say it; PRD-05 asks once for all declarations that the policy demands"
"""Why a control that judges what owners declare is not applicable where nobody declared it."""
_IDENTITY = {"topic": "string", "partition": "int", "broker_id": "int", "group_id": "string"}
_ABOUT = (
    "array<struct<control_id:string,code:string,title:string,catalogue_severity:string,catalogue_evidence:string,"
    "written:string,raised:string,rule_sha256:string>>"
)
_SUMMARISED = (
    "control_id string, code string, title string, subject string, severity string, evidence_class string, rule_sha256 string, "
    "population bigint"
)
_WIDEST_VALUE = 1_000  # of a command
_WIDEST_TEXT = 8_192  # a hostile value must not make a finding unreadable or a report unprintable

COLUMNS = (
    *("audit_id", "snapshot_id", "cluster", "control_id", "code", "title", "subject", "resource", "topic", "partition", "broker_id"),
    *("group_id", "severity", "evidence_class", "status", "reason", "observed", "expected", "evidence", "tier"),
    *("catalogue_severity", "loosened", "waiver", "remediation", "rule_sha256", "rule_set_sha256"),
)
"""The columns of findings.parquet; strings, except partition and broker_id (int).

``remediation``: for a failure, JSON text of the values that its control's commands are filled with."""


def judge(
    rows: DataFrame,
    controls: Sequence[Control],
    broken: Mapping[str, str] | None = None,
    policy_columns: PolicyColumns | None = None,
    *,
    first_audit: Column | None = None,
) -> DataFrame:
    """Wide rows of one subject -> one finding for each row and control, without what is the same for the whole audit.

    ``broken`` names controls whose SQL raised, with the message: their findings have status error. Without ``policy_columns`` the rows have
    to bring the controls' parameters along, severities are the catalogue's, and nothing is waived. ``first_audit``, a boolean column, says
    of which rows this is the cluster's first audit; None: of none.
    """
    return with_verdicts(results(rows, controls, broken, policy_columns, first_audit=first_audit), policy_columns)


def results(
    rows: DataFrame,
    controls: Sequence[Control],
    broken: Mapping[str, str] | None = None,
    policy_columns: PolicyColumns | None = None,
    *,
    first_audit: Column | None = None,
) -> DataFrame:
    """What the rules say, before it becomes verdicts: one row for each row and control, with the same columns for every subject.

    resource, the columns of ``_IDENTITY``, tier and subject string, and ``result`` struct<raw, about, by_tier>. Arguments as of
    :func:`judge`.
    """
    subject = SUBJECTS[controls[0].subject]
    raised = broken or {}
    identity = [(F.col(name) if name in subject.columns else F.lit(None)).cast(kind).alias(name) for name, kind in _IDENTITY.items()]
    tier = policy_columns.tier(subject) if policy_columns else tier_of_row(subject)
    raw = F.array(*[_raw_result(control, first_audit, policy_columns, raises=control.id in raised) for control in controls])
    about = constant([_about(control, raised.get(control.id)) for control in controls], _ABOUT)
    severities = constant([{"severity": control.severity.value} for control in controls], SEVERITIES)
    if policy_columns:
        rows = policy_columns.with_parameters(rows, subject, controls)
        severities = policy_columns.severities(subject, controls)
    result = F.explode(F.arrays_zip(raw.alias("raw"), about.alias("about"), severities.alias("by_tier"))).alias("result")
    return rows.select("resource", *identity, tier.alias("tier"), F.lit(subject.name).alias("subject"), result)


def _about(control: Control, raised: str | None) -> dict[str, str | None]:
    """What is known of a control before its rule is asked: the fields of ``_ABOUT``."""
    return {
        "control_id": control.id,
        "code": control.code,
        "title": control.title,
        "catalogue_severity": control.severity.value,
        "catalogue_evidence": control.evidence.value,
        "written": None if control.expected_sql is not None or raised is not None else control.expected,
        "raised": raised,
        "rule_sha256": rule_of(control).sha256,
    }


def _raw_result(control: Control, first_audit: Column | None, policy_columns: PolicyColumns | None, *, raises: bool) -> Column:
    """What the rule says of a row, before it becomes a verdict: the same struct for every control, so one array holds them all."""
    rules: dict[str, str | None] = {
        "applies": control.applies_when or "true",
        "passes": control.pass_when,
        "explanation": control.not_assessed_reason,
        "observed": control.observed,
        "computed": control.expected_sql,
        "evidence_of_row": control.evidence_of_row,
        "lacking": f"coalesce({', '.join(Reference(column='errors', key=dataset).sql for dataset in control.needs)})",
    }
    if raises:
        rules = dict.fromkeys(rules)
    # References are made of letters, digits, '.', '_' and '-' alone, so their SQL can be put together (catalogue.rule_sql.Reference).
    shown = {"nulls": _null_labels(control.decides_on), "evidence": _evidence(control.reads)}
    kinds = {"applies": "boolean", "passes": "boolean"}
    fields = [
        (F.expr(sql) if sql is not None else F.lit(None)).cast(kinds.get(name, "string")).alias(name)
        for name, sql in {**rules, **shown}.items()
    ]
    set_aside = _set_aside(control, first_audit, raises=raises).alias("set_aside")
    hidden = policy_columns.hidden(control) if policy_columns and not raises else F.lit(None).cast("string")
    remediation = _remediation({} if raises else control.remediation.values).alias("remediation")
    return F.struct(*fields, set_aside, hidden.alias("hidden"), remediation)


def _set_aside(control: Control, first_audit: Column | None, *, raises: bool) -> Column:
    """Why a row without a verdict is not applicable: it took the baseline, or nobody declared it. NULL where it is not assessed."""
    reasons = []
    if control.baseline_when is not None and first_audit is not None:
        reasons.append(F.when(first_audit & F.expr(control.baseline_when), F.lit(BASELINE_TAKEN)))
    if control.undeclared_when is not None:
        reasons.append(F.when(F.expr(control.undeclared_when), F.lit(UNDECLARED)))
    return F.lit(None).cast("string") if raises else F.coalesce(F.lit(None).cast("string"), *reasons)


def _remediation(values: Mapping[str, str]) -> Column:
    """JSON text of the values of the remediation's commands; one that is too long for a command is NULL."""
    if not values:
        return F.lit(None).cast("string")
    fields = [(name, F.expr(sql).cast("string")) for name, sql in values.items()]
    bounded = [F.when(F.length(value) <= _WIDEST_VALUE, value).alias(name) for name, value in fields]
    return F.to_json(F.struct(*bounded), {"ignoreNullFields": "false"})


def _null_labels(references: Sequence[Reference]) -> str:
    """SQL for the names of what the verdict depends on and is NULL, as one text; empty when nothing is."""
    labels = []
    for reference in references:
        value = f"{reference.sql}.value" if reference.column == "config" else reference.sql
        labels.append(f"if({value} is null, '{reference.label}', null)")
    return f"concat_ws(', ', {', '.join(labels)})" if labels else "''"


def _evidence(references: Sequence[Reference]) -> str:
    """SQL for JSON text of exactly what the control read; NULL stays visible as null."""
    if not references:
        return "'{}'"
    fields = ", ".join(f"'{reference.label}', {reference.sql}" for reference in references)
    return f"to_json(named_struct({fields}), map('ignoreNullFields', 'false'))"


def with_verdicts(rows: DataFrame, policy_columns: PolicyColumns | None = None) -> DataFrame:
    """Rows of :func:`results`, of any subjects -> their findings: the status of each, its reason, and readable texts."""
    raw, about, by_tier = (F.col("result")[name] for name in ("raw", "about", "by_tier"))
    rows = rows.withColumn("status", _status(raw, about))
    columns = {
        **{name: about[name] for name in ("control_id", "code", "title", "catalogue_severity", "rule_sha256")},
        **{name: by_tier[name] for name in ("severity", "loosened")},
        "evidence": raw["evidence"],
        "evidence_class": F.coalesce(raw["evidence_of_row"], about["catalogue_evidence"]),
        "reason": _bounded(_reason(raw, about)),
        "observed": _bounded(F.coalesce(raw["observed"], F.lit(_NOT_KNOWN))),
        "expected": _bounded(F.coalesce(about["written"], raw["computed"], F.lit(_NOT_KNOWN))),
        "remediation": F.when(F.col("status") == Status.FAIL.value, raw["remediation"]),
        "waiver": policy_columns.waiver(about["code"]) if policy_columns else F.lit(None).cast("string"),
    }
    named = [value.alias(name) for name, value in columns.items()]
    return rows.select("resource", *_IDENTITY, "tier", "subject", "status", *named)


def _status(raw: Column, about: Column) -> Column:
    applies, passes, lacking = raw["applies"], raw["passes"], raw["lacking"]
    not_assessed = F.when(raw["hidden"].isNotNull(), Status.NOT_APPLICABLE.value).otherwise(Status.NOT_ASSESSED.value)
    return (
        F.when(about["raised"].isNotNull(), Status.ERROR.value)
        .when(~applies, Status.NOT_APPLICABLE.value)
        .when(applies.isNull(), not_assessed)
        .when(~passes, Status.FAIL.value)
        .when(lacking.isNotNull(), not_assessed)
        .when(passes.isNull() & raw["set_aside"].isNotNull(), Status.NOT_APPLICABLE.value)
        .when(passes.isNull(), not_assessed)
        .otherwise(Status.PASS.value)
    )


def _reason(raw: Column, about: Column) -> Column:
    """Why a row has no verdict of the rule; NULL where it has one. Needs ``status``."""
    applies, lacking, nulls = raw["applies"], raw["lacking"], raw["nulls"]
    no_value = F.when(nulls != "", F.concat(F.lit("no value for: "), nulls))
    undecided = F.lit("the rule gives no answer for these values")
    explained = F.coalesce(lacking, F.nullif(raw["explanation"], F.lit("")), no_value, undecided)
    set_aside = F.coalesce(raw["hidden"], F.when(applies & lacking.isNull(), raw["set_aside"]))
    return (
        F.when(F.col("status") == Status.ERROR.value, F.concat(F.lit("the rule raised: "), about["raised"]))
        .when(F.col("status") == Status.NOT_ASSESSED.value, explained)
        .when((F.col("status") == Status.NOT_APPLICABLE.value) & F.coalesce(applies, F.lit(True)), set_aside)
    )


def _bounded(text: Column) -> Column:
    shortened = F.concat(F.left(text, F.lit(_WIDEST_TEXT)), F.lit("... (shortened)"))
    return F.when(F.length(text) > _WIDEST_TEXT, shortened).otherwise(text)


def summarise(spark: SparkSession, findings: DataFrame, catalogue: Sequence[Control], populations: Mapping[str, int]) -> DataFrame:
    """One row for each control, also where its subject has no rows: population, findings, distinct_resources and counts by status."""
    counted = {
        "passed": Status.PASS,
        "failed": Status.FAIL,
        "errored": Status.ERROR,
        "not_assessed": Status.NOT_ASSESSED,
        "not_applicable": Status.NOT_APPLICABLE,
    }
    counts = findings.groupBy("control_id").agg(
        F.count("*").alias("findings"),
        F.count_distinct("resource").alias("distinct_resources"),
        *[F.count_if(F.col("status") == status.value).alias(name) for name, status in counted.items()],
        F.count_if(F.col("waiver").isNotNull()).alias("waived"),
        F.count_if(F.col("loosened").isNotNull() & F.col("status").isin(Status.PASS.value, Status.FAIL.value)).alias("loosened"),
    )
    about = [
        (one.id, one.code, one.title, one.subject, one.severity.value, one.evidence.value, rule_of(one).sha256, populations[one.subject])
        for one in catalogue
    ]
    names = ("findings", "distinct_resources", *counted, "waived", "loosened")
    # A control without findings has really 0 of them: this table counts findings, it is no evidence of the cluster.
    every = table_of(spark, about, _SUMMARISED).join(F.broadcast(counts), on="control_id", how="left").na.fill(0, list(names))
    return every.select(*schema_of(_SUMMARISED).names, *names)


def check_rules(rows: Mapping[str, DataFrame], controls: Sequence[Control], policy_columns: PolicyColumns) -> None:
    """Let Spark analyse every rule on its own; ConfigurationError names each control that Spark does not accept, and why."""
    problems = []
    for control in controls:
        try:
            judge(rows[control.subject], [control], None, policy_columns)
        except (AnalysisException, ParseException) as problem:
            problems.append(f"{control.id}.yaml: {' '.join(str(problem).split())[:500]}")
    if problems:
        raise ConfigurationError("Spark does not accept these rules; correct their SQL:\n  " + "\n  ".join(problems))
