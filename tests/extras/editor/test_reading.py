"""Diagnostics from reading files, without code execution or network access."""

from __future__ import annotations

import select
import socket
from pathlib import Path

from aigo_editor.reading import SampleColumns, columns, fenced, problems, prompt

TASK = """\
key: quiz
display_name: Quiz
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: python
    run_solver_snippet: |
      open("ran", "w").close()
      async def run_solver(sample, model, trace):
          open("ran", "w").close()
  scorers:
    - type: python
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            open("ran", "w").close()
"""
CHAT = """\
key: quiz
display_name: Quiz
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "{{ sample.question }}%s"}]
  scorers: [{type: string_equals, ground_truth: "{{ sample.answer }}"}]
"""


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_task_code_is_analyzed_without_execution(tmp_path: Path) -> None:
    write(tmp_path, "rows.jsonl", '{"question": "a", "answer": "b"}\n')
    task = write(tmp_path, "task.yaml", TASK)
    assert problems(task, {}, planned=True) == []
    assert "the `run_solver` code of the task creates the conversation" in prompt(task, {}, 1)
    assert not list(tmp_path.rglob("ran"))
    assert not Path("ran").exists()


def test_endless_template_is_stopped(tmp_path: Path) -> None:
    write(tmp_path, "rows.jsonl", '{"question": "a", "answer": "b"}\n')
    task = write(
        tmp_path,
        "task.yaml",
        CHAT % "{% for a in range(10**9) %}{% for b in range(10**9) %}x{% endfor %}{% endfor %}",
    )
    assert "This prompt will fail" in prompt(task, {}, 1)


def test_remote_rows_are_not_downloaded(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/rows.csv"
        source = f"key: rows\ndisplay_name: R\nsource: {{type: local, file_path: '{address}'}}\n"
        write(tmp_path, "rows.yaml", source)
        task = write(tmp_path, "task.yaml", CHAT % "")
        assert columns(task, {}, ["rows"]) == SampleColumns()
        problems(task, {}, planned=True)
        prompt(task, {}, 1)
        write(
            tmp_path, "rows.yaml", source.replace("type: local, file_path", "type: huggingface, dataset_name")
        )
        assert columns(task, {}, ["rows"]) == SampleColumns()
        assert select.select([server], [], [], 0)[0] == []


def test_columns_are_found_for_invalid_tasks_and_unsaved_datasets(tmp_path: Path) -> None:
    write(tmp_path, "rows.csv", "question,answer\nWhy?,So.\n,No.\n")
    task = write(tmp_path, "task.yaml", "key: [")
    entity = tmp_path / "others.yaml"
    texts = {str(entity): "key: others\ndisplay_name: O\nsource: {type: local, file_path: rows.csv}\n"}
    of_file = columns(task, texts, ["rows"])
    of_entity = columns(task, texts, ["others"])
    beside = columns(task, texts, ["rows", "others", "gone"])
    assert of_file.values == {"question": "Why?", "answer": "So."}
    assert of_file.files == {"rows": str(tmp_path / "rows.csv")}
    assert of_entity.values == {}  # an unsaved file is not found by its key
    assert set(beside.nested) == {"rows"}
    entity.write_text("nothing yet", encoding="utf-8")
    assert columns(task, texts, ["others"]).values == of_file.values


def test_code_fence_is_longer_than_any_fence_in_the_text() -> None:
    assert fenced("a ``` b ```` c").startswith("`````text\n")
