"""Snippets with callbacks: many wait concurrently, and each fails alone."""

from __future__ import annotations

import asyncio
import gc
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

from aigo_bridge.dtypes import ChatCompletionModelOutput, ModelResponse, SolverTrace, Trace
from aigo_bridge.errors import SampleError, SnippetError
from aigo_bridge.snippets import InOut, Remote, Snippet, SnippetHost, SnippetLimits
from aigo_bridge.snippets.process import WorkerProcess


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
def mortal(used: SnippetHost) -> SnippetHost:
    """Return a host for snippets that may end a worker. Several tests share its workers."""
    used.limits = SnippetLimits(seconds=20, memory_bytes=1 << 30)
    return used


@pytest.fixture
def host(mortal: SnippetHost) -> SnippetHost:
    """Return a host without a worker."""
    mortal.close()
    return mortal


class Asked:
    """Runner side of `model.ask`, which doubles its argument."""

    def __init__(self, seconds: float = 0.0):
        self.seconds = seconds
        self.questions: list[Any] = []
        self.at_once = 0
        self.most_at_once = 0

    async def __call__(self, value: Any) -> Any:
        self.questions.append(value)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await anyio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        return value * 2


async def call(host: SnippetHost, source: str, *args: Any, ask: Any = None) -> Any:
    snippet = Snippet(dedent(source), "f", "solver.py")
    return await host.call(snippet, Remote(), *args, callbacks={"ask": ask or Asked()})


async def outcome(host: SnippetHost, source: str, *args: Any, ask: Any = None) -> Any:
    try:
        return await call(host, source, *args, ask=ask)
    except SnippetError as error:
        return str(error)


TWICE = """
    async def f(model, value):
        return await model.ask(await model.ask(value))
"""


def test_snippet_receives_answers_of_its_callbacks(shared: SnippetHost) -> None:
    assert asyncio.run(call(shared, TWICE, 3)) == 12
    assert anyio.run(call, shared, TWICE, "ab", backend="trio") == "abababab"


