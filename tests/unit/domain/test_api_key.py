"""API keys: what their text says, and what is stored of it (SEC-3)."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.domain.api_key import (
    RANDOM_BITS,
    ApiKey,
    KeyKind,
    hashed,
    hint_of,
    kind_of,
    make_text,
    read_text,
    seal_of,
)
from gnomon.domain.api_key_form import read_new, read_patch, to_json
from gnomon.domain.form import Form
from gnomon.domain.ids import is_slug
from gnomon.domain.target import Target, TargetKind

BITS = st.integers(0, 2**RANDOM_BITS - 1)
TENANTS = st.from_regex(r"[a-z0-9]([a-z0-9_-]{0,20}[a-z0-9])?", fullmatch=True).filter(is_slug)
PEPPER = bytes(range(32))
KEY = make_text("master", KeyKind.SCOPES, 12345 << 100)


@given(TENANTS, st.sampled_from(KeyKind), BITS)
def test_a_key_says_its_tenant_and_its_kind(tenant: str, kind: KeyKind, bits: int) -> None:
    """SEC-3: the tenant is inside, even one whose slug looks like a part of a key."""
    said = read_text(make_text(tenant, kind, bits))
    assert said is not None
    assert (said.tenant, said.kind) == (tenant, kind)


@given(BITS, st.data())
def test_one_wrong_character_is_noticed(bits: int, data: st.DataObject) -> None:
    """SEC-3: the checksum covers the whole text."""
    text = make_text("acme", KeyKind.SCOPES, bits)
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters().filter(lambda c: c != text[place]))
    assert read_text(text[:place] + other + text[place + 1 :]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gnk_",
        KEY[:-1],
        KEY + "0",
        KEY.upper(),
        f" {KEY}",
        f"{KEY}\n",
        KEY.replace("master", "../../x"),
        KEY.replace("master", "%2e%2e"),
        KEY.replace("master", "/etc/passwd"),
        KEY.replace("master", "m\0ster"),
        KEY.replace("master", "mаster"),  # a Cyrillic a
        KEY.replace("master", "m" * 10_000),
        "x" * 10_000,
    ],
)
def test_what_is_no_key_says_nothing(text: str) -> None:
    """Reliability 3: no path is ever derived from it."""
    assert read_text(text) is None


@given(BITS, BITS)
def test_two_keys_differ_wherever_their_bits_do(first: int, second: int) -> None:
    same = make_text("a", KeyKind.SCOPES, first) == make_text("a", KeyKind.SCOPES, second)
    assert same == (first == second)


def test_what_is_stored_tells_nothing_of_the_key() -> None:
    """SEC-3: a keyed hash; another pepper, another hash; the seal is neither."""
    stored = hashed(KEY, PEPPER)
    assert len(stored) == 32
    assert stored != hashed(KEY, bytes(32))
    assert seal_of(KEY) != stored
    assert hint_of(KEY) == KEY.split("_")[3][-4:]


def test_the_kind_is_what_the_key_is_bound_to() -> None:
    """SEC-4: a team's key is recognised as one."""
    assert kind_of(None) is KeyKind.SCOPES
    assert kind_of(Target(TargetKind.AGENT, "agt_1")) is KeyKind.AGENT
    assert kind_of(Target(TargetKind.TEAM, "tea_1")) is KeyKind.TEAM


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ({}, {"scopes"}),
        ({"scopes": []}, {"scopes"}),
        ({"scopes": ["agents:reed"]}, {"scopes.0"}),
        ({"scopes": "agents:read"}, {"scopes"}),
        ({"scopes": ["*"], "target": {"kind": "agent", "id": "a"}}, {"scopes"}),
        ({"scopes": ["agents:read"], "role": "pm"}, {"role"}),
        ({"target": {"kind": "agent", "id": "a"}, "role": "pm"}, {"role"}),
        ({"scopes": ["tasks:claim"], "role": "P M"}, {"role"}),
        ({"target": {"kind": "robot"}}, {"target.kind", "target.id"}),
        ({"target": {"kind": "agent", "id": "a", "x": 1}}, {"target.x"}),
        (
            {"scopes": ["*"], "expires_at": "soon", "key": "gnk_mine", "name": 5},
            {"expires_at", "key", "name"},
        ),
    ],
)
def test_a_key_is_bound_to_one_target_or_to_scopes(written: dict[str, object], fields: set[str]) -> None:
    """SEC-3."""
    form = Form(written)
    read_new(form)
    assert {fault.field for fault in form.faults} == fields


DAY = datetime(2026, 11, 29, tzinfo=UTC)
MADE = ApiKey(
    id="key_1",
    name="reporting",
    hint="q7xz",
    scopes=(),
    target=Target(TargetKind.TEAM, "tea_1"),
    created_at=DAY,
    created_by="ada",
    expires_at=DAY.replace(month=12),
    last_used_at=None,
    revoked_at=None,
)


@pytest.mark.parametrize(
    ("written", "name", "expires_at"),
    [
        ({}, "reporting", MADE.expires_at),
        ({"name": "n"}, "n", MADE.expires_at),
        ({"name": None}, "", MADE.expires_at),
        ({"expires_at": None}, "reporting", None),
        ({"expires_at": "2027-01-01T00:00:00Z"}, "reporting", datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_patch_changes_name_and_expiry_where_it_names_them(
    written: dict[str, Any], name: str, expires_at: datetime | None
) -> None:
    form = Form(written)
    assert read_patch(form, MADE) == (name, expires_at)
    assert form.faults == []


def test_what_a_key_may_do_never_changes() -> None:
    """SEC-3: another reach is another key."""
    form = Form({"scopes": ["*"], "target": None, "role": "pm", "revoked_at": None})
    read_patch(form, MADE)
    assert {fault.field for fault in form.faults} == {"scopes", "target", "role", "revoked_at"}


def test_the_text_of_a_key_is_in_the_answer_to_its_creation_alone() -> None:
    """SEC-3: shown once."""
    assert to_json(MADE, "gnk_text")["key"] == "gnk_text"
    assert to_json(MADE) == {
        "id": "key_1",
        "name": "reporting",
        "hint": "q7xz",
        "scopes": [],
        "target": {"kind": "team", "id": "tea_1"},
        "role": None,
        "created_at": "2026-11-29T00:00:00Z",
        "created_by": "ada",
        "expires_at": "2026-12-29T00:00:00Z",
        "last_used_at": None,
        "revoked_at": None,
    }
    assert to_json(replace(MADE, target=None, scopes=("*",)))["target"] is None
