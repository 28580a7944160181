"""A converted task asks the same messages and gives the same sample scores as the native one, whatever the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import value_to_float
from tests.support.commands import Run

MODEL = ("--model", "scripted/answers.jsonl")


def run(aigo: Run, *args: object) -> tuple[EvalLog, Any]:
    """The native log of a run, and its summary."""
    done = aigo("run", *args, *MODEL, "--json")
    assert done.code == 0, done.err
    summary = done.json[0] if isinstance(done.json, list) else done.json
    return read_eval_log(summary["native_log"]), summary


def asked(log: EvalLog) -> dict[str, list[tuple[str, str]]]:
    """What the model was asked for each sample."""
    found: dict[str, list[tuple[str, str]]] = {}
    for sample in log.samples or []:
        (call,) = [event for event in sample.events if event.event == "model"]
        found[str(sample.id)] = [(message.role, message.text) for message in call.input]
    return found


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("matching", ()),
        ("numbers", ()),
        ("choices", ("-T", "cot=true")),
        ("several_correct", ()),
        ("few_shot", ()),
    ],
)
def test_messages_and_sample_scores_are_the_same(
    task: str, options: tuple[str, ...], aigo: Run, benchmarks: Path
) -> None:
    name = f"inspect:{benchmarks / 'converted.py'}@{task}"
    done = aigo("convert", name, "--to", "aigo", "--out", "aigo", *options)
    assert done.code == 0, done.err
    assert aigo("validate", "aigo").code == 0

    native, native_summary = run(aigo, name, *options, "--out", "native")
    own, own_summary = run(aigo, "aigo", "--out", "own")

    assert asked(own) == asked(native)
    assert len(asked(own)) == 24
    number = value_to_float()
    expected = {
        (str(sample.id), key): number(score.value)
        for sample in native.samples or []
        for key, score in (sample.scores or {}).items()
    }
    found = {
        (str(sample.id), key): number(score.value)
        for sample in own.samples or []
        for key, score in (sample.scores or {}).items()
    }
    assert found == expected
    assert len(set(expected.values())) > 1
    means = [row["value"] for row in native_summary["metrics"] if row["name"] in ("accuracy", "mean")]
    assert [row["value"] for row in own_summary["metrics"]] == pytest.approx(means, abs=1e-12)


def test_what_cannot_be_said_is_refused_with_all_reasons(aigo: Run, benchmarks: Path) -> None:
    done = aigo("convert", f"inspect:{benchmarks / 'others.py'}@judged", "--out", "aigo")

    assert done.code == 1
    for reason in ("self_critique", "model_graded_qa", "pass_at_2"):
        assert reason in done.err
    assert not Path("aigo").exists()


def test_choices_that_are_shuffled_anew_are_refused(aigo: Run, benchmarks: Path) -> None:
    done = aigo("convert", f"inspect:{benchmarks / 'others.py'}@shuffled", "--out", "aigo")

    assert done.code == 1
    assert "shuffles" in done.err


def test_a_converted_task_is_not_overwritten_unless_forced(aigo: Run, benchmarks: Path) -> None:
    name = f"inspect:{benchmarks / 'converted.py'}@numbers"
    assert aigo("convert", name, "--out", "aigo").code == 0
    assert aigo("convert", name, "--out", "aigo").code == 2
    assert aigo("convert", name, "--out", "aigo", "--force").code == 0
