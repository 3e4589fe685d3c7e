"""Measure how long the web pages take, with 50 clusters of 1,000 audits each, one of them with 65,000 groups.

    .venv/bin/python bench/pages.py
    .venv/bin/python bench/pages.py --clusters 5 --audits 100 --groups 5000

Each request runs through the whole application, without Airflow's login, in one process that nothing has warmed up. The first time that a
file is read is included: its hash is computed then.
"""

import argparse
import multiprocessing
import os
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

from audit_folders import Made, make_cluster

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.store.layout import EvidenceRoot

GROUPS_OF_OTHERS, TOPICS = 200, 500
TARGET_MS = 300


def pages(clusters: list[Made], chance: random.Random) -> dict[str, Callable[[], str]]:
    """For each kind of page what makes an address of it; the last cluster is the large one."""
    large, controls = clusters[-1], [one.id for one in load_catalogue().controls]

    def listed(made: Made) -> str:
        asked = {"q": chance.choice(["", "service-0", "team-42"]), "sort": chance.choice(["place", "name", "lag", "loss", "budget"])}
        return f"/clusters/{made.cluster}/groups/?{urlencode(asked)}"

    def group(made: Made) -> str:
        return f"/clusters/{made.cluster}/groups/one?{urlencode({'id': chance.choice(made.groups)})}"

    def topic(made: Made) -> str:
        return f"/clusters/{made.cluster}/topics/one?{urlencode({'name': chance.choice(made.topics)})}"

    return {
        "clusters": lambda: "/",
        "cluster, any": lambda: f"/clusters/{chance.choice(clusters).cluster}/",
        "audits, any cluster": lambda: f"/clusters/{chance.choice(clusters).cluster}/audits/",
        "audits": lambda: "/audits/",
        "matrix": lambda: "/matrix/",
        "waivers": lambda: "/waivers/",
        f"groups, of {len(large.groups):,}": lambda: listed(large),
        f"group, one of {len(large.groups):,}": lambda: group(large),
        "groups, any cluster": lambda: listed(chance.choice(clusters)),
        "group, any cluster": lambda: group(chance.choice(clusters)),
        "control, any cluster": lambda: f"/clusters/{chance.choice(clusters).cluster}/controls/{chance.choice(controls)}",
        "topic, any cluster": lambda: topic(chance.choice(clusters)),
    }


def measure(clusters: list[Made], requests: int) -> bool:
    # Airflow reads its home from the environment when it is imported.
    from airflow.api_fastapi.core_api.security import get_user  # noqa: PLC0415
    from airflow.utils import db  # noqa: PLC0415
    from fastapi.testclient import TestClient  # noqa: PLC0415

    from kafka_audit.airflow.web.access import may_trigger, rights  # noqa: PLC0415
    from kafka_audit.airflow.web.app import app  # noqa: PLC0415

    db.initdb()
    web = app()
    web.dependency_overrides |= {get_user: lambda: None, rights: lambda: lambda dag_id: True, may_trigger: lambda: lambda dag_id: True}
    client, chance, fast = TestClient(web), random.Random(1), True
    for name, address in pages(clusters, chance).items():
        took = []
        for _ in range(requests):
            asked = address()
            began = time.perf_counter()
            answer = client.get(asked)
            took.append((time.perf_counter() - began) * 1000)
            if answer.status_code != 200:
                raise SystemExit(f"{asked}: {answer.status_code} {answer.text[:500]}")
        p95 = statistics.quantiles(took, n=20)[-1]
        fast &= p95 < TARGET_MS
        print(f"  {name:<28} median {statistics.median(took):6.1f} ms   p95 {p95:6.1f} ms   slowest {max(took):6.1f} ms", flush=True)
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")
    return fast


def run(clusters: int = 50, audits: int = 1000, groups: int = 65_000, requests: int = 200) -> bool:
    """Make the audits in a temporary folder and measure; whether every page is faster than the target."""
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
        root = EvidenceRoot(path=Path(folder) / "root")
        os.environ.update({"KAFKA_AUDIT_ROOT": str(root.path), "AIRFLOW_HOME": folder})
        sizes, began = [GROUPS_OF_OTHERS] * (clusters - 1) + [groups], time.perf_counter()
        # In processes of their own: what making them takes is not in the peak memory of the pages.
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            waiting = [pool.submit(make_cluster, root, f"cluster-{at:02}", audits, size, TOPICS) for at, size in enumerate(sizes)]
            made = [one.result() for one in waiting]
        print(f"pages of {clusters} clusters with {audits:,} audits each, made in {time.perf_counter() - began:.0f} s", flush=True)
        return measure(made, requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=65_000)
    parser.add_argument("--requests", type=int, default=200)
    asked = parser.parse_args()
    if not run(asked.clusters, asked.audits, asked.groups, asked.requests):
        raise SystemExit(f"a page takes {TARGET_MS} ms or more")


if __name__ == "__main__":
    main()
