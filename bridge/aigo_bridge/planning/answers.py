"""Right answers that no model can give: mistakes in the data that would count against the model, told before
it is called.

The values stay AI GO's: such a sample is wrong, or fails, as the platform has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SampleError, TemplateError
from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.metrics.metric import short
from aigo_bridge.plan.plan import Sample
from aigo_bridge.planning.checks import cell_of, places_of
from aigo_bridge.scoring.variables import render_compared
from aigo_bridge.spec import BenchmarkDefinition
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.templates import SampleTemplate, as_list
from aigo_bridge.text.plurals import plural

SHOWN = 3
"""Different values that a warning names."""
MOST_RENDERINGS = 10_000
"""Renderings per field: one costs a hundred times as much as looking at a cell, and planning reads a million
rows.
"""

INCOMPARABLE = "these samples cannot be compared and will fail"
"""Hint of faults that no answer of a model overcomes."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Fault:
    """What is wrong with the right answer of a row."""

    field: str
    """Field of the scorer."""
    problem: str
    """In words, for many rows: `is none of the choices`."""
    hint: str
    shown: str = ""
    """The value that has it; rows with the same one are told together."""


def answer_issues(definition: BenchmarkDefinition, samples: Sequence[Sample]) -> Iterator[Issue]:
    """A warning for each fault, with the number of rows, their values and the first row of each; none for
    sound rows.

    Args:
        definition: config bound; its templates are known to compile.
        samples: all that will be run.
    """
    if definition.solver is not None and definition.solver.postprocessor is not None:
        return  # the rows that are scored are made in the run
    beside = (definition.dataset.keys if definition.dataset is not None else None) or ()
    for number, scorer in enumerate(definition.scorers):
        find = (_text_faults if scorer.answer_choices is None else _choice_faults)(scorer, beside)
        if find is not None:
            yield from _issues(find, ("definition", "scorers", number), samples)


def faulty_choices(warnings: Iterable[Issue]) -> Iterator[int]:
    """Numbers of the scorers of whose right choices a plan's warnings tell."""
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
            return Fault("choices", "has a choice twice", hint, short(options))
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
    """The choices of a row, or `None` where a cell lacks, as `nulls` tells; no function where only
    the run knows them.
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
    """A field's values would cost too much to look at."""


class _Memo:
    """What a template gives for rows; rows with the same cells are rendered once."""

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
        """`None` for a template that reads more than the row."""
        names = template.reads | template.optional_reads
        return cls(template) if all(name[0] == "sample" for name in names) else None

    def get(self, row: Row, give: Callable[..., Any]) -> Any:
        key: Hashable = None
        if self._columns is not None:
            cells = [row.get(column) for column in self._columns]
            # 1, 1.0 and true are equal, and print differently.
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
    """A compared text of rows, or why there is none."""

    def __init__(self, template: SampleTemplate, field: str, memo: _Memo, beside: Collection[str]):
        self._template, self._field, self._memo = template, field, memo
        self.is_constant = template.is_constant
        """Whether it is written in the task, and as its author wants it."""
        path = template.lone_path
        self._column = path[1] if path is not None and len(path) == 2 else None
        self._places = places_of(template, beside)

    @classmethod
    def of(cls, scorer: ScorerSpec, beside: Collection[str]) -> _Texts | None:
        """The right answers of a scorer; `None` where it has none, or they depend on more than the row."""
        if scorer.truth is None or scorer.truth_template is None:
            return None
        template = SampleTemplate(scorer.truth_template)
        memo = _Memo.of(template)
        return None if memo is None else cls(template, scorer.truth, memo, beside)

    def text(self, row: Row) -> str | Fault | None:
        """`None` for a row of which `nulls` tells."""
        if self._column is not None and type(cell := row.get(self._column)) in (str, int):
            return str(cell)  # as templates print it
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
