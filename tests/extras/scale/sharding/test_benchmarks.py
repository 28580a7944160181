"""Sharded benchmarks of any engine: start, resume and merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.support.shards import ENGINE

from aigo_bridge.engine.benchmarks import BenchmarkPart, BenchmarkRun, PartLogs, PartRun
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.plan.shards import Shard
from aigo_scale.sharding.benchmarks import merge_benchmarks, refuse_other_kind, run_benchmark_shard
from aigo_scale.sharding.manifest import read_manifest
from aigo_scale.sharding.shard_matching import find_shards


@dataclass
class Lines:
    """Engine whose benchmarks write one sample number per line."""

    parts: Sequence[BenchmarkPart] = (
        BenchmarkPart("a", "d1", 5, 1, {"": "m"}),
        BenchmarkPart("a", "d2", 1, 2),
    )
    fails: int | None = None
    num_runs: int = 0
    seen: list[PartLogs] = field(default_factory=list)

    def run(
        self, request: BenchmarkRun, shard: Shard, begin: Callable[[Sequence[BenchmarkPart]], bool]
    ) -> list[PartRun]:
        """Write the sample numbers of the shard up to the failing one."""
        if not begin(self.parts):
            return []
        self.num_runs += 1
        runs = []
        for number, part in enumerate(self.parts):
            samples = [
                each for each in range(*shard.bounds(part.total)) if self.fails is None or each < self.fails
            ]
            if not range(*shard.bounds(part.total)):
                runs.append(PartRun())
                continue
            path = request.out / f"{number}.txt"
            path.write_text("".join(f"{each}\n" for each in samples))
            ended = len(samples) == len(range(*shard.bounds(part.total)))
            runs.append(
                PartRun(path, len(samples), 0, "success" if ended else "error", None if ended else "down")
            )
        return runs

    def merge(
        self, request: BenchmarkRun, logs: Callable[[Sequence[BenchmarkPart]], Sequence[PartLogs]]
    ) -> list[Outcome]:
        """Return the lines of all shards as the task name."""
        self.seen = list(logs([replace(part, models={}) for part in self.parts]))
        texts = ["".join(log.path.read_text() for log in part.logs) for part in self.seen]
        return [Outcome(task=text.replace("\n", " "), status="success", error=None) for text in texts]


def request_to(out: Path, **rest: object) -> BenchmarkRun:
    return BenchmarkRun(out, task="lines", **rest)  # type: ignore[arg-type]  # as each test says


def test_shard_logs_are_merged_in_sample_order(tmp_path: Path) -> None:
    engine = Lines()
    for number in (3, 1, 2):
        outcome = run_benchmark_shard(ENGINE, engine, request_to(tmp_path / "s"), Shard(number, 3))
        assert outcome.manifest.status == "complete"
    manifest = read_manifest(tmp_path / "s" / "shard-1-of-3")
    assert manifest.benchmark == f"{ENGINE.name}:lines"
    assert [(job.key, job.run, job.total, job.trials) for job in manifest.jobs] == [
        ("a", 0, 5, 1),
        ("a", 1, 1, 2),
    ]
    shards = find_shards([tmp_path / "s"])

    outcomes = merge_benchmarks(shards, engine, request_to(tmp_path / "merged"))

    assert [outcome.task for outcome in outcomes] == ["0 1 2 3 4 ", "0 "]
    assert [log.rows for log in engine.seen[0].logs] == [(0, 1), (1, 3), (3, 5)]
    assert [part.missing for part in engine.seen] == [None, None]


def test_an_existing_shard_is_kept_or_resumed(tmp_path: Path) -> None:
    engine = Lines(fails=1)
    first = run_benchmark_shard(ENGINE, engine, request_to(tmp_path), Shard(1, 1))
    assert first.manifest.status == "stopped"
    with pytest.raises(UsageError, match=r"already contains this shard \(stopped\)"):
        run_benchmark_shard(ENGINE, Lines(), request_to(tmp_path), Shard(1, 1))
    second = run_benchmark_shard(ENGINE, Lines(), request_to(tmp_path, resume=True), Shard(1, 1))
    assert second.manifest.status == "complete"
    third = Lines()
    again = run_benchmark_shard(ENGINE, third, request_to(tmp_path, resume=True), Shard(1, 1))
    assert again.was_complete
    assert third.num_runs == 0
    other = Lines(parts=(BenchmarkPart("a", "d3", 5, 1, {"": "m"}),))
    with pytest.raises(UsageError, match="is a shard of another run"):
        run_benchmark_shard(ENGINE, other, request_to(tmp_path, resume=True), Shard(1, 1))


def test_a_partial_merge_lists_the_missing_shards(tmp_path: Path) -> None:
    engine = Lines()
    run_benchmark_shard(ENGINE, engine, request_to(tmp_path / "s"), Shard(2, 3))
    shards = find_shards([tmp_path / "s"], partial=True)
    merge_benchmarks(shards, engine, request_to(tmp_path / "merged"))
    assert engine.seen[0].missing == "shards 1, 3 of 3 not there"


def test_all_benchmark_differences_are_reported_together(tmp_path: Path) -> None:
    run_benchmark_shard(ENGINE, Lines(), request_to(tmp_path / "s"), Shard(1, 1))
    shards = find_shards([tmp_path / "s"])
    others = Lines(parts=(BenchmarkPart("a", "dx", 5, 1), BenchmarkPart("b", "d", 1, 1)))
    with pytest.raises(EvidenceError) as error:
        merge_benchmarks(shards, others, request_to(tmp_path / "merged"))
    told = [issue.message for issue in error.value.issues]
    assert told == [
        "'a': its data or arguments differ from the shards: its digest is dx, theirs is d1",
        "the shards do not contain 'b'",
        "the shards contain 'a', which was not requested",
    ]


def test_shards_of_another_kind_are_rejected(tmp_path: Path) -> None:
    run_benchmark_shard(ENGINE, Lines(), request_to(tmp_path / "s"), Shard(1, 1))
    shards = find_shards([tmp_path / "s"])
    refuse_other_kind(shards, f"{ENGINE.name}:lines")
    with pytest.raises(UsageError, match="its code computes the metrics"):
        refuse_other_kind(shards, None)
    with pytest.raises(UsageError, match="these are shards of"):
        refuse_other_kind(shards, "another:lines")
    with pytest.raises(UsageError, match="one benchmark at a time"):
        run_benchmark_shard(ENGINE, Lines(), request_to(tmp_path / "t", more_tasks=["b"]), Shard(1, 1))
