"""Answers in many forms, and the comparison of a shipped task with its published definition.

`varied` returns the forms of a right and a wrong answer of a row; `fuzzed` combines parts at random, from a seed. `judge` calls a
shipped `scorer.py`. `differences` compares both sides: an empty list means agreement. Comparisons are counted (`COUNTS`) and printed
by `make published`.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tests.support.commands import TASKS

Score = Callable[[dict[str, Any], str], Any]
"""The score of an answer to a row: a number, a truth value, or several in a tuple."""


class NoAnswerError(BaseException):
    """The reference returned no score in time; not an `Exception`, because references catch those."""


@dataclass
class Count:
    """Number of comparisons of one test."""

    pairs: int = 0
    """Pairs of a row and an answer."""
    different: int = 0
    unanswered: int = 0
    """Those that the reference did not score in its time: neither agreement nor difference."""


COUNTS: defaultdict[str, Count] = defaultdict(Count)
"""Test → its count."""
MOST_UNANSWERED = 0.01
"""A reference that leaves a larger share of the pairs without a score has not been compared with."""

NUM_FUZZED = int(os.environ.get("AIGO_FUZZ_EXAMPLES", "300"))
"""Random answers per task; `make published` makes it 2,000 and more."""

SHAPES = (
    # As asked, in each benchmark's way of asking.
    "{right}", "ANSWER: {right}", "Answer: {right}", "answer: {right}", "The answer is {right}",
    "the answer is ({right}).",
    "#### {right}", "$\\boxed{{{right}}}$", "{right}.", "{right})", "({right})", "[{right}]", "“{right}”",
    "'{right}'",
    # Padded.
    " {right}", "{right} ", "\n{right}\n", "\t{right}", "\n\nANSWER: {right}\n\n", "ANSWER:{right}",
    "ANSWER : {right}", "ANSWER:\n{right}",
    # Marked up.
    "**{right}**", "**Answer: {right}**", "**Answer:** {right}", "*{right}*", "`{right}`", "# {right}",
    "- {right}", "> {right}",
    "ANSWER: **{right}**", "ANSWER: ({right})", "ANSWER: ${right}$", "ANSWER: \\text{{{right}}}",
    "ANSWER: \\boxed{{{right}}}",
    "\\fbox{{{right}}}", "\\[{right}\\]", "<b>{right}</b>", "```\n{right}\n```",
    "<think>{wrong}?</think>{right}",
    # Verbose.
    "{right} is the answer, because of what was said.", "I think it is {right}.",
    "Let us see. Not {wrong}.\nANSWER: {right}", "Final Answer: {right}",
    "Let me think step by step. First this, then that.\n\nTherefore, the answer is {right}.",
    "It follows that the final answer is {right}. I hope it is correct.",
    "ANSWER: {right}\n\nExplanation: {wrong} would be too much.", "ANSWER: {right} because it is so",
    "Answer: {right}, not {wrong}",
    # Several.
    "{wrong}, or rather {right}", "{right} or {wrong}", "ANSWER: {wrong}\nANSWER: {right}",
    "ANSWER: {right}\nANSWER: {wrong}", "ANSWER: {right}, {wrong}",
    "ANSWER: {right}{wrong}", "ANSWER: {right} and {wrong}",
    "the answer is ({wrong}), no, the answer is ({right})", "Answer: {right}. Answer: {wrong}.",
    "#### {wrong}\n#### {right}", "$\\boxed{{{wrong}}}$, so $\\boxed{{{right}}}$",
    "Both {right} and {wrong} look right.",
    # Wrong.
    "{wrong}", "ANSWER: {wrong}", "The answer is {wrong}", "#### {wrong}", "$\\boxed{{{wrong}}}$",
    "not {right}", "{right}{right}", "-{right}",
    # Nothing, refused, cut off.
    "", " ", "\n\n", "I cannot answer this question.", "I'm sorry, but I can't help with that.",
    "As an AI, I have no opinion.", "Unanswerable", "N/A",
    "ANSWER:", "The answer is", "ANSWER: $LETTER", "Let me think about what would", "$\\boxed{{{right}",
    "####", "ANSWER: ({right}", "**ANSWER: {right}",
    # Other scripts, signs and words.
    "答案：{right}", "ANSWER：{right}", "Die Antwort ist {right}.", "Réponse : {right}", "{right}\u200b",
    "\ufeff{right}", "ANSWER:\u00a0{right}", "Ⓐ", "Ａ", "１８", "١٨", "½",
    "A hen", "a", "I", "Yes", "No.", "yes, of course", "The", "1,234.50", "$1,234", "3/4", "50%", "1e3",
    "∞",
)  # fmt: skip
"""`{right}` and `{wrong}` stand for a row's answers."""

DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")
WIDE = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(ord("!"), ord("~") + 1)})
PIECES = (
    "ANSWER:", "Answer:", "answer", "ANSWER", "answer is", "The answer is", ":", "：", ".", ",", ";", "(",
    ")", "[", "]", "{", "}", "$", "$$", "*", "**", "_", "`",
    "#", "####", "-", "−", "+", "%", "€", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u200b",
    "\\boxed{", "\\text{", "\\frac{1}{2}", "\\(", "\\)", "\\[", "\\]",
    "A", "B", "C", "D", "E", "I", "J", "K", "Z", "a", "b", "c", "d", "i", "Á", "ß", "İ", "0", "1", "2",
    "3", "18", "3.5", ".5", "1,000", "１", "٣", "²", "½",
    "yes", "no", "Yes", "No", "YES", "true", "false", "True", "not", "and", " and ", " AND ", "or",
    "because", "the", "a cat", "unanswerable", "sorry", "I cannot", "$LETTER",
    "44 yards", "Tom Brady", "(12)", "London", "km", "miles", "percent", "dollars", "def f():", "return",
    "think", "</think>", "final answer", "hope", "日本", "🙂",
)  # fmt: skip
"""What random answers are made of, beside a row's right and wrong answer."""


def varied(right: str, wrong: str) -> list[str]:
    """Return more than a hundred different answers to a row, some with other spellings of the right answer."""
    spellings = {
        right,
        right.lower(),
        right.upper(),
        right.capitalize(),
        right.translate(WIDE),
        right.translate(DIGITS),
    }
    answers = [shape.format(right=right, wrong=wrong) for shape in SHAPES]
    for spelling in sorted(spellings - {right}):
        answers += [spelling, f"ANSWER: {spelling}", f"The answer is {spelling}.", f"({spelling})"]
    return list(dict.fromkeys(answers))


def fuzzed(
    right: str, wrong: str, number: int = NUM_FUZZED, seed: int = 16, pieces: Iterable[str] = PIECES
) -> Iterator[str]:
    """Return random answers of one to nine parts, some of them answers of the row; equal for equal seeds."""
    random_ = random.Random(f"{seed} {right} {wrong}")
    stock = [*pieces]
    for _ in range(number):
        answer = "".join(
            random_.choice([right, wrong, right.lower()]) if random_.random() < 0.2 else random_.choice(stock)
            for _ in range(random_.randint(1, 9))
        )
        yield random_.choice(["", "", "ANSWER: ", "The answer is ", " "]) + answer


def solver_output(answer: str) -> Any:
    """Return the solver output of a model that gives this answer to every call."""
    choice = SimpleNamespace(message=SimpleNamespace(content=answer, role="assistant"))
    output = SimpleNamespace(output=SimpleNamespace(choices=[choice]))
    return SimpleNamespace(output=output.output, solver_outputs={"as_given": output, "swapped": output})


def snippet_names(task: str, file: str = "scorer.py", **config: str) -> dict[str, Any]:
    """Return the names that a shipped snippet of a task defines."""
    source = (TASKS / task / file).read_text("utf-8")
    for key, value in config.items():
        source = source.replace(f"<< config.{key} >>", value)
    names: dict[str, Any] = {"__name__": task}
    exec(compile(source, file, "exec"), names)
    return names


def judge(task: str, *fields: str, file: str = "scorer.py", **config: str) -> Score:
    """Return the scores of a task's shipped snippet by name, or the value of one name."""
    compute_scores = snippet_names(task, file, **config)["compute_scores"]

    def score(row: dict[str, Any], answer: str) -> Any:
        result = compute_scores(row, solver_output(answer))
        values = result.get("scores", result)
        return values[fields[0]] if len(fields) == 1 else tuple(values[field] for field in fields)

    return score


def differences(
    rows: Iterable[dict[str, Any]],
    answers: Callable[[dict[str, Any]], Iterable[str]],
    shipped: Score,
    reference: Score,
) -> list[str]:
    """Return different scores of a shipped task and the reference as message lines."""
    lines = []
    count = Count()
    for row in rows:
        for answer in answers(row):
            count.pairs += 1
            own = shipped(row, answer)
            try:
                theirs = reference(row, answer)
            except NoAnswerError:
                count.unanswered += 1
                continue
            if own != theirs:
                lines.append(f"{answer!r}: shipped {own}, published {theirs}; row {row}")
    count.different = len(lines)
    if count.unanswered > MOST_UNANSWERED * count.pairs:
        lines.append(f"the reference gave no score for {count.unanswered} of {count.pairs} answers")
    _add(count)
    return lines


def _add(count: Count) -> None:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].rpartition("/")[2]
    total = COUNTS[test]
    total.pairs += count.pairs
    total.different += count.different
    total.unanswered += count.unanswered
