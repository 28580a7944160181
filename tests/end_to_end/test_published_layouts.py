"""Projects with the layout of published ones: `tasks/`, `datasets/`, `models/`, `parts/`, `evaluations/`, and no `--root`."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import orjson
import pytest
from tests.support.commands import Run

SCORER = """
type: python
key: exact
compute_scores_snippet: !include {parts}/score.py
metrics: [{{type: mean, field: right}}]
"""
TASK = """
key: capitals
display_name: Capitals
description: !include {parts}/about.md
definition:
  dataset: {{key: countries}}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{{role: user, content: !include {parts}/ask.md}}]
  scorers:
    - $ref: {parts}/scorer.yaml
"""
DATASET = """
key: countries
display_name: Countries
source: {type: local, file_path: ../data/countries.csv}
"""
MODEL = """
key: answers
display_name: Answers
config: {connection_type: custom_connection, url: "http://127.0.0.1:9/", adapter: {$ref: ../adapters/plain.yaml}}
"""
ADAPTER = """
key: plain
display_name: Plain
process_input: {language: jinja, source_code: !include ../parts/input.jinja}
process_output: {language: jinja, source_code: "{{ response }}"}
"""
RUN = """
config: {{subject: answers}}
models: [{{$ref: {up}/models/answers.yaml}}]
datasets: [{{$ref: {up}/datasets/countries.yaml}}]
tasks: [{{$ref: {up}/tasks/{task}}}]
evaluation:
  key: geography
  display_name: Geography
  description: ""
  config_spec: [{{type: model, key: subject, display_name: Subject}}]
  task_specifications: [{{task_key: capitals, model_key: << config.subject >>}}]
