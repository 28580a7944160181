"""Helpers that write small lm-evaluation-harness files and import them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.support.commands import REPOSITORY

from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.results.reading import read_log
from aigo_formats.lm_eval.importing import LmEvalResults

GOLDEN = REPOSITORY / "tests" / "golden" / "lm_eval"
RELEASES = sorted(path.stem for path in GOLDEN.glob("*.zip"))
DATE = "2026-01-02T03-04-05.000678"
Json = dict[str, Any]


def unpacked(release: str, folder: Path) -> Path:
    """Return the folder with the golden files of a release."""
    with zipfile.ZipFile(GOLDEN / f"{release}.zip") as archive:
        archive.extractall(folder)
    return folder


def row(number: int, score: float = 1.0, **fields: Any) -> Json:
    """Return a line of a samples file."""
    return {
        "doc_id": number,
        "doc": {"q": f"question {number}", "a": "yes"},
        "target": "yes",
        "arguments": {"gen_args_0": {"arg_0": f"question {number}", "arg_1": {"until": ["\n"]}}},
        "resps": [["yes"]],
        "filtered_resps": ["yes"],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": score,
        **fields,
    }


def header(value: float = 1.0, **fields: Any) -> Json:
    """Return the content of a results file."""
    metric = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}
    return {
        "results": {"demo": {"alias": "demo", "exact_match,none": value, "exact_match_stderr,none": "N/A"}},
        "group_subtasks": {"demo": []},
        "configs": {"demo": {"task": "demo", "output_type": "generate_until", "metric_list": [metric]}},
        "versions": {"demo": 1.0},
        "n-shot": {"demo": 0},
        "config": {"model": "hf", "model_args": "pretrained=org/m", "limit": None},
        "date": 1767323045.5,
        "model_name": "org/m",
        "total_evaluation_time_seconds": "2.5",
        **fields,
    }


def write(folder: Path, results: Any, lines: list[Any] | bytes | None, task: str = "demo") -> Path:
    """Write a run of one task and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if results is not None:
        data = results if isinstance(results, bytes) else json.dumps(results).encode()
        (folder / f"results_{DATE}.json").write_bytes(data)
    if lines is not None:
        data = (
            lines
            if isinstance(lines, bytes)
            else b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        )
        (folder / f"samples_{task}_{DATE}.jsonl").write_bytes(data)
    return folder


def imported(location: Path, out: Path, **options: Any) -> tuple[int, list[ImportReport]]:
    """Import files and return the worst exit code and the reports."""
    reports: list[ImportReport] = []
    code = LmEvalResults().import_logs([str(location)], out, ImportOptions(**options), reports.append)
    return code, reports


def load(report: ImportReport) -> TaskResultLog:
    """Return the written result log."""
    assert report.output is not None
    return read_log(report.output).load()
