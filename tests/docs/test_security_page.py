"""Each row of SECURITY.md has a threat, a protection and a limit, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:\w+/)*test_\w+\.py)?::(test_\w+)`")


HEADER = "| threat | protection | limit | test |"


def test_every_row_names_existing_tests() -> None:
    modules = [path.as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    lines = (ROOT / "SECURITY.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and line != HEADER]
    assert len(rows) > 40
    assert lines.count(HEADER) == sum(line.startswith("|---") for line in lines)
    for row in rows:
        threat, protection, _, tests = (cell.strip() for cell in row.strip("|").split("|"))
        assert threat, row
        assert protection, row
        module, named = "", 0
        for file, name in NAMED.findall(tests):
            module = file or module
            (path,) = [path for path in modules if path.endswith(f"/{module}")]
            assert f"def {name}(" in Path(path).read_text("utf-8"), f"{module}::{name}"
            named += 1
        assert named, f"no test is named: {row}"


def test_every_untrusted_file_type_has_rows() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8").lower()
    for word in (
        "lake",
        "recording",
        "bundle",
        "plug-in",
        "upload folder",
        "spreadsheet",
        "include",
        "network",
    ):
        assert word in text, word
