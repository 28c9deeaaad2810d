"""The board: one holder for each task, fences, gates, what comes back from the silent, one task for each dedup key."""

from support.mutations import Mutant, in_query

_STORE = "tests/contract/test_tasks_store.py::"
_BESIDE = "tests/contract/test_tasks_side_by_side.py::"
_SWEEP = "tests/service/test_task_sweep.py::"
_HTTP = "tests/e2e/http/test_tasks.py::"
_PLANS = "tests/contract/test_task_plans.py::"
_CLAIMS = "services/task_claims.py"
_WRITING = "services/task_writing.py"
_SWEEPER = "services/task_sweep.py"
_ORDER = _STORE + "test_a_claim_takes_the_most_urgent_then_the_oldest_of_its_role[sqlite]"
_RENEWS = _STORE + "test_nobody_else_renews"
_RELEASES = _STORE + "test_nobody_else_releases"
_SCHEMA = "stores/migrations/0004_board.sql"

_CLAIM: tuple[Mutant, ...] = (
    in_query(
        "tasks.claim",
        "a lock that is there keeps its task from a second holder",
        "ON CONFLICT (task_id) DO NOTHING",
        "ON CONFLICT (task_id) DO UPDATE SET fence = excluded.fence",
        _STORE + "test_there_is_room_for_one_lock[sqlite]",
    ),
    Mutant(
        "there is room for one lock",
        _SCHEMA,
        "    task_id TEXT PRIMARY KEY,\n    instance_id TEXT NOT NULL,",
        "    task_id TEXT NOT NULL,\n    instance_id TEXT PRIMARY KEY,",
        _STORE + "test_there_is_room_for_one_lock[sqlite]",
    ),
    in_query(
        "tasks.claim",
        "a task that waits for another is not claimed",
        " AND unmet = 0",
        "",
        _STORE + "test_gates_open_and_close_by_one[sqlite]",
    ),
    in_query("tasks.claim", "only the backlog is claimed", " AND status = 'backlog'", "", _ORDER),
    in_query("tasks.claim", "a role claims its own", "role = :role AND ", "", _ORDER),
    in_query("tasks.claim", "the most urgent first", "ORDER BY priority DESC, id", "ORDER BY id", _ORDER),
    in_query(
        "tasks.claim",
        "a fence grows with each claim",
        "fence + 1",
        "1",
        _STORE + "test_a_fence_grows_with_each_claim_for_ever[sqlite]",
    ),
    in_query(
        "tasks.claim",
        "a claim waits for nobody",
        "FOR UPDATE SKIP LOCKED",
        "FOR UPDATE",
        _STORE + "test_a_claim_passes_over_what_is_being_claimed_and_never_waits[postgres]",
    ),
    Mutant(
        "a claim that is repeated takes nothing more",
        _CLAIMS,
        "        if standing:\n",
        "        if False:\n",
        _HTTP + "test_a_claim_is_asked_for_again_by_its_id",
    ),
    Mutant(
        "a draining instance gets nothing new",
        _CLAIMS,
        'if row["status"] == InstanceStatus.DRAINING:',
        "if False:",
        _SWEEP + "test_a_draining_instance_gets_nothing_new_and_reports_what_it_has",
    ),
)

_HOLD: tuple[Mutant, ...] = (
    in_query("tasks.renew", "renewed under its fence", " AND fence = :fence", "", _RENEWS),
    in_query("tasks.renew", "one task is renewed", "task_id = :task_id AND ", "", _RENEWS),
    in_query(
        "tasks.renew",
        "renewed by the key that claimed it",
        "claimed_by = :actor",
        "true",
        _RENEWS,
    ),
    in_query("tasks.renew", "renewed by the instance that is named", "i.name = :instance", "true", _RENEWS),
    in_query("tasks.release", "released under its fence", " AND fence = :fence", "", _RELEASES),
    in_query("tasks.release", "one task is released", "task_id = :task_id AND ", "", _RELEASES),
    in_query(
        "tasks.release",
        "released by the key that claimed it",
        "claimed_by = :actor",
        "true",
        _RELEASES,
    ),
    in_query(
        "tasks.release", "released by the instance that is named", "i.name = :instance", "true", _RELEASES
    ),
    in_query(
        "tasks.move",
        "a task moves on under its fence",
        " AND fence = :fence",
        "",
        _STORE + "test_a_task_moves_on_once_and_under_its_fence",
    ),
    in_query(
        "tasks.move",
        "a task moves on once",
        " AND status = 'in_progress'",
        "",
        _STORE + "test_a_task_moves_on_once_and_under_its_fence",
    ),
    in_query(
        "tasks.note",
        "a zombie's note is not kept",
        " AND fence = :fence",
        "",
        _STORE + "test_what_a_holder_says_in_the_middle_is_kept",
    ),
    in_query(
        "tasks.note",
        "a note comes before the end",
        " AND status = 'in_progress'",
        "",
        _STORE + "test_what_a_holder_says_in_the_middle_is_kept",
    ),
    Mutant(
        "a report that was refused is on record",
        _CLAIMS,
        '        return await _fenced(tx, held, "report", task)\n',
        '        raise await _fenced(tx, held, "report", task)\n',
        _HTTP + "test_a_report_by_who_is_not_the_holder_is_refused",
    ),
    Mutant(
        "a report is repeated only while nobody has claimed since",
        _CLAIMS,
        "task.fence == held.fence == last.fence",
        "held.fence == last.fence",
        _HTTP + "test_a_repeated_report_has_one_effect",
    ),
    Mutant(
        "another report under the same fence is none that was made before",
        _CLAIMS,
        "_said(last) == _said(form)",
        "True",
        _HTTP + "test_a_repeated_report_has_one_effect",
    ),
    in_query(
        "tasks.update",
        "a held task is not edited",
        " AND status <> 'in_progress'",
        "",
        _STORE + "test_what_is_edited_is_written_unless_somebody_holds_it",
    ),
    in_query(
        "tasks.delete",
        "a held task is not deleted",
        " AND status <> 'in_progress'",
        "",
        _STORE + "test_what_is_edited_is_written_unless_somebody_holds_it",
    ),
)

