"""What a rule may build from a row is bounded, and the rules that ship stay far below the bound."""

import pytest

from kafka_audit.catalogue import load_catalogue
from kafka_audit.rule_sql import references_of
from kafka_audit.rule_words import LONGEST, RuleSqlError
from kafka_audit.subjects import SUBJECTS

TOPIC = SUBJECTS["topic"]


@pytest.mark.parametrize(
    "sql",
    [
        "array_join(transform(split(topic, ','), (x, place) -> concat(place, ' of ', racks, ': ', x)), ', ') <> ''",
        "exists(config['retention.ms'].synonyms, one -> one.value <> config['retention.ms'].value)",
        "round(racks / 3, 2) > 1 and format_number(racks, 1) <> '' and floor(racks / 3) > 0",
        "concat_ws('; ', cast(unidentified_partitions as array<string>), topic) like 'a%b'",
        "slice(array_sort(array_union(unidentified_partitions, array(1, 2))), 1, 20)[0] = 1",
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


def test_shipped_rules_stay_far_below_the_bounds() -> None:
    """The bounds leave room for rules several times as large as the largest that ship."""
    for control in load_catalogue().controls:
        for sql in control.expressions.values():
            assert len(sql) < LONGEST / 4
            references_of(f"concat({sql}, {sql}, {sql})" if len(sql) < LONGEST / 4 else sql, control.wide_row)
