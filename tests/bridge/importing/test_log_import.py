"""Shared parts of all imports: file names, exit codes, reports, and the engine of a location."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from aigo_bridge.engine.registry import engine_names, load_logs, logs_at
from aigo_bridge.errors import UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import Damage, ImportReport, LossReport, file_stem


def result(**fields: object) -> ImportReport:
    known = {
        "log": "a\x1b.log",
        "output": Path("out/a.tasklog.json"),
        "loss_file": Path("out/a.loss.json"),
        "status": "success",
        "samples": 3,
        "trials": 6,
        "failed": 1,
        "damage": (),
        "loss": LossReport(dropped=Counter({"x": 2})),
    }
    return ImportReport(**{**known, **fields})  # type: ignore[arg-type]  # a table of different arguments


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("a", "a"),
        ("a/b\\c", "a_b_c"),
        ('a|b:c?"<>*', "a_b_c_____"),
        ("", "log"),
        ("\x00\x7f", "__"),
        ("é", "é"),
    ],
)
def test_file_name_is_derived_from_the_log_name(name: str, stem: str) -> None:
    assert file_stem(name, set()) == stem


def test_taken_file_names_get_a_number() -> None:
    taken: set[str] = set()
    assert [file_stem(name, taken) for name in ("a", "a", "a-2", "a")] == ["a", "a-2", "a-2-2", "a-3"]
    assert len(taken) == 4


def test_exit_code_of_damage_is_fixed_and_of_loss_depends_on_the_user() -> None:
    assert result().with_exit_code(None).exit_code == ExitCode.DONE
    assert result().with_exit_code(2).exit_code == ExitCode.DONE
    assert result().with_exit_code(1).exit_code == ExitCode.FAILED
    damaged = result(damage=(Damage("m", 7, "cut off"), Damage("n", None, "gone"))).with_exit_code(0)
    assert damaged.exit_code == ExitCode.PARTIAL
    assert damaged.reason == "2 parts of the log could not be read: m at byte 7: cut off"


def test_import_report_has_text_and_json_form(tmp_path: Path) -> None:
    damage = (Damage("m", 7, "cut off"),)
    report = result(
        damage=damage, loss_file=tmp_path / "a.loss.json", redacted=Counter({"key": 1})
    ).with_exit_code(None)
    assert report.exit_code == ExitCode.PARTIAL
    assert report.lines[0] == "a\\x1b.log: success"
    assert report.lines[1] == "  3 samples in 6 trials, 1 failed -> out/a.tasklog.json"
    assert report.summary["unreadable"] == ["m at byte 7: cut off"]
    report.write_loss()
    assert json.loads((tmp_path / "a.loss.json").read_text()) == {
        "log": "a\x1b.log",
        "kept": {},
        "changed": {},
        "dropped": {"x": 2},
        "redacted": {"key": 1},
        "damage": [{"member": "m", "offset": 7, "reason": "cut off", "kind": "DamagedLog"}],
    }


def test_every_engine_reads_its_own_logs() -> None:
    assert engine_names() == ["inspect", "lighteval"]
    for name in engine_names():
        assert "(" in load_logs(name).expected


def test_locations_are_assigned_to_the_engine_of_their_files(tmp_path: Path) -> None:
    (tmp_path / "mine.eval").write_bytes(b"PK")
    (tmp_path / "odd.json").write_text('{"a": 1}')
    (tmp_path / "lh.json").write_text('{\n  "config_general": {}, "results": {}}')
    (tmp_path / "in.json").write_text('{"version": 2, "status": "success", "eval": {}}')
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    (tmp_path / "cut.json").write_text('{"version": 2, "sta')

    def engines(name: str = "") -> dict[str, list[str]]:
        found = logs_at(str(tmp_path / name) if name else str(tmp_path))
        return {engine: [Path(path).name for path in paths] for engine, paths in found.items()}

    assert engines("mine.eval") == {"inspect": ["mine.eval"]}
    assert engines("in.json") == {"inspect": ["in.json"]}
    assert engines("lh.json") == {"lighteval": ["lh.json"]}
    assert engines("rows.parquet") == {"lighteval": ["rows.parquet"]}
    # The file may be a damaged log, and its report shows the error.
    assert engines("cut.json") == {"inspect": ["cut.json"]}
    # In a folder, the content also decides, but a dataset may be a Parquet file.
    assert engines() == {"inspect": ["in.json", "mine.eval"], "lighteval": ["lh.json"]}
    with pytest.raises(UsageError, match=r"odd\.json' is not an engine log: it is JSON without"):
        engines("odd.json")
    with pytest.raises(UsageError, match="no logs at"):
        engines("nothing")
    with pytest.raises(UsageError, match="unknown engine 'x'"):
        load_logs("x")


def test_shared_import_code_loads_no_plans() -> None:
    code = (
        "import sys, aigo_bridge.importing.log_import, aigo_bridge.redaction.rules;"
        " print([n for n in ('aigo_bridge.engine.protocol', 'aigo_bridge.plan.plan', 'inspect_ai', 'lighteval') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
