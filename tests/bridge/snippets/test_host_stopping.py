"""Cancelled calls are stopped, slow snippets do not delay others, and no process outlives the runner."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from aigo_bridge.codes import Code
from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets import Snippet, SnippetHost, SnippetLimits
from aigo_bridge.snippets.host import MOST_WORKERS

QUICK = Snippet("def f(x): return x", "f", "quick")
PID = Snippet("import os\ndef f(): return os.getpid()", "f", "pid")


MARK = "import os, subprocess\ndef f():\n    open('mark', 'w').write(str(os.getpid()))\n    "
"""Says its process's number in a file of its folder, the only place that it can write to."""

LOOPING = Snippet(MARK + "while True: pass", "f", "looping")
"""Never comes back."""


@pytest.fixture(autouse=True)
def _folders_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the folders of workers, also those of child processes, in `tmp_path`."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture
def host() -> Iterator[SnippetHost]:
    host = SnippetHost(SnippetLimits(seconds=60))
    yield host
    host.close()


def number_in(folder: Path) -> int:
    """Return the process ID that the snippet wrote."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for mark in folder.glob("aigo-snippet-*/mark"):
            with suppress(FileNotFoundError, ValueError):
                return int(mark.read_text())
        time.sleep(0.02)
    pytest.fail("the snippet did not begin")


def ended(process: int) -> bool:
    # Counts attempts instead of seconds, because the clock of a paused virtual machine jumps.
    for _ in range(500):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_a_cancelled_call_returns_immediately_and_its_snippet_is_killed(
    host: SnippetHost, tmp_path: Path
) -> None:
    numbers: list[int] = []

    async def main() -> float:
        async with anyio.create_task_group() as group:
            group.start_soon(host.call, LOOPING)
            numbers.append(await anyio.to_thread.run_sync(number_in, tmp_path))
            start = time.monotonic()
            group.cancel_scope.cancel()
        return time.monotonic() - start

    assert anyio.run(main) < 1
    assert ended(numbers[0])
    assert host.call_blocking(QUICK, (3,), {}) == 3


def test_queued_call_can_be_cancelled(host: SnippetHost) -> None:
    slow = Snippet("import time\ndef f(): time.sleep(50)", "f", "slow")

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(MOST_WORKERS + 30):
                group.start_soon(host.call, slow)
            await anyio.sleep(0.5)
            group.cancel_scope.cancel()

    start = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - start < 20
    assert host.call_blocking(QUICK, (4,), {}) == 4


def test_slow_snippet_does_not_delay_others(host: SnippetHost) -> None:
    slow = Snippet("import time\ndef f(): time.sleep(50)", "f", "slow")

    async def main() -> list[int]:
        async with anyio.create_task_group() as group:
            group.start_soon(host.call, slow)
            await anyio.sleep(0.1)
            found = [await host.call(QUICK, number) for number in range(20)]
            group.cancel_scope.cancel()
        return found

    start = time.monotonic()
    assert asyncio.run(main()) == list(range(20))
    assert time.monotonic() - start < 30


def test_quick_calls_share_one_worker(host: SnippetHost) -> None:
    async def main() -> set[int]:
        found: set[int] = set()

        async def one() -> None:
            found.add(await host.call(PID))

        await host.call(PID)
        async with anyio.create_task_group() as group:
            for _ in range(30):
                group.start_soon(one)
        return found

    assert len(asyncio.run(main())) <= MOST_WORKERS


def test_closing_the_host_stops_calls_in_progress(host: SnippetHost, tmp_path: Path) -> None:
    raised: list[SnippetError] = []

    def work() -> None:
        with pytest.raises(SnippetError, match="looping: was stopped, as its worker was closed") as caught:
            host.call_blocking(LOOPING, (), {})
        raised.append(caught.value)

    thread = threading.Thread(target=work)
    thread.start()
    process = number_in(tmp_path)
    host.close()
    thread.join(10)
    assert [error.code for error in raised] == [Code.STOPPED_SNIPPET]
    assert ended(process)


def test_cancelled_endless_call_with_callbacks_is_stopped(tmp_path: Path) -> None:
    host = SnippetHost(SnippetLimits(seconds=3600))
    numbers: list[int] = []

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: host.call(LOOPING, callbacks={}))
            numbers.append(await anyio.to_thread.run_sync(number_in, tmp_path))
            group.cancel_scope.cancel()
        with anyio.fail_after(20):
            assert await host.call(QUICK, 5, callbacks={}) == 5

    asyncio.run(main())
    assert ended(numbers[0])
    host.close()


def runner(folder: Path, body: str, call: str) -> tuple[subprocess.Popen[str], int]:
    """Start a process that calls a snippet; return it and the process ID of its worker."""
    source = f"""
        import asyncio
        from aigo_bridge.snippets import Snippet, SnippetHost
        snippet = Snippet({body!r}, "f", "looping")
        host = SnippetHost()
        {call}
    """
    process = subprocess.Popen(
        [sys.executable, "-c", dedent(source)], stderr=subprocess.PIPE, text=True, cwd=folder
    )
    return process, number_in(folder)


CALLS = ["asyncio.run(host.call(snippet))", "host.call_blocking(snippet, (), {})"]


@pytest.mark.parametrize("call", [*CALLS, "asyncio.run(host.call(snippet, callbacks={}))"])
def test_an_interrupted_runner_ends_immediately(tmp_path: Path, call: str) -> None:
    process, worker = runner(tmp_path, LOOPING.source, call)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert time.monotonic() - start < 5
    assert "KeyboardInterrupt" in said
    assert ended(worker)


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        # Holds the interpreter lock forever, so no other thread of that process can run.
        "import re; re.match('(a*)*b', 'a' * 64)",
        "subprocess.run(['sleep', '1000'])",
    ],
)
def test_a_killed_runner_leaves_no_orphan(tmp_path: Path, loop: str) -> None:
    process, worker = runner(tmp_path, MARK + loop, CALLS[0])
    session = [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and in_session(int(path.name), worker)
    ]
    process.kill()
    process.communicate(timeout=30)
    assert worker in session
    assert all(ended(each) for each in session)


def in_session(process: int, leader: int) -> bool:
    try:
        return os.getsid(process) == leader
    except ProcessLookupError:
        return False


@pytest.mark.parametrize("with_callbacks", [False, True])
def test_stopped_snippet_is_reported_with_its_file(with_callbacks: bool) -> None:
    snippet = Snippet("def f():\n    while True: pass\n", "f", "x_snippet").at(("t.yaml", 7))
    host = SnippetHost(SnippetLimits(seconds=0.5))
    try:
        with pytest.raises(SnippetError, match=r"^x_snippet \(t.yaml, line 7\): .* 0.5 s"):
            anyio.run(lambda: host.call(snippet, callbacks={} if with_callbacks else None))
    finally:
        host.close()
