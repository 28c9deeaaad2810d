"""The worlds of chaos themselves: what a scenario builds on is there, however slow the machine is."""

import pytest

from support.chaos_target import lines
from support.chaos_world import World

pytestmark = [pytest.mark.process, pytest.mark.timeout(150)]


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_schedules_that_came_too_late_for_their_slots_get_later_ones(world: World) -> None:
    """As on a machine on which writing them takes longer than what they were ahead."""
    world.start("")
    world.furnish(count=3, slots=1, ahead=-4.0, query="0")
    world.settle()
    assert sum(line["begins"] for line in lines(world.folder)) == 3
