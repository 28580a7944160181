"""Values computed by task code and templates are stored in the native log: reading it gives the evidence and runs no code."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.commands import Run, called

from aigo_bridge.errors import EvidenceError
from aigo_bridge.results.records import numbers_from_json
from aigo_inspect.logs.shapes import HEADER_KEY

Load = Callable[[Path], dict[str, Any]]

TASK = """
key: quiz
display_name: Quiz
description: ""
config_spec: [{type: string, key: right, display_name: Right, default_value: "yes"}]
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - type: string_equals
      ground_truth: "<< config.right >>"
      metrics:
        - {type: mean, field: is_correct, name: accuracy}
        - type: python
          key: own
          compute_metrics_snippet: |
            import random
            def compute_metrics(scores):
                return {"n": len(scores), "chance": random.random(), "odd": float("nan")}
        - {type: python, key: broken, compute_metrics_snippet: "def compute_metrics(scores): 1 / 0"}
  actions:
    - {key: skip, action: exclude_from_metrics, filter: {op: equals, expression: "{{ sample.q }}", value: two}}
    - {key: odd, action: exclude_from_metrics, filter: {op: is_true, expression: "{{ 1 / sample.zero == 2 }}"}}
"""
ENGINES = ["inspect", "lighteval"]


WITHOUT_RULES = TASK.split("  actions:", maxsplit=1)[0]


def write_project(folder: Path, task: str = TASK) -> Path:
    (folder / "quiz.yaml").write_text(task)
    rows = [
        {"q": "one", "zero": 1},
        {"q": "two", "zero": 1},
        {"q": "three", "zero": 1},
        {"q": "four", "zero": 0},
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path)


def command(engine: str = "inspect", *more: str) -> list[str]:
    return ["run", "quiz.yaml", "--model", "scripted/m.jsonl", "--engine", engine, *more]


def native_log(folder: Path) -> Path:
    (log,) = [*folder.glob("out/*.eval"), *folder.glob("out/results/*/*.json")]
    return log


def ran(aigo: Run, folder: Path, engine: str = "inspect", *more: str) -> Path:
    """Return the native log of a run."""
    aigo(*command(engine, *more))
    return native_log(folder)


Finished = Callable[..., Path]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Copy a project with a finished run into a folder, and return its native log."""
    projects: dict[tuple[str, str], Path] = {}

    def copy(folder: Path, engine: str = "inspect", task: str = TASK) -> Path:
        if (engine, task) not in projects:
            original = projects[engine, task] = write_project(tmp_path_factory.mktemp(engine), task)
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(original)
                called(*command(engine))
        shutil.copytree(projects[engine, task], folder, dirs_exist_ok=True)
        return native_log(folder)

    return copy


def imported(aigo: Run, log: Path, *more: str, code: int = 0) -> tuple[str, bytes]:
    done = aigo("import", log, "-o", "again", *more)
    assert done.code == code, done.out + done.err
    found = list(Path("again").glob("*.tasklog.json"))
    return done.out, found[0].read_bytes() if found else b""


def metrics(evidence: bytes) -> dict[str, dict[str, float]]:
    return {
        metric["metric_key"]: metric["values"] for metric in orjson.loads(evidence)["evidence"]["metrics"]
    }


def errors(evidence: bytes) -> list[str]:
    return [error["message"] for error in orjson.loads(evidence)["evidence"]["errors"]]


