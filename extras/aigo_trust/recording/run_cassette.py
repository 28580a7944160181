"""Hook `recordings`: records the calls of a run, or answers them from a cassette."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aigo_bridge.codes import Code
from aigo_bridge.engine.recording import Recording
from aigo_bridge.errors import Issue
from aigo_bridge.evaluation.recordings import Recordings, ShowIssues
from aigo_bridge.text.plurals import plural
from aigo_trust.recording.recording import Recorder
from aigo_trust.recording.replay import Cassette, Player

MOST_ISSUES = 10
"""Maximum number of damaged lines to list."""


@dataclass
class RunCassette:
    """Recordings of a run, one for each engine."""

    recorder: Recorder | None = None
    cassette: Cassette | None = None
    players: dict[str, Player] = field(default_factory=dict)
    """Player for each engine."""

    @property
    def models(self) -> Mapping[str, str] | None:
        """Recorded model names by key; `None` if the run calls the real models."""
        return None if self.cassette is None else self.cassette.models()

    def of_engine(self, engine: str) -> Recording | None:
        """Return the recording of an engine. All evaluations on this engine share it."""
        if self.cassette is None:
            return self.recorder
        return self.players.setdefault(engine, self.cassette.player())

    @property
    def problem(self) -> str | None:
        """Reason why calls are missing from the cassette; `None` if it is complete."""
        return None if self.recorder is None else self.recorder.problem

    def notes(self, num_reused: int) -> list[str]:
        """Return messages about the recorded or answered calls.

        Args:
            num_reused: number of trials reused from earlier runs.
        """
        if self.recorder is not None:
            return _notes_of_recording(self.recorder, num_reused)
        return [self._answered(engine, player) for engine, player in self.players.items()]

    def _answered(self, engine: str, player: Player) -> str:
        where = f" on {engine}" if len(self.players) > 1 else ""
        missing = f", {player.num_missing} not found" if player.num_missing else ""
        unasked = f", {player.num_unasked} recorded but not used" if player.num_unasked else ""
        calls = plural(player.num_given, "call")
        return f"answered{where} from {_name(player.cassette.path)}: {calls}{missing}{unasked}"


def _notes_of_recording(recorder: Recorder, num_reused: int) -> list[str]:
    from aigo_bridge.cli.terminal import printable

    # Closing packs the tail, so the size is correct only afterwards.
    recorder.close()
    size = _size(recorder.num_bytes)
    notes = [f"recorded {plural(recorder.num_calls, 'call')} in {_name(recorder.path)} ({size})"]
    if recorder.num_redacted:
        notes.append(f"secrets in {recorder.num_redacted} of them were replaced with [secret]")
    if num_reused:
        notes.append(
            f"{plural(num_reused, 'trial was', 'trials were')} reused from an earlier run; "
            "their calls are not recorded"
        )
    if recorder.num_lost:
        calls = plural(recorder.num_lost, "call is", "calls are")
        notes.append(f"warning: {calls} not recorded: {printable('; '.join(recorder.reasons))}")
    if recorder.problem is not None:
        notes.append(f"error: cannot write the cassette, so calls are missing ({recorder.problem})")
    return notes


@contextmanager
def _record(path: Path, append: bool) -> Iterator[RunCassette]:
    recorder = Recorder(path, append=append)
    try:
        yield RunCassette(recorder=recorder)
    finally:
        recorder.close()


@contextmanager
def _replay(path: Path, show: ShowIssues) -> Iterator[RunCassette]:
    with opened(path, show) as cassette:
        yield RunCassette(cassette=cassette)


RECORDINGS = Recordings(_record, _replay)


@contextmanager
def opened(path: Path, show: ShowIssues) -> Iterator[Cassette]:
    """Open a cassette and report its damaged lines.

    Raises:
        EvidenceError: the cassette cannot be read.
    """
    issues: list[Issue] = []
    cassette = Cassette(path, issues.append)
    more = len(issues) - MOST_ISSUES
    show(issues[:MOST_ISSUES])
    if more > 0:
        show(
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
        show([Issue(message, file=str(path), severity="warning", code=Code.DAMAGED_CASSETTE)])
    try:
        yield cassette
    finally:
        cassette.close()


def _name(path: Path) -> str:
    from aigo_bridge.cli.terminal import name_of, short_path

    return name_of(short_path(path))


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e5 else f"{num_bytes / 1e3:.1f} kB"
