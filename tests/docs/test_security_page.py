"""Every promise of SECURITY.md names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:\w+/)*test_\w+\.py)?::(test_\w+)`")


def test_every_row_names_tests_that_there_are() -> None:
    modules = [path.as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    rows = [
        line
        for line in (ROOT / "SECURITY.md").read_text("utf-8").splitlines()
        if line.startswith("| ") and line != "| promise | test |"
    ]
    assert len(rows) > 20
    for row in rows:
        module, named = "", 0
        for file, name in NAMED.findall(row):
            module = file or module
            (path,) = [path for path in modules if path.endswith(f"/{module}")]
            assert f"def {name}(" in Path(path).read_text("utf-8"), f"{module}::{name}"
            named += 1
        assert named, f"no test is named: {row}"