def rewrite(log: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Rewrite an archive with changed or removed members."""
    with zipfile.ZipFile(log) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(log, "w") as archive:
        for name, data in members.items():
            if (changed := change(name, data)) is not None:
                archive.writestr(name, changed)


@pytest.mark.parametrize("engine", ENGINES)
def test_metrics_of_the_run_are_read_from_the_log_alone(
    aigo: Run, finished: Finished, tmp_path: Path, result_of: Load, engine: str
) -> None:
    """Including values that change at every call, errors and exclusions."""
    log = finished(tmp_path, engine)
    evidence = (tmp_path / "out/quiz.tasklog.json").read_bytes()
    result_of(tmp_path / "out/quiz.tasklog.json")

    assert imported(aigo, log)[1] == evidence
    assert metrics(evidence)["own"]["n"] == 2
    assert any("ZeroDivisionError" in message for message in errors(evidence))


@pytest.mark.parametrize("engine", ENGINES)
def test_resuming_a_complete_run_changes_neither_log_nor_evidence(
    aigo: Run, project: Path, engine: str
) -> None:
    (project / "quiz.yaml").write_text(TASK.replace("random.random()", "0.5"))
    log = ran(aigo, project, engine)
    before = log.read_bytes()

    aigo("run", "quiz.yaml", "--model", "scripted/m.jsonl", "--engine", engine, "--resume")

    assert log.read_bytes() == before
    assert imported(aigo, log)[1] == (project / "out/quiz.tasklog.json").read_bytes()


def without_numbers(name: str, data: bytes) -> bytes | None:
    return None if name.startswith("_aigo/") else data


def test_metrics_that_are_not_stored_are_absent_with_the_reason(
    aigo: Run, finished: Finished, tmp_path: Path
) -> None:
    log = finished(tmp_path, task=WITHOUT_RULES)
    rewrite(log, without_numbers)

    said, evidence = imported(aigo, log)

    assert metrics(evidence) == {"mean": {"accuracy": 1.0}}
    assert "metric 'own' of scorer 'string_equals' has no value" in said
    assert "--recompute TASK" in said
    assert "not stored in the log" in " ".join(errors(evidence))


def test_excluded_samples_are_in_no_stored_metric(aigo: Run, finished: Finished, tmp_path: Path) -> None:
    log = finished(tmp_path)
    rewrite(log, without_numbers)

    said, evidence = imported(aigo, log)

    assert metrics(evidence) == {}
    assert said.count("has no value") == 3


def changed_score(name: str, data: bytes) -> bytes:
    if not name.startswith("samples/"):
        return data
    sample = json.loads(data)
    for score in sample["scores"].values():
        score["value"] = 0.0
    return json.dumps(sample).encode()


def test_stored_metrics_of_changed_scores_are_ignored(aigo: Run, finished: Finished, tmp_path: Path) -> None:
    """A score was edited later, for example with Inspect."""
    log = finished(tmp_path, task=WITHOUT_RULES)
    rewrite(log, changed_score)

    _, evidence = imported(aigo, log)

    assert metrics(evidence) == {"mean": {"accuracy": 0.0}}


def test_stored_metrics_of_other_details_are_ignored(aigo: Run, finished: Finished, tmp_path: Path) -> None:
    log = finished(tmp_path, "lighteval")
    results = json.loads(log.read_text())
    results["aigo_bridge"]["numbers"]["details"] = "0" * 64
    log.write_text(json.dumps(results))

    assert metrics(imported(aigo, log)[1]) == {}


@pytest.mark.parametrize("named", ["/dev/zero", "pipe", "../../../elsewhere.parquet", "{absolute}", "link"])
def test_details_are_only_read_from_files_of_the_run(
    aigo: Run, finished: Finished, tmp_path: Path, named: str
) -> None:
    log = finished(tmp_path, "lighteval")
    results = json.loads(log.read_text())
    elsewhere = tmp_path / "elsewhere.parquet"
    elsewhere.write_bytes((log.parent / results["aigo_bridge"]["details"]).read_bytes())
    os.mkfifo(log.parent / "pipe")
    (log.parent / "link").symlink_to(elsewhere)
    results["aigo_bridge"]["details"] = named.format(absolute=elsewhere)
    log.write_text(json.dumps(results))

    done = aigo("import", log, "-o", "again")

    assert done.code == 3
    assert "the details cannot be read" in done.out


GOOD = {
    "format": 1,
    "metrics": [
        {"scorer": "s", "metric": "m", "values": {"a": 1}, "num_used": 1, "num_skipped": 0, "problem": None}
    ],
}


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {**GOOD, "format": 2, "exclusions": []},
        {**GOOD, "exclusions": 3},
        {**GOOD, "metrics": GOOD["metrics"] * 2, "exclusions": []},  # type: ignore[operator]  # a list
        {**GOOD, "exclusions": [{"row": 0, "records": [], "errors": []}] * 2},
        {**GOOD, "exclusions": [{"row": -1, "records": [], "errors": []}]},
        {**GOOD, "exclusions": [{"row": 0, "records": ["x"], "errors": []}]},
        *(
            {"format": 1, "exclusions": [], "metrics": [{**GOOD["metrics"][0], **wrong}]}  # type: ignore[index]  # a list
            for wrong in (
                {"values": {"a": "1"}},
                {"values": {"a": float("inf")}},
                {"values": {"a": 10**30}},
                {"values": {"a": True}},
                {"values": None},
                {"problem": 3},
                {"num_used": -1},
            )
        ),
    ],
)
def test_damaged_stored_metrics_are_ignored(stored: Any) -> None:
    with pytest.raises(EvidenceError, match="the log's numbers"):
        numbers_from_json(stored)


def test_an_interruption_while_storing_leaves_a_readable_log(
    aigo: Run, finished: Finished, tmp_path: Path
) -> None:
    log = finished(tmp_path)
    whole = log.read_bytes()
    rest = whole[whole.index(b"_aigo/numbers.json") :]

    for kept in (1, len(rest) // 2, len(rest) - 30):
        log.write_bytes(whole[: len(whole) - len(rest) + kept])
        with zipfile.ZipFile(log) as archive:
            assert "header.json" in archive.namelist()
            assert archive.testzip() is None
        assert "4 samples" in imported(aigo, log)[0]


def test_a_log_that_cannot_store_metrics_is_reported_and_unchanged(
    aigo: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aigo_inspect.running import codec

    def full(path: Path, content: bytes, size: int) -> None:
        with path.open("ab") as file:
            file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(codec, "_append", full)
    log = ran(aigo, project)

    evidence = orjson.loads((project / "out/quiz.tasklog.json").read_bytes())
    assert evidence["status"] == "failure"
    assert "No space left on device" in " ".join(error["message"] for error in evidence["evidence"]["errors"])
    assert not log.read_bytes().endswith(b"half of it")


# --recompute


@pytest.mark.parametrize("engine", ENGINES)
def test_metrics_are_recomputed_with_your_own_task(aigo: Run, project: Path, engine: str) -> None:
    log = ran(aigo, project, engine, "--config", "right=no", "-n", "3")
    first = metrics((project / "out/quiz.tasklog.json").read_bytes())

    said, evidence = imported(aigo, log, "--recompute", "quiz.yaml")

    assert "recomputed with your own task" in said
    again = metrics(evidence)
    assert again["mean"] == first["mean"] == {"accuracy": 0.0}
    assert again["own"]["n"] == 2
    assert again["own"]["chance"] != first["own"]["chance"]


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("random.random()", "0.5", "compute_metrics_snippet"),
        (
            "value: two",
            "value: three",
            "definition.actions[0].filter.value: the task has 'three', the log 'two'",
        ),
        ("name: accuracy", "name: share", "definition.scorers[0].metrics[0].name: the task has 'share'"),
        ("key: right,", "key: wrong,", "unknown parameter 'right'"),
    ],
)
def test_log_of_another_plan_is_refused_with_the_difference(
    aigo: Run, finished: Finished, tmp_path: Path, old: str, new: str, difference: str
) -> None:
    log = finished(tmp_path)
    text = TASK.replace(old, new).replace(
        "config.right", "config.wrong" if "wrong" in new else "config.right"
    )
    (tmp_path / "quiz.yaml").write_text(text)

    said, evidence = imported(aigo, log, "--recompute", "quiz.yaml", code=3)

    assert "not recomputed" in said
    assert difference in said
    assert "[AB712]" in said
    assert evidence == b""


def test_log_with_changed_rows_is_refused(aigo: Run, finished: Finished, tmp_path: Path) -> None:
    log = finished(tmp_path)
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"q": "five", "zero": 1}\n')

    assert "the rows: the task has" in imported(aigo, log, "--recompute", "quiz.yaml", code=3)[0]


def test_a_wrong_plan_digest_is_always_reported(aigo: Run, finished: Finished, tmp_path: Path) -> None:
    log = finished(tmp_path)

    with zipfile.ZipFile(log) as archive:
        digest = json.loads(archive.read("header.json"))["eval"]["metadata"][HEADER_KEY]["digest"]
    rewrite(log, lambda name, data: data.replace(digest.encode(), b"0" * 64))

    for more in ((), ("--recompute", "quiz.yaml")):
        said, evidence = imported(aigo, log, *more, code=3)
        assert "damaged: the plan in the log was edited" in said
        found = orjson.loads(evidence)
        assert found["status"] == "failure"
        assert found["errors"][0]["error_type"] == "DamagedLog"


def test_scorers_that_differ_from_the_task_are_reported(
    aigo: Run, finished: Finished, tmp_path: Path
) -> None:
    log = finished(tmp_path)

    def other(name: str, data: bytes) -> bytes:
        if name != "header.json":
            return data
        header = json.loads(data)
        header["eval"]["metadata"][HEADER_KEY]["outline"]["scorers"][0]["metrics"][0]["type"] = "max"
        return json.dumps(header).encode()

    rewrite(log, other)

    assert "its scorers do not match its task" in imported(aigo, log, code=3)[0]


def test_run_file_specification_of_a_log_is_used(aigo: Run, project: Path, finished: Finished) -> None:
    (project / "run.yaml").write_text("""
models: [{$provider: scripted/m.jsonl}]
tasks: [{$ref: quiz.yaml}]
evaluation:
  key: e
  display_name: E
  description: ""
  task_specifications: [{key: first, task_key: quiz, model_key: "scripted$m-jsonl"}]
""")
    aigo("run", "run.yaml")
    (log,) = project.glob("out/*.eval")

    assert "recomputed with your own task" in imported(aigo, log, "--recompute", "run.yaml")[0]
    other = imported(aigo, finished(project / "alone"), "--recompute", "run.yaml", code=3)[0]
    assert "pass the task file" in other


def test_metrics_that_cannot_be_recomputed_are_reported(aigo: Run, project: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "inspect" / "0.3.240.eval"

    none_of_ours = imported(aigo, golden, "--recompute", "quiz.yaml", code=3)[0]
    assert "not written by aigo-bridge" in none_of_ours
    assert "[AB706]" in none_of_ours
    assert aigo("import", golden, "--recompute", "none.yaml").code == 2
    done = aigo("import", golden, "--root", ".")
    assert (done.code, "only with --recompute" in done.err) == (2, True)


def test_evidence_after_inspect_eval_also_has_stored_metrics(project: Path, command: Run) -> None:
    """The task code runs in the same process as the user's own code."""
    done = command(
        *("inspect", "eval", "aigo_bridge/task", "-T", f"task={project / 'quiz.yaml'}"),
        *("--model", "scripted/m.jsonl", "--display", "none", "--log-dir", "logs"),
        AIGO_BRIDGE_EVIDENCE="evidence",
    )

    assert done.code == 0, done.err
    (evidence,) = project.glob("evidence/*.tasklog.json")
    assert metrics(evidence.read_bytes())["own"]["n"] == 2


def test_logs_of_inspect_eval_command_have_stored_metrics(aigo: Run, project: Path, command: Run) -> None:
    done = command(
        *("inspect", "eval", "aigo_bridge/task", "-T", f"task={project / 'quiz.yaml'}"),
        *("--model", "scripted/m.jsonl", "--display", "none", "--log-dir", "logs"),
    )

    assert (done.code, "hooks enabled" in done.out + done.err) == (0, False), done.err
    assert aigo("import", "logs", "--out", "imported").code == 0
    (evidence,) = project.glob("imported/*.tasklog.json")
    assert metrics(evidence.read_bytes())["own"]["n"] == 2
