"""What keeps a process from acting on a run that is no longer its own: fences of its own clock, doubts, the guard."""

from support.mutations import Mutant

_RUNNER = "tests/service/test_runner.py::"
_WATCHDOG = "tests/service/test_watchdog.py::"
_FOUND = "tests/service/test_found_by_simulation.py::"
_CHAOS = "tests/service/test_found_by_chaos.py::"
_ENDINGS = "tests/service/test_endings_hold_nobody_up.py::"
_LATE = "tests/service/test_answers_that_come_late.py::"
_AGENDA = "tests/service/test_agenda.py::"
_RENEWAL = "services/renewal.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a run that was taken away is stopped at the next heartbeat",
        _RENEWAL,
        "elif (hold.run_id, hold.fence) not in held and not hold.closing:",
        "elif False and not hold.closing:",
        _RUNNER + "test_a_run_that_was_taken_away_is_stopped_at_the_next_heartbeat",
    ),
    Mutant(
        "a close under way is no loss",
        _RENEWAL,
        "not in held and not hold.closing:",
        "not in held:",
        _RUNNER + "test_a_renewal_that_meets_a_close_reports_no_loss",
    ),
    Mutant(
        "self-fencing by the monotonic clock",
        _RENEWAL,
        "lost = [hold for hold in self._holds.values() if now >= self._ends_at(hold)]",
        "lost = [hold for hold in self._holds.values() if now < 0]",
        _RUNNER + "test_a_runner_that_cannot_renew_stops_before_its_lease_ends",
    ),
    Mutant(
        "no lock keeps the fencing waiting",
        _RENEWAL,
        "self._database.direct(min(self._margin, _PATIENCE_SECONDS))",
        "self._database.direct()",
        "tests/service/test_sqlite_database_waits.py::"
        "test_a_heartbeat_that_waits_for_the_lock_still_gives_up_in_time",
    ),
    Mutant(
        "a process that stood still trusts none of its old claims",
        _RENEWAL,
        "        if hold.sent_at < self._whole_since:\n            return hold.sent_at\n",
        "",
        _FOUND + "test_a_claim_from_before_a_standstill_sends_nothing_after_it",
    ),
    Mutant(
        "the own clock is asked before anything is sent",
        "services/attempt.py",
        "if work.stopping is not None or not self._renewal.holds(grant.run_id):",
        "if work.stopping is not None:",
        _RUNNER + "test_a_frozen_process_sends_nothing_when_it_wakes",
    ),
    Mutant(
        "the heartbeat that tells of a new clock brings the leases to it",
        _RENEWAL,
        "renewing = known if was_set else due",
        "renewing = due",
        "tests/service/test_watchdog.py::test_a_process_that_is_born_after_a_jump_takes_nothing_from_the_living",
    ),
    Mutant(
        "a process that stops claims nothing more of a backlog",
        "services/engine.py",
        "not self._draining and self.renewal.alive()",
        "self.renewal.alive()",
        "tests/service/test_dispatcher_meanwhile.py::test_a_process_that_stops_leaves_the_rest_of_a_long_list_alone",
    ),
    Mutant(
        "a claim whose answer was lost is asked for",
        "services/dispatcher.py",
        "            self.lost_claims.doubt(claim.id, error)\n",
        "",
        _FOUND + "test_a_slot_s_claim_whose_answer_was_lost_is_asked_for",
    ),
    Mutant(
        "a claim in doubt is asked for although no slot lies ahead",
        "services/engine.py",
        "ahead.now if self.dispatcher.lost_claims.any else next_slot(ahead)",
        "next_slot(ahead)",
        _AGENDA + "test_a_claim_in_doubt_is_looked_after_although_nothing_lies_ahead[dispatch]",
    ),
    Mutant(
        "a claim in doubt is asked for although no run lies ahead",
        "services/engine.py",
        "ahead.now if self.runner.lost_claims.any else next_run(ahead)",
        "next_run(ahead)",
        _AGENDA + "test_a_claim_in_doubt_is_looked_after_although_nothing_lies_ahead[run]",
    ),
    Mutant(
        "a tick that failed is made again, whatever lies ahead",
        "services/loop.py",
        '                self._wanted_at = float("-inf")\n',
        "",
        _AGENDA + "test_a_loop_whose_tick_failed_ticks_again",
    ),
    Mutant(
        "a clock that was set is read at once",
        "services/renewal.py",
        " and not was_set",
        "",
        "tests/service/test_resting.py::test_a_clock_that_was_set_is_read_at_once[600]",
    ),
    Mutant(
        "whoever takes a run beats at once where it has rested",
        "services/renewal.py",
        "self._every if holds else self._resting_every",
        "self._resting_every",
        "tests/service/test_resting.py::test_whoever_takes_a_run_beats_at_once_where_it_has_rested",
    ),
    Mutant(
        "a claim that is not there yet is asked for again",
        "services/lost_claims.py",
        "            if taken or over:\n                del",
        "            if True:\n                del",
        _LATE + "test_a_claim_that_lands_after_it_was_asked_for_is_asked_for_again",
    ),
    Mutant(
        "an end that landed late is not told as fenced off",
        "services/ending.py",
        "    before = await _landed_before(tx, left)\n",
        "    before: frozenset[str] = frozenset()\n",
        _LATE + "test_an_end_that_lands_while_it_is_repeated_is_not_told_as_another_s",
    ),
    Mutant(
        "a close whose answer was lost is read back",
        "services/closing.py",
        "close_in_doubt if doubtful else close",
        "close",
        _FOUND + "test_a_close_whose_answer_was_lost_is_read_back_before_it_is_decided",
    ),
    Mutant(
        "after a jump nothing that looks expired is taken",
        "services/watchdog.py",
        "await runs.expired(tx, self._heartbeat_timeout_us, self._guard.calm_us(), BATCH)",
        "await runs.expired(tx, self._heartbeat_timeout_us, None, BATCH)",
        _WATCHDOG + "test_a_jump_of_the_clock_takes_nothing_for_the_length_of_a_lease",
    ),
    Mutant(
        "the clock is looked at again after the rows were read",
        "services/watchdog.py",
        "        if await self.ask_guard(tx):\n            return Swept(), 0\n",
        "",
        _FOUND + "test_a_sweep_that_stood_still_after_its_look_takes_nothing",
    ),
    Mutant(
        "a process that was born after a jump reads the heartbeats of those who were there",
        "services/watchdog.py",
        "self._guard.observe(now, readings)",
        "self._guard.observe(now)",
        _WATCHDOG + "test_a_process_born_right_after_a_jump_takes_nothing",
    ),
    Mutant(
        "a heartbeat written between two jumps betrays them",
        "services/clock_guard.py",
        "            elif self._jumped_at is None or at > self._jumped_at:\n",
        "            elif False:\n",
        _WATCHDOG + "test_two_jumps_that_undo_each_other_between_two_sweeps_take_nothing",
    ),
    Mutant(
        "every heartbeat looks at the clock",
        "services/renewal.py",
        "            self._on_beat(beat_at, asked_at)\n",
        "            pass\n",
        _WATCHDOG + "test_a_jump_back_and_forth_between_two_sweeps_is_seen_by_the_heartbeats",
    ),
    Mutant(
        "a run that kills whoever works on it is not resumed for ever",
        "services/watchdog.py",
        'row["attempt"] < row["max_attempts"] + RESUMES',
        'row["attempt"] >= 0',
        _WATCHDOG + "test_a_run_that_kills_whoever_works_on_it_is_not_resumed_for_ever",
    ),
    Mutant(
        "what a process gave up is written down by its own sweep",
        "services/watchdog.py",
        "self._tell(await self._give_up(abandoned) + await self.sweep())",
        "self._tell(await self.sweep())",
        _CHAOS + "test_what_a_process_gave_up_is_free_at_its_own_next_sweep",
    ),
    Mutant(
        "what was given up is left alone until others could take it",
        _RENEWAL,
        "self._abandoned[hold.run_id, hold.fence] = now + self._margin",
        "self._abandoned[hold.run_id, hold.fence] = now",
        _CHAOS + "test_what_a_process_gave_up_is_free_at_its_own_next_sweep",
    ),
    Mutant(
        "a run whose end is being written is not given up",
        _RENEWAL,
        "                if not hold.closing:  # its end is known, and is still being written\n",
        "                if hold:\n",
        _CHAOS + "test_a_run_whose_end_is_being_written_is_not_given_up",
    ),
    Mutant(
        "the note of what was given up carries the fence",
        "services/watchdog.py",
        'if (row["id"], row["fence"]) in abandoned',
        "if abandoned",
        _CHAOS + "test_only_what_was_given_up_under_this_fence_is_taken",
    ),
    Mutant(
        "a give-back that failed is made up for",
        "services/runner.py",
        "            self.lost_claims.left(*held[0])\n",
        "",
        _CHAOS + "test_a_give_back_that_fails_is_made_up_for",
    ),
    Mutant(
        "nobody takes more than an even part while another waits",
        "services/places.py",
        "if not any(each.waits for each in self._shares if each is not share):",
        "if share:",
        "tests/service/test_tenants_share.py::"
        "test_a_long_queue_delays_another_s_single_run_by_no_more_than_what_is_in_work",
    ),
    Mutant(
        "no more ends wait for their write beside the work than there are places",
        "services/places.py",
        "return max(0, self.endings - self._places.limit)",
        "return 0",
        _ENDINGS + "test_no_more_ends_pile_up_than_there_are_places",
    ),
    Mutant(
        "a target that ignores its cancel keeps its place",
        "services/runner.py",
        "            if target_is_over:\n",
        "            if ending:\n",
        _ENDINGS + "test_a_target_that_ignores_its_cancel_keeps_its_place_until_its_end_is_written",
    ),
    Mutant(
        "an end gives its place back once, also where its run is back already",
        "services/runner.py",
        "        self._leave(self._works.put_in(works))\n",
        "        self._share.give_back(len(self._works.put_in(works)))\n",
        _ENDINGS + "test_a_run_that_comes_back_before_its_old_end_is_told_takes_one_place",
    ),
    Mutant(
        "a drain waits for ends that have no place any more",
        "services/runner.py",
        "                self._share.end()\n",
        "                self._share.end()\n                self._idle.set()\n",
        _ENDINGS + "test_a_drain_waits_until_the_last_end_is_written",
    ),
    Mutant(
        "a queue that can't be reached holds no place back",
        "services/runner.py",
        """            except Unavailable:
                self._share.wait_no_more()
                raise""",
        """            except Unavailable:
                raise""",
        "tests/service/test_tenants_share.py::test_a_tenant_whose_database_is_gone_holds_no_place_back",
    ),
    Mutant(
        "a lease is kept by the heartbeat however long the work takes",
        "services/renewal.py",
        "due = [hold for hold in known if now >= hold.sent_at + min(hold.lease_seconds / 3, 3_600)]",
        "due: list[Hold] = []",
        "tests/service/test_casebook_runs.py"
        "::test_a_lease_that_is_too_short_for_the_work_is_kept_by_the_heartbeat_lea_01",
    ),
    Mutant(
        "the heartbeat outlives the drain",
        "services/engine.py",
        "        if self.works and self._loop is not None:\n            await self.runner.drain",
        "        await self.renewal.stop()\n        if self.works and self._loop is not None:\n"
        "            await self.runner.drain",
        "tests/service/test_casebook_runs.py::test_the_heartbeat_goes_on_until_the_last_run_has_ended_shu_01",
    ),
    Mutant(
        "a backoff is counted on the clock that the claim goes by",
        "services/ending.py",
        "at = now + ending.retry_in_us",
        "at = now // 10**15 + ending.retry_in_us",
        _CHAOS + "test_a_backoff_is_counted_on_the_database_s_clock",
    ),
)
