"""Globs match whole names as in a shell, in linear time for every pattern."""

import time
from fnmatch import fnmatchcase

import pytest
from glob_cases import CASES, generated

from kafka_audit.collect.scope import Scope
from kafka_audit.input_files.glob import covers, glob_to_regex, matches


@pytest.mark.parametrize(("glob", "name", "expected"), CASES)
def test_globs_match_whole_names_only(glob, name, expected):
    assert matches(glob, name) is expected


def test_they_match_what_pythons_own_globs_match():
    found = [(glob, name, matches(glob, name)) for glob, name in generated(5_000)]

    assert [(glob, name) for glob, name, matched in found if matched != fnmatchcase(name, glob)] == []
    assert 1_000 < sum(matched for _, _, matched in found) < 4_000


@pytest.mark.parametrize(
    ("glob", "name"),
    [
        ("*-*-*-dlq", "-" * 1_000_000),
        ("*a*b*a*c" * 20, "ab" * 500_000),
        ("[" * 100_000, "x"),
        ("[!" * 100_000, "x"),
        ("[]" * 100_000, "x"),
        ("?*" * 50_000, "x" * 49_999),
        ("[" + "a-" * 100_000 + "]", "-b"),
    ],
)
def test_no_pattern_and_no_name_takes_long(glob, name):
    began = time.process_time()
    matches(glob, name), covers(glob, glob), glob_to_regex(glob), Scope(topics=(glob,)).covers_topic(name)

    assert time.process_time() - began < 2


def test_a_pattern_that_matches_more_covers_one_that_matches_less():
    assert covers("*", "a*") and covers("a*", "a?") and covers("a?", "ab") and covers("[a-c]", "b")
    assert not covers("a?", "a*") and not covers("[a-c]", "?") and not covers("[", "*")
