"""A task gives the same values run directly, and from its hosted and native file with the command of
lighteval."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_bridge.errors import UnsupportedPlanError, UsageError

from .conftest import Case, Direct, Export, Lighteval, Make, Ran

pytestmark = pytest.mark.xdist_group("lighteval")

RunDirect = Callable[..., Direct]

ROWS = [
    {"w": "x", "n": 1.5, "o": {"k": [1, None]}},
    {"w": "ü “q”\n", "n": 123456789012345678901234567890},
    {"w": "nobody knows", "n": -0.0},
    {"w": "  x", "n": "2024-01-01"},
    {"w": "y", "n": None},
]
ANSWERS = {"Say x": "x", "Say ü": "ü “q”\n", "Say   x": "x", "Say y": "<think>y</think>y and so on\nEND"}


def single(*messages: tuple[str, str]) -> dict[str, Any]:
    written = [{"role": role, "content": text} for role, text in messages or [("user", "Say {{ sample.w }}")]]
    return {
        "type": "single_turn_solver",
        "input_builder": {"type": "chat_completion", "input_messages": written},
    }


GENERIC = {
    "type": "single_turn_solver",
    "input_builder": {
        "type": "generic",
        "template": '{"messages": [{"role": "user", "content": {{ ("Say " ~ sample.w) | tojson }}}], "max_tokens": 7, "stop": ["\\nEND"]}',
    },
}
EXAMPLES = [
    ("user", "Say a"),
    ("assistant", "a"),
    ("user", "Say b"),
    ("assistant", "b"),
    ("user", "Say {{ sample.w }}"),
]
EQUALS = {"type": "string_equals", "ground_truth": "{{ sample.w }}"}
EVERY_METRIC = [
    {"type": "mean", "field": "is_correct", "name": "A / b"},
    {"type": "min", "field": "is_correct"},
    {"type": "max", "field": "is_correct"},
    {"type": "std_dev", "field": "is_correct"},
    {"type": "frequency", "field": "is_correct"},
]

NATIVE: dict[str, dict[str, Any]] = {
    "every metric": {"solver": single(), "scorers": [{**EQUALS, "metrics": EVERY_METRIC}]},
    "length and stop": {"solver": GENERIC, "scorers": [{**EQUALS, "ground_truth": "<think>y</think>y and so on"}]},
    "examples": {"solver": single(*EXAMPLES), "scorers": [EQUALS]},
    "several scorers": {
        "solver": single(),
        "scorers": [
            EQUALS,
            {"type": "string_equals", "key": "x-only", "ground_truth": "x", "metrics": []},
            {"type": "string_equals", "key": "documents", "ground_truth": "X", "value": "{{ solver_output.output | trim | upper }}"},
            {"type": "string_equals", "key": "mine", "ground_truth": "x", "value": "{{ sample.w | trim }}"},
            {"type": "string_equals_mcqa", "ground_truth_choice": "{{ sample.w[0] }}", "choices": "{{ ['x', 'y'] }}"},
            {"type": "bleu", "ground_truth": "{{ sample.w }} and so on", "metrics": [{"type": "std_dev", "field": "bleu_score"}]},
        ],
    },
    "action rules": {
        "solver": single(),
        "scorers": [{**EQUALS, "metrics": EVERY_METRIC}],
        "actions": [
            {"key": "a", "action": "exclude_from_metrics", "filter": {"op": "equals", "expression": "{{ sample.w }}", "value": "x"}},
        ],
    },
}  # fmt: skip


def spec(folder: Path) -> str:
    """Return the task name with the number of examples from the exported command."""
    manifest = json.loads((folder / "t" / "export.json").read_text())
    return next(word.strip("'") for word in str(manifest["commands"][0]).split() if "|" in word)


def by_backend(lighteval: Lighteval, folder: Path, made: Case) -> Ran:
    return lighteval(folder, "custom", "scripted", made.backend, spec(folder), "--custom-tasks", "t.py")


def scores_of(ran: Ran) -> list[dict[str, Any]]:
    """Return the values of each sample by scorer, from the texts of the hosted form."""
    return [
        {
            key: results[0][1].get("values")
            for key, results in json.loads(value["aigo"])[0].items()
            if "values" in results[0][1]
        }
        for value in ran.values
    ]


@pytest.mark.parametrize("name", NATIVE)
def test_direct_hosted_and_native_runs_are_equal(
    name: str, case: Make, direct: RunDirect, export: Export, lighteval: Lighteval
) -> None:
    """All samples, metrics and questions are equal."""
    answers = ANSWERS if name != "length and stop" else {"Say": "<think>y</think>y and so on"}
    made = case(NATIVE[name], ROWS, answers)
    if name == "length and stop":
        # Some backends continue after a stop sequence; a server does not.
        cut = {"Say": "<think>y</think>y and so on\nEND and on"}
        (made.folder / "answers.json").write_text(json.dumps(cut))
    wanted = direct(made)
    folder = export(made)
    native_folder = export(made, "--native", to="native")

    whole = lighteval(folder, "custom", made.model, "t/model.py", "aigo-t|0", "--custom-tasks", "t.py")
    hosted = by_backend(lighteval, folder, made)
    assert [made.asked[str(number)] for number in range(len(ROWS))] == wanted.asked
    native = by_backend(lighteval, native_folder, made)
    assert [made.asked[str(number)] for number in range(len(ROWS))] == wanted.asked

    expected = {**wanted.metrics, "num_errors": 0.0}
    assert whole.metrics == hosted.metrics == expected
    assert native.metrics == wanted.metrics
    assert scores_of(whole) == scores_of(hosted) == wanted.scores
    left_out = {number for number, value in enumerate(native.values) if None in value.values()}
    assert left_out == ({0} if name == "action rules" else set())
    assert [
        value for number, value in enumerate(native.values) if number not in left_out
    ] == [scores for number, scores in enumerate(wanted.scores) if number not in left_out]  # fmt: skip


def test_trials_become_answers_of_one_document(case: Make, export: Export, lighteval: Lighteval) -> None:
    """Answers differ between trials.

    aigo-bridge aggregates them in the hosted form, plain code in the native form.
    """
    fields = ["is_correct", "is_correct.pass@5", "all", "worst"]
    definition = {
        "solver": single(),
        "scorers": [
            {**EQUALS, "metrics": [{"type": kind, "field": field} for field in fields for kind in ("mean", "frequency")]},
            {"type": "bleu", "ground_truth": "x", "metrics": [{"type": "mean", "field": "bleu_score.max"}]},
        ],
        "trials": {
            "num_trials": 3,
            "score_aggregators": [
                {"score_name": "is_correct", "aggregator": {"function": "pass@k", "k": 5}},
                {"score_name": "is_correct", "aggregator": {"function": "pass^k", "k": 2, "score_name": "all"}},
                {"score_name": "is_correct", "aggregator": {"function": "min", "score_name": "worst"}},
                {"score_name": "bleu_score", "aggregator": {"function": "max"}},
            ],
        },
    }  # fmt: skip
    made = case(definition, ROWS, {"Say x": ["x", "y", "x"], "Say y": ["", "y and x", "y"]})
    hosted = by_backend(lighteval, export(made), made)
    native = by_backend(lighteval, export(made, "--native", to="native"), made)
    assert hosted.metrics.pop("num_errors") == 0.0
    assert native.metrics == hosted.metrics
    assert native.metrics["string_equals.is_correct_mean"] == pytest.approx((2 / 3 + 1 / 3) / 5)
    assert native.metrics["string_equals.is_correct.pass@5_mean"] == pytest.approx(
        (1 - (1 / 3) ** 5 + 1 - (2 / 3) ** 5) / 5
    )


def test_a_failed_sample_does_not_fail_others(
    case: Make, direct: RunDirect, export: Export, lighteval: Lighteval
) -> None:
    made = case(
        {"solver": single(), "scorers": [EQUALS]}, ROWS, {**ANSWERS, "Say y": {"error": "out of order"}}
    )
    wanted = direct(made)
    whole = lighteval(export(made), "custom", made.model, "t/model.py", "aigo-t|0", "--custom-tasks", "t.py")
    assert wanted.num_errors == 1
    assert whole.metrics == {**wanted.metrics, "num_errors": 1.0}


def test_an_import_keeps_failed_samples(
    case: Make, export: Export, lighteval: Lighteval, aigo: Run, tmp_path: Path
) -> None:
    python = {
        "type": "python",
        "key": "picky",
        "compute_scores_snippet": "def compute_scores(sample, solver_output):\n    return {'n': 1 / (sample['w'] != 'x')}\n",
    }
    made = case(
        {"solver": single(), "scorers": [EQUALS, python]},
        ROWS,
        {**ANSWERS, "Say y": {"error": "out of order"}},
    )
    ran = lighteval(export(made), "custom", made.model, "t/model.py", "aigo-t|0", "--custom-tasks", "t.py")
    (results,) = tmp_path.glob("lighteval-*")

    done = aigo("import", results, "--out", tmp_path / "back")

    assert (done.code, ran.metrics["num_errors"]) == (0, 2.0)
    (written,) = (tmp_path / "back").glob("*.tasklog.json")
    evidence = json.loads(written.read_text("utf-8"))["evidence"]
    assert evidence["failures"] == {"num_errors": 2, "num_total": 5}
    errors = {sample["sample_id"]: sample["trials"][0]["errors"] for sample in evidence["samples"]}
    assert {name: [error["stage"] for error in found] for name, found in errors.items()} == {
        "0": ["score"], "1": [], "2": [], "3": [], "4": ["solver"]
    }  # fmt: skip
    assert errors["0"][0]["message"].startswith("scorer 'picky': ")
    assert "out of order" in errors["4"][0]["message"]


def test_an_import_keeps_solver_and_scorer_failures_of_a_backend_run(
    case: Make, export: Export, lighteval: Lighteval, aigo: Run, tmp_path: Path
) -> None:
    rows = [{"w": "x", "n": 1}, {"w": "y", "n": 0}]
    made = case(
        {"solver": single(("user", "Say {{ sample.w }}{{ 1 // sample.n }}")), "scorers": [EQUALS]}, rows
    )
    ran = by_backend(lighteval, export(made), made)
    (results,) = tmp_path.glob("lighteval-*")

    assert aigo("import", results, "--out", tmp_path / "back").code == 0

    assert ran.metrics["num_errors"] == 1.0
    (written,) = (tmp_path / "back").glob("*.tasklog.json")
    evidence = json.loads(written.read_text("utf-8"))["evidence"]
    assert evidence["failures"] == {"num_errors": 1, "num_total": 2}
    stages = [[error["stage"] for error in sample["trials"][0]["errors"]] for sample in evidence["samples"]]
    assert stages == [[], ["solver"]]


def test_conversations_and_judges_run_with_the_exported_model(
    case: Make, direct: RunDirect, export: Export, lighteval: Lighteval, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other lighteval models are refused with a reason and without a metric."""
    definition = {
        "solver": {
            "type": "multi_turn_solver",
            "message_builders": [
                {"type": "chat_message", "role": "user", "content": "Say {{ sample.w }}"},
                {"type": "generate"},
                {"type": "chat_message", "role": "user", "content": "{{ sample.w }} again"},
                {"type": "generate"},
            ],
        },
        "scorers": [
            EQUALS,
            {
                "type": "model_as_a_judge_classifier",
                "model_key": "my-judge",
                "user_prompt": "Judge {{ solver_output.output }}",
                "correct_labels": ["?"],
                "incorrect_labels": ["bad"],
            },
        ],
    }
    made = case(definition, ROWS[:2], ANSWERS)
    wanted = direct(made, "--model-map", f"my-judge={made.model}")
    folder = export(made)
    words = ("custom", made.model, "t/model.py", "aigo-t|0", "--custom-tasks", "t.py")
    with pytest.raises(UsageError, match="my-judge"):
        lighteval(folder, *words)
    monkeypatch.setenv("AIGO_BRIDGE_MODELS", f"my-judge={made.model}")
    whole = lighteval(folder, *words)
    assert whole.metrics == {**wanted.metrics, "num_errors": float(wanted.num_errors)}
    assert len(json.loads((folder / "t" / "export.json").read_text())["commands"]) == 1
    with pytest.raises(UnsupportedPlanError, match=r"(?s)model\.py.*one question with one answer"):
        lighteval(folder, "custom", "scripted", made.backend, "aigo-t|0", "--custom-tasks", "t.py")


