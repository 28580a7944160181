"""A snippet that writes into the pipes of its worker can only fail its own call."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from textwrap import dedent, indent
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets import Remote, Snippet, SnippetHost, SnippetLimits, channel, protocol
from aigo_bridge.snippets.protocol import LineError, TooLargeReplyError, read_line


@pytest.fixture(scope="module")
def used() -> Iterator[SnippetHost]:
    host = SnippetHost()
    yield host
    host.close()


@pytest.fixture
def host(used: SnippetHost) -> SnippetHost:
    """Return a host whose workers several tests share, unless a call has ended them."""
    used.limits = SnippetLimits(seconds=1, memory_bytes=1 << 30)
    return used


async def twice(value: Any) -> Any:
    await anyio.sleep(0.05)
    return value * 2


FORGER = """
import os, sys
def forge(*messages):
    for number in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("pipe:"):
                os.write(number, "".join(each.replace("MINE", str(own())) + "\\n" for each in messages).encode())
        except OSError:
            pass
def own():
    import gc
    return next(each._call for each in gc.get_objects() if type(each).__name__ == "_Worker")
def hang():
    while True: pass
async def f(model, value):
    if value:
        return await model.ask(await model.ask(value))
"""


async def outcomes(host: SnippetHost, body: str) -> tuple[Any, list[Any]]:
    """Return the outcomes of a forging call and of other calls on its worker."""
    snippet = Snippet(FORGER + indent(dedent(body), "    "), "f", "solver.py")

    async def one(value: int) -> Any:
        try:
            return await host.call(snippet, Remote(), value, callbacks={"ask": twice})
        except SnippetError as error:
            return str(error)

    await one(1)
    bad, *good = await asyncio.gather(one(0), *map(one, range(1, 4)))
    return bad, good


@pytest.mark.parametrize(
    "body",
    [
        "forge('[\"ready\"]')",
        "forge('[\"value\", 1e999, 1]')",
        "forge('[\"value\", 999999, 1]')",
        "forge('[\"call\", MINE, ' + '9' * 5000 + ', \"ask\", [], {}]')",
        'forge(\'["call", MINE, 77, "no such", [], {}]\')',
        'forge(\'["call", MINE, 77, "ask", {}, []]\')',
        "forge('[\"error\", MINE, 3, {}]')",
        "forge('[' * 100000)",
        "forge('nonsense', '')",
        "forge('[\"value\", MINE, 1]', '[\"value\", MINE, 2]')",
    ],
    ids=[
        *("ready", "not finite", "other call", "large number", "unknown function", "wrong arguments"),
        *("wrong error", "deep", "not JSON", "two values"),
    ],
)
def test_forged_line_fails_only_its_call(host: SnippetHost, body: str) -> None:
    bad, good = asyncio.run(outcomes(host, body))
    assert bad == "solver.py: wrote other data than its answer into the pipe for answers" or bad == 1
    assert good == [4 * value for value in range(1, 4)]


@pytest.mark.parametrize(
    "body",
    [
        "forge('[\"drop\", MINE, 77]')\nhang()",
        'forge(\'["call", MINE, 77, "ask", [1], {}]\')\nhang()',
    ],
    ids=["drop", "call"],
)
def test_forged_line_does_not_stop_the_time_limit(host: SnippetHost, body: str) -> None:
    bad, good = asyncio.run(outcomes(host, body))
    assert bad == "solver.py: took longer than 1 s and was stopped"
    assert good == [4 * value for value in range(1, 4)]


def test_process_limit_applies_to_calls_with_callbacks(host: SnippetHost) -> None:
    body = """
        import time
        for _ in range(150):
            if os.fork() == 0:
                time.sleep(60)
        time.sleep(60)
    """
    host.limits = SnippetLimits(seconds=20)
    bad, good = asyncio.run(outcomes(host, body))
    assert bad == "solver.py: started more than 128 processes and was stopped"
    assert good == [4 * value for value in range(1, 4)]


def test_callback_with_wrong_arguments_raises_in_the_snippet(host: SnippetHost) -> None:
    bad, _ = asyncio.run(outcomes(host, "await model.ask(1, 2)"))
    assert "ask: too many positional arguments (line" in bad


@pytest.mark.parametrize("with_callbacks", [True, False])
def test_too_large_reply_is_an_error_with_a_fix(
    host: SnippetHost, monkeypatch: pytest.MonkeyPatch, with_callbacks: bool
) -> None:
    monkeypatch.setattr(protocol, "LARGEST_REPLY", 1_000_000)
    monkeypatch.setattr(protocol, "MOST_VALUES", 10_000)
    host.limits = SnippetLimits(seconds=20)
    callbacks = {"ask": twice} if with_callbacks else None

    def problem(source: str) -> str:
        with pytest.raises(SnippetError) as caught:
            asyncio.run(host.call(Snippet(source, "f", "s.py"), callbacks=callbacks))
        return str(caught.value)

    advice = "of JSON; return only the required data, such as counts or the samples that differ"
    assert problem("def f(): return 'x' * 5_000_000") == f"s.py: returned more than 1,000,000 bytes {advice}"
    assert problem("def f(): return [[]] * 20_000") == f"s.py: returned more than 10,000 values {advice}"
    assert "nested too deeply" in problem(
        "def f():\n    x = []\n    for _ in range(100_000): x = [x]\n    return x"
    )


def test_internal_error_fails_only_its_call(host: SnippetHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(self: Any, lines: Any) -> None:
        raise ZeroDivisionError("oh")

    with monkeypatch.context() as patched:
        patched.setattr(channel._Call, "_hear", fault)
        with pytest.raises(ZeroDivisionError):
            asyncio.run(host.call(Snippet("def f(): pass", "f", "s"), callbacks={}))
    assert asyncio.run(host.call(Snippet("def f(): return 1", "f", "s"), callbacks={})) == 1


# Any content of the pipe

NUMBERS: st.SearchStrategy[Any] = st.sampled_from(
    [0, 0, 0, 1, -1, 2**53, 10**30, True, None, 0.0, "0", [], 1e999]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
MESSAGES = st.one_of(
    st.just(["ready"]),
    st.tuples(st.sampled_from(["ready", "value", "error", "call", "drop", "x"]), NUMBERS, JSON),
    st.tuples(st.just("error"), NUMBERS, st.text(max_size=3), NUMBERS),
    st.tuples(
        st.just("call"),
        NUMBERS,
        NUMBERS,
        st.sampled_from(["ask", "x"]),
        st.lists(JSON, max_size=1),
        st.just({}),
    ),
    JSON,
)
LINES = st.one_of(MESSAGES.map(lambda each: json.dumps(each).encode()), st.binary(max_size=20))


class PipeWorker(channel.Channel):
    """Replacement for a worker process that writes the given lines and then stays silent or ends."""

    given: tuple[bytes, ...] = ()
    stays = False
    requests = answers = -1
    end: Any = None

    def __init__(self, limits: SnippetLimits):
        self.process = self  # type: ignore[assignment]
        self.end = End(self)
        theirs, self.requests = os.pipe()
        self.answers, writing = os.pipe()
        self.open = [theirs, self.requests, self.answers, writing]
        os.write(writing, b"".join(each + b"\n" for each in self.given))
        if not self.stays:
            self.open.remove(writing)
            os.close(writing)
        self.prepare()

    def poll(self) -> int | None:
        return None if self.stays else 0

    def kill(self) -> None:
        pass

    def multiplies(self) -> bool:
        return False

    def cause_of_end(self) -> str:
        return "exit code 0"


class End:
    """Replacement for the finalizer of a worker."""

    alive = True

    def __init__(self, worker: PipeWorker):
        self._worker = worker

    def __call__(self) -> None:
        while self._worker.open:
            os.close(self._worker.open.pop())


@given(st.lists(LINES, max_size=6), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_call_ends_for_any_worker_output(
    monkeypatch: pytest.MonkeyPatch, said: list[bytes], begins: bool, stays: bool
) -> None:
    monkeypatch.setattr("aigo_bridge.snippets.host.Channel", PipeWorker)
    monkeypatch.setattr(channel, "STARTUP", 0.01)
    monkeypatch.setattr(channel, "GLANCE", 0.005)
    monkeypatch.setattr(PipeWorker, "given", (*([b'["ready"]'] * begins), *said))
    monkeypatch.setattr(PipeWorker, "stays", stays)
    host = SnippetHost(SnippetLimits(seconds=0.01))
    raised: list[Any] = []
    hook, threading.excepthook = threading.excepthook, raised.append

    async def ask(*args: Any) -> Any:
        return None

    async def main() -> None:
        with anyio.fail_after(20), suppress(SnippetError):
            await host.call(Snippet("", "f", "s"), callbacks={"ask": ask})

    try:
        asyncio.run(main())
        host.close()
    finally:
        threading.excepthook = hook
    assert raised == []


@given(LINES | st.binary(max_size=200))
def test_any_line_is_read_or_rejected(line: bytes) -> None:
    with suppress(LineError, TooLargeReplyError):
        read_line(line)
