"""Bounds that may only fall: lines of the core and of each extra, and modules that commands load."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from tests.architecture.sources import PACKAGES, ROOT, SOURCES

BOUNDS = tomllib.loads((ROOT / "tests/architecture/bounds.toml").read_text("utf-8"))
CORE = ("aigo_bridge", "aigo_inspect", "aigo_lighteval")
COMMAND = f"""
import sys
sys.argv = ["aigo-bridge", *sys.argv[1:]]
from aigo_bridge.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*(name for name in sys.modules if name.partition(".")[0] in {tuple(PACKAGES)}), sep="\\n", file=sys.stderr)
"""
LOG = ROOT / "tests/golden/inspect/0.3.240.eval"


def loaded_by(*arguments: str) -> set[str]:
    """Return the names of aigo-bridge's modules that a command loads."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return {line for line in done.stderr.splitlines() if line.startswith("aigo_")}


def test_lines_of_each_part_stay_within_their_bound() -> None:
    lines: Counter[str] = Counter()
    for name, source in SOURCES.items():
        package = name.partition(".")[0]
        part = "core" if package in CORE else package
        lines[part] += len(source.path.read_text("utf-8").splitlines())
    bounds: dict[str, int] = BOUNDS["lines"]
    assert set(lines) == set(bounds)
    assert {part: number for part, number in lines.items() if number > bounds[part]} == {}


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("version", ["--version"]), ("run-help", ["run", "--help"])],
)
def test_start_loads_only_a_few_modules(command: str, arguments: list[str]) -> None:
    assert len(loaded_by(*arguments)) <= BOUNDS["modules"][command]


def test_import_of_a_small_log_stays_within_its_bound(tmp_path: Path) -> None:
    modules = loaded_by("import", str(LOG), "--out", str(tmp_path))
    assert len(modules) <= BOUNDS["modules"]["import"]


@pytest.mark.engine
@pytest.mark.slow
def test_run_of_a_small_task_and_import_of_its_log_stay_within_their_bounds(tmp_path: Path) -> None:
    answers = "scripted/examples/capitals/answers.jsonl"
    by_run = loaded_by("run", "examples/capitals", "--model", answers, "--out", str(tmp_path))
    (log,) = tmp_path.glob("*.eval")
    by_import = loaded_by("import", str(log), "--out", str(tmp_path / "imported"))
    assert len(by_run) <= BOUNDS["modules"]["run"]
    assert len(by_import) <= BOUNDS["modules"]["import-of-that-run"]
