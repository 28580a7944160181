"""Ratios of the rows of every benchmark to their floors, compared with the committed ratios.

    python benchmarks/ratios.py [--update] [NAME ...]

Both parts of a ratio are measured in one run on one machine, so that other machines give similar ratios. A
row fails if it is worse than the committed ratio by more than its noise (a factor of 1.05 to 1.25) three
times in succession. `--update` measures three times and writes the file."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
REFERENCE = FOLDER / "reference.json"
VARIABLE = "AIGO_BENCH_RATIOS"
"""Environment variable with the file in which rows are recorded."""
TIMES = 3
LEAST_NOISE, MOST_NOISE = 1.05, 1.25

Ratios = Mapping[str, float]
"""Row → ratio. Smaller is better."""


@dataclass(frozen=True)
class Benchmark:
    """Arguments of a benchmark: for a measurement, and for a quick check that it runs."""

    arguments: tuple[str, ...] = ()
    smoke: tuple[str, ...] = ()


BENCHMARKS = {
    "startup": Benchmark(smoke=("--runs", "1")),
    "core_types": Benchmark(smoke=("--events", "40", "--repeat", "1")),
    "reading": Benchmark(("500",), ("1",)),
    "planning": Benchmark(smoke=("--rows", "5", "--tasks", "1", "--neighbours", "4")),
    "editing": Benchmark(smoke=("--lines", "60", "--strokes", "1")),
    "templates": Benchmark(smoke=("--renders", "5")),
    "jsonl_spec": Benchmark(("--records", "50000"), ("--records", "5", "--repeat", "1")),
    "data_sets": Benchmark(("--rows", "300000"), ("--rows", "500")),
    "result_log_io": Benchmark(("--megabytes", "200"), ("--megabytes", "1")),
    "report": Benchmark(("--megabytes", "70"), ("--megabytes", "1", "--samples", "10", "--rows", "10")),
    "comparison": Benchmark(smoke=("--samples", "20")),
    "snippets": Benchmark(smoke=("--calls", "20", "--repeat", "1")),
    "snippet_runs": Benchmark(smoke=("--specifications", "2", "--samples", "1")),
    "lake": Benchmark(("--logs", "300"), ("--logs", "4")),
    "overhead": Benchmark(("--grown", "6000"), ("--samples", "2", "--repeat", "1", "--grown", "4")),
    "cassettes": Benchmark(("--samples", "1000"), ("--samples", "2", "--calls", "20", "--repeat", "1")),
    "shards": Benchmark(
        ("--engine", "echo", "--samples", "5000,20000", "--shard-size", "5000"),
        ("--engine", "echo", "--samples", "2", "--shard-size", "2"),
    ),
    "lighteval_engine": Benchmark(smoke=("--documents", "2", "--memory", "4", "--repeat", "1")),
    "import_lighteval": Benchmark(("--docs", "5000", "--rounds", "3"), ("--docs", "5", "--rounds", "1")),
    "import_inspect": Benchmark(smoke=("--share", "0.0001", "--rounds", "1")),
}
"""Benchmarks with rows. `coverage.py` does not measure time, and `cluster.py` has a bound of its own."""


def record(row: str, ratio: float) -> None:
    """Record a row of the running benchmark, if rows are collected."""
    if name := os.environ.get(VARIABLE):
        with Path(name).open("a") as file:
            file.write(json.dumps([row, ratio]) + "\n")


def run(name: str, arguments: Sequence[str]) -> dict[str, float]:
    """Return the rows of one run of a benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ratios"
        file.touch()
        command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
        subprocess.run(command, env={**os.environ, VARIABLE: str(file)}, check=True)
        return {f"{name}: {row}": ratio for row, ratio in map(json.loads, file.read_text().splitlines())}


def regressions(measured: Ratios, reference: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Return a line for each row that is missing or worse than the committed one."""
    for row, committed in reference.items():
        if row not in measured:
            yield f"{row}: not measured"
        elif measured[row] > (limit := committed["ratio"] * committed["noise"]):
            stands = f"{committed['ratio']:.3f} committed"
            yield f"{row}: {measured[row]:.3f}, expected {limit:.3f} at most ({stands})"
    for row in measured:
        if row not in reference:
            yield f"{row}: no committed ratio; run: make bench-update"


def committed(runs: Sequence[Ratios]) -> dict[str, dict[str, float]]:
    """Return the summary of several runs: the median of each row, and the spread."""
    rows = {row: [ratios[row] for ratios in runs] for row in runs[0]}
    return {
        row: {
            "ratio": round(statistics.median(ratios), 4),
            "noise": round(min(max(max(ratios) / min(ratios), LEAST_NOISE), MOST_NOISE), 3),
        }
        for row, ratios in rows.items()
    }


def _check(name: str, reference: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the regressions of a benchmark that occur again in a second run."""
    best: dict[str, float] = {}
    lines: list[str] = []
    for _ in range(TIMES):
        ratios = run(name, BENCHMARKS[name].arguments)
        best |= {row: min(ratio, best.get(row, ratio)) for row, ratio in ratios.items()}
        if not (lines := list(regressions(best, reference))):
            break
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default"
    )
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}")
    reference: dict[str, dict[str, float]] = json.loads(REFERENCE.read_text()) if REFERENCE.is_file() else {}
    worse: list[str] = []
    for name in options.names or BENCHMARKS:
        print(f"== {name}", flush=True)
        rows = {row: values for row, values in reference.items() if row.startswith(f"{name}: ")}
        if options.update:
            runs = [run(name, BENCHMARKS[name].arguments) for _ in range(TIMES)]
            reference = {row: values for row, values in reference.items() if row not in rows} | committed(
                runs
            )
            REFERENCE.write_text(json.dumps(dict(sorted(reference.items())), indent=1) + "\n")
        else:
            worse += _check(name, rows)
    print("\n".join(worse))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
