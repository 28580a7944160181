"""Interpretation of pydantic errors: unknown fields, one-line messages, and issues with one error each.

A failed union reports the errors of every branch. The reader of a message only needs the errors of the
intended branch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue

Location = tuple[str | int, ...]

TAGS = frozenset(
    {"benchmark_task", "declarative_task", "system_task", "mean", "min", "max", "pass@k", "pass^k"}
)
"""Labels of tagged unions, which drop unknown fields. In other unions, they make the branch fail."""


def unknown_fields(error: ValidationError) -> list[Location]:
    """Return the locations that any branch of a union reported as unknown, including union labels."""
    return [
        details["loc"]
        for details in error.errors(include_url=False, include_context=False, include_input=False)
        if details["type"] == "extra_forbidden"
    ]


def without(data: Any, locations: Iterable[Location]) -> Any:
    """Return a copy of `data` without the fields at `locations`. Unchanged parts are shared."""
    copied: dict[int, Any] = {}
    root = _copied(data, copied)
    for location in locations:
        _remove(root, location, copied)
    return root


def _remove(root: Any, location: Sequence[str | int], copied: dict[int, Any]) -> None:
    holder: Any = root
    label_follows = False
    for part in location[:-1]:
        if label_follows:
            label_follows = False
        elif isinstance(part, str) and part.startswith("tagged-union["):
            label_follows = True
        elif isinstance(holder, dict):
            # Other parts of an error path are union labels.
            is_tag = part in TAGS and part in (holder.get("type"), holder.get("function"))
            if part in holder and not is_tag:
                holder[part] = holder = _copied(holder[part], copied)
        elif isinstance(holder, list) and isinstance(part, int) and part < len(holder):
            holder[part] = holder = _copied(holder[part], copied)
    if isinstance(holder, dict):
        holder.pop(location[-1], None)


def _copied(value: Any, copied: dict[int, Any]) -> Any:
    """Return `value` copied one level deep, unless it is already a copy."""
    if id(value) in copied:
        return value
    if isinstance(value, dict):
        value = dict(value)
    elif isinstance(value, list | tuple):
        value = list(value)
    else:
        return value
    copied[id(value)] = value
    return value


SHOWN = 3
"""Maximum number of problems to list. The others are counted."""


def problems(error: ValidationError) -> str:
    """Return positions and reasons, without the labels that unions add to paths.

    For a union, only errors of the member that the value's `type` names are included, if there is such a
    member. The other members also report errors, but they are not the cause.
    """
    details = error.errors(include_url=False, include_input=False)
    decided = [
        detail for detail in details if not any(_is_open_union(part) for part in detail["loc"])
    ] or details
    lines = list(dict.fromkeys(f"{_place(detail['loc'])}{_reason(detail['msg'])}" for detail in decided))
    more = f"; and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return "; ".join(lines[:SHOWN]) + more


def _place(location: Sequence[str | int]) -> str:
    parts: list[str] = []
    label_follows = False
    for part in location:
        if label_follows:
            label_follows = False
        elif isinstance(part, str) and ("union[" in part or part.startswith("function-")):
            label_follows = "union[" in part
        else:
            parts.append(str(part))
    return f"{'.'.join(parts)}: " if parts else ""


def _is_open_union(part: str | int) -> bool:
    return isinstance(part, str) and part.startswith("union[")


def _reason(message: str) -> str:
    return message[:1].lower() + message[1:]


Path = tuple[str | int, ...]

_HINTS = {
    "missing": "add the field; write `null` if the value is unknown and the field allows it",
    "extra_forbidden": "remove the field, or correct its name",
    "enum": "use one of the values listed",
    "literal_error": "use the value listed",
}


@dataclass(frozen=True)
class _Fault:
    place: Path
    detail: ErrorDetails
    in_union: bool

    @property
    def is_dropped(self) -> bool:
        """Whether readers ignore the unknown field and continue."""
        return self.detail["type"] == "extra_forbidden" and not self.in_union


def issues_of(error: ValidationError, data: Any, *, file: str | None = None, path: Path = ()) -> list[Issue]:
    """Return the errors of `data`, which is at `path` in the file, as one issue each.

    An unknown field that readers drop is a warning. Inside a union it is not dropped and is an error.
    """
    issues = [
        Issue(
            _message(fault.detail),
            file=file,
            path=(*path, *fault.place),
            hint=_HINTS.get(fault.detail["type"]),
            severity="warning" if fault.is_dropped else "error",
            code=Code.DAMAGED_RESULT,
        )
        for fault in _meant(error.errors(include_url=False), data)
    ]
    return list(dict.fromkeys(issues))


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "found no such field, expected one"
    if detail["type"] == "extra_forbidden":
        return "found an unknown field"
    message = detail["msg"]
    text = repr(detail["input"])
    text = text if len(text) <= 80 else text[:77] + "…"
    return f"found {text}: {message[:1].lower()}{message[1:]}"


def _meant(details: Sequence[ErrorDetails], data: Any) -> list[_Fault]:
    """Return errors with their position in the data, without errors of unintended union branches."""
    faults: list[_Fault] = []
    branches: dict[Path, dict[str | int, list[ErrorDetails]]] = {}
    for detail in details:
        place, label, below_label = _split(detail["loc"], data)
        if label is None:
            faults.append(_Fault(place, detail, in_union=False))
        else:
            below: ErrorDetails = {**detail, "loc": below_label}
            branches.setdefault(place, {}).setdefault(label, []).append(below)
    for place, by_label in branches.items():
        branch_data = _at(data, place)
        label, group = min(
            ((label, _meant(group, branch_data)) for label, group in by_label.items()),
            key=lambda candidate: _unlikeliness(candidate[1]),
        )
        faults += [
            _Fault((*place, *fault.place), fault.detail, fault.in_union or label not in TAGS)
            for fault in group
        ]
    return faults


def _unlikeliness(faults: Sequence[_Fault]) -> tuple[bool, int]:
    """Return a sort key for branches: whether the `type` is another one, then the number of errors."""
    other_type = any(
        (fault.place == ("type",) and fault.detail["type"] == "literal_error")
        or (fault.place == () and fault.detail["type"].startswith(_OF_ANOTHER_KIND))
        for fault in faults
    )
    return other_type, len(faults)


_OF_ANOTHER_KIND = ("union_tag", "model_type", "dict_type", "list_type")


def _split(location: Path, data: Any) -> tuple[Path, str | int | None, Path]:
    """Return the path up to the first union label, the label, and the rest."""
    value = data
    for index, part in enumerate(location):
        is_last = index == len(location) - 1
        if isinstance(value, Mapping) and (part in value or (is_last and isinstance(part, str))):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return location[:index], part, location[index + 1 :]
    return location, None, ()


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data
