"""Every benchmark with the ratios of its rows to their floors, compared with those that are committed.

    python benchmarks/ratios.py [--update] [NAME ...]

A ratio is measured in one run on one machine, so that another machine has nearly the same. A row fails when
it is worse than the committed one by more than its own noise (a factor of 1.05 to 1.25), three times in a
row. `--update` measures three times and writes the file.
"""

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
"""Names the file that rows are recorded in."""
TIMES = 3
LEAST_NOISE, MOST_NOISE = 1.05, 1.25

Ratios = Mapping[str, float]
"""Row → ratio; the smaller, the better."""


@dataclass(frozen=True)
class Benchmark:
    """How a benchmark is run: in earnest, and just to see that it runs."""

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
    "report": Benchmark(("--megabytes", "200"), ("--megabytes", "1", "--samples", "10", "--rows", "10")),
    "comparison": Benchmark(("--samples", "100000"), ("--samples", "20")),
    "snippets": Benchmark(smoke=("--calls", "20", "--repeat", "1")),
    "overhead": Benchmark(("--samples", "1000"), ("--samples", "2", "--repeat", "1")),
    "cassettes": Benchmark(("--samples", "1000"), ("--samples", "2", "--calls", "20", "--repeat", "1")),
    "shards": Benchmark(
        ("--engine", "echo", "--samples", "5000,20000", "--shard-size", "5000"),
        ("--engine", "echo", "--samples", "2", "--shard-size", "2"),
    ),
    "lighteval_engine": Benchmark(
        ("--documents", "5000", "--rows", "50000"),
        ("--documents", "2", "--rows", "2", "--memory", "4", "--repeat", "1"),
    ),
    "import_lighteval": Benchmark(("--docs", "5000", "--rounds", "3"), ("--docs", "5", "--rounds", "1")),
    "import_inspect": Benchmark(
        ("ratios", "--scale", "0.2"),
        ("ratios", "--scale", "0.001", "--calls", "0.1", "--repeat", "1"),
    ),
}
"""Those with rows. `coverage.py` measures no time.
`snippet_runs.py` has no floor of its own: it compares with another state of the project.
"""


def record(row: str, ratio: float) -> None:
    """Note a row of the benchmark that is running, where somebody collects them."""
    if name := os.environ.get(VARIABLE):
        with Path(name).open("a") as file:
            file.write(json.dumps([row, ratio]) + "\n")


def run(name: str, arguments: Sequence[str]) -> dict[str, float]:
    """The rows of one run of a benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ratios"
        file.touch()
        command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
        subprocess.run(command, env={**os.environ, VARIABLE: str(file)}, check=True)
        return {f"{name}: {row}": ratio for row, ratio in map(json.loads, file.read_text().splitlines())}


def regressions(measured: Ratios, reference: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """A line for each row that is worse than the committed one, or not there."""
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
    """What is written of several runs: the median of each row, and how far they lie apart."""
    rows = {row: [ratios[row] for ratios in runs] for row in runs[0]}
    return {
        row: {
            "ratio": round(statistics.median(ratios), 4),
            "noise": round(min(max(max(ratios) / min(ratios), LEAST_NOISE), MOST_NOISE), 3),
        }
        for row, ratios in rows.items()
    }


def _check(name: str, reference: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The regressions of a benchmark that stay when it is run again."""
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
