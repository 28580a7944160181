"""Surfaces that show a result. Each function converts the shown counts and metrics to the same form.

To add a surface, add a function and a row in `SURFACES`.
"""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.commands import Run
from tests.support.viewing import reader_of, serving

COUNTS = ("samples", "scored", "failed", "unscored", "excluded", "unfinished", "trials", "failed_trials")


@dataclass(frozen=True)
class Shown:
    """Data that a surface shows of a result. A surface may leave out data."""

    counts: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, float] | None = None
    """Name → value; `None` if the surface does not show metrics."""
    lists_errors: bool = False
    """Whether the surface shows a standard error as a separate metric, as in the evidence."""


def _chosen(counts: Mapping[str, Any]) -> dict[str, int]:
    return {name: counts[name] for name in COUNTS if name in counts}


def _in_words(line: str) -> dict[str, int]:
    """Return the counts in a line such as `4 samples, 12 trials: 1 failed, 6 of 12 trials failed`. Missing
    counts are 0.
    """
    total = re.search(r"(\d+) samples?\b", line)
    assert total is not None, line
    trials = re.search(r"(\d+) trials\b", line)
    failed_trials = re.search(r"(\d+) of \d+ trials failed", line)
    states = re.sub(r"\d+ of \d+ trials [a-z ]+", "", line.partition(":")[2])
    named = {
        state: int(number[1]) if (number := re.search(rf"(\d+) {text}", states)) else 0
        for state, text in (
            ("failed", "failed"),
            ("unscored", "not scored"),
            ("unfinished", "not finished"),
            ("excluded", "excluded"),
        )
    }
    samples = int(total[1])
    return {
        "samples": samples,
        "scored": samples - sum(named.values()),
        **named,
        "trials": int(trials[1]) if trials else samples,
        "failed_trials": int(failed_trials[1]) if failed_trials else named["failed"],
    }


def _summary_of_run(result: Path, aigo: Run) -> Shown:
    text = (result.parent.parent / "summary.txt").read_text()
    line = next(line for line in text.splitlines() if re.match(r"\d+ of \d+ samples? scored", line))
    scored, total = map(int, re.findall(r"\d+", line)[:2])
    shown = _in_words(f"{total} samples:{line.partition(',')[2]}")
    assert shown["scored"] == scored, line
    trials = re.search(r"of (\d+) trials", line)
    if trials is None:
        return Shown({name: value for name, value in shown.items() if "trials" not in name})
    return Shown({**shown, "trials": int(trials[1])})


def _stats(result: Path, aigo: Run) -> Shown:
    (shown,) = aigo("stats", result, "--json").json
    metrics = [*shown["metrics"]]
    return Shown(_chosen(shown["samples"]), {metric["label"]: metric["value"] for metric in metrics})


def _stats_in_words(result: Path, aigo: Run) -> Shown:
    line = next(line for line in aigo("stats", result).out.splitlines() if re.search(r": \d+ samples?", line))
    return Shown(_in_words(line.partition(".tasklog.json: ")[2]))


def _show(result: Path, aigo: Run) -> Shown:
    """Without a line of counts, all listed samples were scored in their only trial."""
    lines = aigo("show", result, "-n", "0").out.splitlines()
    listed = sum(re.match(r"(run \d+ · )?sample .* ─", line) is not None for line in lines)
    line = next((line for line in lines if re.match(r"\d+ samples?\b", line)), f"{listed} samples")
    return Shown(_in_words(line))


def _failed_of_show(result: Path, aigo: Run) -> Shown:
    out = aigo("show", result, "--failed", "-n", "0").out
    labels = re.findall(
        r"^(?:run \d+ · )?sample .*? · (failed|not finished|excluded|\d+ of \d+ trials failed)",
        out,
        re.MULTILINE,
    )
    return Shown({"failed": labels.count("failed")})


def _compare(result: Path, aigo: Run) -> Shown:
    other = result.with_name("other" + result.name)
    shutil.copy(result, other)
    done = aigo("compare", result, other, "--json")
    other.unlink()
    (comparison,) = done.json["comparisons"]
    return Shown({}, {metric["label"]: metric["base"] for metric in comparison["metrics"]})


