"""Options and outcome of a log import. The outcome is in the loss report, on the terminal and in JSON."""

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
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import redaction
from aigo_bridge.text.escapes import visible
from aigo_bridge.text.json_text import dumps
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    # Importing the plan modules takes longer than importing most logs.
    from aigo_bridge.plan.logged_plan import LoggedPlan
    from aigo_bridge.plan.plan import TaskPlan

OutputFormat = Literal["json", "json.gz", "json.zst", "parquet"]
ContextChoice = Literal["full", "delta", "none"]
EventChoice = Literal["all", "default", "minimal"]


@dataclass(frozen=True)
class ImportOptions:
    """Options for importing engine logs."""

    context: ContextChoice = "full"
    """Amount of model input to write; AI GO expects `full`."""
    output_format: OutputFormat = "json"
    events: EventChoice = "default"
    """Events to keep in the traces."""
    jobs: int | None = None
    """Number of processes; `None` for one per core."""
    redact: bool = True
    """Remove known key formats and values of variables that look like keys."""
    patterns: tuple[str, ...] = ()
    """Additional regular expressions of secrets. They also apply if `redact` is off."""
    bounds: Bounds = DEFAULT_BOUNDS
    """Limits on the size of a log."""
    max_loss: int | None = None
    """Maximum number of dropped items before the import fails; `None` for any number."""
    provenance: bool = False
    """Write `<name>.provenance.json` next to each result. The result is read again for this purpose."""
    recompute: Callable[[LoggedPlan], TaskPlan | None] | None = None
    """Returns the user's own plan for the plan in a log of aigo-bridge, so that its code recomputes the
    metrics. Raises `EvidenceError` if the plans differ. If it is or returns `None`, the stored metrics are
    used.
    """

    name: str | None = None
    """File name of the only result, without its suffix; `None` to name results after their logs."""

    def stem(self, name: str, taken: set[str], fallback: str = "log") -> str:
        """Return the file name of a result without its suffix (see `file_stem`).

        Raises:
            UsageError: several results need the only name.
        """
        if self.name is None:
            return file_stem(name, taken, fallback)
        if taken:
            raise UsageError(SEVERAL_RESULTS, code=Code.WRONG_OPTION)
        taken.add(self.name)
        return self.name

    def redaction(self) -> Redactor:
        """Return the redaction to apply, with separate counts.

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
"""Error in the log: bytes are missing or do not follow the format."""
UNMAPPED: Final = "UnmappedLog"
"""Probable error in aigo-bridge: the log may be valid."""

DamageKind = Literal["DamagedLog", "UnmappedLog"]


class UnmappedError(EvidenceError):
    """Failure of the mapping code for a part of a log."""

    def __init__(self, message: str):
        super().__init__(message, code=Code.UNMAPPED_LOG)


@dataclass(frozen=True)
class Damage:
    """Part of a log that is missing in the evidence."""

    member: str
    """Member of the archive, or file of the log; `""` for the log itself."""
    offset: int | None
    """Byte offset in the file; `None` if unknown."""
    reason: str
    kind: DamageKind = DAMAGED
    """Cause of the damage; the `error_type` in the evidence."""

    def __str__(self) -> str:
        where = self.member or "file"
        at = "" if self.offset is None else f" at byte {self.offset}"
        return f"{where}{at}: {self.reason}"


def kind_of(error: Exception) -> DamageKind:
    """Return the cause of an error."""
    return UNMAPPED if isinstance(error, UnmappedError) else DAMAGED


def unmapped(part: str, error: Exception) -> str:
    """Return a message about a part for which the mapping code of aigo-bridge failed, with the position in
    the code.
    """
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
    """Counts of kept, changed and dropped items per kind. One report is filled while a log is read; reports
    of parts are added.
    """

    kept: Counter[str] = field(default_factory=Counter)
    """Items that the evidence contains completely: kind → count."""
    changed: Counter[str] = field(default_factory=Counter)
    """Items that the evidence contains in another form: kind and change → count."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Items that the evidence does not contain: kind and reason → count."""

    def add(self, report: LossReport) -> None:
        """Add the counts of another report."""
        self.kept.update(report.kept)
        self.changed.update(report.changed)
        self.dropped.update(report.dropped)

    def clear(self) -> None:
        """Reset all counts."""
        self.kept.clear()
        self.changed.clear()
        self.dropped.clear()

    @property
    def lost(self) -> int:
        """Number of dropped items."""
        return sum(self.dropped.values())

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Return a JSON-serializable dictionary, with the kinds in alphabetical order."""
        return {name: dict(sorted(getattr(self, name).items())) for name in ("kept", "changed", "dropped")}


_MOST_DAMAGE = 20


@dataclass(frozen=True)
class ImportReport:
    """Outcome of importing one log."""

    log: str
    """Location of the log as the user named it."""
    output: Path | None = None
    """File (or folder of tables) that was written; `None` if nothing could be read or written."""
    loss_file: Path | None = None
    """The written loss report."""
    status: str = ""
    """Status of the log in the engine, e.g. `success`, `error`, `cancelled`; `""` if it is unreadable."""
    samples: int = 0
    trials: int = 0
    failed: int = 0
    """Number of samples with an error of the run (not of reading)."""
    damage: tuple[Damage, ...] = ()
    """Unreadable parts."""
    loss: LossReport = field(default_factory=LossReport)
    redacted: Counter[str] = field(default_factory=Counter)
    """Kind of secret → number of redactions."""
    exit_code: ExitCode = ExitCode.DONE
    """Exit code: 0 done, 1 more items dropped than allowed, 3 partly or not readable or written."""
    reason: str = ""
    """Reason for an exit code other than 0."""
    code: Code | None = None
    """Code of the reason, if known."""
    own: bool = False
    """Whether the log was written by aigo-bridge. Its evidence is unchanged, and its trials are not
    counted.
    """
    notes: tuple[str, ...] = ()
    """Additional notes, one line each."""
    facts: Mapping[str, Any] | None = None
    """JSON-serializable report, if it is not derived from the other fields."""

    def __repr__(self) -> str:
        parts = [
            *([self.status] if self.status else []),
            plural(self.samples, "sample"),
            *([f"{self.failed} failed"] if self.failed else []),
            *([f"exit code {int(self.exit_code)}: {self.reason!r}"] if self.exit_code else []),
        ]
        written = "" if self.output is None else f" -> {str(self.output)!r}"
        return f"<ImportReport of {self.log!r}: {', '.join(parts)}{written}>"

    def with_exit_code(self, max_loss: int | None) -> ImportReport:
        """Return this report with its exit code and reason; `max_loss` items may be dropped (`None`: any
        number).
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
        """Write the loss report next to the result."""
        # Import late: the modules that read and write results load more slowly than a report is shown.
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
        """JSON-serializable report."""
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
        """Report for the terminal. Control characters in texts from logs are made visible."""
        return tuple(map(visible, self._lines()))

    @property
    def line(self) -> str:
        """Report for the terminal in one line. `lines` and the loss report contain the details."""
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
    """Return the report of a log whose metrics cannot be recomputed; `None` as the reason means that
    aigo-bridge did not write it.
    """
    if reason is None:
        reason = "it was not written by aigo-bridge, so it does not contain a plan to compare with the task's"
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
    """Return a file name for a log from its name, numbered if taken, and add it to `taken`."""
    stem = re.sub(r"[\x00-\x1f\x7f<>:\"|?*/\\]", "_", name) or fallback
    free, number = stem, 2
    while free in taken:
        free, number = f"{stem}-{number}", number + 1
    taken.add(free)
    return free
