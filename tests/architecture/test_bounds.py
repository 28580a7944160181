"""Bounds that may only fall: lines of the core and of each extra, and modules that commands load."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from tests.architecture.sources import ROOT, SOURCES

BOUNDS = tomllib.loads((ROOT / "tests/architecture/bounds.toml").read_text("utf-8"))
CORE = ("aigo_bridge", "aigo_inspect", "aigo_lighteval")
HEAVY = ("anyio", "httpx", "inspect_ai", "jinja2", "lighteval", "numpy", "rich", "scipy.special", "yaml")
"""Packages that take more than a hundredth of a second to load."""
COMMAND = """
import sys
sys.argv = ["aigo-bridge", *sys.argv[1:]]
from aigo_bridge.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sys.modules, sep="\\n", file=sys.stderr)
"""
LOG = ROOT / "tests/golden/inspect/0.3.240.eval"


def loaded_by(*arguments: str) -> set[str]:
    """Return the names of aigo-bridge's modules and of heavy packages that a command loads."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return {line for line in done.stderr.splitlines() if line.startswith("aigo_") or line in HEAVY}


def check(command: str, loaded: set[str]) -> None:
    """Compare the modules that a command loads with its bounds."""
    heavy = loaded & set(HEAVY)
    assert heavy <= set(BOUNDS["heavy"].get(command, []))
    assert len(loaded - heavy) <= BOUNDS["modules"][command]


def test_lines_of_each_part_are_within_their_bound() -> None:
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
    [
        ("version", ["--version"]),
        ("run-help", ["run", "--help"]),
        ("list", ["list"]),
        ("schema", ["schema", "task"]),
        ("validate", ["validate", "examples/capitals"]),
        ("explain", ["explain", "examples/capitals"]),
    ],
)
def test_a_command_loads_only_a_few_modules(command: str, arguments: list[str]) -> None:
    check(command, loaded_by(*arguments))


def test_import_of_a_small_log_and_its_result_load_only_a_few_modules(tmp_path: Path) -> None:
    check("import", loaded_by("import", str(LOG), "--out", str(tmp_path)))
    (result,) = map(str, tmp_path.glob("*.tasklog.json"))
    check("show", loaded_by("show", result))
    check("stats", loaded_by("stats", result))
    check("table", loaded_by("table", result, "--out", str(tmp_path / "samples.csv")))
    check("report", loaded_by("report", result, "--out", str(tmp_path / "report.html")))


@pytest.mark.engine
@pytest.mark.slow
def test_small_run_and_import_are_within_their_bounds(tmp_path: Path) -> None:
    answers = "scripted/examples/capitals/answers.jsonl"
    by_run = loaded_by("run", "examples/capitals", "--model", answers, "--out", str(tmp_path))
    assert len(by_run - set(HEAVY)) <= BOUNDS["modules"]["run"]
    (log,) = tmp_path.glob("*.eval")
    check("import-of-that-run", loaded_by("import", str(log), "--out", str(tmp_path / "imported")))
    (result,) = map(str, tmp_path.glob("*.tasklog.json"))
    check("report-of-that-run", loaded_by("report", result, "--out", str(tmp_path / "report.html")))
