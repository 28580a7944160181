"""Datasets from the web: no download without permission, from private networks, or without a size and time limit."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.commands import Run

from aigo_bridge.access.addresses import check_allowed, is_allowed, is_public, require_address, shown_address
from aigo_bridge.access.grants import Grants, granting
from aigo_bridge.codes import Code
from aigo_bridge.datasets.sources import fetched
from aigo_bridge.errors import DatasetError, UsageError

ROWS = b"q\nQ\n"
CERTIFICATES = Path(__file__).parents[1] / "support/certificates"
TASK = """key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers: [{type: string_equals, ground_truth: "{{ sample.q }}"}]
"""

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Server with scripted answers that records its requests."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.answer: Answer = lambda handler: send(handler, ROWS)
        own = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                own.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                own.answer(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it so
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.address = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def send(handler: BaseHTTPRequestHandler, body: bytes, **headers: str) -> None:
    handler.send_response(200)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def lead(to: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", to)
        handler.end_headers()

    return answer


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def other() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


def refusal(url: str, folder: Path, *allowed: str, network: bool = True, **bounds: Any) -> str:
    with granting(Grants(network=network, addresses=allowed)), pytest.raises(DatasetError) as caught:
        fetched(url, folder, **bounds)
    assert list(folder.iterdir()) == []
    return str(caught.value)


# --- which addresses


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
        ),
        *("192.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *(
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "fe80::1",
            "fe80::1%eth0",
            "fc00::1",
            "fd00:ec2::254",
        ),
        *(
            "ff02::1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a00:1",
            "2001:db8::1",
            "2001:0:7f00:1::",
            "100::1",
            "x",
        ),
        # Former local networks, NAT64 whose addresses of IPv4 lie elsewhere, services of clouds under public numbers.
        *("fec0::1", "feff::1", "64:ff9b:1:a9fe:a9:fe00:808:808", "4000::1", "::ffff:0:7f00:1"),
        *("168.63.129.16", "::ffff:168.63.129.16", "192.0.0.192"),
    ],
)
def test_private_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "127.0.0.1.",
    ],
)
def test_every_spelling_of_localhost_is_refused(host: str, server: Server, tmp_path: Path) -> None:
    said = refusal(f"http://{host}:{server.port}/rows.csv", tmp_path)
    assert "which is not a public address" in said or "cannot be downloaded" in said
    assert server.asked == []


def test_refusal_names_the_option(server: Server, tmp_path: Path) -> None:
    assert f"to allow it, use --allow-url {server.address}" in refusal(f"{server.address}/rows.csv", tmp_path)
    with granting(Grants(network=True, addresses=(server.address,))):
        assert fetched(f"{server.address}/rows.csv", tmp_path).read_bytes() == ROWS


@pytest.mark.parametrize("path", ["/rows.csv", "/deeper/rows.csv?x=1"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_to_an_internal_address_is_refused(
    path: str, status: int, server: Server, other: Server, tmp_path: Path
) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Location", other.address + path)
        handler.end_headers()

    server.answer = answer
    said = refusal(f"{server.address}/rows.csv", tmp_path, server.address)
    assert "leads to 127.0.0.1, which is not a public address" in said
    assert other.asked == []


@pytest.mark.parametrize(
    "to",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/rows.csv",
        "http://user:secret-of-theirs@127.0.0.1/rows.csv",
        "gopher://x/",
        "http:///rows.csv",
    ],
)
def test_redirect_to_another_scheme_is_refused(to: str, server: Server, tmp_path: Path) -> None:
    server.answer = lead(to)
    said = refusal(f"{server.address}/rows.csv", tmp_path, server.address, "127.0.0.1")
    assert "expected an http or https URL without a password" in said or "cannot be downloaded" in said
    assert "secret-of-theirs" not in said


def test_endless_redirects_are_refused(server: Server, tmp_path: Path) -> None:
    server.answer = lead(f"{server.address}/rows.csv")
    assert "redirects more than 5 times" in refusal(f"{server.address}/rows.csv", tmp_path, server.address)
    assert len(server.asked) == 6


def test_checked_address_is_the_one_connected_to(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is resolved only once, because it may change a moment later."""
    looked_up: list[object] = []
    real = anyio.getaddrinfo

    async def once(host: object, port: Any, **more: Any) -> Any:
        looked_up.append(host)
        answer = "127.0.0.1" if host == "rows.example" else host
        return await real(answer, port, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(anyio, "getaddrinfo", once)
    with granting(Grants(network=True, addresses=("rows.example",))):
        assert fetched(f"http://rows.example:{server.port}/rows.csv", tmp_path).read_bytes() == ROWS
    assert looked_up == ["rows.example"]
    assert server.asked[0][1]["host"] == f"rows.example:{server.port}"


def test_proxy_receives_the_checked_address(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def public(host: object, port: int, **more: Any) -> Any:
        address = "93.184.216.34" if host == "rows.example" else host
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(anyio, "getaddrinfo", public)
    monkeypatch.setenv("http_proxy", server.address)
    with granting(Grants(network=True)):
        assert fetched("http://rows.example/rows.csv", tmp_path).read_bytes() == ROWS
    ((path, headers),) = server.asked
    assert (path, headers["host"]) == ("http://93.184.216.34/rows.csv", "rows.example")


def test_name_with_one_private_address_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def both(host: object, port: int, **more: Any) -> Any:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in ("8.8.8.8", "127.0.0.1")
        ]

    monkeypatch.setattr(anyio, "getaddrinfo", both)
    assert "leads to 127.0.0.1, which" in refusal(f"http://rows.example:{server.port}/rows.csv", tmp_path)


def test_certificates_are_checked_against_the_host_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "ca.pem"))
    server = Server(CERTIFICATES / "server.pem")
    real = anyio.getaddrinfo

    async def here(host: object, port: Any, **more: Any) -> Any:
        return await real("127.0.0.1", port, **more)

    try:
        with granting(Grants(network=True, addresses=("localhost",))):
            assert (
                fetched(f"https://localhost:{server.port}/rows.csv", tmp_path / "kept").read_bytes() == ROWS
            )
        monkeypatch.setattr(anyio, "getaddrinfo", here)
        (tmp_path / "none").mkdir()
        said = refusal(f"https://rows.example:{server.port}/rows.csv", tmp_path / "none", "rows.example")
        assert "certificate" in said.lower()
    finally:
        server.stop()


