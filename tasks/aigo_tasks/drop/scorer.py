"""Exact match and F1 of DROP: bags of words, spans aligned one to one, numbers must agree.

Source: `drop_eval.py` of AllenNLP (Dua et al., 2019): words in lower case without articles and punctuation, split at spaces and hyphens, numbers as floats;
F1 of each pair of spans, 0 when the gold span has numbers and shares none; best one-to-one alignment, averaged over the longer
list and rounded to two digits; the best of the answer and the validated answers counts.
"""

from __future__ import annotations

import re
import string
from typing import Any

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = set(string.punctuation)
LABEL = re.compile(r".*answer\s*:", re.IGNORECASE | re.DOTALL)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def word(token: str) -> str:
    """One token, normalised; numbers with thousands separators are numbers."""
    bare = token if is_number(token) else "".join(character for character in token if character not in PUNCTUATION)
    number = str(float(bare)) if is_number(bare) else bare
    return " ".join(ARTICLES.sub(" ", number).split())


def normalised(text: str) -> str:
    words = (word(token.lower()) for token in re.split(r"[ \-\n\t]", text))
    return " ".join(each for each in words if each.strip()).strip()


def overlap(said: set[str], wanted: set[str]) -> float:
    """F1 of two sets of words; numbers of the gold answer must be met."""
    numbers = {each for each in wanted if is_number(each)}
    if numbers and not numbers & {each for each in said if is_number(each)}:
        return 0.0
    common = len(said & wanted)
    precision = common / len(said) if said else 1.0
    recall = common / len(wanted) if wanted else 1.0
    if precision == 0.0 and recall == 0.0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


def aligned(scores: list[list[float]]) -> float:
    """Largest sum of a one-to-one assignment of rows to columns (Hungarian method with potentials)."""
    if not scores or not scores[0]:
        return 0.0
    if len(scores) > len(scores[0]):
        scores = [list(column) for column in zip(*scores, strict=True)]
    rows, columns = len(scores), len(scores[0])
    row_potential, column_potential = [0.0] * (rows + 1), [0.0] * (columns + 1)
    owner, way = [0] * (columns + 1), [0] * (columns + 1)
    for row in range(1, rows + 1):
        owner[0], column = row, 0
        least, used = [float("inf")] * (columns + 1), [False] * (columns + 1)
        while owner[column]:
            used[column] = True
            current, delta, following = owner[column], float("inf"), 0
            for each in range(1, columns + 1):
                if used[each]:
                    continue
                cost = -scores[current - 1][each - 1] - row_potential[current] - column_potential[each]
                if cost < least[each]:
                    least[each], way[each] = cost, column
                if least[each] < delta:
                    delta, following = least[each], each
            for each in range(columns + 1):
                if used[each]:
                    row_potential[owner[each]] += delta
                    column_potential[each] -= delta
                else:
                    least[each] -= delta
            column = following
        while column:
            owner[column], column = owner[way[column]], way[column]
    return sum(scores[owner[column] - 1][column - 1] for column in range(1, columns + 1) if owner[column])


def exact_and_f1(said: list[str], wanted: list[str]) -> tuple[float, float]:
    said_spans, wanted_spans = [normalised(each) for each in said], [normalised(each) for each in wanted]
    same = set(said_spans) == set(wanted_spans) and len(said_spans) == len(wanted_spans)
    table = [[overlap(set(left.split()), set(right.split())) for right in said_spans] for left in wanted_spans]
    f1 = aligned(table) / max(len(said_spans), len(wanted_spans), 1)
    return float(same), round(f1, 2)


def golds(sample: dict[str, Any]) -> list[list[str]]:
    """Every accepted answer as its list of spans."""
    validated = sample["validated_answers"]
    others = [
        {"number": number, "date": date, "spans": spans}
        for number, date, spans in zip(validated["number"], validated["date"], validated["spans"], strict=True)
    ]
    found = [spans_of(answer) for answer in [sample["answer"], *others]]
    return [spans for spans in found if spans and spans[0].strip()]


def spans_of(answer: dict[str, Any]) -> list[str]:
    if answer["number"]:
        return [str(answer["number"])]
    if answer["spans"]:
        return list(answer["spans"])
    date = answer["date"]
    return [" ".join(date[part] for part in ("day", "month", "year") if date[part])]


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    answer = LABEL.sub("", solver_output.output.choices[0].message.content).strip()
    said = [part.strip() for part in answer.split("|")]
    accepted = golds(sample)
    if not accepted:
        raise ValueError("the row has no answer")
    pairs = [exact_and_f1(said, wanted) for wanted in accepted]
    return {
        "scores": {"exact_match": max(exact for exact, _ in pairs), "f1": max(f1 for _, f1 in pairs)},
        "metadata": {"predicted": said, "ground_truths": accepted},
    }
