"""Multiple-choice tasks, compared with inspect-evals and lighteval on the same rows: requests, scores, fuzzing."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import TASKS
from tests.tasks.published import Score, differences, fuzzed, judge, varied
from tests.tasks.references import (
    choice_score,
    exact_match,
    exchanges,
    lighteval_request,
    numbered,
    published_task,
    scorer_score,
    shipped_task,
)

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
Row = dict[str, Any]


def rows_of(task: str) -> list[Row]:
    """Return the made-up rows; TruthfulQA choices are in the order of the shipped task."""
    rows = [json.loads(line) for line in (TASKS / task / "rows.jsonl").read_text("utf-8").splitlines()]
    for row in rows if task == "truthfulqa-mc" else []:
        targets = row["mc1_targets"]
        pairs = sorted(
            zip(targets["choices"], targets["labels"], strict=True), key=lambda pair: pair[0].lower()
        )
        targets["choices"], targets["labels"] = (list(column) for column in zip(*pairs, strict=True))
    return rows


@dataclass(frozen=True)
class Published:
    """Location of a task's definition and the format of its rows."""

    module: str
    function: str
    truth: Callable[[Row], int]
    """Position of the right choice."""
    number: Callable[[Row], int]
    """Number of choices."""
    column: str = "question"
    """Column with a text that the prompt has."""
    arguments: dict[str, Any] = field(default_factory=dict)
    loader: str = "hf_dataset"
    config: dict[str, str] = field(default_factory=dict)
    """What makes the shipped task inspect-evals' definition, where that is not the default."""
    gold: str | None = None
    """What stands in front of a letter in lighteval's golds; `None`: its definition is not by letters."""


PUBLISHED = {
    "mmlu": Published(
        "mmlu.mmlu",
        "mmlu_0_shot",
        lambda row: row["answer"],
        lambda row: len(row["choices"]),
        arguments={"shuffle": False},
        gold=" ",
    ),
    "mmlu-pro": Published(
        "mmlu_pro.mmlu_pro",
        "mmlu_pro",
        lambda row: row["answer_index"],
        lambda row: len(row["options"]),
        arguments={"shuffle": False},
        config={"definition": "inspect-evals"},
    ),
    "hellaswag": Published(
        "hellaswag.hellaswag",
        "hellaswag",
        lambda row: int(row["label"]),
        lambda row: len(row["endings"]),
        column="ctx",
        gold=" ",
    ),
    "commonsenseqa": Published(
        "commonsense_qa.commonsense_qa",
        "commonsense_qa",
        lambda row: LETTERS.index(row["answerKey"]),
        lambda row: len(row["choices"]["text"]),
        arguments={"shuffle": False},
        gold="",
    ),
    "truthfulqa-mc": Published(
        "truthfulqa.truthfulqa",
        "truthfulqa",
        lambda row: row["mc1_targets"]["labels"].index(1),
        lambda row: len(row["mc1_targets"]["choices"]),
        arguments={"shuffle": False, "shuffle_choices": False},
    ),
    "arc": Published(
        "arc.arc",
        "arc_easy",
        lambda row: row["choices"]["label"].index(row["answerKey"]),
        lambda row: len(row["choices"]["label"]),
    ),
    "bbq": Published(
        "bbq.bbq",
        "bbq",
        lambda row: row["label"],
        lambda row: 3,
        arguments={"subsets": "Age"},
        loader="load_hf_dataset_with_script",
        gold="",
    ),
    "piqa": Published(
        "piqa.piqa",
        "piqa",
        lambda row: row["label"],
        lambda row: 2,
        column="goal",
        loader="load_hf_dataset_with_script",
        gold="",
    ),
}


def letters(task: str) -> Callable[[Row], Iterable[str]]:
    """Return every form of a row's right letter and the next one, and random answers."""

    def answers(row: Row) -> Iterable[str]:
        position, number = PUBLISHED[task].truth(row), PUBLISHED[task].number(row)
        right, wrong = LETTERS[position], LETTERS[(position + 1) % number]
        return chain(varied(right, wrong), fuzzed(right, wrong))

    return answers


def shipped_score(task: str, **config: str) -> Score:
    """Return the shipped score of an answer, which is given to every call of a group."""
    return judge(task, "is_correct", **(config or PUBLISHED[task].config))


