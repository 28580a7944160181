"""Detection of ground truths that cannot be matched by any model. Such errors in the data would lower the
metrics, so they are reported before a model is called.

The scores remain as AI GO defines them: such a sample is wrong, or fails, as on the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SampleError, TemplateError
from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.plan.plan import Sample
from aigo_bridge.planning.checks import cell_of, places_of
from aigo_bridge.scoring.rendering import render_compared
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.spec.task import BenchmarkDefinition
from aigo_bridge.templates import SampleTemplate, as_list
from aigo_bridge.text.plurals import plural
from aigo_bridge.text.summaries import short

SHOWN = 3
"""Maximum number of different values to name in a warning."""
MOST_RENDERINGS = 10_000
"""Maximum number of renderings per field. A rendering takes a hundred times as long as reading a cell, and a
dataset may have a million rows.
"""

INCOMPARABLE = "these samples cannot be compared and will fail"
"""Hint for problems that affect every possible answer."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Fault:
    """Problem with the ground truth of a row."""

    field: str
    """Field of the scorer."""
    problem: str
    """Description for many rows: `is none of the choices`."""
    hint: str
    shown: str = ""
    """Value with the problem. Rows with the same value are reported together."""


def answer_issues(definition: BenchmarkDefinition, samples: Sequence[Sample]) -> Iterator[Issue]:
    """Yield a warning for each problem, with the number of rows, their values and the first row of each
    value.
    """
    if definition.solver is not None and definition.solver.postprocessor is not None:
        return  # The scored rows are created during the run.
    beside = (definition.dataset.keys if definition.dataset is not None else None) or ()
    for number, scorer in enumerate(definition.scorers):
        find = (_text_faults if scorer.answer_choices is None else _choice_faults)(scorer, beside)
        if find is not None:
            yield from _issues(find, ("definition", "scorers", number), samples)


def faulty_choices(warnings: Iterable[Issue]) -> Iterator[int]:
    """Yield the numbers of the scorers whose ground truth choices a plan's warnings report."""
    for issue in warnings:
        match issue.path:
            case ("definition", "scorers", int(number), "ground_truth_choice"):
                yield number


def _issues(
    find: Callable[[Row], Fault | None], path: tuple[str | int, ...], samples: Sequence[Sample]
) -> Iterator[Issue]:
    faults: dict[tuple[str, str], dict[Fault, list[Sample]]] = {}
    looked_at = len(samples)
    for count, sample in enumerate(samples):
        try:
            fault = find(sample.data)
        except _TooManyError:
            looked_at = count
            break
        if fault is not None:
            faults.setdefault((fault.field, fault.problem), {}).setdefault(fault, []).append(sample)
    for (field, problem), by_fault in faults.items():
        number_of = sum(map(len, by_fault.values()))
        of = "" if looked_at == len(samples) else "the first "
        values = ", ".join(map(_value, list(by_fault)[:SHOWN], list(by_fault.values())[:SHOWN]))
        more = f", and {len(by_fault) - SHOWN} other values" if len(by_fault) > SHOWN else ""
        message = f"{field!r} {problem} in {number_of} of {of}{plural(looked_at, 'sample')}: {values}{more}"
        yield Issue(
            message,
            path=(*path, field),
            hint=next(iter(by_fault)).hint,
            severity="warning",
            code=Code.WRONG_SAMPLE_DATA,
        )


def _value(fault: Fault, samples: Sequence[Sample]) -> str:
    where = f"sample {samples[0].id!r}" + (f" and {len(samples) - 1} more" if len(samples) > 1 else "")
    return f"{fault.shown} ({where})" if fault.shown else where


def _text_faults(scorer: ScorerSpec, beside: Collection[str]) -> Callable[[Row], Fault | None] | None:
    field, truths = scorer.truth, _Texts.of(scorer, beside)
    if field is None or truths is None or truths.is_constant:
        return None
    exact = scorer.compares_exactly and "value" not in dict(scorer.rendered())

    def find(row: Row) -> Fault | None:
        truth = truths.text(row)
        if not isinstance(truth, str):
            return truth
        if not truth.strip():
            hint = "an empty answer counts as correct; fill in the cells, or exclude these rows"
            return Fault(field, "is an empty text", hint)
        if exact and truth != truth.strip():
            hint = (
                "answers are compared character by character; write {{ … | trim }} to ignore the whitespace"
            )
            return Fault(field, "begins or ends with whitespace", hint, short(truth))
        return None

    return find


