"""Files that belong to a run, and the engine of a location."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.lighteval.importing.results import (
    DATE,
    details_path,
    imported,
    load,
    results_json,
    results_path,
    row,
    the_log,
    write_details,
    write_results,
    write_run,
)
from tests.support.commands import REPOSITORY, Run

from aigo_bridge.errors import UsageError

Json = dict[str, Any]
LATER = "2026-02-02T03-04-05"


def outcome(location: Path | str, out: Path) -> list[tuple[int, Any, int]]:
    """Return the exit code, metric and number of samples of each log."""
    _, reports = imported(location, out)
    found: list[tuple[int, Any, int]] = []
    for report in reports:
        assert report.output is not None, report.lines
        log = load(report.output)
        assert log.evidence is not None
        metrics = [metric.values["em"] for metric in log.evidence.metrics or []]
        found.append((report.exit_code, metrics[0] if metrics else None, len(log.evidence.samples or [])))
    return found


@pytest.mark.parametrize(
    "inside",
    [
        ".",
        "results",
        "results/org/model",
        f"results/org/model/results_{DATE}.json",
        "details",
        f"details/org/model/{DATE}",
        f"details/org/model/{DATE}/details_demo|0_{DATE}.parquet",
        "*/org",
        f"results/*/*/results_{DATE[:10]}*",
    ],
)
def test_any_file_of_a_run_finds_the_other_files(inside: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert outcome(str(run / inside), tmp_path / "out") == [(0, 1.0, 3)]


def test_a_relative_path_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run")
    monkeypatch.chdir(results_path(run).parent)
    assert outcome(results_path(run).name, tmp_path / "out") == [(0, 1.0, 3)]


def test_the_hub_repository_layout_is_read(tmp_path: Path) -> None:
    write_results(tmp_path / "hub" / f"results_{DATE}.json", results_json())
    write_details(tmp_path / "hub" / DATE / f"details_demo|0_{DATE}.parquet", [row(0)])
    assert outcome(tmp_path / "hub", tmp_path / "out") == [(0, 1.0, 1)]
    assert outcome(tmp_path / "hub" / f"results_{DATE}.json", tmp_path / "out") == [(0, 1.0, 1)]


def test_results_in_a_custom_folder_are_found(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    moved = run / "scores" / "model"
    moved.mkdir(parents=True)
    shutil.move(results_path(run), moved)
    assert outcome(moved, tmp_path / "out") == [(0, 1.0, 3)]
    assert outcome(run, tmp_path / "out") == [(0, 1.0, 3)]


def test_files_in_one_flat_folder_are_read(tmp_path: Path) -> None:
    write_results(tmp_path / "flat" / f"results_{DATE}.json", results_json())
    write_details(tmp_path / "flat" / f"details_demo|0_{DATE}.parquet", [row(0), row(1)])
    assert outcome(tmp_path / "flat" / f"results_{DATE}.json", tmp_path / "out") == [(0, 1.0, 2)]


def test_renamed_files_are_recognized_by_content(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (tmp_path / "a.json").write_bytes(results_path(run).read_bytes())
    (tmp_path / "b.parquet").write_bytes(details_path(run).read_bytes())
    assert outcome(tmp_path / "a.json", tmp_path / "out") == [(3, 1.0, 0)]
    assert outcome(tmp_path / "b.parquet", tmp_path / "out") == [(3, None, 3)]


def test_replaced_special_characters_in_file_names_are_accepted(tmp_path: Path) -> None:
    content = results_json("group:part|5")
    write_results(results_path(tmp_path / "run"), content)
    write_details(details_path(tmp_path / "run", "group_part_5"), [row(0)])
    log = the_log(tmp_path / "run", tmp_path / "out")
    assert log.status == "success"
    assert log.specification.display_name == "group:part|5"
    assert log.specification.config["num_fewshots"] == 5


def test_task_names_with_only_colons_match_their_details(tmp_path: Path) -> None:
    write_results(results_path(tmp_path / "run"), results_json("group:part:5"))
    write_details(details_path(tmp_path / "run", "group:part|5"), [row(0)])
    log = the_log(tmp_path / "run", tmp_path / "out")
    assert log.status == "success"
    assert log.specification.config["num_fewshots"] == 5


def test_every_run_in_a_folder_gets_its_own_result(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    write_results(results_path(tmp_path / "run", LATER), results_json(metrics={"em": 1}))
    write_details(details_path(tmp_path / "run", date=LATER), [row(0)])
    assert outcome(tmp_path / "run", tmp_path / "out") == [(0, 1.0, 3), (0, 1, 1)]
    assert len(list((tmp_path / "out").glob("*.tasklog.json"))) == 2
    ended = {load(path).execution.ended_at for path in (tmp_path / "out").glob("*.tasklog.json")}
    assert len(ended) == 2


def test_copies_of_a_run_use_their_own_details(tmp_path: Path) -> None:
    one, two = tmp_path / "both" / "one", tmp_path / "both" / "two"
    write_run(one, [row(0)])
    write_run(two, [row(0), row(1)])
    assert outcome(tmp_path / "both", tmp_path / "out") == [(0, 1.0, 1), (0, 1.0, 2)]


def test_results_without_details_are_reported_with_a_fix(tmp_path: Path) -> None:
    write_results(results_path(tmp_path / "run"), results_json())
    code, (report,) = imported(tmp_path / "run", tmp_path / "out")
    assert code == 3
    assert any("--save-details" in line for line in report.lines)
    assert report.output is not None
    log = load(report.output)
    assert log.evidence is not None
    assert log.evidence.samples is None
    assert log.evidence.metrics is not None


def test_a_task_with_only_details_is_imported_with_the_others(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    write_details(details_path(run, "other|1"), [row(0), row(1)])
    assert outcome(run, tmp_path / "out") == [(0, 1.0, 3), (0, None, 2)]


def test_an_empty_details_file_has_no_samples(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

    write_details(details_path(run), pq.read_table(details_path(run)).slice(0, 0))
    log = the_log(run, tmp_path / "out")
    assert log.status == "success"
    assert log.evidence is not None
    assert log.evidence.samples == []


def test_overlapping_locations_are_read_once(tmp_path: Path, aigo: Run) -> None:
    run = write_run(tmp_path / "run")
    done = aigo("import", run, run / "results", "--json")
    assert done.code == 0
    assert len(done.json) == 1


def test_the_engine_is_detected_from_the_files(tmp_path: Path, aigo: Run) -> None:
    run = write_run(tmp_path / "both")
    shutil.copy(REPOSITORY / "tests" / "golden" / "inspect" / "0.3.240.eval", run)
    shutil.copy(REPOSITORY / "tests" / "golden" / "inspect" / "0.3.50.json", run / "2025-01-01.json")

    done = aigo("import", run, "--json")
    assert done.code == 0, done.err
    assert sorted(Path(report["log"].split(" (")[0]).suffix for report in done.json) == [
        ".eval",
        ".json",
        ".json",
    ]
    assert len(aigo("import", run, "--engine", "lighteval", "--json").json) == 1
    assert len(aigo("import", run, "--engine", "inspect", "--json").json) == 2
    mixed = aigo("import", run / "0.3.240.eval", results_path(run), "--json").json
    assert [report["samples"] for report in mixed] == [2, 3]


def test_a_pattern_can_match_files_of_both_engines(tmp_path: Path, aigo: Run) -> None:
    run = write_run(tmp_path / "both")
    (run / "empty").mkdir()
    shutil.copy(REPOSITORY / "tests" / "golden" / "inspect" / "0.3.240.eval", run)
    for pattern in ("both/*", "both/**", "both/**/*.*"):
        done = aigo("import", pattern, "--json")
        assert done.code == 0, done.out
        assert [report["samples"] for report in done.json] == [2, 3]
    done = aigo("import", "both/**/*.parquet", "--json")
    assert [report["samples"] for report in done.json] == [3]
    assert aigo("import", "both/e*").code == 2


def test_a_file_that_is_not_an_engine_log_is_refused(tmp_path: Path, aigo: Run) -> None:
    (tmp_path / "empty").mkdir()
    done = aigo("import", "empty")
    assert done.code == 2
    assert "results_<date>.json" in done.err
    assert "*.eval" in done.err
    done = aigo("import", "empty", "--engine", "lighteval")
    assert done.code == 2
    done = aigo("import", "empty", "--engine", "lightevil")
    assert done.code == 2
    assert "known engines: inspect, lighteval" in done.err


def test_import_works_without_lighteval(tmp_path: Path, command: Run) -> None:
    run = write_run(tmp_path / "run")
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('lighteval', 'torch', 'transformers', 'datasets', 'inspect_ai')))\n"
        "import importlib.metadata as m\n"
        "real = m.version\n"
        "def version(name):\n"
        "    if name in ('lighteval', 'torch'): raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.version = version\n"
        "from aigo_bridge.cli import main\n"
        f"sys.argv = ['aigo-bridge', 'import', {str(run)!r}, '--out', 'out']\n"
        "main()\n"
    )
    done = command("python", "-c", code)
    assert done.code == 0, done.err
    assert "3 samples" in done.out


def test_missing_pyarrow_is_reported_with_the_install_command(tmp_path: Path, command: Run) -> None:
    run = write_run(tmp_path / "run")
    code = (
        "import sys\n"
        "sys.modules['pyarrow'] = None\n"
        "from aigo_bridge.cli import main\n"
        f"sys.argv = ['aigo-bridge', 'import', {str(run)!r}, '--out', 'out']\n"
        "main()\n"
    )
    done = command("python", "-c", code)
    assert done.code != 0
    assert "run: pip install 'pyarrow" in done.err
    assert "Traceback" not in done.err


def test_a_url_of_another_file_system_is_read(tmp_path: Path) -> None:
    import fsspec  # type: ignore[import-untyped]  # has no types

    run = write_run(tmp_path / "run")
    memory = fsspec.filesystem("memory")
    for path in run.rglob("*.*"):
        if path.is_file():
            memory.pipe(f"/bucket/{path.relative_to(run)}", path.read_bytes())
    try:
        assert outcome("memory://bucket", tmp_path / "out") == [(0, 1.0, 3)]
        found = memory.find("/bucket")
        results = next(path for path in found if path.endswith(".json"))
        assert outcome(f"memory://{results}", tmp_path / "out") == [(0, 1.0, 3)]
    finally:
        memory.rm("/bucket", recursive=True)
    assert outcome(f"file://{run}", tmp_path / "out") == [(0, 1.0, 3)]


def test_task_names_do_not_escape_the_output_folder(tmp_path: Path) -> None:
    name = "../../" + "é" * 200 + "\x1b[2J|0"
    write_results(results_path(tmp_path / "run"), results_json(name))
    imported(tmp_path / "run", tmp_path / "a" / "out")
    (path,) = (tmp_path / "a").rglob("*.tasklog.json")
    assert path.parent == tmp_path / "a" / "out"
    assert "\x1b" not in path.name
    assert load(path).specification.display_name == name


def test_parquet_output_is_refused_before_reading(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with pytest.raises(UsageError, match="for lighteval results"):
        imported(run, tmp_path / "out", output_format="parquet")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("output_format", ["json", "json.gz", "json.zst"])
def test_results_can_be_compressed(output_format: str, tmp_path: Path) -> None:
    from aigo_bridge.results.reading import read_log

    run = write_run(tmp_path / "run")
    _, (report,) = imported(run, tmp_path / "out", output_format=output_format)
    assert report.output is not None
    assert report.output.name.endswith(f".tasklog.{output_format}")
    assert len(list(read_log(report.output))) == 3


def test_importing_the_same_files_gives_identical_bytes(tmp_path: Path) -> None:
    with zipfile.ZipFile(REPOSITORY / "tests" / "golden" / "lighteval" / "0.13.0.zip") as archive:
        archive.extractall(tmp_path / "run")
    imported(tmp_path / "run", tmp_path / "one")
    imported(tmp_path / "run", tmp_path / "two")
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / out).iterdir()} for out in ("one", "two")
    )
    assert one == two
    assert len(one) == 18
    assert all(json.loads(data) for data in one.values())
