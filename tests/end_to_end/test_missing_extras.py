"""Default installation: a missing extra is requested only if a file needs it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.missing import LIGHTEVAL, PARQUET, verbs_without

import aigo_inspect.engine
from aigo_bridge.codes import Code
from aigo_bridge.errors import MissingEngineError
from aigo_inspect.engine import InspectEngine

GOLDEN = REPOSITORY / "tests" / "golden"
LOG = GOLDEN / "inspect" / "0.3.285-chunked.eval"
CAPITALS = REPOSITORY / "examples" / "capitals"
MODEL = f"scripted/{CAPITALS / 'answers.jsonl'}"
PIP = "run: pip install 'pyarrow"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Lighteval results with details."""
    with zipfile.ZipFile(GOLDEN / "lighteval" / "0.13.0.zip") as archive:
        archive.extractall(tmp_path / "lighteval")
    return tmp_path / "lighteval"


def test_every_verb_on_inspect_works_without_the_extras(tmp_path: Path) -> None:
    done = verbs_without(
        tmp_path,
        [*LIGHTEVAL, *PARQUET],
        ["import", LOG, "--out", "one"],
        ["import", GOLDEN / "inspect", "--out", "all"],
        ["run", CAPITALS, "--model", MODEL, "--out", "run"],
        ["validate", "run/capitals.tasklog.json", CAPITALS / "task.yaml"],
        ["explain", CAPITALS],
        ["score", CAPITALS, "run/capitals.tasklog.json", "--out", "score"],
        ["export", CAPITALS, "--to", "inspect", "--out", "export"],
        ["export", "run/capitals.tasklog.json", "--to", "inspect-log", "--out", "logs"],
        ["import", "run", "--out", "again"],
        ["list"],
        ["doctor"],
    )

    for finished in done:
        assert finished.code == 0, (finished.out, finished.err)
        assert "lighteval" not in finished.err
    assert (tmp_path / "one" / f"{LOG.stem}.tasklog.json").is_file()
    assert len(list((tmp_path / "all").glob("*.tasklog.json"))) == 8


def test_only_lighteval_details_need_pyarrow(tmp_path: Path, results: Path) -> None:
    (results_file,) = results.rglob("results_*.json")
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / results_file.name).write_bytes(results_file.read_bytes())

    both, alone, without_details, tables = verbs_without(
        tmp_path,
        [*LIGHTEVAL, *PARQUET],
        ["import", results, LOG, "--out", "both", "--json"],
        ["import", results, "--out", "alone"],
        ["import", bare, "--out", "bare-out"],
        ["import", LOG, "--out", "tables", "--format", "parquet"],
    )

    assert both.code == 2
    assert "pyarrow is not installed" in both.err
    assert PIP in both.err
    assert results_file.name in both.err
    assert [Path(report["log"]).name for report in both.json] == [LOG.name]
    assert (tmp_path / "both" / f"{LOG.stem}.tasklog.json").is_file()
    assert (alone.code, PIP in alone.err) == (2, True)
    assert without_details.code == 3
    assert "lighteval only writes them with --save-details" in without_details.out
    assert (tables.code, PIP in tables.err) == (2, True)


def test_a_lake_needs_its_extra(tmp_path: Path) -> None:
    (tmp_path / "lake" / "logs" / "_delta_log").mkdir(parents=True)
    done = verbs_without(
        tmp_path,
        ["deltalake"],
        ["import", LOG, "--lake", "new"],
        ["lake", "show", "lake"],
        ["sql", "SELECT 1", "lake"],
        ["report", "lake"],
    )
    for finished in done:
        assert (finished.code, "a lake (extra 'lake') needs deltalake" in finished.err) == (2, True), (
            finished.err
        )
        assert "run: pip install 'deltalake" in finished.err
    assert not (tmp_path / "new").exists()


def test_engine_import_error_does_not_affect_other_logs(tmp_path: Path, results: Path) -> None:
    imported, unread, nothing = verbs_without(
        tmp_path,
        ["aigo_lighteval"],
        ["import", LOG, "--out", "one"],
        ["import", results],
        ["import", "nothing"],
    )

    assert imported.code == 0, imported.err
    assert unread.code == 2
    assert "engine 'lighteval' cannot be loaded" in unread.err
    assert (nothing.code, "no logs at 'nothing'" in nothing.err) == (2, True)


def test_an_outdated_engine_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aigo_inspect.engine, "OLDEST", (9999, 1))
    with pytest.raises(
        MissingEngineError, match=r"is too old, this release needs 9999\.1 or later; run: "
    ) as caught:
        InspectEngine()
    assert caught.value.code == Code.OLD_PACKAGE
