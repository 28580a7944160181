"""`make bench`: each benchmark runs and produces the committed rows, and slower rows fail."""

from __future__ import annotations

import json
import os

import pytest
from benchmarks.ratios import BENCHMARKS, FOLDER, REFERENCE, committed, regressions, run

ENGINES = (
    *("overhead", "cassettes", "shards", "snippet_runs", "lighteval_engine"),
    *("import_lighteval", "import_inspect"),
)
LONG = (
    frozenset({"overhead", "cassettes", "shards", "lighteval_engine"})
    if os.environ.get("AIGO_BENCH") != "all"
    else frozenset[str]()
)
"""Those that start an engine ten times or more, for a minute: left to `make nightly`."""
LOADING = [
    pytest.param(name, marks=pytest.mark.xdist_group("lighteval")) if name in ENGINES else name
    for name in BENCHMARKS
    if name not in LONG
]
ROWS: dict[str, dict[str, float]] = json.loads(REFERENCE.read_text("utf-8"))


@pytest.mark.parametrize("name", LOADING)
def test_benchmark_produces_the_committed_rows(name: str) -> None:
    measured = run(name, BENCHMARKS[name].smoke)
    assert measured
    assert all(ratio >= 0 for ratio in measured.values())
    rows = {row for row in ROWS if row.startswith(f"{name}: ")}
    assert rows == measured.keys()


def test_every_benchmark_has_a_smoke_test() -> None:
    without_floor = {"coverage", "ratios", "cluster"}
    assert {path.stem for path in FOLDER.glob("*.py")} - without_floor == set(BENCHMARKS)


def test_every_benchmark_has_committed_rows() -> None:
    assert {row.partition(": ")[0] for row in ROWS} == set(BENCHMARKS)


def test_noise_stays_within_its_bounds() -> None:
    assert [row for row, values in ROWS.items() if not 1.05 <= values["noise"] <= 1.25] == []


def test_a_slower_benchmark_is_reported() -> None:
    reference = {
        "a: x": {"ratio": 2.0, "noise": 1.1},
        "a: y": {"ratio": 1.0, "noise": 1.05},
        "a: z": {"ratio": 1.0, "noise": 1.05},
    }
    assert list(regressions({"a: x": 2.19, "a: y": 1.06, "a: new": 1.0}, reference)) == [
        "a: y: 1.060, expected 1.050 at most (1.000 committed)",
        "a: z: not measured",
        "a: new: no committed ratio; run: make bench-update",
    ]


def test_committed_figures_are_median_and_noise() -> None:
    assert committed([{"a": 1.0, "b": 2.0}, {"a": 1.1, "b": 2.0}, {"a": 3.0, "b": 2.02}]) == {
        "a": {"ratio": 1.1, "noise": 1.25},
        "b": {"ratio": 2.0, "noise": 1.05},
    }
