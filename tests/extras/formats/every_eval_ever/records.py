"""Helpers that validate exported files like the Every Eval Ever validator, and results to export."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
from tests.extras.formats.lm_eval.results import imported, unpacked
from tests.support.commands import REPOSITORY

GOLDEN = REPOSITORY / "tests" / "golden" / "every_eval_ever"
AGGREGATE, INSTANCE = (
    jsonschema.Draft7Validator(json.loads((GOLDEN / f"{name}.schema.json").read_text()))
    for name in ("eval", "instance_level_eval")
)
PATH = re.compile(
    r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(_samples)?\.jsonl?"
)
Json = dict[str, Any]


def checked(root: Path) -> list[tuple[Json, list[Json]]]:
    """Return every aggregate file in a folder with its instances after schema validation."""
    pairs = []
    files = sorted(path for path in root.rglob("*.json*") if not path.name.endswith(".loss.json"))
    for path in files:
        assert PATH.fullmatch(path.relative_to(root).as_posix()), path
        assert path.suffix == ".json" or path.with_name(path.name.replace("_samples.jsonl", ".json")) in files
        if path.suffix == ".json":
            pairs.append(_checked(root, path))
    return pairs


def _checked(root: Path, path: Path) -> tuple[Json, list[Json]]:
    aggregate = json.loads(path.read_text())
    assert [error.message for error in AGGREGATE.iter_errors(aggregate)] == []
    ids = [result["evaluation_result_id"] for result in aggregate["evaluation_results"]]
    assert len(ids) == len(set(ids))
    companion = aggregate.get("detailed_evaluation_results")
    if companion is None:
        return aggregate, []
    data = (root / companion["file_path"]).read_bytes()
    assert (root / companion["file_path"]).parent == path.parent
    assert companion["checksum"] == hashlib.sha256(data).hexdigest()
    lines = [json.loads(line) for line in data.splitlines()]
    assert companion["total_rows"] == len(lines)
    for line in lines:
        assert [error.message for error in INSTANCE.iter_errors(line)] == []
        assert line["evaluation_id"] == aggregate["evaluation_id"]
        assert line["model_id"] == aggregate["model_info"]["id"]
        assert line.get("evaluation_result_id", ids[0]) in ids
    return aggregate, lines


def results_of(release: str, folder: Path) -> list[Path]:
    """Return result logs with metrics, imported from the files of an lm-evaluation-harness release."""
    _, reports = imported(unpacked(release, folder / "run"), folder / "evidence")
    return [report.output for report in reports if report.output is not None and report.loss.kept["metric"]]
