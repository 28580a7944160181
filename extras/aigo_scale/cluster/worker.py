"""Worker of a cluster: it plans the run once, then runs one shard after the other.

It is a Ray actor in a separate process.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aigo_bridge.access.display_paths import MIRRORS
from aigo_bridge.access.grants import granting
from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.protocol import Progress, RunSettings
from aigo_bridge.engine.registry import load_engine
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.evaluation.running import ReadyEvaluation, prepare
from aigo_bridge.evaluation.task import evaluations_of
from aigo_bridge.execution.permissions import allow
from aigo_bridge.models.gate import gated
from aigo_bridge.plan.shards import Shard
from aigo_bridge.planning.planning import part_of
from aigo_bridge.redaction.secrets import learn_environment, redact
from aigo_bridge.results.internal_errors import explained
from aigo_bridge.snippets.process import choose
from aigo_scale.cluster.pieces import Count, PlannedRun, ShardProgress, ShardResult
from aigo_scale.sharding.manifest import BusyError
from aigo_scale.sharding.running import ShardOutcome, run_shard

BUSY_SECONDS = 60.0
"""Maximum seconds to wait until the previous worker of a shard has ended."""

TELL_SECONDS = 0.5
"""Seconds between two progress reports to the coordinator."""


class ShardWorker:
    """Ray actor that runs shards.

    Args:
        name: name of the worker for the coordinator.
        coordinator: the coordinator's actor.
    """

    def __init__(self, name: str, coordinator: Any) -> None:
        self._name, self._coordinator = name, coordinator
        self._problem: str | None = None

    def begin(self, work: PlannedRun, environment: Mapping[str, str]) -> None:
        """Plan the run. An error is reported with every shard.

        Args:
            work: the run.
            environment: variables of the driver with secrets for the models. Ray does not store arguments
                of this call.
        """
        os.environ.update({**work.variables, **environment})
        learn_environment()
        try:
            self._plan(work)
        except BridgeError as error:
            self._problem = redact(str(error))
        except Exception as error:  # noqa: BLE001  # any error of a worker is reported
            self._problem = redact(explained(error))

    def _plan(self, work: PlannedRun) -> None:
        if not work.folder.is_dir():
            raise UsageError(
                f"worker on {socket.gethostname()} cannot read {str(work.folder)!r}. All nodes "
                "need the same files under the same paths, in a shared folder. For object "
                "storage addresses, start the command with TMPDIR=/a/shared/folder",
                code=Code.NOTHING_THERE,
            )
        MIRRORS[:] = work.mirrors
        os.chdir(work.cwd)
        choose(work.snippets, lambda _: None)  # the driver has already reported it
        allow(work.allow)
        granting(work.grants).__enter__()  # for the lifetime of the process
        self._work = work
        self._engine: Engine = load_engine(work.engine)
        evaluations = evaluations_of(work.origin, cache=work.cache, model=work.models.model)
        self._ready: Sequence[ReadyEvaluation] = prepare(
            evaluations, [self._engine], work.models, resume=True
        )
        digests = tuple(plan.digest for one in evaluations for entry in one.entries for plan in entry.plans)
        if digests != work.digests:
            self._problem = (
                f"this worker finds another task or other data in {work.cwd!r} than the driver: all"
                " nodes need the same files, in a shared folder"
            )

    def run(self, number: int) -> ShardResult:
        """Run a shard, or resume it after another worker."""
        if self._problem is not None:
            return ShardResult(number, error=self._problem, is_hopeless=True)
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return _piece(number, self._run(number))
            except BusyError as error:
                if time.monotonic() > deadline:
                    return ShardResult(number, error=str(error))
                time.sleep(0.2)
            except BridgeError as error:
                return ShardResult(number, error=redact(str(error)))
            except Exception as error:  # noqa: BLE001  # an error in one shard must not stop the worker
                return ShardResult(number, error=redact(explained(error)))

    def _run(self, number: int) -> ShardOutcome:
        work, shard = self._work, Shard(number, self._work.pieces)
        news = _News(self._name, self._coordinator, number)
        settings = RunSettings(work.folder, **work.settings, on_progress=news.hear)
        with gated(_Gate(self._name, self._coordinator)):
            return run_shard(_parts(self._ready, shard), self._engine, settings, shard, resume=True)


def _parts(evaluations: Sequence[ReadyEvaluation], shard: Shard) -> list[ReadyEvaluation]:
    """Return the rows of a shard in all plans."""
    return [
        replace(
            one,
            entries=tuple(
                replace(
                    entry,
                    jobs=tuple(replace(job, plan=part_of(job.plan, shard)) for job in entry.jobs),
                )
                for entry in one.entries
            ),
        )
        for one in evaluations
    ]


def _piece(number: int, outcome: ShardOutcome) -> ShardResult:
    counts = tuple(
        Count(part.job.identity, part.job.num_samples, part.job.num_failed, part.num_reused)
        for part in outcome.parts
    )
    if outcome.manifest.status == "complete":
        return ShardResult(number, counts)
    errors = [part.job.error for part in outcome.parts if part.job.error]
    return ShardResult(number, counts, error=redact("; ".join(errors) or "some of its samples are missing"))


class _News:
    """Reporter of progress to the coordinator, with a limited rate."""

    def __init__(self, holder: str, coordinator: Any, piece: int) -> None:
        self._holder, self._coordinator, self._piece = holder, coordinator, piece
        self._next = 0.0
        self._events: list[Progress] = []

    def hear(self, state: Progress) -> None:
        """Record progress, and report it if the last report is old enough."""
        if state.error is not None or state.retry is not None:
            self._events.append(state)
        now = time.monotonic()
        if now < self._next and state.done < state.total:
            return
        self._next = now + TELL_SECONDS
        totals = state.totals
        told = ShardProgress(
            self._piece, state.done, state.failed, totals.retries, totals.tokens, totals.cost, totals.scores
        )
        events, self._events = self._events, []
        self._coordinator.tell.remote(self._holder, told, events)


class _Gate:
    """Gate for this worker's model calls, which uses the coordinator's limits."""

    def __init__(self, holder: str, coordinator: Any) -> None:
        self._holder, self._coordinator = holder, coordinator

    async def enter(self, model: str, most: int | None) -> object:
        token = uuid.uuid4().hex
        try:
            await self._coordinator.take.remote(self._holder, token, model, most)
        except BaseException:
            self.leave(model, token)  # the slot may already be assigned, although this call no longer waits
            raise
        return token

    def leave(self, model: str, place: object) -> None:
        self._coordinator.free.remote(model, place)

    def pause(self, model: str, seconds: float) -> None:
        self._coordinator.pause.remote(model, seconds)

    async def reserve(self, name: str, per_minute: int) -> float:
        seconds: float = await self._coordinator.reserve.remote(name, per_minute)
        return seconds