def test_more_calls_than_workers_can_wait_for_callbacks(
    host: SnippetHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aigo_bridge.snippets.host.MOST_WORKERS", 2)

    async def main() -> list[Any]:
        return await asyncio.gather(*[call(host, TWICE, number, ask=ask) for number in range(3)])

    ask = Asked(1)
    assert asyncio.run(main()) == [4 * number for number in range(3)]
    assert ask.most_at_once > 2


def test_workers_of_calls_with_callbacks_are_reused(host: SnippetHost) -> None:
    """Two concurrent calls with plain calls between them never need more than two workers."""
    source = "import os\nasync def f(model): return [await model.ask(0), os.getpid()][1]"

    async def main() -> set[int]:
        processes = {await call(host, source) for _ in range(4)}
        for _ in range(2):
            processes |= set(await asyncio.gather(*[call(host, source, ask=Asked(0.5)) for _ in range(2)]))
            processes.add(await host.call(Snippet("import os\ndef f(): return os.getpid()", "f", "pid")))
        return processes

    assert len(asyncio.run(main())) <= 2


def test_attributes_of_a_remote_are_plain_values(shared: SnippetHost) -> None:
    async def main() -> Any:
        snippet = Snippet("def f(model): return [model.name, model.limits]", "f", "s")
        return await shared.call(snippet, Remote({"name": "m", "limits": {"n": 1}}), callbacks={})

    assert asyncio.run(main()) == ["m", {"n": 1}]


def test_core_types_keep_their_types_in_both_directions(shared: SnippetHost) -> None:
    async def respond(items: list[Any]) -> ModelResponse:
        assert [(item["type"], item["role"]) for item in items] == [("message", "user")]
        assert items[0]["content"][0]["type"] == "input_text"
        output = ChatCompletionModelOutput.model_validate(
            {"choices": [{"message": {"role": "assistant", "content": "hi"}}]}
        )
        return ModelResponse(raw_output=output, items=items)

    source = """
        from latticeflow.core.dtypes import ModelResponse, UserMessage
        async def f(model, trace):
            trace.append_user_message("hello")
            response = await model.ask(trace.items)
            assert isinstance(response, ModelResponse)
            trace.add_model_response(response)
    """
    trace = InOut(SolverTrace(trace=Trace(items=[]), raw_outputs=[], direct_ios=[]))
    returned = SolverTrace.model_validate(asyncio.run(call(shared, source, trace, ask=respond)))
    assert returned.trace.get_last_user_text() == "hello"
    assert isinstance(returned.raw_outputs[0], ChatCompletionModelOutput)


def test_callback_error_is_raised_in_the_snippet_which_may_continue(shared: SnippetHost) -> None:
    async def fail(value: Any) -> Any:
        raise SampleError("the model failed: no", stage="solver", kind="Http500")

    catching = """
        async def f(model, value):
            try:
                await model.ask(value)
            except Exception as error:
                return str(error)
    """
    assert asyncio.run(call(shared, catching, 1, ask=fail)) == "the model failed: no"
    with pytest.raises(SnippetError, match=r"the model failed: no \(line 3, in f") as caught:
        asyncio.run(call(shared, TWICE, 1, ask=fail))
    assert isinstance(caught.value.__cause__, SampleError)
    assert caught.value.__cause__.kind == "Http500"


def test_engine_exception_of_a_callback_is_not_seen_by_the_snippet(shared: SnippetHost) -> None:
    class LimitReached(Exception):  # noqa: N818
        pass

    async def fail(value: Any) -> Any:
        raise LimitReached

    source = """
        async def f(model, value):
            try:
                await model.ask(value)
            except BaseException:
                return "swallowed"
    """
    with pytest.raises(LimitReached):
        asyncio.run(call(shared, source, 1, ask=fail))
    assert asyncio.run(call(shared, TWICE, 1)) == 4


def test_waiting_for_a_callback_does_not_count_as_snippet_time(mortal: SnippetHost) -> None:
    assert asyncio.run(call(mortal, TWICE, 1)) == 4
    mortal.limits = SnippetLimits(seconds=0.8)
    assert asyncio.run(call(mortal, TWICE, 1, ask=Asked(0.7))) == 4


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "import asyncio; await asyncio.Event().wait()",
        "import asyncio; await asyncio.gather(model.ask(1), spin())",
        "import asyncio; asyncio.get_running_loop().call_soon(hang); await asyncio.sleep(0)",
        "import asyncio; asyncio.create_task(model.ask(1)); await asyncio.sleep(0); hang()",
    ],
    ids=["loop", "wait", "gather", "call_soon", "create_task"],
)
def test_only_the_endless_call_is_stopped(mortal: SnippetHost, body: str) -> None:
    source = f"""
        def hang():
            while True: pass
        async def spin(): hang()
        async def f(model, value):
            await model.ask(value)
            {body}
    """

    async def main() -> list[Any]:
        good = [outcome(mortal, TWICE, i, ask=Asked(0.3)) for i in range(2)]
        return await asyncio.gather(outcome(mortal, source, 0), *good)

    assert asyncio.run(call(mortal, TWICE, 1)) == 4
    mortal.limits = SnippetLimits(seconds=1)
    start = time.monotonic()
    bad, *good = asyncio.run(main())
    assert bad == "solver.py: took longer than 1 s and was stopped"
    assert good == [4 * i for i in range(2)]
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import os; os._exit(7)", "its process ended without an answer (exit code 7)"),
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
        (
            "import os; [os.write(n, b'[\"value\", 1, 2]\\n') for n in range(3, 9)]",
            "wrote other data than",
        ),
        ("return len(bytearray(1 << 34))", "ran out of memory"),
        ("return f", "returned a function, which is not JSON"),
        ("import sys; sys.exit(3)", "SystemExit: 3 (line 4, in f"),
        ("import asyncio; await asyncio.create_task(leave())", "SystemExit"),
    ],
    ids=["exit", "signal", "foreign line", "memory", "not JSON", "sys.exit", "SystemExit in a task"],
)
def test_crash_fails_only_its_call(mortal: SnippetHost, body: str, message: str) -> None:
    source = f"""
        async def f(model, value):
            await model.ask(value)
            {body}
        async def leave():
            raise SystemExit
    """
    ask = Asked(0.1)

    async def main() -> list[Any]:
        good = [outcome(mortal, TWICE, i, ask=ask) for i in range(4)]
        return await asyncio.gather(outcome(mortal, source, 1), *good)

    bad, *good = asyncio.run(main())
    assert bad.startswith("solver.py: ")
    assert message in bad
    assert good == [4 * i for i in range(4)]
    assert sorted(ask.questions) == sorted([*range(4), *[2 * i for i in range(4)]])


