"""Every verb on every file type: a correct result, or a message with the file name and the fix; never a traceback."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY
from typer.testing import CliRunner

GOLDEN = REPOSITORY / "tests" / "golden"

TASK = """key: task
display_name: Task
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.a }}"}
"""
RUN = """models: [{$provider: scripted/answers.jsonl}]
datasets: [{$ref: dataset.yaml}]
tasks: [{$ref: task.yaml}]
evaluation:
  key: evaluation
  display_name: Evaluation
  description: ""
  task_specifications:
    - {key: one, task_key: task, model_key: "scripted$answers-jsonl"}
"""
DATASET = "key: rows\ndisplay_name: Rows\nsource: {type: local, file_path: rows.jsonl}\n"
MODEL = """key: model
display_name: Model
max_concurrent_requests: 4
config:
  connection_type: custom_connection
  url: http://127.0.0.1:9/v1
  model_key: m
"""
POLICY = """key: gate
display_name: Gate
rules:
  - key: good
    display_name: Good
    definition: {type: threshold, metric: Accuracy, operator: ">=", threshold: 0.5}
"""
ANSWERS = '{"default": true, "reply": "yes"}\n'
ROWS = '{"q": "q0", "a": "yes"}\n{"q": "q1", "a": "no"}\n'

KINDS = (
    *("task.yaml", "run.yaml", "dataset.yaml", "model.yaml", "policy.yaml", "broken.yaml"),
    *("tasks.jsonl", "rows.jsonl", "rows.csv", "rows.json"),
    *("x.tasklog.json", "x.tasklog.json.zst", "evaluation.json"),
    *("x.eval", "inspect.json", "cut.eval", "lighteval.json", "details.parquet", "rows.parquet"),
    *("empty.yaml", "empty.json", "empty.jsonl", "empty.eval", "binary.bin", "binary.yaml", "binary.json"),
    *("notes.txt", "empty", "other", "missing.yaml", "missing.json", "missing"),
)
"""Names of files and folders in the project."""

VERBS: dict[str, Callable[[str], list[str]]] = {
    "validate": lambda file: ["validate", file],
    "validate-strict": lambda file: ["validate", file, "--strict"],
    "explain": lambda file: ["explain", file],
    "run": lambda file: ["run", file, "--model", "scripted/answers.jsonl"],
    "run-specification": lambda file: ["run", f"{file}#one"],
    "export": lambda file: ["export", file, "--to", "inspect"],
    "export-log": lambda file: ["export", file, "--to", "inspect-log"],
    "convert": lambda file: ["convert", file],
    "import": lambda file: ["import", file],
    "import-tables": lambda file: ["import", file, "--format", "parquet"],
    "import-inspect": lambda file: ["import", file, "--engine", "inspect"],
    "import-lighteval": lambda file: ["import", file, "--engine", "lighteval"],
    "score": lambda file: ["score", "task.yaml", file],
    "score-with": lambda file: ["score", file, "x.tasklog.json"],
    "probe": lambda file: ["probe", "task.yaml", file],
    "probe-with": lambda file: ["probe", file, "x.tasklog.json"],
    "report": lambda file: ["report", file],
    "show": lambda file: ["show", file],
    "table": lambda file: ["table", file],
    "plot": lambda file: ["plot", file],
    "sql": lambda file: ["sql", "select * from metrics", file],
    "upgrade": lambda file: ["upgrade", file],
    "generate": lambda file: ["generate", file],
    "list": lambda file: ["list", file],
}
OF_TASKS = {"explain", "run", "export", "score-with", "probe-with", "upgrade", "generate", "convert"}
LOGS = {"x.eval", "inspect.json", "lighteval.json", "details.parquet"}
OF_RESULTS = {"table", "sql"}
WITHOUT_OUT = {"validate", "validate-strict", "explain", "show", "upgrade", "list", "probe", "probe-with"}
RIGHT = re.compile(
    r"expected|did you mean|`aigo-bridge|known engines|say which|hint:|does not exist|no logs at|name the|is missing|score it with"
)
"""How messages say what would be right; of a file that is not there, that it is not."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    texts = {
        "task.yaml": TASK,
        "run.yaml": RUN,
        "dataset.yaml": DATASET,
        "model.yaml": MODEL,
        "policy.yaml": POLICY,
        "broken.yaml": "key: [x\n",
        "answers.jsonl": ANSWERS,
        "rows.jsonl": ROWS,
        "rows.csv": "q,a\nq0,yes\n",
        "rows.json": '[{"q": "q0", "a": "yes"}]',
        "notes.txt": "hello\n",
        "empty.yaml": "",
        "empty.json": "",
        "empty.jsonl": "",
        "empty.eval": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "notes.txt").write_text("hello\n")
    for name in ("binary.bin", "binary.yaml", "binary.json"):
        (folder / name).write_bytes(bytes(range(256)) * 4)
    records = REPOSITORY / "tasks" / "aigo_tasks" / "jsonl-fixture" / "tasks.jsonl"
    (folder / "tasks.jsonl").write_bytes(records.read_bytes())
    log = GOLDEN / "inspect" / "0.3.50.eval"
    (folder / "x.eval").write_bytes(log.read_bytes())
    (folder / "cut.eval").write_bytes(log.read_bytes()[:3000])
    (folder / "inspect.json").write_bytes(log.with_suffix(".json").read_bytes())
    with zipfile.ZipFile(GOLDEN / "lighteval" / "0.13.0.zip") as archive:
        for name in archive.namelist():
            if "results_" in name:
                (folder / "lighteval.json").write_bytes(archive.read(name))
            elif "details_choice" in name:
                (folder / "details.parquet").write_bytes(archive.read(name))
    import pyarrow as pa  # type: ignore[import-untyped]  # has no types
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no types

    pq.write_table(pa.table({"q": ["q0"], "a": ["yes"]}), folder / "rows.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = invoke("run", "run.yaml", "--out", "made")
        assert made.exit_code == 0, made.output
        (folder / "x.tasklog.json").write_bytes((folder / "made" / "one.tasklog.json").read_bytes())
        (folder / "evaluation.json").write_bytes((folder / "made" / "evaluation.json").read_bytes())
        assert invoke("import", "x.eval", "--format", "json.zst", "--out", "packed").exit_code == 0
        (folder / "packed" / "x.tasklog.json.zst").rename(folder / "x.tasklog.json.zst")
    return folder


def invoke(*arguments: str) -> Any:
    from aigo_bridge.cli import app

    return CliRunner().invoke(app, list(arguments))


PAIRS = [
    pytest.param(kind, verb, marks=() if (row + column) % 4 == 0 else pytest.mark.nightly)
    for row, kind in enumerate(KINDS)
    for column, verb in enumerate(VERBS)
]
"""A submission runs a quarter of them: every verb and every kind of file several times."""


@pytest.mark.parametrize(("kind", "verb"), PAIRS)
def test_every_verb_handles_every_file_without_a_traceback(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, kind: str
) -> None:
    monkeypatch.chdir(project)
    name = "out.jsonl" if verb == "convert" and ".jsonl" not in kind else "out"
    name = "out.svg" if verb == "plot" else "out.csv" if verb in OF_RESULTS else name
    out = [] if verb in WITHOUT_OUT else ["--out", str(tmp_path / name)]

    done = invoke(*VERBS[verb](kind), *out)

    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code in (0, 1, 2, 3)
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    if not (verb == "upgrade" and kind.startswith("empty")):
        assert said.strip(), "nothing was said"
    if done.exit_code == 2:
        # Of a task and a log that do not fit, either may be the one that is named.
        assert kind.removesuffix(".yaml") in done.stderr or (
            verb in ("score", "probe") and "task.yaml" in done.stderr
        ), done.stderr
        assert RIGHT.search(done.stderr), done.stderr
        if verb in OF_TASKS and kind in LOGS:
            assert "`aigo-bridge import`" in done.stderr, done.stderr
        if verb in OF_TASKS and kind == "x.tasklog.json":
            assert "result log" in done.stderr, done.stderr
    if verb in OF_TASKS and kind in {*LOGS, "x.tasklog.json"}:
        assert done.exit_code == 2
