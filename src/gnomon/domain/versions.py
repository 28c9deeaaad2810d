"""Versions of editable records as entity tags: an edit names what it was made from, and a stale one is refused (SCH-4).

The tag holds the record's id besides its version, so that a deleted record and its successor under the same slug are
told apart.
"""

from gnomon.domain.errors import RevisionStale

Match = frozenset[str] | None  # the tags that an edit accepts; None: it did not say; {"*"}: whatever is there


def tag(record_id: str, version: int) -> str:
    """The opaque tag of one version of one record, without quotes."""
    return f"{record_id}.{version}"


def require(match: Match, record_id: str, version: int) -> None:
    """Go on only if the edit was made from what is there now.

    Raises:
        RevisionStale: it was not; ``data`` holds the present version.
    """
    if match is None or "*" in match or tag(record_id, version) in match:
        return
    raise RevisionStale(
        f"{record_id} has changed since you read it: it is at version {version} now. Read it again, then edit.",
        data={"version": version},
    )
