"""`aigo-bridge parity`: engines agree for the same answers, and a planted difference is reported with its
cause.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, TASKS, Run, called

from aigo_bridge.dtypes import ChatCompletionInput
from aigo_bridge.models.protocol import ModelRequest

pytestmark = pytest.mark.xdist_group("conformance")

CAPITALS = REPOSITORY / "examples" / "capitals"
PARITY = ("parity", CAPITALS, "--replay", "c", "--out", "out")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cassette of a run."""
    folder = tmp_path_factory.mktemp("recording")
    model = f"scripted/{CAPITALS / 'answers.jsonl'}"
    done = called("run", CAPITALS, "--model", model, "--record", folder / "c", "--out", folder / "a")
    assert done.code == 0, done.err
    return folder / "c"


@pytest.fixture
def cassette(recording: Path, tmp_path: Path) -> None:
    shutil.copyfile(recording, tmp_path / "c")


@pytest.fixture
def asked_by_lighteval(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[ModelRequest], ModelRequest]], None]:
    """Return a function that changes the requests of lighteval."""
    from aigo_lighteval.models.models import HostedModel

    predict = HostedModel.predict

    def plant(change: Callable[[ModelRequest], ModelRequest]) -> None:
        monkeypatch.setattr(HostedModel, "predict", lambda self, request: predict(self, change(request)))

    return plant


@pytest.fixture
def made_by_lighteval(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[Any, dict[str, Any]], Any]], None]:
    """Return a function that changes the outcome and the result log of lighteval."""
    from aigo_bridge.evaluation import running

    run_evaluation = running.run_evaluation

    def plant(change: Callable[[Any, dict[str, Any]], Any]) -> None:
        def changed(prepared: Any, engine: Any, settings: Any) -> Any:
            outcome = run_evaluation(prepared, engine, settings)
            if engine.name != "lighteval":
                return outcome
            (result,) = outcome.results
            path = result.result
            assert path is not None
            log = json.loads(path.read_bytes())
            result = change(result, log) or result
            path.write_text(json.dumps(log))
            return replace(outcome, results=(result,))

        monkeypatch.setattr(running, "run_evaluation", changed)

    return plant


def certificate(folder: Path) -> tuple[Any, str]:
    return json.loads((folder / "out" / "parity.json").read_bytes()), (
        folder / "out" / "parity.md"
    ).read_text()


def test_agreeing_engines_get_a_certificate(cassette: None, aigo: Run, tmp_path: Path) -> None:
    done = aigo(*PARITY)

    assert done.code == 0, done.err
    assert "the same messages in 4 of 4 samples, the same scores in 4" in done.out
    content, text = certificate(tmp_path)
    assert (content["equal"], content["complete"]) == (True, True)
    (task,) = content["tasks"]
    assert task["samples"] == {"total": 4, "same_messages": 4, "same_scores": 4}
    assert len(set(task["digests"].values())) == 1
    lighteval = version("lighteval")
    assert content["engines"]["lighteval"] == {
        "version": lighteval,
        "answered": 4,
        "missing": 0,
        "not_asked": 0,
    }
    digest = hashlib.sha256((tmp_path / "c").read_bytes()).hexdigest()
    assert content["cassette"]["sha256"] == digest
    (run,) = content["cassette"]["recorded"]
    assert (run["task"], run["engine"]) == ("capitals", "inspect")
    assert content["environment"]["packages"]["inspect-ai"] == version("inspect-ai")
    assert content["environment"]["bridge"] == content["version"]
    for named in (digest, f"| lighteval | {lighteval} |", task["plan"], *task["digests"].values()):
        assert named in text
    assert "**the engines agree**: inspect, lighteval" in text


def test_judges_and_trials_are_compared(aigo: Run, tmp_path: Path) -> None:
    folder = TASKS / "hp-trivia"
    models = ("--model", f"scripted/{folder / 'answers.jsonl'}")
    judge = ("--model-map", f"openai$gpt-4-1-nano=scripted/{folder / 'judge.jsonl'}", "--num-trials", "2")
    assert (
        aigo("run", folder, *models, *judge, "--record", "c", "--engine", "lighteval", "--out", "a").code == 0
    )
    done = aigo("parity", folder, "--replay", "c", "--num-trials", "2", "--out", "out", "--json")
    assert done.code == 0, done.out
    assert done.json["equal"]
    assert done.json["tasks"] == certificate(tmp_path)[0]["tasks"]


