"""Comparison of an engine's outcome with the expectation of a feature's author.

`expect` contains:

- `metrics`: `<scorer>.<name>` → value, complete. Numbers are compared with tolerance; `null` means that there
  is a problem in place of a value.
- `samples`: one entry for each sample of the result, in order, with these keys:
    - `id`
    - `scores`: scorer → values; with several trials the aggregated values
    - `errors`: `<stage> <type>: <beginning of the message>`, of all trials
    - `excluded`: keys of action rules
    - `said`: `role: text` of the conversation in the first trial
    - `last`: only the last message of this conversation
    - `calls`: number of model calls over all trials
- `status`: status of the result [default: `success`].

`scores`, `errors` and `excluded` must be complete. `said`, `last` and `calls` are only checked if given.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

Json = Any


def mismatches(expect: Mapping[str, Json], outcome: Mapping[str, Json]) -> list[str]:
    """Return the differences between an outcome (from `comparing.outcome_on`) and the expectation; empty if
    there are none.
    """
    result = outcome["result"]
    found = list(_different("status", expect.get("status", "success"), result["status"]))
    table = {f"{scorer}.{name}": value for scorer, name, value, _, _ in outcome["table"]}
    found += _different("metrics", expect.get("metrics", {}), table)
    unexplained = [name for _, name, value, _, problem in outcome["table"] if value is None and not problem]
    found += [f"metric {name!r} has no value and no problem" for name in unexplained]
    samples = result["evidence"]["samples"]
    wanted = expect.get("samples", [])
    found += _different("ids", [each["id"] for each in wanted], [each["sample_id"] for each in samples])
    for each, sample in zip(wanted, samples, strict=False):
        found += _sample(each, sample)
    return found


def _sample(wanted: Mapping[str, Json], sample: Mapping[str, Json]) -> Iterator[str]:
    where = f"sample {wanted['id']!r}"
    trials = sample["trials"]
    scores = {score["scorer_key"]: score["values"] for score in sample["scores"] or trials[0]["scores"]}
    yield from _different(f"{where}: scores", wanted.get("scores", {}), scores)
    errors = [_error(error) for each in (*trials, *_own(sample, trials)) for error in each["errors"] or []]
    yield from _texts(f"{where}: errors", wanted.get("errors", []), errors)
    rules = [record["rule_key"] for record in sample.get("action_records") or []]
    yield from _different(f"{where}: excluded", wanted.get("excluded", []), rules)
    said = list(_said((trials[0]["solver"] or {}).get("output")))
    if "said" in wanted:
        yield from _different(f"{where}: said", wanted["said"], said)
    if "last" in wanted:
        yield from _different(f"{where}: last", wanted["last"], said[-1] if said else None)
    if "calls" in wanted:
        yield from _different(f"{where}: calls", wanted["calls"], sum(map(_num_calls, trials)))


def _own(sample: Json, trials: Json) -> list[Json]:
    """Return the sample if it has its own errors (from action rules), unless they are copied from its only
    trial.
    """
    copied = len(trials) == 1 and sample.get("errors") == trials[0]["errors"]
    return [] if copied else [sample]


def _error(error: Json) -> str:
    return f"{error['stage']} {error['error_type']}: {error['message']}"


def _said(output: Json) -> Iterator[str]:
    """Yield the lines of a conversation. For a group, yield the lines of all conversations."""
    if not isinstance(output, dict):
        return
    group = output.get("solver_outputs")
    for each in group.values() if isinstance(group, dict) else group or []:
        yield from _said(each)
    items = output["trace"]["items"] if "trace" in output else []
    for item in items:
        match item["type"]:
            case "message":
                texts = [part.get("text", part.get("refusal", part["type"])) for part in item["content"]]
                yield f"{item['role']}: {' | '.join(texts)}"
            case "function_call":
                yield f"calls {item['name']} {json.dumps(item['arguments'])}"
            case "function_call_output":
                yield f"gets {item['output']}"
            case kind:
                yield f"{kind}: {item['content']}"


def _num_calls(trial: Json) -> int:
    output = (trial["solver"] or {}).get("output")
    return len(list(_events(output)))


def _events(output: Json) -> Iterator[Json]:
    if not isinstance(output, dict):
        return
    group = output.get("solver_outputs")
    for each in group.values() if isinstance(group, dict) else group or []:
        yield from _events(each)
    yield from (output.get("trace") or {}).get("events") or []


def _texts(where: str, wanted: list[str], found: list[str]) -> Iterator[str]:
    begins = len(wanted) == len(found) and all(
        text.startswith(start) for start, text in zip(wanted, found, strict=True)
    )
    if not begins:
        yield f"{where}: found {found!r}, expected {wanted!r}"


def _different(where: str, wanted: Json, found: Json) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in (*wanted, *(key for key in found if key not in wanted)):
            if key not in found:
                yield f"{where}: {key!r} is missing"
            elif key not in wanted:
                yield f"{where}: found {key!r} = {found[key]!r}, which is not expected"
            else:
                yield from _different(f"{where}.{key}", wanted[key], found[key])
        return
    if isinstance(wanted, float | int) and isinstance(found, float | int):
        # True equals 1 here. The comparison of the engines also checks the type.
        if not math.isclose(wanted, found, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{where}: found {found!r}, expected {wanted!r}"
        return
    if wanted != found:
        yield f"{where}: found {found!r}, expected {wanted!r}"
