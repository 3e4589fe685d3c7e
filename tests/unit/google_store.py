"""A Google store for tests: fake-gcs-server behind the part of Google's XML API that obstore speaks.

fake-gcs-server takes new objects by Google's JSON API only, so each request is put into that API's words here. It keeps the objects, refuses
what a generation forbids, and lists.
"""

import contextlib
import http.client
import json
import os
import subprocess
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

import pytest
from object_store import built, port_of

_VERSION = "1.56.1"
TOKEN = "a-token-of-tests"
_LISTED = {"prefix": "prefix", "delimiter": "delimiter", "start-after": "startOffset", "continuation-token": "pageToken"}


@dataclass(frozen=True)
class GoogleStore:
    """A server that runs, with the XML API at ``endpoint``, and the port of fake-gcs-server."""

    endpoint: str
    port: int

    def new_root(self) -> str:
        """The URL of an empty root in a bucket of its own."""
        bucket = f"evidence-{uuid.uuid4().hex[:12]}"
        made = _asked(self.port, "POST", "/storage/v1/b?project=tests", json.dumps({"name": bucket}).encode())
        assert made.status == http.HTTPStatus.OK
        return f"gs://{bucket}/root"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to use it."""
        return {"GOOGLE_BEARER_TOKEN": TOKEN, "KAFKA_AUDIT_STORE_OPTIONS": f"base_url={self.endpoint}"}


@contextlib.contextmanager
def served() -> Iterator[GoogleStore]:
    """A server for the block; the test is skipped where it cannot be built, and unless ``make test-stores`` asks for it."""
    if not os.environ.get("KAFKA_AUDIT_TEST_GOOGLE"):
        pytest.skip("fake-gcs-server takes two CPU minutes to build: make test-stores runs this test")
    program = built("github.com/fsouza/fake-gcs-server", _VERSION)
    line = [program, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", "0"]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with _Front(port_of(process)) as front:
            threading.Thread(target=front.serve_forever, daemon=True).start()
            yield GoogleStore(endpoint=f"http://127.0.0.1:{front.server_port}", port=front.behind)
            front.shutdown()
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    data: bytes


def _asked(port: int, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> _Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(connection):
        connection.request(method, path, body, dict(headers or {}))
        found = connection.getresponse()
        return _Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())


class _Front(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, behind: int) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.behind = behind


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet
    server: _Front

    def log_message(self, *_: object) -> None:
        pass

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"] or 0))
        bucket, name, _ = self._named()
        asked = {"uploadType": "media", "name": name, "ifGenerationMatch": self.headers["x-goog-if-generation-match"] or ""}
        made = self._ask("POST", f"/upload/storage/v1/b/{bucket}/o?{urlencode(asked)}", data)
        if made.status == http.HTTPStatus.OK:
            about = json.loads(made.data)
            self._answer(made.status, headers={"ETag": f'"{about["etag"]}"', "x-goog-generation": about["generation"]})
        elif made.status == http.HTTPStatus.NOT_FOUND:
            self._refuse(made.status, "NoSuchBucket")
        else:
            self._refuse(made.status, "PreconditionFailed")

    def do_GET(self) -> None:
        bucket, name, said = self._named()
        if not name:
            self._list(bucket, said)
            return
        ranged = {"Range": self.headers["Range"]} if self.headers["Range"] else {}
        found = self._ask("GET", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media", headers=ranged)
        if found.status == http.HTTPStatus.NOT_FOUND:
            self._missing(bucket)
            return
        kept = ("etag", "x-goog-generation", "last-modified", "content-range")
        self._answer(found.status, found.data, {name: value for name, value in found.headers.items() if name in kept})

    def do_DELETE(self) -> None:
        bucket, name, _ = self._named()
        found = self._ask("DELETE", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}")
        if found.status == http.HTTPStatus.NOT_FOUND:
            self._missing(bucket)
        else:
            self._answer(http.HTTPStatus.NO_CONTENT)

    def _list(self, bucket: str, said: Mapping[str, str]) -> None:
        asked = {"maxResults": said.get("max-keys", "1000")} | {name: said[xml] for xml, name in _LISTED.items() if xml in said}
        found = self._ask("GET", f"/storage/v1/b/{bucket}/o?{urlencode(asked)}")
        if found.status == http.HTTPStatus.NOT_FOUND:
            self._refuse(found.status, "NoSuchBucket")
            return
        page = json.loads(found.data)
        objects = [one for one in page.get("items", []) if one["name"] != said.get("start-after")]  # startOffset counts its own name in
        parts = [
            f"<Contents><Key>{escape(one['name'])}</Key><LastModified>{one['updated']}</LastModified><ETag>{escape(one['etag'])}</ETag>"
            f"<Size>{one['size']}</Size></Contents>"
            for one in objects
        ]
        parts += [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in page.get("prefixes", [])]
        if token := page.get("nextPageToken"):
            parts.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        self._answer(http.HTTPStatus.OK, f"<ListBucketResult>{''.join(parts)}</ListBucketResult>".encode())

    def _named(self) -> tuple[str, str, dict[str, str]]:
        """The bucket and the object that are asked for, and the query."""
        parts = urlsplit(self.path)
        bucket, _, name = unquote(parts.path).removeprefix("/").partition("/")
        return bucket, name, dict(parse_qsl(parts.query))

    def _ask(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> _Answer:
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return _Answer(http.HTTPStatus.UNAUTHORIZED, {}, b"")
        return _asked(self.server.behind, method, path, body, headers)

    def _missing(self, bucket: str) -> None:
        there = self._ask("GET", f"/storage/v1/b/{bucket}").status == http.HTTPStatus.OK
        self._refuse(http.HTTPStatus.NOT_FOUND, "NoSuchKey" if there else "NoSuchBucket")

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def _answer(self, status: int, data: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
