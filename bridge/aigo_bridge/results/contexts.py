"""Contexts of model calls that were shortened when a result was written, made whole again.

A model call's `input_context` repeats the conversation so far, so a file with full contexts grows with the square of
the turns. With `--context delta` an import writes only what a context adds to that of an earlier call, and says so in
the call's metadata:

```json
{"type": "model_call_event", "id": "b", "input_context": [<new items>],
 "metadata": {"inspect": {"context": {"of": "a", "first": 12}}}}
```

The whole context is the first 12 items of call `a`'s context, followed by the items that are written.
"""

from __future__ import annotations

from typing import Any

from aigo_bridge.errors import EvidenceError

MOST_ITEMS = 50_000_000
"""Items of all contexts of one sample together; a small file can claim any number of them."""


def expand_contexts(sample: dict[str, Any]) -> dict[str, Any]:
    """Give the model calls of a written sample their whole contexts, in place; samples in full stay as they are.

    Args:
        sample: a `SampleEvidence` as plain data, checked or not. Equal items come back as the same dictionary.

    Returns:
        The sample.

    Raises:
        EvidenceError: the contexts are longer than any that an import writes.
    """
    trials = sample.get("trials")
    for trial in (sample, *(trials if isinstance(trials, list) else ())):
        found: Any = trial
        for key in ("solver", "output", "trace", "events"):
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, list):
            _expand(found)
    return sample


def _expand(events: list[Any]) -> None:
    contexts: dict[str, list[Any]] = {}
    room = MOST_ITEMS
    for event in events:
        if not isinstance(event, dict) or event.get("type") != "model_call_event":
            continue
        context, name = event.get("input_context"), event.get("id")
        if not isinstance(context, list):
            continue
        metadata = event.get("metadata")
        inspect = metadata.get("inspect") if isinstance(metadata, dict) else None
        if not isinstance(inspect, dict):
            inspect = {}
        note = inspect.get("context")
        if isinstance(note, dict) and isinstance(note.get("of"), str) and isinstance(note.get("first"), int):
            earlier = contexts.get(note["of"])
            if earlier is not None and 0 <= note["first"] <= len(earlier):
                room -= note["first"]
                if room < 0:
                    raise EvidenceError(f"the contexts of a sample have more than {MOST_ITEMS:,} items")
                context = event["input_context"] = earlier[: note["first"]] + context
                del inspect["context"]
        if isinstance(name, str):
            contexts[name] = context
