"""Jobs and their triggers judged: next slots, one trigger for each slot, who has it, and the steps it took (OPS-7).

Needs memory for the number of jobs, and for what is in flight; not for the number of triggers.
"""

from collections.abc import Iterator

from gnomon.cadence import Compiled
from gnomon.domain.audit import Action
from gnomon.domain.breach import At, Breach, Invariant
from gnomon.domain.trigger import ENDED, TriggerEvent, TriggerStatus, after
from gnomon.services.verify_facts import Facts, text
from gnomon.stores.database import Row

_I = Invariant
_HELD = (TriggerStatus.PUSHED.value, TriggerStatus.ACKNOWLEDGED.value)
_STEPS = {
    Action.PUSH.value: TriggerEvent.PUSH,
    Action.TAKE_BACK.value: TriggerEvent.TAKE_BACK,
    Action.ACKNOWLEDGE.value: TriggerEvent.ACKNOWLEDGE,
    Action.FINISH.value: TriggerEvent.SUCCEED,  # or it failed: of either the same steps lead there
}


def unreadable(row: Row, error: Exception) -> Iterator[Breach]:
    """DSP-9a: a cadence that can't be computed is lawful where the job was set aside for it, or is not enabled."""
    if row["enabled"] and row["deleted_at"] is None:
        sentence = f"Job {row['id']} is enabled, and its cadence can't be computed: {error}."
        yield Breach(_I.RULE_UNREADABLE, sentence, (At("jobs", row["id"]),))


def judge(row: Row, facts: Facts) -> Iterator[Breach]:
    """Every breach that a trigger's own row shows, beside its job and its instance."""
    trigger_id, rows = row["id"], (At("triggers", row["id"]),)
    if row["job"] is None:
        yield Breach(
            _I.TRIGGER_WRONG, f"Trigger {trigger_id} is of the job {row['job_id']}, which is not there.", rows
        )
    if row["created_at"] < row["nominal_fire_at"] and not facts.jumped:
        sentence = f"Trigger {trigger_id} was made at {text(row['created_at'])}, before its slot."
        yield Breach(_I.TRIGGER_WRONG, sentence, rows)
    if row["status"] not in _HELD:
        return
    if row["instance"] is None:
        sentence = f"Trigger {trigger_id} is {row['status']} at {row['instance_id']}, which is not there."
        yield Breach(_I.TRIGGER_WRONG, sentence, rows)
    elif row["epoch"] > row["instance_epoch"]:
        sentence = (
            f"Trigger {trigger_id} is {row['status']} under epoch {row['epoch']}; {row['instance_id']} has had "
            f"{row['instance_epoch']}."
        )
        yield Breach(_I.TRIGGER_WRONG, sentence, rows)


class JobLedger:
    """The slots of one job, given its triggers in order."""

    def __init__(self, facts: Facts, row: Row, walk: Compiled) -> None:
        self._facts = facts
        self._row = row
        self._walk = walk
        self._last: int | None = None
        # what its present cadence says of the past is true of what came after all that could have changed it
        self._since = max(row["updated_at"], row["calendar_at"] or 0, facts.zone_data_at, facts.runs_before)
        self._counts = facts.zone_data and not facts.jumped

    def judge_job(self) -> Iterator[Breach]:
        """JOB-2: a next slot where there is to be one, and none that is left out before it."""
        row, following = self._row, self._row["next_fire_at"]
        if row["deleted_at"] is not None or not row["enabled"] or not self._counts:
            return
        newest = max(self._since, row["recorded_until"] or 0, row["last_recorded"] or 0)
        if following is None:
            first = self._walk.next_after(newest)
            if first is not None:
                yield self._next(f"has no next slot; one is {text(first)}")
        elif self._walk.latest_at(following) != following:
            yield self._next(f"is to fire at {text(following)}, which is no slot of its cadence")
        elif row["last_recorded"] is not None and row["last_recorded"] >= following:
            yield self._next(
                f"is to fire at {text(following)}, and {text(row['last_recorded'])} has a trigger"
            )
        else:
            yield from self._between(newest, following)

    def judge(self, trigger: Row) -> Iterator[Breach]:
        """JOB-3: nothing twice, and nothing left out between two triggers."""
        nominal = trigger["nominal_fire_at"]
        begin = nominal if trigger["coalesced_first"] is None else trigger["coalesced_first"]
        # what a clock that was ahead had left out as missed may come in its time (casebook mis-08)
        if self._last is not None and begin <= self._last and not self._facts.jumped:
            sentence = (
                f"Trigger {trigger['id']} is for slots from {text(begin)} on, and {text(self._last)} had one."
            )
            yield Breach(_I.SLOT_TRIGGERED_TWICE, sentence, (At("triggers", trigger["id"]),))
        elif self._last is not None and self._last > self._since and self._counts:
            yield from self._between(self._last, begin)
        self._last = nominal

    def _between(self, last: int, before: int) -> Iterator[Breach]:
        found = self._walk.count_between(last + 1, before) if last + 1 < before else None
        if found is not None:
            job_id = self._row["id"]
            sentence = f"{found[2]:,} slots of job {job_id} from {text(found[0])} on have no trigger."
            yield Breach(_I.JOB_SLOT_UNACCOUNTED, sentence, (At("jobs", job_id),))

    def _next(self, what: str) -> Breach:
        return Breach(
            _I.JOB_NEXT_SLOT_WRONG, f"Job {self._row['id']} {what}.", (At("jobs", self._row["id"]),)
        )


class TriggerTrail:
    """The steps that the audit tells of triggers. Feed it every entry in order."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._stands: dict[str, TriggerStatus] = {}
        self._told: set[str] = set()

    def judge(self, entry: Row) -> Iterator[Breach]:
        """JOB-4: the first step of a trigger that was not allowed where it stood."""
        event, trigger_id = _STEPS.get(entry["action"]), entry["subject_id"]
        if entry["subject_kind"] != "trigger" or event is None or trigger_id in self._told:
            return
        stood = self._stands.pop(trigger_id, TriggerStatus.PENDING)
        given_back = (
            event is TriggerEvent.TAKE_BACK and stood is TriggerStatus.PENDING
        )  # before it was pushed
        stands = stood if given_back else after(stood, event)
        if stands is None:
            if self._facts.audit_before == 0:  # else its first steps may be gone
                yield self._wrong(
                    entry, f"{entry['action']} of trigger {trigger_id}, which was {stood.value} then."
                )
        elif stands not in ENDED:
            self._stands[trigger_id] = stands
        elif entry["trigger_status"] is not None and entry["trigger_status"] not in ENDED:
            standing = entry["trigger_status"]
            yield self._wrong(entry, f"Trigger {trigger_id} has ended, says the audit, and it is {standing}.")

    def _wrong(self, entry: Row, sentence: str) -> Breach:
        self._told.add(entry["subject_id"])
        rows = (At("audit", str(entry["seq"])), At("triggers", entry["subject_id"]))
        return Breach(_I.TRIGGER_STEPS_WRONG, sentence, rows)
