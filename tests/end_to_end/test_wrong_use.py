"""Wrong use and invalid tasks: exit code 2, a message with position and fix, no traceback, no model call."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.commands import Run

TRIVIA = "aigo_tasks/hp-trivia"
UNIQUE = "aigo_tasks/uniqueness-task"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.yaml"], "file 'nope.yaml' does not exist"),
        (["aigo_tasks/hp-triva"], "did you mean 'aigo_tasks/hp-trivia'?"),
        ([TRIVIA], "--model-map 'openai$gpt-4-1-nano=PROVIDER/MODEL'"),
        ([TRIVIA, "--model-map", "openai$gpt-4-1-nano=mockllm/x"], "choose one with --model PROVIDER/MODEL"),
        (
            [
                TRIVIA,
                "--model",
                "mockllm/x",
                "--model-map",
                "openai$gpt-4-1-nano=mockllm/x",
                "--model-map",
                "b=mockllm/x",
            ],
            "the task does not use model 'b'",
        ),
        ([TRIVIA, "--model", "foo/bar", "--model-map", "openai$gpt-4-1-nano=mockllm/x"], "model 'foo/bar'"),
        (
            [TRIVIA, "--model", "scripted/none.jsonl", "--model-map", "openai$gpt-4-1-nano=mockllm/x"],
            "none.jsonl: error: cannot read the scripted model's rules",
        ),
        ([TRIVIA, "--model-map", "x"], "expected KEY=VALUE"),
        ([TRIVIA, "--config", "a=1"], "unknown parameter 'a'"),
        (
            [TRIVIA, "--dataset", "a=b.csv"],
            "the task does not use dataset 'a'; its dataset is 'hp-trivia-dataset'",
        ),
        ([UNIQUE], "parameter 'field'"),
        ([UNIQUE, "--config", "field=x"], "evaluates a dataset, and none was given"),
        ([UNIQUE, "--config", "field=x", "--dataset", "c=none.csv"], "none.csv' does not exist"),
        ([TRIVIA, "--subsampling", "tail"], "expected head or random"),
        ([TRIVIA, "--num-samples", "0"], "greater than or equal to 1"),
        ([TRIVIA, "--frobnicate"], "No such option"),
    ],
)
def test_wrong_use_is_reported(aigo: Run, arguments: list[str], message: str) -> None:
    done = aigo("run", *arguments)

    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not Path("out").exists()


def test_an_unknown_engine_is_reported(aigo: Run, tasks: Path) -> None:
    contacts = tasks / "uniqueness-task" / "contacts.csv"
    done = aigo("run", UNIQUE, "--config", "field=x", "--dataset", f"c={contacts}", "--engine", "lightval")

    assert done.code == 2
    assert "unknown engine 'lightval'; known engines: inspect" in done.err


def test_an_unknown_column_is_reported_with_its_position(aigo: Run, tasks: Path, tmp_path: Path) -> None:
    """Before any model call: file, line, column, and the nearest column name."""
    source = tasks / "singleturn-generic-input"
    task = tmp_path / "task.yaml"
    task.write_text((source / "task.yaml").read_text().replace("sample.target", "sample.tarjet"))

    done = aigo(
        "run", task, "--dataset", f"qa-single-answers={source / 'questions.jsonl'}", "--model", "mockllm/x"
    )

    assert done.code == 2
    line = task.read_text().splitlines().index('      ground_truth: "{{ sample.tarjet }}"') + 1
    assert f"task.yaml:{line}:22: error: `sample.tarjet` is not a column of the dataset" in done.err
    assert "did you mean 'target'?" in done.err


def test_all_problems_are_listed_together(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(
        "key: a b\ndisplay_name: T\ndefinition:\n  dataset: {key: q}\n  solver: {type: single}\n  scorer: []\n"
    )

    done = aigo("run", "task.yaml", "--model", "mockllm/x")

    assert done.code == 2
    for place in ("task.yaml:1:", "task.yaml:5:", "task.yaml:6:"):
        assert place in done.err
    assert "'description'" in done.err


def test_gaps_of_an_engine_are_refused_with_a_table(aigo: Run, tmp_path: Path) -> None:
    """Nothing runs, and no feature is silently left out."""
    (tmp_path / "q.jsonl").write_text('{"q": "1", "t": []}\n')
    (tmp_path / "task.yaml").write_text(
        "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  dataset: {key: q}\n"
        "  solver:\n    type: pass_through_solver\n    trace_column: t\n"
        "    postprocessor:\n      type: python\n"
        "      postprocess_snippet: 'def postprocess(sample, solver_output): return []'\n"
        "  scorers:\n    - type: python_all_samples\n      metrics: []\n"
        "      compute_scores_snippet: 'def compute_scores(samples): return []'\n"
    )

    done = aigo("run", "task.yaml")

    assert done.code == 2
    assert "1 gap" in done.err
    assert "scorers[0] (python_all_samples)" in done.err
    assert "the post-processor creates other rows" in " ".join(done.err.split())


def test_help_lists_every_promised_option(aigo: Run) -> None:
    done = aigo("run", "--help")

    for option in (
        "--model",
        "--config",
        "--dataset",
        "--model-map",
        "--num-samples",
        "--out",
        "--resume",
        "--json",
    ):
        assert option in done.out


def test_list_shows_the_shipped_tasks(aigo: Run) -> None:
    done = aigo("list", "--json")

    names = [row["name"] for row in done.json]
    assert names == sorted(names)
    assert {"aigo_tasks/singleturn-generic-input", TRIVIA, UNIQUE} <= set(names)
    shown = aigo("list").out
    assert "aigo_tasks/uniqueness-task" in shown
    # Without a terminal, every task has one line with its complete description.
    for task in done.json:
        (line,) = [line for line in shown.splitlines() if line.split()[:1] == [task["name"]]]
        assert " ".join(task["description"].split()) in line


def test_an_output_path_that_is_a_file_is_reported(aigo: Run, tmp_path: Path, tasks: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    answers = tasks / "singleturn-generic-input" / "answers.jsonl"

    done = aigo(
        "run", "aigo_tasks/singleturn-generic-input", "--model", f"scripted/{answers}", "--out", "taken"
    )

    assert done.code == 2
    assert "--out: 'taken' cannot be used as a folder: File exists" in done.err
    assert (tmp_path / "taken").read_text() == "mine"


def test_an_unwritable_file_is_reported_by_name(aigo: Run) -> None:
    """The message has the file's own name, not that of its draft."""
    aigo("init", "mine", "--template", "chat")
    aigo(
        "run", "mine/tasks/capitals", "--model", "scripted/mine/tasks/capitals/answers.jsonl", "--out", "runs"
    )

    done = aigo("sql", "SELECT 1", "runs/capitals.tasklog.json", "--out", "no/such.csv")

    assert (done.code, done.err) == (2, "error: no/such.csv: No such file or directory [AB906]\n")


def test_a_circular_link_is_reported(aigo: Run) -> None:
    Path("a.tasklog.json").symlink_to("a.tasklog.json")

    done = aigo("report", "a.tasklog.json", "--out", "r.html")

    assert done.code == 2
    assert done.err.startswith(
        "error: a.tasklog.json: cannot read: Too many levels of symbolic links [AB710]"
    )
