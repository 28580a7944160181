"""Snippets in the runner's own process: for debugging, with the same results."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from aigo_bridge.errors import BridgeError, SnippetError
from aigo_bridge.snippets import InOut, Remote, Snippet, SnippetHost


@pytest.fixture
def host() -> SnippetHost:
    return SnippetHost(in_process=True)


def test_snippet_runs_in_the_same_process(host: SnippetHost) -> None:
    assert (
        host.call_blocking(Snippet("import os\ndef f(): return os.getpid()", "f", "s"), (), {}) == os.getpid()
    )


def test_async_functions_and_callbacks_work(host: SnippetHost) -> None:
    async def ask(value: int) -> int:
        return value + 1

    async def main() -> Any:
        source = "async def f(model, kept):\n    kept.append(await model.ask(1))"
        return await host.call(Snippet(source, "f", "s"), Remote(), InOut([0]), callbacks={"ask": ask})

    assert asyncio.run(main()) == [0, 2]


def test_errors_match_a_worker() -> None:
    snippet = Snippet("def f():\n    return 1 / 0", "f", "scorer")
    messages = []
    for in_process in (True, False):
        host = SnippetHost(in_process=in_process)
        with pytest.raises(SnippetError) as caught:
            host.call_blocking(snippet, (), {})
        host.close()
        messages.append(str(caught.value))
    assert (
        messages[0]
        == messages[1]
        == "scorer: ZeroDivisionError: division by zero (line 2, in f: `return 1 / 0`)"
    )


def test_arguments_are_copies_as_in_a_worker(host: SnippetHost) -> None:
    value = [1]
    assert host.call_blocking(
        Snippet("def f(x):\n    x.append(2)\n    return x", "f", "s"), (value,), {}
    ) == [1, 2]
    assert value == [1]


def test_engine_exception_of_a_callback_is_raised_unchanged(host: SnippetHost) -> None:
    class LimitError(Exception):
        pass

    async def ask() -> None:
        raise LimitError

    async def refuse() -> None:
        raise BridgeError("no model")

    async def main(callback: Any) -> Any:
        snippet = Snippet("async def f(model): await model.ask()", "f", "s")
        return await host.call(snippet, Remote(), callbacks={"ask": callback})

    with pytest.raises(LimitError):
        asyncio.run(main(ask))
    with pytest.raises(SnippetError, match="no model"):
        asyncio.run(main(refuse))


@pytest.mark.parametrize("in_process", [True, False])
def test_errors_contain_file_and_line(in_process: bool) -> None:
    host = SnippetHost(in_process=in_process)
    snippet = Snippet("def f():\n    return 1 / 0", "f", "scorer", origin="tasks/scorer.py", first_line=11)
    with pytest.raises(SnippetError) as caught:
        host.call_blocking(snippet, (), {})
    assert str(caught.value) == (
        "scorer: ZeroDivisionError: division by zero (tasks/scorer.py, line 12, in f: `return 1 / 0`)"
    )
    broken = Snippet("def f(:", "f", "scorer", origin="tasks/scorer.py", first_line=11)
    with pytest.raises(SnippetError, match=r"SyntaxError: .* \(tasks/scorer.py, line 11\)"):
        host.call_blocking(broken, (), {})
    host.close()


def test_blocking_call_works_inside_a_running_event_loop(host: SnippetHost) -> None:
    """Engines compute metrics, and so run task code, inside their own event loop."""

    async def inside() -> Any:
        return host.call_blocking(Snippet("async def f(): return 3", "f", "s"), (), {})

    assert asyncio.run(inside()) == 3
