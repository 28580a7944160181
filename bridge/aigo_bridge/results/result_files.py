"""Which file in a folder takes the result of a run, so that it never takes the place of another run's.

| file | the result of |
|---|---|
| `<key>.tasklog.json` | the first run of the task in the folder, and of whoever runs the same again |
| `<key>@<model>.tasklog.json` | a run with another model |
| `<key>@<engine>.tasklog.json` | a run on another engine |
| `<key>@<8 digits>.tasklog.json` | a run with other scorers, config, judges or `--dataset`, in digits |
| `<key>@<model>@<8 digits>.tasklog.json` | both |

The same is: task, evaluated model, engine, other models, config, scorers and the files named as data
sets. The number of samples or trials, and other changes of the task or its rows, make no other run: it is
repeated, and its result replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import StoredDataset, StoredModel, TaskResultLog, TaskResultSpecification
from aigo_bridge.errors import EvidenceError
from aigo_bridge.plan.plan import sha256_of
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
    """Dataset key → file, for those that were named."""
    engine: str | None = None
    """That asked the model; `None`: unknown, and equal to any."""
    scorers: str = ""
    """Digest of the scorers: the same answers with other scorers are another result."""

    def has_same_settings(self, run: RunIdentity) -> bool:
        """Whether two runs differ in nothing but what they evaluate."""
        return (
            self.task == run.task
            and dict(self.config) == dict(run.config)
            and self.scorers == run.scorers
            and _equal(self.others, run.others)
            and _equal(self.datasets, run.datasets)
        )

    def is_same(self, run: RunIdentity) -> bool:
        """Whether one run repeats the other."""
        return self.entity == run.entity and self.has_same_engine(run) and self.has_same_settings(run)

    def has_same_engine(self, run: RunIdentity) -> bool:
        """Whether both may have run on one engine."""
        return self.engine == run.engine or None in (self.engine, run.engine)

    @property
    def digits(self) -> str:
        """The settings in eight digits."""
        names = dict(self.others or {}), dict(self.datasets or {})
        return sha256_of([self.task, dict(self.config), *names, self.scorers])[:8]


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

        A log in whole seconds does not say how long a run within one second took; its result has that from
        the samples.
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
"""Says which run a result log, without its samples, is of; `None`: of none that could be the same."""


def identity_of(specification: TaskResultSpecification, models: Names, datasets: Names) -> RunIdentity:
    """Which run a result of ours is of."""
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
    """The reader of our results, with what only native logs say; `logged` is asked when there is a result."""
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
    """The results in a folder. Names that differ in case only are one name: on some machines one file."""

    def __init__(self, out: Path, read: Read):
        names = [path.name for path in out.iterdir()] if out.is_dir() else []
        self._out = out
        self._names = {name.casefold(): name for name in names if name.endswith(SUFFIX)}
        self._read = read

    def takes(self, name: str, run: RunIdentity) -> bool:
        """Whether a name is free for a run, or has its earlier result."""
        file = f"{name}{SUFFIX}"
        existing = self._names.get(file.casefold())
        if existing is None or not (self._out / existing).is_file():
            return True  # where something else stands, writing says so
        identity = self.identity(name) if existing == file else None
        return identity is not None and identity.is_same(run)

    def identity(self, name: str) -> RunIdentity | None:
        """Which run the result of a name is of; `None`: there is none, or it is no result log."""
        existing = self._names.get(f"{name}{SUFFIX}".casefold())
        if existing is None:
            return None
        try:
            return self._read(LogReader(self._out / existing).frame())
        except EvidenceError:
            return None


def _file_part(entity: str) -> str:
    """A model in a file's name: of a file its name alone."""
    provider, _, path = entity.partition("/")
    local = provider in ("scripted", "aigo_bridge") or "\\" in entity or entity.startswith((".", "/"))
    text = re.split(r"[/\\]", path)[-1] if local and path else entity
    return _OTHER.sub("-", text).strip("-._")[:_LONGEST] or "other"