def _comparison_page(result: Path, aigo: Run) -> Shown:
    other, page = result.with_name("other" + result.name), result.with_name("comparison.html")
    shutil.copy(result, other)
    assert aigo("compare", result, other, "--report", page).code == 0
    line = re.search(r"base: ([^<]*)<", page.read_text())
    other.unlink()
    page.unlink()
    # The line is left out if all samples have one scored trial.
    return Shown() if line is None else Shown(_in_words(line[1]))


def _check(result: Path, aigo: Run) -> Shown:
    names = ("scored", "unscored", "excluded", "failed_samples", "failed_trials")
    rules = [word for name in names for word in ("--rule", f"{name} >= 0")]
    verdicts = aigo("check", result, "--json", *rules).json["verdicts"]
    counts: dict[str, int] = {}
    if all(verdict["reason"] == "the result does not contain samples" for verdict in verdicts):
        return Shown({"samples": 0})
    for name, verdict in zip(names, verdicts, strict=True):
        match = re.match(r"(\d+) of (\d+) (sample|trial)s?\b", verdict["reason"])
        assert match is not None, verdict
        counts[name] = int(match[1])
        counts[f"{match[3]}s"] = int(match[2])
    counts["failed"] = counts["failed_samples"]
    if "trials" in counts:
        # If samples have several trials, rules count trials.
        return Shown({name: counts[name] for name in ("samples", "trials", "failed", "failed_trials")})
    return Shown(_chosen(counts))


def _sql(result: Path, aigo: Run) -> Shown:
    (row,) = aigo("sql", "select * from results", result, "--json").json
    metrics = aigo("sql", "select * from metrics where run is null", result, "--json").json
    return Shown(_chosen(row), {metric["label"]: metric["value"] for metric in metrics}, lists_errors=True)


def _sql_of_samples(result: Path, aigo: Run) -> Shown:
    query = "select count(*) samples, sum(failed::int) failed, sum(excluded::int) excluded, sum(trials) trials from samples"
    (row,) = aigo("sql", query, result, "--json").json
    return Shown({name: int(value or 0) for name, value in row.items()})


def _table(result: Path, aigo: Run) -> Shown:
    file = result.parent / "table.csv"
    assert aigo("table", result, "--table", "results", "-o", file).code == 0
    with file.open(newline="") as lines:
        (row,) = csv.DictReader(lines)
    file.unlink()
    return Shown({name: int(row[name]) for name in COUNTS})


def _report(result: Path, aigo: Run) -> Shown:
    page = result.parent / "page.html"
    assert aigo("report", result, "-o", page).code == 0
    text = page.read_text()
    page.unlink()
    block = re.search(r'id="summary">([^<]*)<', text)
    assert block is not None
    return _of_page(json.loads(gzip.decompress(base64.b64decode(block[1])))["results"][0])


def _of_page(shown: Mapping[str, Any]) -> Shown:
    metrics = {
        value["label"]: float(value["text"]) for metric in shown["metrics"] for value in metric["values"]
    }
    return Shown(_chosen(shown["counts"]), metrics)


def _view(result: Path, aigo: Run) -> Shown:
    folder = result.parent / "viewed"
    folder.mkdir()
    shutil.copy(result, folder / result.name)
    with serving(folder) as server:
        reader = reader_of(server.guard.address)
        (entry,) = reader.entries().values()
        summary = reader.get(f"data/entry/{entry['id']}").json
    shutil.rmtree(folder)
    return _of_page(summary["results"][0])


def _verify(result: Path, aigo: Run) -> Shown:
    done = aigo("verify", result, "--json")
    assert done.code == 0, done.out
    levels = {level["level"]: level for level in done.json["levels"]}
    number = next(int(note.split()[0]) for note in levels["log"]["notes"] if re.match(r"\d+ samples?$", note))
    return Shown({"samples": number})


SURFACES: dict[str, Callable[[Path, Run], Shown]] = {
    "run": _summary_of_run,
    "stats --json": _stats,
    "stats": _stats_in_words,
    "show": _show,
    "show --failed": _failed_of_show,
    "compare": _compare,
    "compare --report": _comparison_page,
    "check": _check,
    "sql results": _sql,
    "sql samples": _sql_of_samples,
    "table": _table,
    "report": _report,
    "view": _view,
    "verify": _verify,
}
"""Name of a surface → function that returns the shown data."""
