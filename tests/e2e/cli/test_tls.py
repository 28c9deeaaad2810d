"""A server whose certificate nobody vouches for gets no key: certificates are judged wherever the address is ``https``."""

import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from support.product import gnomon

pytestmark = pytest.mark.process


class Impostor(HTTPServer):
    """Answers every request as if there were nothing, and remembers the keys that it was sent."""

    keys: list[str | None]

    def handle_error(self, request: object, client_address: object) -> None:
        """A peer that turns away is what the test wants."""


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Impostor)
        self.server.keys.append(self.headers["Authorization"])
        body = b'{"items": [], "next_cursor": null}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[Impostor]:
    """A server at 127.0.0.1 with a certificate that it has signed itself."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    options = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    name = "subjectAltName=IP:127.0.0.1"
    subprocess.run(
        ["openssl", "req", *options.split(), "-addext", name, "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with Impostor(("127.0.0.1", 0), Answer) as server:
        server.keys = []
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_certificate_that_nobody_vouches_for_is_refused(impostor: Impostor, tmp_path: Path) -> None:
    url = f"https://127.0.0.1:{impostor.server_port}"
    found = gnomon("schedules", "list", "--url", url, "--key", "gnk_mine", cwd=tmp_path)
    assert (found.returncode, found.stdout, impostor.keys) == (3, "", [])
    assert "certificate" in found.stderr.lower()


def test_one_that_is_known_is_accepted(impostor: Impostor, tmp_path: Path) -> None:
    """The counterpart: it was the certificate."""
    url = f"https://127.0.0.1:{impostor.server_port}"
    known = {"SSL_CERT_FILE": str(tmp_path / "cert.pem")}
    found = gnomon("schedules", "list", "--url", url, "--key", "gnk_mine", cwd=tmp_path, **known)
    assert (found.returncode, impostor.keys) == (0, ["Bearer gnk_mine"]), found.stderr
