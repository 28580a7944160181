"""Log imports on the workers of a cluster, one call at a time per worker, so that a large log does not delay
others.

If a worker is lost, another one repeats its call. A call that crashes several workers is given up, without an
effect on other calls.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import EngineError
from aigo_bridge.redaction.secrets import environment_secrets, learn_environment, redact
from aigo_bridge.results.internal_errors import explained
from aigo_bridge.version import __version__

MOST_LOSSES = 3
"""Maximum number of workers that one call may crash."""

_OF_STORAGES = ("AWS_", "AZURE_", "GOOGLE_", "GCSFS_", "STORAGE_EMULATOR_HOST", "HF_", "AIGO_BRIDGE_")
"""Prefixes of environment variables for storage access and for aigo-bridge."""


class Importer:
    """Ray actor that makes calls in a separate process."""

    def begin(self, version: str, folder: str, environment: Mapping[str, str]) -> None:
        """Prepare the worker for its calls.

        Args:
            version: aigo-bridge release of the driver.
            folder: working directory of the driver.
            environment: variables of the driver with secrets or storage settings. Ray does not store
                arguments of this call.
        """
        os.environ.update(environment)
        learn_environment()
        self._problem: str | None = None
        if version != __version__:
            self._problem = (
                f"a worker has aigo-bridge {__version__}, expected {version} as the driver: all nodes need"
                " the same release"
            )
            return
        try:
            os.chdir(folder)
        except OSError as error:
            self._problem = (
                f"a worker does not see the folder {folder!r} ({error.strerror}): all nodes need the same"
                " files, in a shared folder"
            )

    def run(self, work: Callable[..., Any], call: tuple[object, ...]) -> tuple[str | None, Any]:
        """Make a call. Return an error message or the result."""
        if self._problem is not None:
            return self._problem, None
        try:
            return None, work(*call)
        except Exception as error:  # noqa: BLE001  # the driver reports every error of a worker
            return redact(explained(error)), None


def hand_out_on(ray: Any, note: Callable[[str], None]) -> Callable[..., Iterator[Any]]:
    """Return a function that distributes calls to cluster workers, like `process.pool.each_in_processes` on
    one machine.

    Args:
        ray: connected Ray module.
        note: callback for messages about lost workers.
    """

    def hand_out(
        work: Callable[..., Any], calls: Sequence[tuple[object, ...]], workers: int
    ) -> Iterator[Any]:
        return _Calls(ray, work, calls, workers, note).results()

    return hand_out


@dataclass
class _Calls:
    ray: Any
    work: Callable[..., Any]
    calls: Sequence[tuple[object, ...]]
    most: int
    note: Callable[[str], None]
    idle: list[Any] = field(default_factory=list)
    busy: dict[Any, tuple[Any, int]] = field(default_factory=dict)
    """Worker and call number by the pending Ray result."""
    losses: Counter[int] = field(default_factory=Counter)

    def results(self) -> Iterator[Any]:
        """Yield the results in the order of the calls.

        Raises:
            EngineError: a worker cannot make any calls.
        """
        queue, ready = deque(range(len(self.calls))), dict[int, Any]()
        try:
            for number in range(len(self.calls)):
                while number not in ready:
                    while queue and len(self.busy) < self.most:
                        self._send(queue.popleft())
                    ended, _ = self.ray.wait(list(self.busy))
                    for promise in ended:
                        self._receive(promise, queue, ready)
                yield ready.pop(number)
        finally:
            for worker in [*self.idle, *(worker for worker, _ in self.busy.values())]:
                with suppress(Exception):
                    self.ray.kill(worker)

    def _send(self, number: int) -> None:
        worker = self.idle.pop() if self.idle else self._worker()
        self.busy[worker.run.remote(self.work, self.calls[number])] = worker, number

    def _worker(self) -> Any:
        worker = self.ray.remote(num_cpus=1, max_restarts=0)(Importer).remote()
        worker.begin.remote(__version__, os.getcwd(), _environment())  # noqa: PTH109  # text for another machine
        return worker

    def _receive(self, promise: Any, queue: deque[int], ready: dict[int, Any]) -> None:
        from ray.exceptions import RayError

        worker, number = self.busy.pop(promise)
        try:
            problem, result = self.ray.get(promise)
        except RayError:
            with suppress(Exception):
                self.ray.kill(worker)  # an unreachable worker would otherwise continue
            self.losses[number] += 1
            if self.losses[number] < MOST_LOSSES:
                self.note("a worker was lost; another worker continues its import")
                queue.appendleft(number)
            else:
                ready[number] = MemoryError("each worker that received it was lost")
            return
        self.idle.append(worker)
        if problem is not None:
            raise EngineError(problem, code=Code.FAILED_ENGINE)
        ready[number] = result


def _environment() -> dict[str, str]:
    """Return the variables that workers need: secrets known to the redactor, and storage settings."""
    secrets = set(environment_secrets(os.environ).values())
    return {
        name: value for name, value in os.environ.items() if name in secrets or name.startswith(_OF_STORAGES)
    }
