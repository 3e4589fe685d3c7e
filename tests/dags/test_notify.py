"""Messages to a real mail server and a real HTTP server, through the hooks of the providers and connections of the environment."""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from indexed_cluster import CLUSTER, HOUR, NOON, IndexedCluster
from news_overviews import changed, changes, failed, loss, lost
from receivers import HttpServer, MailServer, http_server, mail_server

from kafka_audit.audit.notification import NotifySettings
from kafka_audit.errors import ConfigurationError, NotToldError
from kafka_audit.findings import Severity

pytestmark = pytest.mark.airflow

HOSTILE = "<img src=x>@channel\nBcc: all@example.com"


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with mail_server() as server:
        extra = {"from_email": "audit@example.com", "to": "ops@example.com; dba@example.com", "disable_ssl": True, "disable_tls": True}
        connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": server.port, "extra": {**extra, "retry_limit": 0, "timeout": 10}}
        monkeypatch.setenv("AIRFLOW_CONN_OPS_MAIL", json.dumps(connection))
        yield server


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    with http_server() as server:
        extra = {"config": {"path": f"json://127.0.0.1:{server.port}/hooks/very-secret-token"}}
        monkeypatch.setenv("AIRFLOW_CONN_OPS_CHAT", json.dumps({"conn_type": "apprise", "extra": extra}))
        yield server


@pytest.fixture
def cluster(tmp_path: Path) -> IndexedCluster:
    return IndexedCluster(tmp_path / "audit-root")


@pytest.fixture
def told(cluster: IndexedCluster) -> Callable[..., dict[str, list[str]]]:
    """Tells what is new of the cluster, one hour after its newest audit."""
    from kafka_audit.airflow.telling import tell

    def run(*connections: str, hour: float = 1, failed: str = "") -> dict[str, list[str]]:
        settings = NotifySettings(connections=connections, least=Severity.HIGH, stale_hours=26, finish_within=2 * HOUR)
        return tell(cluster.root, CLUSTER, settings, now=NOON + timedelta(hours=hour), failed=failed)

    return run


def test_a_mail_says_what_is_new_and_links_to_the_page(mail: MailServer, cluster, told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/base/")
    cluster.sealed(0, verdict="FAILED", loss=loss(7), happened_losses=(lost(0, 7),), failed=failed(high=3))
    assert told("ops_mail") == {"ops_mail": ["loss", "new_failures"]}
    [(recipients, message)] = mail.mails
    assert recipients == ["ops@example.com", "dba@example.com"]
    assert (message["From"], message["Subject"]) == (
        "audit@example.com",
        f"Kafka audit of {CLUSTER}: Up to 7 records were lost unread, by 1 group.",
    )
    body = message.get_body(("html",))
    assert body is not None
    assert body.get_content().splitlines() == [
        f'<pre style="white-space: pre-wrap">Kafka cluster {CLUSTER}',
        "Up to 7 records were lost unread, by 1 group.",
        "group billing on payments-0: up to 7 records lost",
        "The audit ended FAILED: 3 failures (3 high) as notifications begin; from now on only changes are told.",
        "",
        f"https://airflow.example.com/base/kafka-audit/clusters/{CLUSTER}/</pre>",
    ]


def test_a_service_of_apprise_gets_plain_text_and_what_kind_of_news_it_is(chat: HttpServer, cluster, told) -> None:
    cluster.sealed(0, verdict="FAILED", reasons=("3 controls fail",))
    told("ops_chat")
    cluster.sealed(24)
    told("ops_chat", hour=25)
    bad, good = chat.bodies
    assert (bad["type"], bad["title"]) == ("failure", f"Kafka audit of {CLUSTER}: The audit ended FAILED.")
    assert bad["message"].splitlines()[:3] == [f"Kafka cluster {CLUSTER}", "The audit ended FAILED.", "3 controls fail"]
    assert (good["type"], good["title"]) == ("success", f"Kafka audit of {CLUSTER}: The audit passes again.")


def test_nothing_is_sent_for_what_has_not_changed(chat: HttpServer, mail: MailServer, cluster, told) -> None:
    cluster.sealed(0, verdict="FAILED", failed=failed(critical=1))
    told("ops_chat", "ops_mail")
    assert told("ops_chat", "ops_mail") == {"ops_chat": [], "ops_mail": []}
    cluster.sealed(24, verdict="FAILED", failed=failed(critical=1), changes=changes())
    told("ops_chat", "ops_mail", hour=25)
    assert (len(chat.received), len(mail.mails)) == (1, 1)


def test_a_hostile_name_adds_no_header_no_markup_and_no_mention(chat: HttpServer, mail: MailServer, cluster, told) -> None:
    cluster.sealed(0)
    told("ops_chat", "ops_mail")
    cluster.sealed(24, changes=changes(changed(HOSTILE)), burns=())
    told("ops_chat", "ops_mail", hour=25)
    [(_, message)] = mail.mails
    body = message.get_body(("html",))
    assert body is not None
    assert message["Bcc"] is None
    for text in (
        str(message["Subject"]),
        body.get_content().removeprefix('<pre style="white-space: pre-wrap">'),
        chat.bodies[-1]["message"],
    ):
        assert not {"@", "<img"} & {one for one in ("@", "<img") if one in text}
    assert "all\N{FULLWIDTH COMMERCIAL AT}example[.]com" in chat.bodies[-1]["message"]


def test_one_connection_that_refuses_does_not_stop_the_others_and_is_told_later(chat: HttpServer, mail: MailServer, cluster, told) -> None:
    cluster.sealed(0, verdict="FAILED", failed=failed(high=1))
    chat.status, mail.refuses = 500, ""
    with pytest.raises(NotToldError, match="ops_chat: a service did not accept the message"):
        told("ops_chat", "ops_mail")
    assert (chat.received, len(mail.mails)) == ([], 1)
    chat.status = 200
    assert told("ops_chat", "ops_mail") == {"ops_chat": ["new_failures"], "ops_mail": []}
    assert (len(chat.received), len(mail.mails)) == (1, 1)


def test_a_refused_mail_and_a_server_that_is_gone_are_not_told(mail: MailServer, cluster, told, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.sealed(0, verdict="FAILED", failed=failed(high=1))
    mail.refuses = "550 not today"
    with pytest.raises(NotToldError, match=r"ops_mail: the mail was not accepted \(SMTPDataError: .*not today"):
        told("ops_mail")
    mail.refuses = ""
    assert told("ops_mail") == {"ops_mail": ["new_failures"]}
    with mail_server() as gone:
        extra = {"from_email": "a@example.com", "to": ["b@example.com"], "disable_ssl": True, "disable_tls": True, "retry_limit": 0}
    monkeypatch.setenv("AIRFLOW_CONN_GONE", json.dumps({"conn_type": "smtp", "host": "127.0.0.1", "port": gone.port, "extra": extra}))
    with pytest.raises(NotToldError, match="gone: the mail was not accepted"):
        told("gone")


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        (None, "KAFKA_AUDIT_NOTIFY names 'other', and there is no such Airflow connection: define it"),
        (
            {"conn_type": "smtp", "host": "127.0.0.1", "extra": {"from_email": "a@example.com"}},
            "'other' does not say to: write it into its Extra",
        ),
        ({"conn_type": "smtp", "host": "127.0.0.1", "extra": {"to": "a@example.com"}}, "'other' does not say from_email"),
        ({"conn_type": "apprise"}, "'other' names no service that Apprise knows"),
        ({"conn_type": "apprise", "extra": {"config": {"path": "nosuch://very-secret-token"}}}, "0 of 1 could be read"),
        ({"conn_type": "apprise", "extra": {"config": "{very-secret-token"}}, "'other' names no service"),
        ({"conn_type": "apprise", "extra": {"config": [{"tag": "very-secret-token"}]}}, "'other' names no service"),
    ],
)
def test_a_connection_that_cannot_be_used_is_named_with_the_fix_and_the_others_are_told(  # noqa: PLR0917 - fixtures
    connection: dict | None, said: str, chat: HttpServer, cluster, told, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if connection:
        monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(connection))
    cluster.sealed(0, verdict="FAILED", failed=failed(high=1))
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigurationError) as refused:
        told("other", "ops_chat")
    assert said in str(refused.value)
    assert len(chat.received) == 1
    assert "very-secret-token" not in str(refused.value)
    assert "nosuch" not in caplog.text


