"""The size of the values that a rule may build is limited, and the shipped rules stay far below the limit."""

import pytest

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.catalogue.rule_sql import references_of
from kafka_audit.catalogue.rule_words import LONGEST, RuleSqlError

TOPIC = SUBJECTS["topic"]


@pytest.mark.parametrize(
    "sql",
    [
        "array_join(transform(split(topic, ','), (x, place) -> concat(place, ' of ', racks, ': ', x)), ', ') <> ''",
        "exists(config['retention.ms'].synonyms, one -> one.value <> config['retention.ms'].value)",
        "round(racks / 3, 2) > 1 and format_number(racks, 1) <> '' and floor(racks / 3) > 0",
        "concat_ws('; ', cast(unidentified_partitions as array<string>), topic) like 'a%b'",
        "slice(array_sort(array_union(unidentified_partitions, array(1, 2))), 1, 20)[0] = 1",
        "contains(concat(topic, ' ', resource), 'abc') and locate('-', topic, 2) > 1 and split_part(topic, '-', -1) = 'a'",
        "trim(topic) = resource and startswith(topic, concat(resource, '-')) and array_contains(split(topic, ','), resource)",
        "exists(split(topic, ','), x -> x = resource or startswith(resource, x) or length(x) > racks)",
        "exists(broker_values['a'], x -> cast(x as bigint) > cast(config['a'].value as bigint))",
    ],
)
def test_what_rules_need_for_readable_texts_is_allowed(sql: str) -> None:
    assert references_of(sql, TOPIC)


@pytest.mark.parametrize(
    "sql",
    [
        "aggregate(unidentified_partitions, topic, (a, p) -> concat(a, a)) = ''",  # doubles the text for each element
        "reduce(unidentified_partitions, topic, (a, p) -> concat(a, a)) = ''",
        "format_string('%2147483640s', topic) = ''",
        "printf('%2147483640s', topic) = ''",
        "repeat(topic, 1000000000) = ''",
        "lpad(topic, 2147483640, 'x') = ''",
        "rpad(topic, 2147483640) = ''",
        "space(2147483640) = ''",
        "array_repeat(topic, 2147483640)[0] = ''",
        "sequence(0, 2147483640)[0] = 1",
        "replace(topic, 'a', 'aaaaaaaaaaaaaaaaaaaa') = ''",
        "translate(topic, 'a', 'b') = ''",
        "regexp_replace(topic, '(a+)+', 'aaaa') = ''",
        "topic like '%a%a%a%a%a%b'",  # Spark makes a regular expression of it, which tries all ways to split the name
        "topic like '_a%'",
        "topic like resource",
        "size(split(topic, '(a+)+b')) > 1",
        "size(split(topic, resource)) > 1",
        "round(racks, 2147483647) > 1",
        "round(racks, racks) > 1",
        "bround(racks / 3, 1000000000) > 1",
        "floor(racks / 3, 1000000000) > 1",
        "format_number(racks, 1000000000) = ''",
        "format_number(racks, topic) = ''",
        "array_join(split(topic, ','), resource) = ''",
        "array_join(split(topic, ','), ', ', resource) = ''",
        "concat_ws(resource, split(topic, ',')) = ''",
        f"array_join(split(topic, ','), '{'x' * 21}') = ''",
        # for each element of a list all of another column, or the whole list again
        "array_join(transform(split(topic, ','), x -> resource), '') = ''",
        "size(transform(unidentified_partitions, x -> unidentified_partitions)) > 1",
        "size(transform(unidentified_partitions, x -> transform(unidentified_partitions, y -> y))) > 1",
        "exists(unidentified_partitions, x -> array_contains(unidentified_partitions, x))",
        # each is harmless, and each multiplies what the one before gave
        "array_join(split(" * 6 + "topic" + ", 'a'), 'bbbbbbbbbbbbbbbb')" * 6 + " = ''",
        "transform(" * 4 + "split(topic, 'a')" + ", x -> concat(x, x, x, x, x, x, x, x))" * 4 + "[0] = ''",
        "transform(split(topic, 'a'), x -> concat(" + ", ".join(["x"] * 2_500) + "))[0] = ''",
        "upper(" * 30 + "topic" + ")" * 30 + " = ''",
        "concat(" + ", ".join(["topic"] * 1_200) + ", topic) <> concat(" + ", ".join(["topic"] * 2_001) + ")",
        f"topic = '{'x' * 10_000}'",
        "not " * 2_000 + "is_internal",
        "racks = " + " + ".join(["1"] * 2_000),
        "racks = " + "- " * 3_000 + "1",
        "case when true then " * 100 + "1" + " end" * 100,
    ],
)
def test_what_could_build_or_take_without_bound_is_refused(sql: str) -> None:
    with pytest.raises(RuleSqlError):
        references_of(sql, TOPIC)


