"""HTTP server of `aigo-bridge view`: access control and responses."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.results import metric, question, result, write_result
from tests.support.viewing import Reader, reader_of, serving

from aigo_bridge.errors import UsageError
from aigo_report.viewing import ViewServer
from aigo_report.viewing import serving as view_server
from aigo_report.viewing.serving import MOST_CONNECTIONS, STRANGER_SECONDS

SECRET = "not for anybody's eyes"


def quiz(path: Path, answers: str, accuracy: float) -> Path:
    """Write a result with one question for each letter. The right answer is `a`."""
    samples = [question(number, letter, "a") for number, letter in enumerate(answers)]
    return write_result(path, result(samples, [metric({"accuracy": accuracy})]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outside = tmp_path_factory.mktemp("outside")
    write_result(outside / "secret.tasklog.json", result([question(0, SECRET, "a")], []))
    folder = tmp_path_factory.mktemp("folder")
    quiz(folder / "one.tasklog.json", "aabb", 0.5)
    quiz(folder / "two.tasklog.json", "aaab", 0.75)
    (folder / "broken.tasklog.json").write_text('{"evidence": {"samples": [')
    (folder / "run").mkdir()
    quiz(folder / "run" / "quiz.tasklog.json", "ab", 0.1 + 0.2)
    entry = {"key": "quiz", "result": "quiz.tasklog.json"}
    stray = {"key": "stray", "result": "../../outside0/secret.tasklog.json"}
    summary = {
        "status": "success",
        "evaluation": {"display_name": "Gate"},
        "results": [entry, stray],
        "policies": [],
    }
    (folder / "run" / "evaluation.json").write_bytes(orjson.dumps(summary))
    (folder / "link.tasklog.json").symlink_to(outside / "secret.tasklog.json")
    (folder / "away").symlink_to(outside)
    (folder / "same.tasklog.json").symlink_to("one.tasklog.json")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ViewServer]:
    with serving(folder) as server:
        yield server


@pytest.fixture(scope="module")
def reader(server: ViewServer) -> Reader:
    return reader_of(server.guard.address)


def rows_of(reader: Reader, entry: str) -> list[dict[str, Any]]:
    """Return all rows of an entry's first result."""
    reply = reader.get(f"data/entry/{entry}")
    blocks = [
        reader.get(f"data/block/{entry}/{reply.headers['X-Number']}/{name}")
        for name in reply.json["results"][0]["rows"]
    ]
    assert {block.status for block in blocks} <= {200}
    return [row for block in blocks for row in block.json]


# Access control


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1.evil.example:{port}"},
        {"Host": "127.0.0.1:1"},
        {"Host": "[::1]:{port}"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Cookie": ""},
        {"Cookie": "aigo-bridge-view="},
        {"Cookie": "aigo-bridge-view=wrong"},
        {"Content_Length": "3"},
        {"Transfer_Encoding": "chunked"},
    ],
)
def test_foreign_request_is_rejected(reader: Reader, headers: dict[str, str]) -> None:
    for path in ("", "data/folder"):
        reply = reader.ask(
            reader.base + path, **{name: text.format(port=reader.port) for name, text in headers.items()}
        )
        assert reply.status in (400, 403)
        assert b"tasklog" not in reply.body
        assert "Set-Cookie" not in reply.headers


@pytest.mark.parametrize(
    "headers",
    [{"Host": "localhost:{port}"}, {"Origin": "http://127.0.0.1:{port}"}, {"Sec_Fetch_Site": "same-origin"}],
)
def test_same_origin_request_is_answered(reader: Reader, headers: dict[str, str]) -> None:
    named = {name: text.format(port=reader.port) for name, text in headers.items()}
    assert reader.ask(f"{reader.base}data/folder", **named).status == 200


@pytest.mark.parametrize(
    "query",
    ["", "?token=", "?token=wrong", "?token={token}x", "?token={token}&token={token}", "?Token={token}"],
)
def test_wrong_token_is_rejected(server: ViewServer, query: str) -> None:
    reply = Reader(server.guard.port).ask("/" + query.format(token=server.guard.token))
    assert reply.status == 403
    assert "Set-Cookie" not in reply.headers


def test_token_with_another_host_name_is_rejected(server: ViewServer) -> None:
    reply = Reader(server.guard.port).ask(f"/?token={server.guard.token}", Host="evil.example")
    assert (reply.status, "Set-Cookie" in reply.headers) == (403, False)


def test_token_is_exchanged_for_a_strict_cookie(server: ViewServer) -> None:
    reply = Reader(server.guard.port).ask(f"/?token={server.guard.token}", Sec_Fetch_Site="cross-site")
    cookie = reply.headers["Set-Cookie"]
    assert server.guard.token not in cookie + reply.body.decode()
    assert {part.strip() for part in cookie.split(";")[1:]} == {
        f"Path=/{server.guard.session}/",
        "HttpOnly",
        "SameSite=Strict",
    }
    assert reply.headers["Referrer-Policy"] == "no-referrer"