@pytest.mark.engine
@pytest.mark.parametrize("task", PUBLISHED)
def test_letters_are_extracted_like_inspect(task: str) -> None:
    published = PUBLISHED[task]
    reference = choice_score(published.number, lambda row: LETTERS[published.truth(row)])
    assert differences(rows_of(task)[:2], letters(task), shipped_score(task), reference) == []


@pytest.mark.engine
@pytest.mark.xdist_group("lighteval")
@pytest.mark.parametrize("task", [name for name, task in PUBLISHED.items() if task.gold is not None])
def test_letters_are_extracted_like_lighteval(task: str) -> None:
    published = PUBLISHED[task]
    reference = exact_match(lambda row: [f"{published.gold}{LETTERS[published.truth(row)]}"])

    shipped = shipped_score(task, definition="lighteval")
    assert differences(rows_of(task)[:2], letters(task), shipped, reference) == []


LIGHTEVAL: dict[str, tuple[str, str, Callable[[Row], Row]]] = {
    "mmlu": ("mmlu", "mmlu_abstract_algebra", lambda row: {}),
    "hellaswag": ("hellaswag", "hellaswag", lambda row: {}),
    "commonsenseqa": ("commonsenseqa", "commonsenseqa", lambda row: {}),
    "bbq": (
        "bbq",
        "bbq",
        lambda row: {"choices": [row["ans0"], row["ans1"], row["ans2"]], "gold_index": row["label"]},
    ),
    "piqa": ("piqa", "piqa", lambda row: {}),
    "boolq": (
        "boolq",
        "boolq",
        lambda row: {"question": row["question"] + "?", "answer": "Yes" if row["answer"] else "No"},
    ),
}
"""Task → module and name in lighteval, and the columns that its copy of the data has in place of ours."""


@pytest.mark.engine
@pytest.mark.xdist_group("lighteval")
@pytest.mark.parametrize("task", LIGHTEVAL)
def test_requests_match_lighteval(task: str, tmp_path: Path) -> None:
    module, name, columns = LIGHTEVAL[task]
    column = PUBLISHED[task].column if task in PUBLISHED else "question"
    # lighteval puts HellaSwag's sentence together from its two parts.
    rows = numbered(rows_of(task), "ctx_a" if task == "hellaswag" else column)

    shipped = exchanges(shipped_task(task, rows, definition="lighteval"), ["?"] * len(rows), tmp_path)
    for row, (requests, _) in zip(rows, shipped, strict=True):
        assert lighteval_request(module, name, {**row, **columns(row)}) in requests


