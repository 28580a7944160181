"""Client of the worker processes that read files. It sends one request at a time and stops slow workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.errors import Issue, issue_from

DEADLINE = 20.0
"""Maximum number of seconds for an answer, including the start of the process."""
GRACE = 2.0
"""Additional seconds for an answer after its request was cancelled."""
LONGEST_ANSWER = 64 * 2**20
"""Maximum size of an answer in bytes."""

Texts = Mapping[str, str]
"""Texts open in the editor, by the real path of their file."""


class AnalysisStoppedError(Exception):
    """Missing answer: the process was stopped or cannot be started."""


class Process:
    """One worker process. It is started at the first request, and again after it was stopped."""

    def __init__(self, folder: Path, deadline: float = DEADLINE):
        self._folder = folder
        self._deadline = deadline
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, **question: Any) -> Any:
        """Return the answer to a request.

        Cancelling a waiting request drops it. Cancelling a running request leaves it `GRACE` seconds, and
        then the process is stopped.

        Raises:
            StoppedError: the worker did not answer.
        """
        async with self._lock:
            exchange = asyncio.create_task(self._exchange(question))
            try:
                return await asyncio.wait_for(asyncio.shield(exchange), self._deadline)
            except asyncio.CancelledError:
                await self._let_end(exchange, GRACE)
                raise
            except TimeoutError as error:
                await self._let_end(exchange, 0)
                raise AnalysisStoppedError(f"it took more than {self._deadline:g} s") from error
            except (OSError, ValueError) as error:
                await self.stop()
                raise AnalysisStoppedError(str(error)) from error

    async def _let_end(self, exchange: asyncio.Task[Any], grace: float) -> None:
        """Keep the lock until the process is idle again or has ended."""
        waiting = asyncio.create_task(self._end(exchange, grace))
        while not waiting.done():  # a second cancellation must not leave a process running
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(waiting)

    async def _end(self, exchange: asyncio.Task[Any], grace: float) -> None:
        done, _ = await asyncio.wait({exchange}, timeout=grace)
        while not done:
            await self.stop()  # the closed pipe ends the exchange, unless the process is just starting
            done, _ = await asyncio.wait({exchange}, timeout=1)
        exchange.exception()  # the answer is not needed any more, so the error is ignored

    async def _exchange(self, question: Mapping[str, Any]) -> Any:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(question).encode() + b"\n")
        await process.stdin.drain()
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise OSError("the process that reads files has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise AnalysisStoppedError(answer["error"])
        return answer["result"]

    async def _start(self) -> asyncio.subprocess.Process:
        # Import packages from the same locations as this process, never from the working folder.
        paths = [str(Path(path).absolute()) for path in sys.path if path]
        start = f"import sys; sys.path[:] = {paths!r}; from {__package__}.worker import main; main()"
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-X", "utf8", "-c", start),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=self._folder,
            limit=LONGEST_ANSWER,
        )

    async def stop(self) -> None:
        """Stop the process. The next request starts a new one."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@dataclass(frozen=True)
class Analysis:
    """Analysis of files by two processes: a quick one, and one that reads rows and renders prompts."""

    quick: Process
    thorough: Process

    @classmethod
    def of(cls, folder: Path) -> Analysis:
        """Return the analysis for a folder."""
        return cls(Process(folder), Process(folder))

    async def start(self) -> None:
        """Start both processes before the first request."""
        for process in (self.quick, self.thorough):
            with contextlib.suppress(AnalysisStoppedError):
                await process.ask(job="ready", file="", texts={})

    async def problems(self, file: Path, texts: Texts, *, planned: bool) -> list[Issue]:
        """Return the issues that `validate` reports for a file. Rows are checked only with `planned`.

        Raises:
            StoppedError: the check took too long.
        """
        process = self.thorough if planned else self.quick
        issues = await process.ask(job="problems", file=str(file), texts=texts, planned=planned)
        return list(map(issue_from, issues))

    async def columns(self, file: Path, texts: Texts, keys: Sequence[str]) -> dict[str, Any]:
        """Return the result of `reading.columns`, or an empty one without an answer."""
        try:
            answer = await self.thorough.ask(job="columns", file=str(file), texts=texts, keys=list(keys))
        except AnalysisStoppedError:
            return {}
        return dict(answer)

    async def prompt(self, file: Path, texts: Texts, row: int) -> str:
        """Return the result of `reading.prompt`."""
        try:
            answer = await self.thorough.ask(job="prompt", file=str(file), texts=texts, row=row)
        except AnalysisStoppedError as error:
            return f"The prompt cannot be shown: {error}"
        return str(answer)

    async def upgraded(self, file: Path, texts: Texts) -> str | None:
        """Return the result of `reading.upgraded`."""
        try:
            answer = await self.quick.ask(job="upgraded", file=str(file), texts=texts)
        except AnalysisStoppedError:
            return None
        return None if answer is None else str(answer)

    async def stop(self) -> None:
        """Stop both processes."""
        await self.quick.stop()
        await self.thorough.stop()
