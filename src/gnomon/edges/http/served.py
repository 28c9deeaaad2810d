"""How a route comes by the services: they stand in the state of the application that a request came to."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from gnomon.edges.http.services import Services


async def services_of(request: Request) -> Services:
    """The services of the application that this request came to."""
    found: Services = request.app.state.services
    return found


Served = Annotated[Services, Depends(services_of)]
