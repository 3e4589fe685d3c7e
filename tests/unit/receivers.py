"""A mail server and an HTTP server on this machine that keep what they receive, or refuse it."""

import asyncio
import email
import json
from collections.abc import Iterator
from contextlib import contextmanager
from email import policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session


class MailServer:
    """Keeps each mail with its recipients; ``refuses``: the answer to every mail instead."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []
        self.refuses = ""
        self.port = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.refuses:
            return self.refuses
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        self.mails.append((envelope.rcpt_tos, email.message_from_bytes(content, policy=policy.default)))  # type: ignore[arg-type]
        return "250 accepted"


@contextmanager
def mail_server() -> Iterator[MailServer]:
    kept, loop = MailServer(), asyncio.new_event_loop()
    # aiosmtpd's Controller cannot be given port 0.
    server = loop.run_until_complete(loop.create_server(lambda: SMTP(kept, loop=loop), "127.0.0.1", 0))
    kept.port = server.sockets[0].getsockname()[1]
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class HttpServer:
    """Keeps the JSON body of each request with its path; ``status``: what it answers."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []
        self.status = 200
        self.port = 0

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, body in self.received]


@contextmanager
def http_server() -> Iterator[HttpServer]:
    kept = HttpServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if kept.status == 200:
                kept.received.append((self.path, json.loads(body)))
            self.send_response(kept.status)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
