"""Unit tests leave out what takes seconds and changes no result."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from object_store import Store


def _not_synced(descriptor: int) -> None:
    os.fstat(descriptor)  # refuses what is no open file, as fsync does


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Only a crash of the machine shows whether a file was synced; tests of that look at the calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", _not_synced)
        yield


@pytest.fixture(scope="module")
def without_data_docs() -> Iterator[None]:
    """The gates make no Data Docs, which take a quarter of their time; test_gate_data_docs.py tests those."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("expectations.gate.build_docs", lambda out: None)
        yield


@pytest.fixture
def store(request: pytest.FixtureRequest) -> "Store":
    """The S3 store, or with object_store.EVERYWHERE each store in turn."""
    return request.getfixturevalue(getattr(request, "param", "object_store"))  # type: ignore[no-any-return]
