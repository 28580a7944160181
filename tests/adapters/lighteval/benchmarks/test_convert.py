"""A converted task sends the same messages and gives the same sample scores as the native task for every
answer."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.lighteval.benchmarks.conftest import Splits, alone, rows_of
from tests.support.commands import Run
from tests.support.tiny_model import save_tiny_model

from aigo_bridge.text.json_text import key_of

ODD = (
    "",
    " ",
    "{gold}",
    " {gold}",
    "{gold}\n",
    "  {gold}  ",
    "ANSWER: {gold}",
    "The answer is {gold}.",
    "The answer is {gold}, and not 999.",
    "{gold} {gold}",
    "<think>{gold}</think>no",
    "<think>no</think>{gold}",
    "<think>no</think> {gold}",
    "<think>never closed {gold}",
    "A",
    "b",
    "No.",
    "I cannot help with that.",
    "$\\boxed{{{gold}}}$",
    "#### {gold}",
    "Zürich – 東京 🌊 {gold}",
    "Let us think step by step. First, the sea. Then, the sea again. " * 20 + "\n\nSo it is {gold}",
    "\u200b{gold}",
    "0.5",
)
"""Correct, wrong, empty, padded, refused, verbose and Unicode answers."""


def many(task: str) -> Splits:
    """Return as many different rows as there are answers."""
    rows = rows_of(task)["test" if "test" in rows_of(task) else "train"]
    made = []
    for number in range(len(ODD)):
        row = copy.deepcopy(rows[number % len(rows)])
        text = next(name for name in ("question", "problem", "prompt") if name in row)
        row[text] = f"({number}) {row[text]}"
        made.append(row)
    other = {split: rows_of(task)[split] for split in rows_of(task)}
    return {split: made if other[split] is rows else other[split] for split in other}


@pytest.mark.parametrize(
    ("task", "shots"),
    [("mmlu:abstract_algebra", 2), ("bbq", 0), ("gsm8k", 0), ("math_500", 0), ("ifeval", 0)],
)
def test_converted_tasks_have_the_same_messages_and_sample_scores(
    task: str,
    shots: int,
    aigo: Run,
    tmp_path: Path,
    data_dir: Callable[[Splits], Path],
    scripted: Callable[[Mapping[str, str]], str],
) -> None:
    data = data_dir(many(task))
    name = f"lighteval:{alone(task)}|{shots}"
    done = aigo("convert", name, "--to", "aigo", "--out", tmp_path / "aigo", "--data-dir", data)
    assert done.code == 0, done.err
    rows = [
        json.loads(line) for line in next((tmp_path / "aigo").glob("*.jsonl")).read_text("utf-8").splitlines()
    ]
    assert len(rows) == len(ODD) >= 20
    model = scripted(
        {
            row["messages"][-1]["content"]: odd.format(gold=row["golds"][0])
            for row, odd in zip(rows, ODD, strict=True)
        }
    )

    native = evidence(
        aigo("run", name, "--data-dir", data, "--model", model, "--out", tmp_path / "native", "--json")
    )
    # A worker would import lighteval again.
    quick = ("--snippets", "in-process", "--out", tmp_path / "own", "--json")
    own = evidence(aigo("run", tmp_path / "aigo", "--model", model, *quick))

    assert set(own) == set(native) == {row["sample_id"] for row in rows}
    seen = set()
    for sample_id, (asked, scores) in native.items():
        own_asked, own_scores = own[sample_id]
        assert own_asked == asked
        # A value that is not a number is text in a score.
        kept = {key_of(name): json.dumps(v) if isinstance(v, list) else v for name, v in scores.items()}
        assert own_scores == kept
        seen |= set(kept.values())
    assert len(seen) > 1


def evidence(done: Any) -> dict[str, tuple[list[tuple[str, str]], dict[str, Any]]]:
    """Return the conversation and scores of each sample."""
    assert done.code == 0, done.err
    summary = done.json[0] if isinstance(done.json, list) else done.json
    log = json.loads(Path(summary["result"]).read_text("utf-8"))
    found = {}
    for sample in log["evidence"]["samples"]:
        (trial,) = sample["trials"]
        items = trial["solver"]["output"]["trace"]["items"]
        said = [(item["role"], "".join(part["text"] for part in item["content"])) for item in items]
        scores = {name: value for score in trial["scores"] for name, value in score["values"].items()}
        found[str(sample["sample_id"])] = (said, scores)
    return found


def test_an_inexpressible_benchmark_is_refused_with_all_reasons(aigo: Run, tmp_path: Path) -> None:
    for task, reason in (
        ("truthfulqa:mc", "measures logprobs instead of an answer"),
        ("hle", "calls a judge, whose failures and costs would not be reported"),
    ):
        done = aigo("convert", f"lighteval:{task}", "--out", tmp_path / "aigo")
        assert done.code == 1, done.err
        assert reason in done.err
        assert "aigo-bridge run lighteval:" in done.err
    assert not (tmp_path / "aigo").exists()


def test_several_answers_become_rows_with_a_joint_metric(
    aigo: Run, tmp_path: Path, data_dir: Callable[[Splits], Path]
) -> None:
    rows = [
        {
            "problem": f"What is {n} + 1?",
            "solution": f"It is $\\boxed{{{n + 1}}}$.",
            "level": "1",
            "type": "a",
        }
        for n in range(5)
    ]
    data = data_dir({"test": rows, "train": rows})
    # For each question, none, one, two (first or last) or all of the four answers are correct.
    rules = [
        {"match": {"contains": f"What is {n} + 1?"}, "times": n, "reply": f"It is $\\boxed{{{n + 1}}}$."}
        for n in range(1, 5)
    ]
    (tmp_path / "answers.jsonl").write_text(
        "".join(json.dumps(rule) + "\n" for rule in (*rules, {"default": True, "reply": "So $\\boxed{7}$"}))
    )
    model = f"scripted/{tmp_path / 'answers.jsonl'}"
    one = ("--max-connections", "1", "--json")
    done = aigo("convert", "lighteval:math:algebra", "--to", "aigo", "--out", "aigo", "--data-dir", data)
    assert done.code == 0, done.err
    assert "each of the 4 answers to a question becomes a separate row" in done.err
    native = aigo("run", "lighteval:math:algebra", "--data-dir", data, "--model", model, "-o", "native", *one)
    own = aigo("run", "aigo", "--model", model, "-o", "own", "--snippets", "in-process", *one)

    assert (native.code, own.code) == (0, 0), native.err + own.err
    (expected,) = [row["value"] for row in native.json[0]["metrics"] if "stderr" not in row["name"]]
    (metric,) = own.json["metrics"]
    assert metric["value"] == pytest.approx(expected)
    assert 0 < expected < 1
    assert "0x" not in metric["name"]
    assert "maj@n:n=4" in metric["name"]
    assert own.json["samples"]["planned"] == 20


OWN = """
from lighteval.metrics.metrics import Metrics
from lighteval.metrics.metrics_sample import F1_score
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod
import numpy as np

