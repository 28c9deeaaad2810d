"""The cadence of a written record: read by the shared module, its faults at ``cadence.…`` (CAD-1)."""

from gnomon.cadence import Cadence, CadenceError
from gnomon.domain.form import Form


def read_cadence(form: Form) -> Cadence | None:
    """The field ``cadence``, which is required; ``None`` where it has a fault."""
    value = form.given.get("cadence")
    if value is None:
        form.fault("cadence", "is required")
        return None
    try:
        return Cadence.parse(value)
    except CadenceError as error:
        for fault in error.faults:
            form.fault(f"cadence.{fault.field}" if fault.field else "cadence", fault.message)
        return None
