"""`aigo-bridge import` prints one line for each log; `--out` may name the only result."""

import shutil
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run

from aigo_bridge.results.validating import validate_log

GOLDEN = REPOSITORY / "tests" / "golden" / "inspect"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("0.3.50", "0.3.150"):
        shutil.copy(GOLDEN / f"{name}.eval", folder / f"{name}.eval")
    whole = (GOLDEN / "0.3.95.eval").read_bytes()
    (folder / "cut.eval").write_bytes(whole[: len(whole) // 2])
    (folder / "gone.eval").write_bytes(whole[:40])
    return folder


def test_each_log_has_one_line_and_the_total_counts_partial_imports(aigo: Run, logs: Path) -> None:
    done = aigo("import", logs, "--out", "out")
    assert done.code == 3
    lines = done.out.splitlines()
    assert [line.split(":")[0].rsplit("/", 1)[-1] for line in lines] == [
        "0.3.150.eval", "0.3.50.eval", "cut.eval", "gone.eval",
    ]  # fmt: skip
    assert lines[0].startswith(
        f"{logs}/0.3.150.eval: success, 2 samples in 2 trials -> out/0.3.150.tasklog.json; "
    )
    assert "unreadable: " in lines[2]
    assert "4 logs: 2 imported, 1 partly imported, 1 not imported; " in done.err


def test_verbose_prints_the_details(aigo: Run, logs: Path) -> None:
    done = aigo("import", logs / "0.3.50.eval", "--out", "out", "--verbose")
    assert "  dropped: 8 x event state" in done.out
    assert "logs:" not in done.err


def test_lake_counts_partially_imported_logs(aigo: Run, logs: Path) -> None:
    done = aigo("import", logs / "cut.eval", logs / "0.3.50.eval", "--lake", "lake")
    assert done.code == 3
    assert "lake: 2 imported" in done.err


@pytest.mark.parametrize("suffix", ["json", "json.gz", "json.zst"])
def test_out_with_a_result_extension_is_a_file(suffix: str, aigo: Run, logs: Path, tmp_path: Path) -> None:
    done = aigo("import", logs / "0.3.50.eval", "--out", f"a/b.tasklog.{suffix}", "--provenance", "--json")
    assert done.code == 0, done.err
    assert done.json[0]["output"] == f"a/b.tasklog.{suffix}"
    names = ["b.loss.json", "b.provenance.json", f"b.tasklog.{suffix}"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    assert validate_log(tmp_path / "a" / f"b.tasklog.{suffix}") == []
    verified = aigo("verify", f"a/b.tasklog.{suffix}", "--log", logs / "0.3.50.eval")
    assert "FAILED" not in verified.out


def test_several_logs_with_a_single_output_file_are_refused(aigo: Run, logs: Path, tmp_path: Path) -> None:
    done = aigo("import", logs, "--out", "all.tasklog.json")
    assert done.code == 2
    assert "--out names one file, but the logs have several results" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--out", "x.tasklog.json.gz", "--format", "json.zst"),
            "the file extension requires --format json.gz",
        ),
        (("--out", "x.tasklog.json", "--format", "parquet"), "the file extension requires --format json,"),
        (("--out", "folder.tasklog.json"), "a folder with this name exists"),
    ],
)
def test_contradictory_out_options_are_refused(
    arguments: tuple[str, ...], message: str, aigo: Run, logs: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder.tasklog.json").mkdir()
    done = aigo("import", logs / "0.3.50.eval", *arguments)
    assert (done.code, message in done.err) == (2, True)