def test_killed_worker_fails_only_its_call_and_is_replaced(mortal: SnippetHost) -> None:
    killed: list[int] = []

    async def kill(process: int) -> int:
        killed.append(process)
        os.kill(process, signal.SIGKILL)
        return process

    source = "import os\nasync def f(model): return await model.ask(os.getpid())"
    assert "killed by SIGKILL" in asyncio.run(outcome(mortal, source, ask=kill))
    assert asyncio.run(call(mortal, source)) != 2 * killed[0]
    assert len(killed) == 1


def test_forked_process_neither_reads_requests_nor_answers(mortal: SnippetHost) -> None:
    source = """
        import os
        async def f(model, value):
            os.fork()
            return await model.ask(value)
    """

    async def main() -> list[Any]:
        return await asyncio.gather(*[call(mortal, source, i, ask=Asked(0.01)) for i in range(4)])

    assert asyncio.run(main()) == [2 * i for i in range(4)]
    assert asyncio.run(call(mortal, TWICE, 5)) == 20


def test_snippet_can_make_concurrent_calls_and_cancel_them(shared: SnippetHost) -> None:
    source = """
        import asyncio
        async def f(model, value):
            both = await asyncio.gather(model.ask(value), model.ask(value + 1))
            try:
                await asyncio.wait_for(model.ask(99), 0.05)
            except TimeoutError:
                return both
    """

    class Slow(Asked):
        cancelled = False

        async def __call__(self, value: Any) -> Any:
            if value == 99:
                try:
                    await anyio.sleep(3600)
                finally:
                    self.cancelled = True
            return await super().__call__(value)

    ask = Slow()
    assert asyncio.run(call(shared, source, 1, ask=ask)) == [2, 4]
    assert ask.cancelled


def test_idle_time_of_a_worker_does_not_count() -> None:
    """A worker that was idle for longer than the time limit of a call still works."""
    host = SnippetHost(SnippetLimits(seconds=3))
    try:
        assert asyncio.run(call(host, TWICE, 1)) == 4
        time.sleep(3.2)
        assert asyncio.run(call(host, TWICE, 2)) == 8
    finally:
        host.close()


def workers() -> set[WorkerProcess]:
    return {each for each in gc.get_objects() if issubclass(type(each), WorkerProcess) and each.end.alive}


def test_worker_removed_at_interpreter_exit_raises_no_thread_error() -> None:
    """Finalizers run in the main thread while the thread of the worker is still alive."""
    before = workers()
    host = SnippetHost(SnippetLimits(seconds=20))
    raised: list[object] = []
    hook, threading.excepthook = threading.excepthook, raised.append
    endless = (
        "import asyncio\nasync def f(model):\n    await model.ask(1)\n    await asyncio.Event().wait()\n"
    )
    ask = Asked()

    async def main() -> str:
        ended: list[str] = []

        async def one() -> None:
            ended.append(await outcome(host, endless, ask=ask))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            while not ask.questions:
                await anyio.sleep(0.01)
            (worker,) = workers() - before
            worker.end()
        return ended[0]

    try:
        assert asyncio.run(main()) == "solver.py: was stopped, as the process that runs it is ending"
    finally:
        threading.excepthook = hook
        host.close()
    assert raised == []


def test_background_tasks_end_with_their_call(shared: SnippetHost) -> None:
    source = """
        import asyncio
        left = []
        async def work():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                left.append("cancelled")
                raise
        async def f(model):
            if not left:
                left.append(asyncio.create_task(work()))
                await asyncio.sleep(0)
            return [str(entry) for entry in left[1:]]
    """
    assert asyncio.run(call(shared, source)) == []
    assert asyncio.run(call(shared, source)) == ["cancelled"]


