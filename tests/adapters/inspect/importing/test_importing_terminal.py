"""The terminal report lists lost data and cannot be abused by the content of a log."""

from pathlib import Path

from aigo_bridge.text.escapes import visible
from aigo_inspect.importing.importing import ImportOptions, import_file


def test_control_characters_are_escaped_on_the_terminal() -> None:
    assert visible("a\x1b[2Jb\u202ec\x9b") == "a\\x1b[2Jb\\u202ec\\x9b"
    assert visible("Zürich 🙂") == "Zürich 🙂"


def test_the_report_counts_dropped_data(logs: dict[str, Path], tmp_path: Path) -> None:
    lines = import_file(logs["noisy"], tmp_path / "x", ImportOptions(max_loss=0)).lines
    assert any("1 sample in 1 trial" in line for line in lines)
    assert any(line.startswith("  dropped: ") and "event store" in line for line in lines)
    assert "are allowed" in lines[-1]


def test_the_report_names_unreadable_members(tmp_path: Path) -> None:
    (tmp_path / "x\x1b.eval").write_bytes(b"nonsense")
    lines = import_file(tmp_path / "x\x1b.eval", tmp_path / "y").lines
    assert "\x1b" not in "".join(lines)
    assert lines[0].endswith("x\\x1b.eval: unreadable")
    assert any("is not an .eval log" in line for line in lines)
