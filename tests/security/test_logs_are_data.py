"""Reading a log with any verb runs no code of the log and renders no template in it.

The logs are from real runs, with every snippet and template replaced by foreign ones. The test watches the snippet host, the templates,
and the files that foreign code would write.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel
from tests.support.commands import Run
from typer.testing import CliRunner

from aigo_bridge.cli import VERBS, app
from aigo_bridge.plan.plan import content_digest
from aigo_bridge.reading.kinds import KINDS
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.spec.base import OneOf
from aigo_bridge.templates.config import bind_config
from aigo_bridge.templates.sample import CompiledAdapter, SampleTemplate
from aigo_inspect.logs.reader import open_log
from aigo_scale.sharding.manifest import digests_in

STRANGER, OWN = "stranger", "# own"
TEMPLATE = '{{ "stranger" }}<< config.stranger >>'
CODE = """open({trace!r}, "w").close()
async def run_solver(sample, model, trace): raise ValueError("stranger")
def postprocess(*a): raise ValueError("stranger")
def compute_scores(*a): raise ValueError("stranger")
def compute_metrics(*a): return {{"stranger": 1}}
def compute_evidence(): return {{"metrics": {{"stranger": {{"value": 1}}}}}}
def synthesize(source): return [{{"stranger": 1}}]
def run_inference(*a): raise ValueError("stranger")
"""

MODEL_TASK = """
key: quiz
display_name: Quiz
description: ""
config_spec: [{type: string, key: word, display_name: Word, default_value: "yes"}]
definition:
  dataset: {key: rows}
  solver:
    type: python
    run_solver_snippet: |
      # own
      async def run_solver(sample, model, trace):
          return {"trace": {"items": []}, "raw_outputs": []}
    postprocessor:
      type: python
      postprocess_snippet: |
        # own
        def postprocess(sample, solver_output):
            return [(sample, solver_output)]
  scorers:
    - type: string_equals
      display_name: "<< config.word >>"
      ground_truth: "{{ sample.a }}"
      value: "{{ sample.q }}"
    - type: python
      key: mine
      metrics:
        - {type: mean, field: x}
        - type: python
          key: counted
          compute_metrics_snippet: |
            # own
            def compute_metrics(scores):
                return {"n": len(scores)}
      compute_scores_snippet: |
        # own
        def compute_scores(sample, solver_output=None):
            return {"x": 1}
  actions:
    - {key: skip, action: exclude_from_metrics, filter: {op: equals, expression: "{{ sample.q }}", value: two}}
"""
DATA_TASK = """
key: data
display_name: Data
description: ""
definition:
  dataset: {key: rows}
  scorers:
    - type: python_all_samples
      key: all
      metrics: [{type: python, compute_metrics_snippet: "# own\\ndef compute_metrics(scores): return {'n': len(scores)}"}]
      compute_scores_snippet: "# own\\ndef compute_scores(samples): return [{'x': 1} for _ in samples]"
"""
SYSTEM_TASK = """
key: system
display_name: System
description: ""
definition:
  type: system_task
  compute_evidence_snippet: "# own\\ndef compute_evidence(): return {'metrics': {'a': {'value': 1}}}"
"""
ON_RESULT = """
key: again
display_name: Again
description: ""
definition:
  dataset: {source: task_result, key: quiz}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.a }}", value: "{{ sample.q }}"}
"""
TASKS = {"quiz": MODEL_TASK, "data": DATA_TASK, "system": SYSTEM_TASK, "again": ON_RESULT}

GENERATED = """
key: made
display_name: Made
generator_specification:
  dataset_generator_key: g
  dataset_generator_config: {}
  num_samples: 1
