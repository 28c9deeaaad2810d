"""The error tree: five branches named by who must act, each with a stable code and JSON-safe data (HOUSE rule 8)."""

import json

import pytest

from gnomon.domain import errors
from gnomon.domain.errors import (
    Conflict,
    Fault,
    FenceStale,
    GnomonError,
    Invalid,
    Missing,
    Refused,
    RevisionStale,
    RunInFlight,
    Unauthenticated,
    Unavailable,
    UnusableDatabase,
)

BRANCHES = (Invalid, Missing, Conflict, Refused, Unavailable)
CODES: dict[type[GnomonError], tuple[str, type[GnomonError]]] = {
    Invalid: ("invalid", Invalid),
    Missing: ("not_found", Missing),
    Conflict: ("conflict", Conflict),
    RevisionStale: ("revision_stale", Conflict),
    RunInFlight: ("run_in_flight", Conflict),
    FenceStale: ("fence_stale", Conflict),
    Refused: ("forbidden", Refused),
    Unauthenticated: ("unauthenticated", Refused),
    Unavailable: ("unavailable", Unavailable),
    UnusableDatabase: ("unusable_database", Unavailable),
}


@pytest.mark.parametrize(("kind", "code", "branch"), [(kind, *rest) for kind, rest in CODES.items()])
def test_each_error_has_its_code_and_hangs_from_exactly_one_branch(
    kind: type[GnomonError], code: str, branch: type[GnomonError]
) -> None:
    error = kind("A sentence.")
    assert (error.code, error.message, str(error)) == (code, "A sentence.", "A sentence.")
    assert [root for root in BRANCHES if issubclass(kind, root)] == [branch]


def test_every_error_of_the_module_is_in_the_table() -> None:
    defined = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, GnomonError) and kind is not GnomonError
    }
    assert defined == set(CODES)


def test_codes_are_distinct() -> None:
    codes = [code for code, _ in CODES.values()]
    assert len(set(codes)) == len(codes)


def test_a_code_can_be_given_and_data_is_copied() -> None:
    data: dict[str, object] = {"run_id": "run_1"}
    error = Conflict("Busy.", code="busy", data=data)
    data["run_id"] = "run_2"
    assert error.code == "busy"
    assert json.loads(json.dumps(error.data)) == {"run_id": "run_1"}


def test_invalid_lists_every_fault_at_its_field() -> None:
    faults = [Fault("cadence.at", "is no time"), Fault("name", "is empty")]
    error = Invalid(iter(faults))
    assert error.faults == tuple(faults)
    assert str(error) == "cadence.at: is no time; name: is empty"


def test_invalid_takes_a_bare_sentence_too() -> None:
    error = Invalid("The body is no JSON.", code="not_json")
    assert (error.faults, error.message, error.code) == ((), "The body is no JSON.", "not_json")
