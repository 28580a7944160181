"""Commands that do not call a model: `validate`, `schema`, `upgrade`, `explain`."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.support.commands import REPOSITORY, Run
from typer.testing import CliRunner

from aigo_bridge.cli import app


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a result log by running a task."""
    examples, folder = REPOSITORY / "examples" / "capitals", tmp_path_factory.mktemp("run")
    words = ["run", examples, "--model", f"scripted/{examples / 'answers.jsonl'}", "--out", folder]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return folder / "capitals.tasklog.json"


@pytest.fixture
def result(written: Path, tmp_path: Path) -> Path:
    """Return a result log in the test's folder."""
    (tmp_path / "out").mkdir()
    return Path(shutil.copy(written, tmp_path / "out"))


# validate


def test_shipped_files_are_valid(aigo: Run) -> None:
    done = aigo("validate", REPOSITORY / "tasks", REPOSITORY / "examples", "--strict")

    assert done.code == 0, done.out
    assert "files are valid" in done.out


def test_every_error_in_a_task_is_reported_with_its_position(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "key: t\ndisplay_name: T\ndefinition:\n  scorer: []\n  solver: {type: x}\n"
    )

    done = aigo("validate", "t.yaml")

    assert done.code == 1
    assert "t.yaml:4:3: error" in done.out
    assert "t.yaml:5:" in done.out
    assert "description" in done.out
    assert done.err == ""


def test_json_format_prints_machine_readable_issues(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("key: t\ndisplay_name: T\ndescription: ''\ndefinition: {scorer: []}\n")

    done = aigo("validate", "t.yaml", "--format", "json")

    assert done.code == 1
    (report,) = done.json
    assert (report["file"], report["kind"], report["valid"]) == ("t.yaml", "unknown", False)
    assert report["issues"][0]["line"] == 4
    assert report["issues"][0]["path"] == ["definition", "scorer"]


def test_github_format_prints_annotations(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("key: t\ndisplay_name: T\ndescription: ''\ndefinition: {scorer: []}\n")

    done = aigo("validate", "t.yaml", "--format", "github")

    assert done.out.startswith("::error file=t.yaml,line=4,")


@pytest.mark.engine
def test_result_logs_are_valid(aigo: Run, result: Path) -> None:
    done = aigo("validate", result)

    assert done.code == 0
    assert "a valid tasklog" in done.out


@pytest.mark.engine
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_errors_in_a_result_log_are_reported(aigo: Run, result: Path, tmp_path: Path, suffix: str) -> None:
    """The message has the file, the path inside it and the fix."""
    data = json.loads(result.read_text())
    del data["specification"]["task"]["key"]
    data["evidence"]["samples"][1]["trials"][0]["index"] = "first"
    path = tmp_path / f"broken{suffix}"
    text = json.dumps(data).encode()
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)

    done = aigo("validate", path, "--format", "json")

    assert done.code == 1
    paths = [tuple(issue["path"]) for issue in done.json[0]["issues"]]
    assert ("evidence", "samples", 1, "trials", 0, "index") in paths
    assert ("specification", "task", "key") in paths


@pytest.mark.engine
def test_validate_finds_files_in_subfolders(aigo: Run, result: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data.yaml").write_text(
        "key: d\ndisplay_name: D\nsource: {type: local, file_path: a.csv}\n"
    )
    (tmp_path / "sub" / "a.csv").write_text("q\nWhere?\n")
    (tmp_path / "sub" / "docker-compose.yaml").write_text("services: {}\n")

    done = aigo("validate", tmp_path)

    assert done.code == 0, done.out
    assert "2 files are valid (dataset, tasklog)" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.yaml"], "file or folder 'none.yaml' does not exist"),
        ([".", "--format", "xml"], "expected rich, json or github"),
        ([".", "--dialect", "aigo-4"], "expected default or aigo-3.17"),
        ([], "Missing argument"),
    ],
)
def test_invalid_arguments_of_validate_are_refused(aigo: Run, arguments: list[str], message: str) -> None:
    done = aigo("validate", *arguments)

    assert done.code == 2
    assert message in done.err


def test_strict_treats_warnings_as_errors(aigo: Run, tmp_path: Path) -> None:
    """Deprecated syntax is a warning that shows the new syntax."""
    (tmp_path / "t.yaml").write_text(
        "key: t\ndisplay_name: T\ndescription: ''\ndefinition: {type: declarative_task, scorers: []}\n"
    )

    lax, strict = aigo("validate", "t.yaml"), aigo("validate", "t.yaml", "--strict")

    assert (lax.code, strict.code) == (0, 1)
    assert "warning" in lax.out
    assert "benchmark_task" in lax.out


# schema


