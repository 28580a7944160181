"""`aigo-bridge init`: printed output and refused arguments."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands import Run


def test_init_prints_written_files_and_next_steps(aigo: Run) -> None:
    done = aigo("init", "my quiz")

    assert done.code == 0, done.err
    assert "my quiz/run.yaml\n" in done.out
    assert done.out.endswith("next:\n  cd 'my quiz'\n  aigo-bridge validate .\n  aigo-bridge run run.yaml\n")


def test_init_uses_the_current_folder_by_default(aigo: Run, tmp_path: Path) -> None:
    done = aigo("init", "--template", "jsonl")

    assert done.out.endswith("next:\n  aigo-bridge validate .\n  aigo-bridge run tasks.jsonl\n")
    assert (tmp_path / "tasks.jsonl").is_file()


def test_init_in_an_existing_project_writes_nothing(aigo: Run, tmp_path: Path) -> None:
    aigo("init")
    (tmp_path / "run.yaml").write_text("mine")
    (tmp_path / "README.md").unlink()

    done = aigo("init")

    assert done.code == 2
    assert "run.yaml: error: already exists and is not overwritten" in done.err
    assert (tmp_path / "run.yaml").read_text() == "mine"
    assert not (tmp_path / "README.md").exists()


def test_an_unknown_template_is_reported(aigo: Run, tmp_path: Path) -> None:
    done = aigo("init", "--template", "chats")

    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    assert "--template: found 'chats', expected one of chat, judge, multi-turn" in done.err
