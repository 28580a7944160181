"""Samples that are stored in pieces: a small shell and four sequences, each in numbered members.

```text
samples/{id}_epoch_{n}/sample.json            the sample without the sequences, with `message_refs`
samples/{id}_epoch_{n}/metadata.json          its metadata, when there is any
samples/{id}_epoch_{n}/messages/{start}.json  message pool; also messages/, events/, calls/, attachments/
```

Attachments are numbered instead of hashed: `attachment://12` is the twelfth text of the sequence. Members that hold
only derived data (`skeleton.json`, `events/stats.json`, `events/uuids.json`) are not needed. Source of the layout:
Inspect AI, `log/_recorders/chunked/format.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from aigo_bridge.errors import EvidenceError

from .parsing import Parsed
from .pools import expand_refs

_SHELL = "/sample.json"
_SEQUENCES = ("messages", "events", "calls", "attachments")


def chunked_samples(members: Iterable[str]) -> dict[str, list[str]]:
    """The members that belong to each chunked sample, by the name of its shell."""
    names = list(members)
    found: dict[str, list[str]] = {name: [] for name in names if name.endswith(_SHELL)}
    if not found:
        return found
    for name in names:
        # Ids may have slashes, too.
        end = name.find("/")
        while end >= 0:
            if (shell := name[:end] + _SHELL) != name and shell in found:
                found[shell].append(name)
            end = name.find("/", end + 1)
    return found


def read_chunked(read: Callable[[str], Parsed], parts: list[str], shell: Parsed) -> Parsed:
    """Put a chunked sample together as one sample with pools.

    Args:
        read: parses a member.
        parts: members of the sample other than the shell.
        shell: the parsed shell.

    Raises:
        EvidenceError: a piece is missing or of the wrong kind.
    """
    sample = shell.value
    if not isinstance(sample, dict):
        raise EvidenceError("the shell of a chunked sample is no object")
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
                raise EvidenceError(f"the chunked sample lacks {sequence} {len(items)} to {start}")
            parsed = read(name)
            non_finite = non_finite or parsed.non_finite
            if not isinstance(parsed.value, list):
                raise EvidenceError(f"member {name!r} is no list")
            items += parsed.value
        sequences[sequence] = items
    for name in parts:
        if name.endswith("/metadata.json") and name.count("/") == (parts[0].count("/") if parts else 0):
            sample["metadata"] = read(name).value
    sample["events"] = sequences["events"]
    sample["events_data"] = {"messages": sequences["messages"], "calls": sequences["calls"]}
    sample["attachments"] = {str(index): text for index, text in enumerate(sequences["attachments"])}
    if "messages" not in sample:
        # Copies: the conversation is resolved on its own, and must not share lists with the pool.
        found, unknown = expand_refs(sample.pop("message_refs", None) or [], sequences["messages"])
        sample["messages"] = found
        if unknown:
            changes["conversation: messages that the log does not contain left out"] += unknown
    return Parsed(sample, non_finite, changes)