class Mine(F1_score):
    pass

def prompt(row, task_name=None):
    return Doc(task_name=task_name, query=row["q"], choices=[row["a"]], gold_index=0)

def task(name, *metrics):
    return LightevalTaskConfig(
        name=name, prompt_function=prompt, hf_repo="x/y", hf_subset="default", hf_avail_splits=["test"],
        evaluation_splits=["test"], few_shots_split=None, few_shots_select=None, generation_size=8, metrics=list(metrics),
    )

def f1(function):
    return SampleLevelMetric("f1", True, SamplingMethod.GENERATIVE, function, np.mean)

TASKS_TABLE = [
    task("caps", Metrics.exact_match, Metrics.f1_score, Metrics.rougeL),
    task("gsm8k", Metrics.f1_score),
    task("translated", Metrics.bleu, Metrics.chrf, Metrics.ter, Metrics.exact_match),
    task("weighed", Metrics.loglikelihood_acc),
    task("corpus", f1(Mine()), f1(F1_score(strip_strings=True, normalize_gold=str.lower))),
]
"""


@pytest.mark.parametrize("task", ["caps", "gsm8k"])
def test_lighteval_metrics_in_a_user_file_are_converted(
    task: str,
    aigo: Run,
    tmp_path: Path,
    data_dir: Callable[[Splits], Path],
    scripted: Callable[[Mapping[str, str]], str],
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    name = f"lighteval:{tmp_path / 'own.py'}@{task}"
    data = data_dir({"test": [{"q": "one", "a": "Santiago de Chile"}, {"q": "two", "a": "x"}]})
    done = aigo("convert", name, "--to", "aigo", "--out", tmp_path / "aigo", "--data-dir", data)
    assert done.code == 0, done.err
    model = scripted({"one": "Santiago", "two": "x"})
    wanted = aigo("run", name, "--data-dir", data, "--model", model, "--out", tmp_path / "n", "--json")
    got = aigo(
        "run", tmp_path / "aigo", "--engine", "lighteval", "--model", model, "--out", tmp_path / "a", "--json"
    )
    expected, found = evidence(wanted), evidence(got)
    assert found == {
        sample_id: (said, {key_of(name): value for name, value in scores.items()})
        for sample_id, (said, scores) in expected.items()
    }
    assert 0 < found["0"][1]["f1"] < 1


def test_metrics_with_the_same_name_are_refused(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    done = aigo("convert", f"lighteval:{tmp_path / 'own.py'}@corpus", "--out", tmp_path / "aigo")
    assert done.code == 1
    assert "metrics: several metrics are named 'f1', and lighteval shows only the last one" in done.err


OVERLAP = """
import helpers
import numpy as np
from lighteval.metrics.metrics_sample import F1_score, SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

