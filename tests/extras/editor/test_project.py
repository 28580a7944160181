"""Entities that project files declare, and relations between files."""

from __future__ import annotations

from pathlib import Path

import pytest

from aigo_editor import project
from aigo_editor.project import Project, Projects

RUN = """\
models:
  - $provider: openai/gpt-4.1-nano
  - {key: own, display_name: Own, config: {}}
tasks:
  - $ref: task.yaml
  - {key: inline, display_name: Inline, definition: {scorers: [}
evaluation: {key: e}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    for name, text in {
        "run.yaml": RUN,
        "task.yaml": "key: quiz\ndefinition: {solver: {$ref: parts/solver.yaml}}\n",
        "parts/solver.yaml": "type: python\nrun_solver_snippet: !include code.py\n",
        "parts/rows.yaml": "key: rows\ndisplay_name: Rows\nsource: {type: local, file_path: rows.csv}\n",
        "node_modules/a.yaml": "key: other\ndefinition: {}\n",
        ".hidden/a.yaml": "key: other\ndefinition: {}\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path.resolve()


def around(folder: Path, **texts: str) -> Project:
    return Projects().around(
        folder / "task.yaml", {str(folder / f"{name}.yaml"): text for name, text in texts.items()}
    )


def test_entity_keys_are_collected_from_entity_and_run_files(folder: Path) -> None:
    found = around(folder)
    assert {each.key for each in found.entities("model")} == {"openai$gpt-4-1-nano", "own"}
    assert {each.key for each in found.entities("task")} == {"quiz", "inline"}
    (rows,) = found.entities("dataset")
    assert (rows.key, rows.title, rows.file) == ("rows", "Rows", folder / "parts" / "rows.yaml")
    assert rows.file.read_text("utf-8")[rows.span.start : rows.span.end] == "rows"


def test_nested_include_belongs_to_its_task(folder: Path) -> None:
    found = around(folder)
    code = folder / "parts" / "code.py"
    assert [source.file.name for source, _ in found.owners(code)] == ["solver.yaml"]
    assert [source.file.name for source in found.holders(code)] == ["task.yaml"]
    assert [source.file.name for source in found.holders(folder / "task.yaml")] == ["task.yaml"]
    assert found.holders(folder / "parts" / "gone.py") == []


def test_circular_references_do_not_loop(folder: Path) -> None:
    circle = around(folder, one="type: a\nb: {$ref: two.yaml}\n", two="type: a\nb: {$ref: one.yaml}\n")
    assert circle.holders(folder / "one.yaml") == []


def test_unsaved_text_overrides_the_saved_file(folder: Path) -> None:
    assert {each.key for each in around(folder, task="key: typed\ndefinition: {").entities("task")} == {
        "typed",
        "inline",
    }
    assert "new" in {each.key for each in around(folder, new="key: new\ndefinition: {}\n").entities("task")}


def test_changed_file_is_reread(folder: Path) -> None:
    projects = Projects()
    task = folder / "task.yaml"
    first = projects.around(task, {}).sources
    assert projects.around(task, {}).sources[task] is first[task]
    task.write_text("key: renamed\ndefinition: {}\n", encoding="utf-8")
    (folder / "more.yaml").write_text("key: more\ndefinition: {}\n", encoding="utf-8")
    projects.look_again()
    again = projects.around(task, {})
    assert {each.key for each in again.entities("task")} == {"renamed", "more", "inline"}
    assert again.sources[folder / "run.yaml"] is first[folder / "run.yaml"]


def test_number_of_indexed_project_files_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "MOST_FILES", 2)
    assert len(around(folder).sources) == 2


def test_symlinks_out_of_the_project_are_not_followed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.yaml"
    outside.write_text("key: secret\ndefinition: {}\n", encoding="utf-8")
    (folder / "link.yaml").symlink_to(outside)
    assert "secret" not in {each.key for each in around(folder).entities("task")}
