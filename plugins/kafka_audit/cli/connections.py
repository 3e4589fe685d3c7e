"""``kafka-audit connections``: whether Airflow's connections lead to the clusters of the DAGs, and with which rights."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from kafka_audit.airflow.hook import stored_settings
from kafka_audit.audit.clusters import dag_clusters
from kafka_audit.cli import doctor_cluster
from kafka_audit.cli.doctor import tell
from kafka_audit.cli.doctor_installation import Check


def connections() -> None:
    """Check the Airflow connection of each cluster that has DAGs: does the cluster answer, and to which rights; reads only.

    Run it where Airflow runs, with the same environment variables: it finds connections where Airflow has them, in variables, secrets
    backends and its database. The lines and exit codes are those of doctor, with the cluster's name at the end.

    Exit code 0: nothing is missing. 2: something is. 4: nothing is missing, but something could not be found out.
    """
    tell(_checks())


def _checks() -> Iterator[Check]:
    for one in dag_clusters():
        for check in doctor_cluster.cluster(partial(stored_settings, one.kafka_conn_id)):
            yield replace(check, detail=f"{check.detail} ({one.name}, by {one.kafka_conn_id})")
