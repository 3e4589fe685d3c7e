"""Addresses of pages of Airflow's own UI, relative to its root."""

from urllib.parse import quote


def trigger_link(dag_id: str, like_run: str | None = None) -> str:
    """Where a person starts a run of ``dag_id``: its page, on which the button *Trigger* opens the form with the DAG's defaults.

    With ``like_run``, the id of an earlier run: that run's page, on which *Trigger* also offers *Trigger again with this config*: the form
    filled in as that run was. Airflow 3.3.2 has no address that opens the form itself, and takes no value for it from an address: whether
    the form is open, and what fills it in, is the state of that button (``ui/dist/assets/index-*.js``, ``prefillConfig``; Airflow 2 had
    ``/trigger?conf=``; a change that brought it back, apache/airflow#59231, was reverted by #59769, and issue #54800 is open). The cluster
    is fixed by the DAG, so the form of the cluster's own DAG is filled in for that cluster without a link's doing.
    """
    page = f"/dags/{quote(dag_id, safe='')}"
    return page if like_run is None else f"{page}/runs/{quote(like_run, safe='')}"
