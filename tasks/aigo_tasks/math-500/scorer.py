"""The final answer of a solution, found and compared as one of two published definitions does it.

`inspect-evals` (its task `math`): what stands behind the last "ANSWER:", compared as text by the rules of Hendrycks et al. (2021), `math_equivalence.py` of the MATH dataset.
The right answer is what stands in the last box of the solution.

`lighteval` (its task `math_500`): the metric `pass@k` of expressions. Answer and solution are searched alike, for the likeliest place of a final answer first (`PLACES`);
what is found is read as LaTeX or as a number, and two expressions are equal when a computer algebra system says so. It needs the package latex2sympy2_extended, which brings
sympy.
"""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Callable
from itertools import groupby, product
from typing import Any

LIGHTEVAL = "<< config.definition >>" == "lighteval"

# --- inspect-evals

ANSWER = re.compile(r"(?i)ANSWER\s*:\s*([^\n]+)\s*\Z")
REWRITTEN = (
    *(("\n", ""), ("\\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), ("\\left", ""), ("\\right", "")),
    *(("^{\\circ}", ""), ("^\\circ", ""), ("\\$", ""), ("$", ""), ("\\ ", "")),
)
"""What of a text, and into what, in this order."""


def boxed(text: str) -> str | None:
    r"""The content of the last `\boxed{…}` (without one of the last `\fbox{…}`), or what stands behind `\boxed `; `None`: there is no closed one."""
    if "\\boxed " in text:
        return text.rpartition("\\boxed ")[2].partition("$")[0]
    start = text.rfind("\\boxed" if "\\boxed" in text else "\\fbox")
    depth = 0
    for end in range(start, len(text)) if start >= 0 else ():
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0 and text[end] == "}":
            return text[start : end + 1].partition("{")[2][:-1]
    return None


def stripped(text: str) -> str:
    """What of an answer is compared.

    Raises:
        IndexError, ValueError: a root or a fraction without an argument, a slash between what are no whole numbers. Such texts are compared as they are.
    """
    for part, other in REWRITTEN:
        text = text.replace(part, other)
    text = text.partition("\\text{ ")[0].replace("\\%", "").replace("%", "")  # a unit; percent
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    if not text:
        return text
    text = "0" + text if text[0] == "." else text
    sides = text.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:  # "x=5" asks for 5
        text = sides[1]
    head, *roots = text.split("\\sqrt")
    text = "".join([head, *("\\sqrt" + (root if root[0] == "{" else f"{{{root[0]}}}{root[1:]}") for root in roots)])
    text = with_braces(text.replace(" ", ""))
    text = "\\frac{1}{2}" if text == "0.5" else text
    numbers = text.split("/")
    if len(numbers) == 2 and text == "/".join(str(int(number)) for number in numbers):
        text = f"\\frac{{{int(numbers[0])}}}{{{int(numbers[1])}}}"
    return text


def with_braces(text: str) -> str:
    r"""`\frac12` and `\frac1{2}` as `\frac{1}{2}`."""
    head, *fractions = text.split("\\frac")
    for number, part in enumerate(fractions):
        if part[0] == "{":
            continue
        if len(part) < 2:
            return text
        fractions[number] = f"{{{part[0]}}}" + (part[1:] if part[1] == "{" else f"{{{part[1]}}}{part[2:]}")
    return "\\frac".join([head, *fractions])


def same_text(answer: str, right: str) -> bool:
    try:
        return stripped(answer) == stripped(right)
    except (IndexError, ValueError):
        return answer == right


def judged_as_text(answer: str, solution: str) -> tuple[bool, str | None]:
    """Whether an answer is right, and what was found as its final answer."""
    lines = ANSWER.findall(answer)
    box = boxed(solution)
    right = solution if box is None else box
    return bool(lines) and same_text(lines[-1], right), lines[-1] if lines else None


# --- lighteval: where answers stand

NUMBER = r"-?\d+(?:[.,]\d+)?"
FRACTION = rf"(-?\\frac{{{NUMBER}}}{{{NUMBER}}})"
PERCENT = r"\\?%|[Pp]ercent|[Pp]ercentage|[Pp]ct"
ENVIRONMENTS = (  # begin, one character of the content, end
    (r"(?<!\\)\$\$", r"(?:[^$]|\$(?!\$))", r"(?<!\\)\$\$"),
    (r"(?<!\\)\\\[", r"(?:[^\\]|\\(?!\]))", r"(?<!\\)\\\]"),
    (r"(?<!\\|\d)\$", r"(?:\\[$]|[^\n$])", r"(?<!\\)\$"),
    (r"(?<!\\)\\\(", r"(?:[^\\\n]|\\(?!\)))", r"(?<!\\)\\\)"),
    (r"\s\[", r"[^\n\]\[]", r"\]\s"),
)
MOST_FORMULAS = 6


def formulas(with_box: bool) -> str:
    """Up to six pieces of mathematics with "and", "or" or a comma between them; of each the groups are the environments' contents, a bare fraction's, and the percent sign."""
    contents = [rf"{each}*?\\boxed{{{each}+?}}{each}*?" if with_box else f"{each}+?" for _, each, _ in ENVIRONMENTS]
    kinds = [f"{begin}({content}){end}" for (begin, _, end), content in zip(ENVIRONMENTS, contents, strict=True)]
    one = rf"(?:(?:{'|'.join([*kinds, '()(?!)' if with_box else FRACTION])})\s*({PERCENT})?)"
    return one + rf"(?:\s*(?:and|or|,)\s*{one})?" * (MOST_FORMULAS - 1)


SIGNS = r"\+\-\*×/\^\(\)÷"
EXPRESSION = rf"(?P<expr>-?\(?-?\d[\d.\s{SIGNS}]*[{SIGNS}][\d.\s{SIGNS}]+\)?)"
DIGITS = (
    r"(?:(?P<integer1>-?\d{1,3}(?:[ ,]\d{3})+)(?P<decimal1>\.\d+)?|(?P<integer2>-?\d+)(?P<decimal2>[.,]\d+)|(?P<decimal3>\.\d+)|(?P<integer3>-?\d+))"
    r"(?P<percent>\s*(?:%|[Pp]ercent|\s*[Pp]ercentage|\s*[Pp]ct))?"
)
CURRENCY = "[$€£¥₹₽₪₩₫฿₡₢₣₤₥₦₧₨₩₪₫₭₮₯₰₱₲₳₴₵₶₷₸₹₺₻₼₽₾₿]"
BEFORE = r"(?:^|\s|=)(?:\*\*)?"
CALCULATION = rf"(?:{BEFORE}{EXPRESSION}(?:\*\*)?(?:\.|,|\s?:|\s|\)|\$|$))"
AMOUNT = rf"(?:{BEFORE}{CURRENCY}?{DIGITS})"
EITHER = f"(?:{CALCULATION}|{AMOUNT})"
FINAL = r"(?i:final answer is):?\s*"
FINAL_LOOSE = r"(?i:final answer.{0,100}?)\s+is:?"
NEAR = r"(?:.{0,100}=\s*|.{0,50}?)"


def places() -> list[tuple[int, re.Pattern[str], str]]:
    """Rank (the least is searched first), pattern, and how a match is read. Of one rank the match that ends last counts, then the longest, then the first of these."""
    latex, boxes = formulas(with_box=False), formulas(with_box=True)
    as_latex = [
        (0, rf"{FINAL}(?:{latex})\.?\s?I hope"),
        (50, rf"{FINAL_LOOSE}\s*(?:{latex})"),
        (100, rf"(?i:answer)\s?:.{{0,50}}?(?:{latex})"),
        (200, rf"(?i:answer).{{0,50}}?(?:{latex})"),
        (300, latex),
        (55, boxes),
    ]
    as_number = [
        (0, rf"{FINAL}{EITHER}\.?\s?I hope"),
        (50, rf"{FINAL_LOOSE}{EITHER}"),
        (100, rf"(?i:answer)\s?:{NEAR}{EITHER}(?!\s*=)"),
        (200, rf"(?i:answer){NEAR}{EITHER}(?!\s*=)"),
        (300, CALCULATION),
        (300, AMOUNT),
    ]
    return [
        *((rank, re.compile(pattern, re.DOTALL), "latex") for rank, pattern in as_latex),
        (55, re.compile(r"(\\boxed{.+})", re.DOTALL), "box"),
        *((rank, re.compile(pattern), "number") for rank, pattern in as_number),
    ]


if LIGHTEVAL:
    try:
        import sympy
        from latex2sympy2_extended.latex2sympy2 import FiniteSet, NormalizationConfig, is_expr_of_only_symbols, latex2sympy, normalize_latex
        from sympy.core.function import UndefinedFunction
        from sympy.core.relational import Relational
        from sympy.utilities.exceptions import SymPyDeprecationWarning
    except ImportError as error:
        raise ImportError(f"definition=lighteval compares expressions with the package latex2sympy2_extended: pip install latex2sympy2_extended==1.0.6 ({error})") from error
    warnings.simplefilter("ignore", SymPyDeprecationWarning)  # sets in sums, as answers have them
    PLACES = places()
    MATRIX = (sympy.MatrixBase, sympy.MatrixExpr)
    PLACES_OF_DECIMALS = 6
    SECONDS = 5.0
    SECONDS_AGAIN = 0.5
    WITH_I = re.compile(
        r"\\mathbb\{C\}|\\i\b|\bi\b|\\text\{i\}|\\mathrm\{i\}|\\imath\b|\\det|\\operatorname\{tr\}|\\operatorname\{rank\}|\\text\{rank\}"
        r"|\\arg\{|\\Re\{|\\Im\{|\\operatorname\{(?:Re|Im)\}|\\text\{(?:Re|Im)\}"
    )
    """Formulas in which variables are not taken for real."""

# --- lighteval: how they are read

Found = list[Any]
"""The expression that an answer was read as, if any, and the text of the first place as another chance."""


class TimeIsUpError(BaseException):
    """No `Exception`, as sympy and the parser catch these on their way, and would go on without an end."""


UNSETTLED: list[str] = []
"""What was not done in time, of the answer that is being judged."""


def in_time(function: Callable[[], Any], otherwise: Any, what: str) -> Any:
    """A value, or another one where it takes more than `SECONDS` of processor time, so that a busy machine changes no score.

    Raises:
        RuntimeError: there is no such limit here; an answer without one could take for ever, and a guess would be a wrong score.
    """

    def stop(*_: Any) -> None:
        raise TimeIsUpError

    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        raise RuntimeError("definition=lighteval compares expressions in limited time, which a thread of this process cannot do: run without --snippets in-process")
    previous = signal.signal(signal.SIGPROF, stop)
    try:
        # Again and again, until it is heard: what is raised in a finalizer goes no further.
        signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS_AGAIN)
        try:
            return function()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TimeIsUpError:
        UNSETTLED.append(what)
        return otherwise
    finally:
        signal.signal(signal.SIGPROF, previous)


def attempt(function: Callable[[], Any], otherwise: Any = None) -> Any:
    """A value, or another one where it cannot be computed; that time is up is passed on."""
    try:
        return function()
    except Exception:  # sympy raises whatever it likes over what a model wrote
        return otherwise


def found_in(text: str) -> Found:
    """What a text gives as its final answer."""
    texts: list[str] = []
    for _, places_of_rank in groupby(sorted(PLACES, key=lambda place: place[0]), key=lambda place: place[0]):
        matches = [(match, kind) for _, pattern, kind in places_of_rank for match in pattern.finditer(text)]
        for match, kind in sorted(matches, key=lambda found: (found[0].end(), -found[0].start()), reverse=True):
            value, content = number_of(match) if kind == "number" else latex_of(match, kind == "box")
            texts += [content] if content else []
            if value is not None:
                return [value, *texts[:1]]
    return texts[:1]


def latex_of(match: re.Match[str], is_box: bool) -> tuple[Any, str]:
    """The formulas of a match; several that can all be read are a set."""
    config = NormalizationConfig(
        basic_latex=True, units=True, malformed_operators=True, nits=True, boxed="last" if is_box else "all", equations=True
    )
    groups = match.groups() if not is_box else (match[1], None)
    size = 2 if is_box else len(ENVIRONMENTS) + 2
    texts, values = [], []
    for start in range(0, len(groups), size):
        *contents, percent = groups[start : start + size]
        content = next(filter(None, contents), None)
        if content is not None:
            texts.append(normalize_latex(content, config=config))
            values.append(parsed(texts[-1], bool(percent)))
    if not texts:
        return None, ""
    if len(texts) == 1 or any(value is None for value in values):
        return values[0], texts[0]
    members = [member for value in values for member in (value.args if isinstance(value, sympy.FiniteSet) else [value])]
    return FiniteSet(*members), " and ".join(texts)


def parsed(latex: str, is_percentage: bool) -> Any:
    def parse() -> Any:
        value = latex2sympy(latex, is_real=not WITH_I.search(latex), convert_degrees=False, normalization_config=None)
        return percentage(value) if is_percentage else value

    # A model's text: what cannot be parsed has no value, and parsers raise whatever they like.
    return in_time(lambda: attempt(parse), None, latex)


def percentage(value: Any) -> Any:
    return sympy.Mul(value, sympy.Rational(1, 100), evaluate=False)


def number_of(match: re.Match[str]) -> tuple[Any, str]:
    """A number, or a calculation without letters."""
    groups = match.groupdict()
    integer, decimal = (next((groups[name + each] for each in "123" if groups.get(name + each)), "") for name in ("integer", "decimal"))
    if integer or decimal:
        text = (integer.replace(",", "").replace(" ", "").lstrip("0") or "0") + decimal.replace(",", ".")
        value = attempt(lambda: sympy.Number(text))
        return percentage(value) if groups["percent"] and value is not None else value, text
    text = groups["expr"] or ""
    calculation = text.replace("\n", " ").replace("^", "**")
    return in_time(lambda: attempt(lambda: sympy.parse_expr(calculation, evaluate=False)), None, text), text


# --- lighteval: when they are equal


def equal(right: Any, answer: Any) -> bool:
    """Whether two of the things found are equal: expressions as such, texts as such, never one and the other."""
    if isinstance(right, str) and isinstance(answer, str):
        return right.strip() == answer.strip() != ""
    if not all(isinstance(each, (sympy.Basic, sympy.MatrixBase)) for each in (right, answer)):
        return False
    # As in the reference, what cannot be compared in time is not equal.
    return bool(in_time(lambda: attempt(lambda: equal_expressions(right, answer), False), False, "comparison"))


def equal_expressions(right: Any, answer: Any) -> bool:
    if is_assignment(right) and not is_equation(answer):
        right = last_relation(right).rhs
    if is_equation(answer) and not is_equation(right):
        answer = last_relation(answer).rhs
    if is_relation(right) and isinstance(answer, sympy.Set):  # 1 < x < 2 and an interval
        relation = right
        right = attempt(lambda: without_functions(relation).as_set(), right)
    if written_alike(right, answer):
        return True
    if is_relation(right) and is_relation(answer):
        return equal_relations(right, answer)
    collections = (sympy.Set, sympy.Tuple)
    if isinstance(right, collections) or isinstance(answer, collections):
        return equal_sets(right, answer)
    if isinstance(right, sympy.Symbol) or isinstance(answer, sympy.Symbol):
        return equal_symbols(right, answer)
    return equal_numbers(right, answer) or no_difference(right, answer)


def relations_of(expression: Any) -> tuple[Any, ...]:
    return expression.args if isinstance(expression, sympy.And) else (expression,)


def is_relation(expression: Any) -> bool:
    return all(isinstance(each, Relational) for each in relations_of(expression))


def is_equation(expression: Any) -> bool:
    return bool(relations_of(expression)) and all(isinstance(each, sympy.Eq) for each in relations_of(expression))


def is_assignment(expression: Any) -> bool:
    return is_equation(expression) and is_expr_of_only_symbols(relations_of(expression)[0].lhs)


def last_relation(expression: Any) -> Any:
    return last_relation(expression.args[-1]) if isinstance(expression, sympy.And) else expression


def without_functions(expression: Any) -> Any:
    """f(x) as a symbol, so that it can be solved for."""
    if not isinstance(expression, sympy.Basic):
        return expression
    if isinstance(expression.func, UndefinedFunction):
        return sympy.Symbol("_".join([expression.func.__name__, "_".join(str(without_functions(each)) for each in expression.args)]))
    return attempt(lambda: expression.func(*map(without_functions, expression.args)), expression) if expression.args else expression


def evaluated(expression: Any) -> Any:
    return attempt(lambda: expression.doit(), expression)


def written_alike(right: Any, answer: Any) -> bool:
    left, other = evaluated(right), evaluated(answer)
    return bool(attempt(lambda: left == other or str(left).strip() == str(other).strip(), False))


def equal_relations(right: Any, answer: Any) -> bool:
    if isinstance(right, sympy.And):
        return all(equal_relations(*pair) for pair in zip(right.args, answer.args, strict=False))
    if type(right) is type(answer) and attempt(lambda: equal_expressions(right.lhs - right.rhs, answer.lhs - answer.rhs), False):
        return True
    mirrored = ((sympy.Ge, sympy.Le), (sympy.Le, sympy.Ge), (sympy.Gt, sympy.Lt), (sympy.Lt, sympy.Gt), (sympy.Eq, sympy.Eq))
    if not any(isinstance(right, kind) and isinstance(answer, other) for kind, other in mirrored):
        return False
    return bool(attempt(lambda: equal_expressions(right.lhs - right.rhs, answer.rhs - answer.lhs), False))


def equal_sets(right: Any, answer: Any) -> bool:
    collections = (sympy.Set, sympy.Tuple)
    left, other = (each if isinstance(each, collections) else sympy.FiniteSet(each) for each in (right, answer))
    if isinstance(left, sympy.Interval) and isinstance(other, sympy.Interval):
        bounds_alike = left.left_open == other.left_open and left.right_open == other.right_open
        return bounds_alike and equal_expressions(left.start, other.start) and equal_expressions(left.end, other.end)
    if left == other:
        return True
    if isinstance(left, sympy.Set) and isinstance(other, sympy.Set) and left.symmetric_difference(other).is_empty:
        return True
    lists = (sympy.FiniteSet, sympy.Tuple)
    if isinstance(left, lists) and isinstance(other, lists):
        return equal_members(left, other)
    # (1, 2) is read as an open interval.
    if isinstance(left, sympy.Interval) and isinstance(other, lists):
        return bool(left.is_open) and len(other) == 2 and equal_members(sympy.Tuple(left.start, left.end), other)
    if isinstance(other, sympy.Interval) and isinstance(left, lists):
        return bool(other.is_open) and len(left) == 2 and equal_members(left, sympy.Tuple(other.start, other.end))
    return False


def equal_members(right: Any, answer: Any) -> bool:
    if len(right) != len(answer):
        return False
    if isinstance(right, sympy.FiniteSet):
        pairs = zip(in_order(right), in_order(answer), strict=False)
    elif isinstance(right, sympy.Tuple) and isinstance(answer, FiniteSet):
        pairs = zip(right.args, answer._unsorted_args, strict=False)
    else:
        pairs = zip(right.args, in_order(answer) if isinstance(answer, sympy.FiniteSet) else answer.args, strict=False)
    return all(equal_expressions(*pair) for pair in pairs)


def in_order(members: Any) -> list[Any]:
    def key(member: Any) -> Any:
        value = last_relation(member).rhs if is_assignment(member) else member
        return attempt(lambda: sympy.default_sort_key(value.evalf())) or sympy.default_sort_key(value)

    return list(sympy.ordered(members.args, keys=key, default=False))


def equal_symbols(right: Any, answer: Any) -> bool:
    """A word may be a symbol here, and the product of its letters there."""
    for symbol, other in ((right, answer), (answer, right)):
        if isinstance(symbol, sympy.Symbol) and symbol.name.lower() == "e" and other == sympy.E:
            return True
    for symbol, other in ((right, answer), (answer, right)):
        letters = isinstance(other, sympy.Mul) and all(each == sympy.E or isinstance(each, sympy.Symbol) for each in other.args)
        if isinstance(symbol, sympy.Symbol) and letters:
            word = "".join(each.name if isinstance(each, sympy.Symbol) else "e" for each in other.args)
            return symbol.name.lower() == word.lower()
    return right == answer


def is_amount(expression: Any, kind: type) -> bool:
    """Whether it is a number, or a percentage of one."""
    is_percentage = isinstance(expression, sympy.Mul) and len(expression.args) == 2 and expression.args[1] == sympy.Rational(1, 100)
    return isinstance(expression.args[0] if is_percentage else expression, kind)


def equal_numbers(right: Any, answer: Any) -> bool:
    """Equal values; to six decimals where one of the two is a decimal number."""
    if isinstance(right, MATRIX) and isinstance(answer, MATRIX):
        left, other = evaluated(right), evaluated(answer)
        if isinstance(left, sympy.MatrixBase) and isinstance(other, sympy.MatrixBase) and left.shape == other.shape:
            return all(equal_numbers(*pair) for pair in zip(left.flat(), other.flat(), strict=True))
        return False
    if not any(is_amount(each, sympy.Number) for each in (right, answer)):
        return bool(attempt(lambda: (right - answer).evalf(chop=True) == 0, False))
    left, other = evaluated(right), evaluated(answer)
    if not any(is_amount(each, sympy.Float) for each in (right, answer)):
        return bool(left == other)
    if not (isinstance(left, sympy.Number) and isinstance(other, sympy.Number)):
        return False
    return bool(left.round(PLACES_OF_DECIMALS) == other.round(PLACES_OF_DECIMALS))


def no_difference(right: Any, answer: Any) -> bool:
    difference = attempt(lambda: sympy.simplify(right - answer))
    if isinstance(difference, sympy.MatrixBase):
        return bool(difference.is_zero_matrix)
    return bool(isinstance(difference, sympy.Basic) and difference.is_zero)


def judged_by_algebra(answer: str, solution: str) -> tuple[bool, str | None]:
    """Whether an answer is right, and what was found as its final answer."""
    # A solution without any formula or number is compared as it is.
    text = f"ANSWER: {solution}".strip()
    found = found_in(answer.strip())
    pairs = product(found_in(text) or [text], found)
    return any(equal(*pair) for pair in pairs), str(found[-1]) if found else None


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    answer = solver_output.output.choices[0].message.content
    UNSETTLED.clear()
    is_correct, predicted = (judged_by_algebra if LIGHTEVAL else judged_as_text)(answer, sample["solution"])
    return {
        "scores": {"is_correct": is_correct, "has_answer": predicted is not None},
        "metadata": {"predicted": predicted, "ground_truth": sample["answer"]} | ({"not_in_time": [*UNSETTLED]} if UNSETTLED else {}),
    }
