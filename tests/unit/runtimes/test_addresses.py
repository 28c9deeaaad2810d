"""Which addresses and URLs a target may have (TGT-4, rows 35 to 41 of the security matrix)."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.runtimes.addresses import check_url, refusal

PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "169.254.1.1",
    "fe80::1",
    "fe80::1%eth0",
    "fd00::8",
    "fc00::1",
    "fec0::1",
    "::ffff:127.0.0.1",
    "::ffff:10.1.2.3",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "2002:7f00:1::",
    "2002:c0a8:101::1",
]
NEVER = [
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "169.254.170.2",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "0.0.0.0",
    "0.1.2.3",
    "::",
    "224.0.0.1",
    "ff02::1",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "198.51.100.7",
    "203.0.113.7",
    "198.18.0.1",
    "192.88.99.1",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "100::1",
    "64:ff9b:1::1",
    "::127.0.0.1",
    "::ffff:0:7f00:1",
    "4000::1",
]
PUBLIC = ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101"]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused_unless_the_operator_allows_them_tgt_4(address: str) -> None:
    assert refusal(address, allow_private=False) is not None
    assert refusal(address, allow_private=True) is None


@pytest.mark.parametrize("address", NEVER)
def test_what_nobody_listens_on_and_metadata_are_refused_always_tgt_4(address: str) -> None:
    assert refusal(address, allow_private=False) is not None
    assert refusal(address, allow_private=True) is not None


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_fine(address: str) -> None:
    assert refusal(address, allow_private=False) is None


def test_the_reason_is_named() -> None:
    assert refusal("::ffff:127.0.0.1", allow_private=False) == "a loopback address"
    assert refusal("169.254.169.254", allow_private=True) == "a cloud's metadata service"
    with pytest.raises(ValueError):
        refusal("example.com", allow_private=True)


@given(st.ip_addresses())
def test_the_list_is_never_more_generous_than_the_standard_library(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if refusal(str(address), allow_private=False) is None:
        wrapped = isinstance(address, ipaddress.IPv6Address) and str(address).startswith("64:ff9b::")
        assert address.is_global or wrapped
        assert not address.is_multicast


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_changes_nothing(address: ipaddress.IPv4Address) -> None:
    plain = refusal(str(address), allow_private=False)
    packed = int(address)
    for wrapped in (
        ipaddress.IPv6Address((0xFFFF << 32) | packed),
        ipaddress.IPv6Address((0x64FF9B << 96) | packed),
        ipaddress.IPv6Address((0x2002 << 112) | (packed << 80) | 1),
    ):
        assert refusal(str(wrapped), allow_private=False) == plain


GOOD = [
    "https://example.com",
    "http://example.com:8080/a/b?c=d",
    "https://EXAMPLE.com./",
    "https://münchen.example/",
    "https://1.1.1.1/hook",
    "https://[2606:4700::1111]:8443/",
    "https://a_b.example/x%20y",
    "https://example.com/@user",
    "https://example.com/?to=a@b",
]


@pytest.mark.parametrize("url", GOOD)
def test_good_urls(url: str) -> None:
    assert check_url(url) == []


BAD = [
    ("http://user@127.0.0.1:80@example.com/", "user name"),
    ("http://user:secret@example.com/", "user name"),
    ("http://@example.com/", "user name"),
    ("http://example.com\\@127.0.0.1/", "backslash"),
    ("http://127.0.0.1#@example.com/", "fragment"),
    ("http://example.com/\tx", "control"),
    ("http://exam\nple.com/", "control"),
    ("http://example.com/\r\nHost: evil", "control"),
    ("http://example.com /", "space"),
    ("http://example.com/\u200b", "invisible"),
    ("http://example.com/\u2028", "space"),
    ("file:///etc/passwd", "http://"),
    ("ftp://example.com/", "http://"),
    ("gopher://example.com/", "http://"),
    ("javascript:alert(1)", "http://"),
    ("//example.com/", "http://"),
    ("example.com", "http://"),
    ("", "http://"),
    ("http:example.com", "http://"),
    ("http:///x", "no host"),
    ("http://:80/", "no host"),
    ("http://example.com:0/", "port"),
    ("http://example.com:65536/", "port"),
    ("http://example.com:99999999999/", ""),
    ("http://example.com:abc/", ""),
    ("http://2130706433/", "usual form"),
    ("http://0x7f000001/", "usual form"),
    ("http://0x7f.1/", "usual form"),
    ("http://127.1/", "usual form"),
    ("http://0177.0.0.1/", ""),
    ("http://127.0.0.1./", ""),
    ("http://1.2.3.4.5/", "usual form"),
    ("http://exa%6dple.com/", "no host name"),
    ("http://exam|ple.com/", "no host name"),
    ("http://-example.com/", "no host name"),
    ("http://a..b/", "no host name"),
    ("http://\uff11\uff12\uff17.0.0.1/", ""),
    ("http://[::1/", ""),
    ("http://[fe80::1%25eth0]/", ""),
    ("http://localhost/", "private host"),
    ("http://LOCALHOST./", "private host"),
    ("http://a.localhost:8080/", "private host"),
    ("http://db.internal/", "private host"),
    ("http://printer.local/", "private host"),
    ("http://metadata.google.internal/", "metadata"),
    ("http://127.0.0.1/", "loopback"),
    ("http://[::1]/", "loopback"),
    ("http://[::ffff:127.0.0.1]/", "loopback"),
    ("http://[64:ff9b::7f00:1]/", "loopback"),
    ("http://10.0.0.1/", "private"),
    ("http://169.254.169.254/latest/meta-data/", "metadata"),
    ("https://example.com/" + "a" * 2_000, "longer"),
]


@pytest.mark.parametrize(("url", "why"), BAD)
def test_bad_urls_are_refused_when_saved_tgt_4(url: str, why: str) -> None:
    assert any(why in fault for fault in check_url(url)), check_url(url)


def test_the_operator_may_allow_private_hosts_but_no_metadata() -> None:
    for url in ("http://localhost:9000/", "http://127.0.0.1/", "http://[::1]/", "http://db.internal/"):
        assert check_url(url, allow_private=True) == []
    for url in ("http://169.254.169.254/", "http://metadata.google.internal/", "http://[::ffff:a9fe:a9fe]/"):
        assert len(check_url(url, allow_private=True)) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "localhost", "224.0.0.1", "169.254.169.254"])
def test_a_refusal_names_the_setting_exactly_where_it_helps(host: str) -> None:
    url = f"http://{host}/"
    helps = check_url(url, allow_private=True) == []
    assert ("GNOMON_ALLOW_PRIVATE_TARGETS" in check_url(url)[0]) is helps


def test_every_fault_of_a_url_is_named_at_once() -> None:
    assert len(check_url("http://me@127.0.0.1:70000/#x")) == 4


@given(st.text(max_size=60))
def test_any_text_gets_an_answer(text: str) -> None:
    assert isinstance(check_url(text), list)
    assert isinstance(check_url("http://" + text, allow_private=True), list)
