"""Connections and pushes: epochs, fences, and the one free place that two look at."""

from support.mutations import Mutant, in_query, without

_STORE = "tests/contract/test_instances_store.py::"
_PUSHES = "tests/contract/test_pushes_store.py::"
_PUSHING = "tests/service/test_pushing.py::"
_INSTANCES = "tests/service/test_instances.py::"
_SOCKET = "tests/unit/edges/test_socket.py::"

MUTANTS: tuple[Mutant, ...] = (
    without(
        "instances.gone",
        "epoch = :epoch",
        _STORE + "test_the_end_of_an_old_connection_takes_nothing_from_the_new",
    ),
    in_query(
        "instances.gone",
        "server = :server",
        "id = :id AND server = :server AND epoch = :epoch",
        "id = :id AND :server IS NOT NULL AND epoch = :epoch",
        _STORE + "test_the_end_of_an_old_connection_takes_nothing_from_the_new",
    ),
    in_query(
        "instances.connect",
        "each connection raises the epoch",
        "epoch = instances.epoch + 1,",
        "epoch = instances.epoch,",
        _STORE + "test_whoever_comes_again_is_the_same_instance",
    ),
    in_query(
        "instances.beat",
        "a replaced connection is not heard any more",
        "id = :id AND epoch = :epoch AND server = :server",
        "id = :id AND (epoch = :epoch OR server = :server)",
        _STORE + "test_a_replaced_connection_is_not_heard_any_more",
    ),
    in_query(
        "instances.place",
        "room, counted by the statement that takes the place",
        "max_in_flight > (",
        "max_in_flight >= (",
        _STORE + "test_a_place_that_was_taken_meanwhile_is_not_taken_again",
    ),
    Mutant(
        "the place is taken in the transaction that looks for it",
        "services/pushing.py",
        "        elif await pushes.give(tx, key, *taken):\n",
        "        elif True:\n",
        _PUSHING + "test_a_run_is_done_by_an_instance",
    ),
    without(
        "instances.mark_offline",
        "last_heartbeat_at <= now_us() - :timeout_us",
        _STORE + "test_only_who_is_silent_for_the_timeout_is_marked_offline",
    ),
    in_query(
        "pushes.answer",
        "the fence of a result",
        "fence = :fence AND instance_id",
        "fence <= :fence AND instance_id",
        _PUSHES + "test_another_s_word_changes_nothing",
    ),
    in_query(
        "pushes.answer",
        "a result is its instance's",
        "AND instance_id = :instance_id",
        "AND :instance_id IS NOT NULL",
        _PUSHES + "test_another_s_word_changes_nothing",
    ),
    in_query(
        "pushes.acknowledge",
        "the fence of an acknowledgement",
        "fence = :fence AND instance_id",
        "fence <= :fence AND instance_id",
        _PUSHES + "test_another_s_word_changes_nothing",
    ),
    in_query(
        "pushes.push",
        "a push is sent once over a connection",
        " AND status = 'pending'",
        "",
        _PUSHES + "test_a_push_goes_its_way",
    ),
    in_query(
        "pushes.release",
        "what was acknowledged goes to nobody else",
        "IN ('pending', 'pushed')",
        "IN ('pending', 'pushed', 'acknowledged')",
        _PUSHES + "test_only_what_was_not_acknowledged_goes_to_another",
    ),
    in_query(
        "pushes.release",
        "what a newer connection has stays there",
        " AND epoch <= :epoch",
        " AND :epoch >= 0",
        _PUSHES + "test_only_what_was_not_acknowledged_goes_to_another",
    ),
    Mutant(
        "the newest connection stays held",
        "services/connections.py",
        "if standing is None or standing.speaker.epoch != speaker.epoch:\n            return False\n        del",
        "if standing is None:\n            return False\n        del",
        "tests/service/test_connections.py::test_a_newer_connection_takes_the_place_of_the_old",
    ),
    Mutant(
        "an older connection that comes late is not taken",
        "services/connections.py",
        "        if standing is not None and standing.speaker.epoch >= speaker.epoch:\n            return False\n",
        "",
        "tests/service/test_connections.py::test_an_older_connection_that_comes_late_is_not_taken",
    ),
    Mutant(
        "no push is sent to a connection that is not held",
        "services/delivery.py",
        "return self._push.holds(instance_id, epoch) and (instance_id, epoch) not in self._closing",
        "return True",
        _PUSHING + "test_nothing_is_sent_before_the_connection_is_held",
    ),
    Mutant(
        "a bare id may be that of an earlier attempt",
        "services/instances.py",
        "(key.wire_id, None) in named and status is PushStatus.ACKNOWLEDGED",
        "(key.wire_id, None) in named",
        _INSTANCES + "test_a_reconnecting_instance_says_what_it_still_works_on",
    ),
    Mutant(
        "a restarted instance's lost work fails",
        "services/instances.py",
        "    await pushes.lose(tx, speaker.instance_id, speaker.epoch - 1, RESTARTED)\n",
        "",
        _INSTANCES + "test_a_reconnecting_instance_says_what_it_still_works_on",
    ),
    Mutant(
        "nothing overtakes what is queued",
        "edges/ws/socket.py",
        "if not self._queue and self._writing_since",
        "if self._writing_since",
        _SOCKET + "test_nothing_overtakes_what_is_queued",
    ),
    Mutant(
        "nothing overtakes what is under way",
        "edges/ws/socket.py",
        "if not self._queue and self._writing_since is None and",
        "if not self._queue and",
        _SOCKET + "test_nothing_overtakes_what_is_under_way",
    ),
)
