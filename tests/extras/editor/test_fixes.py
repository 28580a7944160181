"""Quick fixes for the problems that reading a task reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from aigo_editor.fixes import fixes
from aigo_editor.outline import outline
from aigo_editor.positions import Lines
from aigo_editor.reading import problems

TASK = """\
key: quiz
display_name: "𝄞 Quiz"
description: ""
config_spec:
  - {type: string, key: lang, display_name: Language, default_value: en}
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - {role: user, content: "{{ sample.question }} << config.lang >>"}
  scorers:
    - type: string_equals
      ground_truth: "{{ sample.answer }}"
    - type: python
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"score": 1.0}
"""


def mended(folder: Path, text: str) -> str:
    """Return the text after applying the first fix of each problem until no problem is left."""
    (folder / "rows.jsonl").write_text('{"question": "a", "answer": "b"}\n', encoding="utf-8")
    file = folder / "task.yaml"
    file.write_text(text, encoding="utf-8")
    for _ in range(5):
        issues = problems(file, {str(file): text}, planned=True)
        every = [fix for issue in issues for fix in fixes(issue, Lines(text), outline(text))]
        if not every:
            break
        text = text[: every[0].span.start] + every[0].text + text[every[0].span.end :]
    return text


def test_valid_task_has_no_problems_and_no_fixes(tmp_path: Path) -> None:
    assert mended(tmp_path, TASK) == TASK
    file = tmp_path / "task.yaml"
    assert problems(file, {}, planned=True) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("type: string_equals", "type: string_equal"),
        ("ground_truth:", "ground_thruth:"),
        ("config_spec:", "config_specs:"),
        ("sample.question", "sample.quesiton"),
        ("<< config.lang >>", "<< config.lnag >>"),
        ("role: user", "role: usr"),
        ("def compute_scores(", "def compute_score("),
        ("dataset: {key", "datset: {key"),
    ],
)
def test_misspelled_value_is_fixed_with_the_suggestion(tmp_path: Path, right: str, wrong: str) -> None:
    assert mended(tmp_path, TASK.replace(right, wrong)) == TASK


def test_number_in_a_text_field_is_fixed_with_quotes(tmp_path: Path) -> None:
    text = mended(tmp_path, TASK.replace('"𝄞 Quiz"', "12"))
    assert 'display_name: "12"\n' in text


def test_missing_key_is_added_with_the_right_indentation(tmp_path: Path) -> None:
    text = TASK.replace('\n      ground_truth: "{{ sample.answer }}"', "")
    file = tmp_path / "task.yaml"
    (issue,) = [
        each for each in problems(file, {str(file): text}, planned=False) if "ground_truth" in each.message
    ]
    (fix,) = fixes(issue, Lines(text), outline(text))
    added = text[: fix.span.start] + fix.text + text[fix.span.end :]
    assert "    - ground_truth: \n      type: string_equals\n" in added


def test_path_in_a_code_field_is_fixed_with_include(tmp_path: Path) -> None:
    text = TASK.replace(
        'compute_scores_snippet: |\n        def compute_scores(sample, solver_output):\n            return {"score": 1.0}\n',
        'compute_scores_snippet: "score.py"\n',
    )
    assert "compute_scores_snippet: !include score.py\n" in mended(tmp_path, text)
