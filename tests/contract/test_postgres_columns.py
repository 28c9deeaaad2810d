"""A column of a batch goes to PostgreSQL as one text: what the server makes of it, whatever stands in its values."""

import asyncio
import math
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnomon.stores.postgres.columns import pack, unpacked

# the marks themselves, with and without the number that a second try gives them, among all that a text may hold
TEXTS = st.text(
    st.sampled_from("\x1e\x1f12,{}\"\\' aé€😀") | st.characters(codec="utf-8", exclude_characters="\x00"),
    max_size=8,
)
KINDS = {
    "text": TEXTS,
    "int": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(allow_nan=False),
}


def asked(url: str, text: str, *values: str) -> list[tuple[Any, ...]]:
    async def ask() -> list[tuple[Any, ...]]:
        raw = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await raw.fetch(text, *values)]
        finally:
            await raw.close()

    return asyncio.run(ask())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4),
    many=st.integers(1, 5),
)
def test_the_server_reads_what_was_given(
    postgres_url: str, data: st.DataObject, kinds: list[str], many: int
) -> None:
    columns = [
        data.draw(st.lists(st.none() | KINDS[kind], min_size=many, max_size=many), label=kind)
        for kind in kinds
    ]
    packed = pack(kinds, columns)
    width = len(kinds)
    arrays = ", ".join(
        unpacked(kind, f"${number}", f"${width + 1}", f"${width + 2}") for number, kind in enumerate(kinds, 1)
    )
    # the marks are asked for as well, so that a batch without a text has a place for them
    text = f"SELECT * FROM unnest({arrays}) WHERE ${width + 1}::text <> ${width + 2}::text"
    assert asked(postgres_url, text, *packed.columns, packed.after, packed.null) == list(
        zip(*columns, strict=True)
    )


@pytest.mark.parametrize("column", [("\x1e",), ("\x1e", "a"), ("\x1e", None), ("\x1f\x1e1", "\x1e1")])
def test_a_text_that_is_a_mark_itself_is_a_text(postgres_url: str, column: tuple[str | None, ...]) -> None:
    packed = pack(["text"], [column])
    text = f"SELECT * FROM unnest({unpacked('text', '$1', '$2', '$3')})"
    assert asked(postgres_url, text, *packed.columns, packed.after, packed.null) == [(one,) for one in column]


def test_what_no_number_is_is_refused() -> None:
    with pytest.raises(TypeError):
        pack(["int"], [["7"]])


def test_a_yes_is_a_one_as_it_is_for_the_other_engine() -> None:
    assert pack(["int"], [[True, None, False]]).columns == ["{1,NULL,0}"]


def test_infinity_is_a_number_of_the_server_too(postgres_url: str) -> None:
    packed = pack(["real"], [[math.inf, 1e-300, 3]])
    text = "SELECT $1::text::double precision[]"
    assert asked(postgres_url, text, *packed.columns) == [([math.inf, 1e-300, 3.0],)]
