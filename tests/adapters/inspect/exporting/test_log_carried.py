"""Evidence embedded in an Inspect log is used only if its content matches the log.

Checksums are no proof, because anybody can recompute them.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aigo_inspect.exporting.log import export_log
from aigo_inspect.importing.api import import_log, iter_samples
from aigo_inspect.importing.importing import ImportOptions, import_file

Json = Any
FRAME, FIRST = "_aigo/frame.json", "_aigo/samples/0.json"


@pytest.fixture(scope="module")
def written(logs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("carried")
    result = import_file(logs["plain"], folder / "first", ImportOptions())
    assert result.output is not None
    return export_log(result.output, folder / "logs")


def edited(log: Path, target: Path, change: Callable[[dict[str, Json]], None]) -> Path:
    """Return a copy with changed members and matching checksums."""
    with zipfile.ZipFile(log) as archive:
        members = {name: json.loads(archive.read(name)) for name in archive.namelist()}
    change(members)
    data = {name: json.dumps(value, separators=(",", ":")).encode() for name, value in members.items()}
    own = {name: zlib.crc32(text) for name, text in data.items() if not name.startswith("_aigo/")}
    data["_aigo/index.json"] = json.dumps({"checksums": own}).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in data.items():
            archive.writestr(name, text)
    return target


def carried_score(members: dict[str, Json]) -> None:
    trial = members[FIRST]["trials"][0]
    trial["scores"][0]["values"] = dict.fromkeys(trial["scores"][0]["values"], 0.123)


def carried_metric(members: dict[str, Json]) -> None:
    metric = members[FRAME]["evidence"]["metrics"][0]
    metric["values"] = dict.fromkeys(metric["values"], 0.99)


def carried_text(members: dict[str, Json]) -> None:
    trace = members[FIRST]["trials"][0]["solver"]["output"]["trace"]
    trace["items"][-1]["content"] = [{"type": "output_text", "text": "never said", "annotations": []}]


def carried_id(members: dict[str, Json]) -> None:
    members[FIRST]["sample_id"] = members[FIRST]["trials"][0]["sample_id"] = "another"


def carried_error(members: dict[str, Json]) -> None:
    members[FIRST]["trials"][0]["errors"] = [{"error_type": "E", "message": "made up"}]


def carried_failures(members: dict[str, Json]) -> None:
    members[FRAME]["evidence"]["failures"] = {"num_errors": 0, "num_total": 1000}


def one_carried_less(members: dict[str, Json]) -> None:
    last = max(name for name in members if name.startswith("_aigo/samples/"))
    del members[last]


def no_index(members: dict[str, Json]) -> None:
    carried_score(members)
    del members["_aigo/index.json"]


def score_of_the_log(members: dict[str, Json]) -> None:
    name = min(name for name in members if name.startswith("samples/"))
    for score in members[name]["scores"].values():
        score["value"] = 0.5


def status_of_the_log(members: dict[str, Json]) -> None:
    members["header.json"]["status"] = "error"
    members["header.json"]["error"] = {"message": "it failed", "traceback": "", "traceback_ansi": ""}


def metric_of_the_log(members: dict[str, Json]) -> None:
    for score in members["header.json"]["results"]["scores"]:
        for metric in score["metrics"].values():
            metric["value"] = 0.65


def one_more_in_the_log(members: dict[str, Json]) -> None:
    name = min(name for name in members if name.startswith("samples/"))
    members["samples/new_epoch_1.json"] = {**members[name], "id": "new", "uuid": "new"}


CHANGES = [
    carried_score,
    carried_metric,
    carried_text,
    carried_id,
    carried_error,
    carried_failures,
    one_carried_less,
    no_index,
    score_of_the_log,
    status_of_the_log,
    metric_of_the_log,
    one_more_in_the_log,
]


def without_evidence(members: dict[str, Json]) -> None:
    for name in [name for name in members if name.startswith("_aigo/")]:
        del members[name]


def told(log: Path, folder: Path) -> tuple[int, str, Json]:
    """Return the exit code, reason and evidence of an import."""
    result = import_file(log, folder / log.stem)
    assert result.output is not None
    evidence = json.loads(result.output.read_bytes())
    return result.exit_code, result.reason, evidence


def said(evidence: Json) -> Json:
    """Return the samples and metrics of the evidence, independent of the log's location."""
    samples = [
        (
            sample["sample_id"],
            [
                (trial["scores"], trial["errors"], items_of(trial["solver"]["output"]["trace"]))
                for trial in sample["trials"]
            ],
        )
        for sample in evidence["evidence"]["samples"]
    ]
    return samples, evidence["evidence"]["metrics"], evidence["evidence"]["failures"]


def items_of(trace: Json) -> list[Json]:
    return [(item.get("role"), item.get("content")) for item in trace["items"]]


@pytest.mark.parametrize("change", CHANGES)
def test_the_log_takes_precedence_over_contradicting_evidence(
    written: Path, tmp_path: Path, change: Callable[[dict[str, Json]], None]
) -> None:
    def alone(members: dict[str, Json]) -> None:
        change(members)
        without_evidence(members)

    log = edited(written, tmp_path / "both.eval", change)
    code, reason, evidence = told(log, tmp_path)
    _, _, expected = told(edited(written, tmp_path / "alone.eval", alone), tmp_path)

    assert code == 3
    assert "the log was used" in reason
    assert evidence["status"] == "failure"
    assert said(evidence) == said(expected)
    assert [sample.sample_id for sample in iter_samples(log)] == [
        sample["sample_id"] for sample in expected["evidence"]["samples"]
    ]
    assert import_log(log).status == "failure"


def test_an_unmodified_log_keeps_its_evidence_after_repacking(written: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(written) as archive:
        data = {name: archive.read(name) for name in archive.namelist()}
    packed = tmp_path / "packed.eval"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, text in data.items():
            archive.writestr(name, text)

    code, reason, evidence = told(packed, tmp_path)

    assert (code, reason) == (0, "")
    assert evidence == told(written, tmp_path)[2]


def test_a_log_with_unreadable_embedded_evidence_is_imported(written: Path, tmp_path: Path) -> None:
    def odd(members: dict[str, Json]) -> None:
        members[FIRST] = [1]

    code, reason, evidence = told(edited(written, tmp_path / "odd.eval", odd), tmp_path)

    assert code == 3
    assert "_aigo/" in reason
    assert evidence["evidence"]["samples"]