"""


def publish(folder: Path, task: str, run: str, mark: str | None) -> None:
    """Write a project; `task` and `run` are the paths of its task (in `tasks/`) and run file."""
    up = "/".join([".."] * (len(Path(run).parts) - 1)) or "."
    parts = "/".join([".."] * len(Path(task).parts)) + "/parts"
    files = {
        f"tasks/{task}": TASK.format(parts=parts),
        "datasets/countries.yaml": DATASET,
        "data/countries.csv": "country,capital\nFrance,Paris\nNorway,Oslo\n",
        "models/answers.yaml": MODEL,
        "adapters/plain.yaml": ADAPTER,
        "parts/about.md": "Asks for capitals.",
        "parts/ask.md": "What is the capital of {{ sample.country }}?",
        "parts/input.jinja": "{{ input | tojson }}",
        "parts/scorer.yaml": SCORER.format(parts="."),
        "parts/score.py": "def compute_scores(sample, solver_output):\n"
        "    return {'right': sample['capital'] in solver_output.trace.get_last_assistant_text()}\n",
        run: RUN.format(up=up, task=task),
        "said.jsonl": json.dumps({"default": True, "reply": "Paris"}) + "\n",
    }
    if mark is not None:
        files[mark] = ""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


LAYOUTS = [
    pytest.param("capitals.yaml", "run.yaml", None, id="a-run-file-on-top"),
    pytest.param("capitals/task.yaml", "evaluations/run.yaml", None, id="evaluations-in-their-folder"),
    pytest.param("geo/capitals/task.yaml", "evaluation/run.yaml", "pyproject.toml", id="deep-tasks"),
    pytest.param("capitals.yaml", "evaluations/geo/2025/run.yaml", ".git", id="a-work-tree"),
]


@pytest.mark.parametrize(("task", "run", "mark"), LAYOUTS)
def test_every_verb_works_without_a_root(
    task: str, run: str, mark: str | None, aigo: Run, tmp_path: Path
) -> None:
    publish(tmp_path / "project", task, run, mark)
    file = f"project/tasks/{task}"

    whole = aigo("validate", "project", "--strict")
    alone = aigo("validate", file, "--strict")
    explained = aigo("explain", file)
    ran = aigo("run", file, "--model", "scripted/project/said.jsonl", "--out", "one")
    evaluated = aigo("run", f"project/{run}", "--model", "scripted/project/said.jsonl", "--out", "all")
    exported = [
        aigo("export", file, "--to", engine, "--out", f"{engine}-package")
        for engine in ("inspect", "lighteval")
    ]

    assert (whole.code, alone.code) == (0, 0), whole.out + alone.out
    assert "What is the capital of France?" in explained.out
    assert ran.code == 0, ran.err
    assert evaluated.code == 0, evaluated.err
    assert [done.code for done in exported] == [0, 0], [done.err for done in exported]
    for result in ("one/capitals.tasklog.json", "all/capitals.tasklog.json"):
        (metric,) = orjson.loads((tmp_path / result).read_bytes())["evidence"]["metrics"]
        assert metric["values"] == {"right_mean": 0.5}


def test_commands_work_from_every_project_folder(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "project", "geo/capitals.yaml", "evaluations/run.yaml", ".git")
    monkeypatch.chdir(tmp_path / "project" / "tasks" / "geo")
    assert aigo("validate", "capitals.yaml", "--strict").code == 0
    assert "of Norway?" in aigo("explain", "capitals.yaml").out
    monkeypatch.chdir(tmp_path / "project" / "evaluations")
    done = aigo("run", "run.yaml", "--model", "scripted/../said.jsonl", "--out", tmp_path / "out")
    assert done.code == 0, done.err


def test_published_task_runs_with_lighteval_and_inspect_eval(command: Run, aigo: Run, tmp_path: Path) -> None:
    publish(tmp_path / "project", "capitals/task.yaml", "evaluations/run.yaml", None)
    words = ["task=project/tasks/capitals/task.yaml", "--model", "scripted/project/said.jsonl"]

    lighteval = aigo("run", words[0][5:], *words[1:], "--engine", "lighteval", "--out", "out")
    native = command("inspect", "eval", "aigo_bridge/task", "-T", *words, "--display", "none")

    assert lighteval.code == 0, lighteval.err
    assert native.code == 0, native.err + native.out
    assert list(tmp_path.glob("logs/*.eval"))


def test_export_contains_the_project_files_and_runs_in_another_folder(aigo: Run, tmp_path: Path) -> None:
    publish(tmp_path / "project", "capitals/task.yaml", "run.yaml", None)
    assert aigo("export", "project/tasks/capitals/task.yaml", "--to", "inspect", "--out", "package").code == 0
    packed = {path.name for path in (tmp_path / "package").rglob("*")}
    assert {"ask.md", "about.md", "score.py", "scorer.yaml"} <= packed


def test_dataset_cannot_read_outside_its_project(aigo: Run, tmp_path: Path) -> None:
    publish(tmp_path / "project", "capitals.yaml", "run.yaml", None)
    (tmp_path / "secret.csv").write_text("country,capital\nkey,value\n")
    dataset = tmp_path / "project" / "datasets" / "countries.yaml"
    dataset.write_text(DATASET.replace("../data/countries.csv", "../../secret.csv"))

    refused = [
        aigo("run", "project/tasks/capitals.yaml", "--model", "scripted/project/said.jsonl"),
        aigo("validate", "project/tasks/capitals.yaml"),
        aigo("validate", "project/datasets/countries.yaml"),
        aigo("validate", "project/run.yaml"),
    ]

    assert [done.code for done in refused] == [2, 1, 1, 1]
    for done in refused:
        assert f"is outside the root folder '{tmp_path}/project'" in done.out + done.err
        assert "use a wider root: --root .;" in done.out + done.err


def test_files_next_to_a_project_are_not_found_as_data(aigo: Run, tmp_path: Path) -> None:
    """A dataset key is searched only in the project."""
    publish(tmp_path / "all" / "project", "capitals.yaml", "run.yaml", None)
    (tmp_path / "all" / "project" / "datasets" / "countries.yaml").unlink()
    (tmp_path / "all" / "datasets").mkdir()
    (tmp_path / "all" / "datasets" / "countries.csv").write_text("country,capital\nkey,value\n")

    done = aigo("explain", "all/project/tasks/capitals.yaml")

    assert done.code == 2
    assert "dataset 'countries' was not found" in done.err


def test_access_outside_the_root_is_explained_with_options(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "x.md").write_text("x")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "t.yaml").write_text(
        dedent("""
            key: t
            display_name: T
            description: !include ../parts/x.md
            definition: {scorers: []}
        """)
    )
    done = aigo("validate", "tasks/t.yaml")
    assert done.code == 1
    assert f"is outside the root folder '{tmp_path}/tasks'" in done.out
    assert "use a wider root: --root .;" in done.out
    assert aigo("validate", "tasks/t.yaml", "--root", tmp_path).code == 0