# --- what goes out, and what comes in


def test_user_keys_are_not_sent(
    server: Server, other: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password of-mine\n", encoding="utf-8")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    server.answer = lead(f"{other.address}/rows.csv")
    with granting(Grants(network=True, addresses=(server.address, other.address))):
        fetched(f"http://given:password@127.0.0.1:{server.port}/rows.csv", tmp_path / "cache")
    assert server.asked[0][1]["authorization"].startswith("Basic ")
    assert not {"authorization", "cookie", "referer"} & other.asked[0][1].keys()


def test_compressed_response_is_decompressed(server: Server, tmp_path: Path) -> None:
    server.answer = lambda handler: send(handler, gzip.compress(ROWS), Content_Encoding="gzip")
    with granting(Grants(network=True, addresses=(server.address,))):
        assert fetched(f"{server.address}/rows.csv", tmp_path).read_bytes() == ROWS
    assert server.asked[0][1]["accept-encoding"] == "identity"


@pytest.mark.parametrize("cut", [False, True])
def test_size_limit_applies_to_the_decompressed_response(cut: bool, server: Server, tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    server.answer = lambda handler: send(handler, bomb[:-1000] if cut else bomb, Content_Encoding="gzip")
    largest = 100_000_000 if cut else 1_000_000
    said = refusal(f"{server.address}/rows.csv", tmp_path, server.address, largest=largest)
    assert ("the connection closed early" if cut else "more than 1,000,000 bytes") in said


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip"])
def test_unknown_encodings_are_refused(encoding: str, server: Server, tmp_path: Path) -> None:
    server.answer = lambda handler: send(handler, ROWS, Content_Encoding=encoding)
    with (
        granting(Grants(network=True, addresses=(server.address,))),
        pytest.raises(DatasetError, match="uses the encoding") as caught,
    ):
        fetched(f"{server.address}/rows.csv", tmp_path)
    assert caught.value.code == Code.FAILED_DOWNLOAD
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("headers", [False, True])
def test_slow_endless_response_is_aborted(headers: bool, server: Server, tmp_path: Path) -> None:
    """Each byte arrives in time, but the response never ends."""
    over = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"X: " if headers else b"\r\n"))
        deadline = time.monotonic() + 20
        try:
            while time.monotonic() < deadline and not over.wait(0.05):
                handler.wfile.write(b"x")
                handler.wfile.flush()
        except OSError:
            pass

    server.answer = answer
    try:
        said = refusal(f"{server.address}/rows.csv", tmp_path, server.address, seconds=0.4)
    finally:
        over.set()
    assert "it takes longer than 0.4 seconds" in said


