"""How a database is named: what a URL may say, and what of it may be shown. Opens nothing."""

import re
from difflib import get_close_matches
from urllib.parse import parse_qsl, quote, unquote, urlsplit

POSTGRES = ("postgresql", "postgres")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_ATTRIBUTES = ("any", "primary", "read-write")
_TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
# What may follow the name of a PostgreSQL database. All but the first two are the driver's.
OPTIONS = (
    "schema",
    "statement_cache_size",
    "target_session_attrs",
    "passfile",
    "host",
    "port",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslcrl",
)
_SECRET_OPTIONS = ("password", "sslpassword")


def is_postgres(url: str) -> bool:
    """Whether the URL names a PostgreSQL database."""
    return url.partition(":")[0].lower() in POSTGRES


def shown(url: str) -> str:
    """The URL without any secret in it: what may be printed, logged and answered (OPS-5)."""
    if not is_postgres(url):
        return url
    head, _, query = url.partition("?")
    scheme, _, rest = head.partition("://")
    login, at, place = rest.rpartition("@")
    kept = "&".join(part for part in query.split("&") if part.partition("=")[0] not in _SECRET_OPTIONS)
    return f"{scheme}://{login.partition(':')[0]}{at}{place}{'?' if kept else ''}{kept}"


def fault_of(url: str) -> str | None:
    """What is wrong with the name of a database, as a sentence that repeats no secret; ``None`` where nothing is."""
    if is_postgres(url):
        return _postgres_fault(url)
    parts = urlsplit(url)
    if parts.scheme != "sqlite":
        name = quote(url) if re.fullmatch(r"[\w./ -]+", url) else "gnomon.db"
        return (
            f"A database is named by a URL: sqlite:///{name or 'gnomon.db'}, or postgresql://user@host/name."
        )
    if parts.netloc:
        return "Three slashes before a file (sqlite:///gnomon.db), four before an absolute path."
    if parts.path in ("", "/") or ":memory:" in parts.path:
        return "Name a file (sqlite:///gnomon.db): what is due must outlive the process."
    if parts.query or parts.fragment:
        return "A SQLite URL takes no options: nothing may follow the name of the file."
    return None


def _postgres_fault(url: str) -> str | None:
    head, _, query = url.partition("?")
    rest = head.partition("://")[2]
    place, _, name = rest.rpartition("@")[2].partition("/")
    if "#" in url:
        return "A '#' ends a URL: write it as %23 in a password."
    if not head.partition(":")[2].startswith("//") or "@" in rest.rpartition("@")[0]:
        return "Write it as postgresql://user:password@host:port/name; an '@' in a password is %40."
    if not name or "/" in name:
        return "Name one database after the host: postgresql://user@host/name. Its schema goes into ?schema=."
    options = dict(parse_qsl(query, keep_blank_values=True))
    if not place and "host" not in options:
        return "Name the host of the database: postgresql://user@host/name."
    return next(filter(None, map(_host_fault, place.split(","))), None) or _options_fault(options)


def _host_fault(host: str) -> str | None:
    name, _, port = host.rpartition(":") if re.search(r":[^\]]*$", host) else (host, "", "")
    if port and not (port.isdecimal() and 0 < int(port) <= 65_535):
        return "The port of the database is a number from 1 to 65535; a '/', ':' or '@' in a password is written as %2F, %3A, %40."
    if host and not name:
        return "Name the host of the database before its port."
    return None


def _options_fault(options: dict[str, str]) -> str | None:
    for name, value in options.items():
        if name not in OPTIONS:
            near = get_close_matches(name, OPTIONS, n=1, cutoff=0.6)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(OPTIONS)}."
            return f"A PostgreSQL URL has no option {ascii(name)[:40]}. {hint}"
        if name == "schema" and (
            not _SCHEMA.fullmatch(value) or value.startswith("pg_") or value == "information_schema"
        ):
            return (
                "The schema is a name of a to z, digits and _, not beginning with a digit or with pg_, "
                "of 63 letters at most."
            )
        if name == "target_session_attrs" and value not in _ATTRIBUTES:
            return f"target_session_attrs is one of {', '.join(_ATTRIBUTES)}: Gnomon writes."
        if name == "sslmode" and value not in _TLS_MODES:
            return f"sslmode is one of {', '.join(_TLS_MODES)}."
        if name == "statement_cache_size" and not (value.isdecimal() and int(value) <= 10_000):
            return "statement_cache_size is a whole number from 0 to 10,000; a pooler in transaction mode needs 0."
    return None


def file_of(url: str) -> str:
    """The path of a SQLite file, relative to the working directory or absolute."""
    return unquote(urlsplit(url).path.removeprefix("/"))
