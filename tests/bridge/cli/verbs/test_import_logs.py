"""`import --from`: traces of other tools on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from aigo_bridge.cli import app

GOLDEN = Path(__file__).parents[3] / "golden" / "traces"


def typed(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["import", *words])
    return result.exit_code, result.output


def test_each_location_has_a_report(tmp_path: Path) -> None:
    cases = [
        str(GOLDEN / "phoenix" / case / "files" / "spans.json") for case in ("question", "parts", "errors")
    ]
    code, output = typed(*cases, "--from", "phoenix", "--out", str(tmp_path), "--json")
    reports = json.loads(output)
    assert code == 0
    assert [Path(report["output"]).name for report in reports] == [
        "spans.tasklog.json", "spans-2.tasklog.json", "spans-3.tasklog.json",
    ]  # fmt: skip
    assert [report["failed"] for report in reports] == [0, 0, 1]


def test_damaged_log_exits_with_3(tmp_path: Path) -> None:
    code, output = typed(
        str(GOLDEN / "langsmith/cut-off/files"), "--from", "langsmith", "--out", str(tmp_path)
    )
    assert code == 3
    assert "unreadable: " in output
    assert "1 sample in 1 trial" in output


def test_invalid_arguments_exit_with_2(tmp_path: Path) -> None:
    file = str(GOLDEN / "phoenix/question/files/spans.json")
    for words, problem in (
        (("--from", "arize"), "expected one of claude_code, opentelemetry, langsmith, phoenix"),
        (("--from", "phoenix", "--engine", "inspect"), "--engine: cannot be combined with --from"),
        (("--from", "phoenix", "--format", "parquet"), "expected json, json.gz or json.zst"),
    ):
        code, output = typed(file, *words, "--out", str(tmp_path / "out"))
        assert code == 2
        assert problem in " ".join(output.split())
    assert not (tmp_path / "out").exists()
