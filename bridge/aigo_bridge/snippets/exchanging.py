"""A worker that takes one plain call at a time: the runner's side of its pipes."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets.process import MOST_PROCESSES, WorkerProcess, ready
from aigo_bridge.snippets.snippet import SnippetLimits

MAX_REPLY_BYTES = 512 * 1024 * 1024
"""Largest answer that is accepted from a worker."""

GLANCE = 0.2
"""Seconds after which a silent worker is looked at: has it ended, does it multiply."""


class PlainWorker(WorkerProcess):
    """A worker that takes one call at a time."""

    def __init__(self, limits: SnippetLimits):
        super().__init__("aigo_bridge.snippets.worker", limits.memory_bytes)

    @property
    def usable(self) -> bool:
        """Whether the process lives and has said nothing unasked (what it says next would be taken for an answer)."""
        return self.process.poll() is None and not ready(self.answers, select.POLLIN, 0)

    def exchange(self, number: int, request: bytes, label: str, seconds: float) -> dict[str, Any]:
        """Send one request and wait for its reply. After a failure the worker is of no more use.

        Raises:
            SnippetError: it gave no reply in time, or none that can be used.
        """
        deadline = time.monotonic() + seconds
        try:
            self._send(request, deadline)
            return _answer_to(number, self._receive(deadline))
        except TooLargeReplyError as error:
            raise SnippetError(f"{label}: returned more than {MAX_REPLY_BYTES:,} bytes of JSON") from error
        except TooManyProcessesError as error:
            raise SnippetError(
                f"{label}: started more than {MOST_PROCESSES} processes and was stopped"
            ) from error
        except TimeoutError as error:
            raise SnippetError(f"{label}: took longer than {seconds:g} s and was stopped") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SnippetError(
                f"{label}: wrote something else than its answer into the pipe for answers"
            ) from error
        except (OSError, EOFError) as error:
            cause = self.cause_of_end()
            raise SnippetError(f"{label}: its process ended without an answer ({cause})") from error

    def _send(self, data: bytes, deadline: float) -> None:
        """Write all of `data` without ever blocking for longer than the deadline."""
        descriptor = self.requests
        os.set_blocking(descriptor, False)
        view = memoryview(data)
        while view:
            if not ready(descriptor, select.POLLOUT, _remaining(deadline)):
                raise TimeoutError
            view = view[os.write(descriptor, view) :]

    def _receive(self, deadline: float) -> bytes:
        descriptor = self.answers
        parts: list[bytes] = []
        size = 0
        while True:
            # In slices: the end of the pipe does not show as long as a child of the snippet holds it open.
            while not ready(descriptor, select.POLLIN, min(_remaining(deadline), GLANCE)):
                if self.process.poll() is not None and not ready(descriptor, select.POLLIN, 0):
                    raise EOFError
                if self.multiplies():
                    raise TooManyProcessesError
                if not _remaining(deadline):
                    raise TimeoutError
            part = os.read(descriptor, 1 << 20)
            if not part:
                raise EOFError
            parts.append(part)
            size += len(part)
            if size > MAX_REPLY_BYTES:
                raise TooLargeReplyError
            if part.endswith(b"\n"):
                return b"".join(parts)


def _answer_to(number: int, line: bytes) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(line)
    if reply["id"] != number or not ("error" in reply or "value" in reply):
        raise ValueError("an answer to another request")
    return reply


class TooLargeReplyError(Exception):
    """A worker's answer is longer than `MAX_REPLY_BYTES`."""


class TooManyProcessesError(Exception):
    """A worker has started more than `MOST_PROCESSES` processes."""


def _remaining(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