@pytest.mark.parametrize(
    "sql",
    [
        "length(concat(" + ",".join(["topic"] * 1_600) + ")) > 1",  # 1.6 GB of a value of 1 MB
        "length(concat(" + ", ".join(["topic"] * 101) + ")) > 1",
        "array_join(transform(split(topic, 'a'), x -> '" + "b" * 101 + "'), '') = ''",
        "exists(split(topic, 'a'), x -> length(concat(x, '" + "b" * 101 + "')) > 1)",
    ],
)
def test_what_builds_more_than_a_hundred_times_the_largest_value_of_a_row_is_refused(sql: str) -> None:
    with pytest.raises(RuleSqlError, match=r"can build text or a list [1-9][0-9]{2,3} times as large"):
        references_of(sql, TOPIC)


@pytest.mark.parametrize(
    "sql",
    [
        "size(split(concat(" + ", ".join(["topic"] * 4) + "), 'a')) > 1",  # 50 MB of separators become more elements than memory holds
        "exists(split(concat(" + ", ".join(["topic"] * 50) + "), 'a'), x -> x = resource)",
        "size(concat(" + ", ".join(["split(topic, 'a')"] * 21) + ")) > 1",
        "size(transform(split(topic, 'a'), x -> array(" + ", ".join(["1"] * 30) + "))) > 1",
    ],
)
def test_lists_of_more_elements_than_memory_holds_are_refused(sql: str) -> None:
    with pytest.raises(RuleSqlError, match=r"can build a list with [0-9]+ times as many elements|makes a list of each element"):
        references_of(sql, TOPIC)


@pytest.mark.parametrize(
    "sql",
    [
        "contains(concat(topic, topic), concat(topic, 'b'))",  # each place of the one is compared with all of the other
        "contains(topic, resource)",
        f"contains(topic, '{'a' * 201}')",
        "instr(topic, resource) > 1",
        "locate(resource, topic) > 1",
        "locate(resource, topic, 2) > 1",
        "trim(resource, topic) = ''",
        "ltrim(resource, topic) = ''",
        "rtrim(resource, topic) = ''",
        "split_part(topic, resource, 1) = ''",
        f"size(split(topic, '{'a' * 201}')) > 1",
        f"topic like '%{'a' * 201}%'",
    ],
)
def test_text_is_sought_by_short_literals_only(sql: str) -> None:
    with pytest.raises(RuleSqlError, match="seeks a computed or long text"):
        references_of(sql, TOPIC)


@pytest.mark.parametrize(
    "condition",
    [
        "startswith(concat(x, topic), 'a')",
        "length(topic) > 1",
        "upper(topic) = x",
        "x = concat(topic, 'a')",
        "try_cast(topic as bigint) > 1",  # for each piece of a name all of a name
        "coalesce(topic, x) = 'a'",
    ],
)
def test_a_lambda_reads_other_text_only_to_compare_with_it(condition: str) -> None:
    with pytest.raises(RuleSqlError, match="reads topic for every element of a list"):
        references_of(f"exists(split(resource, 'a'), x -> {condition})", TOPIC)


def test_shipped_rules_are_within_the_bounds_with_room_to_grow() -> None:
    for control in load_catalogue().controls:
        for sql in control.expressions.values():
            assert len(sql) < LONGEST / 4
            references_of(f"concat({sql}, topic, '; ')" if "topic" in control.wide_row.columns else sql, control.wide_row)
