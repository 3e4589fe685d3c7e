"""Builds the FastAPI application of the pages from the routes of each kind of page."""

import gc

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI

from kafka_audit.airflow.web import audits, clusters, metrics, places
from kafka_audit.airflow.web.answers import refused, with_headers
from kafka_audit.errors import AuditError

_ROUTERS = (clusters.router, places.router, metrics.router, audits.router)


def app() -> FastAPI:
    """The application. Every route needs a login, and shows only clusters whose audits the person may read.

    What a person may not read is answered as what does not exist: 404, with the same words.
    """
    # The interactive API pages would be public: they are outside the dependencies.
    web = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(get_user)])
    web.middleware("http")(with_headers)
    web.exception_handler(AuditError)(refused)
    for router in _ROUTERS:
        web.include_router(router)
    # Python stops for 0.3 s whenever it looks through half a million objects for cycles, and a large page makes it look. Nearly all of
    # them are modules of Airflow and of this project, which stay as long as the process: it leaves them out from now on.
    gc.freeze()
    return web
