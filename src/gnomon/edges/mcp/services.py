"""What the tools stand on: the services that they call, built by ``wiring`` and named here once."""

from dataclasses import dataclass

from gnomon.services.api_keys import ApiKeys
from gnomon.services.explain import Explain
from gnomon.services.overview import Overview
from gnomon.services.pausing import Pausing
from gnomon.services.previews import Previews
from gnomon.services.questions import Questions
from gnomon.services.run_now import RunNow
from gnomon.services.runs import Runs
from gnomon.services.schedules import Schedules
from gnomon.services.tasks import Tasks


@dataclass(frozen=True, slots=True)
class Services:
    """The services, one for each noun."""

    api_keys: ApiKeys
    previews: Previews
    schedules: Schedules
    pausing: Pausing
    run_now: RunNow
    runs: Runs
    explain: Explain
    tasks: Tasks
    overview: Overview
    questions: Questions
