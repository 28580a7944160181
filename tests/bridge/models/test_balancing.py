"""Calls through one address to real servers: the least busy one answers, dead ones are left out and come back."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from tests.support.endpoint import Endpoint, Raw, completion, delta, events

from aigo_bridge.models.balancing import Server, Servers, balanced

CALL = {"model": "m", "messages": [{"role": "user", "content": "Grüße 🦊"}]}


@pytest.fixture
def pair() -> Iterator[tuple[Endpoint, Endpoint]]:
    endpoints = (Endpoint(), Endpoint())
    for endpoint in endpoints:
        endpoint.start()
    yield endpoints
    for endpoint in endpoints:
        endpoint.stop()


def closed_port() -> int:
    with closing(socket.socket()) as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def ask(address: str, **headers: str) -> httpx.Response:
    return httpx.post(f"{address}/chat/completions", json=CALL, headers=headers, timeout=30)


def test_the_least_busy_one_answers(pair: tuple[Endpoint, Endpoint]) -> None:
    slow, quick = pair
    is_asked, may_answer = threading.Event(), threading.Event()

    def wait(_: object) -> tuple[int, dict[str, object]]:
        is_asked.set()
        may_answer.wait(30)
        return 200, completion("slow")

    slow.answer = wait
    quick.answer = lambda _: (200, completion("quick"))
    with balanced(Servers([slow.url, quick.url])) as address:
        answers: list[str] = []
        first = threading.Thread(target=lambda: answers.append(ask(address).text))
        first.start()
        assert is_asked.wait(30)
        for _ in range(5):
            assert "quick" in ask(address).text
        may_answer.set()
        first.join()
        assert "slow" in answers[0]
        for _ in range(4):  # nobody is busy: whoever has served less
            ask(address)
    assert (len(slow.requests), len(quick.requests)) == (5, 5)


def test_what_is_sent_arrives_and_what_is_answered_comes_back(pair: tuple[Endpoint, Endpoint]) -> None:
    endpoint = pair[0]
    with balanced(Servers([endpoint.url + "/"])) as address:
        answer = ask(address, Authorization="Bearer a-key-of-this-test", Expect="")
        assert answer.json() == completion("ok")
        endpoint.answer = lambda _: Raw((b'{"no": 1}',), status=429, headers={"Retry-After": "7"})
        limited = ask(address)
        endpoint.answer = lambda _: events(delta("Hé"), delta("🦊"), delta(finish="stop"))
        streamed = ask(address)
        assert httpx.post(f"{address}/x", content=iter([b"a"])).status_code == 411
    assert (limited.status_code, limited.headers["Retry-After"], limited.text) == (429, "7", '{"no": 1}')
    assert streamed.headers["Content-Type"] == "text/event-stream"
    assert [json.loads(line[6:])["choices"][0]["delta"] for line in streamed.text.split("\n\n")[:2]] == [
        {"content": "Hé"},
        {"content": "🦊"},
    ]
    assert endpoint.requests == [CALL] * 3
    assert endpoint.paths == ["/v1/chat/completions"] * 3
    assert endpoint.headers[0]["authorization"] == "Bearer a-key-of-this-test"
    assert endpoint.headers[0]["host"] == endpoint.url.split("/")[2]


def let_time_pass(servers: Servers) -> None:
    """As after the wait of all that are left out."""
    for server in servers.state():
        server.until = 0.0


def test_a_dead_one_is_left_out_and_tried_again(
    pair: tuple[Endpoint, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aigo_bridge.models.balancing.FIRST_WAIT", 30.0)
    alive, ill = pair
    ill.answer = lambda _: (503, {"error": "is being loaded"})
    dead = f"http://127.0.0.1:{closed_port()}/v1"
    servers = Servers([dead, ill.url, alive.url])
    with balanced(servers) as address:
        assert [ask(address).status_code for _ in range(4)] == [200] * 4
        assert len(ill.requests) == 1  # left out, and not asked at each call
        ill.answer = lambda _: (200, completion("back"))
        let_time_pass(servers)
        assert "back" in ask(address).text
    assert [server.calls for server in servers.state()] == [0, 0, 0]
    assert [server.failures for server in servers.state()] == [2, 0, 0]


def test_one_that_cuts_an_answer_is_left_out_and_the_caller_sees_the_cut(
    pair: tuple[Endpoint, Endpoint],
) -> None:
    endpoint = pair[0]
    endpoint.answer = lambda _: events(delta("half"), done=False, cut=True)
    servers = Servers([endpoint.url])
    with balanced(servers) as address, pytest.raises(httpx.RemoteProtocolError):
        ask(address)
    (server,) = servers.state()
    assert (server.calls, server.failures) == (0, 1)


def test_without_any_the_caller_is_told_to_come_back() -> None:
    dead = f"http://user:password-of-nobody@127.0.0.1:{closed_port()}/v1"
    with balanced(Servers([dead])) as address:
        answer = ask(address)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert "no server of the model answers now" in answer.json()["error"]["message"]
    assert "password-of-nobody" not in answer.text
    with balanced(Servers()) as address:
        assert "none has begun" in ask(address).json()["error"]["message"]


def test_servers_that_stay_keep_their_calls_and_others_take_their_place() -> None:
    servers = Servers(["http://a/v1", "http://b/v1", "http://a/v1"])
    first = servers.take()
    assert isinstance(first, Server)
    servers.replace(["http://c/v1", "http://a/v1"])
    assert [(server.url, server.calls) for server in servers.state()] == [
        ("http://c/v1", 0),
        ("http://a/v1", 1),
    ]
    second = servers.take()
    assert second is not None
    assert second.url == "http://c/v1"
    assert servers.take([first, second]) is None
    servers.free(first)
    assert first.calls == 0


def test_one_call_alone_tries_whether_a_server_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aigo_bridge.models.balancing.FIRST_WAIT", 30.0)
    servers = Servers(["http://a/v1"])
    server = servers.take()
    assert server is not None
    servers.free(server, "refused")
    assert servers.take() is None
    assert 0 < servers.next_try() <= 30
    let_time_pass(servers)
    assert servers.take() is server
    assert servers.take() is None
    servers.free(server)
    assert servers.take() is server


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (5, 16), (6, 30), (5000, 30)])
def test_the_wait_grows_to_a_bound(failures: int, seconds: float) -> None:
    servers = Servers(["http://a/v1"])
    server = servers.take()
    assert server is not None
    server.failures = failures - 1
    before = time.monotonic()
    servers.free(server, "refused")
    assert before + seconds <= server.until <= time.monotonic() + seconds
