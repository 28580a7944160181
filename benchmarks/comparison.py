"""Comparison of two results of 200,000 samples: time as a ratio to the naive method, and peak memory.

    python benchmarks/comparison.py [--samples 200000]

The naive method loads both files with orjson, pairs scores by id in a dictionary, and takes the mean
difference ± 1.96 standard errors: it does not check rows, test differences or explain missing values. Each
method runs in its own process."""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
from ratios import record

from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.results.writing import write_log
from aigo_stats.comparison.columns import read_columns
from aigo_stats.comparison.comparing import Comparison, compare
from aigo_stats.statistics.intervals import Interval
from aigo_stats.statistics.paired_differences import PairedDifference
from aigo_stats.statistics.quantiles import special_functions

NAMES = ("base", "new")
GOAL_SECONDS, GOAL_MEGABYTES = 5.0, 500.0

METRICS = [
    {"type": "mean", "field": "right", "name": "accuracy", "key": "accuracy"},
    {"type": "mean", "field": "score", "name": "score", "key": "score"},
]
FRAME: dict[str, Any] = {
    "format_version": "v1",
    "app_version": "benchmark",
    "status": "success",
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
            "definition": {
                "type": "benchmark_task",
                "evaluated_entity_type": "model",
                "scorers": [{"key": "judge", "type": "python", "metrics": METRICS}],
            },
        },
    },
    "execution": {"runtime": 1.0, "started_at": 1, "ended_at": 2},
    "errors": [],
}


def write(path: Path, count: int, share: float, seed: int) -> None:
    """Write a result with a right/wrong score and another score for each sample."""
    drawn = random.Random(seed)
    rights = [float(drawn.random() < share) for _ in range(count)]
    scores = [round(drawn.random(), 4) for _ in range(count)]
    metrics = [
        {
            "scorer_key": "judge",
            "metric_key": key,
            "metric_type": "mean",
            "values": {key: sum(values) / count},
        }
        for key, values in (("accuracy", rights), ("score", scores))
    ]
    frame = TaskResultLog.model_validate({**FRAME, "evidence": {"metrics": metrics}})
    write_log(path, map(_sample, range(count), rights, scores), finish=frame)


def _sample(number: int, right: float, score: float) -> bytes:
    question = f"Question {number}: what is the number of this row, and which words stand around it?"
    message = {"type": "message", "id": "", "status": "completed", "role": "assistant"}
    answer = [{"type": "output_text", "text": f"It is {number}, among words.", "annotations": []}]
    trace = {
        "items": [{**message, "content": answer}],
        "metadata": {"total_tokens": 40 + number % 7, "total_time": 0.5 + number % 11 / 100},
    }
    raw = [{"choices": [{"message": {"role": "assistant", "content": answer[0]["text"]}}]}]
    row = {"question": question, "answer": str(number)}
    trial = {
        "index": 0,
        "sample_id": number,
        "sample": {"data": row},
        "solver": {"output": {"trace": trace, "raw_outputs": raw}},
        "scores": [{"scorer_key": "judge", "values": {"right": right, "score": score}}],
        "errors": [],
    }
    sample = {"sample_id": number, "sample": None, "solver": None, "scores": None, "errors": []}
    return orjson.dumps({**sample, "trials": [trial]})


def compared(paths: Sequence[Path]) -> None:
    """Compare as `aigo-bridge compare` does."""
    comparison: Comparison = compare(read_columns(paths[0]), read_columns(paths[1]))
    assert len(comparison.metrics) == 2
    for metric in comparison.metrics:
        assert isinstance(metric.difference, PairedDifference)
        assert isinstance(metric.difference.estimate, Interval)


def naive(paths: Sequence[Path]) -> None:
    """Compare as many scripts do."""
    base, new = (
        {
            sample["sample_id"]: sample["trials"][0]["scores"][0]["values"]
            for sample in orjson.loads(path.read_bytes())["evidence"]["samples"]
        }
        for path in paths
    )
    for name in ("right", "score"):
        differences = [new[key][name] - base[key][name] for key in base if key in new]
        mean = sum(differences) / len(differences)
        spread = sum((value - mean) ** 2 for value in differences) / (len(differences) - 1)
        assert math.isfinite(mean + 1.96 * math.sqrt(spread / len(differences)))


def measured(step: Callable[[Sequence[Path]], None], paths: Sequence[Path]) -> tuple[float, float]:
    """Return CPU seconds and peak megabytes of a separate process with loaded libraries."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (step, paths))


def _run(step: Callable[[Sequence[Path]], None], paths: Sequence[Path]) -> tuple[float, float]:
    special_functions()
    start = time.process_time()
    step(paths)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return seconds, peak / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200_000)
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.tasklog.json" for name in NAMES]
        for seed, path in enumerate(paths):
            write(path, settings.samples, 0.8 + 0.01 * seed, seed)
        seconds, peak = measured(compared, paths)
        naive_seconds, naive_peak = measured(naive, paths)
        megabytes = sum(path.stat().st_size for path in paths) / 1e6
    print(f"{settings.samples} samples in each of two results, {megabytes:.0f} MB together")
    print(f"compare  {seconds:7.2f} s {peak:7.0f} MB (goal {GOAL_SECONDS:g} s, {GOAL_MEGABYTES:g} MB)")
    print(f"naive    {naive_seconds:7.2f} s {naive_peak:7.0f} MB")
    record("compare", seconds / naive_seconds)


if __name__ == "__main__":
    main()
