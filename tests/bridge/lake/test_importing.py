"""Logs in a lake: there once, whatever happens, with the rows that they have as results."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.lakes import imported, make_log

from aigo_bridge.errors import UsageError
from aigo_bridge.importing.log_import import ImportOptions
from aigo_bridge.lake import importing, layout
from aigo_bridge.lake.layout import TABLES, open_lake
from aigo_bridge.lake.manifest import Selection, State, load_state
from aigo_bridge.lake.reading import LakeReader, LakeTables
from aigo_bridge.lake.stores import Store
from aigo_bridge.lake.verifying import problems_of, strangers
from aigo_bridge.tables.results import results_at
from aigo_bridge.tables.schema import TABLE_NAMES
from aigo_bridge.tables.sql import answered
from aigo_inspect.importing.importing import import_logs


def rows(lake: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table, by the path that any other program takes."""
    from pyarrow import parquet  # type: ignore[import-untyped]  # has no types

    files = sorted((lake / "data" / table).rglob("*.parquet"))
    return [row for file in files for row in parquet.ParquetFile(file).read().to_pylist()]


def test_rows_are_those_of_the_results_and_the_results_those_of_an_import(logs: Path, tmp_path: Path) -> None:
    tally, reports = imported(tmp_path / "lake", logs)
    assert (tally.imported, tally.worst, len(reports)) == (4, 0, 4)
    import_logs([logs], tmp_path / "out", jobs=1)
    (tmp_path / "taken").mkdir()
    taken = LakeReader(tmp_path / "lake").write_logs(tmp_path / "taken")
    there = sorted(path.read_bytes() for path in (tmp_path / "out").glob("*.tasklog.json"))
    assert sorted(path.read_bytes() for path in taken) == there
    results = results_at([tmp_path / "out"])
    for table in TABLE_NAMES:
        expected = [{**row, "result": ""} for row in results.table(table)]
        found = [
            {name: value for name, value in row.items() if name not in ("run_id", "log")} | {"result": ""}
            for row in rows(tmp_path / "lake", table)
        ]
        assert sorted(map(repr, found)) == sorted(map(repr, expected)), table
    assert len(rows(tmp_path / "lake", "scores")) == 9


