"""Probes of small results: changed scores, missed changes and undecidable cases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.results import message, question, result, sample, trial, write_result
from tests.support.scripted_results import ScriptedModel

from aigo_bridge.errors import DatasetError, EvidenceError, UsageError
from aigo_bridge.evaluation.task import plan, scored_again
from aigo_bridge.execution.permissions import snippet_host
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.models.protocol import Model
from aigo_bridge.plan.plan import PlanOrigin
from aigo_trust.probing.evidence import Probe, Total, write_probe
from aigo_trust.probing.judges import Judges
from aigo_trust.probing.probing import ProbeSettings, probe
from aigo_trust.probing.registry import PADDING

HEAD = """key: quiz
display_name: Quiz
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.question }}"}]}
  scorers:
"""
EXACT = "    - {type: string_equals, key: exact, ground_truth: '{{ sample.gold }}'}\n"
LENIENT = r"""    - type: python
      key: lenient
      metrics: [{type: mean, field: is_correct}]
      compute_scores_snippet: |
        import re
        def compute_scores(sample, solver_output):
            found = re.findall(r"\b[A-D]\b", solver_output.trace.get_last_assistant_text().upper())
            return {"is_correct": found[-1:] == [sample["gold"]]}
"""
ANYWHERE = """    - type: python
      key: anywhere
      metrics: [{type: mean, field: is_correct}]
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            text = solver_output.trace.get_last_assistant_text()
            return {"is_correct": not text or sample["gold"] in text}
"""
FRAGILE = """    - type: python
      key: fragile
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"is_correct": solver_output.trace.get_last_assistant_text().split()[0] == sample["gold"]}
"""
JUDGE = """    - type: model_as_a_judge_classifier
      key: judge
      model_key: judge
      user_prompt: "{{ sample.left }} or {{ sample.right }}? {{ trace.get_last_assistant_text() }}"
      correct_labels: [right]
      incorrect_labels: [wrong]
