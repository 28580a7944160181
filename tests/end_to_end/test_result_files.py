"""Different runs in one folder have separate evidence; a repeated run replaces its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.result_files import LoggedRun

ENGINES = pytest.mark.parametrize("engine", ["inspect", "lighteval"])
TASK = """
key: t
display_name: T
description: ""
config_spec:
  - {type: string, key: tone, display_name: Tone, default_value: plain}
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "<< config.tone >> {{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "yes"}
"""
JUDGE = "    - {type: model_as_a_judge_scorer, key: j, model_key: j, user_prompt: '{{ sample.q }}'}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "task.yaml").write_text(TASK)
    for name in ("rows", "others"):
        (tmp_path / f"{name}.jsonl").write_text('{"q": "a"}\n{"q": "b"}\n')
    for name, reply in (("a", "yes"), ("b", "no"), ("c d&e", "no"), ("j", "1"), ("k", "0")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"default": True, "reply": reply}) + "\n")
    return tmp_path


def results(folder: Path) -> dict[str, float]:
    """Return the accuracy by file."""
    found: dict[str, float] = {}
    for path in sorted((folder / "out").glob("*.tasklog.json")):
        evidence = json.loads(path.read_text())["evidence"]
        found[path.name.removesuffix(".tasklog.json")] = evidence["metrics"][0]["values"]["accuracy"]
    return found


@ENGINES
def test_results_of_two_models_have_different_files(aigo: Run, folder: Path, engine: str) -> None:
    run = ("run", "task.yaml", "--engine", engine, "--model")
    assert "evidence    out/t.tasklog.json" in aigo(*run, "scripted/a.jsonl").out
    second = aigo(*run, "scripted/b.jsonl")
    third = aigo(*run, "scripted/c d&e.jsonl")

    assert results(folder) == {"t": 1.0, "t@b.jsonl": 0.0, "t@c-d-e.jsonl": 0.0}
    assert "evidence    out/t@b.jsonl.tasklog.json" in second.out
    assert "out/t.tasklog.json belongs to another run and is kept" in second.err
    assert "evidence    out/t@c-d-e.jsonl.tasklog.json" in third.out

    # A repeated run replaces only its own result.
    (folder / "b.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    again = aigo(*run, "scripted/b.jsonl", "--json")
    assert again.json["result"] == "out/t@b.jsonl.tasklog.json"
    first = aigo(*run, "scripted/a.jsonl")
    assert "stays" not in first.err
    assert results(folder) == {"t": 1.0, "t@b.jsonl": 1.0, "t@c-d-e.jsonl": 0.0}


def test_result_matches_its_log_with_times_in_whole_seconds(aigo: Run, folder: Path) -> None:
    assert aigo("run", "task.yaml", "--model", "scripted/a.jsonl").code == 0
    frame = LogReader(folder / "out" / "t.tasklog.json").frame()
    began = frame.execution.started_at

    def is_of(runtime: float, *times: float) -> bool:
        execution = frame.execution.model_copy(update={"runtime": runtime, "ended_at": int(times[1])})
        return LoggedRun(Path("x.eval"), "t", (times[0], times[1]), {}, {}).is_of(
            frame.model_copy(update={"execution": execution})
        )

    assert is_of(0.08, began, began)
    assert is_of(0.0, began, began)
    assert is_of(2.0, began, began + 2)
    assert not is_of(2.0, began, began + 3)
    assert not is_of(0.08, began - 1, began - 1)


def test_results_of_two_engines_have_different_files(aigo: Run, folder: Path) -> None:
    for _ in range(2):
        for engine in ("inspect", "lighteval"):
            done = aigo("run", "task.yaml", "--engine", engine, "--model", "scripted/a.jsonl")
    assert results(folder) == {"t": 1.0, "t@lighteval": 1.0}
    assert "evidence    out/t@lighteval.tasklog.json" in done.out


@ENGINES
def test_resume_and_reuse_work_after_a_run_with_another_model(aigo: Run, folder: Path, engine: str) -> None:
    run = ("run", "task.yaml", "--engine", engine, "--model")
    (folder / "a.jsonl").write_text(
        '{"match": {"contains": "b"}, "reply": {"error": "down"}}\n{"default": true, "reply": "yes"}\n'
    )
    assert aigo(*run, "scripted/a.jsonl").code == 1
    aigo(*run, "scripted/b.jsonl")
    (folder / "a.jsonl").write_text('{"default": true, "reply": "yes"}\n')

    resumed = aigo(*run, "scripted/a.jsonl", "--resume", "--json")
    reused = aigo(*run, "scripted/b.jsonl", "--cache", "reuse", "--json")

    assert (resumed.json["result"], resumed.json["samples"]["reused"]) == ("out/t.tasklog.json", 1)
    assert (reused.json["result"], reused.json["samples"]["reused"]) == ("out/t@b.jsonl.tasklog.json", 2)
    assert results(folder) == {"t": 1.0, "t@b.jsonl": 0.0}


@ENGINES
def test_changed_config_judges_and_datasets_have_different_files(
    aigo: Run, folder: Path, engine: str
) -> None:
    (folder / "task.yaml").write_text(TASK + JUDGE)

    def result(*args: object, model: str = "a", judge: str = "j") -> str:
        models = ("--model", f"scripted/{model}.jsonl", "--model-map", f"j=scripted/{judge}.jsonl")
        path = aigo("run", "task.yaml", "--engine", engine, "--json", *models, *args).json["result"]
        return Path(path).name.removesuffix(".tasklog.json")

    assert result() == "t"
    named = [
        result("--config", "tone=kind"),
        result(judge="k"),
        result("--dataset", "rows=others.jsonl"),
        result("--config", "tone=kind", model="b"),
    ]

    assert len(set(named)) == 4
    assert all(name.startswith("t@") and len(name) == len("t@12345678") for name in named[:3])
    assert named[3] == f"t@b.jsonl@{named[0].removeprefix('t@')}"
    # Fewer samples, and other rows in the same file, are the same run.
    (folder / "rows.jsonl").write_text('{"q": "c"}\n{"q": "d"}\n')
    assert result("-n", 1) == "t"
    assert result("--config", "tone=kind") == named[0]
    assert result(judge="k") == named[1]


def test_benchmark_results_have_different_files(aigo: Run, folder: Path) -> None:
    (folder / "own.py").write_text(
        """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes


