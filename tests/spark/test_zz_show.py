import json
import pytest
from test_contradictions import contradictory, judged
pytestmark = pytest.mark.spark
def show(name, found):
    with open(f"/tmp/contra_{name}.txt", "w") as f:
        for (code, resource), one in sorted(found.items()):
            if one["status"] != "not_applicable":
                f.write(" | ".join([code, resource, one["status"], (one["reason"] or "")[:230], (one["observed"] or "")[:90]]) + "\n")
def test_after(spark, tmp_path):
    show("after", judged(spark, tmp_path, contradictory()))
def test_before(spark, tmp_path, monkeypatch):
    import test_contradictions as t
    class Dup(dict):
        def __contains__(self, key): return False
    monkeypatch.setattr("spark_jobs.engine.evidence.without_contradictions", lambda one: one)
    src = t.judged
    found = {}
    import inspect
    code = inspect.getsource(src).replace('assert place not in found, f"{place} is judged twice"', 'place = place if place not in found else (place[0], place[1] + " TWICE")')
    ns = dict(vars(t)); exec(code, ns)
    show("before", ns["judged"](spark, tmp_path, contradictory()))
