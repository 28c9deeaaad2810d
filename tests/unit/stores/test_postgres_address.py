"""What a PostgreSQL address may say, and what of it is ours."""

import pytest

from gnomon.domain.errors import UnusableDatabase
from gnomon.stores.postgres.address import SCHEMA, STATEMENTS, Address, parse

URL = "postgresql://anna:se%40cret@db.example:6432/house"


def test_an_address_without_options_has_ours_by_default() -> None:
    assert parse(URL) == Address(URL, SCHEMA, STATEMENTS)


def test_our_options_are_taken_out_and_the_driver_s_are_left() -> None:
    found = parse(f"{URL}?schema=plant_2&sslmode=require&statement_cache_size=0")
    assert found == Address(f"{URL}?sslmode=require", "plant_2", 0)


@pytest.mark.parametrize(
    "query",
    [
        *("schema=", "schema=Upper", "schema=1st", "schema=a-b", "schema=a;drop", "schema=pg_temp"),
        *("schema=information_schema", f"schema={'a' * 64}", "statement_cache_size=many"),
        "statement_cache_size=-1",
    ],
)
def test_a_wrong_option_is_refused_in_words(query: str) -> None:
    with pytest.raises(UnusableDatabase, match=query.partition("=")[0]):
        parse(f"{URL}?{query}")


def test_another_kind_of_address_is_refused() -> None:
    with pytest.raises(UnusableDatabase):
        parse("sqlite:///gnomon.db")


def test_what_is_shown_holds_no_secret() -> None:
    """OPS-5."""
    address = parse(f"{URL}?schema=plant")
    assert address.shown == "db.example:6432/house (schema plant)"
    for text in (repr(address), str(address)):
        assert "cret" not in text
        assert "anna" not in text
