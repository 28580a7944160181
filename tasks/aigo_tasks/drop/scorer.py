"""F1 of DROP as Inspect Evals computes it, exact match as lighteval does, and both as the official script.

`f1`: the bags of words of the answer and of each accepted answer, its spans joined by commas; a word counts as often
as it occurs. `official_*`: `drop_eval.py` of AllenNLP (Dua et al., 2019), with the answer as one span: sets of words,
spans aligned one to one, 0 where the accepted span has numbers and the answer none of them; averaged over the longer
list. Both round to two digits, and the best of the accepted answers counts. `exact_match`: the whole text is that of
an accepted answer but for blanks at its ends (lighteval).

The answer of the other scores is what stands behind the first `Answer:` of the text; without one the whole text.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from typing import Any

ARTICLES = re.compile(r"\b(a|an|the)\b")
LABEL = re.compile(r"answer\s*:\s*([^\n]+)", re.IGNORECASE)
PUNCTUATION = set(string.punctuation)


def is_number(text: str) -> bool:
    """Whether Python reads it as a number; infinity and NaN are numbers to the official script."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_finite(text: str) -> bool:
    return is_number(text) and math.isfinite(float(text))


def without_punctuation(text: str) -> str:
    return "".join(character for character in text if character not in PUNCTUATION)


def tidy(token: str) -> str:
    return " ".join(ARTICLES.sub(" ", token).split())


def joined(tokens: list[str]) -> str:
    return " ".join(token for token in tokens if token)


# --- the official script


def official_word(token: str) -> str:
    bare = token if is_number(token) else without_punctuation(token)
    return tidy(str(float(bare)) if is_number(bare) else bare)


def official_text(text: str) -> str:
    return joined([official_word(token) for token in re.split("[ -]", text.lower())])


def overlap(answer: set[str], accepted: set[str]) -> float:
    """F1 of two sets of words; of the accepted numbers one must be there."""
    numbers = {word for word in accepted if is_number(word)}
    return 0.0 if numbers and not numbers & answer else f1_of(len(answer & accepted), len(answer), len(accepted))


def f1_of(common: int, num_answer: int, num_accepted: int) -> float:
    precision = common / num_answer if num_answer else 1.0
    recall = common / num_accepted if num_accepted else 1.0
    return 2 * precision * recall / (precision + recall) if precision or recall else 0.0


def official(answer: str, spans: list[str]) -> tuple[float, float]:
    """Exact match and F1 of an answer of one span: the best span is its partner, the others have none."""
    text, accepted = official_text(answer), [official_text(span) for span in spans]
    scores = [overlap(set(text.split()), set(span.split())) for span in accepted]
    return float([text] == accepted), round(max(scores) / len(scores) * 100) / 100  # as NumPy rounds


# --- Inspect's


def word(token: str) -> str:
    token = token.casefold()
    trimmed = token.strip(string.whitespace + string.punctuation)
    for candidate in (token, trimmed):
        if is_finite(candidate):
            return tidy(str(float(candidate)))
    bare = without_punctuation(token)
    return tidy(str(float(bare)) if is_finite(bare) else bare)


def words(text: str) -> Counter[str]:
    return Counter(joined([word(token) for token in re.split("[ -]", text)]).split())


def f1(answer: str, accepted: list[str]) -> float:
    bag = words(answer)
    bags = [other for text in accepted if (other := words(text))]
    return round(max((f1_of((bag & other).total(), bag.total(), other.total()) for other in bags), default=0.0), 2)


# --- the row


def candidates(sample: dict[str, Any]) -> list[dict[str, Any]]:
    """The answer and the validated answers."""
    columns = sample["validated_answers"]
    validated = zip(columns["number"], columns["date"], columns["spans"], strict=True)
    return [sample["answer"], *({"number": n, "date": date, "spans": spans} for n, date, spans in validated)]


def spans_of(answer: dict[str, Any]) -> list[str]:
    if answer["number"] != "":
        return [str(answer["number"])]
    if answer["spans"]:
        return list(answer["spans"])
    return [" ".join(answer["date"][part] for part in ("day", "month", "year")).strip()]


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    text = solver_output.output.choices[0].message.content
    label = LABEL.search(text)
    answer = label.group(1) if label else text
    accepted = [spans_of(candidate) for candidate in candidates(sample)]
    pairs = [official(answer, spans) for spans in accepted if spans[0].strip()]
    if not pairs:
        raise ValueError("the row has no answer")
    return {
        "scores": {
            "f1": f1(answer, [",".join(spans) for spans in accepted]),
            "exact_match": bool(text) and text.strip() in {", ".join(spans).strip() for spans in accepted},
            "official_f1": max(score for _, score in pairs),
            "official_exact_match": max(exact for exact, _ in pairs),
        },
        "metadata": {"predicted": answer, "ground_truths": accepted},
    }
