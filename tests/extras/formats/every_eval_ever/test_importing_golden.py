"""Records of many collectors with their golden evidence. `AIGO_GOLDEN=update` rewrites it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.extras.formats.every_eval_ever.records import AGGREGATE, GOLDEN, INSTANCE, checked
from tests.extras.formats.every_eval_ever.test_importing import Json, imported, load, numbers

from aigo_bridge.dtypes import TaskResultLog
from aigo_formats.every_eval_ever.exporting import export_result

FOLDERS = sorted(path for path in (GOLDEN / "records").iterdir() if path.is_dir())


def told(log: TaskResultLog) -> Json:
    """Return the record-specific content of a result."""
    content: Json = log.model_dump(mode="json")
    return {
        "entity": content["specification"].get("evaluated_entity"),
        "task": content["specification"]["task"]["key"],
        "execution": content["execution"],
        "evidence": content["evidence"],
    }


def item_ids(log: TaskResultLog) -> list[list[str]]:
    """Return the item ids of each conversation."""
    content = log.model_dump(mode="json")
    outputs = [
        trial["solver"]["output"]
        for sample in content["evidence"].get("samples") or []
        for trial in sample["trials"]
        if trial["solver"] is not None
    ]
    return [[item["id"] for item in output["trace"]["items"] if "id" in item] for output in outputs]


def test_at_least_20_kinds_of_records_are_covered() -> None:
    assert len(FOLDERS) >= 20


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_records_are_valid_against_the_schema(folder: Path) -> None:
    for path in folder.glob("*-*.json"):
        assert [error.message for error in AGGREGATE.iter_errors(json.loads(path.read_text()))] == []
    for path in folder.glob("*.jsonl"):
        # Split bytes, because `str.splitlines` also splits at separators within a question.
        for line in path.read_bytes().splitlines():
            assert [error.message for error in INSTANCE.iter_errors(json.loads(line))] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_imported_record_matches_the_golden_evidence(folder: Path, tmp_path: Path) -> None:
    code, reports = imported(folder, tmp_path / "evidence")
    assert code == 0, [report.lines for report in reports]
    for report in reports:
        for ids in item_ids(load(report)):
            assert len(ids) == len(set(ids)), ids
    evidence = {report.output.name: told(load(report)) for report in reports if report.output is not None}
    text = json.dumps(evidence, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    # Traces contain the path of their file, which depends on the project folder.
    text = text.replace(str(GOLDEN), "<golden>")
    golden = GOLDEN / "evidence" / f"{folder.name}.json"
    if os.environ.get("AIGO_GOLDEN") == "update":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_golden_records_survive_an_export_and_import_round_trip(folder: Path, tmp_path: Path) -> None:
    _, reports = imported(folder, tmp_path / "evidence")
    for number, report in enumerate(reports):
        assert report.output is not None
        out = tmp_path / str(number)
        written = export_result(report.output, out, force=False)
        checked(out)
        code, (again,) = imported(written.path, out / "again")
        assert code == 0, again.lines
        assert numbers(load(again)) == numbers(load(report))
