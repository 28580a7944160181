"""A compacted lake holds what it held; killed at any moment, too; and two do not compact at once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.bridge.lake.test_importing import _die_after, rows
from tests.support.lakes import imported, make_log

from aigo_bridge.errors import UsageError
from aigo_bridge.lake import compacting
from aigo_bridge.lake.compacting import compact
from aigo_bridge.lake.layout import EVIDENCE, TABLES, open_lake
from aigo_bridge.lake.manifest import load_state
from aigo_bridge.lake.reading import LakeReader
from aigo_bridge.lake.verifying import problems_of, strangers


def compacted(lake: Path) -> compacting.Compacted:
    return compact(str(lake), open_lake(lake), lambda _: None)


def contents(lake: Path) -> dict[str, list[str]]:
    return {table: sorted(map(repr, rows(lake, table))) for table in TABLES}


def test_rows_stay_and_files_become_few(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    before = contents(lake)
    done = compacted(lake)
    assert contents(lake) == before
    assert (done.results, done.after) == (4, 3 * sum(bool(found) for found in before.values()))
    assert compacted(lake).before == done.after
    assert imported(lake, logs)[0].known == 4
    assert contents(lake) == before


def test_a_better_log_replaces_rows_in_a_compacted_file(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    compacted(lake)
    imported(lake, make_log(logs / "a2.eval", run="run-a", samples=5))
    state = load_state(open_lake(lake))
    assert sorted(result.samples for result in state.results()) == [2, 2, 3, 5]
    (tmp_path / "taken").mkdir()
    assert len(LakeReader(lake).write_logs(tmp_path / "taken")) == 4
    compacted(lake)
    assert len(rows(lake, "samples")) == 12
    assert list(problems_of(open_lake(lake))) == []


def test_killed_in_the_middle_nothing_is_lost_or_doubled(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    before = contents(lake)
    for files in range(0, 24, 4):
        child = os.fork()
        if child == 0:
            _die_after(files)
            compacted(lake)
            os._exit(0)
        os.waitpid(child, 0)
        assert list(problems_of(open_lake(lake))) == []
        assert len(load_state(open_lake(lake)).results()) == 4
    compacted(lake)
    assert contents(lake) == before
    assert strangers(open_lake(lake), load_state(open_lake(lake))) == []


def test_killed_while_it_clears_away_the_next_one_does(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    before = contents(lake)
    child = os.fork()
    if child == 0:
        compacting._clear_away = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        compacted(lake)
        os._exit(0)
    os.waitpid(child, 0)
    state = load_state(open_lake(lake))
    assert (state.number, len(state.results()), len(state.leftover)) == (1, 4, 4)
    assert list(problems_of(open_lake(lake))) == []
    compacted(lake)
    assert contents(lake) == before


def test_files_of_an_import_that_goes_on_are_left_and_abandoned_ones_removed(
    logs: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    young, old = (lake / "data" / EVIDENCE / f"by_task=t/by_model=m/by_run={name}/x.parquet" for name in "yo")
    for path in (young, old):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    os.utime(old, (1, 1))
    assert compacted(lake).removed == 1
    assert (young.exists(), old.exists()) == (True, False)


def test_two_at_once_are_refused(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    store = open_lake(lake)
    with (
        compacting._alone(store, lambda _: None),
        pytest.raises(UsageError, match="another compaction is at work"),
    ):
        compacted(lake)
    assert load_state(store).number == 0


def test_what_is_missing_or_changed_is_told(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    gone, cut = sorted((lake / "data" / "scores").rglob("*.parquet"))[:2]
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:50])
    problems = list(problems_of(open_lake(lake)))
    assert [("is not there" in text, "no sound Parquet" in text) for text in problems] == [
        (True, False),
        (False, True),
    ]
