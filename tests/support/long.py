"""What ``make test`` leaves to ``make long`` and ``make chaos``, so that it stays under ten minutes on two cores.

Each is the whole of something of which a part is in the suite: pages whose blocks are commands, faults on the second
engine, starts and ends of real processes beyond the first of their kind.
"""

LONG = (
    *(
        f"tests/docs/test_examples.py::test_what_a_page_says_works[docs/guide/{page}.md]"
        for page in (
            "agents",
            "board",
            "idempotency",
            "instances",
            "jobs",
            "mcp",
            "postgresql",
            "schedules",
            "security",
            "teams",
            "verify",
            "workers",
        )
    ),
    "tests/arch/test_mutants.py::test_a_sample_of_them_goes_red",
    "tests/chaos/test_failover.py",
    "tests/chaos/test_board.py::test_every_task_is_done_once_whoever_dies[postgres]",
    "tests/chaos/test_moments.py::test_a_file_that_can_t_grow_loses_nothing",
    "tests/chaos/test_moments.py::test_kills_and_stops_at_random_moments[0-sqlite]",
    "tests/chaos/test_failpoints.py::test_a_process_killed_at_any_step_doubles_and_loses_nothing[invoke.answered",
    "tests/chaos/test_failpoints.py::test_a_process_that_stands_still_at_any_step_comes_back_harmless[close.sent-sqlite]",
    "tests/chaos/test_failpoints.py::test_failures_and_delays_at_random_steps_change_nothing[0-sqlite]",
    "tests/chaos/test_crowd.py::test_a_crowd_of_processes_doubles_and_loses_nothing_however_many_are_killed[sqlite]",
    "tests/chaos/test_chaos.py::test_a_stop_in_the_middle_of_fifty_runs_ends_in_its_grace",
    "tests/e2e/postgres/test_hard_life.py",
    "tests/e2e/postgres/test_starts.py::test_a_schema_that",
    "tests/e2e/postgres/test_starts.py::test_a_server_that_does_not_let_us_in_is_one_message",
    "tests/e2e/postgres/test_starts.py::test_commands_work_on_the_schema_that_is_named_and_on_no_other",
    "tests/e2e/postgres/test_up.py::test_a_second_up_in_the_same_folder",
    "tests/e2e/postgres/test_up.py::test_two_processes_on_one_schema",
    "tests/e2e/client/test_instance.py::test_an_instance_that_is_given_up_stops_its_run",
    "tests/e2e/client/test_work_pushed.py::test_a_killed_worker_takes_its_run_and_its_process_with_it",
    "tests/e2e/client/test_work.py::test_bad_usage_and_nobody_there",
    "tests/e2e/client/test_board.py::test_a_coroutine_that_blocks_does_not_starve_the_renewal",
    "tests/e2e/mcp/test_processes.py::test_an_agent_on_this_machine_works_over_pipes",
    "tests/e2e/mcp/test_processes.py::test_two_agents_over_pipes_and_one_over_a_socket_share_the_work",
    "tests/e2e/mcp/test_processes.py::test_standard_output_carries_the_protocol_and_nothing_else",
    "tests/e2e/mcp/test_processes.py::test_it_hands_on_to_a_server_that_is_named",
    "tests/e2e/mcp/test_processes.py::test_a_bad_key_is_told_before_a_client_waits",
    "tests/e2e/mcp/test_processes.py::test_a_stop_ends_the_wait_of_an_agent_with_an_answer",
    "tests/e2e/cli/test_doctor.py::test_a_server_is_asked_as_well",
    "tests/e2e/cli/test_doctor.py::test_what_is_meant_to_be_so_can_be_left_out",
    "tests/e2e/cli/test_doctor.py::test_where_nothing_is_found_it_ends_well",
    "tests/e2e/cli/test_verify.py",
    "tests/e2e/cli/test_crontab.py::test_a_crontab_is_planned_made_and_made_again",
    "tests/e2e/cli/test_processes.py::test_the_demo_can_be_repeated_and_doubles_nothing",
    "tests/e2e/cli/test_processes.py::test_an_export_of_nothing_can_be_applied_too",
    "tests/e2e/cli/test_processes.py::test_a_run_that_outlasts_the_grace_is_left_to_its_lease",
    "tests/e2e/test_jobs.py::test_what_was_acknowledged_is_not_repeated_when_its_instance_is_killed[postgres]",
    "tests/e2e/test_once.py::test_of_many_at_once_at_two_servers_one_takes_effect[postgres]",
)
