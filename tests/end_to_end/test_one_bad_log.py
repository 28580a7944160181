"""A bad log is reported and does not affect the import of other logs."""

from __future__ import annotations

import copy
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run
from typer.testing import CliRunner

from aigo_bridge.cli import app

Json = Any
Change = Callable[[Json], None]

TASK = """key: quiz
display_name: Quiz
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "yes"}
"""


def nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def at(*path: str | int, put: Json) -> Change:
    """Change one value."""

    def change(document: Json) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = put

    return change


PLAN = ("eval", "metadata", "aigo_bridge")
ODD: list[Json] = [-1, "x", [], [1], {}, None, True, 1e308, nested(300), nested(900)]
HEADER = [
    at(*path, put=value)
    for value in ODD
    for path in (
        *((name,) for name in ("eval", "stats", "results", "plan", "status", "error")),
        *(("eval", name) for name in ("metadata", "dataset", "config", "model_roles", "task_args")),
        *(
            (*PLAN, name)
            for name in ("task", "config", "dataset", "outline", "digest", "specification", "format")
        ),
        *((*PLAN, "task", name) for name in ("definition", "key", "tags", "config_spec")),
        *((*PLAN, "outline", name) for name in ("scorers", "aggregators", "rules", "entity")),
        (*PLAN, "outline", "scorers", 0, "metrics"),
        ("stats", "model_usage"),
    )
]
SAMPLE = [
    at(*path, put=value)
    for value in ODD
    for path in (
        *(
            (name,)
            for name in ("scores", "metadata", "output", "events", "messages", "error", "store", "limit")
        ),
        ("scores", "string_equals"),
        *(("scores", "string_equals", name) for name in ("value", "metadata")),
        ("output", "metadata"),
        ("events", 0),
        ("metadata", "q"),
    )
]
RESULTS = [
    at(*path, put=value)
    for value in ODD
    for path in (
        *(
            (name,)
            for name in (
                "config_general",
                "results",
                "config_tasks",
                "versions",
                "summary_tasks",
                "aigo_bridge",
            )
        ),
        ("config_general", "model_config"),
        *(
            ("aigo_bridge", name)
            for name in ("plan", "models", "started_at", "details", "numbers", "model_usage")
        ),
        *(("aigo_bridge", "plan", name) for name in ("task", "outline", "config", "dataset")),
    )
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Task that was run on both engines."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "quiz.yaml").write_text(TASK)
    (folder / "rows.jsonl").write_text('{"q": "one"}\n{"q": "two"}\n')
    (folder / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for engine in ("inspect", "lighteval"):
            command = ["run", "quiz.yaml", "--model", "scripted/m.jsonl", "--engine", engine, "-o", engine]
            assert CliRunner().invoke(app, command).exit_code == 0
    return folder


def write_edited(log: Path, target: Path, member: str, change: Change) -> None:
    """Write a copy of an archive with one changed document."""
    with zipfile.ZipFile(log) as archive:
        data = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(data[member])
    change(document)
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in data.items():
            archive.writestr(name, json.dumps(document) if name == member else text)


def folders(changes: list[Change]) -> Iterator[tuple[str, Change]]:
    for number, change in enumerate(changes):
        yield f"bad{number:03}", change


@pytest.mark.parametrize(("member", "changes"), [("header.json", HEADER), ("samples/0_epoch_1.json", SAMPLE)])
@pytest.mark.parametrize("own", [True, False])
def test_bad_inspect_log_does_not_affect_others(
    aigo: Run, ran: Path, tmp_path: Path, member: str, changes: list[Change], *, own: bool
) -> None:
    (log,) = ran.glob("inspect/*.eval")
    source = tmp_path / "source.eval"
    shutil.copy(log, source)
    if not own:
        write_edited(log, source, "header.json", lambda header: header["eval"]["metadata"].update(stranger=1))
        rename_plan(source)
        changes = [change for change in changes if applies(change, source, member)]
    (tmp_path / "logs").mkdir()
    for name, change in folders(changes):
        write_edited(source, tmp_path / f"logs/{name}.eval", member, change)
    shutil.copy(source, tmp_path / "logs/good.eval")
    aigo("import", source, "-o", "alone")

    done = aigo("import", "logs", "-o", "together", "--json", "--jobs", "1")

    assert done.code == 3 or not own  # odd values in foreign samples are kept unchanged
    reports = {Path(report["log"]).stem: report for report in done.json}
    assert reports.keys() == {"good", *(name for name, _ in folders(changes))}
    assert all(report["output"] or report["reason"] for report in reports.values())
    good, alone = (
        (tmp_path / path).read_bytes() for path in ("together/good.tasklog.json", "alone/source.tasklog.json")
    )
    assert good.replace(b"good.eval", b"source.eval").replace(b"logs/", b"") == alone.replace(
        bytes(tmp_path) + b"/", b""
    )


def rename_plan(log: Path) -> None:
    """Turn an own log into a foreign log."""

    def rename(header: Json) -> None:
        header["eval"]["metadata"]["other"] = header["eval"]["metadata"].pop("aigo_bridge")

    write_edited(log, log, "header.json", rename)


def applies(change: Change, log: Path, member: str) -> bool:
    with zipfile.ZipFile(log) as archive:
        document = json.loads(archive.read(member))
    try:
        change(document)
    except (KeyError, IndexError, TypeError):
        return False
    return True


def test_bad_lighteval_result_does_not_affect_others(aigo: Run, ran: Path, tmp_path: Path) -> None:
    (results,) = ran.glob("lighteval/results/*/*.json")
    document = json.loads(results.read_text())
    for name, change in folders(RESULTS):
        shutil.copytree(ran / "lighteval", tmp_path / "logs" / name)
        edited = copy.deepcopy(document)
        change(edited)
        (tmp_path / "logs" / name / results.relative_to(ran / "lighteval")).write_text(json.dumps(edited))
    shutil.copytree(ran / "lighteval", tmp_path / "logs" / "good")

    done = aigo("import", "logs", "-o", "together", "--json", "--engine", "lighteval")

    assert done.code == 3
    assert len(done.json) >= len(RESULTS) + 1
    (good,) = (report for report in done.json if "/good/" in report["log"])
    assert Path(good["output"]).read_bytes() == (ran / "lighteval/quiz.tasklog.json").read_bytes()


def test_bad_result_does_not_affect_tables_of_others(aigo: Run, ran: Path, tmp_path: Path) -> None:
    result = json.loads((ran / "inspect/quiz.tasklog.json").read_text())
    (tmp_path / "results").mkdir()
    paths: tuple[tuple[str | int, ...], ...] = (
        ("evidence", "samples", 0),
        ("evidence", "metrics"),
        ("specification", "config"),
        ("execution",),
    )
    names = []
    for number, (value, path) in enumerate((value, path) for value in ODD for path in paths):
        edited = copy.deepcopy(result)
        at(*path, put=value)(edited)
        names.append(f"results/bad{number:03}.tasklog.json")
        (tmp_path / names[-1]).write_text(json.dumps(edited))
    shutil.copy(ran / "inspect/quiz.tasklog.json", tmp_path / "results/good.tasklog.json")

    done = aigo(
        "import", *names, "results/good.tasklog.json", "-o", "tables", "--format", "parquet", "--json"
    )

    assert done.code == 3
    assert [Path(report["log"]).name for report in done.json][-1] == "good.tasklog.json"
    assert len(done.json) == len(names) + 1
    assert done.json[-1]["samples"] == 2


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_bad_logs_in_the_output_folder_do_not_stop_a_run(
    aigo: Run, ran: Path, tmp_path: Path, engine: str
) -> None:
    """The search for earlier runs skips them."""
    for name in ("quiz.yaml", "rows.jsonl", "m.jsonl"):
        shutil.copy(ran / name, tmp_path)
    shutil.copytree(ran / engine, tmp_path / "out")
    (log,) = [*tmp_path.glob("out/*.eval"), *tmp_path.glob("out/results/*/*.json")]
    for name, change in folders(HEADER if engine == "inspect" else RESULTS):
        if engine == "inspect":
            write_edited(log, log.with_name(f"{name}.eval"), "header.json", change)
        else:
            document = json.loads(log.read_text())
            change(document)
            log.with_name(f"results_{name}.json").write_text(json.dumps(document))

    for more in ("--resume", "--cache=reuse"):
        done = aigo("run", "quiz.yaml", "--model", "scripted/m.jsonl", "--engine", engine, "-o", "out", more)
        assert done.code == 0, done.err


def test_bad_foreign_log_does_not_affect_others(aigo: Run, tmp_path: Path) -> None:
    golden = REPOSITORY / "tests/golden/inspect/0.3.240.eval"
    write_edited(golden, tmp_path / "deep.eval", "header.json", at("eval", "metadata", put=nested(900)))
    shutil.copy(golden, tmp_path / "good.eval")

    done = aigo("import", "deep.eval", "good.eval", "-o", "o", "--json")

    assert done.code == 3
    deep, good = done.json
    assert "nested more than 200 levels deep" in deep["reason"]
    assert deep["samples"] == good["samples"] > 0
