"""Terminal output of judges compared with human labels, and of repetitions of a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from aigo_bridge.cli.tables import print_cells
from aigo_bridge.cli.terminal import name_of, printable
from aigo_bridge.text.numbers import shown_number
from aigo_bridge.text.plurals import plural
from aigo_stats.comparison.judges import Agreement, JudgeQuality
from aigo_stats.comparison.repetitions import Repeatability
from aigo_stats.comparison.texts import interval_text, level_text
from aigo_stats.statistics.intervals import NoInterval
from aigo_stats.terminal.statistics import console

_MAX_SCORES = 12
"""Maximum number of scores to show for a flaky sample."""


def show_judges(qualities: Sequence[JudgeQuality], labels: str, level: float) -> None:
    """Print the comparison of every score with the labels: agreement, corrected mean and confusion matrix."""
    screen = console()
    screen.print(Text(f"\nscores compared with the labels in {name_of(labels)}", style="bold"))
    interval = f"{level_text(level)} interval"
    names = ("score", "labelled", "same", "kappa", "alpha", "mean", "labels' mean", "corrected", interval)
    _print(screen, names, ((_name(quality), *_cells(quality)) for quality in qualities))
    for quality in qualities:
        for note in _notes(quality):
            screen.print(Text(f"  {_name(quality)}: {printable(note)}", style="yellow"))
    for quality in qualities:
        if isinstance(quality.agreement, Agreement) and quality.agreement.confusion:
            _show_confusion(screen, quality, quality.agreement)


def _print(screen: Console, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with names on the left and numbers on the right."""
    print_cells(screen, names, ((row, None) for row in rows), slice(1, None))


def _name(number: JudgeQuality | Repeatability) -> str:
    return name_of(f"{number.scorer}.{number.name}")


def _cells(quality: JudgeQuality) -> tuple[str, ...]:
    agreement = quality.agreement
    values = (
        (None, None, None)
        if isinstance(agreement, NoInterval)
        else (agreement.same, agreement.kappa, agreement.alpha)
    )
    means = (quality.judged_mean, quality.labelled_mean, quality.corrected_mean)
    numbers = map(shown_number, (*values, *means))
    return (str(quality.num_labelled), *numbers, interval_text(quality.estimate))


def _notes(quality: JudgeQuality) -> list[str]:
    notes = []
    if isinstance(quality.agreement, NoInterval):
        notes.append(f"no agreement: {quality.agreement.reason}")
    elif isinstance(quality.estimate, NoInterval):
        notes.append(f"no interval: {quality.estimate.reason}")
    if quality.num_unscored:
        notes.append(
            f"{plural(quality.num_unscored, 'sample has', 'samples have')} a label and no score: left out"
        )
    return notes


def _show_confusion(screen: Console, quality: JudgeQuality, agreement: Agreement) -> None:
    screen.print(Text(f"\n{_name(quality)}: labels in rows, scores in columns", style="bold"))
    classes = list(map(name_of, agreement.classes))
    rows = zip(classes, agreement.confusion, strict=True)
    _print(screen, ("", *classes), ((label, *map(shown_number, row)) for label, row in rows))


def show_repetitions(numbers: Sequence[Repeatability], num_odd: int, most: int) -> None:
    """Print the variance components of each score, and the samples whose scores change."""
    screen = console()
    for number in numbers:
        means = ", ".join(map(shown_number, number.means))
        screen.print(
            Text(f"\n{_name(number)}: {plural(len(number.means), 'time')}, means {means}", style="bold")
        )
        if number.components is None:
            screen.print(Text(f"  no split of its variance: {number.reason}", style="yellow"))
            continue
        _show_components(screen, number)
        screen.print(
            f"{len(number.flaky)} of {plural(number.num_samples, 'sample')} do not have the"
            " same score every time"
        )
        for sample in number.flaky[:most]:
            scores = " ".join(f"{score:g}" for score in sample.scores[:_MAX_SCORES])
            more = " …" if len(sample.scores) > _MAX_SCORES else ""
            screen.print(f"  {name_of(str(sample.sample_id))}  {scores}{more}", markup=False)
        if len(number.flaky) > most:
            screen.print(Text(f"  … and {len(number.flaky) - most} more; --flaky lists more", style="dim"))
    if num_odd:
        text = f"{plural(num_odd, 'sample is', 'samples are')} left out: several samples share their ids"
        screen.print(Text(text, style="yellow"))


def _show_components(screen: Console, number: Repeatability) -> None:
    parts = number.components
    assert parts is not None
    total = parts.sampling + parts.within
    rows = [("choice of samples", parts.sampling)]
    if parts.judge is None:
        rows.append(("model and judge", parts.within))
    else:
        rows += [("judge", parts.judge)]
        if parts.model is not None:
            rows.insert(1, ("model", parts.model))
    cells = (
        (name, shown_number(variance), shown_number(variance / total if total else None, (0, 1)))
        for name, variance in rows
    )
    _print(screen, ("spread from", "variance", "share"), cells)
    if parts.judge is None:
        note = (
            "no answer was scored twice, so the variance of the judge is unknown (score the "
            "result again with aigo-bridge score)"
        )
        screen.print(Text(f"  {note}", style="yellow"))
    elif parts.model is None:
        note = "all answers are the same, so the variance of the model is unknown"
        screen.print(Text(f"  {note}", style="yellow"))
    screen.print(f"standard error of the mean of one time: {shown_number(number.standard_error)}")
