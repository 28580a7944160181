"""`LoggedPlan`: the plan that a log records. It is data; nothing in it can be executed.

Reading a log creates a `LoggedPlan`, never a `TaskPlan`. Code and templates in the logged task remain text
in its document, which is copied unchanged into the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast, get_args

import orjson
from pydantic import TypeAdapter

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, dotted
from aigo_bridge.plan.outline import (
    LATE,
    EntityType,
    TaskOutline,
    agrees,
    has_placeholders,
    outline_from_json,
    outline_json,
)
from aigo_bridge.plan.plan import (
    HEADER_FORMAT,
    SNIPPET_LEVELS,
    CachePolicy,
    PlannedDataset,
    Specification,
    TaskPlan,
    content_digest,
    deciding_content,
)
from aigo_bridge.plan.shards import ShardRows
from aigo_bridge.redaction.secrets import MASK, learn_environment, redact_value

_SPECIFICATION: TypeAdapter[Specification | None] = TypeAdapter(Specification | None, config=LATE)
_DATASET: TypeAdapter[PlannedDataset | None] = TypeAdapter(PlannedDataset | None, config=LATE)
_DEEPEST = 200
"""Maximum nesting depth of a task in a log. Task files are nested less deeply."""


@dataclass(frozen=True)
class LoggedPlan:
    """Plan in a log, without its rows."""

    document: Mapping[str, Any]
    """Task as written."""
    outline: TaskOutline
    """Scorers, metrics and aggregators that are needed to read the log."""
    config: Mapping[str, Any]
    dataset: PlannedDataset | None
    """Dataset of the plan; `None` for system tasks."""
    num_trials: int
    num_samples: int | None
    subsampling: str
    digest: str
    """Digest that the log records. The expected digest is the `content_digest` of `content`."""
    solver_digest: str | None = None
    stored_entity: Mapping[str, Any] | None = None
    """Entity that was evaluated when the rescored outputs were produced."""
    specification: Specification | None = None
    cache: CachePolicy = "update"
    snippets: str | None = None
    """Confinement level of the author's code, as in `TaskPlan.snippets`."""
    shard: ShardRows | None = None
    """Rows that the log covers, as in `TaskPlan.shard`."""
    damage: tuple[str, ...] = ()
    """Contradictions within the plan, which show that it was edited."""

    @property
    def name(self) -> str:
        """Name of the result: the key of the specification, or of the task if it runs alone."""
        return str(self.document["key"]) if self.specification is None else self.specification.key

    @property
    def display_name(self) -> str:
        """Display name of the result."""
        name = None if self.specification is None else self.specification.display_name
        return name or str(self.document["display_name"])

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags, as in `TaskPlan.tags`."""
        tags = tuple(self.document.get("tags") or ())
        return tags if self.dataset is None else (*tags, *self.dataset.notes)

    @property
    def entity(self) -> EntityType:
        """Entity that the task evaluates."""
        return self.outline.entity

    @property
    def content(self) -> dict[str, Any]:
        """Content that the digest must match."""
        return deciding_content(self.document, self.config, self.dataset, self.num_trials)

    @staticmethod
    def of(plan: TaskPlan) -> LoggedPlan:
        """Return the plan as the log of the same run records it."""
        return LoggedPlan(
            **{part.name: getattr(plan, part.name) for part in fields(LoggedPlan) if part.name != "damage"}
        )


AnyPlan = TaskPlan | LoggedPlan
"""Plan from the user's own files, or from a log."""


def logged_plan(header: Mapping[str, Any]) -> LoggedPlan:
    """Convert the output of `TaskPlan.header` in a log into a plan.

    Raises:
        EvidenceError: the header has a newer format or is damaged.
    """
    if not isinstance(header, Mapping):
        raise EvidenceError(
            f"the log's plan is damaged: it is a {type(header).__name__}, expected an object",
            code=Code.DAMAGED_LOG,
        )
    if header.get("format") != HEADER_FORMAT:
        raise EvidenceError(
            f"the log's plan has format {header.get('format')!r:.80}, this release reads format "
            f"{HEADER_FORMAT}",
            code=Code.OTHER_RELEASE,
        )
    _check_depth(header)
    try:
        document = header["task"]
        names = [document[name] for name in ("key", "display_name", "description")]
        if not all(isinstance(name, str) for name in [*names, *(document.get("tags") or ())]):
            raise EvidenceError(
                "the log's plan is damaged: the names of its task are not texts", code=Code.DAMAGED_LOG
            )
        cache = header.get("cache", "update")
        if cache not in get_args(CachePolicy):
            raise EvidenceError(
                f"the log's plan is damaged: its cache policy is {cache!r:.80}", code=Code.DAMAGED_LOG
            )
        level = header.get("snippets")
        if level not in (None, *SNIPPET_LEVELS):
            raise EvidenceError(
                f"the log's plan is damaged: its level of snippets is {level!r:.80}", code=Code.DAMAGED_LOG
            )
        written = outline_json(document["definition"])
        plan = LoggedPlan(
            document=document,
            outline=_outline(header, written),
            config=dict(header["config"]),
            dataset=_DATASET.validate_python(header["dataset"]),
            num_trials=_number(header["num_trials"]),
            num_samples=None if header["num_samples"] is None else _number(header["num_samples"]),
            subsampling=str(header["subsampling"]),
            digest=str(header["digest"]),
            solver_digest=header.get("solver_digest"),
            stored_entity=header.get("stored_entity"),
            specification=_SPECIFICATION.validate_python(header.get("specification")),
            cache=cast("CachePolicy", cache),
            snippets=level,
            shard=ShardRows.from_json(header.get("shard")),
        )
        return _judged(plan, written)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, EvidenceError):
            raise
        raise EvidenceError(f"the log's plan is damaged: {error}", code=Code.DAMAGED_LOG) from error


