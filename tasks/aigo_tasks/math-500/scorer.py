"""The boxed answer of a solution, compared after normalisation.

Source: Hendrycks et al., `math_equivalence.py` of the MATH data set (what is removed and rewritten), with the answer form "The final answer is $…$" of
Lewkowycz et al. (Minerva, appendix D.1). Two answers are equal when their normalised texts are, or when both are numbers of the same value.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

SENTENCE = re.compile(r"[Ff]inal answer is:?\s*\$(.+?)\$", re.DOTALL)
REMOVED = (r"\left", r"\right", r"\!", r"\,", r"\;", r"\:", "\\ ", r"^\circ", r"^{\circ}", r"\$", "$", r"\%", "%")
DECIMAL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")


def boxed(text: str) -> str | None:
    r"""What stands in the last `\boxed{…}` (or `\fbox{…}`, or behind `\boxed `); `None`: there is no closed one."""
    start = max(text.rfind(r"\boxed"), text.rfind(r"\fbox"))
    if start < 0:
        return None
    rest = text[start:].split("x", 1)[1] if text.startswith(r"\fbox", start) else text[start + len(r"\boxed") :]
    if not rest.lstrip().startswith("{"):
        return rest.split("$")[0].strip() or None
    depth = 0
    body = rest.lstrip()
    for position, character in enumerate(body):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return body[1:position]
    return None


def final_answer(text: str) -> str | None:
    """The last box, else the last "final answer is $…$"; `None`: the text gives no final answer."""
    found = boxed(text)
    if found is None and (sentences := SENTENCE.findall(text)):
        found = sentences[-1]
    return found


def normalise(text: str) -> str:
    text = text.replace("\n", "").replace(r"\dfrac", r"\frac").replace(r"\tfrac", r"\frac")
    for part in REMOVED:
        text = text.replace(part, "")
    text = re.sub(r"\\text\{\s+[^}]*\}$", "", text)  # a unit behind the number
    text = re.sub(r"\\(?:text|textbf|mathrm|mbox)\{([^}]*)\}", r"\1", text)
    text = text.strip().rstrip(".").strip()
    text = re.sub(r"(?<=\d),(?=\d{3}(?:\D|$))", "", text) if "(" not in text and "[" not in text else text
    text = re.sub(r"\s+", "", text)
    if text.count("=") == 1 and len(text.split("=")[0]) <= 2:  # "x=5" asks for 5
        text = text.split("=")[1]
    text = re.sub(r"\\sqrt(\w)", r"\\sqrt{\1}", text)
    text = re.sub(r"\\frac(\w)(\w)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac(\w)\{", r"\\frac{\1}{", text)
    text = re.sub(r"(\\frac\{[^{}]*\})(\w)", r"\1{\2}", text)
    text = re.sub(r"^(-?\d+)/(\d+)$", r"\\frac{\1}{\2}", text)
    text = re.sub(r"(?<![\d}])\.(?=\d)", "0.", text)
    return text


def number(text: str) -> Fraction | None:
    """The value of a decimal number or a fraction of whole numbers; `None`: it is neither."""
    if DECIMAL.fullmatch(text):
        return Fraction(text)
    found = re.fullmatch(r"(-?)\\frac\{(-?\d+)\}\{(-?\d+)\}", text)
    if found is None or int(found[3]) == 0:
        return None
    value = Fraction(int(found[2]), int(found[3]))
    return -value if found[1] else value


def equal(said: str, wanted: str) -> bool:
    left, right = normalise(said), normalise(wanted)
    if left == right:
        return True
    first, second = number(left), number(right)
    return first is not None and first == second


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    said = final_answer(solver_output.output.choices[0].message.content)
    return {
        "scores": {"is_correct": said is not None and equal(said, sample["answer"]), "has_answer": said is not None},
        "metadata": {"predicted": said, "ground_truth": sample["answer"]},
    }
