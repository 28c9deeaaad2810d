"""What keeps a worker from doing twice, and from doing what is not its own any more: its lease, its pushes, its repeats."""

from support.mutations import Mutant

_UNIT = "tests/unit/client/"
_LEASE = _UNIT + "test_lease.py::"
_CALLS = _UNIT + "test_calls.py::"
_FLOWS = _UNIT + "test_flows.py::"
_SESSION = _UNIT + "test_session.py::"
_BOARD = "tests/e2e/client/test_board.py::"
_INSTANCE = "tests/e2e/client/test_instance.py::"
_WORK = "tests/e2e/client/test_work.py::"
_PUSHED = "tests/e2e/client/test_work_pushed.py::"
_CLIENT = "client/session.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a worker's lease ends before the server's",
        "client/lease.py",
        "return self.granted_at + self.window_seconds - self.margin_seconds",
        "return self.granted_at + self.window_seconds + self.margin_seconds",
        _LEASE + "test_it_ends_here_before_it_ends_there",
    ),
    Mutant(
        "a machine that slept looks at its clock",
        "client/lease.py",
        "return min(max(0.0, min(self.renew_at, self.ends_at) - now), _LONGEST_WAIT)",
        "return max(0.0, min(self.renew_at, self.ends_at) - now)",
        _LEASE + "test_nobody_waits_past_a_look_at_the_clock",
    ),
    Mutant(
        "a renewal that hangs does not hide the end of the lease",
        "client/lease.py",
        "min(10.0, (self.ends_at - now) / 4)",
        "10.0",
        _LEASE + "test_a_request_that_hangs_does_not_hide_the_end",
    ),
    Mutant(
        "a lease begins when it was first asked for",
        "client/calls.py",
        "return Answer(outcome.status, outcome.body, outcome.headers, self._started_at, self._doubtful)",
        "return Answer(outcome.status, outcome.body, outcome.headers, self._ends_at, self._doubtful)",
        _CALLS + "test_the_end_is_an_answer_that_began_with_the_first_try",
    ),
    Mutant(
        "a request that may have landed is repeated under a key alone",
        "client/calls.py",
        "return self._call.is_repeatable or not outcome.sent",
        "return True",
        _CALLS + "test_what_may_have_taken_effect_is_sent_again_only_where_that_is_safe",
    ),
    Mutant(
        "all repeats of a request have one key",
        "client/calls.py",
        'return Call("POST", path, body, key=key, headers={"Idempotency-Key": key})',
        'return Call("POST", path, body, key=key, headers={"Idempotency-Key": new_key()})',
        _CALLS + "test_every_post_has_a_key_of_its_own_and_keeps_it",
    ),
    Mutant(
        "a task that was waited for is renewed before it is handed out",
        "client/flows.py",
        "        if wait_seconds:",
        "        if False:",
        _FLOWS + "test_a_claim_that_was_waited_for_is_renewed_before_it_is_handed_out",
    ),
    Mutant(
        "a report whose answer was lost is looked up",
        "client/flows.py",
        "if board.in_doubt(error):",
        "if False:",
        _FLOWS + "test_a_report_whose_answer_was_lost_is_looked_up",
    ),
    Mutant(
        "only the server's own refusal ends a lease",
        "client/board.py",
        "return refusal.status in _GONE and bool(refusal.code)",
        "return True",
        _FLOWS + "test_only_a_refusal_of_the_server_itself_ends_a_lease",
    ),
    Mutant(
        "a lease that was taken away is lost at the next renewal",
        "client/renewing.py",
        "self._lost = LeaseLost(self._claim.task_id, refusal.detail, refusal)",
        "pass",
        _BOARD + "test_a_lease_that_was_taken_is_raised",
    ),
    Mutant(
        "a lost lease cancels the body",
        "client/held.py",
        '            self._body.cancel("the lease of its task is lost")\n',
        "",
        _BOARD + "test_a_lease_that_was_taken_cancels_the_body",
    ),
    Mutant(
        "a push is acknowledged before it is begun",
        _CLIENT,
        "return [*ended, Send(ack), Start(work)]",
        "return [*ended, Start(work), Send(ack)]",
        _SESSION + "test_a_push_is_acknowledged_before_it_is_begun",
    ),
    Mutant(
        "a push that is known is not begun again",
        _CLIENT,
        "if known is not None and known.fence == work.fence:",
        "if False:",
        _SESSION + "test_a_push_that_is_known_is_not_begun_again",
    ),
    Mutant(
        "a push that was answered is not begun again",
        _CLIENT,
        "if answered is not None and answered.fence == work.fence:",
        "if False:",
        _SESSION + "test_a_push_that_was_answered_is_answered_again",
    ),
    Mutant(
        "a push that was overtaken begins nothing",
        _CLIENT,
        "if work.fence is not None and work.fence < latest:",
        "if False:",
        _SESSION + "test_the_next_attempt_of_a_run_takes_its_place",
    ),
    Mutant(
        "of work that was taken away nothing is told",
        _CLIENT,
        "        if why is Stop.REVOKED:\n            del self._works[work.key]\n",
        "",
        _SESSION + "test_a_revoke_stops_the_work_and_nothing_is_told",
    ),
    Mutant(
        "an instance that was given up stops its runs",
        _CLIENT,
        "return [End(work, Stop.REVOKED) for work in runs]",
        "return []",
        _SESSION + "test_an_instance_that_was_given_up_stops_its_runs_and_no_trigger",
    ),
    Mutant(
        "an acknowledgement that was cut off begins nothing",
        "client/line.py",
        "                if isinstance(deed, Start):\n                    self._session.unsent(deed.work)\n",
        "                pass\n",
        _UNIT + "test_line.py::test_an_acknowledgement_that_was_cut_off_begins_nothing_and_is_forgotten",
    ),
    Mutant(
        "two instances of one name do not take turns",
        "client/line.py",
        "if code == REPLACED:",
        "if False:",
        _INSTANCE + "test_two_of_one_name_do_not_take_turns",
    ),
    Mutant(
        "a centre from which nothing comes is left",
        "client/line.py",
        "ping_interval=PING_SECONDS,",
        "ping_interval=None,",
        "tests/unit/client/test_line.py::test_a_centre_from_which_nothing_comes_is_left_for_another_connection_ws_04",
    ),
    Mutant(
        "a worker's command gets no key",
        "cli/work/asked.py",
        "if not name.upper().startswith(OURS)",
        "if True",
        _WORK + "test_a_command_gets_the_workers_environment_but_no_key",
    ),
    Mutant(
        "a push takes its room from a claim that waits",
        "cli/work/worker.py",
        "        self._crowded.set()\n",
        "",
        _PUSHED + "test_no_task_is_claimed_while_pushes_fill_the_worker",
    ),
)
