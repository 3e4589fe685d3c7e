"""The tables of docs/scale.md are what bench/scale_model.py makes of the recorded measurements."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def model():
    spec = importlib.util.spec_from_file_location("scale_model", BENCH / "scale_model.py")
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # where dataclasses look for the module of a class
    yield spec.loader.exec_module(made) or made
    del sys.modules[spec.name]


def test_the_documents_tables_are_those_of_the_recorded_points(model):
    document = model.DOCUMENT.read_text(encoding="utf-8")
    tables = model.model(json.loads(model.POINTS.read_text(encoding="utf-8")))
    assert document.count(model.BEGIN) == document.count(model.END) == 1
    assert document.partition(model.BEGIN)[2].partition(model.END)[0] == tables


def test_a_straight_line_is_continued(model):
    points = [{"partitions": size, "cost": 5 + 2 * size} for size in (1, 2, 4)]
    line = model.Quantity(name="cost", unit="s", points=points, size=model.partitions, value=model.of("cost"))
    assert line.at(1000) == pytest.approx(2005)


def test_a_large_size_that_is_off_the_line_makes_no_small_one_negative(model):
    points = [{"partitions": size, "cost": cost} for size, cost in ((1, 1.8), (4, 8.7), (16, 39), (64, 184))]
    line = model.Quantity(name="cost", unit="MB", points=points, size=model.partitions, value=model.of("cost"))
    assert 1 < line.at(0.7) < 1.8
    assert 184 < line.at(100) < 350


def test_a_figure_of_fewer_than_three_sizes_is_not_continued(model):
    points = [{"partitions": 1, "cost": 7}, {"partitions": 2, "cost": 9}, {"partitions": 4}]
    line = model.Quantity(name="cost", unit="s", points=points, size=model.partitions, value=model.of("cost"))
    assert line.at(1000) is None
    assert model.shown(line.at(1000)) == "-"
