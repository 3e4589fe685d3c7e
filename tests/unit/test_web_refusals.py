"""A page that cannot be made for lack of a store, or for what lies there, is a page with words, and no trace."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from kafka_audit.airflow.web.answers import refused
from kafka_audit.errors import AuditError, CollectionError, ConfigurationError, IntegrityError


@pytest.mark.parametrize(
    ("problem", "code", "told"),
    [
        (CollectionError("cannot read s3://private/root"), 503, "The store of the audits cannot be read now"),
        (IntegrityError("s3://private/root is not ours"), 500, "What is stored for this page cannot be used"),
        (ConfigurationError("KAFKA_AUDIT_ROOT: write a URL"), 500, "KAFKA_AUDIT_ROOT: write a URL"),
    ],
)
def test_a_refusal_is_a_page(problem: AuditError, code: int, told: str, caplog: pytest.LogCaptureFixture) -> None:
    web = FastAPI()
    web.exception_handler(AuditError)(refused)

    @web.get("/page")
    def page() -> None:
        raise problem

    answer = TestClient(web).get("/page")
    assert answer.status_code == code
    assert told in answer.text
    assert "private" not in answer.text
    assert isinstance(problem, ConfigurationError) or str(problem) in caplog.text
