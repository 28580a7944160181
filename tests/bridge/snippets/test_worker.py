"""Snippets in their worker process: abilities and failures."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest

from aigo_bridge.dtypes import ChatCompletionModelOutput, SolverTrace, Trace
from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets import Snippet, SnippetHost, SnippetLimits


def snippet(source: str) -> Snippet:
    return Snippet(dedent(source), "f", "scorer 'mine'")


def call(host: SnippetHost, source: str, *args: Any) -> Any:
    return host.call_blocking(snippet(source), args, {})


@pytest.fixture(scope="module")
def shared() -> Iterator[SnippetHost]:
    """Return a host for snippets that leave the worker alive."""
    host = SnippetHost(SnippetLimits(seconds=20))
    yield host
    host.close()


@pytest.fixture(scope="module")
def used() -> Iterator[SnippetHost]:
    host = SnippetHost()
    yield host
    host.close()


@pytest.fixture
def host(used: SnippetHost) -> SnippetHost:
    """Return a host for snippets that may end the worker. Several tests share its worker."""
    used.limits = SnippetLimits(seconds=20, memory_bytes=1 << 30)
    return used


def impatient(host: SnippetHost) -> None:
    """Limit calls to one second after the worker has started."""
    assert call(host, "def f(): return 1") == 1
    host.limits = SnippetLimits(seconds=1, memory_bytes=1 << 30)


def test_sync_and_async_functions_are_called(shared: SnippetHost) -> None:
    assert call(shared, "def f(a, b): return {'sum': a + b}", 1, 2) == {"sum": 3}
    source = """
        import asyncio
        async def f(a):
            await asyncio.sleep(0.01)
            return a * 2
    """
    assert call(shared, source, "ab") == "abab"


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1.5, 10**30, "", "ä\u2028\n\x00🧙", [], [[1], {}], {"a": {"b": [None]}}, "\ud800"],
)
def test_json_values_are_sent_and_returned_unchanged(shared: SnippetHost, value: Any) -> None:
    assert call(shared, "def f(x): return x", value) == value


def test_nan_is_sent_and_returned(shared: SnippetHost) -> None:
    assert math.isnan(call(shared, "def f(x):\n assert x != x\n return x", math.nan))


def test_core_types_keep_their_types(shared: SnippetHost) -> None:
    output = ChatCompletionModelOutput.model_validate(
        {"choices": [{"message": {"role": "assistant", "content": "hi"}}]}
    )
    trace = SolverTrace(trace=Trace(items=[]), raw_outputs=[output], direct_ios=[])
    trace.append_user_message("hello")
    source = """
        from latticeflow.core.dtypes import SolverTrace
        def f(output):
            assert isinstance(output, SolverTrace)
            return [output.trace.get_last_user_text(), output.output.choices[0].message.content]
    """
    assert call(shared, source, trace) == ["hello", "hi"]


def test_printed_output_does_not_change_the_answers(shared: SnippetHost) -> None:
    source = """
        import os, sys
        print("at import")
        def f():
            print('{"value": "forged"}')
            sys.stderr.write("noise")
            os.write(1, b'{"value": "forged"}\\n')
            os.system("echo noise")
            return "real"
    """
    assert [call(shared, source) for _ in range(3)] == ["real"] * 3


def test_globals_are_kept_between_calls_of_a_worker(shared: SnippetHost) -> None:
    source = "seen = []\ndef f(x):\n    seen.append(x)\n    return list(seen)"
    assert [call(shared, source, x) for x in (1, 2)] == [[1], [1, 2]]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "def f():\n    x = {}\n    return x['a']",
            "scorer 'mine': KeyError: 'a' (line 3, in f: `return x['a']`)",
        ),
        ("def f():\n    import json\n    json.loads('{')\n", "(line 3, in f: `json.loads('{')`)"),
        ("def f(:", "scorer 'mine': SyntaxError: invalid syntax (line 1)"),
        ("x = 1 / 0\ndef f(): pass", "ZeroDivisionError: division by zero (line 1, in <module>"),
        ("def g(): pass\nclass C: pass", "must define a function `f`; it defines g"),
        ("f = 4", "must define a function `f`; it defines none"),
        ("def f(a): return a", "TypeError: f() missing 1 required positional argument: 'a'"),
        ("import not_there_at_all\ndef f(): pass", "No module named 'not_there_at_all' (line 1"),
        ("import sys\ndef f(): sys.exit(0)", "SystemExit: 0 (line 2, in f"),
        ("import sys\nasync def f(): sys.exit('x')", "SystemExit: x (line 2, in f"),
        ("def f(): raise KeyboardInterrupt", "KeyboardInterrupt (line 1, in f"),
        ("def f(): return f()", "recursed too deeply"),
        ("def f(): return {1, 2}", "returned a set, which is not JSON: {1, 2}"),
        ("def f(): return b'x'", "returned a bytes, which is not JSON"),
        ("def f(): return {(1, 2): 3}", "keys must be str"),
        ("def f():\n    x = []\n    x.append(x)\n    return x", "Circular reference"),
        ("def f():\n    x = []\n    for _ in range(100000): x = [x]\n    return x", "nested too deeply"),
    ],
)
def test_error_is_reported_with_the_snippet_line(shared: SnippetHost, source: str, message: str) -> None:
    with pytest.raises(SnippetError) as caught:
        call(shared, source)
    assert message in str(caught.value)
    assert call(shared, "def f(): return 'still there'") == "still there"


def test_huge_error_message_is_shortened(shared: SnippetHost) -> None:
    with pytest.raises(SnippetError) as caught:
        call(shared, "def f(): raise ValueError('x' * 10_000_000)")
    assert len(str(caught.value)) < 20_000


def test_unserializable_input_is_an_error(shared: SnippetHost) -> None:
    with pytest.raises(SnippetError, match="its input cannot be sent as JSON: Object of type object"):
        call(shared, "def f(x): pass", object())


def test_numpy_numbers_are_converted(shared: SnippetHost) -> None:
    source = """
        import numpy as np
        def f():
            return {"mean": np.float64(0.5), "n": np.int64(3), "ok": np.bool_(True), "all": np.arange(3)}
    """
    assert call(shared, source) == {"mean": 0.5, "n": 3, "ok": True, "all": [0, 1, 2]}


def test_large_values_are_sent_in_both_directions(shared: SnippetHost) -> None:
    text = "ä" * 3_000_000
    assert call(shared, "def f(x): return x", text) == text


def test_an_answer_beyond_the_limit_is_refused(host: SnippetHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aigo_bridge.snippets.protocol.LARGEST_REPLY", 1_000_000)
    with pytest.raises(SnippetError, match="returned more than 1,000,000 bytes of JSON"):
        call(host, "def f(): return 'x' * 5_000_000")
    assert call(host, "def f(): return 1") == 1


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    while True: pass",
        "import time\ndef f(): time.sleep(3600)",
        "import asyncio\nasync def f(): await asyncio.Event().wait()",
        "import signal, time\ndef f():\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(3600)",
        "while True: pass",
    ],
    ids=["loop", "sleep", "wait", "signal ignored", "loop in the module"],
)
def test_an_endless_snippet_is_stopped_in_time(host: SnippetHost, source: str) -> None:
    impatient(host)
    start = time.monotonic()
    with pytest.raises(SnippetError, match="scorer 'mine': took longer than 1 s and was stopped"):
        call(host, source)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os\ndef f(): os._exit(7)", "its process ended without an answer (exit code 7)"),
        ("import ctypes\ndef f(): ctypes.string_at(0)", "killed by SIGSEGV"),
        ("import os\ndef f(): os.abort()", "killed by SIGABRT"),
        ("import os\ndef f(): os.kill(os.getpid(), 9)", "killed by SIGKILL, perhaps out of memory"),
        ("import os\ndef f(): os.kill(os.getpid(), 40)", "killed by Real-time signal"),
        ("def f(): return len(bytearray(1 << 34))", "ran out of memory"),
        ("def f():\n    x = []\n    while True: x.append(bytearray(1 << 26))", "ran out of memory"),
    ],
    ids=["exit", "segmentation fault", "abort", "kill", "unnamed signal", "one large object", "many objects"],
)
def test_crash_fails_its_call_and_the_next_call_works(host: SnippetHost, source: str, message: str) -> None:
    with pytest.raises(SnippetError) as caught:
        call(host, source)
    assert message in str(caught.value)
    assert call(host, "def f(x): return x", "alive") == "alive"


def test_forked_process_does_not_answer_twice(host: SnippetHost) -> None:
    forking = "import os\ndef f(x):\n    os.fork()\n    return x"
    for number in range(10):
        assert call(host, forking, number) == number
        assert call(host, "def f(x): return x", -number) == -number


def test_crash_is_detected_while_a_child_process_is_alive(host: SnippetHost) -> None:
    source = """
        import os, time
        def f():
            child = os.fork()
            if not child:
                time.sleep(3600)
            os._exit(1)
    """
    worker = call(host, "import os\ndef f(): return os.getpid()")
    start = time.monotonic()
    with pytest.raises(SnippetError, match="exit code 1"):
        call(host, source)
    assert time.monotonic() - start < 10
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    assert all(gone(number) for number in numbers if session_of(number) == worker)


def session_of(process: int) -> int | None:
    try:
        return os.getsid(process)
    except ProcessLookupError:
        return None


def test_forged_answer_is_an_error(host: SnippetHost) -> None:
    source = """
        import os
        def f():
            for descriptor in range(3, 20):
                try:
                    os.write(descriptor, b'["value", 1, "forged"]\\n')
                except OSError:
                    pass
            return "real"
    """
    with pytest.raises(SnippetError, match="wrote other data than its answer"):
        call(host, source)
    assert call(host, "def f(): return 'next'") == "next"


def gone(process: int) -> bool:
    """Return whether a process has ended or is a zombie."""
    for _ in range(100):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_closing_the_host_removes_process_and_folder(host: SnippetHost) -> None:
    process, folder = call(host, "import os\ndef f(): return [os.getpid(), os.getcwd()]")
    assert Path(folder).is_dir()
    host.close()
    assert not Path(f"/proc/{process}").exists()
    assert not Path(folder).exists()
    assert call(host, "import os\ndef f(): return os.getpid()") != process


def test_garbage_collected_host_ends_its_worker() -> None:
    process = SnippetHost().call_blocking(snippet("import os\ndef f(): return os.getpid()"), (), {})
    assert gone(process)


def test_a_worker_that_died_between_calls_is_replaced(host: SnippetHost) -> None:
    process = call(host, "import os\ndef f(): return os.getpid()")
    os.kill(process, signal.SIGKILL)
    # A zombie whose other threads are still ending cannot be waited for yet, not even by its parent.
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert call(host, "def f(): return 1") == 1


def test_worker_limit_applies_to_all_hosts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle workers are stopped for busy hosts, because a run may have a hundred specifications with code."""
    monkeypatch.setattr("aigo_bridge.snippets.host.MOST_WORKERS", 2)
    hosts = [SnippetHost(SnippetLimits(seconds=20)) for _ in range(4)]
    try:
        source = "import os\ndef f(): return os.getpid()"
        processes = [call(host, source) for host in hosts]
        alive = [process for process in processes if Path(f"/proc/{process}").exists()]
        assert len(alive) <= 2
        assert call(hosts[0], source) not in processes  # a host whose worker was stopped gets a new one
    finally:
        for host in hosts:
            host.close()