def test_a_log_is_there_once(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    (logs / "copy.eval").write_bytes((logs / "a.eval").read_bytes())
    tally, _ = imported(lake, logs)
    assert (tally.imported, tally.known) == (0, 5)
    assert len(rows(lake, "results")) == 4


def test_a_better_log_of_a_run_takes_the_place_of_the_earlier_one_in_any_order(tmp_path: Path) -> None:
    better = make_log(tmp_path / "logs" / "better.eval", run="run", samples=3)
    worse = make_log(tmp_path / "logs" / "worse.eval", run="run", samples=1)
    for order in ((better, worse), (worse, better)):
        lake = tmp_path / f"lake-{order[0].name}"
        for log in order:
            imported(lake, log)
        state = load_state(open_lake(lake))
        assert [result.samples for result in state.results()] == [3]
        assert len(state.superseded) == 1
        assert len(rows(lake, "samples")) == 3
        assert strangers(open_lake(lake), state) == []


def test_entries_are_read_again_where_something_may_be_superseded_and_only_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def log(name: str, run: str, samples: int = 2) -> Path:
        return make_log(tmp_path / "logs" / f"{name}.eval", run=run, samples=samples)

    def beside(work: Any, calls: Any, jobs: int) -> Any:
        """Somebody else imports a worse log of the run that is imported here."""
        yield from [work(*call) for call in calls]
        with monkeypatch.context() as patched:
            patched.setattr(importing, "remove_superseded", lambda *_: None)
            imported(lake, log("meanwhile", "third", 1))

    reads: list[Store] = []

    def counted(store: Store) -> State:
        reads.append(store)
        return load_state(store)

    monkeypatch.setattr(importing, "load_state", counted)
    lake = tmp_path / "lake"
    for logs, hand_out, count in (
        ([log("a", "first"), log("b", "other")], None, 1),
        ([log("c", "fourth")], None, 1),
        ([log("d", "third", 3)], beside, 4),  # two are those of somebody else
        ([log("e", "second", 1), log("f", "second", 3)], None, 2),
    ):
        reads.clear()
        imported(lake, *logs, hand_out=hand_out)
        state = load_state(open_lake(lake))
        assert len(reads) == count, logs
        assert strangers(open_lake(lake), state) == []
        assert len(rows(lake, "samples")) == sum(result.samples for result in state.results())


def test_an_import_that_is_killed_at_any_file_is_whole_after_the_next_one(logs: Path, tmp_path: Path) -> None:
    lake, whole = tmp_path / "lake", tmp_path / "whole"
    imported(whole, logs)
    for files in range(0, 30, 3):
        child = os.fork()
        if child == 0:
            _die_after(files)
            imported(lake, logs)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL or status == 0
        if (lake / "lake.json").exists():
            state = load_state(open_lake(lake))
            assert list(problems_of(open_lake(lake))) == []
            assert all((lake / name).exists() for name in state.files)
    imported(lake, logs)
    for table in TABLES:
        assert sorted(map(repr, rows(lake, table))) == sorted(map(repr, rows(whole, table)))


def _die_after(files: int) -> None:
    """Have this process end by kill -9 before one more file appears."""
    left = iter(range(files))
    replace = Path.replace

    def dying(path: Path, target: Any) -> Path:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(path, target)

    Path.replace = dying  # type: ignore[method-assign,assignment]  # of the child alone


def test_what_is_no_log_or_damaged_takes_no_other_with_it(logs: Path, tmp_path: Path) -> None:
    (logs / "notes.json").write_text("{}")
    (logs / "cut.eval").write_bytes((logs / "b.eval").read_bytes()[:200])
    tally, reports = imported(tmp_path / "lake", logs)
    assert (tally.imported, tally.no_logs, tally.worst) == (5, 1, 3)
    assert [report.log for report in reports if report.exit_code] == [str(logs / "cut.eval")]
    with pytest.raises(UsageError, match="no logs at"):
        imported(tmp_path / "lake", tmp_path / "nothing")


def test_a_folder_that_is_no_lake_and_a_lake_of_another_release_are_refused(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"found other files and no lake\.json"):
        imported(tmp_path / "other", logs)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["mine.txt"]
    monkeypatch.setattr(layout, "VERSION", 2)
    imported(tmp_path / "lake", logs / "a.eval")
    monkeypatch.undo()
    with pytest.raises(UsageError, match="a lake of version 2, expected version 1"):
        imported(tmp_path / "lake", logs)
    with pytest.raises(UsageError, match="is no lake: found nothing"):
        open_lake(tmp_path / "nowhere")


def test_several_processes_write_what_one_does(logs: Path, tmp_path: Path) -> None:
    imported(tmp_path / "one", logs)
    imported(tmp_path / "two", logs, jobs=2)
    names = [
        sorted(str(path.relative_to(lake)) for path in lake.rglob("*.parquet"))
        for lake in (tmp_path / "one", tmp_path / "two")
    ]
    assert names[0] == names[1]


def test_logs_of_runs_that_go_on_are_left_for_later(tmp_path: Path) -> None:
    log = make_log(tmp_path / "logs" / "a.eval", run="run", status="started")
    tally, _ = imported(tmp_path / "lake", log, finished_only=True)
    assert (tally.imported, tally.unfinished) == (0, 1)
    make_log(log, run="run")
    assert imported(tmp_path / "lake", log, finished_only=True)[0].imported == 1


def test_only_the_partitions_that_are_meant_are_opened(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    for path in lake.glob("data/*/by_task=sums/by_model=m%2Fone/**/*.parquet"):
        path.write_bytes(b"no parquet")
    asked = "SELECT count(*) AS n FROM samples WHERE model = 'm/two'"
    with answered(asked, LakeTables(str(lake), Selection())) as answer:
        assert [row["n"] for row in answer.rows] == [2]
    odd = Selection(model=layout.part_name("odd/=% né"))
    with answered("SELECT model, count(*) AS n FROM trials GROUP BY 1", LakeTables(str(lake), odd)) as answer:
        assert list(answer.rows) == [{"model": "odd/=% né", "n": 2}]


def test_a_wrong_option_is_refused_before_anything_is_made(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pattern"):
        importing.import_into(str(tmp_path / "lake"), [], ImportOptions(patterns=("(",)), lambda _: None)
    assert not (tmp_path / "lake").exists()
