"""Where the server is: arguments over the environment, and the key in no text."""

import pytest

from gnomon.client.place import find


def test_arguments_stand_over_the_environment() -> None:
    env = {"GNOMON_URL": "http://a:1", "GNOMON_API_KEY": "gnk_a", "GNOMON_KEY": "gnk_c"}
    assert find(None, None, env) == find("http://a:1/", "gnk_a", {})
    assert find("https://b", "gnk_b", env).url == "https://b"
    assert find("https://b", "gnk_b", env).key == "gnk_b"
    assert find(None, None, {"GNOMON_KEY": "gnk_c"}).key == "gnk_c"
    assert find(None, None, {}).url == "http://127.0.0.1:8420"
    assert find(None, None, {}).headers == {}


@pytest.mark.parametrize("url", ["http://a/", "http://a/v1", "http://a/v1/"])
def test_an_address_is_taken_with_and_without_its_version(url: str) -> None:
    assert find(url, None, {}).url == "http://a"


def test_the_socket_is_as_safe_as_the_address() -> None:
    assert find("http://a:1/b", None, {}).socket_url == "ws://a:1/b/v1/connect"
    assert find("https://a", None, {}).socket_url == "wss://a/v1/connect"


@pytest.mark.parametrize("url", ["a:1", "ftp://a", "http://", "127.0.0.1:8420", "http://[::1", "http://a:x"])
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(ValueError, match="no address of a server"):
        find(url, None, {})


@pytest.mark.parametrize("key", ["gnk a", "gnk_a\n", "schlüssel"])
def test_what_is_no_key_is_told_and_not_shown(key: str) -> None:
    with pytest.raises(ValueError, match="no API key") as raised:
        find("http://a", key, {})
    assert key.strip() not in str(raised.value)


def test_the_key_is_in_no_text() -> None:
    """SEC-3."""
    assert "gnk_a" not in repr(find("http://a", "gnk_a", {}))