def test_the_address_of_a_service_is_masked_in_logs(chat: HttpServer, cluster, told) -> None:
    from airflow.sdk._shared.secrets_masker import redact

    cluster.sealed(0, verdict="FAILED", failed=failed(high=1))
    told("ops_chat")
    assert "very-secret-token" not in str(redact("posting to /hooks/very-secret-token failed"))


def test_a_broken_record_is_replaced_and_what_stands_is_told_once_more(chat: HttpServer, cluster, told) -> None:
    cluster.sealed(0, verdict="FAILED", failed=failed(high=1))
    told("ops_chat")
    (cluster.root.told(CLUSTER) / "told.json").write_text("{")
    assert told("ops_chat") == {"ops_chat": ["new_failures"]}
    assert told("ops_chat") == {"ops_chat": []}


@pytest.fixture
def installed(cluster: IndexedCluster, monkeypatch: pytest.MonkeyPatch) -> IndexedCluster:
    """The cluster is that of the installation, and its chat is told."""
    monkeypatch.setenv("KAFKA_AUDIT_ROOT", str(cluster.root.path))
    monkeypatch.setenv("KAFKA_AUDIT_NOTIFY", "ops_chat")
    monkeypatch.setenv("KAFKA_AUDIT_STALE_HOURS", "8000")
    monkeypatch.setenv("KAFKA_AUDIT_FINISH_WITHIN", "0")
    return cluster


def test_a_missed_deadline_is_told_once_unless_the_audit_is_sealed_by_now(chat: HttpServer, installed: IndexedCluster) -> None:
    from kafka_audit.airflow.notify import deadline_missed

    installed.sealed(0)
    deadline_missed("d", "run 0", CLUSTER)
    assert chat.received == []
    late = installed.begun(24)
    for _ in range(2):
        deadline_missed("d", "run 24", CLUSTER)
    [body] = chat.bodies
    assert f"audit {late.path.name} of run run 24 has missed its deadline" in body["message"]


def test_without_the_setting_nobody_is_told_of_a_missed_deadline(
    chat: HttpServer, installed: IndexedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafka_audit.airflow.notify import deadline_missed

    monkeypatch.delenv("KAFKA_AUDIT_NOTIFY")
    deadline_missed("d", "run 0", CLUSTER)
    assert chat.received == []
    assert not installed.root.told(CLUSTER).exists()


def test_without_a_base_url_there_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_audit.airflow.telling import page_of

    monkeypatch.delenv("AIRFLOW__API__BASE_URL", raising=False)
    assert page_of(CLUSTER) == ""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com")
    assert page_of(CLUSTER) == f"https://airflow.example.com/kafka-audit/clusters/{CLUSTER}/"
