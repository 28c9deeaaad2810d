"""Every store test runs on each engine, in a database that it finds empty."""

import pytest

ENGINES = ("postgres", "sqlite")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine."""
    name: str = request.param
    return name