@pytest.mark.parametrize("kind", ["task", "run", "dataset", "model", "tasklog", "jsonl"])
def test_printed_schemas_are_valid_json_schemas(aigo: Run, kind: str) -> None:
    done = aigo("schema", kind)

    assert done.code == 0
    assert done.json["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(done.json)


@pytest.mark.engine
def test_schema_accepts_a_written_result_log(aigo: Run, result: Path) -> None:
    validator = jsonschema.Draft202012Validator(aigo("schema", "tasklog").json)

    assert list(validator.iter_errors(json.loads(result.read_text()))) == []


def test_schema_accepts_tasks_and_refuses_misspelled_keys(aigo: Run) -> None:
    validator = jsonschema.Draft202012Validator(aigo("schema", "task").json)
    task = yaml.safe_load((REPOSITORY / "examples" / "capitals" / "task.yaml").read_text())

    assert list(validator.iter_errors(task)) == []
    task["definition"]["scorer"] = task["definition"].pop("scorers")
    assert list(validator.iter_errors(task)) != []


def test_an_unknown_schema_is_reported(aigo: Run) -> None:
    done = aigo("schema", "tasks")

    assert done.code == 2
    assert "did you mean 'task'?" in done.err


# upgrade


def test_upgrade_prints_the_current_form_and_keeps_comments(aigo: Run, tmp_path: Path) -> None:
    old = "# ours\nkey: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  type: declarative_task  # once\n  scorers: []\n"
    (tmp_path / "t.yaml").write_text(old)

    done = aigo("upgrade", "t.yaml")
    assert done.code == 0
    assert done.out == old.replace("declarative_task", "benchmark_task")
    assert (tmp_path / "t.yaml").read_text() == old

    assert aigo("upgrade", "t.yaml", "--write").out == "t.yaml: upgraded\n"
    assert (tmp_path / "t.yaml").read_text() == done.out
    assert aigo("upgrade", "t.yaml", "--write").out == "t.yaml: already up to date\n"


# explain


@pytest.mark.engine
def test_explain_shows_the_exact_prompts(aigo: Run, tasks: Path, tmp_path: Path) -> None:
    """Messages to the model and the judge equal those in the evidence of a run, except for answers."""
    folder = tasks / "hp-trivia"
    shown = aigo("explain", folder, "--num-samples", 2, "--json").json
    aigo(
        "run", folder, "--model", f"scripted/{folder / 'answers.jsonl'}", "--out", "out", "-n", 2,
        "--model-map", f"openai$gpt-4-1-nano=scripted/{folder / 'judge.jsonl'}",
    )  # fmt: skip
    result = json.loads((tmp_path / "out" / "hp-trivia.tasklog.json").read_text())

    for preview, sample in zip(shown["samples"], result["evidence"]["samples"], strict=True):
        trial = sample["trials"][0]
        sent = [(i["role"], i["content"][0]["text"]) for i in trial["solver"]["output"]["trace"]["items"]]
        *asked, answer = [(m["role"], m["content"]) for m in preview["messages"]]
        assert asked == sent[:-1]
        assert answer == ("assistant", "⟨the model's answer⟩")
        (call,) = trial["scores"][0]["metadata"]["judge_calls"]
        (scorer,) = preview["scorers"]
        judged = [
            (m["role"], m["content"].replace("⟨the model's answer⟩", sent[-1][1])) for m in scorer["messages"]
        ]
        assert judged == [(m["role"], m["content"]) for m in call["messages"]]
        assert scorer["response_format"]["type"] == "json_schema"


def test_explain_does_not_execute_snippets(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"v": 1}\n')
    (tmp_path / "t.yaml").write_text(
        "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  scorers:\n    - type: python\n      metrics: []\n"
        f"      compute_scores_snippet: |\n        open({str(tmp_path / 'ran')!r}, 'w')\n"
        "        def compute_scores(sample):\n          return {}\n"
    )

    done = aigo("explain", "t.yaml", "--dataset", "d=d.jsonl")

    assert done.code == 0, done.err
    assert "3 lines of the author's code; not run here" in done.out
    assert not (tmp_path / "ran").exists()


def test_explain_reports_samples_that_will_fail(aigo: Run, tmp_path: Path, tasks: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "say \\"hi\\"", "target": "hi"}\n')

    done = aigo("explain", "aigo_tasks/singleturn-generic-input", "--dataset", "qa-single-answers=rows.jsonl")

    assert done.code == 0
    assert "will fail: the input template did not return JSON" in done.out


def test_explain_shows_conversations(aigo: Run, tmp_path: Path) -> None:
    """This includes solvers that this release cannot run yet."""
    (tmp_path / "q.jsonl").write_text('{"guests": 4}\n')
    (tmp_path / "t.yaml").write_text(
        """
key: t
display_name: T
description: ""
definition:
  dataset: {key: q}
  solver:
    type: multi_turn_solver
    message_builders:
      - {type: chat_message, role: user, content: "Plan a menu for {{ sample.guests }} guests."}
      - {type: generate}
      - type: loop
        max_iterations: 2
        message_builders:
          - {type: chat_message, role: user, content: "Again."}
          - {type: generate}
"""
    )

    done = aigo("explain", "t.yaml", "--json")

    assert [(m["role"], m["content"]) for m in done.json["samples"][0]["messages"]] == [
        ("user", "Plan a menu for 4 guests."),
        ("assistant", "⟨the model's answer⟩"),
        ("note", "up to 2 times:"),
        ("user", "Again."),
        ("assistant", "⟨the model's answer⟩"),
    ]


UNKNOWN_TURNS = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: q}
  solver: %s
  scorers:
    - {type: string_equals, key: s, ground_truth: "{{ sample.a }}", value: "{{ solver_output.messages[1].content }}"}
    - {type: model_as_a_judge_scorer, key: judge, model_key: j, user_prompt: "{{ sample.a }}? {{ messages[7].content }}"}
    - {type: string_equals, key: parsed, ground_truth: "x", value: "{{ (solver_output.messages[-1].content | fromjson).x }}"}
    - {type: string_equals, key: wrong, ground_truth: "{{ sample.a.b.c }}"}
