"""A large log imported by several processes gives the same files as in a single stream."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
from tests.support.lakes import make_log

from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_inspect.importing import ranges
from aigo_inspect.importing.importing import import_file
from aigo_inspect.importing.ranges import plan_ranges
from aigo_inspect.logs.reader import open_log

LOGS = sorted((Path(__file__).parents[3] / "golden" / "inspect").glob("*.eval"))


@pytest.fixture(autouse=True)
def _small_logs_count_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "LARGE", 1)


def imported(
    log: Path, folder: Path, options: ImportOptions, processes: int
) -> tuple[ImportReport, list[str]]:
    """Return the report of an import and the names of the written files."""
    folder.mkdir()
    report = import_file(log, folder / "result", options, processes=processes)
    return report, sorted(path.name for path in folder.iterdir())


def assert_equal_imports(log: Path, folder: Path, options: ImportOptions) -> None:
    one, names = imported(log, folder / "one", options, 1)
    several, names_of_several = imported(log, folder / "several", options, 3)
    assert names_of_several == names
    for name in names:
        assert (folder / "several" / name).read_bytes() == (folder / "one" / name).read_bytes(), name
    assert (several.samples, several.trials, several.failed) == (one.samples, one.trials, one.failed)
    assert (several.redacted, several.damage, several.loss) == (one.redacted, one.damage, one.loss)
    assert several.exit_code == one.exit_code


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_several_processes_write_the_same_files(tmp_path: Path, log: Path) -> None:
    assert_equal_imports(log, tmp_path, ImportOptions())


@pytest.mark.parametrize("output_format", ["json.gz", "json.zst"])
def test_compressed_results_are_identical_files(tmp_path: Path, output_format: str) -> None:
    assert_equal_imports(LOGS[0], tmp_path, ImportOptions(output_format=output_format))  # type: ignore[arg-type]


def test_redacted_secrets_are_counted_once(tmp_path: Path) -> None:
    log = make_log(tmp_path / "a.eval", run="run", samples=6, model="m/sk-ant-api03-" + "x" * 93 + "AA")
    with open_log(log) as reader:
        plan = plan_ranges(reader, 3)
    assert plan is not None
    assert plan.ends == (1, 2, 3, 4, 5, 6)
    assert_equal_imports(log, tmp_path, ImportOptions())


def test_a_damaged_sample_is_reported_as_in_a_single_stream(tmp_path: Path) -> None:
    log = make_log(tmp_path / "a.eval", run="run", samples=6)
    with zipfile.ZipFile(log) as archive:
        start = archive.getinfo("samples/s4_epoch_1.json").header_offset
    content = bytearray(log.read_bytes())
    at = content.index(b'"epoch"', start)
    content[at : at + 7] = b"\0\0\0\0\0\0\0"
    log.write_bytes(content)
    assert_equal_imports(log, tmp_path, ImportOptions())


def test_a_truncated_log_is_read_in_one_stream(tmp_path: Path) -> None:
    log = tmp_path / "a.eval"
    shutil.copy(LOGS[0], log)
    log.write_bytes(log.read_bytes()[: log.stat().st_size * 2 // 3])
    with open_log(log) as reader:
        assert plan_ranges(reader, 3) is None
    assert_equal_imports(log, tmp_path, ImportOptions())


def test_ranges_have_about_equal_sizes_and_contain_every_sample() -> None:
    assert ranges._ends([10, 10, 10, 10, 10, 10], 3) == (2, 4, 6)
    assert ranges._ends([100, 1, 1, 1], 2) == (1, 4)
    assert ranges._ends([1, 1, 1, 100], 2) == (4,)
    assert ranges._ends([0, 0, 0], 2) == (1, 3)
