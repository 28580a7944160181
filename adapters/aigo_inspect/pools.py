"""Putting back what Inspect takes out of a sample before it writes it.

Long texts become `attachment://<hash>` references into `sample.attachments`. The messages of a model call become
ranges (`input_refs`) into a pool of distinct messages, and the messages of its raw request ranges (`call_refs`)
into another. `resolve` undoes all of it in place. Messages that are equal come back as the same dictionary, so that
whatever is computed from a message need be computed only once.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import orjson

from aigo_bridge.importing.bounds import DEFAULT_BOUNDS, Bounds, TooLargeError

from .pool_sizes import check_contexts

_PREFIXES = ("attachment://", "tc://")


def expand_refs(refs: Any, pool: list[Any], most: float = math.inf) -> tuple[list[Any], int]:
    """The items of `pool` that a list of half-open `[start, end]` ranges names, in the order of the ranges.

    Once they are more than `most`, the ranges that are left are not looked at.

    Returns:
        The items, and how many of the ranges are none, or not within the pool.
    """
    if type(refs) is not list:
        return [], 1
    found: list[Any] = []
    unknown = 0
    for ref in refs:
        start, end = ref if type(ref) is list and len(ref) == 2 else (None, None)
        if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(pool):
            unknown += 1
            if type(start) is not int or type(end) is not int or start < 0:
                continue
        found += pool[start:end]
        if len(found) > most:
            break
    return found, unknown


def resolve(sample: dict[str, Any], *, size: int = 0, bounds: Bounds = DEFAULT_BOUNDS) -> Walker:
    """Resolve attachments and pools of a sample, in place.

    Afterwards every `ModelEvent` has its full `input` (and raw `call.request`), no `input_refs`, and there is no
    `attachment://` reference left whose text the sample has; `attachments` and `events_data` are gone. Equal
    messages, and equal lists of tools of neighbouring model calls, are the same object afterwards.

    Args:
        sample: an `EvalSample` as a dictionary.
        size: bytes of its JSON.
        bounds: how much a few bytes of references may become.

    Returns:
        What counted the references to texts and messages that the sample does not have; they stay as they are.

    Raises:
        TooLargeError: the sample would become larger than the bounds allow.
    """
    attachments = sample.pop("attachments", None)
    pools = sample.pop("events_data", None)
    pools = pools if isinstance(pools, dict) else {}
    if pools.get("malformed"):
        sample["malformed"] = {**(sample.get("malformed") or {}), "events_data": pools["malformed"]}
    messages = _pool(pools, "messages")
    calls = _pool(pools, "calls")
    walker = Walker(attachments if isinstance(attachments, dict) else {}, size, bounds)
    # Shared message dictionaries are walked here, once, and not again through the events.
    walker.walk_messages(messages)
    walker.walk(calls)
    for key, value in sample.items():
        if key in NOT_TAKEN_OUT:
            continue
        if key == "events" and isinstance(value, list):
            _resolve_events(value, messages, calls, walker)
        elif key == "error_retries" and isinstance(value, list):
            for retry in value:
                walker.walk(retry if isinstance(retry, dict) else [])
                if isinstance(retry, dict) and isinstance(retry.get("events"), list):
                    _resolve_events(retry["events"], messages, calls, walker)
        else:
            sample[key] = resolve_field(key, value, walker)
    return walker


def _pool(pools: dict[str, Any], name: str) -> list[Any]:
    found = pools.get(name)
    return found if isinstance(found, list) else []


def resolve_field(key: str, value: Any, walker: Walker) -> Any:
    """A field of a sample that holds no events, with its references replaced (in place where it is no text)."""
    if isinstance(value, str):
        return walker.text(value)
    if key in NOT_TAKEN_OUT:
        return value
    if key == "messages" and isinstance(value, list):
        walker.walk_messages(value)
    elif isinstance(value, (dict, list)):
        walker.walk(value)
    return value


NOT_TAKEN_OUT = frozenset({"store", "model_usage", "role_usage", "timelines"})
"""Fields of a sample whose texts always stand in them."""
_MESSAGE_TEXTS = ("content", "tool_calls", "metadata", "error")
_WITHOUT_TEXTS = frozenset({"span_begin", "span_end", "step"})
"""Kinds of events that have names, but no texts long enough to be taken out."""


def _resolve_events(events: list[Any], messages: list[Any], calls: list[Any], walker: Walker) -> None:
    given: Any = None
    resolved: Any = None
    known: dict[str, dict[str, Any]] = {}
    # Collected and walked together: starting a walk costs more than most events do.
    texts: list[Any] = []
    models: list[tuple[dict[str, Any], Any, Any]] = []
    for event in events:
        if type(event) is not dict:
            continue
        kind = event.get("event")
        if kind == "model":
            models.append((event, event.pop("tools", None), event.pop("config", None)))
            texts.append(event)
        elif type(kind) is not str or kind not in _WITHOUT_TEXTS or event.get("metadata"):
            texts.append(event)
    walker.walk(texts)
    natives = [event for event, _, _ in models]
    walker.check_contexts([event.get("input_refs") for event in natives], messages)
    raw = [event["call"].get("call_refs") for event in natives if type(event.get("call")) is dict]
    walker.check_contexts(raw, calls)
    for event, tools, config in models:
        event["config"] = config
        # The definitions of the tools stand in every call and hardly ever change.
        if tools != given:
            given, resolved = _copied(tools), tools
            walker.walk(tools if isinstance(tools, list) else [])
        event["tools"] = resolved
        _share_messages(event, messages, calls, known, walker)


def _copied(value: Any) -> Any:
    try:
        return orjson.loads(orjson.dumps(value))
    except (TypeError, orjson.JSONDecodeError):
        return copy.deepcopy(value)


class Walker:
    """Replaces references inside a tree of dictionaries and lists, in place."""

    def __init__(self, texts: dict[str, Any], size: int, bounds: Bounds):
        self.missing = 0
        """References to texts that the sample does not have."""
        self.unknown = 0
        """Ranges of messages that the sample does not have."""
        self._size = size
        self._bounds = bounds
        self._texts = texts
        self._by_reference = {
            f"attachment://{name}": text for name, text in texts.items() if type(text) is str
        }
        self._room = bounds.room(size)
        self._growth = bounds.growth
        self._messages = bounds.context_messages
        # Hardly any other text has the length of a reference: looking at the length first saves most comparisons. Most
        # references are hashes of 32 digits, also those whose texts are missing.
        names = {32, *map(len, texts)}
        self.lengths = {len(prefix) + name for name in names for prefix in _PREFIXES}
        """Lengths that a reference may have."""

    def text(self, value: str) -> str:
        """The text behind a reference; the value itself when it is none."""
        if len(value) not in self.lengths:
            return value
        found = self._by_reference.get(value)
        if found is None:
            if not value.startswith(_PREFIXES):
                return value
            found = self._texts.get(value[value.index("/") + 2 :])
            if not isinstance(found, str):
                self.missing += 1
                return value
        self._room -= len(found)
        if self._room < 0:
            raise TooLargeError(
                f"the sample's attachments come to more than {self._growth:g} times its size when they are put back"
                " (raise the bound 'growth' if the log is yours)"
            )
        return found

    def expand(self, refs: Any, pool: list[Any], before: int = 0) -> list[Any]:
        """`expand_refs`, within the bounds; `before` messages of the same context are known already."""
        found, unknown = expand_refs(refs, pool, self._messages)
        self.unknown += unknown
        self._messages -= before + len(found)
        if self._messages < 0:
            raise TooLargeError(
                "the sample's model calls have more messages than the bound 'context_messages' allows"
                " (raise it if the log is yours)"
            )
        return found

    def check_contexts(self, named: list[Any], pool: list[Any]) -> None:
        """Refuse contexts that come to far more than the sample; raises `TooLargeError`."""
        if self._size and pool:
            put_back = self._bounds.room(self._size) - self._room
            check_contexts(named, pool, self._size, put_back, self._bounds)

    def walk_messages(self, messages: list[Any]) -> None:
        """Replace every reference in messages; their ids, roles and names are never taken out."""
        lengths = self.lengths
        for message in messages:
            if type(message) is not dict:
                continue
            for key in _MESSAGE_TEXTS:
                value = message.get(key)
                if not value:
                    continue
                if type(value) is str:
                    if len(value) in lengths:
                        message[key] = self.text(value)
                elif type(value) is dict or type(value) is list:
                    self.walk(value)

    def walk(self, root: dict[str, Any] | list[Any]) -> None:
        """Replace every reference below `root`."""
        # A list that grows while it is gone through: logs nest as deeply as their authors like.
        nodes: list[dict[str, Any] | list[Any]] = [root]
        push = nodes.append
        lengths = self.lengths
        for node in nodes:
            if type(node) is dict:
                for key, value in node.items():
                    kind = type(value)
                    if kind is str:
                        if len(value) in lengths:
                            node[key] = self.text(value)
                    elif (kind is dict or kind is list) and value:
                        push(value)
            elif type(node) is list:
                for index, value in enumerate(node):
                    kind = type(value)
                    if kind is str:
                        if len(value) in lengths:
                            node[index] = self.text(value)
                    elif (kind is dict or kind is list) and value:
                        push(value)


def has_references(value: Any) -> bool:
    """Whether a text somewhere in a JSON value stands for another one."""
    if isinstance(value, str):
        return value.startswith(_PREFIXES)
    if isinstance(value, dict):
        return any(map(has_references, value.values()))
    return isinstance(value, list) and any(map(has_references, value))


def _share_messages(
    event: dict[str, Any],
    messages: list[Any],
    calls: list[Any],
    known: dict[str, dict[str, Any]],
    walker: Walker,
) -> None:
    """Expand a model event's pool references; in logs without a pool equal messages are shared all the same."""
    refs = event.get("input_refs")
    found = event.get("input")
    before = walker.unknown
    if refs and not found:
        event["input"] = walker.expand(refs, messages)
    elif isinstance(found, list):
        for index, message in enumerate(found):
            key = message.get("id") if type(message) is dict else None
            if type(key) is str:
                same = known.setdefault(key, message)
                if same is not message and same == message:
                    found[index] = same
    if walker.unknown == before:
        # Others stay: what they may have meant is for the reader to judge.
        event.pop("input_refs", None)
    call = event.get("call")
    if type(call) is dict:
        expand_request(call, calls, walker)


def expand_request(call: dict[str, Any], calls: list[Any], walker: Walker) -> None:
    """Put the messages of a raw request back into it."""
    refs = call.pop("call_refs", None)
    key = call.pop("call_key", None)
    if refs and isinstance(call.get("request"), dict):
        call["request"][key if isinstance(key, str) else "messages"] = walker.expand(refs, calls)
