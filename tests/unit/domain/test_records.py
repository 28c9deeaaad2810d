"""The records of the domain: frozen, slotted, their statuses closed lists that the contract names (HOUSE rule 9)."""

import dataclasses
import importlib
import pkgutil
from enum import StrEnum

import pytest

import gnomon.domain
from gnomon.domain.audit import Action
from gnomon.domain.occurrence import Disposition, Reason
from gnomon.domain.target import Target, TargetKind

MODULES = [
    importlib.import_module(f"gnomon.domain.{found.name}")
    for found in pkgutil.iter_modules(gnomon.domain.__path__)
]
DEFINED = [
    kind
    for module in MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__
]
RECORDS = [kind for kind in DEFINED if dataclasses.is_dataclass(kind)]
ENUMS = [kind for kind in DEFINED if issubclass(kind, StrEnum)]


# One of each is made for every slot: freezing triples what making one costs (ADR 0027).
HOT = {"Due", "Slot", "Decision", "Grant", "Invocation", "Result"}


@pytest.mark.parametrize("record", RECORDS, ids=lambda kind: kind.__name__)
def test_a_record_is_frozen_and_slotted(record: type) -> None:
    """HOUSE rule 9."""
    assert record.__dataclass_params__.frozen != (record.__name__ in HOT)  # type: ignore[attr-defined]
    assert "__slots__" in vars(record)


def test_a_record_can_not_be_changed() -> None:
    """HOUSE rule 9."""
    target = Target(TargetKind.TEAM, "tea_1")
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.id = "tea_2"  # type: ignore[misc]


@pytest.mark.parametrize("enum", ENUMS, ids=lambda kind: kind.__name__)
def test_no_value_of_a_closed_list_stands_twice(enum: type[StrEnum]) -> None:
    """An alias would hide one of two members."""
    assert len(enum.__members__) == len(list(enum))


def test_the_dispositions_and_reasons_are_the_contract_s() -> None:
    """DSP-9; CONTRACT, "Occurrence"."""
    assert {d.value for d in Disposition} == {"fired", "skipped", "missed"}
    assert {r.value for r in Reason} == {
        "already_running",
        "missed",
        "outside_window",
        "excluded",
        "over_quota",
        "rate_limited",
        "over_budget",
        "authority_denied",
        "target_invalid",
        "target_gone",
        "tenant_suspended",
        "no_instance",
        "paused",
    }


def test_the_contract_s_audit_actions_are_all_there() -> None:
    """BRD-7, RUN-6; CONTRACT, "Audit entry"."""
    named = {"CLAIM", "RENEW", "RELEASE", "EXPIRE", "FENCED", "SKIP", "PAUSE"}
    assert named <= {action.value for action in Action}
    assert all(action.name == action.value for action in Action)
