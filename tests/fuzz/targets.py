"""Fuzz targets: one function for each kind of untrusted input.

A target takes any bytes. It may only raise `BridgeError`, which is caught here, and returns a short description of the
outcome. Inputs with a new outcome are stored and mutated further.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import io
import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from tests.fuzz import hostile_files

from aigo_bridge.errors import BridgeError

REPOSITORY = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
CRASHES = Path(__file__).parent / "crashes"
_GOLDEN = REPOSITORY / "tests" / "golden"
_DETAILS = re.compile(r"[\d'\"`].*")


@dataclass(frozen=True)
class Target:
    """Kind of input."""

    name: str
    run: Callable[[bytes, Path], str]
    """Takes the input and an empty folder; says what came of it."""
    words: tuple[bytes, ...]
    """What such inputs are made of."""
    found: Callable[[], list[bytes]] = list
    """Seeds from elsewhere in the repository, beside those in `corpus/`."""
    cpu_seconds: float = 10.0
    """Processor time that an input may take."""

    def kept(self) -> list[Path]:
        """Return the small inputs that every test run tries: seeds and former crashes."""
        return [path for folder in (CORPUS, CRASHES) for path in sorted((folder / self.name).glob("*"))]

    def seeds(self) -> list[bytes]:
        """Return the initial inputs: stored inputs and files of the repository."""
        return [path.read_bytes() for path in self.kept()] + self.found()

    def check(self, data: bytes, folder: Path) -> str:
        """Return the outcome of an input. A `BridgeError` is a valid outcome."""
        try:
            return self.run(data, folder)
        except BridgeError as error:
            return f"{type(error).__name__}: {_DETAILS.sub('', str(error))[:60]}"


def _yaml(data: bytes, folder: Path) -> str:
    from aigo_bridge.evaluation.validation import validate

    path = folder / "task.yaml"
    path.write_bytes(data)
    (report,) = validate([path])
    return ", ".join(sorted({_DETAILS.sub("", issue.message)[:40] for issue in report.issues})[:6])


def _templates(data: bytes, folder: Path) -> str:
    from aigo_bridge.templates import SampleTemplate

    row = {"question": "What?", "choices": ["a", "b"], "n": 3, "text": "lorem " * 2_000, "map": {"x": None}}
    source = data.decode("utf-8", "replace")
    template = SampleTemplate(source)
    template.render(sample=row)
    template.evaluate(sample=row)
    template.exists(sample=row)
    return "rendered" if "{" in source else "text"


def _jsonl(data: bytes, folder: Path) -> str:
    from aigo_bridge.jsonl_spec import load_tasks, to_aigo, validate_file

    path = folder / "tasks.jsonl"
    path.write_bytes(data)
    tasks, problems = validate_file(path)
    if tasks:
        to_aigo(load_tasks(path, allow_bad_tasks=True))
    return f"{len(tasks)} tasks, " + ", ".join(
        sorted({_DETAILS.sub("", str(each))[:40] for each in problems})[:4]
    )


def _results(data: bytes, folder: Path) -> str:
    from aigo_bridge.results.reading import read_log
    from aigo_bridge.results.validating import validate_log

    path = folder / "x.tasklog.json"
    path.write_bytes(data)
    problems = validate_log(path)
    read_log(path).load()
    return f"{len(problems)} problems"


def _logs(data: bytes, folder: Path) -> str:
    from aigo_inspect.importing.importing import import_file

    path = folder / ("x.eval" if data[:2] == b"PK" else "x.json")
    path.write_bytes(data)
    result = import_file(path, folder / "result")
    return f"{result.exit_code} {result.samples} {_DETAILS.sub('', str(result.reason))[:40]}"


@functools.cache
def _lighteval_files() -> dict[str, bytes]:
    with zipfile.ZipFile(_GOLDEN / "lighteval" / "0.13.0.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def _details(data: bytes, folder: Path) -> str:
    """Read a lighteval results file, or its details if the input starts with `PAR1`."""
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport
    from aigo_lighteval.importing.importing import run_import

    replaced = ".parquet" if data[:4] == b"PAR1" else ".json"
    for name, content in _lighteval_files().items():
        path = folder / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if name.endswith(replaced) else content)
    reports: list[ImportReport] = []
    code = run_import([str(folder / "run")], folder / "out", ImportOptions(), reports.append)
    return f"{code} {len(reports)}"


def _replies(data: bytes, folder: Path) -> str:
    from aigo_bridge.models.connections.adapters import SHIPPED
    from aigo_bridge.models.connections.calls import ModelInfo
    from aigo_bridge.models.connections.replies import parse_reply
    from aigo_bridge.models.connections.streaming import is_cut_off, stream_error, stream_of

    text = data.decode("utf-8", "replace")
    outcomes = []
    if (stream := stream_of(text)) is not None:
        outcomes.append(f"{stream_error(stream) is None} {is_cut_off(stream)}")
    for adapter in SHIPPED.values():
        for status in (200, 500):
            try:
                reply = parse_reply(
                    adapter.answer(text, status, ModelInfo("chat_completion", "m")), "chat_completion"
                )
                outcomes.append(f"{len(reply.choices)} choices")
            except BridgeError as error:
                outcomes.append(_DETAILS.sub("", str(error))[:40])
    return "; ".join(outcomes)


_FORGERY = """
import os
def forge(data):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, bytes.fromhex(data))
        except OSError:
            pass
    return 1