"""


@pytest.mark.parametrize(
    "solver",
    [
        '{type: python, run_solver_snippet: "def run_solver(sample, model, trace): return trace"}',
        "{type: multi_turn_solver, message_builders: [{type: loop, message_builders: [{type: generate}]}]}",
        '{type: single_turn_solver, input_builder: {type: chat_completion, input_messages: [{role: user, content: "?"}]}}',
    ],
)
def test_explain_does_not_render_templates_over_unknown_answers(
    aigo: Run, tmp_path: Path, solver: str
) -> None:
    """A template that reads an answer is not an error before the answer exists."""
    (tmp_path / "q.jsonl").write_text('{"a": "Oslo"}\n')
    (tmp_path / "t.yaml").write_text(UNKNOWN_TURNS % solver)

    done = aigo("explain", "t.yaml", "--json")

    assert done.code == 0, done.err
    scorer, judge, parsed, wrong = done.json["samples"][0]["scorers"]
    known = "single_turn" in solver
    assert scorer["fields"]["ground_truth"] == "Oslo"
    assert scorer["fields"]["value"] == (
        "⟨the model's answer⟩" if known else "{{ solver_output.messages[1].content }}"
    )
    assert scorer["problem"] is judge["problem"] is parsed["problem"] is None
    assert judge["messages"][-1]["content"] == "{{ sample.a }}? {{ messages[7].content }}"
    assert "shown as templates" in judge["messages"][0]["content"]
    assert parsed["fields"]["value"] == "{{ (solver_output.messages[-1].content | fromjson).x }}"
    assert "`sample.a.b` is undefined" in wrong["problem"]


# run files


RUN = """
config: {{}}
datasets:
  - key: rows
    display_name: Rows
    source: {{type: local, file_path: rows.csv}}
tasks:
  - $ref: task.yaml
evaluation:
  key: e
  display_name: E
  description: ""
  config_spec: []
  task_specifications:
    - {{key: s, task_key: {task}, model_key: m, task_config: {{dataset_key: rows, column: {column}}}}}
"""

CHECKED_TASK = """
key: t
display_name: T
description: ""
config_spec:
  - {type: dataset, key: dataset_key, display_name: D}
  - {type: string, key: column, display_name: C}
definition:
  dataset: {key: << config.dataset_key >>}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.<< config.column >> }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.answer }}"}
"""


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text("question,answer\none,1\n")
    (tmp_path / "task.yaml").write_text(CHECKED_TASK)
    return tmp_path / "run.yaml"


def test_run_files_are_validated_with_all_referenced_files(aigo: Run, run_file: Path) -> None:
    run_file.write_text(RUN.format(task="t", column="question"))

    done = aigo("validate", run_file)

    assert done.code == 0, done.out
    assert "a valid run" in done.out


def test_columns_missing_for_a_template_are_reported_in_run_files(aigo: Run, run_file: Path) -> None:
    run_file.write_text(RUN.format(task="t", column="quesion"))

    done = aigo("validate", run_file)

    assert done.code == 1
    assert "task.yaml:12:" in done.out
    assert "`sample.quesion` is not a column of the dataset" in done.out
    assert "did you mean 'question'?" in done.out
    assert aigo("validate", run_file, "--dialect", "aigo-3.17").out.count("error: `sample") == 0


def test_unknown_tasks_of_run_files_are_reported(aigo: Run, run_file: Path) -> None:
    run_file.write_text(RUN.format(task="tt", column="question"))

    done = aigo("validate", run_file)

    assert done.code == 1
    assert "no task 'tt' in this run file" in done.out


def test_missing_data_files_of_run_files_are_reported(aigo: Run, run_file: Path) -> None:
    run_file.write_text(RUN.format(task="t", column="question"))
    (run_file.parent / "rows.csv").unlink()

    done = aigo("validate", run_file)

    assert done.code == 1
    assert "rows.csv" in done.out


def test_explain_shows_all_specifications_of_a_run_file(aigo: Run) -> None:
    """The output equals that of a single named specification and of the task."""
    capitals = REPOSITORY / "examples" / "capitals"

    several = aigo("explain", capitals / "run.yaml", "--json")
    one = aigo("explain", f"{capitals / 'run.yaml'}#capitals", "--json")
    shown = aigo("explain", capitals / "run.yaml", "-n", 1)

    assert (several.code, one.code, shown.code) == (0, 0, 0)
    assert several.json == [one.json]
    assert shown.out.startswith("══ capitals\nCapitals (capitals): evaluates a model\n")
    assert "What is the capital of Norway?" in shown.out
