"""What else differs between two results than their numbers: to be read before any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aigo_bridge.comparison.columns import Columns
from aigo_bridge.errors import dotted
from aigo_bridge.metrics.metric import short

_UNIMPORTANT = frozenset({"id", "created_at", "updated_at"})

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
    (("run_config",), "how much was run"),
    (("repeatability_config",), "how much was run"),
)
"""Beginning of a path in the specification → what it is about."""


@dataclass(frozen=True)
class Divergence:
    """One thing that differs."""

    kind: str
    """What it is about, e.g. `scorers`."""
    place: str
    base: str
    new: str

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {"kind": self.kind, "place": self.place, "base": self.base, "new": self.new}


def divergences(base: Columns, new: Columns) -> list[Divergence]:
    """Everything that two results say differently of what was evaluated, and how."""
    differing = [
        Divergence(_kind(path), dotted(path), _shown(one), _shown(other))
        for path, one, other in _different(base.specification, new.specification, ())
    ]
    versions = (base.frame.app_version, new.frame.app_version)
    if versions[0] != versions[1]:
        differing.append(Divergence("bridge version", "app_version", *versions))
    if base.num_trials != new.num_trials:
        differing.append(Divergence("how much was run", "trials", str(base.num_trials), str(new.num_trials)))
    return differing


def _kind(path: tuple[str | int, ...]) -> str:
    return next((kind for start, kind in _KINDS if path[: len(start)] == start), "evaluation")


class _Absent:
    """Stands for a field that is not there."""


_ABSENT = _Absent()


def _shown(value: Any) -> str:
    return "not there" if isinstance(value, _Absent) else short(value)


def _different(
    base: Any, new: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    if isinstance(base, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys([*base, *new]):
            if name not in _UNIMPORTANT:
                yield from _different(base.get(name, _ABSENT), new.get(name, _ABSENT), (*path, name))
    elif isinstance(base, list) and isinstance(new, list):
        for number in range(max(len(base), len(new))):
            yield from _different(_item(base, number), _item(new, number), (*path, number))
    elif type(base) is not type(new) or base != new:
        yield path, base, new


def _item(values: list[Any], number: int) -> Any:
    return values[number] if number < len(values) else _ABSENT