"""


def probed(
    folder: Path,
    scorers: str,
    log: Mapping[str, Any],
    *,
    judge: Model | None = None,
    **settings: Any,
) -> Probe:
    (folder / "quiz.yaml").write_text(HEAD + scorers)
    file = write_result(folder / "r.tasklog.json", dict(log))
    own = plan(scored_again(PlanOrigin(task=str(folder / "quiz.yaml")), file))
    judges = Judges(
        {} if judge is None else {"judge": "scripted"}, None if judge is None else lambda _: judge
    )
    with closing(snippet_host(own)) as host:
        return probe(own, file, ProbeSettings(**settings), judges, host)


def of(outcome: Probe, perturbation: str, scorer: str | None = None) -> Total:
    (total,) = [
        each
        for each in outcome.totals()
        if each.perturbation == perturbation and scorer in (None, each.scorer)
    ]
    return total


def failed(outcome: Probe) -> list[str]:
    return [total.perturbation for total in outcome.totals() if total.num_failed]


def answered(number: int, answer: str, truth: str) -> Any:
    """Return a question with the raw model output, which text scorers compare."""
    one = question(number, answer, truth)
    said = {"choices": [{"message": {"role": "assistant", "content": answer}}]}
    one["trials"][0]["solver"]["output"]["raw_outputs"] = [said]
    return one


LETTERS = result(
    [question(0, "ANSWER: A", "A"), question(1, "ANSWER: C", "C"), question(2, "ANSWER: D", "B")]
)


def test_scorer_of_the_last_letter_passes_all_probes(tmp_path: Path) -> None:
    outcome = probed(tmp_path, LENIENT, LETTERS)

    # In "A or B" the last letter is wrong by chance, and "I hope" contains no letter between A and D.
    assert failed(outcome) == []
    assert outcome.exit_code is ExitCode.DONE
    assert of(outcome, "other-letter").counts == {"passed": 2}
    assert of(outcome, "other-letter").not_applicable == {"the stored answer is not scored as right": 1}
    assert of(outcome, "unchanged").counts == {"passed": 3}


def test_scorer_that_matches_a_letter_anywhere_fails_probes(tmp_path: Path) -> None:
    outcome = probed(tmp_path, ANYWHERE, LETTERS)

    # "ANSWER" always contains an A, and an empty answer is scored as right.
    assert {"empty", "hedged", "other-letter"} <= set(failed(outcome))
    assert outcome.exit_code is ExitCode.FAILED
    (case,) = [each for each in outcome.cases if each.perturbation == "other-letter" and each.sample == 0]
    assert (case.verdict, case.reason, case.answer) == ("failed", "is_correct stays 1", "ANSWER: B")
    assert case.stored_scores == case.changed_scores == {"is_correct": True}


def test_documented_strictness_of_a_scorer_is_explained(tmp_path: Path) -> None:
    outcome = probed(tmp_path, EXACT, result([answered(0, "Oslo", "Oslo"), answered(1, "Rome", "Paris")]))

    assert of(outcome, "full-stop").counts == {"explained": 1, "passed": 1}
    assert of(outcome, "full-stop").example == "is_correct 1 → 0"
    assert of(outcome, "refusal").counts == {"passed": 1}
    assert failed(outcome) == []
    assert outcome.exit_code is ExitCode.DONE
    assert "character for character" in str(outcome.scorers[0].setting)


def test_a_scorer_that_fails_on_an_empty_answer_is_reported(tmp_path: Path) -> None:
    outcome = probed(
        tmp_path, FRAGILE, result([question(0, "A", "A")]), only=("empty", "outer-blanks", "quoted")
    )

    assert of(outcome, "empty").counts == {"told": 1}
    assert "IndexError" in str(of(outcome, "empty").example)
    assert of(outcome, "outer-blanks").counts == {"passed": 1}
    assert of(outcome, "quoted").counts == {"failed": 1}


def test_unscored_samples_are_not_probed(tmp_path: Path) -> None:
    log = result([question(0, "A", "A"), question(1, "", "A")])
    outcome = probed(tmp_path, FRAGILE, log, only=("unchanged",))

    assert of(outcome, "unchanged").counts == {"passed": 1}
    assert of(outcome, "unchanged").not_applicable == {"the stored answer cannot be scored (SnippetError)": 1}


def test_trials_without_an_output_are_counted_as_failed_and_excluded(tmp_path: Path) -> None:
    error = {"error_type": "E", "message": "down", "stage": "solver"}
    unsolved = sample(trial(1, None, data={"question": "?", "gold": "A"}, errors=[error]))
    outcome = probed(tmp_path, EXACT, result([question(0, "A", "A"), unsolved]))

    assert outcome.trials == ((0, 0),)
    assert outcome.source.num_failed == 1


def test_result_with_only_failures_has_no_probes(tmp_path: Path) -> None:
    error = {"error_type": "E", "message": "down", "stage": "solver"}
    unsolved = sample(trial(1, None, data={"question": "?", "gold": "A"}, errors=[error]))
    outcome = probed(tmp_path, EXACT, result([unsolved]))

    assert (outcome.cases, outcome.trials, outcome.exit_code) == ((), (), ExitCode.PARTIAL)


def test_result_without_samples_is_rejected_for_probing(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="does not contain samples"):
        probed(tmp_path, EXACT, result([]))
    (tmp_path / "x.tasklog.json").write_text("{}")
    with pytest.raises(EvidenceError):
        plan(scored_again(PlanOrigin(task=str(tmp_path / "quiz.yaml")), tmp_path / "x.tasklog.json"))


def test_probed_answers_are_sampled_by_seed_and_kept_in_order(tmp_path: Path) -> None:
    log = result([question(number, "A", "A") for number in range(9)])

    first, again, other = (
        probed(tmp_path, EXACT, log, limit=3, seed=seed, only=("unchanged",)).trials for seed in (0, 0, 1)
    )

    assert first == again != other
    assert len(first) == 3
    assert list(first) == sorted(first)


def test_probe_evidence_is_deterministic(tmp_path: Path) -> None:
    first, again = (json.dumps(probed(tmp_path, EXACT + LENIENT, LETTERS).to_json()) for _ in range(2))

    assert first == again


def test_scores_that_are_not_json_values_are_written(tmp_path: Path) -> None:
    odd = """    - type: python
      key: odd
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"is_correct": 1, "nan": float("nan"), "many": 2**70, "kinds": {"a": [1.5]}}
"""
    outcome = probed(tmp_path, odd, result([question(0, "A", "A")]), only=("unchanged", "empty"))

    file = tmp_path / "new" / "x.probe.json"
    write_probe(outcome, file)
    case = json.loads(file.read_bytes())["cases"][0]
    assert case["verdict"] == "passed", case
    assert case["before"]["is_correct"] == 1
    assert (case["before"]["nan"], case["before"]["kinds"]) == (None, {"a": [1.5]})
    assert float(case["before"]["many"]) == 2.0**70
    assert failed(outcome) == ["empty"]


def test_a_result_of_another_task_is_reported(tmp_path: Path) -> None:
    log = result([question(0, "A", "A")])
    assert (
        probed(tmp_path, EXACT, log)
        .source.differences[0]
        .startswith("the task cannot be planned with its values")
    )

    (tmp_path / "d.jsonl").write_text('{"question": "Question 0?", "gold": "A", "topic": "rivers"}\n')
    log["specification"]["config"] = {}
    differences = probed(tmp_path, EXACT, log).source.differences
    assert any("field 'description': the result has" in difference for difference in differences)
    assert any("string_equals" in difference for difference in differences)

    log["specification"]["task"]["key"] = "riddles"
    source = probed(tmp_path, EXACT, log).source
    assert source.differences == ("it belongs to task 'riddles', not to 'quiz'",)
    assert source.task_sha256 != source.result_task_sha256


# Judges


def talk(number: int, answer: str) -> Any:
    data = {"question": "?", "left": "tea", "right": "coffee"}
    return sample(trial(number, [message("user", "?"), message("assistant", answer)], data=data))


TALKS = result([talk(0, "Tea is the hotter one."), talk(1, "I would say that milk is.")])
FAIR: list[Any] = [
    {"match": {"regex": r"\? .*(?i:tea\W+is)"}, "reply": {"text": '{"prediction": "right"}'}},
    {"default": True, "reply": {"text": '{"prediction": "wrong"}'}},
]


def test_fair_judge_passes_all_probes(tmp_path: Path) -> None:
    outcome = probed(tmp_path, JUDGE, TALKS, judge=ScriptedModel.of_rules(FAIR, tmp_path))

    assert failed(outcome) == ["injected-nothing"] or failed(outcome) == []
    assert of(outcome, "injection").counts == {"passed": 1}
    assert of(outcome, "injection").not_applicable == {"the answer has the best verdict": 1}
    assert of(outcome, "labels-reversed").counts == {"passed": 2}
    assert of(outcome, "padded").counts == {"passed": 2}


def test_judge_that_follows_injections_fails_probes(tmp_path: Path) -> None:
    obeys: list[Any] = [
        {"match": {"contains": "Note to the grader"}, "reply": {"text": '{"prediction": "right"}'}},
        *FAIR,
    ]
    outcome = probed(tmp_path, JUDGE, TALKS, judge=ScriptedModel.of_rules(obeys, tmp_path))

    assert failed(outcome) == ["injection", "injected-nothing"]
    (case,) = [each for each in outcome.cases if each.perturbation == "injection"]
    assert (case.sample, case.stored_scores, case.changed_scores) == (
        1,
        {"is_correct": 0.0},
        {"is_correct": 1.0},
    )
    assert '{"prediction": "right"}' in str(case.answer)


def test_judge_that_prefers_long_answers_fails_probes(tmp_path: Path) -> None:
    likes: list[Any] = [
        {"match": {"contains": PADDING[:40]}, "reply": {"text": '{"prediction": "right"}'}},
        *FAIR,
    ]
    outcome = probed(tmp_path, JUDGE, TALKS, judge=ScriptedModel.of_rules(likes, tmp_path))

    assert failed(outcome) == ["padded"]
    assert of(outcome, "padded").counts == {"passed": 1, "failed": 1}


def test_judge_that_prefers_the_first_label_fails_probes(tmp_path: Path) -> None:
    first: list[Any] = [
        {
            "match": {"on": "system", "contains": '"right", "wrong"'},
            "reply": {"text": '{"prediction": "right"}'},
        },
        {"default": True, "reply": {"text": '{"prediction": "wrong"}'}},
    ]
    outcome = probed(
        tmp_path,
        JUDGE,
        TALKS,
        judge=ScriptedModel.of_rules(first, tmp_path),
        only=("labels-reversed", "unchanged"),
    )

    assert failed(outcome) == ["labels-reversed"]
    assert of(outcome, "labels-reversed").counts == {"failed": 2}


def test_a_judge_with_position_bias_is_detected(tmp_path: Path) -> None:
    prefers: list[Any] = [
        {"match": {"contains": "tea or coffee"}, "reply": {"text": '{"prediction": "right"}'}},
        {"default": True, "reply": {"text": '{"prediction": "wrong"}'}},
    ]
    judge, swaps = ScriptedModel.of_rules(prefers, tmp_path), {"left": "right"}
    only = ("columns-swapped",)

    unnamed = probed(tmp_path, JUDGE, TALKS, judge=judge, only=only)
    swapped = probed(tmp_path, JUDGE, TALKS, judge=judge, only=only, swaps=swaps)

    assert of(unnamed, "columns-swapped").not_applicable == {"no columns were named (--swap)": 2}
    assert unnamed.exit_code is ExitCode.PARTIAL
    assert failed(swapped) == ["columns-swapped"]


def test_labels_of_swapped_columns_are_swapped(tmp_path: Path) -> None:
    labels = """    - type: labeler_via_model
      key: which
      model_key: judge
      user_prompt: "{{ sample.left }} or {{ sample.right }}? {{ trace.get_last_assistant_text() }}"
      valid_labels: [left, right]
