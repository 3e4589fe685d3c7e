"""What a rule's SQL may do, and every known attempt to get around that."""

import contextlib
import random

import pytest

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.catalogue.rule_sql import references_of
from kafka_audit.catalogue.rule_words import FUNCTIONS, RuleSqlError

TOPIC = SUBJECTS["topic"]


def labels(sql: str, subject: str = "topic") -> list[str]:
    return [reference.label for reference in references_of(sql, SUBJECTS[subject])]


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("topic is not null and not is_internal", ["topic", "is_internal"]),
        ("config['retention.ms'].value = '1'", ["config.retention.ms"]),
        ("element_at(broker_values, 'retention.ms') is null", ["broker_values.retention.ms"]),
        ("config['retention.ms'].synonyms[0].value <> config['retention.ms'].value", ["config.retention.ms"]),
        ("policy.tier = 'a' or policy.retention_ms > 1", ["policy.tier", "policy.retention_ms"]),
        ("exists(broker_values['retention.ms'], v -> v <> 'false')", ["broker_values.retention.ms"]),
        ("forall(unidentified_partitions, (p) -> p > partition_count)", ["unidentified_partitions", "partition_count"]),
        ("filter(config['retention.ms'].synonyms, s -> s.source = 'X')[0].value = '1'", ["config.retention.ms"]),
        ("transform(unidentified_partitions, (p, index) -> p + index)[0] > 1", ["unidentified_partitions"]),
        ("case when topic like '%a%' and topic like 'b%' then racks between 1 and 2 end", ["topic", "racks"]),
        (
            "try_cast(config['retention.ms'].value as bigint) in (1, 2) and (racks > 1) and (is_internal)",
            ["config.retention.ms", "racks", "is_internal"],
        ),
        ("concat(racks, ' of ', topic) = concat_ws(', ', topic, errors['topics'])", ["racks", "topic", "errors.topics"]),
        ("if(racks <=> null, nvl(racks, 1), coalesce(racks, 2)) = greatest(racks, least(racks, 3))", ["racks"]),
        ("topic = 'it''s -- no comment /* here */ reflect(1)'", ["topic"]),
        ("topic = 'current_date'", ["topic"]),
        ("topic = 'a \\\\ b \\' c'", ["topic"]),
        (
            "array_join(cast(unidentified_partitions as ARRAY < string >), ', ', '?') = split(topic, ',')[0]",
            ["unidentified_partitions", "topic"],
        ),
        ("cast(racks as double) > 1.5 and racks % 2 = 1 and racks div 2 = 1", ["racks"]),
    ],
)
def test_allowed_sql_is_read_for_what_it_refers_to(sql: str, read: list[str]) -> None:
    assert labels(sql) == read


