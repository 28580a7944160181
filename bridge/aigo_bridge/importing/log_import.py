"""The import of a log: how it is done, and what became of it, as told in its loss report, on the terminal and
to programs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, Literal

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.exit_codes import ExitCode, of_import
from aigo_bridge.importing.redaction import Redaction, redaction
from aigo_bridge.text.escapes import visible
from aigo_bridge.text.json_text import dumps
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    # Plans take longer to load than most logs to import.
    from aigo_bridge.plan.logged_plan import LoggedPlan
    from aigo_bridge.plan.plan import TaskPlan

OutputFormat = Literal["json", "json.gz", "json.zst", "parquet"]
ContextChoice = Literal["full", "delta", "none"]
EventChoice = Literal["all", "default", "minimal"]


@dataclass(frozen=True)
class ImportOptions:
    """How logs of engines are imported."""

    context: ContextChoice = "full"
    """How much of the models' inputs is written; `full` is what AI GO expects."""
    output_format: OutputFormat = "json"
    events: EventChoice = "default"
    """Which events the traces keep."""
    jobs: int | None = None
    """Processes; `None` for as many as there are cores."""
    redact: bool = True
    """Take out well-known key formats and values of variables that look like keys."""
    patterns: tuple[str, ...] = ()
    """Further regular expressions of secrets; they hold also when `redact` is off."""
    bounds: Bounds = DEFAULT_BOUNDS
    """What a log may ask of the machine."""
    max_loss: int | None = None
    """More dropped things than this in a log are an error; `None`: any number is fine."""
    provenance: bool = False
    """Write `<name>.provenance.json` beside each result, which is read again for that."""
    recompute: Callable[[LoggedPlan], TaskPlan | None] | None = None
    """Gives the user's own plan for the one that a log of ours carries, so that its code computes the metrics
    anew; raises `EvidenceError` where the two differ. `None`, and where it gives none: metrics are taken as
    they are stored."""

    name: str | None = None
    """File name of the only result, without its suffix; `None`: results are named after their logs."""

    def stem(self, name: str, taken: set[str], fallback: str = "log") -> str:
        """Return the file name of a result without its suffix; see `file_stem`.

        Raises:
            UsageError: there is more than one result for the only name.
        """
        if self.name is None:
            return file_stem(name, taken, fallback)
        if taken:
            raise UsageError(SEVERAL_RESULTS, code=Code.WRONG_OPTION)
        taken.add(self.name)
        return self.name

    def redaction(self) -> Redaction:
        """The redaction to apply, with counts of its own.

        Raises:
            UsageError: a pattern is not a regular expression, or matches the empty text.
        """
        if self.redact:
            return redaction(self.patterns)
        return redaction(self.patterns, environment={}, well_known=False)


SEVERAL_RESULTS: Final = (
    "--out names one file, but the logs have several results; name a folder, for example --out evidence"
)
NOT_RECOMPUTED: Final = "not recomputed"
DAMAGED: Final = "DamagedLog"
"""The log's fault: bytes are missing, or are not what the format says."""
UNMAPPED: Final = "UnmappedLog"
"""Nobody's proven fault but ours: the log may be sound."""

DamageKind = Literal["DamagedLog", "UnmappedLog"]


class UnmappedError(EvidenceError):
    """The code that maps a log failed at a part of it."""

    def __init__(self, message: str):
        super().__init__(message, code=Code.UNMAPPED_LOG)


@dataclass(frozen=True)
class Damage:
    """A part of a log that is not in the evidence."""

    member: str
    """Member of the archive, or file of the log; `""` for the log itself."""
    offset: int | None
    """Byte offset in the file, where it is known."""
    reason: str
    kind: DamageKind = DAMAGED
    """Whose fault it is; the `error_type` in the evidence."""

    def __str__(self) -> str:
        where = self.member or "file"
        at = "" if self.offset is None else f" at byte {self.offset}"
        return f"{where}{at}: {self.reason}"


def kind_of(error: Exception) -> DamageKind:
    """Whose fault an error is."""
    return UNMAPPED if isinstance(error, UnmappedError) else DAMAGED