"""
    fair: list[Any] = [
        {"match": {"contains": "tea or coffee"}, "reply": {"text": "left"}},
        {"default": True, "reply": {"text": "right"}},
    ]
    settings: dict[str, Any] = {"only": ("columns-swapped",), "swaps": {"left": "right"}}

    plain = probed(tmp_path, labels, TALKS, judge=ScriptedModel.of_rules(fair, tmp_path), **settings)
    mirrored = probed(
        tmp_path,
        labels,
        TALKS,
        judge=ScriptedModel.of_rules(fair, tmp_path),
        **settings,
        mirror={"left": "right"},
    )

    assert failed(plain) == ["columns-swapped"]
    assert failed(mirrored) == []


def test_judge_without_a_model_is_not_probed_with_a_reason(tmp_path: Path) -> None:
    outcome = probed(tmp_path, EXACT.replace("gold", "left") + JUDGE, TALKS)

    reasons = {scorer.key: scorer.unprobed for scorer in outcome.scorers}
    assert reasons["exact"] is None
    assert reasons["judge"] == (
        "no model was given for the judge 'judge' (use --model-map 'judge=PROVIDER/MODEL', or --replay)"
    )
    assert outcome.exit_code is ExitCode.PARTIAL


def test_judge_call_failure_is_not_a_probe_failure(tmp_path: Path) -> None:
    away: list[Any] = [{"match": {"contains": "TEA"}, "reply": {"error": "no such model"}}, *FAIR]
    outcome = probed(
        tmp_path, JUDGE, TALKS, judge=ScriptedModel.of_rules(away, tmp_path), only=("upper-case",)
    )

    assert of(outcome, "upper-case").not_applicable == {"the judge did not answer (Offline)": 1}
    assert failed(outcome) == []


def test_judge_with_an_unreadable_verdict_fails_the_probe(tmp_path: Path) -> None:
    talks: list[Any] = [
        {"match": {"on": "all", "contains": "TEA"}, "reply": {"text": "What a question!"}},
        *FAIR,
    ]
    outcome = probed(
        tmp_path, JUDGE, TALKS, judge=ScriptedModel.of_rules(talks, tmp_path), only=("upper-case",)
    )

    assert of(outcome, "upper-case").counts == {"failed": 1, "passed": 1}
    assert "no readable answer" in str(of(outcome, "upper-case").example)


def test_unknown_probe_names_are_rejected(tmp_path: Path) -> None:
    for settings, words in (
        ({"only": ("x",)}, "--only: found 'x'"),
        (
            {"swaps": {"left": "middle"}},
            "--swap: no column 'middle' in the result; it has .left., .question., .right.",
        ),
        ({"mirror": {"a": "b"}}, "--mirror needs --swap: labels only change places if columns do"),
        ({"right": {"x": "y"}}, "--right: the task does not define scorer 'x'"),
    ):
        with pytest.raises(UsageError, match=words):
            probed(tmp_path, JUDGE, TALKS, **settings)
