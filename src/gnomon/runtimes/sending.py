"""What is sent to an http target: the body of CONTRACT, our headers, the signature; and which headers a user may add.

Pure but for the instant, which is an argument. How it travels is ``http``'s affair.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from standardwebhooks.webhooks import Webhook

from gnomon.domain.instants import rfc3339
from gnomon.domain.invocation import Failing, Invocation, TargetFailure

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_VALUE_BYTES = 8_000

# Ours, or the connection's: what decides framing, encoding, identity or signature is not the user's to set.
_OURS = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host"}
    | {
        "idempotency-key",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "traceparent",
    }
    | {"tracestate", "transfer-encoding", "upgrade"}
)
_OUR_PREFIXES = ("gnomon-", "webhook-")


def check_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is wrong with a user's headers, as pairs of the header's name and a sentence."""
    faults = []
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            faults.append((name, f"{name!r} is no name of a header"))
        elif name.lower() in _OURS or name.lower().startswith(_OUR_PREFIXES):
            faults.append((name, f"the header {name} is set by Gnomon"))
        if not _VALUE.fullmatch(value):
            faults.append(
                (name, f"the value of {name!r} holds a line break or another character no header may hold")
            )
        elif len(value) > _VALUE_BYTES:
            faults.append((name, f"the header {name!r} is longer than {_VALUE_BYTES:,} bytes"))
    return faults


def body_of(invocation: Invocation) -> bytes:
    """The JSON of an invocation, in ASCII, so that what is signed is what is sent."""
    return json.dumps(fields_of(invocation), separators=(",", ":")).encode("ascii")


def fields_of(invocation: Invocation) -> dict[str, Any]:
    """What a target gets, whatever way it travels (CONTRACT, "What a target gets")."""
    nominal = invocation.nominal_fire_at
    return {
        "run_id": invocation.run_id,
        "attempt": invocation.attempt,
        "fence": invocation.fence,
        "idempotency_key": invocation.idempotency_key,
        "dedup_key": invocation.dedup_key,
        "nominal_fire_at": None if nominal is None else rfc3339(nominal),
        "deadline": rfc3339(invocation.deadline),
        "tenant": invocation.tenant,
        "query": invocation.query,
        "session_id": invocation.session_id,
        "messages": [{"role": m.role, "content": m.content} for m in invocation.messages],
    }


def our_headers(invocation: Invocation, body: bytes, secret: str | None, now: datetime) -> dict[str, str]:
    """The headers of one attempt. ``webhook-id`` is the run's id, so it is the same over all tries (RUN-6).

    Raises:
        TargetFailure: ``target_invalid``, the secret is no Standard Webhooks secret.
    """
    at = now.astimezone(UTC).replace(microsecond=0)
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/plain;q=0.9, */*;q=0.1",
        "accept-encoding": "gzip",
        "user-agent": "gnomon",
        "idempotency-key": _header_safe(invocation.idempotency_key),
        "gnomon-fence": str(invocation.fence),
        "webhook-id": invocation.run_id,
        "webhook-timestamp": str(int(at.timestamp())),
    }
    if invocation.traceparent is not None and _TRACEPARENT.fullmatch(invocation.traceparent):
        headers["traceparent"] = invocation.traceparent
    if secret is not None:
        headers["webhook-signature"] = _signature(secret, invocation.run_id, at, body)
    return headers


def _header_safe(key: str) -> str:
    """A key as a header may carry it: as it is where it can be, percent-encoded where it can't."""
    return key if key and _VALUE.fullmatch(key) else quote(key, safe="", errors="replace")


def _signature(secret: str, message_id: str, at: datetime, body: bytes) -> str:
    try:
        return Webhook(secret).sign(message_id, at, body.decode("ascii"))
    except Exception as error:  # the library raises its own and base64's errors for a bad secret
        raise TargetFailure(Failing.TARGET_INVALID, "the agent's signing secret can't be read") from error
