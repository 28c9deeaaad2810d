"""The jobs of a database that has lived: every way in which a trigger ends, and those that are on their way."""

from support.house import House
from support.job_world import CALLER, Server


async def live(house: House) -> None:
    """Triggers of the job ``pushed``: done, failed, passed on, lost, missed, coalesced, in work, waiting."""
    server = await Server(house.database, house.clock, house.mint).open()
    await server.job(slug="pushed", role="live")

    async def slot(seconds: float = 300) -> None:
        house.clock.advance(seconds)
        await server.tick()

    first = await server.connect("a", role="live", room=2)
    await slot()
    await first.acknowledge()
    await first.finish()
    await slot()
    await first.finish(status="failed", note="no disk")
    await slot()
    second = await server.connect("b", role="live", room=2)
    await first.end()
    await server.engine.delivery.tick()
    await server.tick()
    await second.acknowledge()
    await second.end()
    await server.engine.delivery.tick()
    house.clock.advance(120)
    await server.engine.sweep.tick()
    await slot(180)
    await slot(150)  # nobody came
    third = await server.connect("a", role="live", room=2)
    await slot(3_500)
    await third.finish()
    await server.jobs.edit(CALLER, "pushed", {"payload": {"n": 2}})
    await slot()
    back = await server.connect("a", role="live", room=2, in_flight=[third.pushes[-1]["trigger_id"]])
    await server.job(slug="off", role="live", enabled=False)
    await server.jobs.delete(CALLER, (await server.job(slug="deleted", role="live")).id)
    await slot()
    await back.acknowledge()
    await slot()
