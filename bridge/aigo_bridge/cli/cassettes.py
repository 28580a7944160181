"""`--record` and `--replay`: the tape of a run, and what is said of it in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import typer

from aigo_bridge.cassettes.playing import Cassette, Player
from aigo_bridge.cassettes.recording import Recorder
from aigo_bridge.cassettes.tape import Tape
from aigo_bridge.cli.failing import show_issues
from aigo_bridge.cli.run_options import RunOptions
from aigo_bridge.cli.terminal import name_of, printable, short_path
from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import Engine
from aigo_bridge.errors import Issue
from aigo_bridge.evaluation.running import refuse_tapes
from aigo_bridge.text.plurals import plural

MOST_ISSUES = 10
"""Damaged lines that are told one by one."""


@dataclass
class RunTape:
    """The tapes of a run, one for each engine."""

    recorder: Recorder | None = None
    cassette: Cassette | None = None
    players: dict[str, Player] = field(default_factory=dict)
    """Engine → its tape."""

    @property
    def models(self) -> Mapping[str, str] | None:
        """Names of the models that were recorded, by key; `None`: the models themselves are asked."""
        return None if self.cassette is None else self.cassette.models()

    def of_engine(self, engine: str) -> Tape | None:
        """The tape of the run on an engine; all its evaluations go past one."""
        if self.cassette is None:
            return self.recorder
        return self.players.setdefault(engine, self.cassette.player())


@contextmanager
def run_tape(options: RunOptions, engines: Sequence[Engine]) -> Iterator[RunTape]:
    """The tape that the user wants.

    Raises:
        UsageError: the options make no sense together, an engine cannot do it, or the file cannot be written.
        EvidenceError: the cassette cannot be read.
    """
    refuse_tapes(
        {"record": options.record, "replay": options.replay},
        engines,
        resumes=options.resume or options.cache == "reuse",
        option="--{}".format,
    )
    if options.record is not None:
        recorder = Recorder(options.record, append=options.resume)
        try:
            yield RunTape(recorder=recorder)
        finally:
            recorder.close()
    elif options.replay is not None:
        with opened(options.replay) as cassette:
            yield RunTape(cassette=cassette)
    else:
        yield RunTape()


@contextmanager
def opened(path: Path) -> Iterator[Cassette]:
    """A cassette; what is wrong with it is shown.

    Raises:
        EvidenceError: it cannot be read.
    """
    issues: list[Issue] = []
    cassette = Cassette(path, issues.append)
    more = len(issues) - MOST_ISSUES
    show_issues(issues[:MOST_ISSUES])
    if more > 0:
        show_issues(
            [
                Issue(
                    f"{more} more lines are skipped",
                    file=str(path),
                    severity="warning",
                    code=Code.DAMAGED_CASSETTE,
                )
            ]
        )
    if not cassette.is_complete and not issues:
        message = "the recording is incomplete; some calls may be missing"
        show_issues([Issue(message, file=str(path), severity="warning", code=Code.DAMAGED_CASSETTE)])
    try:
        yield cassette
    finally:
        cassette.close()


def show_tape(tape: RunTape, num_reused: int) -> bool:
    """Say on standard error what was recorded or answered; whether all of it was recorded.

    Args:
        tape: of the run that has ended.
        num_reused: trials that were taken over from earlier runs.
    """
    if tape.recorder is not None:
        return _show_recording(tape.recorder, num_reused)
    for engine, player in tape.players.items():
        where = f" on {engine}" if len(tape.players) > 1 else ""
        missing = f", {player.num_missing} not found" if player.num_missing else ""
        unasked = f", {player.num_unasked} recorded but not used" if player.num_unasked else ""
        _note(
            f"answered{where} from {_name(player.cassette.path)}:"
            f" {plural(player.num_given, 'call')}{missing}{unasked}"
        )
    return True


def _show_recording(recorder: Recorder, num_reused: int) -> bool:
    # What waits in its tail is packed then: the size is that of the file.
    recorder.close()
    _note(
        f"recorded {plural(recorder.num_calls, 'call')} in {_name(recorder.path)}"
        f" ({_size(recorder.num_bytes)})"
    )
    if recorder.num_redacted:
        _note(f"secrets in {recorder.num_redacted} of them were replaced with [secret]")
    if num_reused:
        _note(
            f"{plural(num_reused, 'trial was', 'trials were')} reused from an earlier run; "
            "their calls are not recorded"
        )
    if recorder.num_lost:
        reasons = "; ".join(recorder.reasons)
        _note(
            f"warning: {plural(recorder.num_lost, 'call is', 'calls are')} not recorded: {printable(reasons)}"
        )
    if recorder.problem is not None:
        _note(f"error: cannot write the cassette, so calls are missing ({recorder.problem})")
    return recorder.problem is None


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _name(path: Path) -> str:
    return name_of(short_path(path))


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e5 else f"{num_bytes / 1e3:.1f} kB"
