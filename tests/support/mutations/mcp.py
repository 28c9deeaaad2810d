"""Guards of the tools for agents: who may call what, and what a repeat does not do twice."""

from support.mutations import Mutant

_DOOR = "tests/e2e/mcp/test_door.py::"
_WORKING = "tests/e2e/mcp/test_working.py::"

MUTANTS = (
    Mutant(
        "what an agent does not see it can't call",
        "edges/mcp/tool.py",
        "            seat.caller.require(self.scope)\n",
        "            pass\n",
        "tests/e2e/mcp/test_catalogue.py::test_each_call_is_judged_again_with_every_scope_but_its_own",
    ),
    Mutant(
        "an agent sees what its scopes cover",
        "edges/mcp/server.py",
        " if tool.may_be_called_by(caller)]",
        "]",
        "tests/e2e/mcp/test_catalogue.py::test_an_agent_sees_the_tools_that_its_key_covers",
    ),
    Mutant(
        "a key that is bound to a target has no tools",
        "edges/mcp/door.py",
        "            raise caller.bound()\n",
        "            pass\n",
        _DOOR + "test_a_key_that_is_bound_to_a_target_has_no_tools",
    ),
    Mutant(
        "a page that was led here under a false name is turned away",
        "edges/origin.py",
        ' and _name(f"//{host}") in _LOOPBACK',
        "",
        _DOOR + "test_pages_of_other_sites_are_turned_away",
    ),
    Mutant(
        "a wish to run now is granted once",
        "edges/mcp/schedules.py",
        "        once=_once(seat, asked),\n",
        "",
        "tests/e2e/mcp/test_watching.py::test_run_now_starts_one_run_however_often_it_is_asked",
    ),
    Mutant(
        "a question is put once under a claim",
        "services/questions.py",
        'dedup_key=f"question:{task.id}:{fence}",',
        "dedup_key=None,",
        _WORKING + "test_a_person_is_asked_and_the_answer_comes_with_the_task",
    ),
    Mutant(
        "who holds the task no more asks nobody in its name",
        "services/questions.py",
        "        if isinstance(done, FenceStale):\n            return done\n",
        "        if isinstance(done, FenceStale):\n            done = task_claims.Reported(await task_claims.there(tx, held.task_id))\n",
        _WORKING + "test_a_foreign_fence_is_refused_with_what_to_do",
    ),
    Mutant(
        "whoever hung up is given no task",
        "edges/mcp/work.py",
        "services.tasks.claim(seat.caller, wish, is_gone=seat.is_gone)",
        "services.tasks.claim(seat.caller, wish)",
        "tests/e2e/mcp/test_processes.py::test_nothing_is_claimed_for_an_agent_that_hung_up",
    ),
)
