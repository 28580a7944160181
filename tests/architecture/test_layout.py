"""ARCHITECTURE.md names every package of the core and of the extras."""

from __future__ import annotations

import re

from tests.architecture.sources import PACKAGES, ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
CORE = PACKAGES["aigo_bridge"]


def test_every_core_package_is_in_the_table() -> None:
    table = TEXT[TEXT.index("## The core") : TEXT.index("## The extras")]
    packages = {f"{path.parent.name}/" for path in CORE.glob("*/__init__.py")}
    modules = {path.stem for path in CORE.glob("*.py")} - {"__init__", "__main__"}
    named = {
        name
        for row in re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", row)
    }
    assert named == packages | modules


def test_every_extra_and_its_packages_are_in_the_table() -> None:
    table = TEXT[TEXT.index("## The extras") : TEXT.index("## The adapters")]
    rows = dict(re.findall(r"^\| `(aigo_\w+)` \| (.+?) \|", table, re.MULTILINE))
    extras = {name: path for name, path in PACKAGES.items() if path.parent.name == "extras"}
    named = {extra: set(re.findall(r"`([^`]+)/`", row)) for extra, row in rows.items()}
    assert named == {
        name: {one.parent.name for one in path.glob("*/__init__.py")} for name, path in extras.items()
    }