def test_every_response_has_security_headers(reader: Reader) -> None:
    for path in ("", "data/folder", "data/entry/0000000000000000", "nothing"):
        headers = reader.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        kept = {
            name: headers[name]
            for name in ("X-Content-Type-Options", "Cache-Control", "Cross-Origin-Resource-Policy")
        }
        assert list(kept.values()) == ["nosniff", "no-store", "same-origin"]


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"]
)
def test_writing_methods_are_rejected(reader: Reader, method: str) -> None:
    reply = reader.ask(f"{reader.base}data/folder", method)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")


def test_head_response_equals_get_without_body(reader: Reader) -> None:
    get, head = (reader.ask(f"{reader.base}data/folder", method) for method in ("GET", "HEAD"))
    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Length"] == get.headers["Content-Length"]


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "%2e%2e/%2e%2e/etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "data/../../../etc/passwd",
        "data/entry/../../../etc/passwd",
        "data/entry/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "data/entry/one.tasklog.json",
        "data/block/0000000000000000/1/../../../../../../etc/passwd",
        "data/block/0000000000000000/1/r0p0%00",
        "data/compare/../../etc/passwd/0000000000000000.0",
        "r/../../etc/passwd",
        "//etc/passwd",
        "\\..\\..\\etc\\passwd",
        "data/folder/",
        "DATA/FOLDER",
    ],
)
def test_path_traversal_is_rejected(reader: Reader, path: str) -> None:
    reply = reader.ask(reader.base + path)
    assert reply.status in (403, 404)
    assert b"root:" not in reply.body


def test_absolute_address_and_malformed_requests_are_rejected(reader: Reader) -> None:
    for line in (
        b"GET http://127.0.0.1/ HTTP/1.1",
        b"GET",
        b"\x00\xff\xfe",
        b"GET / HTTP/9.9",
        b"G" * 100_000,
    ):
        reply = b""
        with socket.create_connection(("127.0.0.1", reader.port), timeout=20) as connection:
            try:
                connection.sendall(line + b"\r\n\r\n")
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65536):
                    reply += part
            except TimeoutError:
                pytest.fail("the connection stays open without an answer")
            except OSError:
                pass  # the server may reset a rejected connection at any of these steps
        assert b" 200 " not in reply.split(b"\r\n")[0]
        assert b"Traceback" not in reply


# Responses


def test_folder_listing_excludes_outside_files(reader: Reader) -> None:
    entries = reader.entries()
    assert {name: entry["kind"] for name, entry in entries.items()} == {
        "broken.tasklog.json": "result",
        "one.tasklog.json": "result",
        "run/evaluation.json": "evaluation",
        "run/quiz.tasklog.json": "result",
        "same.tasklog.json": "result",
        "two.tasklog.json": "result",
    }
    assert reader.get("data/folder").json["links"] == ["away", "link.tasklog.json"]


def test_entry_contains_metrics_and_all_samples(reader: Reader) -> None:
    entry = reader.entries()["two.tasklog.json"]["id"]
    reply = reader.get(f"data/entry/{entry}")
    (found,) = reply.json["results"]

    assert found["metrics"][0]["values"][0]["text"] == "0.75"
    assert [row["a"] for row in rows_of(reader, entry)] == ["a", "a", "a", "b"]
    lines = reader.get(f"data/block/{entry}/{reply.headers['X-Number']}/{found['parts'][0][1]}").body.split(
        b"\n"
    )
    assert [orjson.loads(line)["sample_id"] for line in lines] == [0, 1, 2, 3]
    assert reader.get(f"data/entry/{entry}", If_None_Match=reply.headers["ETag"]).status == 304


def test_evaluation_does_not_open_results_outside_the_folder(reader: Reader) -> None:
    reply = reader.get(f"data/entry/{reader.entries()['run/evaluation.json']['id']}")
    first, stray = reply.json["results"]
    assert first["metrics"][0]["values"][0]["text"] == "0.30000000000000004"
    assert (stray["status"], SECRET in reply.body.decode()) == ("missing", False)


def test_damaged_result_has_the_status_unreadable(reader: Reader) -> None:
    reply = reader.get(f"data/entry/{reader.entries()['broken.tasklog.json']['id']}")
    assert reply.json["results"][0]["status"] == "unreadable"


