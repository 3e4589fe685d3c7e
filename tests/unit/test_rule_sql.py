"""What a rule's SQL may do, and every way around that which was thought of."""

import pytest

from kafka_audit.rule_sql import RuleSqlError, references_of
from kafka_audit.subjects import SUBJECTS

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
        ("aggregate(unidentified_partitions, 0, (total, p) -> total + p) > 3", ["unidentified_partitions"]),
        ("filter(config['retention.ms'].synonyms, s -> s.source = 'X')[0].value = '1'", ["config.retention.ms"]),
        ("transform(unidentified_partitions, (p, index) -> p + index)[0] > 1", ["unidentified_partitions"]),
        ("case when topic rlike 'a.*' and topic like 'b%' then racks between 1 and 2 end", ["topic", "racks"]),
        (
            "try_cast(config['retention.ms'].value as bigint) in (1, 2) and (racks > 1) and (is_internal)",
            ["config.retention.ms", "racks", "is_internal"],
        ),
        ("format_string('%d of %s', racks, topic) = concat_ws(', ', topic, errors['topics'])", ["racks", "topic", "errors.topics"]),
        ("if(racks <=> null, nvl(racks, 1), coalesce(racks, 2)) = greatest(racks, least(racks, 3))", ["racks"]),
        ("topic = 'it''s -- no comment /* here */ reflect(1)'", ["topic"]),
        ("topic = 'current_date'", ["topic"]),
        ("cast(racks as decimal(10, 2)) > 1.5 and racks % 2 = 1 and racks div 2 = 1", ["racks"]),
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
        ("`reflect`('java.lang.Runtime', 'x')", "calls reflect()"),
        ("system.builtin.reflect('a', 'b')", "calls reflect()"),
        ("ReFlEcT ('a')", "calls reflect()"),
        ("reflect /**/ ('a')", "holds a comment"),
        ("java_method('a', 'b')", "calls java_method()"),
        ("try_reflect('a', 'b')", "calls try_reflect()"),
        ("identifier('reflect')('a')", "calls identifier()"),
        ("`and`(topic)", "calls and()"),
        ("my_udf(topic)", "calls my_udf()"),
        ("now() > 1", "reads now"),
        ("current_timestamp() > 1", "reads current_timestamp"),
        ("current_date = 1", "reads current_date"),
        ("current_user = topic", "reads current_user"),
        ("user = topic", "reads user"),
        ("rand() < racks", "calls rand()"),
        ("uuid() = topic", "calls uuid()"),
        ("input_file_name() = topic", "calls input_file_name()"),
        ("timestamp 'now' > 1", "makes a date or a timestamp"),
        ("racks + interval 1 day > 1", "holds an interval"),
        ("sum(racks) > 1", "calls sum()"),
        ("count(*) > 1", "calls count()"),
        ("max(racks) over () > 1", "calls max()"),
        ("size(config) over (order by racks) > 1", "calls over()"),
        ("size(unidentified_partitions) over w > 1", "holds a window function"),
        ("explode(unidentified_partitions) > 1", "calls explode()"),
        ("racks in (select 1)", "holds a query"),
        ("exists(select 1)", "holds a query"),
        ("(select max_by(1, 2)) = 1", "calls max_by()"),
        ("select topic", "holds a query"),
        ("*", "holds *"),
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
        ("to_json(broker_values) = ''", "reads all of broker_values"),
    ],
)
def test_everything_else_is_refused_with_the_reason(sql: str, reason: str) -> None:
    with pytest.raises(RuleSqlError) as problem:
        references_of(sql, TOPIC)
    assert reason in str(problem.value)


def test_a_very_deep_expression_is_an_error_and_no_crash() -> None:
    with pytest.raises(RuleSqlError):
        references_of("(" * 5000 + "racks" + ")" * 5000, TOPIC)