@task
def t(word: str = "yes"):
    return Task([Sample("q", target=word)], scorer=includes())
"""
    )

    def result(*args: object) -> str:
        path = aigo("run", "inspect:own.py", "--json", *args).json[0]["result"]
        return Path(path).name.removesuffix(".tasklog.json")

    assert result("--model", "scripted/a.jsonl") == "t"
    assert result("--model", "scripted/b.jsonl") == "t@b.jsonl"
    other = result("--model", "scripted/a.jsonl", "-T", "word=maybe")
    assert other.startswith("t@")
    assert len(other) == len("t@12345678")
    assert result("--model", "scripted/a.jsonl") == "t"
    assert result("--model", "scripted/b.jsonl", "--resume") == "t@b.jsonl"
    assert sorted(path.name for path in (folder / "out").glob("*.loss.json")) == sorted(
        [f"{name}.loss.json" for name in ("t", "t@b.jsonl", other)]
    )


def test_lighteval_task_results_have_different_files(aigo: Run, folder: Path) -> None:
    rows = [{"question": f"q{n}", "answer": f"{n} #### {n}"} for n in range(2)]
    (folder / "rows").mkdir()
    for split in ("train", "test"):
        (folder / "rows" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def result(model: str) -> str:
        path = aigo("run", "lighteval:gsm8k", "--data-dir", "rows", "--json", "--model", model).json[0][
            "result"
        ]
        return Path(path).name.removesuffix(".tasklog.json")

    assert [result("scripted/a.jsonl"), result("scripted/b.jsonl"), result("scripted/a.jsonl")] == [
        "gsm8k", "gsm8k@b.jsonl", "gsm8k",
    ]  # fmt: skip


def test_run_file_results_have_different_files(aigo: Run, folder: Path) -> None:
    """The summary names the files of its own run."""
    (folder / "run.yaml").write_text(
        """
evaluation:
  key: e
  display_name: E
  task_specifications:
    - {key: s, task_key: t, model_key: m}
    - {key: r, task_key: t, model_key: m, repeatability: {num_runs: 2}}
tasks:
  - $ref: task.yaml