def test_a_different_prompt_is_reported_as_the_cause(
    cassette: None, aigo: Run, tmp_path: Path, asked_by_lighteval: Any
) -> None:
    def other(request: ModelRequest) -> ModelRequest:
        text = str(request.input.messages[-1].content).replace("Norway", "norway")
        content = {"messages": [{"role": "user", "content": text}]}
        return replace(request, input=ChatCompletionInput.model_validate(content))

    asked_by_lighteval(other)
    done = aigo(*PARITY)
    assert done.code == 1
    content, text = certificate(tmp_path)
    assert (content["equal"], content["complete"]) == (False, False)
    (task,) = content["tasks"]
    assert task["causes"] == {"prompt": 1}
    (difference,) = task["differences"]
    assert "inspect '… the capital of Norway?" in difference["detail"]
    assert "lighteval '… the capital of norway?" in difference["detail"]
    assert "(prompt)" in text
    assert "prompt: 1" in done.out


def test_different_generation_settings_are_reported_as_the_cause(
    cassette: None, aigo: Run, tmp_path: Path, asked_by_lighteval: Any
) -> None:
    asked_by_lighteval(lambda request: replace(request, options={"temperature": 1.0}))
    assert aigo(*PARITY).code == 1
    (task,) = certificate(tmp_path)[0]["tasks"]
    assert task["causes"] == {"generation settings": 4}
    assert 'inspect nothing, lighteval {"temperature":1}' in task["differences"][0]["detail"]


def test_a_different_score_is_reported_as_the_cause(
    cassette: None, aigo: Run, tmp_path: Path, made_by_lighteval: Any
) -> None:
    def other(result: Any, log: Any) -> None:
        for holder in (log["evidence"]["samples"][2], *log["evidence"]["samples"][2]["trials"]):
            for score in holder.get("scores") or []:
                score["values"] = dict.fromkeys(score["values"], 0.5)

    made_by_lighteval(other)
    assert aigo(*PARITY).code == 1
    (task,) = certificate(tmp_path)[0]["tasks"]
    assert task["causes"] == {"scorer": 1}
    assert task["samples"] == {"total": 4, "same_messages": 4, "same_scores": 3}


def test_a_different_conversation_is_reported_as_the_cause(
    cassette: None, aigo: Run, tmp_path: Path, made_by_lighteval: Any
) -> None:
    def other(result: Any, log: Any) -> None:
        trace = log["evidence"]["samples"][1]["trials"][0]["solver"]["output"]["trace"]
        trace["items"][-1]["content"][0]["text"] += " <script>"

    made_by_lighteval(other)
    assert aigo(*PARITY).code == 1
    content, text = certificate(tmp_path)
    assert content["tasks"][0]["causes"] == {"conversation": 1}
    assert "<script>" in content["tasks"][0]["differences"][0]["detail"]
    assert "<script>" not in text.replace("\\<", "")


def test_a_different_metric_of_equal_scores_is_reported(
    cassette: None, aigo: Run, tmp_path: Path, made_by_lighteval: Any
) -> None:
    made_by_lighteval(lambda result, log: replace(result, metrics=[replace(result.metrics[0], value=0.5)]))
    assert aigo(*PARITY).code == 1
    (task,) = certificate(tmp_path)[0]["tasks"]
    assert task["causes"] == {"aggregation": 1}
    assert task["differences"][0]["detail"] == "string_equals, Accuracy: inspect 0.75, lighteval 0.5"


@pytest.mark.parametrize("engines", ["inspect", "inspect,inspect", "inspect,"])
def test_invalid_engine_lists_are_refused(cassette: None, aigo: Run, engines: str) -> None:
    done = aigo(*PARITY, "--engine", engines)
    assert done.code == 2
    assert "expected several engines" in done.err