"""


@functools.cache
def _host() -> object:
    from aigo_bridge.snippets import SnippetHost, SnippetLimits

    return SnippetHost(SnippetLimits(seconds=0.5))


def _worker(data: bytes, folder: Path) -> str:
    """Run a snippet that writes the input to all open files of its process, including its answers."""
    from aigo_bridge.snippets import Snippet, SnippetHost

    host = _host()
    assert isinstance(host, SnippetHost)
    outcomes = []
    ways: tuple[dict[str, Callable[..., Awaitable[Any]]] | None, ...] = (None, {})
    for callbacks in ways:
        try:
            value = asyncio.run(
                host.call(Snippet(_FORGERY, "forge", "fuzz"), data.hex(), callbacks=callbacks)
            )
            outcomes.append(f"gave {value!r}"[:20])
        except BridgeError as error:
            outcomes.append(_DETAILS.sub("", str(error))[:40])
    return "; ".join(outcomes)


def _foreign_tasks(data: bytes, folder: Path) -> str:
    """Convert an lm-evaluation-harness task and read the result."""
    from aigo_bridge.jsonl_spec.conversion import task_yaml
    from aigo_bridge.reading import read
    from aigo_bridge.spec.task import TaskSpec
    from aigo_formats.lm_eval.tasks.files import converted_tasks

    path = folder / "task.yaml"
    path.write_bytes(data)
    (folder / "_shared.yaml").write_text("doc_to_text: '{{question}}'\ninclude: task.yaml\n")
    tasks = converted_tasks(path, allow=True)
    for task in tasks:
        (folder / "converted.yaml").write_text(task_yaml(task.task))
        assert not read(TaskSpec, folder / "converted.yaml").issues
    return f"{len(tasks)} " + ", ".join(
        sorted({_DETAILS.sub("", issue.message)[:40] for task in tasks for issue in task.issues})[:4]
    )


def _hub_tasks(data: bytes, folder: Path) -> str:
    """Convert an `eval.yaml` and read the result."""
    from aigo_bridge.jsonl_spec.conversion import task_yaml
    from aigo_bridge.reading import read
    from aigo_bridge.spec.task import TaskSpec
    from aigo_formats.inspect_hub.files import converted_tasks

    (folder / "eval.yaml").write_bytes(data)
    (folder / "README.md").write_bytes(b"---\n" + data + b"\n---\n")
    (folder / "test.jsonl").write_text("{}\n")
    tasks = converted_tasks(folder, allow=True)
    for task in tasks:
        (folder / "converted.yaml").write_text(task_yaml(task.task))
        assert not read(TaskSpec, folder / "converted.yaml").issues
    return f"{len(tasks)} " + ", ".join(
        sorted({_DETAILS.sub("", issue.message)[:40] for task in tasks for issue in task.issues})[:4]
    )


def _records(data: bytes, folder: Path) -> str:
    """Import an Every Eval Ever record, or its instances if the input starts differently."""
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport
    from aigo_formats.every_eval_ever.importing import EveryEvalEver

    golden = sorted((_GOLDEN / "every_eval_ever" / "records" / "two-metrics").iterdir())
    ending = (
        ".json"
        if data[:1] == b"{" and b'"schema_version"' in data[:200] and b'"sample_id"' not in data
        else ".jsonl"
    )
    for path in golden:
        (folder / path.name).write_bytes(data if path.suffix == ending else path.read_bytes())
    reports: list[ImportReport] = []
    code = EveryEvalEver().import_logs([str(folder)], folder / "out", ImportOptions(), reports.append)
    return f"{code} {len(reports)}"


def _lm_eval(data: bytes, folder: Path) -> str:
    """Import an lm-evaluation-harness results file, or its samples if the input starts differently."""
    from tests.extras.formats.lm_eval.results import DATE, imported

    results = {
        "results": {"quiz": {"acc,none": 1.0}},
        "configs": {"quiz": {}},
        "n-samples": {"quiz": {"original": 1}},
    }
    sample = {
        "doc_id": 0,
        "doc": {"q": "?"},
        "target": "a",
        "arguments": [["?", {}]],
        "resps": [["a"]],
        "acc": 1.0,
    }
    are_results = b'"results"' in data or data[:1] == b"["
    run = folder / "run"
    run.mkdir()
    (run / f"results_{DATE}.json").write_bytes(data if are_results else json.dumps(results).encode())
    (run / f"samples_quiz_{DATE}.jsonl").write_bytes(json.dumps(sample).encode() if are_results else data)
    code, reports = imported(run, folder / "out")
    return f"{code} {len(reports)}"


def _traces(data: bytes, folder: Path) -> str:
    """Read a file of recorded traces with each source."""
    from aigo_formats.traces.sources import SOURCES, read_traces

    path = folder / ("x.jsonl" if b"\n{" in data else "x.json")
    path.write_bytes(data)
    outcomes = []
    for name in SOURCES:
        try:
            outcomes.append(f"{name} {len(list(read_traces(path, name)))}")
        except BridgeError as error:
            outcomes.append(_DETAILS.sub("", str(error))[:30])
    return "; ".join(outcomes)


@functools.cache
def _lake() -> Path:
    """Return a small lake to copy."""
    from tests.support.lakes import imported, make_log

    folder = Path(tempfile.mkdtemp(prefix="aigo-fuzz-lake-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    imported(folder / "lake", make_log(folder / "logs" / "a.eval", run="a"))
    return folder / "lake"


def _lakes(data: bytes, folder: Path) -> str:
    """Read a table commit, a data file (`PAR1`) or the results of a log (`[`)."""
    import pyarrow as pa  # type: ignore[import-untyped]  # has no types
    from deltalake import DeltaTable, write_deltalake

    from aigo_scale.lake import compacting
    from aigo_scale.lake.reading import LakeReader
    from aigo_scale.lake.tables import arrow_schema, open_lake
    from aigo_scale.lake.verifying import problems_of

    lake, keep = folder / "lake", folder / "keepme.parquet"
    shutil.copytree(_lake(), lake)
    keep.write_bytes(b"PAR1 of somebody else PAR1")
    if data[:4] == b"PAR1":
        next((lake / "scores").glob("*.parquet")).write_bytes(data)
    elif data[:1] == b"[":
        logs = DeltaTable(str(lake / "logs"))
        rows = [
            row | {"results": data.decode("utf-8", "replace")} for row in logs.to_pyarrow_table().to_pylist()
        ]
        write_deltalake(logs, pa.Table.from_pylist(rows, schema=arrow_schema("logs")), mode="overwrite")
    else:
        (lake / "scores" / "_delta_log" / f"{2:020d}.json").write_bytes(data)
    outcomes = []
    with mock.patch.object(compacting, "KEEP_HOURS", 0):
        verbs: tuple[Callable[[], int], ...] = (
            lambda: len(list(problems_of(open_lake(lake)))),
            lambda: compacting.compact(open_lake(lake)).after,
            lambda: len(LakeReader(lake).write_logs(folder)),
        )
        for verb in verbs:
            try:
                outcomes.append(str(verb()))
            except BridgeError as error:
                outcomes.append(_DETAILS.sub("", str(error).rpartition(": ")[2])[:40])
    assert keep.read_bytes() == b"PAR1 of somebody else PAR1"
    assert {path.name for path in folder.iterdir()} <= {"lake", "keepme.parquet", "sums.tasklog.json"}
    return "; ".join(outcomes)


def _lake_files() -> list[bytes]:
    """Return commits, data files and results of a real lake."""
    from deltalake import DeltaTable

    lake = _lake()
    commits = [path.read_bytes() for path in sorted((lake / "scores" / "_delta_log").glob("*.json"))]
    files = [path.read_bytes() for path in sorted((lake / "scores").glob("*.parquet"))]
    rows = DeltaTable(str(lake / "logs")).to_pyarrow_table().column("results").to_pylist()
    return [*commits, *files, *(row.encode() for row in rows)]


def _files(*patterns: str) -> Callable[[], list[bytes]]:
    return lambda: [
        path.read_bytes()
        for pattern in patterns
        for path in sorted(REPOSITORY.glob(pattern))
        if path.is_file()
    ]


def _record_files() -> list[bytes]:
    return [path.read_bytes()[:20_000] for path in sorted(REPOSITORY.glob("examples/**/*.jsonl"))]


def _details_files() -> list[bytes]:
    return [content for name, content in _lighteval_files().items() if name.endswith((".json", ".parquet"))]


def _stored(data: dict[str, object]) -> bytes:
    """Return an uncompressed Inspect log, in which a changed byte changes the content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in data.items():
            archive.writestr(name, json.dumps(content))
    return buffer.getvalue()