def test_a_different_number_of_examples_is_refused(case: Make, export: Export, lighteval: Lighteval) -> None:
    made = case(NATIVE["examples"], ROWS, ANSWERS)
    for form in ((), ("--native",)):
        folder = export(made, *form, to="with" + "".join(form))
        with pytest.raises((UnsupportedPlanError, ValueError), match=r"\|2"):
            lighteval(folder, "custom", "scripted", made.backend, "aigo-t|0", "--custom-tasks", "t.py")


def test_max_samples_scores_only_the_selected_samples(
    case: Make, export: Export, lighteval: Lighteval
) -> None:
    """lighteval draws the samples, and metrics count only these."""
    made = case({"solver": single(), "scorers": [EQUALS]}, ROWS, ANSWERS)
    folder = export(made)
    words = ("custom", made.model, "t/model.py", "aigo-t|0", "--custom-tasks", "t.py")
    whole, part = lighteval(folder, *words), lighteval(folder, *words, "--max-samples", "2")
    assert (len(whole.details), len(part.details)) == (5, 2)
    known = {detail["doc"]["id"]: detail["metric"]["aigo"] for detail in whole.details}
    chosen = [
        json.loads(known[detail["doc"]["id"]])[0]["string_equals"][0][1]["values"] for detail in part.details
    ]
    mean = sum(each["is_correct"] for each in chosen) / 2
    assert part.metrics["string_equals.accuracy"] == mean
