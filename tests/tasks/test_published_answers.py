"""Tasks with computed answers, compared with inspect-evals, lighteval and official scripts on the same rows."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest
from tests.support.commands import TASKS, Run
from tests.tasks.published import NUM_FUZZED, differences, fuzzed, judge, varied

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # from modules that the references import

Row = dict[str, Any]
Answers = Callable[[Row], Iterator[str]]


def rows_of(task: str) -> list[Row]:
    return [json.loads(line) for line in (TASKS / task / "rows.jsonl").read_text("utf-8").splitlines()]


def answers_around(truth: Callable[[Row], tuple[str, str]], share: int) -> Answers:
    """Return every form of a row's right and wrong answer, and some random answers."""

    def answers(row: Row) -> Iterator[str]:
        right, wrong = truth(row)
        return chain(varied(right, wrong), fuzzed(right, wrong, NUM_FUZZED // share + 1))

    return answers


def messages_of(aigo: Run, task: str, *options: str) -> list[tuple[str, str]]:
    """Return role and text of the messages for the first row."""
    (sample,) = aigo("explain", f"aigo_tasks/{task}", "-n", 1, "--json", *options).json["samples"]
    return [(message["role"], message["content"]) for message in sample["messages"][:-1]]


# --- drop


def spans_of(row: Row) -> tuple[str, str]:
    answer = row["answer"]
    date = " ".join(answer["date"][part] for part in ("day", "month", "year")).strip()
    return answer["number"] or ", ".join(answer["spans"]) or date, "44 yards and the Herons"


DROP_ROWS = rows_of("drop")
DROP_ANSWERS = answers_around(spans_of, len(DROP_ROWS))


@pytest.mark.engine
def test_drop_prompt_equals_inspect_evals(aigo: Run) -> None:
    drop = importlib.import_module("inspect_evals.drop.drop")
    user = drop.USER_PROMPT_TEMPLATE.format(prompt=drop.format_input(DROP_ROWS[0]))
    shown = [drop.sample_to_fewshot(drop.record_to_sample(row)) for row in DROP_ROWS[:3]]
    system = drop.SYSTEM_W_EXAMPLES_PROMPT_TEMPLATE.format(examples="\n\n".join(shown))

    assert messages_of(aigo, "drop") == [("system", drop.SYSTEM_PROMPT_TEMPLATE), ("user", user)]
    given = ("--config", f"examples={json.dumps(DROP_ROWS[:3])}")
    assert messages_of(aigo, "drop", *given) == [("system", system), ("user", user)]


@pytest.mark.engine
@pytest.mark.xdist_group("lighteval")
def test_drop_prompt_equals_lighteval(aigo: Run) -> None:
    from lighteval.tasks.tasks.drop_qa import drop_prompt, drop_qa

    done = aigo("explain", "aigo_tasks/drop", "-n", 1, "--json", "--config", "definition=lighteval")

    (sample,) = done.json["samples"]
    assert sample["messages"][:-1] == [{"role": "user", "content": drop_prompt(DROP_ROWS[0]).query}]
    assert sample["options"]["max_tokens"] == drop_qa.generation_size
    assert sample["options"]["stop"] == list(drop_qa.stop_sequence)


@pytest.mark.engine
def test_drop_f1_equals_inspect_evals() -> None:
    from inspect_ai.scorer._classification import max_f1_score
    from inspect_evals.drop.drop import extract_answer, get_answers

    def reference(row: Row, answer: str) -> float:
        return max_f1_score(extract_answer(answer), get_answers(row))

    assert differences(DROP_ROWS, DROP_ANSWERS, judge("drop", "f1"), reference) == []


@pytest.mark.engine
@pytest.mark.xdist_group("lighteval")
def test_drop_scores_equal_the_official_script_and_lighteval() -> None:
    """lighteval has the official F1 (in its harness form) and a prompt function with the accepted answers."""
    from inspect_evals.drop.drop import extract_answer
    from lighteval.metrics.harness_compatibility.drop import DropMetrics
    from lighteval.metrics.metrics import Metrics
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.tasks.drop_qa import drop_prompt

    script, match = DropMetrics(), Metrics.exact_match.value.sample_level_fn

    def reference(row: Row, answer: str) -> tuple[float, float, bool]:
        doc = drop_prompt(row)
        official = script.compute(doc, ModelResponse(text=[extract_answer(answer)]))
        return (
            float(official["f1"]),
            float(official["em"]),
            bool(match.compute(doc=doc, model_response=ModelResponse(text=[answer]))),
        )

    shipped = judge("drop", "official_f1", "official_exact_match", "exact_match")
    assert differences(DROP_ROWS, DROP_ANSWERS, shipped, reference) == []


@pytest.mark.parametrize(
    ("answer", "accepted", "exact", "f1"),
    [
        ("The 3 goals", ["3"], 0.0, 0.67),
        ("3.0", ["3"], 1.0, 1.0),
        ("4", ["3 goals"], 0.0, 0.0),
        ("44 yards", ["yards"], 0.0, 0.67),
        ("yards", ["44 yards"], 0.0, 0.0),
        ("Tom Brady (12)", ["Tom Brady"], 0.0, 0.8),
        ("x", ["x", "y"], 0.0, 0.5),
        ("x", ["x", "x"], 0.0, 0.5),
        ("", ["x"], 0.0, 0.0),
    ],
)
def test_official_drop_script_requires_the_accepted_numbers(
    answer: str, accepted: list[str], exact: float, f1: float
) -> None:
    """Only the numbers of the accepted answer are required, not those of the given one."""
    row = {
        "answer": {"number": "", "spans": accepted},
        "validated_answers": {"number": [], "date": [], "spans": []},
    }

    assert judge("drop", "official_exact_match", "official_f1")(row, answer) == (exact, f1)


# --- gsm8k

GSM8K_ROWS = rows_of("gsm8k")
GSM8K_ANSWERS = answers_around(lambda row: (row["answer"].split("#### ")[1], "12"), len(GSM8K_ROWS))
OTHER_NUMBERS = [
    *(
        "２５",
        "٣",
        "−5",
        "2½",
        "½",
        "3²",
        "1.5⁻³",
        "十二",
        "一千二百",
        "二〇二五",
        "三点五",
        "Ⅻ",
        "1e3",
        "(42)",
    ),
    *(
        "$1,250.00",
        "1.250",
        "60%",
        "42.",
        "\\$20",
        "*36*",
        "<36",
        "1_000",
        "nan",
        "inf",
        "- 18",
        "3-5",
        "点",
        "两?",
    ),
]


@pytest.mark.engine
def test_gsm8k_prompt_equals_inspect_evals(aigo: Run) -> None:
    gsm8k = importlib.import_module("inspect_evals.gsm8k.gsm8k")
    user = ("user", gsm8k.MATH_PROMPT_TEMPLATE.format(prompt=GSM8K_ROWS[0]["question"]))
    shown = [gsm8k.sample_to_fewshot(gsm8k.record_to_sample(row)) for row in GSM8K_ROWS[:3]]

    assert messages_of(aigo, "gsm8k") == [user]
    given = ("--config", f"examples={json.dumps(GSM8K_ROWS[:3])}")
    assert messages_of(aigo, "gsm8k", *given) == [("system", "\n\n".join(shown)), user]


@pytest.mark.engine
def test_gsm8k_extracts_the_last_number_like_inspect() -> None:
    from inspect_ai.scorer._common import match_str
    from inspect_evals.gsm8k.gsm8k import record_to_sample

    def reference(row: Row, answer: str) -> bool:
        return match_str(answer, str(record_to_sample(row).target), numeric=True)[1]

    def spelled(row: Row) -> Iterator[str]:
        yield from (f"It is {number}" for number in OTHER_NUMBERS)

    shipped = judge("gsm8k", "is_correct")
    assert differences(GSM8K_ROWS, GSM8K_ANSWERS, shipped, reference) == []
    others = [
        {"question": "?", "answer": f"#### {number}"}
        for number in ("42", "20", "12", "2.5", "0.5", "18", "3")
    ]
    assert differences(others, spelled, shipped, reference) == []


@pytest.mark.parametrize(
    ("answer", "is_correct"),
    [
        ("#### 1,250", True),
        ("#### 1250 eggs", True),
        ("#### 1250\n#### 7", True),
        ("#### 7\n#### 1250", False),
        ("#### 1250.", False),
        ("####1250", False),
        ("#### $1250", False),
        ("1250", False),
    ],
)
def test_official_gsm8k_score_compares_the_first_marked_text(answer: str, is_correct: bool) -> None:
    """As in OpenAI's grade-school-math: `#### ` and a text of digits, points and commas; commas are removed."""
    assert judge("gsm8k", "is_correct_official")(GSM8K_ROWS[2], answer) is is_correct