LEAST = 2

class Overlap(SampleLevelComputation):
    def __init__(self, least=1):
        self.least = least

    def compute(self, doc, model_response, **kwargs):
        words = set(model_response.text[0].split()) & set(doc.choices[0].split())
        return float(len(words) >= self.least)

class Helped(Overlap):
    def compute(self, doc, model_response, **kwargs):
        return helpers.grade(model_response.text[0])

class Noted(Overlap):
    def compute(self, doc, model_response, **kwargs):
        return float(open("grades.txt").read())

def metric(name, function):
    return SampleLevelMetric(name, True, SamplingMethod.GENERATIVE, function, np.mean)

def prompt(row, task_name=None):
    return Doc(task_name=task_name, query=row["q"], choices=[row["a"]], gold_index=0)

def task(name, *metrics):
    return LightevalTaskConfig(
        name=name, prompt_function=prompt, hf_repo="x/y", hf_subset="default", hf_avail_splits=["test"],
        evaluation_splits=["test"], few_shots_split=None, few_shots_select=None, generation_size=8, metrics=list(metrics),
    )

overlap = metric("overlap", Overlap(LEAST))
helped = metric("helped", Helped())
noted = metric("noted", Noted())
TASKS_TABLE = [task("named", overlap), task("helped", helped), task("noted", noted)]
"""


def test_a_metric_from_a_user_file_is_included(
    aigo: Run,
    tmp_path: Path,
    data_dir: Callable[[Splits], Path],
    scripted: Callable[[Mapping[str, str]], str],
) -> None:
    (tmp_path / "overlap.py").write_text(OVERLAP.replace("import helpers\n", ""))
    name = f"lighteval:{tmp_path / 'overlap.py'}@named"
    data = data_dir({"test": [{"q": "one", "a": "Santiago de Chile"}, {"q": "two", "a": "x y"}]})
    done = aigo("convert", name, "--to", "aigo", "--out", tmp_path / "aigo", "--data-dir", data)
    assert done.code == 0, done.err
    model = scripted({"one": "Santiago de Compostela", "two": "x"})
    wanted = aigo("run", name, "--data-dir", data, "--model", model, "--out", tmp_path / "n", "--json")
    (tmp_path / "overlap.py").unlink()

    got = aigo(
        "run", tmp_path / "aigo", "--engine", "lighteval", "--model", model, "--out", tmp_path / "a", "--json"
    )

    assert numbers(got) == numbers(wanted) == {"overlap": 0.5}
    text = (tmp_path / "aigo" / "task.yaml").read_text()
    assert "class Overlap(SampleLevelComputation)" in text
    assert str(tmp_path) not in text
    assert "TASKS_TABLE" not in text


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (
            "helped",
            "its code is in one of your files, and its code imports 'helpers', which is another file of yours",
        ),
        ("noted", "grades.txt"),
    ],
)
def test_a_metric_that_needs_other_files_is_refused_with_a_reason(
    task: str,
    reason: str,
    aigo: Run,
    tmp_path: Path,
    data_dir: Callable[[Splits], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "overlap.py").write_text(OVERLAP)
    (tmp_path / "helpers.py").write_text("def grade(text):\n    return 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    data = data_dir({"test": [{"q": "one", "a": "x"}]})
    done = aigo(
        "convert",
        f"lighteval:{tmp_path / 'overlap.py'}@{task}",
        "--out",
        tmp_path / "aigo",
        "--data-dir",
        data,
    )
    assert done.code == 1
    assert reason in done.err
    assert not (tmp_path / "aigo" / "task.yaml").exists()


def numbers(done: Any) -> dict[str, float]:
    """Return the metrics of a run without standard errors."""
    assert done.code == 0, done.err
    summary = done.json[0] if isinstance(done.json, list) else done.json
    return {row["name"]: row["value"] for row in summary["metrics"] if not row["name"].endswith("_stderr")}


def test_metrics_over_all_answers_become_python_metrics(
    aigo: Run,
    tmp_path: Path,
    data_dir: Callable[[Splits], Path],
    scripted: Callable[[Mapping[str, str]], str],
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    name = f"lighteval:{tmp_path / 'own.py'}@translated"
    texts = ["The cat sat on the mat.", "Über den Wolken", "東京 is far away from here", "one two three four"]
    data = data_dir({"test": [{"q": f"q{n}", "a": text} for n, text in enumerate(texts)]})
    done = aigo("convert", name, "--to", "aigo", "--out", tmp_path / "aigo", "--data-dir", data)
    assert done.code == 0, done.err
    said = ["The cat sat on a mat.", "unter den Wolken", "<think>x</think>東京 is far", "one two three four"]
    model = scripted({f"q{n}": text for n, text in enumerate(said)})

    native = aigo("run", name, "--data-dir", data, "--model", model, "--out", tmp_path / "n", "--json")
    own = aigo("run", tmp_path / "aigo", "--model", model, "--out", tmp_path / "a", "--json")

    expected = numbers(native)
    assert set(expected) == {"bleu", "chrf", "ter", "em"}
    assert 0 < expected["bleu"] < 100
    assert numbers(own) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("task", ["sciq", "weighed"])
def test_choice_likelihoods_are_scored_as_in_the_native_task(
    task: str, aigo: Run, tmp_path: Path, data_dir: Callable[[Splits], Path]
) -> None:
    folder = save_tiny_model(tmp_path / "model", chat=False)
    if task == "weighed":
        (tmp_path / "own.py").write_text(OWN.replace("choices=[row", "choices=[row['b'], row"))
        rows = [{"q": f"q{n} is", "a": " " + "an answer"[: n + 2], "b": " other"} for n in range(12)]
        name, data = f"lighteval:{tmp_path / 'own.py'}@weighed", data_dir({"test": rows})
    else:
        name, data = f"lighteval:{task}", data_dir(rows_of(task))
    done = aigo("convert", name, "--to", "aigo", "--out", tmp_path / "aigo", "--data-dir", data)
    assert done.code == 0, done.err
    model = ("--model", f"transformers/{folder}", "--json")

    native = aigo("run", name, "--data-dir", data, *model, "--out", tmp_path / "n")
    own = aigo("run", tmp_path / "aigo", "--engine", "lighteval", *model, "--out", tmp_path / "a")

    assert numbers(own) == pytest.approx(numbers(native), abs=1e-12)
    expected, scores = evidence_scores(native), evidence_scores(own)
    assert {sample_id: values["is_correct"] for sample_id, values in scores.items()} == {
        sample_id: values["acc"] for sample_id, values in expected.items()
    }
    assert task == "sciq" or len({values["acc"] for values in expected.values()}) == 2


def evidence_scores(done: Any) -> dict[str, dict[str, Any]]:
    """Return the scores of each sample."""
    assert done.code == 0, done.err
    summary = done.json[0] if isinstance(done.json, list) else done.json
    samples = json.loads(Path(summary["result"]).read_text("utf-8"))["evidence"]["samples"]
    return {
        str(sample["sample_id"]): {
            name: value for score in sample["trials"][0]["scores"] for name, value in score["values"].items()
        }
        for sample in samples
    }
