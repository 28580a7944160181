"""Task parameters: references and renaming."""

from __future__ import annotations

from pathlib import Path

import pytest

from aigo_editor.parameters import RenameError, at, declared, markers, renamed, visible
from aigo_editor.project import Project, Projects

TASK = """\
key: quiz
display_name: Quiz
config_spec:
  - {type: string, key: lang, display_name: Language}
  - {type: string, key: other, display_name: Other}
definition:
  description: "<< config.lang >> and <<config.lang.name>> and << config.language >>"
  solver: {$ref: parts/solver.yaml}
  prompt: !include prompt.md
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "parts").mkdir()
    (tmp_path / "task.yaml").write_text(TASK, encoding="utf-8")
    (tmp_path / "parts" / "solver.yaml").write_text(
        "type: python\nlimit: << config.lang >>\n", encoding="utf-8"
    )
    (tmp_path / "prompt.md").write_text("In << config.lang >>, 1 << lang >> 2", encoding="utf-8")
    (tmp_path / "run.yaml").write_text(
        "evaluation:\n  task_specifications:\n    - task_key: quiz\n      task_config: {lang: en}\n"
        "    - task_key: another\n      task_config: {lang: en}\n",
        encoding="utf-8",
    )
    return tmp_path


def project(folder: Path) -> Project:
    return Projects().around(folder / "task.yaml", {})


def text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def rename(folder: Path, name: str) -> dict[str, str]:
    around = project(folder)
    parameter = declared(around.sources[folder / "task.yaml"])[0]
    texts: dict[str, str] = {}
    edits = renamed(parameter, name, around, text)
    for edit in sorted(edits, key=lambda edit: -edit.span.start):
        key = edit.file.relative_to(folder).as_posix()
        before = texts.get(key, text(edit.file))
        texts[key] = before[: edit.span.start] + edit.text + before[edit.span.end :]
    return texts


def test_renamed_parameter_is_replaced_in_all_files(folder: Path) -> None:
    texts = rename(folder, "tongue")
    assert set(texts) == {"task.yaml", "parts/solver.yaml", "prompt.md", "run.yaml"}
    assert "key: tongue," in texts["task.yaml"]
    assert "<< config.tongue >> and <<config.tongue.name>> and << config.language >>" in texts["task.yaml"]
    assert texts["parts/solver.yaml"].endswith("<< config.tongue >>\n")
    assert texts["prompt.md"] == "In << config.tongue >>, 1 << lang >> 2"
    assert texts["run.yaml"].count("{tongue: en}") == 1
    assert texts["run.yaml"].count("{lang: en}") == 1


@pytest.mark.parametrize("name", ["other", "1st", "a b", "", "a.b", "ä"])
def test_invalid_or_duplicate_parameter_name_is_rejected(folder: Path, name: str) -> None:
    with pytest.raises(RenameError, match=r"has a parameter|is not a parameter name"):
        rename(folder, name)


def test_renaming_in_a_text_shared_with_another_task_is_rejected(folder: Path) -> None:
    (folder / "second.yaml").write_text("definition:\n  a: !include prompt.md\n", encoding="utf-8")
    with pytest.raises(RenameError, match=r"prompt\.md also uses it and belongs to second\.yaml"):
        rename(folder, "tongue")


def test_parameters_of_a_task_are_visible_in_its_included_files(folder: Path) -> None:
    assert [each.key for each in visible(folder / "prompt.md", project(folder))] == ["lang", "other"]
    assert [each.key for each in visible(folder / "parts" / "solver.yaml", project(folder))] == [
        "lang",
        "other",
    ]
    assert visible(folder / "run.yaml", project(folder)) == ()


def test_parameter_marker_is_found_at_every_offset_within_it() -> None:
    line = "a << config.lang >> b"
    for offset in range(2, 20):
        used = at(line, offset)
        assert used is not None
        assert (used[0], line[used[1].start : used[1].end]) == ("lang", "lang")
    assert at(line, 0) is None
    assert at(line, 20) is None
    assert [name for name, _ in markers("<< config.a >> << secrets.b >> <<config.c.d>>")] == ["a", "c"]