def test_cancelled_call_cancels_its_callbacks_and_ends_its_worker(host: SnippetHost) -> None:
    source = """
        import os
        async def f(model, value):
            return await model.ask(os.getpid() if value is None else value)
    """
    ask = Asked(3600)

    async def main() -> int:
        process = await call(host, source, None)
        with anyio.move_on_after(0.3):
            await call(host, source, 7, ask=ask)
        assert ask.questions == [7]
        assert ask.at_once == 0
        return int(process // 2)

    process = asyncio.run(main())
    assert asyncio.run(call(host, source, 1)) == 2
    assert not Path(f"/proc/{process}").exists()


def test_callback_from_another_event_loop_is_rejected(shared: SnippetHost) -> None:
    source = """
        import asyncio
        async def f(model):
            await asyncio.to_thread(lambda: asyncio.run(model.ask(1)))
    """
    assert "must be awaited on the event loop that runs the snippet" in asyncio.run(outcome(shared, source))


def test_large_values_are_sent_in_both_directions(shared: SnippetHost) -> None:
    text = "ä" * 3_000_000
    assert asyncio.run(call(shared, "async def f(m, x): return await m.ask(x)", text)) == text * 2


def test_unserializable_input_is_an_error(shared: SnippetHost) -> None:
    with pytest.raises(SnippetError, match="its input cannot be sent as JSON"):
        asyncio.run(call(shared, TWICE, object()))


def test_two_event_loops_share_a_host(shared: SnippetHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aigo_bridge.snippets.host.MOST_WORKERS", 2)
    found: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        async def main() -> list[Any]:
            return await asyncio.gather(*[call(shared, TWICE, number * 100 + i) for i in range(20)])

        found[number] = asyncio.run(main())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: [4 * (n * 100 + i) for i in range(20)] for n in range(3)}


PID = "import os\nasync def f(model): return [os.getpid(), os.getcwd()]"


def test_closing_the_host_removes_process_and_folder(host: SnippetHost) -> None:
    process, folder = asyncio.run(call(host, PID))
    host.close()
    assert not Path(f"/proc/{process}").exists()
    assert not Path(folder).exists()
    assert asyncio.run(call(host, PID))[0] != process


def test_a_worker_that_died_between_calls_is_replaced(host: SnippetHost) -> None:
    process, _ = asyncio.run(call(host, PID))
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert asyncio.run(call(host, PID))[0] != process
    assert asyncio.run(call(host, TWICE, 1)) == 4


def test_worker_that_cannot_start_fails_the_call(host: SnippetHost, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", "/there/is/no/such/interpreter")
        assert "solver.py: cannot start a process for it" in asyncio.run(outcome(host, TWICE, 1))
    assert asyncio.run(call(host, TWICE, 1)) == 4


def test_closing_the_host_fails_calls_in_progress(host: SnippetHost) -> None:
    async def main() -> Any:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(outcome(host, TWICE, 1, ask=Asked(3600)))
            await asyncio.sleep(0.5)
            await asyncio.to_thread(host.close)
        return task.result()

    assert asyncio.run(main()) == "solver.py: was stopped, as its worker was closed"


def test_garbage_collected_host_ends_its_worker() -> None:
    process, _ = asyncio.run(call(SnippetHost(), PID))
    for _ in range(100):
        if not Path(f"/proc/{process}").exists():
            return
        time.sleep(0.05)
    pytest.fail("the worker lives on")


def test_keys_files_and_descriptors_of_the_runner_are_not_visible(
    host: SnippetHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-must-not-be-seen")
    source = """
        import os, stat, sys, resource
        async def f(model):
            return {
                "environment": dict(os.environ),
                "home": os.listdir(os.path.expanduser("~")),
                "modules": [name for name in sys.modules if name.startswith(("inspect_ai", "aigo_inspect"))],
                "limits": [resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_CORE)],
                "pipes": sum(map(_is_pipe, range(1024))),
            }
        def _is_pipe(descriptor):
            try:
                return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
            except OSError:
                return False
    """
    found = asyncio.run(call(host, source))
    assert "sk-this-must-not-be-seen" not in str(found)
    assert found["home"] == []
    assert found["modules"] == []
    assert found["limits"] == [[1 << 30, 1 << 30], [0, 0]]
    assert found["pipes"] == 3