def test_a_map_that_is_small_may_be_read_as_a_whole() -> None:
    assert labels("size(map_keys(unread_by_dataset)) = 0 and unread_by_dataset['offsets'] > 0", "cluster") == [
        "unread_by_dataset",
        "unread_by_dataset.offsets",
    ]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("reflect('java.lang.Runtime', 'x')", "calls reflect()"),
        ("`reflect`('java.lang.Runtime', 'x')", "holds a name in back-quotes"),
        ("system.builtin.reflect('a', 'b')", "calls reflect() by a name with a dot"),
        ("ReFlEcT ('a')", "calls reflect()"),
        ("reflect /**/ ('a')", "holds a comment"),
        ("java_method('a', 'b')", "calls java_method()"),
        ("try_reflect('a', 'b')", "calls try_reflect()"),
        ("identifier('reflect')('a')", "calls identifier()"),
        ("`and`(topic)", "holds a name in back-quotes"),
        ("my_udf(topic)", "calls my_udf()"),
        ("now() > 1", "reads now"),
        ("current_timestamp() > 1", "reads current_timestamp"),
        ("current_date = 1", "reads current_date"),
        ("current_user = topic", "reads current_user"),
        ("user = topic", "reads user"),
        ("rand() < racks", "calls rand()"),
        ("uuid() = topic", "calls uuid()"),
        ("input_file_name() = topic", "calls input_file_name()"),
        ("timestamp 'now' > 1", "holds 'now' behind timestamp; write an operator between them"),
        ("racks + interval 1 day > 1", "holds 1 behind interval"),
        ("sum(racks) > 1", "calls sum()"),
        ("count(*) > 1", "calls count()"),
        ("max(racks) over () > 1", "calls max()"),
        ("size(config) over (order by racks) > 1", "holds over behind )"),
        ("size(unidentified_partitions) over w > 1", "holds over behind )"),
        ("explode(unidentified_partitions) > 1", "calls explode()"),
        ("racks in (select 1)", "holds 1 behind select"),
        ("exists(select 1)", "holds 1 behind select"),
        ("(select max_by(1, 2)) = 1", "holds max_by behind select"),
        ("select topic", "holds topic behind select"),
        ("*", "holds * without a value before it"),
        ("topic = :value", "holds a parameter"),
        ("topic = ?", "holds a parameter"),
        ("topic as name", "holds AS"),
        ("topic = 'a'; drop table x", "must be exactly one SQL expression"),
        ("topic = 'a' -- and more", "holds a comment"),
        ("topic /* x */ = 'a'", "holds a comment"),
        ("", "must be exactly one SQL expression"),
        ("topic = 'unclosed", "is not valid SQL"),
        ("topic =", "is not valid SQL"),
        ("nothing = 1", "reads nothing, which is not a column of subject topic; write one of resource, topic"),
        ("filter(unidentified_partitions, p -> q > 1)", "reads q, which is not a column"),
        ("filter(unidentified_partitions, p -> p > 1)[0] = p", "reads p, which is not a column"),
        ("policy.nothing = 1", "there is no field nothing; its fields are tier"),
        ("topic.name = 'a'", "there is no field name"),
        ("config['retention.ms'].vaule = '1'", "there is no field vaule; its fields are value, source, synonyms"),
        ("config['retention.ms'].synonyms[0].vaule = '1'", "there is no field vaule; its fields are name, value, source"),
        ("config.retention.ms.value = '1'", "write config['retention.ms.value']"),
        ("config[topic].value = '1'", "reads config with a computed key"),
        ("size(config) = 1", "reads all of config; name the key"),
        ("size(broker_values) = 1", "reads all of broker_values"),
    ],
)
def test_everything_else_is_refused_with_the_reason(sql: str, reason: str) -> None:
    with pytest.raises(RuleSqlError) as problem:
        references_of(sql, TOPIC)
    assert reason in str(problem.value)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("exists(values 1)", "holds 1 behind values"),
        ("exists(values(1))", "calls values()"),
        ("exists(table topic)", "holds topic behind table"),
        ("exists(from topic select 1)", "holds topic behind from"),
        ("explain select 1", "holds select behind explain"),
        ("show tables", "holds tables behind show"),
        ("call anything(topic)", "holds anything behind call"),
        ("set x", "holds x behind set"),
        ("map(topic) using 'id'", "calls map()"),
        ("exists(map topic using 'touch /tmp/x' as (a))", "holds topic behind map"),
        ("exists(reduce topic using 'id')", "holds topic behind reduce"),
        ("transform(topic) using 'id'", "holds using behind )"),
        ("exists(select transform(topic) using 'id' as (a string))", "holds transform behind select"),
        ("/*+ broadcast(x) */ topic = 'a'", "holds a comment"),
        ("topic lateral view explode(racks) t", "holds lateral behind topic"),
        ("topic ilike any ('a')", "holds ilike behind topic"),
        ("topic like any ('a')", "calls any()"),
        ("topic like 'a' escape 'b'", "holds escape behind 'a'"),
        ("topic rlike 'a'", "holds rlike behind topic"),
        ("regexp_like(topic, '(a+)+b')", "calls regexp_like()"),
        ("topic collate UNICODE = 'a'", "holds collate behind topic"),
        ("topic ?? 'a'", "holds a parameter marker"),
        ("topic:a.b = 1", "holds a parameter marker or a path"),
        ("racks::string = '1'", "holds a parameter marker or a path"),
        ("{{topic}} = 1", "holds '{', which a rule may not"),
        ("{fn now()} = 1", "holds '{', which a rule may not"),
        ("topic = @x", "holds '@', which a rule may not"),
        ("concat(topic, sep => 'x')", "holds > without a value before it"),
        ("racks > 1 in", "it ends with in"),
        ("racks << 1 = 1", "holds < without a value before it"),
        ("topic |> where true", "holds '|', which a rule may not"),
        ("topic = r'a'", 'holds "r\'", which a rule may not'),
        ("topic = R'a'", 'holds "R\'", which a rule may not'),
        ("topic = x'61'", 'holds "x\'", which a rule may not'),
        ("topic = u&'61'", "holds '&', which a rule may not"),
        ("topic = 'a' 'b'", "holds 'b' behind 'a'"),
        ('topic = "a"', 'holds "; write text in single quotes'),
        ("topic = '\\u0024'", "an escape other than"),
        ("topic = '\\044'", "an escape other than"),
        ("topic = 'a\x00'", "holds a control character"),
        ("topic = '${env:HOME}'", "holds ${, which Spark and shells replace"),
        ("topic = ${env:HOME}", "holds ${, which Spark and shells replace"),
        ("racks = 0x1F", "holds '0x1F', which a rule may not"),
        ("racks = 1e9", "holds '1e9', which a rule may not"),
        ("racks = 1L", "holds '1L', which a rule may not"),
        ("racks = 99999999999999999999", "which a rule may not"),
        ("racks\u00a0= 1", "which a rule may not"),
        ("cast(topic as binary) = topic", "holds AS without a type"),
        ("cast(topic as decimal(38, 38)) = 1", "holds AS without a type"),
        ("cast(topic as timestamp) > 1", "holds AS without a type"),
        ("cast(topic as interval day) > 1", "holds AS without a type"),
        ("cast(topic as struct<a:int>) is null", "holds AS without a type"),
        ("transform(unidentified_partitions, current_date -> current_date)[0] = 1", "reads current_date"),
        ("transform(unidentified_partitions, upper -> upper)[0] = 1", "names a lambda's variable upper"),
        ("exists(unidentified_partitions)", "without a list and a lambda"),
        ("transform() = 1", "without a list and a lambda"),
        ("array_sort(unidentified_partitions, (a, b) -> 1)[0] = 1", "holds a lambda where none may be"),
        ("errors['it''s'] = ''", "a key may hold letters, digits"),
        ("errors['a', 'b'] = ''", "write one index or key"),
        ("(racks > 1", "a bracket or CASE is not closed"),
        ("racks > 1)", "is not valid SQL"),
        ("count(distinct topic) = 1", "calls count()"),
        ("array_agg(topic) = 1", "calls array_agg()"),
        ("get_json_object(topic, '$')", "calls get_json_object()"),
        ("xpath_string(topic, 'a')", "calls xpath_string()"),
        ("raise_error(topic)", "calls raise_error()"),
        ("java_method('java.lang.System', 'getenv', topic) = ''", "calls java_method()"),
        ("version() = topic", "calls version()"),
        ("spark_partition_id() = 1", "calls spark_partition_id()"),
        ("from_json(topic, 'a int') is null", "calls from_json()"),
    ],
)
def test_text_that_two_parsers_could_read_differently_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(RuleSqlError) as problem:
        references_of(sql, TOPIC)
    assert reason in str(problem.value)


_SOUP = [
    *"()[],.'=<>-+*/%",
    "->",
    "<=>",
    "||",
    "'a'",
    "1",
    "1.5",
    "x",
    "topic",
    "policy.tier",
    "config['retention.ms'].value",
    "unidentified_partitions",
]
_SOUP += [
    "and",
    "or",
    "not",
    "is",
    "null",
    "true",
    "in",
    "like",
    "between",
    "case",
    "when",
    "then",
    "else",
    "end",
    "cast(racks as int)",
    "as",
]


def test_any_text_is_read_or_refused_and_never_a_crash() -> None:
    choose = random.Random(20261122)
    words = [*_SOUP, *(f"{name}(" for name in sorted(FUNCTIONS))]
    for _ in range(4_000):
        with contextlib.suppress(RuleSqlError):
            references_of(" ".join(choose.choices(words, k=choose.randint(0, 15))), TOPIC)


def test_a_very_deep_expression_is_an_error_and_no_crash() -> None:
    with pytest.raises(RuleSqlError):
        references_of("(" * 5000 + "racks" + ")" * 5000, TOPIC)