def is_intact(header: Mapping[str, Any]) -> bool:
    """Return whether the plan in a log is free of contradictions."""
    try:
        return not logged_plan(header).damage
    except EvidenceError:
        return False


def _outline(header: Mapping[str, Any], written: Mapping[str, Any]) -> TaskOutline:
    bound = header.get("outline")
    if bound is None:
        if has_placeholders(written):
            raise EvidenceError(
                "the log's plan is of an older release and has placeholders (`<< config.x >>`), which "
                "are not filled in while reading",
                code=Code.OTHER_RELEASE,
            )
        bound = written
    return outline_from_json(bound)


def _judged(plan: LoggedPlan, written: Mapping[str, Any]) -> LoggedPlan:
    problems: list[str] = []
    digest = content_digest(plan.content)
    if digest != plan.digest and not has_mask(plan.content):
        problems.append(
            f"the plan in the log was edited: its digest is {plan.digest:.12}, but its "
            f"content has {digest:.12}"
        )
    if not agrees(written, plan.outline.to_json()):
        problems.append("the plan in the log was edited: its scorers do not match its task")
    if not problems:
        return plan
    return replace(plan, damage=tuple(problems))


def has_mask(value: Any) -> bool:
    """Return whether a secret was removed from a plan when its log was written. Its digest then differs from
    the digest of the logged content.
    """
    if isinstance(value, str):
        return MASK in value
    if isinstance(value, Mapping):
        return any(map(has_mask, value.values()))
    return isinstance(value, list | tuple) and any(map(has_mask, value))


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"found {value!r:.80}, expected a number of samples or trials")
    return value


def _check_depth(value: Any) -> None:
    """Raise an error if the plan is nested too deeply, without visiting every level."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            part
            for holder in level
            for part in (holder.values() if isinstance(holder, Mapping) else holder)
            if isinstance(part, Mapping | list | tuple)
        ]
        if not level:
            return
    raise EvidenceError(
        f"the log's plan is damaged: it is nested more than {_DEEPEST} levels deep", code=Code.DAMAGED_LOG
    )


# Comparison with the current task

_LONGEST = 60
"""Maximum number of characters to show of a value."""


def plan_differences(task_plan: TaskPlan, logged: LoggedPlan) -> Iterator[str]:
    """Yield each place in which the current task differs from the plan in a log, with both values."""
    content: Any = deciding_content(
        task_plan.document, task_plan.config, task_plan.dataset, task_plan.num_trials
    )
    outline: Any = task_plan.outline.to_json()
    if has_mask(logged.content):
        # The log was written without secrets, so secrets of this machine are removed here as well.
        learn_environment()
        content = redact_value(content)
    yield from _unequal(orjson.loads(orjson.dumps(content)), logged.content, ())
    yield from _unequal(outline, logged.outline.to_json(), ("outline",))


def _unequal(task: Any, logged: Any, path: tuple[str | int, ...]) -> Iterator[str]:
    """Yield each difference between two plans with both values."""
    if isinstance(task, Mapping) and isinstance(logged, Mapping):
        for name in dict.fromkeys([*task, *logged]):
            if name in task and name in logged:
                yield from _unequal(task[name], logged[name], (*path, name))
            else:
                yield f"{dotted((*path, name))} is only in the {'task' if name in task else 'log'}"
        return
    if isinstance(task, list) and isinstance(logged, list | tuple) and len(task) == len(logged):
        for number, pair in enumerate(zip(task, logged, strict=True)):
            yield from _unequal(*pair, (*path, number))
        return
    if task != logged or isinstance(task, bool) is not isinstance(logged, bool):
        where = "the rows" if path == ("dataset", "digest") else dotted(path)
        yield f"{where}: the task has {_short(task)}, the log {_short(logged)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
