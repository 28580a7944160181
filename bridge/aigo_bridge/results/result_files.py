"""Choice of the result file in a folder, so that a result never replaces the result of another run.

| file | contains the result of |
|---|---|
| `<key>.tasklog.json` | the first run of the task in the folder, and repetitions of it |
| `<key>@<model>.tasklog.json` | a run with another model |
| `<key>@<engine>.tasklog.json` | a run on another engine |
| `<key>@<8 digits>.tasklog.json` | a run with other scorers, config, judges or `--dataset`, as digits |
| `<key>@<model>@<8 digits>.tasklog.json` | both |

Two runs are the same if they have the same task, evaluated model, engine, other models, config, scorers
and dataset files. The number of samples or trials, and other changes of the task or its rows, are ignored:
such a run replaces the earlier result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import StoredDataset, StoredModel, TaskResultLog, TaskResultSpecification
from aigo_bridge.errors import EvidenceError
from aigo_bridge.results.reading import LogReader
from aigo_bridge.text.json_text import sha256_of

SUFFIX = ".tasklog.json"

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80
"""Maximum number of characters of a model in a file name."""


Names = Mapping[str, str] | None
"""Names by key; `None` if unknown, which is equal to any names."""


@dataclass(frozen=True)
class RunIdentity:
    """Properties that distinguish the results of a task in one folder."""

    task: str
    """Key of the task."""
    entity: str | None
    """Evaluated entity; for a model, its name for the engine, independent of the run file. `None` if nothing
    was evaluated.
    """
    config: Mapping[str, Any]
    others: Names = None
    """AI GO key of each other model → its name."""
    datasets: Names = None
    """Dataset key → file, for datasets that were named."""
    engine: str | None = None
    """Engine that called the model; `None` if unknown, which is equal to any engine."""
    scorers: str = ""
    """Digest of the scorers. The same answers with other scorers are another result."""

    def has_same_settings(self, run: RunIdentity) -> bool:
        """Return whether two runs differ only in the evaluated entity."""
        return (
            self.task == run.task
            and dict(self.config) == dict(run.config)
            and self.scorers == run.scorers
            and _equal(self.others, run.others)
            and _equal(self.datasets, run.datasets)
        )

    def is_same(self, run: RunIdentity) -> bool:
        """Return whether one run repeats the other."""
        return self.entity == run.entity and self.has_same_engine(run) and self.has_same_settings(run)

    def has_same_engine(self, run: RunIdentity) -> bool:
        """Return whether both runs may have used the same engine."""
        return self.engine == run.engine or None in (self.engine, run.engine)

    @property
    def digits(self) -> str:
        """Settings as eight digits."""
        names = dict(self.others or {}), dict(self.datasets or {})
        return sha256_of([self.task, dict(self.config), *names, self.scorers])[:8]


@dataclass(frozen=True)
class LoggedRun:
    """Facts about a run by aigo-bridge that its native log contains but its result lacks."""

    log: Path
    task: str
    """Key of the task."""
    times: tuple[float, float]
    """Start and end time, in Unix seconds."""
    others: Mapping[str, str]
    datasets: Mapping[str, str]

    def is_of(self, frame: TaskResultLog) -> bool:
        """Return whether a result belongs to this run, by its task and its times.

        A log in whole seconds lacks the duration of a run within one second; its result takes it from the
        samples.
        """
        began, ended = self.times
        execution = frame.execution
        took = max(0.0, ended - began)
        return (
            self.task == frame.specification.task.key
            and (int(began), int(ended)) == (execution.started_at, execution.ended_at)
            and (took == execution.runtime if took else execution.runtime < 1)
        )


def _equal(names: Names, counterparts: Names) -> bool:
    return names is None or counterparts is None or dict(names) == dict(counterparts)


Read = Callable[[TaskResultLog], RunIdentity | None]
"""Function that returns the run of a result log; `None` if it cannot be the same as any run."""


def identity_of(specification: TaskResultSpecification, models: Names, datasets: Names) -> RunIdentity:
    """Return the identity of the run of a result by aigo-bridge."""
    return RunIdentity(
        specification.task.key,
        _entity_name(specification.evaluated_entity),
        specification.config,
        models,
        datasets,
        getattr(specification.evaluated_entity, "adapter_id", None),
        _scorers_digest(specification),
    )


def _scorers_digest(specification: TaskResultSpecification) -> str:
    definition = specification.task.definition.model_dump(mode="json", exclude_none=True)
    return sha256_of(definition.get("scorers") or [])


def _entity_name(entity: StoredModel | StoredDataset | None) -> str | None:
    if entity is None:
        return None
    if not isinstance(entity, StoredModel):
        return entity.display_name
    name = getattr(entity.config, "model_key", None) or entity.display_name
    provider = getattr(entity.config, "provider_id", None)
    return str(name) if provider is None else f"{getattr(provider, 'value', provider)}/{name}"


def with_logs(logged: Callable[[], Iterable[LoggedRun]]) -> Read:
    """Return a reader of results that adds facts from native logs, read only if a result exists."""
    runs: list[LoggedRun] = []

    def read(frame: TaskResultLog) -> RunIdentity:
        if not runs:
            runs.extend(logged())
        for run in runs:
            if run.is_of(frame):
                return identity_of(frame.specification, run.others, run.datasets)
        return identity_of(frame.specification, None, None)

    return read


def result_file(out: Path, name: str, run: RunIdentity, read: Read) -> Path:
    """Return the file for the result of a run: a new file, or the file of an earlier repetition.

    Args:
        out: results folder.
        name: name of the result, without suffix.
        run: identity of the run.
        read: returns the identity of an existing result.
    """
    folder = _Folder(out, read)
    if folder.takes(name, run):
        return out / f"{name}{SUFFIX}"
    earlier = folder.identity(name)
    model = [_file_part(run.entity)] if run.entity is not None else []
    differs = earlier is None or earlier.entity != run.entity
    engine = [run.engine] if run.engine and earlier is not None and not earlier.has_same_engine(run) else []
    settings = earlier is None or not earlier.has_same_settings(run)
    marks = (model if differs else []) + engine
    parts = marks + ([run.digits] if settings or not marks else [])
    candidates = ["@".join([name, *parts]), "@".join([name, *model, *engine, run.digits])]
    for candidate in candidates:
        if folder.takes(candidate, run):
            return out / f"{candidate}{SUFFIX}"
    number = 2
    while not folder.takes(f"{candidates[-1]}-{number}", run):
        number += 1
    return out / f"{candidates[-1]}-{number}{SUFFIX}"


class _Folder:
    """Results in a folder, whose names are equal if they differ only in case, as on some file systems."""

    def __init__(self, out: Path, read: Read):
        names = [path.name for path in out.iterdir()] if out.is_dir() else []
        self._out = out
        self._names = {name.casefold(): name for name in names if name.endswith(SUFFIX)}
        self._read = read

    def takes(self, name: str, run: RunIdentity) -> bool:
        """Return whether a name is free for a run or contains its earlier result."""
        file = f"{name}{SUFFIX}"
        existing = self._names.get(file.casefold())
        if existing is None or not (self._out / existing).is_file():
            return True  # If the name is not a file, writing raises an error.
        identity = self.identity(name) if existing == file else None
        return identity is not None and identity.is_same(run)

    def identity(self, name: str) -> RunIdentity | None:
        """Return the run of the result with a name; `None` if it is missing or not a result log."""
        existing = self._names.get(f"{name}{SUFFIX}".casefold())
        if existing is None:
            return None
        try:
            return self._read(LogReader(self._out / existing).frame())
        except EvidenceError:
            return None


def _file_part(entity: str) -> str:
    """Return the part of a file name for a model. For a path, it is the last component."""
    provider, _, path = entity.partition("/")
    local = provider in ("scripted", "aigo_bridge") or "\\" in entity or entity.startswith((".", "/"))
    text = re.split(r"[/\\]", path)[-1] if local and path else entity
    return _OTHER.sub("-", text).strip("-._")[:_LONGEST] or "other"
