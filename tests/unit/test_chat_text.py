"""Names from a cluster in mails and chats: nothing that a reader could click."""

import pytest

from kafka_audit.report.inert_text import chat


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("evil.com/x", "evil[.]com/x"),
        ("evil.support/login", "evil[.]support/login"),
        ("evil.xn--p1ai", "evil[.]xn--p1ai"),
        ("evil.\u0440\u0444", "evil[.]\u0440\u0444"),
        ("www.anything", "www[.]anything"),
        ("orders.payments.v1", "orders.payments.v1"),
        ("team.orders-2", "team.orders-2"),
    ],
)
def test_what_looks_like_the_name_of_a_web_host_is_no_link(name: str, shown: str) -> None:
    assert chat(name) == shown