_GATES: tuple[Mutant, ...] = (
    Mutant(
        "a task that is done opens the gates behind it",
        _CLAIMS,
        "        return await tasks.open_gates(tx, task_id) > 0\n",
        "        return False\n",
        "tests/property/test_board.py",
    ),
    Mutant(
        "a task that is reopened shuts them",
        _WRITING,
        "        await tasks.close_gates(tx, task_id)\n",
        "        pass\n",
        _HTTP + "test_a_prerequisite_that_is_reopened_closes_the_gate_again",
    ),
    in_query(
        "tasks.statuses",
        "whoever writes a need holds what is needed",
        "FOR SHARE",
        "",
        _BESIDE + "test_a_need_written_while_it_is_met_leaves_no_gate_shut[postgres]",
    ),
    in_query(
        "tasks.hold_needs",
        "the second of two halves of a cycle sees the first",
        "LOCK TABLE task_prerequisites IN SHARE ROW EXCLUSIVE MODE",
        "SELECT 1",
        _BESIDE + "test_two_parts_of_a_longer_cycle_do_not_meet[postgres]",
    ),
    Mutant(
        "a cycle is refused",
        _WRITING,
        "    if cycle is not None:\n",
        "    if False:\n",
        _HTTP + "test_a_cycle_is_refused_by_its_name",
    ),
    Mutant(
        "what others need is not deleted",
        _WRITING,
        "    if needing:\n",
        "    if False:\n",
        _HTTP + "test_what_waits_says_for_what",
    ),
)

_SILENT: tuple[Mutant, ...] = (
    in_query(
        "tasks.expired",
        "only a window that is over is taken",
        "(l.expires_at <= now_us() AND (",
        "(true AND (",
        _STORE + "test_a_window_that_is_over_is_seen_with_its_reason",
    ),
    in_query(
        "tasks.expired",
        "only the silent lose what they hold",
        "i.last_heartbeat_at <= now_us() - :timeout_us",
        "true",
        _STORE + "test_a_silent_holder_is_seen_although_its_window_is_open",
    ),
    in_query(
        "tasks.expired",
        "after a jump no window is over",
        "l.expires_at - l.renewed_at < :calm_us",
        "true",
        _STORE + "test_after_a_jump_nothing_is_taken_for_the_length_of_a_window",
    ),
    in_query(
        "tasks.expired",
        "after a jump nobody is silent",
        ":timeout_us < :calm_us",
        "true",
        _STORE + "test_after_a_jump_nothing_is_taken_for_the_length_of_a_window",
    ),
    in_query(
        "tasks.expire",
        "what was renewed since it was seen stays",
        "(task_id, fence, expires_at) IN (SELECT :task_id, :fence, :expires_at FROM @rows)",
        "(task_id, fence) IN (SELECT :task_id, :fence FROM @rows)",
        _STORE + "test_what_was_renewed_or_claimed_anew_since_it_was_seen_stays",
    ),
    in_query(
        "tasks.expire",
        "what was claimed anew since it was seen stays",
        "(task_id, fence, expires_at) IN (SELECT :task_id, :fence, :expires_at FROM @rows)",
        "(task_id, expires_at) IN (SELECT :task_id, :expires_at FROM @rows)",
        _STORE + "test_what_was_renewed_or_claimed_anew_since_it_was_seen_stays",
    ),
    in_query(
        "tasks.put_back",
        "what comes back is marked",
        "half_done = 1, ",
        "",
        _STORE + "test_what_is_taken_goes_back_to_the_backlog_possibly_half_done",
    ),
    Mutant(
        "the sweep of the board asks for calm",
        _SWEEPER,
        "rows = await tasks.expired(tx, self._timeout_us, self._calm_us(), BATCH)",
        "rows = await tasks.expired(tx, self._timeout_us, None, BATCH)",
        _SWEEP + "test_after_a_jump_each_window_gets_its_own_length",
    ),
    Mutant(
        "the clock is looked at again after the rows of the board were read",
        _SWEEPER,
        "        if await self._jumped(tx):\n            return _Batch()\n",
        "",
        _SWEEP + "test_a_sweep_that_stood_still_after_its_look_takes_nothing",
    ),
)

_KEYS: tuple[Mutant, ...] = (
    in_query(
        "tasks.insert",
        "of two with one dedup key one is made",
        "ON CONFLICT (dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING",
        "",
        _STORE + "test_a_dedup_key_is_taken_once[sqlite]",
    ),
    Mutant(
        "a dedup key makes one task and no other",
        _WRITING,
        "    if mark != _mark(draft):\n",
        "    if False:\n",
        _HTTP + "test_a_dedup_key_makes_one_task",
    ),
)

MUTANTS = (*_CLAIM, *_HOLD, *_GATES, *_SILENT, *_KEYS)