@pytest.mark.engine
@pytest.mark.parametrize("task", PUBLISHED)
def test_requests_and_scores_match_inspect_evals(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both run on Inspect with the same rows and answers."""
    published = PUBLISHED[task]
    # Each row's are others.
    pairs = [
        (row, answer)
        for number, row in enumerate(rows_of(task))
        for answer in list(letters(task)(row))[3 * number :: 60]
    ]
    rows = numbered([row for row, _ in pairs], published.column)
    answers = [answer for _, answer in pairs]
    assert len(pairs) >= 40
    reference = published_task(
        monkeypatch, published.module, published.function, rows, published.loader, **published.arguments
    )

    expected = exchanges(reference, answers, tmp_path / "published")
    actual = exchanges(shipped_task(task, rows, **published.config), answers, tmp_path / "shipped")
    if task == "piqa":
        # The same question is asked once more, with the solutions swapped.
        actual = [
            (tuple(set(requests) & set(asked)), score)
            for (requests, score), (asked, _) in zip(actual, expected, strict=True)
        ]
    assert actual == expected


@pytest.mark.engine
def test_mmlu_examples_are_formatted_as_in_the_five_shot_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """inspect-evals reads both splits with one loader, so each question is also an example."""
    rows = numbered(rows_of("mmlu"), "question")
    reference = published_task(monkeypatch, "mmlu.mmlu", "mmlu_5_shot", rows, shuffle=False)

    expected = exchanges(reference, ["ANSWER: B"] * len(rows), tmp_path / "published")
    shipped = shipped_task("mmlu", rows, examples=json.dumps(rows))
    assert exchanges(shipped, ["ANSWER: B"] * len(rows), tmp_path / "shipped") == expected


@pytest.mark.engine
def test_yes_and_no_are_extracted_like_inspect_evals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(row, answer) for row in rows_of("boolq") for answer in list(yes_or_no(row))[::40]]
    rows, answers = numbered([row for row, _ in pairs], "question"), [answer for _, answer in pairs]
    reference = published_task(monkeypatch, "boolq.boolq", "boolq", rows, shuffle=False)
    score = scorer_score(reference.scorer[0], lambda row: "Yes" if row["answer"] else "No")

    assert len(pairs) >= 40
    assert differences(rows_of("boolq")[:2], yes_or_no, judge("boolq", "is_correct"), score) == []
    expected = exchanges(reference, answers, tmp_path / "published")
    assert exchanges(shipped_task("boolq", rows), answers, tmp_path / "shipped") == expected


@pytest.mark.engine
@pytest.mark.xdist_group("lighteval")
def test_yes_and_no_are_extracted_like_lighteval() -> None:
    reference = exact_match(lambda row: [" Yes" if row["answer"] else " No"])

    shipped = judge("boolq", "is_correct", definition="lighteval")
    assert differences(rows_of("boolq")[:2], yes_or_no, shipped, reference) == []


def yes_or_no(row: Row) -> Iterable[str]:
    right, wrong = ("Yes", "No") if row["answer"] else ("No", "Yes")
    return chain(varied(right, wrong), fuzzed(right, wrong))


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("The answer is (B). No: the answer is (C).", "B"),
        ("the answer is B", "B"),
        ("The Answer is (B)", "B"),
        ("Answer: C\nSo: Answer: D", "C"),
        ("Answer: C. Answer: D", "D"),
        ("B or C?\nD, not E, I say", "I"),
        ("**Answer:** D", "D"),
        ("the answer is (k)", None),
        ("", None),
    ],
)
def test_chain_of_thought_answer_is_extracted_like_the_authors(answer: str, letter: str | None) -> None:
    """By hand from `evaluate_from_api.py`; without a letter, a random choice is used (here always the seventh of ten)."""
    options = [f"choice {number}" for number in range(10)]
    score = judge("mmlu-pro", "is_correct", definition="official")

    for position, key in enumerate("ABCDEFGHIJ"):
        row = {"options": options, "answer": key, "answer_index": position, "category": "law"}
        assert score(row, answer) is (key == (letter or "G"))


def official_span_scores(row: Row, answer: str) -> tuple[float, float]:
    """Return SQuAD 2.0's exact match and F1, reimplemented from the script's documentation."""

    def words(text: str) -> list[str]:
        plain = text.lower().translate(str.maketrans("", "", string.punctuation))
        return re.sub(r"\b(?:a|an|the)\b", " ", plain).split()

    def overlap(gold: list[str], said: list[str]) -> float:
        if not gold or not said:
            return float(gold == said)
        shared = (Counter(gold) & Counter(said)).total()
        return 2 * shared / (len(gold) + len(said)) if shared else 0.0

    # The script is given an empty prediction where a system abstains; the task's prompt asks for a word.
    said = [] if words(answer) == ["unanswerable"] else words(answer)
    golds = [words(text) for text in row["answers"]["text"] if words(text)] or [[]]
    return float(said in golds), max(round(overlap(gold, said), 12) for gold in golds)


def test_span_scores_equal_the_official_script() -> None:
    def answers(row: Row) -> Iterable[str]:
        right = (row["answers"]["text"] or ["unanswerable"])[0]
        return chain(varied(right, "41 metres"), fuzzed(right, "the engineer"))

    score = judge("squad-v2", "exact", "f1")

    def rounded(row: Row, answer: str) -> tuple[float, float]:
        exact, f1 = score(row, answer)
        return exact, round(f1, 12)

    assert differences(rows_of("squad-v2"), answers, rounded, official_span_scores) == []


@pytest.mark.engine
@pytest.mark.parametrize(("task", "module", "function"), [("squad-v2", "squad.squad", "squad")])
def test_span_prompts_equal_inspect_evals(
    task: str, module: str, function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = numbered(rows_of(task), "question")
    reference = published_task(monkeypatch, module, function, rows, shuffle=False)

    expected = exchanges(reference, ["?"] * len(rows), tmp_path / "published")
    actual = exchanges(shipped_task(task, rows), ["?"] * len(rows), tmp_path / "shipped")
    assert [requests for requests, _ in actual] == [requests for requests, _ in expected]
