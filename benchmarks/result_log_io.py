"""Streaming reads and writes of a large result log: time as ratio to orjson, and peak memory.

    python benchmarks/result_log_io.py [--megabytes 1024] [--suffix .json] [--folder FOLDER]

The floor is a plain file with one line per sample by orjson: the same bytes, without checks and not
atomic. Every step runs in its own process, so that its peak memory can be measured.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
from ratios import record

from aigo_bridge.dtypes import SampleEvidence, TaskResultLog
from aigo_bridge.results.reading import read_log
from aigo_bridge.results.writing import write_log

WORDS = [
    "the",
    "quick",
    '"brown"',
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog\n",
    "and",
    "then",
    "é",
    "some",
    "more",
]
VARIANTS = 200
"""Number of different samples. They repeat, so that creating them is free."""

FRAME = TaskResultLog.model_validate(
    {
        "format_version": "v1",
        "app_version": "benchmark",
        "status": "success",
        "evidence": {"metrics": [{"metric_key": "mean", "scorer_key": "s", "values": {"Accuracy": 1.0}}]},
        "specification": {
            "display_name": "Benchmark",
            "config": {},
            "run_config": {},
            "task": {
                "id": "t",
                "key": "t",
                "display_name": "T",
                "description": "",
                "config_spec": [],
                "tags": [],
                "provider": "user",
                "definition": {"type": "system_task", "compute_evidence_snippet": ""},
            },
        },
        "execution": {"runtime": 1.0, "started_at": 1, "ended_at": 2},
        "errors": [],
    }
)


def sample(index: int) -> dict[str, Any]:
    """Return a conversation of six messages, about 3.5 kB."""
    rng = random.Random(index)

    def text(words: int) -> str:
        return " ".join(rng.choices(WORDS, k=words))

    items: list[dict[str, Any]] = []
    for number in range(6):
        content = (
            {"type": "output_text", "text": text(60), "annotations": []}
            if number % 2
            else {"type": "input_text", "text": text(60)}
        )
        role = "assistant" if number % 2 else "user"
        items.append(
            {"type": "message", "id": f"m{number}", "status": "completed", "role": role, "content": [content]}
        )
    trial = {
        "index": 0,
        "sample_id": str(index),
        "sample": {"data": {"q": text(20), "n": index}},
        "solver": {"output": {"trace": {"items": items}, "raw_outputs": [{"items": [items[-1]]}]}},
        "scores": [{"scorer_key": "s", "values": {"is_correct": 1.0}}],
        "errors": [],
    }
    return {
        "sample_id": str(index),
        "sample": None,
        "solver": None,
        "scores": None,
        "errors": [],
        "trials": [trial],
    }


def repeated(variants: list[Any], count: int) -> Iterator[Any]:
    """Yield the variants repeatedly."""
    for index in range(count):
        yield variants[index % len(variants)]


def floor_of_writing(path: Path, count: int) -> None:
    """Write the same samples into a plain file of lines with orjson alone."""
    with path.with_name("floor").open("wb") as file:
        for one in repeated([sample(index) for index in range(VARIANTS)], count):
            file.write(orjson.dumps(one))
            file.write(b"\n")


def floor_of_reading(path: Path, count: int) -> None:
    """Read the file of lines with orjson alone."""
    with path.with_name("floor").open("rb") as file:
        for line in file:
            orjson.loads(line)


def write_plain(path: Path, count: int) -> None:
    """Write samples that are plain data."""
    write_log(path, repeated([sample(index) for index in range(VARIANTS)], count), finish=FRAME)


def write_encoded(path: Path, count: int) -> None:
    """Write samples that are already encoded."""
    write_log(path, repeated([orjson.dumps(sample(index)) for index in range(VARIANTS)], count), finish=FRAME)


def write_typed(path: Path, count: int) -> None:
    """Write samples that are objects."""
    samples = [SampleEvidence.model_validate(sample(index)) for index in range(VARIANTS)]
    write_log(path, repeated(samples, count), finish=FRAME)


def read_raw(path: Path, count: int) -> None:
    """Read samples as plain data."""
    assert sum(1 for _ in read_log(path).raw_samples()) == count


def read_typed(path: Path, count: int) -> None:
    """Read samples as objects."""
    assert sum(1 for _ in read_log(path).samples()) == count


def measured(step: Callable[[Path, int], None], path: Path, count: int) -> tuple[float, float]:
    """Return seconds and peak megabytes of a step in its own process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (step, path, count))


def _run(step: Callable[[Path, int], None], path: Path, count: int) -> tuple[float, float]:
    sample(0)
    start = time.process_time()
    step(path, count)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return seconds, peak / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--suffix", default=".json")
    parser.add_argument("--folder", type=Path)
    settings = parser.parse_args()

    count = settings.megabytes * 1_000_000 // len(orjson.dumps(sample(0)))
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        path = Path(folder) / f"log{settings.suffix}"
        floors = {step: measured(step, path, count)[0] for step in (floor_of_writing, floor_of_reading)}
        print(f"{count} samples")
        print(f"{'orjson, writing':16} {floors[floor_of_writing]:8.2f} s")
        print(f"{'orjson, reading':16} {floors[floor_of_reading]:8.2f} s")
        for step, floor, goal in (
            (write_encoded, floor_of_writing, 2),
            (write_plain, floor_of_writing, 2),
            (write_typed, floor_of_writing, None),
            (read_raw, floor_of_reading, 2),
            (read_typed, floor_of_reading, 15),
        ):
            seconds, peak = measured(step, path, count)
            ratio = seconds / floors[floor]
            wanted = "" if goal is None else f"(goal {goal} x)"
            print(f"{step.__name__:16} {seconds:8.2f} s {ratio:6.1f} x {peak:8.0f} MB peak {wanted}")
            record(step.__name__, ratio)
        print(json.dumps({"bytes": path.stat().st_size}))


if __name__ == "__main__":
    main()
