"""The report on the terminal says what was lost and cannot be abused by what stands in a log."""

from pathlib import Path

from aigo_bridge.importing.terminal import harmless, report_lines
from aigo_inspect.importing import ImportSettings, import_file


def test_control_characters_become_visible() -> None:
    assert harmless("a\x1b[2Jb\u202ec\x9b") == "a\\x1b[2Jb\\u202ec\\x9b"
    assert harmless("Zürich 🙂") == "Zürich 🙂"


def test_the_report_counts_what_was_dropped(logs: dict[str, Path], tmp_path: Path) -> None:
    lines = report_lines(import_file(logs["noisy"], tmp_path / "x", ImportSettings(max_loss=0)))
    assert any("1 samples in 1 trials" in line for line in lines)
    assert any(line.startswith("  dropped: ") and "event store" in line for line in lines)
    assert "are allowed" in lines[-1]


def test_the_report_names_what_could_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "x\x1b.eval").write_bytes(b"nonsense")
    lines = report_lines(import_file(tmp_path / "x\x1b.eval", tmp_path / "y"))
    assert "\x1b" not in "".join(lines)
    assert lines[0].endswith("x\\x1b.eval: unreadable")
    assert any("is not an .eval log" in line for line in lines)