def _choice_faults(scorer: ScorerSpec, beside: Collection[str]) -> Callable[[Row], Fault | None] | None:
    field, truths = scorer.truth, _Texts.of(scorer, beside)
    choices = None if scorer.answer_choices is None else _choices(scorer.answer_choices, beside)
    if field is None or truths is None or choices is None:
        return None
    by_letter = not scorer.compares_likelihoods
    result = "these samples always count as wrong" if by_letter else INCOMPARABLE

    def find(row: Row) -> Fault | None:
        try:
            options = choices(row)
            if options is None:
                return None
        except (TemplateError, SampleError) as error:
            return Fault("choices", "cannot be read", INCOMPARABLE, str(error))
        if len(set(options)) < len(options):
            hint = "two answers have the same letter" if by_letter else INCOMPARABLE
            return Fault("choices", "contains a choice twice", hint, short(options))
        truth = truths.text(row)
        if not isinstance(truth, str):
            return truth
        if by_letter and not truth:
            hint = "only an empty answer counts as correct; fill in the cells, or exclude these rows"
            return Fault(field, "is an empty text", hint)
        if truth not in options:
            shown = f"{short(truth)} of {short(options)}"
            return Fault(field, "is not one of the choices", result + _near(truth, options), shown)
        if by_letter and len(truth) != 1:
            hint = f"{result}: answers are compared by their first character"
            return Fault(field, "does not start with a character", hint, short(truth))
        return None

    return find


def _near(truth: str, choices: Sequence[str]) -> str:
    if truth.strip().casefold() in {choice.strip().casefold() for choice in choices}:
        return "; it differs from a choice only in case or whitespace, which are compared"
    return ""


def _choices(
    written: str | Sequence[str], beside: Collection[str]
) -> Callable[[Row], list[str] | None] | None:
    """Return a function that returns the choices of a row, or `None` if a cell is missing, which `nulls`
    reports. Return `None` if only the run determines the choices.
    """
    if not isinstance(written, str):
        listed = [str(choice) for choice in written]
        return lambda _: listed
    template = SampleTemplate(written)
    path, memo = template.lone_path, _Memo.of(template)
    places = places_of(template, beside)
    if memo is None:
        return None

    def choices(row: Row) -> list[str] | None:
        if any(is_missing(cell_of(row, place)) for place in places):
            return None
        texts = as_list(
            row[path[1]] if path is not None and len(path) == 2 else memo.get(row, template.evaluate)
        )
        if not all(isinstance(choice, str) for choice in texts):
            raise TemplateError(f"found {short(texts)}, expected a list of texts", code=Code.TEMPLATE_FAILED)
        return texts

    return choices


class _TooManyError(Exception):
    """Too many different values of a field to check."""


class _Memo:
    """Cache of the values of a template. Rows with the same cells are rendered one time."""

    def __init__(self, template: SampleTemplate):
        names = template.reads | template.optional_reads
        self._template = template
        self._columns = (
            tuple(sorted({name[1] for name in names})) if all(len(name) > 1 for name in names) else None
        )
        self._values: dict[Hashable, Any] = {}
        self._renderings = 0

    @classmethod
    def of(cls, template: SampleTemplate) -> _Memo | None:
        """Return the cache of a template; `None` if it reads more than the row."""
        names = template.reads | template.optional_reads
        return cls(template) if all(name[0] == "sample" for name in names) else None

    def get(self, row: Row, give: Callable[..., Any]) -> Any:
        key: Hashable = None
        if self._columns is not None:
            cells = [row.get(column) for column in self._columns]
            # 1, 1.0 and true are equal but are printed differently.
            key = tuple((type(cell), cell) for cell in cells if isinstance(cell, Hashable))
            if len(key) == len(cells) and key in self._values:
                return self._values[key]
            key = key if len(key) == len(cells) else None
        self._renderings += 1
        if self._renderings > MOST_RENDERINGS:
            raise _TooManyError
        value = give(sample=row)
        if key is not None:
            self._values[key] = value
        return value


class _Texts:
    """Compared text of each row, or the reason for its absence."""

    def __init__(self, template: SampleTemplate, field: str, memo: _Memo, beside: Collection[str]):
        self._template, self._field, self._memo = template, field, memo
        self.is_constant = template.is_constant
        """Whether the text is a constant in the task, which the author chose."""
        path = template.lone_path
        self._column = path[1] if path is not None and len(path) == 2 else None
        self._places = places_of(template, beside)

    @classmethod
    def of(cls, scorer: ScorerSpec, beside: Collection[str]) -> _Texts | None:
        """Return the ground truths of a scorer; `None` if it does not have any, or if they depend on more
        than the row.
        """
        if scorer.truth is None or scorer.truth_template is None:
            return None
        template = SampleTemplate(scorer.truth_template)
        memo = _Memo.of(template)
        return None if memo is None else cls(template, scorer.truth, memo, beside)

    def text(self, row: Row) -> str | Fault | None:
        """Return the text of a row; `None` if `nulls` reports the row."""
        if self._column is not None and type(cell := row.get(self._column)) in (str, int):
            return str(cell)  # Same form as in templates
        if any(is_missing(cell_of(row, place)) for place in self._places):
            return None
        text: str | Fault = self._memo.get(row, self._rendered)
        return text

    def _rendered(self, sample: Row) -> str | Fault:
        try:
            return render_compared(self._template, {"sample": sample}, self._field)
        except SampleError as error:
            if error.kind == "MissingValue":
                return Fault(self._field, "is null or missing", INCOMPARABLE)
            return Fault(self._field, "cannot be rendered", INCOMPARABLE, error.message)
