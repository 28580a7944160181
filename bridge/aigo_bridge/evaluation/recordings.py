"""Runs whose model calls are recorded, or answered from a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.recording import Recording, played_name
from aigo_bridge.errors import Issue, UsageError
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.hooks import load_hook
from aigo_bridge.plan.plan import TaskPlan


class RunRecording(Protocol):
    """Recordings of a run, one for each engine."""

    @property
    def models(self) -> Mapping[str, str] | None:
        """Model key → name of the recorded model; `None` if the models themselves are called."""
        ...

    @property
    def problem(self) -> str | None:
        """Reason why the recording lacks calls, for example a full disk; `None` if it is complete."""
        ...

    def of_engine(self, engine: str) -> Recording | None:
        """Return the recording of an engine; `None`: calls are neither recorded nor answered."""
        ...

    def notes(self, num_reused: int) -> list[str]:
        """Return lines about the recording at the end of a run that reused this number of trials."""
        ...


ShowIssues = Callable[[Iterable[Issue]], None]


@dataclass(frozen=True)
class Recordings:
    """Hook `recordings`."""

    record: Callable[[Path, bool], AbstractContextManager[RunRecording]]
    """Called with a file, and whether an existing file is appended to.

    Raises:
        UsageError: the file cannot be written, or exists.
    """
    replay: Callable[[Path, ShowIssues], AbstractContextManager[RunRecording]]
    """Called with a recording, and a function that shows its damaged lines.

    Raises:
        EvidenceError: the recording cannot be read.
    """


class _NoRecording:
    models = None
    problem = None

    def of_engine(self, engine: str) -> None:
        return None

    def notes(self, num_reused: int) -> list[str]:
        return []


@contextmanager
def run_recording(
    record: Path | None, replay: Path | None, *, append: bool, show: ShowIssues
) -> Iterator[RunRecording]:
    """Yield the recording of a run.

    Args:
        record: file for the calls of the run.
        replay: recording that answers them; not together with `record`.
        append: whether an existing file is appended to.
        show: shows damaged lines of the recording.

    Raises:
        UsageError: the file cannot be written, or exists.
        EvidenceError: the recording cannot be read.
    """
    if record is not None:
        with load_hook("recordings", Recordings).record(record, append) as recording:
            yield recording
    elif replay is not None:
        with load_hook("recordings", Recordings).replay(replay, show) as recording:
            yield recording
    else:
        yield _NoRecording()


def refuse_recordings(
    files: Mapping[str, object], engines: Sequence[Engine], *, resumes: bool, option: Callable[[str], str]
) -> None:
    """Check that a run can be recorded, or answered from a recording.

    Args:
        files: `record` and `replay` with their files; `None`: not given.
        engines: engines of the run.
        resumes: whether results of earlier runs may be taken over.
        option: spelling of an option for the user.

    Raises:
        UsageError: the options contradict each other, or an engine cannot record.
    """
    used = [name for name, path in files.items() if path is not None]
    if len(used) > 1:
        names = ", ".join(map(option, used))
        raise UsageError(
            f"{names}: calls that are answered from a cassette cannot be recorded again",
            code=Code.OPTIONS_APART,
        )
    if not used:
        return
    (name,) = used
    unable = [engine.name for engine in engines if not engine.capabilities.recordings]
    if unable:
        raise UsageError(
            (
                f"{option(name)}: not supported on {', '.join(unable)}, because its model calls "
                "cannot be recorded"
            ),
            code=Code.OPTIONS_APART,
        )
    if name == "record" and len(engines) > 1:
        raise UsageError(
            (f"{option(name)}: only on one engine; then run the other engines with {option('replay')}"),
            code=Code.OPTIONS_APART,
        )
    if name == "replay" and resumes:
        raise UsageError(
            (
                f"{option(name)}: always runs all samples; cannot be combined with "
                f"{option('resume')} or {option('cache')} reuse"
            ),
            code=Code.OPTIONS_APART,
        )


def recorded_choice(plan: TaskPlan, choice: ModelChoice, recorded: Mapping[str, str]) -> ModelChoice:
    """Return the recorded models of a task, or the models that the user named instead."""
    model = choice.model or (recorded.get("") if plan.calls_model else None)
    keys = {key: recorded[key] for key in plan.model_keys if key in recorded} | dict(choice.model_map or {})
    names = {key: played_name(name) for key, name in keys.items()}
    return ModelChoice(None if model is None else played_name(model), names)