def test_two_hosts_work_concurrently() -> None:
    hosts = [SnippetHost(SnippetLimits(seconds=20)) for _ in range(2)]
    found: dict[int, list[int]] = {}

    def work(number: int) -> None:
        source = "def f(x): return x"
        found[number] = [call(hosts[number], source, number * 1000 + i) for i in range(50)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in hosts:
        one.close()
    assert found == {0: list(range(50)), 1: list(range(1000, 1050))}


def test_one_host_serves_many_threads(shared: SnippetHost) -> None:
    found: list[tuple[int, int]] = []

    def work(number: int) -> None:
        asked = range(number * 100, number * 100 + 20)
        found.extend((each, call(shared, "def f(x): return x", each)) for each in asked)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 120
    assert all(asked == answered for asked, answered in found)


def test_calls_work_from_asyncio(shared: SnippetHost) -> None:
    async def main() -> list[Any]:
        calls = [shared.call(snippet("def f(x): return x"), i) for i in range(60)]
        return await asyncio.gather(*calls)

    assert asyncio.run(main()) == list(range(60))


def test_calls_work_from_trio(shared: SnippetHost) -> None:
    async def main() -> Any:
        return await shared.call(snippet("async def f(x): return x"), "trio")

    assert anyio.run(main, backend="trio") == "trio"


def test_a_cancelled_call_does_not_wait_for_the_snippet(host: SnippetHost) -> None:
    impatient(host)

    async def main() -> float:
        start = time.monotonic()
        with anyio.move_on_after(0.2):
            await host.call(snippet("import time\ndef f(): time.sleep(3600)"))
        return time.monotonic() - start

    assert anyio.run(main) < 0.9
    assert call(host, "def f(): return 'after'") == "after"


def test_calls_work_with_many_open_files_in_the_runner(host: SnippetHost) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.fail("the machine must allow 2048 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    host.close()  # the next worker starts with these files open
    try:
        assert call(host, "def f(): return 1") == 1
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
