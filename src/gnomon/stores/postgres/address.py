"""Where the database is: a URL as people write it, taken apart into what the driver gets and what is ours.

Ours are ``?schema=`` (the schema that holds the house, ``gnomon`` where none is named) and ``?statement_cache_size=``
(0 for a pooler that shares server connections and doesn't know prepared statements). All else is the driver's.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from gnomon.domain.errors import UnusableDatabase

SCHEMA = "gnomon"
STATEMENTS = 300  # more than there are named queries: a connection prepares each once
_SCHEMES = ("postgresql", "postgres")
# no quotes, no capitals: the same name in every tool that does not quote it
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class Address:
    """One schema of one database. ``dsn`` may hold a password: it is never shown."""

    dsn: str
    schema: str = SCHEMA
    statement_cache_size: int = STATEMENTS

    @property
    def shown(self) -> str:
        """Host, database and schema, for people: no user, no password, no option."""
        parts = urlsplit(self.dsn)
        host = parts.netloc.rpartition("@")[2] or "the default host"
        return f"{host}{parts.path} (schema {self.schema})"

    def __repr__(self) -> str:
        return f"<Address {self.shown}>"


def parse(url: str) -> Address:
    """The address of a URL ``postgresql://…``.

    Raises:
        UnusableDatabase: it is none, or one of our options is wrong.
    """
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        raise UnusableDatabase(f"A PostgreSQL address begins with {_SCHEMES[0]}://, not {parts.scheme}://.")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema = options.pop("schema", SCHEMA)
    if not _SCHEMA_NAME.fullmatch(schema) or schema.startswith("pg_") or schema == "information_schema":
        raise UnusableDatabase(
            "?schema= must be a name of lower-case letters, digits and underscores that PostgreSQL does not keep for "
            "itself."
        )
    cached = options.pop("statement_cache_size", str(STATEMENTS))
    if not re.fullmatch(r"[0-9]{1,5}", cached):
        raise UnusableDatabase("?statement_cache_size= must be a number; 0 turns prepared statements off.")
    dsn = urlunsplit(parts._replace(query=urlencode(options)))
    return Address(dsn, schema, int(cached))
