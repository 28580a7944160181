"""`validate` reports the errors of `run` with the same message, position and hint; valid files run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Finished, Run

TASK = """key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.a }}"}
"""
DATASET = "key: rows\ndisplay_name: Rows\nsource: {type: local, file_path: d.csv}\n"
RUN = """config: {m: answers}
models: [{$provider: scripted/m.jsonl}]
tasks: [{$ref: t.yaml}]
datasets: [{$ref: rows.yaml}]
evaluation:
  key: e
  display_name: E
  description: ""
  config_spec: [{type: model, key: m, display_name: M}]
  task_specifications: [{key: s, task_key: t, model_key: << config.m >>}]
"""


def told(done: Finished) -> str:
    """Return the printed issues without the surrounding text."""
    shown = done.out + done.err
    return "\n".join(
        line for line in shown.splitlines() if not re.search(r"files? (is|are) not valid$", line)
    ).strip()


def project(folder: Path, **files: str | bytes | None) -> None:
    """Write `t_yaml`, `rows_yaml`, `run_yaml` and `d_csv`, changed or (`None`) left out."""
    usual: dict[str, str | bytes | None] = {
        "t_yaml": TASK,
        "rows_yaml": DATASET,
        "run_yaml": RUN,
        "d_csv": "q,a\nWhere?,there\n",
        "m_jsonl": json.dumps({"default": True, "reply": "there"}) + "\n",
    }
    for name, text in {**usual, **files}.items():
        if text is not None:
            content = text.encode() if isinstance(text, str) else text
            (folder / name.replace("_", ".")).write_bytes(content)


def scorer(text: str) -> str:
    return TASK.replace('{type: string_equals, ground_truth: "{{ sample.a }}"}', text)


def solver(text: str) -> str:
    start, end = TASK.index("    type: single_turn"), TASK.index("  scorers:")
    return TASK[:start] + text + TASK[end:]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a missing data file": ({"d_csv": None}, "rows.yaml:3:34: error: 'd.csv': the data file does not exist"),
    "a ragged CSV": (
        {"d_csv": "q,a\nWhere, exactly?,there\n"},
        "d.csv:2: error: found 3 cells, expected 2 as in the header",
    ),
    "a file of Windows": (
        {"d_csv": "q,a\nWohin?,Zürich\n".encode("cp1252")},
        "d.csv:2: error: byte 9 is not UTF-8 (0xFC) [AB103]\n  hint: in Windows-1252 it is 'ü'; if that is meant, convert the file",
    ),
    "semicolons": (
        {"d_csv": "q;a\nWhere?;there\n"},
        "d.csv:1:1: warning: the only column is 'q;a'; the cells seem to be separated by ';', expected ','",
    ),
    "an unknown kind of file": (
        {"rows_yaml": DATASET.replace("d.csv", "d.xlsx")},
        "rows.yaml:3:34: error: 'd.xlsx': unknown kind of data file 'd.xlsx'; expected .csv, .jsonl",
    ),
    "a dataset file that is not valid": (
        {"rows_yaml": DATASET.replace("local", "lokal")},
        "rows.yaml:3:16: error: 'type': found 'lokal'",
    ),
    "an empty dataset": ({"d_csv": "q,a\n"}, "dataset 'rows' is empty, expected at least one row"),
    "a missing column": (
        {"d_csv": "question,a\nWhere?,there\n"},
        "t.yaml:8:84: error: `sample.q` is not a column of the dataset",
    ),
    "a path in place of code": (
        {"t_yaml": scorer("{type: python, compute_scores_snippet: parts/score.py}")},
        "t.yaml:10:46: error: found the path 'parts/score.py', expected Python code [AB134]\n",
    ),
    "the wrong parameters": (
        {"t_yaml": scorer("{type: python, compute_scores_snippet: 'def compute_scores(sample): return {}'}")},
        "error: found compute_scores(sample), expected compute_scores(sample, solver_output)",
    ),
    "no generate": (
        {
            "t_yaml": solver(
                "    type: multi_turn_solver\n    message_builders: [{type: chat_message, role: user, content: x}]\n"
            )
        },
        "t.yaml:8:23: error: no 'generate' in the conversation, so the evaluated model is never called",
    ),
    "a condition that means nothing": (
        {
            "t_yaml": solver(
                "    type: multi_turn_solver\n    message_builders:\n      - type: generate\n      - type: generate_message\n"
                "        model_key: j\n        extra_input_messages: [{type: chat_message, role: user, content: x, terminate_if: {includes: y}}]\n"
            )
        },
        "error: 'terminate_if' has no effect on a message that is not kept in the conversation",
    ),
    "a scorer of all samples after a post-processor": (
        {
            "t_yaml": scorer(
                "{type: python_all_samples, compute_scores_snippet: 'def compute_scores(samples): return []'}"
            ).replace(
                "    input_builder",
                "    postprocessor: {type: python, postprocess_snippet: 'def postprocess(sample, solver_output): return []'}\n"
                "    input_builder",
            )
        },
        "the post-processor creates other rows, sample by sample",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_validate_and_run_report_equal_errors_of_a_task(case: str, aigo: Run, tmp_path: Path) -> None:
    files, message = REFUSED[case]
    project(tmp_path, **{"run_yaml": None, **files})

    validated = aigo("validate", "t.yaml")
    ran = aigo(
        "run", "t.yaml", "--model", "scripted/m.jsonl", "--model-map", "j=scripted/m.jsonl", "--out", "out"
    )

    assert (validated.code, ran.code) == (1, 2), validated.out + ran.err
    assert message in validated.out
    if "post-processor" not in case:  # what no engine can do is a table of its own
        assert told(ran) == told(validated)


@pytest.mark.parametrize("case", REFUSED)
def test_validate_and_run_report_equal_errors_of_a_run_file(case: str, aigo: Run, tmp_path: Path) -> None:
    files, message = REFUSED[case]
    project(tmp_path, **files)

    validated = aigo("validate", "run.yaml")
    ran = aigo(
        "run", "run.yaml", "--model", "scripted/m.jsonl", "--model-map", "j=scripted/m.jsonl", "--out", "out"
    )

    assert (validated.code, ran.code) == (1, 2), validated.out + ran.err
    assert message in validated.out
    if "post-processor" not in case:
        assert told(ran) == told(validated)


LINES = DATASET.replace("d.csv", "d.jsonl")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            b'{"q": "Where?", "a": "there"}\n{"q": "Where?" "a": 1}\n',
            "d.jsonl:2:16: error: not JSON: expecting ',' delimiter",
        ),
        (b'{"q": "\xfc", "a": "there"}\n', "d.jsonl:1: error: not JSON: byte 8 is not UTF-8 (0xFC)"),
        (b"[1]\n", "d.jsonl:1: error: found a list, expected an object with one key per column"),
        ('{"q": "x", "a": "y"}\n'.encode("utf-16"), "d.jsonl:1: error: the file is UTF-16, expected UTF-8"),
    ],
)
def test_invalid_dataset_lines_are_reported_by_validate_and_run(
    text: bytes, message: str, aigo: Run, tmp_path: Path
) -> None:
    project(tmp_path, rows_yaml=LINES, d_csv=None)
    (tmp_path / "d.jsonl").write_bytes(text)

    validated = [aigo("validate", name) for name in ("t.yaml", "rows.yaml", "run.yaml")]
    ran = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--out", "out")

    assert [done.code for done in (*validated, ran)] == [1, 1, 1, 2]
    for done in (*validated, ran):
        assert message in done.out + done.err


def test_values_that_an_option_supplies_are_not_errors(aigo: Run, tmp_path: Path) -> None:
    """Parameters without a default, rows named in a run file, evaluated datasets."""
    open_task = TASK.replace("{key: rows}", "{key: << config.d >>}").replace(
        "definition:", "config_spec: [{type: dataset, key: d, display_name: D}]\ndefinition:"
    )
    project(tmp_path, t_yaml=open_task, rows_yaml=None, run_yaml=None)
    assert aigo("validate", "t.yaml", "--strict").code == 0

    project(tmp_path, rows_yaml=None, run_yaml=None)
    missing = aigo("validate", "t.yaml")
    assert missing.code == 0
    assert "t.yaml:5:18: warning: dataset 'rows' was not found" in missing.out
    assert "hint: pass it with --dataset rows=FILE" in missing.out

    project(
        tmp_path, t_yaml=TASK[: TASK.index("  dataset:")] + "  scorers: []\n", rows_yaml=None, run_yaml=None
    )
    assert aigo("validate", "t.yaml", "--strict").code == 0


def test_run_file_may_leave_values_to_its_plan(aigo: Run, tmp_path: Path) -> None:
    project(tmp_path, run_yaml=RUN.replace("config: {m: answers}\n", ""))
    (tmp_path / "plan.yaml").write_text(
        "key: p\ndisplay_name: P\nevaluation_specifications:\n"
        "  - {evaluation_key: e, evaluation_config: {m: scripted$m-jsonl}}\n"
    )

    alone, plan = aigo("validate", "run.yaml"), aigo("validate", "plan.yaml", "--strict")
    refused = aigo("run", "run.yaml", "--model", "scripted/m.jsonl")
    given = aigo("run", "run.yaml", "--config", "m=x", "--model", "scripted/m.jsonl", "--out", "one")
    planned = aigo("run", "plan.yaml", "--model", "scripted/m.jsonl", "--out", "all")

    assert alone.code == 0
    assert "warning: parameter 'm' (M) has no value" in alone.out
    assert refused.code == 2
    assert "error: parameter 'm' (M) has no value" in refused.err
    assert plan.code == 0, plan.out
    assert (given.code, planned.code) == (0, 0), given.err + planned.err


def test_errors_in_a_plan_are_reported(aigo: Run, tmp_path: Path) -> None:
    project(tmp_path, d_csv="q;a\n1;2\n")
    (tmp_path / "plan.yaml").write_text(
        "key: p\ndisplay_name: P\nevaluation_specifications: [{evaluation_key: e}, {evaluation_key: f}]\n"
    )
    done = aigo("validate", "plan.yaml")
    assert done.code == 1
    assert "evaluation 'f' was not found" in done.out


def test_validate_fetches_nothing_and_reads_no_log(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, source in enumerate(
        (
            "{type: url, url: 'http://127.0.0.1:9/d.csv'}",
            "{type: huggingface, path: nobody/nothing, split: test}",
            "{type: inspect_ai, path: logs}",
        )
    ):
        project(tmp_path, rows_yaml=f"key: rows\ndisplay_name: Rows\nsource: {source}\n", d_csv=None)
        for name in ("t.yaml", "rows.yaml", "run.yaml"):
            done = aigo("validate", name, "--strict")
            assert done.code == 0, (number, done.out)


def test_missing_data_is_a_warning_in_the_platform_dialect(aigo: Run, tmp_path: Path) -> None:
    project(tmp_path, d_csv=None)
    done = aigo("validate", "rows.yaml", "--dialect", "aigo-3.17")
    assert done.code == 0
    assert "warning: 'd.csv': the data file does not exist" in done.out


def test_dataset_error_is_reported_once(aigo: Run, tmp_path: Path) -> None:
    project(tmp_path, d_csv=None)
    done = aigo("validate", ".")
    assert done.out.count("the data file does not exist") == 1
    assert "3 of 3 files are not valid" in done.out


Loader = Callable[[Path], dict[str, Any]]


def test_valid_project_runs(aigo: Run, tmp_path: Path, result_of: Loader) -> None:
    project(tmp_path)
    assert aigo("validate", ".", "--strict").code == 0
    assert aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--out", "one").code == 0
    assert aigo("run", "run.yaml", "--model", "scripted/m.jsonl", "--out", "all").code == 0
    assert result_of(tmp_path / "one" / "t.tasklog.json")["status"] == "success"
