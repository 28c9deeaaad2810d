"""A server with short locks, for the tests that leave it running."""

from collections.abc import Iterator

import pytest

from gnomon.client import Client
from support.product import Running
from support.workers import client_of, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with served(tmp_path_factory.mktemp("server")) as product:
        yield product


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with client_of(server) as made:
        yield made
