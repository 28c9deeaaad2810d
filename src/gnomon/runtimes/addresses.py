"""Which addresses and URLs an http target may have (TGT-4): the one judge for saving, connecting and redirecting.

Pure: no name is resolved here and nothing is sent. ``ipaddress`` alone is not enough: it calls multicast, NAT64 and
6to4 addresses global, so that a list of our own stands in front of it, and what is wrapped in IPv6 is unwrapped first.
"""

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import httpx2

URL_LENGTH = 2_000
_Address = IPv4Address | IPv6Address

# Answered by a cloud's own services: never a target, even where the operator allows private addresses.
_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"))
)
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})

# Lifted by allow_private.
_PRIVATE = [
    (ip_network(text), what)
    for text, what in (
        ("127.0.0.0/8", "a loopback address"),
        ("::1/128", "a loopback address"),
        ("10.0.0.0/8", "a private address"),
        ("172.16.0.0/12", "a private address"),
        ("192.168.0.0/16", "a private address"),
        ("fc00::/7", "a private address"),
        ("fec0::/10", "a private address"),
        ("169.254.0.0/16", "a link-local address"),
        ("fe80::/10", "a link-local address"),
        ("100.64.0.0/10", "a carrier's shared address"),
    )
]

# Lifted by nothing: no server of anybody's listens there.
_NEVER = [
    (ip_network(text), what)
    for text, what in (
        ("0.0.0.0/8", "the unspecified address"),
        ("::/128", "the unspecified address"),
        ("224.0.0.0/4", "a multicast address"),
        ("ff00::/8", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a documentation address"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("198.18.0.0/15", "a benchmarking address"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "a documentation address"),
        ("3fff::/20", "a documentation address"),
    )
]
_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")

_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*\.?")
_LAST_LABEL_IS_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
_WAY_OUT = "; a server that is started with GNOMON_ALLOW_PRIVATE_TARGETS=true takes it"
_PRIVATE_NAMES = re.compile(r"(?:.*\.)?(?:localhost|localdomain|local|internal|home\.arpa)")


def refusal(address: str, *, allow_private: bool) -> str | None:
    """Why nothing is sent to an IP address (``a loopback address``), or ``None`` where it may be.

    Raises:
        ValueError: ``address`` is no IP address.
    """
    found = _unwrap(ip_address(address))
    if found in _METADATA:
        return "a cloud's metadata service"
    for network, what in _NEVER:
        if found in network:
            return what
    for network, what in _PRIVATE:
        if found in network:
            return None if allow_private else what
    if not found.is_global or (isinstance(found, IPv6Address) and found not in _UNICAST):
        return "a reserved address"
    return None


def parse(url: str) -> httpx2.URL:
    """The URL as it will be used for sending. What ``check_url`` judged is this parser's reading, never another's.

    Raises:
        httpx2.InvalidURL: it can't be read.
    """
    return httpx2.URL(url)


def check_url(url: str, *, allow_private: bool = False) -> list[str]:
    """What is wrong with a target's URL, as sentences; empty when a request may be tried.

    A name is judged by its text alone here; the addresses it resolves to are judged at each connection.
    """
    if len(url) > URL_LENGTH:
        return [f"the URL is longer than {URL_LENGTH:,} characters"]
    if any(unicodedata.category(c)[0] in "CZ" for c in url):
        return ["the URL holds a space, a control or an invisible character"]
    if "\\" in url:
        return ["the URL holds a backslash"]
    try:
        parsed = parse(url)
    except (httpx2.InvalidURL, ValueError) as error:
        return [f"the URL can't be read: {error}"]
    authority = _AUTHORITY.match(url)
    if parsed.scheme not in {"http", "https"} or authority is None:
        return ["the URL must begin with http:// or https://"]
    faults = []
    if "@" in authority.group(1):
        faults.append("the URL holds a user name; credentials belong in a header")
    if "#" in url:
        faults.append("the URL holds a fragment, which no server ever sees")
    if parsed.port is not None and not 0 < parsed.port < 65_536:
        faults.append("the port must lie between 1 and 65535")
    fault = _fault_of_host(parsed.host, parsed.raw_host.decode("ascii"), allow_private=allow_private)
    return faults if fault is None else [*faults, fault]


def is_address(host: str) -> bool:
    """Whether a host is an IP address, which needs no resolver."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _fault_of_host(shown: str, host: str, *, allow_private: bool) -> str | None:
    try:
        why = refusal(host, allow_private=allow_private)
    except ValueError:
        return _fault_of_name(shown, host, allow_private=allow_private)
    if why is None:
        return None
    return f"{host} is {why}{'' if refusal(host, allow_private=True) else _WAY_OUT}"


def _fault_of_name(shown: str, host: str, *, allow_private: bool) -> str | None:
    if not host:
        return "the URL names no host"
    if _LAST_LABEL_IS_NUMBER.fullmatch(host):
        return f'"{shown}" is neither a host name nor an IP address in its usual form'
    if not _HOST.fullmatch(host):
        return f'"{shown}" is no host name'
    name = host.rstrip(".")
    if name in _METADATA_NAMES:
        return f'"{shown}" is a cloud\'s metadata service'
    if not allow_private and _PRIVATE_NAMES.fullmatch(name):
        return f'"{shown}" names a private host{_WAY_OUT}'
    return None


def _unwrap(address: _Address) -> _Address:
    """The IPv4 address inside a mapped, NAT64 or 6to4 one: that is where the packets end up."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    # fe80::1%eth0 and fe80::1 are one address; the zone only says which wire
    return IPv6Address(int(address))