def test_compare_endpoint_returns_the_comparison_of_two_results(reader: Reader) -> None:
    entries = reader.entries()
    one, two = (entries[name]["id"] for name in ("one.tasklog.json", "two.tasklog.json"))

    content = reader.get(f"data/compare/{one}.0/{two}.0").json

    assert (content["base"]["name"], content["new"]["name"]) == ("one.tasklog.json", "two.tasklog.json")
    assert content["pairs"]["paired"] == 4
    (number,) = content["metrics"]
    assert (number["base"], number["new"]) == (0.5, 0.75)
    assert reader.get(f"data/compare/{one}.0/{two}.1").status == 404
    assert reader.get(f"data/compare/{one}.0/0000000000000000.0").status == 404


def test_fifty_concurrent_readers_get_equal_answers(reader: Reader) -> None:
    entries = reader.entries()
    wanted = [
        (entries[f"{name}.tasklog.json"]["id"], answers)
        for name, answers in (("one", "aabb"), ("two", "aaab"))
    ]
    with ThreadPoolExecutor(50) as readers:
        asked = [(answers, readers.submit(rows_of, reader, entry)) for entry, answers in wanted * 25]
        for answers, rows in asked:
            assert [row["a"] for row in rows.result()] == list(answers)


def test_changing_result_is_consistent_or_rejected(tmp_path: Path) -> None:
    """All answers are `a` in one version and `b` in the other."""
    log = tmp_path / "quiz.tasklog.json"
    versions = [
        quiz(tmp_path / f"{letter}.json", letter * 40, float(letter == "a")).read_bytes() for letter in "ab"
    ]
    log.write_bytes(versions[0])
    with serving(tmp_path) as server:
        reader = reader_of(server.guard.address)
        entry = reader.entries()["quiz.tasklog.json"]["id"]
        seen = set()
        for number in range(8):
            reply = reader.get(f"data/entry/{entry}")
            # Rewrite in place, then replace the file.
            if number % 2:
                log.write_bytes(versions[number // 2 % 2])
            else:
                (tmp_path / "draft").write_bytes(versions[number // 2 % 2])
                (tmp_path / "draft").replace(log)
            if reply.status != 200:
                assert reply.json == {"problem": "the file changed while it was read"}
                continue
            (shown,) = reply.json["results"]
            block = reader.get(f"data/block/{entry}/{reply.headers['X-Number']}/{shown['rows'][0]}")
            assert block.status == 410
            seen.add(shown["metrics"][0]["values"][0]["text"])
        # The unchanged result is displayed completely.
        assert {row["a"] for row in rows_of(reader, entry)} == {"b"}
        log.unlink()
        reply = reader.get(f"data/entry/{entry}")
        while reply.status == 200:
            reply = reader.get(f"data/entry/{entry}")
        assert (reply.status, reply.json) == (404, {"problem": "it is no longer in the folder"})
        assert reader.entries() == {}
        private = server.library.private
        assert private.is_dir()
    assert seen <= {"0.0", "1.0"}
    assert not private.exists()


@contextmanager
def idle(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Open connections that send nothing."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            for _ in range(count)
        ]


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_idle_connections_do_not_block_the_server(folder: Path) -> None:
    """More connections than allowed are open. The oldest is closed."""
    with serving(folder) as server, idle(server.server_address[1], MOST_CONNECTIONS + 30):
        start = time.monotonic()
        for _ in range(3):
            assert reader_of(server.guard.address).get("data/folder").status == 200
        assert time.monotonic() - start < STRANGER_SECONDS


def test_unauthenticated_connection_is_closed_after_a_timeout(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow connections and requests without a cookie are closed too. A connection with the cookie stays open."""
    monkeypatch.setattr(view_server, "STRANGER_SECONDS", 1.0)
    with serving(folder) as server, idle(server.server_address[1], 3) as (silent, slow, asking):
        reader = reader_of(server.guard.address)
        own = http.client.HTTPConnection("127.0.0.1", reader.port, timeout=10)
        host = {"Host": f"127.0.0.1:{reader.port}"}
        own.request("GET", f"{reader.base}data/folder", headers={**host, "Cookie": reader.cookie})
        assert own.getresponse().read()
        first = own.sock
        asking.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{reader.port}\r\n\r\n".encode())
        assert b"403" in asking.recv(20)
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            time.sleep(0.2)
            with suppress(OSError):
                slow.sendall(b"G")
        while len(asking.recv(10_000)) == 10_000:
            pass
        assert all(map(is_closed, (silent, slow, asking)))
        own.request("GET", f"{reader.base}data/folder", headers={**host, "Cookie": reader.cookie})
        assert own.getresponse().status == 200
        assert own.sock is first
        own.close()


def test_used_port_is_reported(server: ViewServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"port {server.guard.port} cannot be used: Address already in use"):
        ViewServer(tmp_path, server.guard.port)
    with pytest.raises(UsageError, match="the folder does not exist"):
        ViewServer(tmp_path / "gone")