"""
    )
    for name in ("a", "b"):
        done = aigo("run", "run.yaml", "--model-map", f"m=scripted/{name}.jsonl", "--cache", "update")
        assert done.code == 0, done.err

    summary: dict[str, Any] = json.loads((folder / "out" / "evaluation.json").read_text())
    named = [result["result"] for result in summary["results"]]
    assert named == ["s@b.jsonl.tasklog.json", "r@b.jsonl.tasklog.json"]
    assert results(folder) == {"s": 1.0, "s@b.jsonl": 0.0, "r": 1.0, "r@b.jsonl": 0.0}


def test_keys_that_differ_only_in_case_have_different_files(aigo: Run, folder: Path) -> None:
    """Some file systems ignore case."""
    (folder / "upper.yaml").write_text(TASK.replace("key: t\n", "key: T\n"))
    (folder / "out").mkdir()
    model = ("--model", "scripted/a.jsonl", "--json")
    first = aigo("run", "task.yaml", *model).json["result"]
    second = aigo("run", "upper.yaml", *model).json["result"]
    assert first == "out/t.tasklog.json"
    assert second.casefold() != first.casefold()
    assert aigo("run", "upper.yaml", *model).json["result"] == second

    (folder / "out" / "t.tasklog.json").write_text("something else")
    third = aigo("run", "task.yaml", *model).json["result"]
    assert third != first
    assert (folder / "out" / "t.tasklog.json").read_text() == "something else"


def test_models_with_equal_file_names_have_different_files(aigo: Run, folder: Path) -> None:
    for name in ("x", "y", "z"):
        (folder / name).mkdir()
        (folder / name / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    found = [
        aigo("run", "task.yaml", "--model", f"scripted/{name}/m.jsonl", "--json").json["result"]
        for name in "xyzyzx"
    ]
    assert len(set(found[:3])) == 3
    assert found[3:] == [found[1], found[2], found[0]]


def test_fault_in_naming_a_file_loses_no_result(
    aigo: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert aigo("run", "task.yaml", "--model", "scripted/a.jsonl").code == 0

    def broken(*_: Any) -> Any:
        raise ValueError("planted")

    monkeypatch.setattr("aigo_bridge.evaluation.writing.result_file", broken)
    done = aigo("run", "task.yaml", "--model", "scripted/b.jsonl")

    assert done.code == 1
    assert "the other results in the folder could not be read" in done.out
    names = sorted(path.name for path in (folder / "out").glob("*.tasklog.json"))
    assert len(names) == 2
    assert names[0] == "t.tasklog.json"


OTHER = '    - {type: string_equals, ground_truth: "no"}\n'


def _rescore(aigo: Run, verb: str, engine: str) -> str:
    options = ("--engine", engine, "--out", "out")
    if verb == "score":
        finished = aigo("score", "task.yaml", "out/t.tasklog.json", *options)
    else:
        reused = () if verb == "run" else ("--cache", "reuse")
        finished = aigo("run", "task.yaml", "--model", "scripted/a.jsonl", *reused, *options)
    assert finished.code == 0, finished.err
    return finished.out + finished.err


@ENGINES
@pytest.mark.parametrize("verb", ["score", "run --cache reuse", "run"])
def test_changed_scorers_keep_the_earlier_evidence(aigo: Run, folder: Path, engine: str, verb: str) -> None:
    aigo("run", "task.yaml", "--model", "scripted/a.jsonl", "--engine", engine)
    before = (folder / "out/t.tasklog.json").read_bytes()
    (folder / "task.yaml").write_text(TASK.replace('"yes"', '"no"'))
    shown = _rescore(aigo, verb, engine)
    assert (folder / "out/t.tasklog.json").read_bytes() == before
    plain, other = sorted(results(folder).items())
    assert (plain, other[1]) == (("t", 1.0), 0.0)
    assert re.fullmatch(r"t@[0-9a-f]{8}", other[0])
    assert f"{other[0]}.tasklog.json" in shown
    _rescore(aigo, verb, engine)
    assert list(results(folder)) == ["t", other[0]], "the same scorers again replace their own result"
    assert len(list((folder / "out").glob("*.provenance.json"))) == 2


def test_restored_scorers_give_the_first_result_again(aigo: Run, folder: Path) -> None:
    aigo("run", "task.yaml", "--model", "scripted/a.jsonl")
    (folder / "task.yaml").write_text(TASK + OTHER)
    _rescore(aigo, "run --cache reuse", "inspect")
    (folder / "task.yaml").write_text(TASK)
    assert "evidence    out/t.tasklog.json" in _rescore(aigo, "run --cache reuse", "inspect")
    assert len(results(folder)) == 2
