"""The driver: it runs the shards of a run on a cluster until all are complete."""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Progress, ProgressTotals
from aigo_bridge.errors import EngineError
from aigo_bridge.redaction.secrets import SECRET_NAMES, environment_secrets
from aigo_bridge.text.plurals import plural
from aigo_scale.cluster.coordinator import Coordinator
from aigo_scale.cluster.handing_out import HandingOut
from aigo_scale.cluster.pieces import PlannedRun, ShardProgress, ShardResult
from aigo_scale.cluster.worker import ShardWorker
from aigo_scale.sharding.manifest import Identity

TRIES = 3
"""Maximum number of attempts for a shard that does not finish."""

ANSWER_SECONDS = 5.0
"""Maximum seconds to wait for the last progress update, which is only displayed."""

LOOK_SECONDS = 0.5
"""Seconds between two progress updates."""


@dataclass(frozen=True)
class ClusterRun:
    """Settings of a run on a cluster."""

    work: PlannedRun
    total: int
    """Number of trials in the whole run."""
    most_calls: int | None = None
    """Maximum concurrent calls of a model in the whole cluster."""
    workers: int | None = None
    """Number of workers; `None`: one per CPU."""
    tolerated: Mapping[Identity, int] | None = None
    """Maximum number of failed samples by plan; `None`: no limit."""
    on_progress: Callable[[Progress], None] | None = None
    on_note: Callable[[str], None] = lambda _: None
    """Callback for messages about lost workers."""


def run_pieces(ray: Any, wanted: ClusterRun) -> None:
    """Run all incomplete shards.

    Raises:
        EngineError: shards cannot be completed, or too many samples have failed.
    """
    _Driver(ray, wanted).run()


@dataclass
class _Driver:
    ray: Any
    wanted: ClusterRun
    names: dict[Any, str] = field(default_factory=dict)
    """Names of workers."""
    done: int = 0
    failed: int = 0
    failures: Counter[Identity] = field(default_factory=Counter)
    tries: Counter[int] = field(default_factory=Counter)
    ended: set[int] = field(default_factory=set)
    problems: dict[int, str] = field(default_factory=dict)
    coordinator: Any = None
    next_look: float = 0.0
    told: tuple[int, int] | None = None
    news: Any = None
    """Pending progress request to the coordinator."""

    def run(self) -> None:
        ray, wanted = self.ray, self.wanted
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        kind = ray.remote(num_cpus=0, max_concurrency=100_000, scheduling_strategy=here)(Coordinator)
        self.coordinator = kind.remote(wanted.most_calls)
        workers = wanted.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        handing = HandingOut(self._start, self._done, self._lost, self._look, workers)
        try:
            handing.run(range(1, wanted.work.pieces + 1))
            self._look(at_last=True)
        finally:
            for actor in (*handing.workers, self.coordinator):
                with suppress(Exception):
                    ray.kill(actor)
        if self.problems:
            told = "; ".join(
                f"piece {number}: {problem}" for number, problem in sorted(self.problems.items())[:3]
            )
            more = f" (and {len(self.problems) - 3} more)" if len(self.problems) > 3 else ""
            raise EngineError(
                f"{len(self.problems)} pieces are not complete: {told}{more}", code=Code.FAILED_ENGINE
            )

    def _start(self) -> Any:
        name = f"worker-{len(self.names)}-{uuid.uuid4().hex[:8]}"
        worker = self.ray.remote(num_cpus=1, max_restarts=0)(ShardWorker).remote(name, self.coordinator)
        worker.begin.remote(self.wanted.work, driver_secrets())
        self.names[worker] = name
        return worker

    def _done(self, piece: ShardResult) -> bool:
        if piece.error is not None:
            self.tries[piece.number] += 1
            if piece.is_hopeless:
                raise EngineError(piece.error, code=Code.FAILED_ENGINE)
            if self.tries[piece.number] < TRIES:
                return True
            self.problems[piece.number] = piece.error
        self.ended.add(piece.number)
        self.done += sum(count.samples for count in piece.counts)
        for count in piece.counts:
            self.failed += count.failed
            self.failures[count.identity] += count.failed
        self._refuse_failures()
        return False

    def _refuse_failures(self) -> None:
        for identity, failed in self.failures.items():
            if self.wanted.tolerated is not None and failed > self.wanted.tolerated[identity]:
                raise EngineError(
                    f"stopped: {plural(failed, 'sample')} of {identity[1]!r} failed,"
                    " --fail-on-error tolerates"
                    f" {self.wanted.tolerated[identity]}",
                    code=Code.TOO_MANY_FAILURES,
                )

    def _lost(self, worker: Any, piece: int) -> None:
        self.coordinator.forget.remote(self.names.pop(worker))
        self.wanted.on_note(f"a worker was lost; another worker continues shard {piece}")

    def _look(self, *, at_last: bool = False) -> None:
        """Report the progress of all workers."""
        now = time.monotonic()
        if self.wanted.on_progress is None or (now < self.next_look and not at_last):
            return
        # Request the progress now and read it later, so that the driver never waits for it.
        self.news = self.news or self.coordinator.news.remote()
        if not self.ray.wait([self.news], timeout=ANSWER_SECONDS if at_last else 0)[0]:
            return
        told, events = self.ray.get(self.news)
        self.next_look, self.news = now + LOOK_SECONDS, None
        current = [one for one in told if one.piece not in self.ended]
        done = self.done + sum(one.done for one in current)
        failed = self.failed + sum(one.failed for one in current)
        total = self.wanted.total
        for event in events:
            self.wanted.on_progress(
                Progress(
                    done, total, failed, event.sample_id, event.error, event.task, event.trials, event.trial,
                    event.retry, _totals(told),
                )
            )  # fmt: skip
        if events or self.told != (done, failed):
            self.told = (done, failed)
            self.wanted.on_progress(Progress(done, total, failed, totals=_totals(told)))


def _totals(told: list[ShardProgress]) -> ProgressTotals:
    """Return the retries in the current shards. Other totals are only known after the merge."""
    return ProgressTotals(retries=sum(one.retries for one in told))


def driver_secrets() -> dict[str, str]:
    """Return the variables with secrets for the workers' models.

    They are all variables with secret names. Their value is ignored because some servers expect `none` as a
    key. Variables with a password in an address are also included.
    """
    names = {name for name in os.environ if SECRET_NAMES.search(name)}
    names |= set(environment_secrets(os.environ).values())
    return {name: os.environ[name] for name in sorted(names) if name in os.environ}


def model_addresses() -> dict[str, str]:
    """Return the variables `<SERVICE>_BASE_URL`, so that workers call the driver's model servers.

    Addresses with a password are in `driver_secrets`.
    """
    names = {name for name in os.environ if name.endswith("_BASE_URL")} - driver_secrets().keys()
    return {name: os.environ[name] for name in sorted(names)}
