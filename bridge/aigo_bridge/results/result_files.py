"""Which file in a folder takes the result of a run, so that it never takes the place of another run's.

| file | the result of |
|---|---|
| `<key>.tasklog.json` | the first run of the task in the folder, and of whoever runs the same again |
| `<key>@<model>.tasklog.json` | a run with another model |
| `<key>@<engine>.tasklog.json` | a run on another engine |
| `<key>@<8 digits>.tasklog.json` | a run with another config, other judges or another `--dataset`; the digits are made of these |
| `<key>@<model>@<8 digits>.tasklog.json` | both |

The same is: task, evaluated model, engine, other models, config and the files that were named as data sets. How many samples or trials are run, and
what has been written into the task or its rows since, makes no other run: it is repeated, and its result replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import StoredDataset, StoredModel, TaskResultLog, TaskResultSpecification
from aigo_bridge.errors import EvidenceError
from aigo_bridge.fingerprints import sha256_of
from aigo_bridge.results.reading import LogReader

SUFFIX = ".tasklog.json"

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80
"""Characters of a model in a file's name."""


Names = Mapping[str, str] | None
"""Names by key; `None`: unknown, and equal to any."""


@dataclass(frozen=True)
class RunIdentity:
    """What tells the results of a task apart that stand in one folder."""

    task: str
    """Key of the task."""
    entity: str | None
    """What was evaluated: of a model the engine's name, whatever a run file calls it; `None`: nothing."""
    config: Mapping[str, Any]
    others: Names = None
    """AI GO key of each other model → its name."""
    datasets: Names = None
    """Data set key → file, for those that were named."""
    engine: str | None = None
    """That asked the model; `None`: unknown, and equal to any."""

    def has_same_settings(self, other: RunIdentity) -> bool:
        """Whether two runs differ in nothing but what they evaluate."""
        return (
            self.task == other.task
            and dict(self.config) == dict(other.config)
            and _equal(self.others, other.others)
            and _equal(self.datasets, other.datasets)
        )

    def is_same(self, other: RunIdentity) -> bool:
        """Whether one run repeats the other."""
        return self.entity == other.entity and self.has_same_engine(other) and self.has_same_settings(other)

    def has_same_engine(self, other: RunIdentity) -> bool:
        """Whether both may have run on one engine."""
        return self.engine == other.engine or None in (self.engine, other.engine)

    @property
    def digits(self) -> str:
        """The settings in eight digits."""
        return sha256_of([self.task, dict(self.config), dict(self.others or {}), dict(self.datasets or {})])[
            :8
        ]


@dataclass(frozen=True)
class LoggedRun:
    """What the head of a native log says of a run of ours, where its result does not say it."""

    log: Path
    task: str
    """Key of the task."""
    times: tuple[float, float]
    """When it began and ended, in Unix seconds."""
    others: Mapping[str, str]
    datasets: Mapping[str, str]

    def is_of(self, frame: TaskResultLog) -> bool:
        """Whether a result is of this run, by its task and its times.

        A log in whole seconds does not say how long a run within one second took; its result has that from the samples.
        """
        began, ended = self.times
        execution = frame.execution
        took = max(0.0, ended - began)
        return (
            self.task == frame.specification.task.key
            and (int(began), int(ended)) == (execution.started_at, execution.ended_at)
            and (took == execution.runtime if took else execution.runtime < 1)
        )


def _equal(one: Names, other: Names) -> bool:
    return one is None or other is None or dict(one) == dict(other)


Read = Callable[[TaskResultLog], RunIdentity | None]
"""Says which run a result log, without its samples, is of; `None`: of none that could be the same."""


def identity_of(specification: TaskResultSpecification, others: Names, datasets: Names) -> RunIdentity:
    """Which run a result of ours is of."""
    return RunIdentity(
        specification.task.key,
        _entity_name(specification.evaluated_entity),
        specification.config,
        others,
        datasets,
        getattr(specification.evaluated_entity, "adapter_id", None),
    )


def _entity_name(entity: StoredModel | StoredDataset | None) -> str | None:
    if entity is None:
        return None
    if not isinstance(entity, StoredModel):
        return entity.display_name
    name = getattr(entity.config, "model_key", None) or entity.display_name
    provider = getattr(entity.config, "provider_id", None)
    return str(name) if provider is None else f"{getattr(provider, 'value', provider)}/{name}"


def with_logs(logged: Callable[[], Iterable[LoggedRun]]) -> Read:
    """How results of ours are read, with what only their native logs say; `logged` is asked when there is a result."""
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
    """The file for the result of a run; a new one, or that of the same run before.

    Args:
        out: the folder.
        name: of the result, without suffix.
        run: what was run.
        read: says which run a result is of that has a name already.
    """
    folder = _Folder(out, read)
    if folder.takes(name, run):
        return out / f"{name}{SUFFIX}"
    first = folder.identity(name)
    model = [_file_part(run.entity)] if run.entity is not None else []
    differs = first is None or first.entity != run.entity
    engine = [run.engine] if run.engine and first is not None and not first.has_same_engine(run) else []
    settings = first is None or not first.has_same_settings(run)
    told = (model if differs else []) + engine
    parts = told + ([run.digits] if settings or not told else [])
    candidates = ["@".join([name, *parts]), "@".join([name, *model, *engine, run.digits])]
    for candidate in candidates:
        if folder.takes(candidate, run):
            return out / f"{candidate}{SUFFIX}"
    number = 2
    while not folder.takes(f"{candidates[-1]}-{number}", run):
        number += 1
    return out / f"{candidates[-1]}-{number}{SUFFIX}"


class _Folder:
    """The results in a folder. Names that differ in case only are one name: on some machines they are one file."""

    def __init__(self, out: Path, read: Read):
        names = [path.name for path in out.iterdir()] if out.is_dir() else []
        self._out = out
        self._names = {name.casefold(): name for name in names if name.endswith(SUFFIX)}
        self._read = read

    def takes(self, name: str, run: RunIdentity) -> bool:
        """Whether a name is free for a run, or has its earlier result."""
        file = f"{name}{SUFFIX}"
        there = self._names.get(file.casefold())
        if there is None or not (self._out / there).is_file():
            return True  # where something else stands, writing says so
        found = self.identity(name) if there == file else None
        return found is not None and found.is_same(run)

    def identity(self, name: str) -> RunIdentity | None:
        """Which run the result of a name is of; `None`: there is none, or it is no result log."""
        there = self._names.get(f"{name}{SUFFIX}".casefold())
        if there is None:
            return None
        try:
            return self._read(LogReader(self._out / there).frame())
        except EvidenceError:
            return None


def _file_part(entity: str) -> str:
    """A model in a file's name: of a file its name alone."""
    provider, _, rest = entity.partition("/")
    local = provider in ("scripted", "aigo_bridge") or "\\" in entity or entity.startswith((".", "/"))
    text = re.split(r"[/\\]", rest)[-1] if local and rest else entity
    return _OTHER.sub("-", text).strip("-._")[:_LONGEST] or "other"
