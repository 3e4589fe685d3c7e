"""What Airflow loads by this package's entry point: menu entry, report tab and web pages; all that is heavy waits for the first request."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from kafka_audit.airflow.gate import ReportLink

_Asgi = Callable[[MutableMapping[str, Any], Callable[..., Awaitable[Any]], Callable[..., Awaitable[None]]], Awaitable[None]]


class LazyApp:
    """An ASGI application that is built at its first request.

    Every Airflow process loads plugins, and only the api-server needs the web framework and the authentication modules.
    """

    def __init__(self) -> None:
        self._app: _Asgi | None = None

    async def __call__(
        self, scope: MutableMapping[str, Any], receive: Callable[..., Awaitable[Any]], send: Callable[..., Awaitable[None]]
    ) -> None:
        """Pass the request on."""
        if self._app is None:
            from kafka_audit.airflow.web.app import app  # noqa: PLC0415  (the reason for this class)

            self._app = app()
        await self._app(scope, receive, send)


# Relative addresses: they survive a proxy that serves Airflow below a path.
# The menu entry has no url_route, so that Airflow 3.3.2 makes it a link that opens the pages in a tab of their own. With a url_route they
# would be in an iframe with the sandbox "allow-scripts allow-same-origin allow-forms allow-downloads" (ui/dist/assets/index-*.js), from
# which no link leads to Airflow's own pages: not to a run, and not to where an audit is started. A run's report is shown in such a frame,
# as a tab of the run; there the pages leave these links away.
_VIEWS: list[Any] = [
    {"name": "Kafka reliability", "href": "kafka-audit/", "destination": "nav", "category": "browse"},
    {"name": "Audit report", "href": "kafka-audit/dags/{DAG_ID}/runs/{RUN_ID}", "destination": "dag_run", "url_route": "audit-report"},
]
_APPS: list[Any] = [{"app": LazyApp(), "url_prefix": "/kafka-audit", "name": "Kafka reliability"}]
_LINKS: list[Any] = [ReportLink()]


class KafkaAuditPlugin(AirflowPlugin):
    """Adds "Kafka reliability" to the menu, the tab "Audit report" to a run and a link to it to the gate task."""

    name = "kafka_audit"
    fastapi_apps = _APPS
    external_views = _VIEWS
    operator_extra_links = _LINKS
