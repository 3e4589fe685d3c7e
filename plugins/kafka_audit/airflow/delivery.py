"""Sends a message through an Airflow connection: mail through the SMTP provider, everything else through the Apprise provider."""

import contextlib
import html
import logging
import smtplib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import apprise
from airflow.providers.apprise.hooks.apprise import AppriseHook
from airflow.providers.smtp.hooks.smtp import SmtpHook
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException
from airflow.sdk.log import mask_secret

from kafka_audit.errors import ConfigurationError, NotToldError
from kafka_audit.findings import Severity
from kafka_audit.index.message import Message
from kafka_audit.safe_text import visible

if TYPE_CHECKING:
    from airflow.sdk import Connection

_SMTP = "smtp"
_LEAST_SECRET = 6
"""Shorter parts of a service's address are not masked in logs: they are words, and logs would be full of asterisks."""


def deliver(connection_id: str, message: Message) -> None:
    """Send a message by the Airflow connection of that id.

    ConfigurationError names what is wrong with the connection; NotToldError says that the message was not accepted.
    """
    connection = _connection(connection_id)
    if connection.conn_type == _SMTP:
        _mail(connection_id, _extra(connection, connection_id), message)
    else:
        _notify(connection_id, connection, message)


def _connection(connection_id: str) -> "Connection":
    try:
        return BaseHook.get_connection(connection_id)
    except AirflowNotFoundException as problem:
        raise ConfigurationError(
            f"KAFKA_AUDIT_NOTIFY names {connection_id!r}, and there is no such Airflow connection: define it (type smtp or apprise), "
            "or take its name out"
        ) from problem


def _extra(connection: "Connection", connection_id: str) -> dict[str, Any]:
    try:
        extra = connection.extra_dejson
    except ValueError as problem:
        # Not chained: the parser's message quotes the text, and with it perhaps a password.
        raise ConfigurationError(f"the Extra of the Airflow connection {connection_id!r} is not JSON ({type(problem).__name__})") from None
    return extra if isinstance(extra, dict) else {}


def _mail(connection_id: str, extra: dict[str, Any], message: Message) -> None:
    """Mail to the addresses in the key ``to`` of the connection's Extra. The provider sends HTML only: the text is escaped."""
    recipients, sender = extra.get("to"), extra.get("from_email")
    listed = recipients.replace(";", ",").split(",") if isinstance(recipients, str) else recipients
    addresses = [str(one).strip() for one in listed if str(one).strip()] if isinstance(listed, list) else []
    for name, value in (("to", addresses), ("from_email", sender)):
        if not value:
            raise ConfigurationError(
                f"the Airflow connection {connection_id!r} does not say {name}: write it into its Extra, "
                'such as {"from_email": "audit@example.com", "to": "ops@example.com"}'
            )
    text = f'<pre style="white-space: pre-wrap">{html.escape(message.text)}</pre>'
    try:
        with SmtpHook(connection_id) as hook:
            hook.send_email_smtp(to=addresses, subject=message.subject, html_content=text)
    except (OSError, smtplib.SMTPException, AirflowException, RuntimeError, ValueError, TypeError) as problem:
        raise NotToldError(
            f"{connection_id}: the mail was not accepted ({type(problem).__name__}: {visible(str(problem))[:200]})"
        ) from None


def _notify(connection_id: str, connection: "Connection", message: Message) -> None:
    """A message to each service of an Apprise connection; its Extra has the key ``config`` as the provider writes it."""
    services, extra = apprise.Apprise(), _extra(connection, connection_id)
    asks = f'the Airflow connection {connection_id!r} names no service that Apprise knows: write {{"config": {{"path": "<service url>"}}}}'
    with _silent("apprise"):  # it logs an address that it cannot read as it is
        try:
            hook = AppriseHook(connection_id)
            config = hook.get_config_from_conn(connection)
            asked = config if isinstance(config, list) else [config]
            for one in asked:
                _mask(str(one["path"]))
            hook.set_config_from_conn(conn=connection, apprise_obj=services)
        except (KeyError, TypeError, ValueError):
            raise ConfigurationError(f"{asks} into its Extra (https://github.com/caronc/apprise/wiki)") from None
    if len(services) < len(asked) or not extra:
        raise ConfigurationError(f"{asks} into its Extra; {len(services)} of {len(asked)} could be read")
    kind = apprise.NotifyType.SUCCESS if message.good else apprise.NotifyType.WARNING
    if not message.good and message.severity.at_least(Severity.HIGH):
        kind = apprise.NotifyType.FAILURE
    accepted = services.notify(
        body=message.text,
        title=message.subject,
        notify_type=kind,
        body_format=apprise.NotifyFormat.TEXT,
        interpret_escapes=False,
    )
    if not accepted:
        raise NotToldError(f"{connection_id}: a service did not accept the message; the log of the task has the reason")


def _mask(address: str) -> None:
    """Let Airflow's logs hide a service's address and the parts of it that may be a token or a password."""
    mask_secret(address)
    try:
        parts = urlsplit(address)
        found = [parts.username, parts.password, *parts.path.split("/"), parts.query]
    except ValueError:
        found = []
    for part in found:
        if part and len(part) >= _LEAST_SECRET:
            mask_secret(part)
            mask_secret(unquote(part))


@contextlib.contextmanager
def _silent(name: str) -> Iterator[None]:
    """Let a logger say nothing for the block."""
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
