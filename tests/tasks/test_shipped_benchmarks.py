"""Every shipped benchmark, offline, with made-up rows and scripted answers: metrics are counted by hand from both files."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import TASKS, Run

Load = Callable[[Path], dict[str, Any]]
JUDGE = "openai$gpt-4-1-mini"


@dataclass(frozen=True)
class Expected:
    """Expected result of a run."""

    values: dict[str, float]
    """Metric name → value."""
    num_samples: int
    excluded: int = 0
    approximately: dict[str, float] = field(default_factory=dict)
    """Values whose last digits come from a library's own arithmetic, to 1e-9."""


# Comments name the rows (from 1) that count, in the order of the data; why is said beside each scripted answer's row.
EXPECTED = {
    # Right: 1 to 4 and 9; 6 is wrong; 5 and 8 do not say "ANSWER:", 7 is empty, 10 refuses.
    "mmlu": Expected({"accuracy": 5 / 10}, 10),
    # Right: 1, 2, 4, 7. By category: physics 2/2, math 1/3, business 0/1, chemistry 1/2.
    "mmlu-pro": Expected(
        {
            "accuracy": 4 / 8,
            "accuracy_physics": 1.0,
            "accuracy_math": 1 / 3,
            "accuracy_business": 0.0,
            "accuracy_chemistry": 1 / 2,
            "macro_accuracy": (1 + 1 / 3 + 0 + 1 / 2) / 4,
        },
        8,
    ),
    # Right: 1, 2, 4, 5; 7 names a wrong choice; 3, 6, 8, 9 (another colon) and 10 name none.
    "arc": Expected({"accuracy": 4 / 10, "answered": 5 / 10}, 10),
    # Right: 1, 2, 3, 7. Four of eight: the sample variance is 8 · 0.25 / 7.
    "hellaswag": Expected({"accuracy": 4 / 8, "std_dev": math.sqrt(2 / 7)}, 8),
    # Right: 1, 2, 4. Letters in alphabetical order of the choices: B, A, A, A, B, A.
    "truthfulqa-mc": Expected({"accuracy": 3 / 6}, 6),
    # TP 1, 3; FP 4; TN 2, 5; FN 6; 7 and 8 say neither.
    "boolq": Expected(
        {
            "overall_accuracy": 4 / 8,
            "accuracy": 4 / 6,
            "precision": 2 / 3,
            "recall": 2 / 3,
            "f1_score": 4 / 6,
        },
        8,
    ),
    # Right: 1, 3, 6; 2 counts equal heights, 4 refuses, and of 5 the import before the function is cut off.
    "humaneval": Expected({"pass@1": 3 / 6}, 6),
    # Of five trials pass 5, 0, 5, 1, 2, 0 (a syntax error); pass@2 of one is 4/10, of two 7/10.
    "mbpp": Expected({"pass@1": 13 / 30, "pass@2": (2 + 0.4 + 0.7) / 6, "pass@5": 4 / 6}, 6),
    # Right: 1, 2, 3, 6, 8.
    "commonsenseqa": Expected({"accuracy": 5 / 8}, 8),
    # Right: 1, 2, 3, 5, 7.
    "winogrande": Expected({"accuracy": 5 / 8}, 8),
    # As given: 1, 2, 3, 5. Swapped: 1, 3, 5, 6. Both: 1, 3, 5. The same letter twice: 2.
    "piqa": Expected(
        {
            "accuracy": 4 / 6,
            "accuracy_swapped": 4 / 6,
            "accuracy_in_both_orders": 3 / 6,
            "position_bias": 1 / 6,
        },
        6,
    ),
    # By the last number: 1 to 6; 7 ends with 90, 8 with 35 / 5. By the mark: 1 and 7; that of 3 has a currency sign, that of 4 a full stop.
    "gsm8k": Expected({"accuracy": 6 / 10, "official_accuracy": 2 / 10}, 10),
    # Two trials each. Shares of right ones: 1, 1, 1, 1/2, 1/2, 1, 0, 0; 7 and 8 have no line of the answer.
    "math-500": Expected(
        {
            "accuracy": 5 / 8,
            "answered": 6 / 8,
            "all_trials_correct": 4 / 8,
            "some_trial_correct": 6 / 8,
            "pass@2": (4 + 2 * 0.75) / 8,
            "pass^2": (4 + 2 * 0.25) / 8,
        },
        8,
    ),
    # F1: {44} in {44, yards} 2/3 → 0.67; {ola, bergjon, ruiz} and {jon, ruiz, ola, berg} 4/7 → 0.57; 1; {may, 1891} in five words 0.57; 1;
    # {ola, berg} and {jon, berg} 0.5; 0; 0. By the official script the second has one of two spans, 2/3 / 2 → 0.33. Only "3,300" is 3300,
    # and "the herons!" no text that is equal.
    "drop": Expected(
        {
            "f1": (0.67 + 0.57 + 1 + 0.57 + 1 + 0.5) / 8,
            "exact_match": 0.0,
            "official_f1": (0.67 + 0.33 + 1 + 0.57 + 1 + 0.5) / 8,
            "official_exact_match": 2 / 8,
        },
        8,
    ),
    # Exact: 1, 3, 4, 8; F1 of 2: 2 of its 5 words, both gold words: 4/7. "Unanswerable": right for 3, 8; wrong for 5, 7; missed for 6.
    "squad-v2": Expected(
        {
            "exact": 4 / 8,
            "f1": (4 + 4 / 7) / 8,
            "has_answer_exact": 2 / 5,
            "has_answer_f1": (2 + 4 / 7) / 5,
            "no_answer_exact": 2 / 3,
            "no_answer_f1": 2 / 3,
            "no_answer_precision": 2 / 4,
            "no_answer_recall": 2 / 3,
            "no_answer_detection_f1": 4 / 7,
        },
        8,
    ),
    # All instructions of: 1, 2, 4, 5, 6; loosely also 7. Of 12 instructions 8 (1: 2, 2: 1, 4: 1, 5: 2, 6: 1, 7: 1), loosely 9; "yes" alone is not
    # detected as English.
    "ifeval": Expected(
        {
            "prompt_level_strict": 5 / 8,
            "prompt_level_loose": 6 / 8,
            "instruction_level_strict": 8 / 12,
            "instruction_level_loose": 9 / 12,
        },
        8,
    ),
    # Right: 3, 4, 6. Ambiguous 1, 3, 5, 7: accuracy 1/4, biased 2 of 3. Disambiguated: accuracy 2/4, biased 2 (rows 2, 6) of 3.
    # Letters of the seven that chose one, true → said: C→A, B→A, C→C, A→A, A→B, B→B, A→B.
    "bbq": Expected(
        {
            "overall_accuracy": 3 / 8,
            "kind_target": 6 / 8,
            "kind_unknown": 1 / 8,
            "kind_none": 1 / 8,
            "accuracy_ambiguous": 1 / 4,
            "bias_ambiguous": 3 / 4 * (2 * 2 / 3 - 1),
            "num_in_bias_ambiguous": 3,
            "accuracy_disambiguated": 2 / 4,
            "bias_disambiguated": 2 * 2 / 3 - 1,
            "num_in_bias_disambiguated": 3,
            "accuracy": 3 / 7,
            "A_precision": 1 / 3,
            "A_recall": 1 / 3,
            "A_f1_score": 1 / 3,
            "B_precision": 1 / 3,
            "B_recall": 1 / 2,
            "B_f1_score": 2 / 5,
            "C_precision": 1.0,
            "C_recall": 1 / 2,
            "C_f1_score": 2 / 3,
            "macro_precision": (1 / 3 + 1 / 3 + 1) / 3,
            "macro_recall": (1 / 3 + 1 / 2 + 1 / 2) / 3,
            "macro_f1_score": (1 / 3 + 2 / 5 + 2 / 3) / 3,
        },
        8,
    ),
    # True and informative 1, 4; true but uninformative 2, 5; false but informative 3; neither 6.
    "truthfulqa-generation": Expected(
        {
            "label_true_and_informative": 2 / 6,
            "label_true_but_uninformative": 2 / 6,
            "label_false_but_informative": 1 / 6,
            "label_false_and_uninformative": 1 / 6,
            "truthful": 4 / 6,
            "informative": 3 / 6,
            "truthful_and_informative": 2 / 6,
        },
        6,
    ),
    # Correct 1, 2, 6, 8; incorrect 3, 7; not attempted 4, 5. F = 2 · 1/2 · 2/3 / (1/2 + 2/3) = 4/7.
    "simpleqa": Expected(
        {
            "accuracy": 4 / 8,
            "accuracy_given_attempted": 4 / 6,
            "f_score": 4 / 7,
            "label_CORRECT": 4 / 8,
            "label_INCORRECT": 2 / 8,
            "label_NOT_ATTEMPTED": 2 / 8,
        },
        8,
    ),
    # Ratings of six turns: 8, 1, 10, 10, 7, 1.
    "mt-bench": Expected(
        {
            "mt_bench_score": 37 / 6,
            "score_0_to_1": (7 + 0 + 9 + 9 + 6 + 0) / 9 / 6,
            "lowest": 0.0,
            "highest": 1.0,
        },
        3,
    ),
    # Sentence 1 shares 6 of 7, 4 of 6, 3 of 5, 2 of 4 n-grams; 4 is empty, the others are equal. Over the corpus: 33 of 34, 27 of 29,
    # 22 of 24, 17 of 19, and 34 words for 38.
    "wmt14": Expected(
        {},
        6,
        approximately={
            "mean_sentence_bleu": (4 + (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25) / 6,
            "corpus_bleu": 100 * math.exp(1 - 38 / 34) * (33 / 34 * 27 / 29 * 22 / 24 * 17 / 19) ** 0.25,
        },
    ),
    # Longest common subsequences of stems: 7 of 7 and 7; 6 of 10 and 8; 5 of 5 and 11; 0; 1 of 1 and 5; 4 of 4 and 7. No word of them
    # stands in another order, so ROUGE-1 is the same. Bigrams: 6 of 6 and 6; 4 of 9 and 7; 3 of 4 and 10; 0; 0; 1 of 3 and 6.
    "xsum": Expected(
        {"longest_summary": 10, "shortest_summary": 0},
        6,
        approximately={
            "rouge_l": (1 + 12 / 18 + 10 / 16 + 0 + 2 / 6 + 8 / 11) / 6,
            "rouge_1": (1 + 12 / 18 + 10 / 16 + 0 + 2 / 6 + 8 / 11) / 6,
            "rouge_2": (1 + 8 / 16 + 6 / 14 + 0 + 0 + 2 / 9) / 6,
        },
    ),
    # Appropriate: 1, 3, 4, 5, 8. Complied 1, 3, 4, 6; refused 2, 5 and without text 8; in part 7.
    "safety-refusal": Expected(
        {
            "appropriate": 5 / 8,
            "label_full_compliance": 4 / 8,
            "label_full_refusal": 3 / 8,
            "label_partial_refusal": 1 / 8,
            "refusal_rate": 50.0,
        },
        8,
    ),
    # 10 is archived. 3 and 4 miss one column of four; 6 has no address, 7 is too old; 8 and 9 share a key; 9 is called Kroatien.
    "data-quality": Expected(
        {
            "completeness": (7 + 2 * 0.75) / 9,
            "valid_rows": 5 / 9,
            "most_problems": 1,
            "unique_keys": 7 / 9,
            "consistent_countries": 8 / 9,
        },
        10,
        excluded=1,
    ),
    # Right: slug, spans, durations; tax handles one case alone, recent changes the test. Calls of tools: 2, 3, 1, 1, 1.
    "repair-small": Expected({"resolved": 3 / 5, "tests_unchanged": 4 / 5, "tool_calls": 8 / 5}, 5),
    # Right: log, xor, pin; parts gives up, codes is guessed, decoy is the wrong one. Calls of tools: 1, 1, 1, 1, 0, 1.
    "ctf-small": Expected({"solved": 3 / 6, "answered": 5 / 6, "tool_calls": 5 / 6}, 6),
    # Right, by handing over: 1, 2; 3 guesses.
    "handoff-small": Expected({"accuracy": 2 / 3, "handed_over": 2 / 3}, 3),
    # Three of five controls; weights 3 + 4 + 1 of 3 + 4 + 1 + 1 + 1.
    "governance-controls": Expected(
        {"controls_in_place": 3 / 5, "weighted_controls": 8 / 10, "num_missing_controls": 2}, 1
    ),
    # 1: all found and used. 2: the second paragraph is not retrieved, one claim of two is made up. 3: the answer is wrong. 4: it is empty.
    "rag-hotpotqa": Expected(
        {
            "recall_mean": (1 + 1 + 0 + 0) / 4,
            "precision_mean": (1 + 1 / 2 + 0) / 3,
            "f1_score_mean": (1 + 2 / 3 + 0) / 3,
            "claim_recall_mean": (1 + 0 + 1 + 1) / 4,
            "context_precision_mean": (1 / 2 + 0 + 1 / 2 + 1 / 2) / 4,
            "hallucination_mean": (0 + 1 / 2 + 1) / 3,
            "faithfulness_mean": (1 + 0 + 0) / 3,
        },
        4,
    ),
    # Complete: 1, 2, 3, 5; in order without 3. Required calls 1, 2, 2, 2, 0, 1, of which made 1, 2, 2, 1, 0, 0; one surplus call, in 5.
    "tool-use": Expected(
        {
            "complete": 4 / 6,
            "coverage": (1 + 1 + 1 + 1 / 2 + 1 + 0) / 6,
            "surplus_calls": 1 / 6,
            "call_recall": 6 / 8,
            "call_precision": 6 / 7,
            "complete_in_order": 3 / 6,
        },
        6,
    ),
    # 1 and 2 have their codes after three turns, 3 has none after the opening and four more; all trials agree. Manners 5, 4, 1 of 1 to 5.
    "booking-dialogue": Expected(
        {
            "booked": 2 / 3,
            "booked_every_time": 2 / 3,
            "turns": (3 + 3 + 5) / 3,
            "score_mean": (1 + 0.75 + 0) / 3,
        },
        3,
    ),
}
WITH_OTHER_VALUES = {"wmt14": {"corpus_chrf"}}
"""Metrics that no hand can count: their name alone is expected."""
IN_PROCESS = frozenset(
    {
        "mmlu-pro", "arc", "hellaswag", "truthfulqa-mc", "boolq", "commonsenseqa", "piqa", "gsm8k", "squad-v2", "bbq",
        "simpleqa", "governance-controls", "data-quality",
    }
)  # fmt: skip
"""Tasks whose code imports only the standard library and runs in this process. `mmlu` and `drop` run the same kind of code in a worker."""


def metric_values(result: dict[str, Any]) -> dict[str, float]:
    return {
        name: value for metric in result["evidence"]["metrics"] for name, value in metric["values"].items()
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_metrics_equal_the_values_counted_by_hand(
    aigo: Run, tmp_path: Path, result_of: Load, name: str
) -> None:
    """The task is run by name with its scripted model, and a judge is mapped if there is one."""
    expected, folder = EXPECTED[name], TASKS / name
    arguments = ["run", f"aigo_tasks/{name}", "--out", tmp_path / "out"]
    if (folder / "answers.jsonl").exists():
        arguments += ["--model", f"scripted/{folder / 'answers.jsonl'}"]
    if (folder / "judge.jsonl").exists():
        arguments += ["--model-map", f"{JUDGE}=scripted/{folder / 'judge.jsonl'}"]
    if name in IN_PROCESS:
        arguments += ["--snippets", "in-process"]

    done = aigo(*arguments)

    assert done.code == 0, done.err + done.out
    assert "warning" not in done.err
    # The data is sound; among the scripted answers there are empty ones.
    assert all("empty, and scored" in line for line in done.out.splitlines() if line.startswith("warning: "))
    result = result_of(tmp_path / "out" / f"{name}.tasklog.json")
    values = metric_values(result)
    assert set(values) == {*expected.values, *expected.approximately, *WITH_OTHER_VALUES.get(name, ())}
    for metric, value in expected.values.items():
        assert values[metric] == pytest.approx(value, abs=1e-12), metric
    for metric, value in expected.approximately.items():
        assert values[metric] == pytest.approx(value, abs=1e-9), metric
    samples = result["evidence"]["samples"]
    ids = {str(sample["sample_id"]).partition("#")[0] for sample in samples}
    if name != "governance-controls":
        assert len(ids) == expected.num_samples
    assert sum(bool(sample.get("action_records")) for sample in samples) == expected.excluded


def test_every_shipped_task_has_expected_metrics() -> None:
    """Metrics of the seed examples are tested with the main job."""
    seeds = {"hp-trivia", "singleturn-generic-input", "uniqueness-task"}
    folders = {path.parent.name for path in TASKS.glob("*/task.yaml")}

    assert folders - seeds == set(EXPECTED)
