"""Tests mirror the source: `<room>/test_<module>.py`, or `test_<module>_<aspect>.py`; `test_<room>_….py` is about the room as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import PACKAGES, ROOT

MIRRORS = {
    ROOT / "tests/bridge": PACKAGES["aigo_bridge"],
    ROOT / "tests/adapters/inspect": PACKAGES["aigo_inspect"],
    ROOT / "tests/adapters/lighteval": PACKAGES["aigo_lighteval"],
    **{
        ROOT / "tests/extras" / path.name.removeprefix("aigo_"): path
        for path in PACKAGES.values()
        if path.parent.name == "extras"
    },
}
EXCEPTIONS = {
    "tests/bridge/redaction/test_key_formats.py": "the forms of keys, beside samples of each: SECURITY.md names it",
    "tests/bridge/models/connections/test_endpoint.py": "the whole room against a server: SECURITY.md names it",
    "tests/bridge/snippets/test_forged_lines.py": "the room against a hostile worker: SECURITY.md names it",
}
"""Test module → why it is named after something else."""


def names(folder: Path) -> Iterator[str]:
    """Return the allowed names of test modules in a folder."""
    if folder.is_dir():
        yield folder.name
        yield from (path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir())


def unmatched(tests: Path, source: Path) -> Iterator[str]:
    """Return test modules without a matching source module."""
    for path in sorted(tests.rglob("test_*.py")):
        subject = path.stem.removeprefix("test_")
        folder = source / path.parent.relative_to(tests)
        if not any(subject == name or subject.startswith(f"{name}_") for name in names(folder)):
            yield str(path.relative_to(ROOT))


def test_tests_mirror_the_source() -> None:
    stray = [path for tests, source in MIRRORS.items() for path in unmatched(tests, source)]
    assert sorted(stray) == sorted(EXCEPTIONS)


def test_misplaced_test_is_found(tmp_path: Path) -> None:
    source = tmp_path / "room"
    source.mkdir()
    (source / "made.py").touch()
    assert set(names(source)) == {"room", "made"}
    assert not list(names(tmp_path / "gone"))