def unmapped(part: str, error: Exception) -> str:
    """The reason for a part at which our own code failed: said as that, with the place in the code."""
    place, step = "", error.__traceback__
    while step is not None:
        path = PurePath(step.tb_frame.f_code.co_filename)
        if any(part.startswith("aigo_") for part in path.parts):
            place = f" at {path.parent.name}/{path.name}:{step.tb_lineno}"
        step = step.tb_next
    return (
        f"aigo-bridge failed to map {part}{place}: {type(error).__name__}: {error} (the "
        "log may be valid; please report this error in aigo-bridge)"
    )


@dataclass
class LossReport:
    """Counts per kind. One report is filled while a log is read; reports of parts add up."""

    kept: Counter[str] = field(default_factory=Counter)
    """Things that are in the evidence with all their content: kind → count."""
    changed: Counter[str] = field(default_factory=Counter)
    """Things that are in the evidence in another form: kind and what was done → count."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Things that are not in the evidence: kind and why → count."""

    def add(self, report: LossReport) -> None:
        """Add the counts of another report."""
        self.kept.update(report.kept)
        self.changed.update(report.changed)
        self.dropped.update(report.dropped)

    def clear(self) -> None:
        """Forget all counts."""
        self.kept.clear()
        self.changed.clear()
        self.dropped.clear()

    @property
    def lost(self) -> int:
        """How many things were dropped."""
        return sum(self.dropped.values())

    def as_dict(self) -> dict[str, dict[str, int]]:
        """The report as JSON, kinds in alphabetical order."""
        return {name: dict(sorted(getattr(self, name).items())) for name in ("kept", "changed", "dropped")}


_MOST_DAMAGE = 20