def _log_files() -> list[bytes]:
    small = _stored(
        {
            "header.json": {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}},
            "samples/1_epoch_1.json": {
                "id": 1,
                "epoch": 1,
                "input": "q",
                "target": "a",
                "scores": {"s": {"value": 1}},
            },
        }
    )
    return [small, *_files("tests/golden/inspect/*")()]


_LONG_NAME = b"n" * 300
"""No name of a file."""
_JSON = tuple(
    b'{ } [ ] [[[[ {"": , : null true false NaN Infinity -1 1e999 0.1 99999999999999999999 "" "\\u0000" "\\ud800"'.split()
)

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target(
            "yaml",
            _yaml,
            (
                _LONG_NAME,
                *b"- : ? | > & * ! !!int !!python/object: << .inf .nan 1:59:59 ~ --- ... {{ }} << config.x >> [[[[ {{{{ \n  \t".split(
                    b" "
                ),
            ),
            _files("tasks/aigo_tasks/*/*.yaml", "examples/**/*.yaml"),
        ),
        Target(
            "templates",
            _templates,
            tuple(
                b"{{ }} {% %} {# #} {%- -%} for in if else elif endif endfor set macro endmacro call filter raw endraw sample .text .n [0] "
                b"[::-1] | |upper |tojson |list |join |map( |round( |int(base=16) |title |unique |sort |replace( // % ** ~ * - + == in is not "
                b"( ) , 'a' 9**9 0xffff 1e400 range( loop.index sample.text.split( namespace( recursive break continue defined".split()
            ),
            _files("tasks/aigo_tasks/*/*.jinja*", "tasks/aigo_tasks/*/*.md"),
        ),
        Target(
            "jsonl",
            _jsonl,
            (*_JSON, _LONG_NAME, b"\n", b"\r", b"id", b"metric", b"prompt", b"target"),
            _record_files,
        ),
        Target("results", _results, (*_JSON, b"evidence", b"samples", b"metrics", b"format_version"), list),
        Target(
            "logs",
            _logs,
            (*_JSON, b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"events", b"scores", b"samples/"),
            _log_files,
        ),
        Target(
            "details", _details, (*_JSON, b"PAR1", b"results", b"config_general", b"versions"), _details_files
        ),
        Target(
            "replies",
            _replies,
            (*_JSON, b"data: ", b"\n\n", b"[DONE]", b"choices", b"delta", b"event: ", b"usage"),
        ),
        Target(
            "recordings",
            hostile_files.recording,
            (
                *_JSON,
                b"\n*\n",
                b"#",
                b'{"call":{"task":"t"}}',
                b'{"run":',
                b'{"end":{}}',
                b"\n\n",
                b"\x28\xb5\x2f\xfd",
            ),
        ),
        Target(
            "bundles",
            hostile_files.bundle,
            (
                *(
                    b"\n+",
                    b"*=",
                    b"../",
                    b"/",
                    b"\\",
                    b"C:",
                    b"result/",
                    b"task/manifest.json=",
                    b"bundle.json=",
                ),
                *(b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x00", b"x" * 300),
            ),
        ),
        Target(
            "include-paths",
            hostile_files.paths,
            (
                *(
                    b"../",
                    b"./",
                    b"//",
                    b".env",
                    b".git/config",
                    b"server.pem",
                    b"ignored.txt",
                    b"ignored/config",
                    b"link",
                ),
                *(
                    b"up/",
                    b"ROOT/",
                    b"tasks/",
                    b".hidden/",
                    b".rows.jsonl",
                    b"ignored.jsonl",
                    b"~",
                    b"\x00",
                    b"file://",
                ),
                *(b"\n", b"*", b"?", b"..\\", b"%2e", b"\xe2\x80\xae", b"a/" * 50, _LONG_NAME),
            ),
        ),
        Target(
            "lm-eval-tasks",
            _foreign_tasks,
            tuple(
                b"task: doc_to_text: doc_to_target: doc_to_choice: !function a.b include: _shared.yaml output_type: multiple_choice "
                b"{{ }} {% %} {{question}} filter_list: metric_list: - { } [ ] & * << : ~ .inf 2001-99-99 num_fewshot: fewshot_config: "
                b"samples: first_n generation_kwargs: until: group: tag: 'x' 0x1 1e999 \n \t".split(b" ")
            ),
            _files("tests/golden/lm_eval_tasks/tasks/*.yaml"),
        ),
        Target(
            "inspect-hub",
            _hub_tasks,
            tuple(
                b"tasks: id: config: split: test field_spec: input: target: choices: metadata: literal: solvers: scorers: name: args: template: "
                b"multiple_choice prompt_template generate choice match pattern epochs: epoch_reducer: pass_at_1 configs: data_files: path: "
                b"{prompt} {question} {choices} {{ }} {% %} { } [ ] & * << : ~ - 'x' 0x1 1e999 \n \t".split(
                    b" "
                )
            ),
            _files("tests/golden/inspect_hub/files/*.yaml", "tests/golden/inspect_hub/data_sets/*/eval.yaml"),
        ),
        Target(
            "every-eval-ever",
            _records,
            (*_JSON, b"schema_version", b"evaluation_results", b"score", b"messages", b"sample_id", b"\n"),
            _files("tests/golden/every_eval_ever/records/*/*.json*"),
        ),
        Target(
            "lm-eval", _lm_eval, (*_JSON, b"results", b"resps", b"doc_id", b"acc,none", b"configs", b"\n")
        ),
        Target(
            "traces",
            _traces,
            (
                *_JSON,
                b"sessionId",
                b"resourceSpans",
                b"trace_id",
                b"span_id",
                b"parent",
                b"attributes",
                b"\n",
            ),
            _files("tests/golden/traces/*/*/files/*.json*"),
        ),
        Target(
            "lakes",
            _lakes,
            (
                *_JSON,
                *b"PAR1 add remove metaData protocol txn path ../ ../../keepme.parquet %2e%2e/ /etc/passwd file:/// stats".split(),
                *b"partitionValues deletionVector size numRecords minValues schemaString appId version key files parts".split(),
            ),
            _lake_files,
        ),
        Target("worker", _worker, (*_JSON, b"\n", b"id", b"value", b"error", b"stdout", b"call", b"reply")),
    )
}
