"""The key of a request: it comes in the Authorization header and nowhere else (SEC-3).

All edges share this; what a key opens, ``services.api_keys`` knows.
"""

from collections.abc import Iterable, Sequence

from gnomon.domain.errors import Unauthenticated

_KEY_NAMES = frozenset(
    {"key", "api_key", "apikey", "api-key", "access_token", "token", "authorization", "bearer"}
)


def bearer(given: Sequence[str]) -> str:
    """The key's text, out of all Authorization headers of a request.

    Raises:
        Unauthenticated: there is none, or more than one.
    """
    if not given:
        raise Unauthenticated("This needs an API key: send Authorization: Bearer KEY.", code="key_missing")
    if len(given) > 1:
        raise Unauthenticated("There are two Authorization headers; send one.", code="key_ambiguous")
    scheme, _, text = given[0].strip().partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise Unauthenticated("The Authorization header must read: Bearer KEY.", code="key_missing")
    return text.strip()


def refuse_key_in_query(names: Iterable[str]) -> None:
    """Let no address through whose parameters hold a key.

    Raises:
        Unauthenticated: ``key_in_query``, also where the header has a good one.
    """
    if any(name.lower() in _KEY_NAMES for name in names):
        raise Unauthenticated(
            "A key must not stand in an address, where logs and histories keep it: send it in the Authorization "
            "header, and replace this one if it was real.",
            code="key_in_query",
        )