@dataclass(frozen=True)
class ImportReport:
    """What became of one log."""

    log: str
    """Its location as the user named it."""
    output: Path | None = None
    """The file (or folder of tables) that was written; `None` when nothing could be read, or nothing
    written."""
    loss_file: Path | None = None
    """The written loss report."""
    status: str = ""
    """The engine's status of the log, e.g. `success`, `error`, `cancelled`, `started`; `""` when it could not
    be read."""
    samples: int = 0
    trials: int = 0
    failed: int = 0
    """Samples with an error of their own (not of reading)."""
    damage: tuple[Damage, ...] = ()
    """What could not be read."""
    loss: LossReport = field(default_factory=LossReport)
    redacted: Counter[str] = field(default_factory=Counter)
    """Secrets taken out, by kind."""
    exit_code: ExitCode = ExitCode.DONE
    """0 done, 1 more was dropped than allowed, 3 only a part (or nothing) could be read or written."""
    reason: str = ""
    """Why the exit code is not 0."""
    code: Code | None = None
    """The kind of mistake that the reason is, where it is known."""
    own: bool = False
    """Whether the log is of a run of ours: its evidence came back as it was, and its trials are not
    counted."""
    notes: tuple[str, ...] = ()
    """What there is to say besides, one line each."""
    facts: Mapping[str, Any] | None = None
    """The report for programs, where it is not made of the fields above."""

    def __repr__(self) -> str:
        parts = [
            *([self.status] if self.status else []),
            plural(self.samples, "sample"),
            *([f"{self.failed} failed"] if self.failed else []),
            *([f"exit code {int(self.exit_code)}: {self.reason!r}"] if self.exit_code else []),
        ]
        written = "" if self.output is None else f" -> {str(self.output)!r}"
        return f"<ImportReport of {self.log!r}: {', '.join(parts)}{written}>"

    def judged(self, max_loss: int | None) -> ImportReport:
        """This report with its exit code, and the reason for it.

        Args:
            max_loss: more dropped things than this are a failure; `None` for any number.
        """
        code = of_import(is_damaged=bool(self.damage), num_lost=self.loss.lost, max_loss=max_loss)
        if code is ExitCode.PARTIAL:
            return replace(self, exit_code=code, reason=self._damage_reason)
        if code is ExitCode.FAILED:
            reason = f"{self.loss.lost} things were dropped, {max_loss} are allowed"
            return replace(self, exit_code=code, reason=reason)
        return self

    @property
    def _damage_reason(self) -> str:
        if not self.damage:
            return ""
        return f"{plural(len(self.damage), 'part')} of the log could not be read: {self.damage[0]}"

    def write_loss(self) -> None:
        """Write the loss report beside the result."""
        # Late: what reads and writes results takes longer to load than a report to be shown.
        from aigo_bridge.results.log_files import open_for_replacing

        assert self.loss_file is not None
        report = {
            "log": self.log,
            **self.loss.as_dict(),
            "redacted": dict(sorted(self.redacted.items())),
            "damage": [asdict(item) for item in self.damage],
        }
        with open_for_replacing(self.loss_file, clean=False) as file:
            file.write(dumps(report) + b"\n")

    @property
    def summary(self) -> Mapping[str, Any]:
        """The report for programs."""
        if self.facts is not None:
            return self.facts
        return {
            "status": self.status,
            "samples": self.samples,
            "trials": self.trials,
            "failed": self.failed,
            "loss": self.loss.as_dict(),
            "redacted": dict(self.redacted),
            "unreadable": [str(damage) for damage in self.damage],
            "reason": self.reason,
        }

    @property
    def lines(self) -> tuple[str, ...]:
        """The report for people. Texts from logs are strangers' texts: none moves the cursor."""
        return tuple(map(visible, self._lines()))

    @property
    def line(self) -> str:
        """The report for people in one line; the details are in `lines` and in the loss report."""
        parts = [f"{self.log}: {self.status or 'unreadable'}"]
        if self.output is not None:
            failed = f", {self.failed} failed" if self.failed else ""
            trials = "" if self.own else f" in {plural(self.trials, 'trial')}"
            parts[0] += f", {plural(self.samples, 'sample')}{trials}{failed} -> {self.output}"
        elif self.reason and self.samples == 0 and self.status not in ("", NOT_RECOMPUTED):
            parts[0] += ", not imported"
        counts = {
            "redacted": self.redacted.total(),
            "dropped": self.loss.lost,
            "changed": self.loss.changed.total(),
        }
        parts += [", ".join(f"{number} {what}" for what, number in counts.items() if number)]
        parts += [f"{len(self.damage)} unreadable: {self.damage[0]}"] if self.damage else []
        reason = self.reason.removesuffix(self._damage_reason).removesuffix("; ")
        parts += [*self.notes, reason + ("" if self.code is None else f" [{self.code}]")]
        return visible("; ".join(part for part in parts if part.strip()))

    def _lines(self) -> Iterator[str]:
        yield f"{self.log}: {self.status or 'unreadable'}"
        if self.output is not None:
            trials = "" if self.own else f" in {plural(self.trials, 'trial')}"
            failed = f", {self.failed} failed" if self.failed else ""
            yield f"  {plural(self.samples, 'sample')}{trials}{failed} -> {self.output}"
        for title, counts in (
            ("dropped", self.loss.dropped),
            ("changed", self.loss.changed),
            ("redacted", self.redacted),
        ):
            yield from (f"  {title}: {count} x {kind}" for kind, count in sorted(counts.items()))
        yield from (f"  unreadable: {item}" for item in self.damage[:_MOST_DAMAGE])
        if len(self.damage) > _MOST_DAMAGE:
            where = "" if self.loss_file is None else f", see {self.loss_file}"
            yield f"  unreadable: {len(self.damage) - _MOST_DAMAGE} more{where}"
        yield from (f"  {note}" for note in self.notes)
        if self.reason:
            yield f"  {self.reason}" + ("" if self.code is None else f" [{self.code}]")


def not_recomputed(log: str, reason: str | None, code: Code | None = None) -> ImportReport:
    """The report of a log whose metrics cannot be computed anew; `None`: as it is none of ours."""
    if reason is None:
        reason = "it was not written by aigo-bridge, so it carries no plan to compare with the task's"
        code = Code.LOG_WITHOUT_PLAN
    return ImportReport(
        log,
        status=NOT_RECOMPUTED,
        exit_code=ExitCode.PARTIAL,
        reason=reason,
        code=code,
        facts={"reason": reason},
    )


def file_stem(name: str, taken: set[str], fallback: str = "log") -> str:
    """A file name for a log, made of its name; names that are taken get a number, and the new one is added to
    them.
    """
    stem = re.sub(r"[\x00-\x1f\x7f<>:\"|?*/\\]", "_", name) or fallback
    free, number = stem, 2
    while free in taken:
        free, number = f"{stem}-{number}", number + 1
    taken.add(free)
    return free