"""
STRANGERS_FILES = {
    "model.yaml": {
        "key": "m",
        "display_name": "M",
        "config": {"connection_type": "custom_inference", "run_inference_snippet": ""},
    },
    "generator.yaml": {
        "key": "g",
        "display_name": "G",
        "description": "",
        "definition": {
            "data_source": {"type": "dataset", "dataset": {"key": "rows"}},
            "synthesizers": [{"type": "python", "synthesize_snippet": ""}],
        },
    },
}
"""Files with code that no log carries."""


@dataclass
class Watch:
    """Calls of the snippet host and the templates."""

    sources: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)

    def strangers(self) -> list[str]:
        """Return the foreign parts of a document."""
        return [text for text in (*self.sources, *self.templates) if STRANGER in text]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()
    for name in ("call", "call_blocking"):
        real = getattr(SnippetHost, name)

        def watched(self: Any, snippet: Any, *args: Any, real: Any = real, **kwargs: Any) -> Any:
            watch.sources.append(snippet.source)
            return real(self, snippet, *args, **kwargs)

        monkeypatch.setattr(SnippetHost, name, watched)
    for kind in (SampleTemplate, CompiledAdapter):
        made = kind.__init__

        def compiled(self: Any, source: str, *args: Any, made: Any = made, **kwargs: Any) -> None:
            watch.templates.append(source)
            made(self, source, *args, **kwargs)

        monkeypatch.setattr(kind, "__init__", compiled)

    def bound(value: Any, *args: Any, **kwargs: Any) -> Any:
        watch.templates.append(repr(value))
        return bind_config(value, *args, **kwargs)

    # Verification replaces parameters in names of scores only, and imports the function from `templates.config`.
    for module in ("templates", "evaluation.run_files", "datasets.generating"):
        monkeypatch.setattr(f"aigo_bridge.{module}.bind_config", bound)
    return watch


def write_own(folder: Path) -> Path:
    """Write the user's own files."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, text in TASKS.items():
        (folder / f"{key}.yaml").write_text(text)
    (folder / "rows.jsonl").write_text(
        '{"q": "one", "a": "one"}\n{"q": "two", "a": "no"}\n{"q": "x", "a": "y"}\n'
    )
    (folder / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    return folder


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that returns a project with tasks that an engine has run."""

    @cache
    def project(engine: str) -> Path:
        folder = write_own(tmp_path_factory.mktemp("own"))
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            for task in ("quiz", "data", "system"):
                model = ["--model", "scripted/m.jsonl"] if task == "quiz" else []
                done = CliRunner().invoke(
                    app, ["run", f"{task}.yaml", *model, "--engine", engine, "-o", engine]
                )
                assert done.exit_code == 0, done.output
        return folder

    return project


@dataclass
class Edit:
    """Replacement of all code, with its positions."""

    traces: Path
    places: set[str] = field(default_factory=set)

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: self._under(name, part) for name, part in value.items()}
        if isinstance(value, list):
            return [self(part) for part in value]
        return value + TEMPLATE if isinstance(value, str) and ("{{" in value or "<<" in value) else value

    def _under(self, name: str, part: Any) -> Any:
        if not name.endswith("_snippet") or not isinstance(part, str):
            return self(part)
        self.places.add(name)
        return CODE.format(trace=str(self.traces / name))


def with_own_digest(header: dict[str, Any]) -> dict[str, Any]:
    """Return a plan header with the digest of its content, as an attacker would write it."""
    dataset = header["dataset"]
    content = {
        "task": header["task"],
        "config": header["config"],
        "dataset": dataset and {"key": dataset["key"], "digest": dataset["digest"]},
        "num_trials": header["num_trials"],
    }
    return {**header, "digest": content_digest(content)}


def plans_changed(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return a document with every plan header changed."""
    if isinstance(value, Mapping):
        if {"format", "digest", "task", "config"} <= value.keys():
            return change(dict(value))
        return {name: plans_changed(part, change) for name, part in value.items()}
    return [plans_changed(part, change) for part in value] if isinstance(value, list) else value


def edit_file(path: Path, edit: Callable[[Any], Any]) -> None:
    """Change the JSON of a file or of every archive member, and update stored metrics."""
    if not zipfile.is_zipfile(path):
        path.write_text(json.dumps(edit(json.loads(path.read_text()))))
        return
    with zipfile.ZipFile(path) as archive:
        members = {name: json.loads(archive.read(name)) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in members.items():
            if not name.startswith("_aigo/"):
                archive.writestr(name, json.dumps(edit(value)))
        sums = {entry.filename: entry.CRC for entry in archive.infolist()}
        for name, value in members.items():
            if name.startswith("_aigo/"):
                archive.writestr(name, json.dumps({**edit(value), "checksums": sums}))


HOW: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "careless": lambda header: header,
    "careful": with_own_digest,
}
"""Whether the digests of edited plans are those of other ones, or of what stands there now."""


@pytest.fixture(params=HOW)
def hostile(request: pytest.FixtureRequest, ran: Callable[[str], Path], tmp_path: Path) -> tuple[Path, Edit]:
    """Project with all logs of the test's engine edited, and the edits. Tests name it before `watch`, which would see the run."""
    engine = request.node.callspec.params.get("engine", "inspect")
    shutil.copytree(ran(engine), tmp_path, dirs_exist_ok=True)
    (tmp_path / "traces").mkdir()
    edit = Edit(tmp_path / "traces")
    for path in logs_of(tmp_path):
        edit_file(path, lambda value: plans_changed(edit(value), HOW[request.param]))
    for path in tmp_path.glob("*/*.tasklog.json"):
        edit_file(path, edit)
    return tmp_path, edit


def logs_of(folder: Path) -> list[Path]:
    return [*folder.glob("inspect/*.eval"), *folder.glob("lighteval/results/*/results_*.json")]


def log_of(folder: Path, engine: str, task: str) -> Path:
    found = [path for path in logs_of(folder) if path.is_relative_to(folder / engine)]
    return next(path for path in found if f'"key": "{task}"' in text_of(path))


def text_of(path: Path) -> str:
    if not zipfile.is_zipfile(path):
        return path.read_text()
    with zipfile.ZipFile(path) as archive:
        return archive.read("header.json").decode()


def snippet_fields() -> Iterator[str]:
    """Return every field of the specification that contains code."""
    todo: list[Any] = [kind.spec for kind in KINDS.values()]
    seen: set[Any] = set()
    while todo:
        kind = todo.pop()
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if kind not in seen:
                seen.add(kind)
                yield from (name for name in kind.model_fields if name.endswith("_snippet"))
                todo += [entry.annotation for entry in kind.model_fields.values()]
        elif isinstance(kind, OneOf):
            todo += kind.types.values()
        else:
            todo += get_args(kind)


def clean(watch: Watch, traces: Path) -> None:
    assert watch.strangers() == []
    assert list(traces.iterdir()) == []


@pytest.mark.parametrize("hostile", ["careful"], indirect=True)
def test_every_code_field_is_in_the_edited_files(hostile: tuple[Path, Edit]) -> None:
    """A new code field must be added to these tests."""
    _, edit = hostile
    for document in STRANGERS_FILES.values():
        edit(document)

    assert edit.places == set(snippet_fields())


def test_every_verb_is_tested() -> None:
    # `view` is a server; what it reads, `report` reads; so is `lsp`, which reads what `validate` and `explain` read. `parity` runs a task as `run` does; its file has no place for code. `lake` reads Parquet, and numbers and names in JSON.
    without_files = {"schema", "error", "doctor", "list", "init", "new", "view", "lsp", "parity", "lake"}
    assert {*READING_A_LOG, *READING_A_RESULT, *ON_FILES, *RUNNING, *MERGING} | without_files >= set(VERBS)


Arguments = Callable[[str], list[list[str]]]

READING_A_LOG: dict[str, Arguments] = {
    "import": lambda log: [
        ["import", log, "-o", "i"],
        ["import", log, "-o", "p", "--format", "parquet"],
        ["import", log, "-o", "n", "--no-redact", "--events", "all"],
        ["import", log, "-o", "r", "--recompute", "quiz.yaml"],
        ["import", log, "--lake", "lake"],
    ],
    "validate": lambda log: [["validate", log]],
    "explain": lambda log: [["explain", log]],
    "export": lambda log: [["export", log, "--to", "inspect", "-o", "e"]],
    "convert": lambda log: [["convert", log, "-o", "c"]],
    "generate": lambda log: [["generate", log, "-o", "g.jsonl"]],
    "upgrade": lambda log: [["upgrade", log]],
    "run": lambda log: [["run", log, "--model", "scripted/m.jsonl"]],
    "score": lambda log: [["score", log, log]],
}


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_reading_a_log_runs_nothing(
    aigo: Run, hostile: tuple[Path, Edit], watch: Watch, engine: str, request: pytest.FixtureRequest
) -> None:
    folder, edit = hostile
    careful = request.node.callspec.params["hostile"] == "careful"
    for task in ("quiz", "data", "system"):
        log = str(log_of(folder, engine, task).relative_to(folder))
        for commands in READING_A_LOG.values():
            for command in commands(log):
                aigo(*command)
        clean(watch, edit.traces)
        done = aigo("import", log, "-o", "again", "--json")
        (report,) = done.json
        # It is still an own log: only an inconsistent plan is an error.
        assert (done.code, bool(report["unreadable"])) == ((0, False) if careful else (3, True)), report
        assert "recomputed" in report
    assert not any(OWN in source for source in watch.sources)


PLAIN_TASK = """
key: plain
display_name: Plain
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers: [{type: string_equals, ground_truth: "{{ sample.a }}"}]
"""

MERGING: dict[str, Arguments] = {
    "merge": lambda shards: [
        ["merge", shards, "-o", "m"],
        ["merge", shards, "-o", "m", "--partial"],
        ["merge", shards, "-o", "m", "--task", "quiz.yaml"],
    ],
}


@pytest.mark.parametrize("task", ["quiz", "plain"])
def test_merging_shards_runs_no_code_of_the_shards(
    aigo: Run, watch: Watch, tmp_path: Path, task: str
) -> None:
    """The foreign shards have consistent logs, manifests and digests."""
    write_own(tmp_path)
    (tmp_path / "plain.yaml").write_text(PLAIN_TASK)
    (tmp_path / "traces").mkdir()
    edit = Edit(tmp_path / "traces")
    for number in ("1/2", "2/2"):
        shard = ["--shard", number, "-o", "shards"]
        assert aigo("run", f"{task}.yaml", "--model", "scripted/m.jsonl", *shard).code in (0, 1)
    for log in tmp_path.glob("shards/*/*.eval"):
        edit_file(log, lambda value: plans_changed(edit(value), with_own_digest))
        path = log.with_name("shard.json")
        manifest = json.loads(path.read_text())
        with open_log(log) as opened:
            manifest["jobs"][0]["digest"] = opened.header["eval"]["metadata"]["aigo_bridge"]["digest"]
        manifest["files"] = digests_in(log.parent)
        path.write_text(json.dumps(manifest))
    watch.sources.clear()
    watch.templates.clear()
    codes = [aigo(*command).code for command in MERGING["merge"]("shards")]
    # The numbers of one need code; and the own task is not that of the shards.
    assert codes == ([2, 2, 2] if task == "quiz" else [0, 0, 2])
    clean(watch, edit.traces)
    assert not any(OWN in source for source in watch.sources)


def copied(result: str) -> str:
    """Copy a result with another name."""
    path = Path(result)
    return str(shutil.copy(result, path.with_name(f"base-{path.name}")))


READING_A_RESULT: dict[str, Arguments] = {
    "import": lambda result: [["import", result, "-o", "p", "--format", "parquet"]],
    "validate": lambda result: [["validate", result]],
    "explain": lambda result: [["explain", result], ["explain", "again.yaml", "--dataset", f"quiz={result}"]],
    "export": lambda result: [
        ["export", result, "--to", "inspect-log", "-o", "e"],
        ["import", "e", "-o", "back"],
        ["validate", "e"],
    ],
    "convert": lambda result: [["convert", result, "-o", "c"]],
    "report": lambda result: [["report", result]],
    "stats": lambda result: [["stats", result]],
    "compare": lambda result: [["compare", copied(result), result]],
    "check": lambda result: [
        ["check", result, "--baseline", copied(result), "--rule", "no regression beyond 0.1"]
    ],
    "power": lambda result: [["power", result]],
    "table": lambda result: [["table", result, "-o", f"t{kind}"] for kind in (".csv", ".xlsx", ".parquet")],
    "plot": lambda result: [
        ["plot", result, "-o", "p.svg", "--chart", name] for name in ("metrics", "scores")
    ],
    "sql": lambda result: [["sql", "select * from trials, scores, events", result]],
    "show": lambda result: [["show", result], ["show", result, "--worst", "1"], ["show", result, "--failed"]],
    "upgrade": lambda result: [["upgrade", result]],
    "verify": lambda result: [
        ["verify", result],
        *(["verify", result, "--log", str(log)] for log in Path("inspect").glob("*.eval")),
    ],
    "attest": lambda result: [["attest", result, "--new-key", f"{Path(result).stem}.pem"]],
    "bundle": lambda result: [["bundle", result, "-o", "b.zip"], ["verify", "b.zip"]],
    "run": lambda result: [["run", "again.yaml", "--dataset", f"quiz={result}", "-o", "a"]],
}


@pytest.mark.parametrize("hostile", ["careful"], indirect=True)
def test_reading_a_result_runs_nothing(aigo: Run, hostile: tuple[Path, Edit], watch: Watch) -> None:
    _, edit = hostile
    for task in ("quiz", "data", "system"):
        for commands in READING_A_RESULT.values():
            for command in commands(f"inspect/{task}.tasklog.json"):
                aigo(*command)
    clean(watch, edit.traces)
    assert not any(OWN in source for source in watch.sources)


RUN_FILE = """
models: [{$provider: scripted/m.jsonl}]
tasks: [{$ref: quiz.yaml}]
evaluation:
  key: e
  display_name: E
  description: ""
  task_specifications:
    - {task_key: quiz, model_key: "scripted$m-jsonl"}
    - {key: stored, task_key: quiz, task_result_log_path: inspect/quiz.tasklog.json}
"""

RUNNING: dict[str, Arguments] = {
    "score": lambda engine: [
        ["score", "quiz.yaml", f"{engine}/quiz.tasklog.json", "--engine", engine, "-o", "s"]
    ],
    "verify": lambda engine: [
        ["verify", f"{engine}/quiz.tasklog.json", "--task", "quiz.yaml", "--rerun-scorers"]
    ],
    "probe": lambda engine: [["probe", "quiz.yaml", f"{engine}/quiz.tasklog.json", "-o", "q.probe.json"]],
    "run": lambda engine: [
        ["run", "quiz.yaml", "--model", "scripted/m.jsonl", "--engine", engine, "-o", engine, *more]
        for more in (["--resume"], ["--cache", "reuse"])
    ],
}


@pytest.mark.parametrize("hostile", ["careful"], indirect=True)
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_running_your_task_next_to_a_foreign_log_runs_only_your_code(
    aigo: Run, hostile: tuple[Path, Edit], watch: Watch, engine: str
) -> None:
    folder, edit = hostile
    own = log_of(folder, engine, "quiz")
    for commands in RUNNING.values():
        for command in commands(engine):
            watch.sources.clear()
            done = aigo(*command)
            assert any(OWN in source for source in watch.sources), done.out + done.err
            clean(watch, edit.traces)
    aigo("score", "quiz.yaml", own, "--engine", engine, "-o", "t")
    (folder / "run.yaml").write_text(RUN_FILE)
    aigo("run", "run.yaml", "--engine", engine, "-o", engine, "--cache", "reuse")
    clean(watch, edit.traces)


@pytest.mark.parametrize("hostile", ["careless"], indirect=True)
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_an_edited_plan_with_your_digest_is_not_resumed(
    aigo: Run, hostile: tuple[Path, Edit], watch: Watch, engine: str
) -> None:
    _, edit = hostile

    done = aigo(
        "run", "quiz.yaml", "--model", "scripted/m.jsonl", "--engine", engine, "-o", engine, "--resume"
    )

    assert "nothing to resume" in done.err
    assert done.code == 0
    clean(watch, edit.traces)


ON_FILES: dict[str, Arguments] = {
    "validate": lambda file: [["validate", file]],
    "explain": lambda file: [["explain", file]],
    "export": lambda file: [
        ["export", file, "--to", engine, "-o", engine] for engine in ("inspect", "lighteval")
    ],
    "convert": lambda file: [["convert", file, "-o", "c"]],
    "upgrade": lambda file: [["upgrade", file]],
    "import": lambda file: [["import", file]],
}


def test_reading_a_foreign_task_runs_nothing(aigo: Run, watch: Watch, tmp_path: Path) -> None:
    """`explain` renders its templates; its code runs only with `run` and `generate`."""
    edit = Edit(tmp_path / "traces")
    edit.traces.mkdir()
    write_own(tmp_path)
    files = {f"{key}.yaml": yaml.safe_load(text) for key, text in TASKS.items()} | STRANGERS_FILES
    for name, document in files.items():
        (tmp_path / name).write_text(yaml.safe_dump(replaced(document, edit)))
    (tmp_path / "made.yaml").write_text(GENERATED)
    (tmp_path / "run.yaml").write_text(RUN_FILE.replace("    - {key: stored", "#"))
    for name in (*files, "made.yaml", "run.yaml"):
        for commands in ON_FILES.values():
            for command in commands(name):
                aigo(*command)
    assert watch.sources == []
    assert list(edit.traces.iterdir()) == []


def replaced(value: Any, edit: Edit) -> Any:
    """Return a document with its code replaced and its templates unchanged."""
    if isinstance(value, Mapping):
        return {
            name: CODE.format(trace=str(edit.traces / name))
            if name.endswith("_snippet")
            else replaced(part, edit)
            for name, part in value.items()
        }
    return [replaced(part, edit) for part in value] if isinstance(value, list) else value