# --- when


def url_task(folder: Path, server: Server) -> Path:
    (folder / "task.yaml").write_text(TASK, encoding="utf-8")
    text = f"key: rows\ndisplay_name: R\nsource: {{type: url, url: '{server.address}/rows.csv'}}\n"
    (folder / "rows.yaml").write_text(text, encoding="utf-8")
    return folder / "task.yaml"


def test_explain_downloads_nothing_without_permission(
    aigo: Run, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    task = url_task(tmp_path, server)
    done = aigo("explain", task)
    assert done.code == 2
    assert f"'{server.address}/rows.csv' must be downloaded, and downloads are not allowed" in done.err
    assert "--network" in done.err
    for path in (task, tmp_path / "rows.yaml"):
        validated = aigo("validate", path)
        assert validated.code == 0, validated.out
        assert f"reads rows from {server.address}/rows.csv" in validated.out
        (report,) = json.loads(aigo("validate", path, "--format", "json").out)
        assert report["addresses"] == [f"{server.address}/rows.csv"]
    assert server.asked == []
    assert "--allow-url" in aigo("explain", task, "--network").err
    assert "--allow-url" in aigo("run", task, "--model", "scripted/m").err
    assert server.asked == []
    shown = aigo("explain", task, "--network", "--allow-url", server.address, "--json")
    assert json.loads(shown.out)["addresses"] == [f"{server.address}/rows.csv"]
    assert len(server.asked) == 1
    assert aigo("explain", task).code == 0, "what was fetched is there"


def test_network_access_of_a_run_can_be_disabled(aigo: Run, server: Server, tmp_path: Path) -> None:
    task = url_task(tmp_path, server)
    done = aigo("run", task, "--model", "scripted/m", "--no-network", "--allow-url", server.address)
    assert done.code == 2
    assert "downloads are not allowed" in done.err
    assert server.asked == []


@pytest.mark.parametrize("verb", ["explain", "run"])
def test_hub_access_needs_network_permission(verb: str, aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK, encoding="utf-8")
    (tmp_path / "rows.yaml").write_text(
        "key: rows\ndisplay_name: R\nsource: {type: huggingface, path: owner/name, split: test}\n",
        encoding="utf-8",
    )
    more = ["--model", "scripted/m", "--no-network"] if verb == "run" else []
    done = aigo(verb, tmp_path / "task.yaml", *more)
    assert done.code == 2
    assert "'owner/name' of the Hugging Face hub must be downloaded" in done.err
    assert "reads rows from hf://datasets/owner/name" in aigo("validate", tmp_path / "task.yaml").out


# --- permissions


@pytest.mark.parametrize(
    ("url", "allowed", "expected"),
    [
        ("http://a.example/x.csv", "a.example", True),
        ("https://A.example:8443/x.csv", "a.example", True),
        ("http://a.example:81/x.csv", "a.example:80", False),
        ("http://a.example/x.csv", "http://a.example", True),
        ("http://a.example/x.csv", "http://a.example:80/", True),
        ("https://a.example/x.csv", "http://a.example", False),
        ("http://a.example:81/x.csv", "http://a.example", False),
        ("http://a.example.evil/x.csv", "a.example", False),
        ("http://evil/a.example.csv", "a.example", False),
        ("http://a.example@evil/x.csv", "a.example", False),
        ("http://[::1]:8000/x.csv", "http://[::1]:8000", True),
    ],
)
def test_only_the_allowed_host_or_origin_is_reached(url: str, allowed: str, expected: bool) -> None:
    assert is_allowed(url, [allowed]) is expected


@pytest.mark.parametrize(
    "address",
    ["", "http://", "ftp://a", "a.example/path", "http://a/path", "user@host", "http://a:port", "file:///x"],
)
def test_permissions_are_hosts_or_origins(address: str) -> None:
    with pytest.raises(UsageError, match="expected a host or an origin"):
        check_allowed(address)


def test_passwords_in_addresses_are_not_shown() -> None:
    assert shown_address("https://me:of-mine@data.example/a@b.csv") == "https://data.example/a@b.csv"
    with pytest.raises(DatasetError) as caught:
        require_address("ftp://me:of-mine@data.example/a.csv")
    assert "of-mine" not in str(caught.value)
