"""Restoring of data that Inspect moves out of a sample before writing it, in place.

Long texts are replaced by references `attachment://<hash>` to `sample.attachments`. The messages of a model
call are replaced by ranges (`input_refs`) in a pool of distinct messages. The messages of its raw request are
replaced by ranges (`call_refs`) in another pool.

A sample may also be split into a small shell and four sequences, each in numbered members:

```text
samples/{id}_epoch_{n}/sample.json            the sample without the sequences, with `message_refs`
samples/{id}_epoch_{n}/metadata.json          its metadata, if any
samples/{id}_epoch_{n}/messages/{start}.json  message pool; similar: events/, calls/, attachments/
```

In this layout, attachments are numbered: `attachment://12` refers to the text with index 12. Members with
derived data (`skeleton.json`, `events/stats.json`, `events/uuids.json`) are not needed. Source of the layout:
Inspect AI, `log/_recorders/chunked/format.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import accumulate, chain
from typing import Any

import msgspec

from aigo_bridge.access.bounds import Bounds, LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.text.json_text import dumps
from aigo_inspect.logs.parsing import ParsedDocument

_PREFIXES = ("attachment://", "tc://")


def expand_refs(refs: Any, pool: list[Any], most: float = math.inf) -> tuple[list[Any], int]:
    """Return the items of `pool` for a list of half-open `[start, end]` ranges, in order.

    If there are more than `most` items, the remaining ranges are ignored.

    Returns:
        The items, and the number of ranges that are invalid or outside the pool.
    """
    if type(refs) is not list:
        return [], 1
    items: list[Any] = []
    unknown = 0
    for ref in refs:
        start, end = ref if type(ref) is list and len(ref) == 2 else (None, None)
        if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(pool):
            unknown += 1
            if type(start) is not int or type(end) is not int or start < 0:
                continue
        items += pool[start:end]
        if len(items) > most:
            break
    return items, unknown


def resolve_fields(fields: dict[str, Any], messages: list[Any], calls: list[Any], walker: Walker) -> None:
    """Resolve the references in the fields of a sample, in place.

    Args:
        fields: fields of the sample, except events and messages.
        messages: distinct messages of its model calls, as dictionaries.
        calls: distinct messages of its raw requests.
        walker: resolver with the attachments of the sample.
    """
    # All fields together, because starting a walk costs more than walking most fields.
    trees = []
    for key, value in fields.items():
        if key in _NOT_TAKEN_OUT:
            continue
        if type(value) is str:
            fields[key] = walker.text(value)
        elif value and (type(value) is dict or type(value) is list):
            trees.append(value)
    walker.walk(trees)
    retries = _objects(fields.get("error_retries"))
    events = [event for retry in retries for event in _objects(retry.get("events"))]
    walker.check_contexts([event.get("input_refs") for event in events], messages)
    walker.check_contexts(
        [call.get("call_refs") for call in _objects([e.get("call") for e in events])], calls
    )
    for event in events:
        expand_call(event, messages, calls, walker)


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if type(value) is dict] if type(values) is list else []


_NOT_TAKEN_OUT = frozenset({"store", "model_usage", "role_usage", "timelines"})
"""Fields of a sample whose texts are never moved to attachments."""
_MESSAGE_TEXTS = ("content", "tool_calls", "metadata", "error")


class Walker:
    """Resolver that replaces references in a tree of dictionaries and lists, in place."""

    def __init__(self, texts: dict[str, Any], size: int, bounds: Bounds):
        self.missing = 0
        """Number of references to texts that are not in the sample."""
        self.unknown = 0
        """Number of ranges of messages that are not in the sample."""
        self._size = size
        self._bounds = bounds
        self._texts = texts
        self._by_reference = {
            f"attachment://{name}": text for name, text in texts.items() if type(text) is str
        }
        self._room = bounds.room(size)
        self._growth = bounds.growth
        self._messages = bounds.context_messages
        # Checking the length first avoids most comparisons, because few other texts have the length of a
        # reference. Most references have hashes of 32 digits, including references to missing texts.
        names = {32, *map(len, texts)}
        self.lengths = {len(prefix) + name for name in names for prefix in _PREFIXES}
        """Possible lengths of a reference."""

    def text(self, value: str) -> str:
        """Return the text for a reference, or the value itself if it is not a reference."""
        if len(value) not in self.lengths:
            return value
        text = self._by_reference.get(value)
        if text is None:
            if not value.startswith(_PREFIXES):
                return value
            text = self._texts.get(value[value.index("/") + 2 :])
            if not isinstance(text, str):
                self.missing += 1
                return value
        self._room -= len(text)
        if self._room < 0:
            raise LogTooLargeError(
                f"the sample's attachments expand to more than {self._growth:g} times its size"
                " when they are put back"
                " (raise the bound 'growth' if the log is yours)"
            )
        return text

    def expand(self, refs: Any, pool: list[Any], before: int = 0) -> list[Any]:
        """Expand ranges like `expand_refs`, within the bounds. `before` is the number of known messages in
        the same context.
        """
        items, unknown = expand_refs(refs, pool, self._messages)
        self.unknown += unknown
        self._messages -= before + len(items)
        if self._messages < 0:
            raise LogTooLargeError(
                "the sample's model calls have more messages than the bound 'context_messages' allows"
                " (raise it if the log is yours)"
            )
        return items

    def check_contexts(self, named: list[Any], pool: list[Any]) -> None:
        """Raise `LogTooLargeError` if the expanded contexts are far larger than the sample."""
        if self._size and pool:
            put_back = self._bounds.room(self._size) - self._room
            check_contexts(named, pool, self._size, put_back, self._bounds)

    def walk_messages(self, messages: list[Any]) -> None:
        """Replace references in messages. Ids, roles and names never contain references."""
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
        """Replace all references below `root`."""
        # The list grows during the loop, which avoids recursion into deeply nested logs.
        nodes: list[Any] = [root] if type(root) is dict or type(root) is list else []
        push = nodes.append
        lengths = self.lengths
        for node in nodes:
            for key, value in node.items() if type(node) is dict else enumerate(node):
                kind = type(value)
                if kind is str:
                    if len(value) in lengths:
                        node[key] = self.text(value)
                elif (kind is dict or kind is list) and value:
                    push(value)


def has_references(value: Any) -> bool:
    """Return whether a JSON value contains a reference."""
    if isinstance(value, str):
        return value.startswith(_PREFIXES)
    if isinstance(value, dict):
        return any(map(has_references, value.values()))
    return isinstance(value, list) and any(map(has_references, value))


def expand_call(event: dict[str, Any], messages: list[Any], calls: list[Any], walker: Walker) -> None:
    """Restore the messages of a model call and of its raw request."""
    refs, unknown = event.get("input_refs"), walker.unknown
    if refs and not event.get("input"):
        event["input"] = walker.expand(refs, messages)
    if walker.unknown == unknown:
        # Invalid references are kept for the reader.
        event.pop("input_refs", None)
    if type(event.get("call")) is dict:
        expand_request(event["call"], calls, walker)


def expand_request(call: dict[str, Any], calls: list[Any], walker: Walker) -> None:
    """Restore the messages of a raw request."""
    refs = call.pop("call_refs", None)
    key = call.pop("call_key", None)
    if refs and isinstance(call.get("request"), dict):
        call["request"][key if isinstance(key, str) else "messages"] = walker.expand(refs, calls)


# Size of a sample's model calls after the message ranges are expanded. A few bytes can refer to thousands of
# messages, so this check is the only limit for untrusted samples. Contexts of real agents grow with the
# square of their turns, but a call rarely contains a message twice.


def check_contexts(named: list[Any], pool: list[Any], size: int, put_back: int, bounds: Bounds) -> None:
    """Raise an error if the contexts of a sample exceed `Bounds.context_growth` times its size.

    Args:
        named: message ranges of every model call.
        pool: messages as dictionaries or records, with restored attachments.
        size: size of the sample's JSON in bytes.
        put_back: number of characters added by attachments.
        bounds: limits for the sample.

    Raises:
        TooLargeError: the contexts exceed the limit.
    """
    room = bounds.growth_from + int(size * bounds.context_growth)
    # If calls do not repeat messages, each context is at most as large as the whole pool. This quick check
    # accepts almost every sample.
    if len(named) * (size + put_back) <= room and all(map(_ascends, named)):
        return
    ends = [0, *accumulate(map(_length, pool))]
    for refs in named:
        for start, end in _ranges(refs, len(pool)):
            room -= ends[end] - ends[start]
            if room < 0:
                raise LogTooLargeError(
                    "the inputs of the sample's model calls expand to more than"
                    f" {bounds.context_growth:g} times its size"
                    " (raise the bound 'context_growth' if the log is yours)"
                )


def _ascends(refs: Any) -> bool:
    """Return whether the ranges are ascending, so that messages are not repeated."""
    try:
        ends = list(chain.from_iterable(refs))
        return ends == sorted(ends)
    except TypeError:
        # Invalid ranges. The messages are counted one by one.
        return False


def _ranges(refs: Any, length: int) -> list[tuple[int, int]]:
    """Return the ranges in `refs` that are within a pool. Other ranges are reported when they are
    expanded.
    """
    return [
        (ref[0], ref[1])
        for ref in (refs if type(refs) is list else ())
        if type(ref) is list
        and len(ref) == 2
        and type(ref[0]) is int
        and type(ref[1]) is int
        and 0 <= ref[0] <= ref[1] <= length
    ]


def _length(message: Any) -> int:
    return len(msgspec.json.encode(message) if isinstance(message, msgspec.Struct) else dumps(message))


# Samples in several members


_SHELL = "/sample.json"
_SEQUENCES = ("messages", "events", "calls", "attachments")


def chunked_samples(members: Iterable[str]) -> dict[str, list[str]]:
    """Return the shell name of each chunked sample → names of its other members."""
    names = list(members)
    samples: dict[str, list[str]] = {name: [] for name in names if name.endswith(_SHELL)}
    if not samples:
        return samples
    for name in names:
        # Ids may contain slashes.
        end = name.find("/")
        while end >= 0:
            if (shell := name[:end] + _SHELL) != name and shell in samples:
                samples[shell].append(name)
            end = name.find("/", end + 1)
    return samples


def read_chunked(
    read: Callable[[str], ParsedDocument], parts: list[str], shell: ParsedDocument
) -> ParsedDocument:
    """Combine the members of a chunked sample to one sample with pools.

    Args:
        read: parses a member.
        parts: members of the sample except the shell.
        shell: the parsed shell.

    Raises:
        EvidenceError: a member is missing or has the wrong type.
    """
    sample = shell.value
    if not isinstance(sample, dict):
        raise EvidenceError("the main part of a chunked sample is not an object", code=Code.DAMAGED_LOG)
    non_finite = shell.non_finite
    changes = Counter(shell.changes)
    sequences: dict[str, list[Any]] = {}
    for sequence in _SEQUENCES:
        chunks = sorted(
            (int(stem), name)
            for name in parts
            for folder, _, file in [name.rpartition("/")]
            if folder.endswith(f"/{sequence}") and (stem := file.removesuffix(".json")).isdigit()
        )
        items: list[Any] = []
        for start, name in chunks:
            if start != len(items):
                raise EvidenceError(
                    f"the chunked sample lacks {sequence} {len(items)} to {start}", code=Code.DAMAGED_LOG
                )
            parsed = read(name)
            non_finite = non_finite or parsed.non_finite
            if not isinstance(parsed.value, list):
                raise EvidenceError(f"member {name!r} is not a list", code=Code.DAMAGED_LOG)
            items += parsed.value
        sequences[sequence] = items
    for name in parts:
        if name.endswith("/metadata.json") and name.count("/") == (parts[0].count("/") if parts else 0):
            sample["metadata"] = read(name).value
    sample["events"] = sequences["events"]
    sample["events_data"] = {"messages": sequences["messages"], "calls": sequences["calls"]}
    sample["attachments"] = {str(index): text for index, text in enumerate(sequences["attachments"])}
    if "messages" not in sample:
        # Copies, because the conversation is resolved separately and must not share lists with the pool.
        messages, unknown = expand_refs(sample.pop("message_refs", None) or [], sequences["messages"])
        sample["messages"] = messages
        if unknown:
            changes["conversation: messages that are missing from the log left out"] += unknown
    return ParsedDocument(sample, non_finite, changes)
