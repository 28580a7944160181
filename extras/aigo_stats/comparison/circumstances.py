"""Differences between two evaluations other than their metrics. They are displayed before the metrics."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aigo_bridge.errors import dotted
from aigo_bridge.text.summaries import short
from aigo_stats.comparison.columns import ResultColumns

_UNIMPORTANT = frozenset({"id", "created_at", "updated_at"})
_OF_ONE_RUN = frozenset({"created", "eval_id", "run_id", "task_id"})
"""Fields of an imported Inspect log that differ in every run."""

_KINDS = (
    (("task", "definition", "solver"), "prompt and solver"),
    (("task", "definition", "scorers"), "scorers"),
    (("task", "definition", "actions"), "action rules"),
    (("task", "definition", "dataset"), "data"),
    (("task", "definition"), "task"),
    (("task",), "task"),
    (("config",), "config"),
    (("evaluated_entity", "adapter_id"), "engine"),
    (("evaluated_entity",), "model"),
    (("run_config",), "amount of evaluated data"),
    (("repeatability_config",), "amount of evaluated data"),
)
"""Subject of each path prefix in the specification."""


@dataclass(frozen=True)
class Divergence:
    """One difference between two evaluations."""

    kind: str
    """Subject, for example `scorers`."""
    place: str
    base: str
    new: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {"kind": self.kind, "place": self.place, "base": self.base, "new": self.new}


def divergences(base: ResultColumns, new: ResultColumns) -> list[Divergence]:
    """Return the differences between two evaluations. A difference that appears in several fields is listed
    once.
    """
    entities = base.specification.get("evaluated_entity"), new.specification.get("evaluated_entity")
    engines = _adapter(entities[0]), _adapter(entities[1])
    differing = [*_of_entity(*entities), *_of_engine(*engines)]
    other_trials = base.num_trials != new.num_trials
    differences = list(_different(base.specification, new.specification, ()))
    explained = {path: (one, other) for path, one, other in differences if path[0] == "config"}
    for path, one, other in differences:
        follows = _follows(path, {place for place, _, _ in differences}, other_trials=other_trials)
        # A parameter that names the dataset also changes the task.
        of_config = path[:3] == ("task", "definition", "dataset") and (one, other) in explained.values()
        if path[0] != "evaluated_entity" and not follows and not of_config:
            kind = next((kind for start, kind in _KINDS if path[: len(start)] == start), "evaluation")
            differing.append(Divergence(kind, dotted(path), _shown(one), _shown(other)))
    versions = [frame.app_version.partition(" (")[0] for frame in (base.frame, new.frame)]
    if engines[0] == engines[1]:
        versions = [base.frame.app_version, new.frame.app_version]
    if versions[0] != versions[1]:
        differing.append(Divergence("bridge version", "app_version", *versions))
    if other_trials:
        differing.append(
            Divergence("amount of evaluated data", "trials", str(base.num_trials), str(new.num_trials))
        )
    return differing


def _follows(path: tuple[str | int, ...], paths: set[tuple[str | int, ...]], *, other_trials: bool) -> bool:
    """Return whether a difference follows from another difference, or only from being a separate run."""
    match path:
        case ("run_config", "trials_config", *_) | ("task", "definition", "trials", *_):
            return other_trials
        case ("run_config", "subsampling"):
            return ("run_config", "num_samples") in paths
        case ("display_name",):
            return ("task", "display_name") in paths or ("task", "key") in paths
        case ("task", "display_name"):
            return ("task", "key") in paths
        case ("config", "inspect", "stats", *_):
            return True
        case ("config", "inspect", "eval", name):
            return name in _OF_ONE_RUN
        case ("config", "inspect", "plan", *rest):
            return ("task", "definition", "solver", *rest) in paths
    return False


def _adapter(entity: Any) -> str | None:
    value = entity.get("adapter_id") if isinstance(entity, Mapping) else None
    return value if isinstance(value, str) else None


def _of_engine(base: str | None, new: str | None) -> Iterator[Divergence]:
    if base != new and base is not None and new is not None:
        yield Divergence("engine", "evaluated_entity.adapter_id", base, new)


def _of_entity(base: Any, new: Any) -> Iterator[Divergence]:
    """Yield the differences of the evaluated model or dataset: its name, or the fields under the same
    name.
    """
    kind = "model" if any(isinstance(one, Mapping) and "config" in one for one in (base, new)) else "data"
    names = _entity_name(base), _entity_name(new)
    if names[0] != names[1]:
        yield Divergence(kind, "evaluated_entity", *names)
        return
    differences = [
        (path, one, other)
        for path, one, other in _different(base, new, ("evaluated_entity",))
        if path[-1] not in ("adapter_id", "url", "connection_type")
    ]
    if differences:
        path, one, other = differences[0]
        yield Divergence(kind, dotted(path), _shown(one), _shown(other))


def _entity_name(entity: Any) -> str:
    if not isinstance(entity, Mapping):
        return "none"
    return str(entity.get("display_name") or entity.get("key"))


class _Absent:
    """Missing field."""


_ABSENT = _Absent()


def _shown(value: Any) -> str:
    return "not there" if isinstance(value, _Absent) else short(value)


def _different(
    base: Any, new: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    if isinstance(base, Mapping) and isinstance(new, Mapping):
        if "type" in base and "type" in new and base["type"] != new["type"]:
            yield (*path, "type"), base["type"], new["type"]
            return  # the fields depend on the type
        for name in dict.fromkeys([*base, *new]):
            if name not in _UNIMPORTANT:
                yield from _different(base.get(name, _ABSENT), new.get(name, _ABSENT), (*path, name))
    elif isinstance(base, list) and isinstance(new, list):
        yield from _different_items(base, new, path)
    elif type(base) is not type(new) or base != new:
        yield path, base, new


def _different_items(
    base: list[Any], new: list[Any], path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Yield the differences of two lists. An inserted or removed item does not affect later items."""
    base_texts = [json.dumps(item, sort_keys=True, default=str) for item in base]
    new_texts = [json.dumps(item, sort_keys=True, default=str) for item in new]
    matcher = difflib.SequenceMatcher(None, base_texts, new_texts, autojunk=False)
    for kind, start, stop, new_start, new_stop in matcher.get_opcodes():
        if kind == "equal":
            continue
        for number in range(max(stop - start, new_stop - new_start)):
            one = _item(base[start:stop], number)
            other = _item(new[new_start:new_stop], number)
            place = start + number if number < stop - start else new_start + number
            yield from _different(one, other, (*path, place))


def _item(values: list[Any], number: int) -> Any:
    return values[number] if number < len(values) else _ABSENT
