r"""A model that answers from a file of rules: offline and deterministic, for tests and CI.

The file is JSONL with one rule per line. Rules are tried from the top; the first rule that matches the
rendered messages answers.

```json
{"match": {"exact": "2 + 2 = ?"}, "reply": {"text": "4"}}
{"match": {"contains": "capital of France"}, "reply": {"text": "Paris", "delay": 0.1}}
{"match": {"regex": "(?i)weather in \\w+"}, "reply": {"tool_calls": [{"name": "weather", "arguments": {}}]}}
{"match": {"contains": "busy"}, "times": 2, "reply": {"error": "overloaded", "status": 503}}
{"default": true, "reply": {"text": "I do not know."}}
```

`match.on` selects the text that a rule looks at: `last` (text of the last message, the default), `user` (last
user message), `system` (first system message) or `all` (every message as `role: text`, joined by newlines).
The format is documented for users in `docs/reference/scripted-model.md`.

This module is independent of engines: it turns rules into a `ScriptedReply`. Each adapter hosts it as a model
of its framework.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError

VIEWS = ("last", "user", "system", "all")
MATCHERS = ("exact", "contains", "regex")
RULE_KEYS = ("match", "default", "times", "reply")
REPLY_KEYS = (
    "text", "reasoning", "tool_calls", "usage", "logprobs", "stop_reason", "refusal", "delay", "error",
    "status",
)  # fmt: skip
MAX_DELAY = 86_400
"""Maximum delay of an answer in seconds: one day."""

STOP_REASONS = ("stop", "max_tokens", "model_length", "tool_calls", "content_filter", "unknown")


@dataclass(frozen=True)
class ScriptedToolCall:
    """A function call that the scripted model makes."""

    name: str
    arguments: dict[str, Any]
    id: str | None = None
    """Call ID; `None` lets the engine create one."""


@dataclass(frozen=True)
class ScriptedReply:
    """Behavior of the scripted model when a rule matches."""

    text: str = ""
    reasoning: str | None = None
    tool_calls: tuple[ScriptedToolCall, ...] = ()
    input_tokens: int | None = None
    """Input tokens to report; `None` counts the words of the messages."""
    output_tokens: int | None = None
    """Output tokens to report; `None` counts the words of the answer."""
    logprobs: tuple[tuple[str, float], ...] = ()
    """(token, natural-log probability) pairs of the answer."""
    stop_reason: str = "stop"
    refusal: bool = False
    """Whether the provider refused to answer."""
    delay: float = 0.0
    """Seconds to wait before answering."""
    error: str | None = None
    """Error message to fail with instead of an answer."""
    status: int | None = None
    """HTTP status of the failure; 408, 409, 429 and 5xx are retried like real failures."""

    def tokens(self, messages: Sequence[tuple[str, str]]) -> tuple[int, int]:
        """Return input and output tokens: the rule's own counts, otherwise words. For function calls, the
        words of their arguments as JSON are counted.
        """
        num_words = sum(len(text.split()) for _, text in messages)
        spoken = self.text
        if self.tool_calls:
            spoken += " " + json.dumps([call.arguments for call in self.tool_calls])
        return (
            num_words if self.input_tokens is None else self.input_tokens,
            len(spoken.split()) if self.output_tokens is None else self.output_tokens,
        )


def is_transient(status: int) -> bool:
    """Return whether a failure with this HTTP status is retried."""
    return status in (408, 409, 429) or status >= 500


@dataclass(frozen=True)
class ScriptRule:
    """One compiled line of the file."""

    matches: Callable[[str], bool]
    view: str
    reply: ScriptedReply
    times: int | None
    """Number of times the rule may answer; `None`: always."""


@dataclass
class Script:
    """Rules of one file and how often each has answered (the only mutable part)."""

    rules: tuple[ScriptRule, ...]
    name: str
    used: dict[int, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reply(self, messages: Sequence[tuple[str, str]]) -> ScriptedReply:
        """Answer a conversation of (role, text) pairs; return an error reply if no rule matches."""
        views = _views(messages)
        for number, rule in enumerate(self.rules):
            if not rule.matches(views[rule.view]):
                continue
            if rule.times is not None:
                with self.lock:
                    if self.used.get(number, 0) >= rule.times:
                        continue
                    self.used[number] = self.used.get(number, 0) + 1
            return rule.reply
        shown = views["last"] if len(views["last"]) <= 200 else views["last"][:200] + "…"
        return ScriptedReply(
            error=f"no rule of {self.name} matches the messages, and no default is set; last message: "
            f"{shown!r}"
        )


def _views(messages: Sequence[tuple[str, str]]) -> dict[str, str]:
    users = [text for role, text in messages if role == "user"]
    systems = [text for role, text in messages if role == "system"]
    return {
        "last": messages[-1][1] if messages else "",
        "user": users[-1] if users else "",
        "system": systems[0] if systems else "",
        "all": "\n".join(f"{role}: {text}" for role, text in messages),
    }


def load_script(path: Path) -> Script:
    """Read a file of rules.

    Raises:
        SpecError: the file cannot be read, or rules are invalid; the error lists every invalid line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecError(
            f"cannot read the scripted model's rules: {reason}",
            file=str(path),
            code=Code.WRONG_SCRIPTED_RULES,
        ) from error
    except UnicodeDecodeError as error:
        raise SpecError(
            "the scripted model's rules are not UTF-8 text", file=str(path), code=Code.WRONG_SCRIPTED_RULES
        ) from error
    rules: list[ScriptRule] = []
    issues: list[Issue] = []
    # Split only at line feeds: JSON texts may contain other Unicode line separators.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        faults, rule = _parse_rule(line)
        issues += [
            Issue(fault, file=str(path), line=number, code=Code.WRONG_SCRIPTED_RULES) for fault in faults
        ]
        if rule is not None:
            rules.append(rule)
    if not rules and not issues:
        issues.append(
            Issue(
                "no rules found, expected one JSON object per line",
                file=str(path),
                code=Code.WRONG_SCRIPTED_RULES,
            )
        )
    if issues:
        raise SpecError(issues)
    return Script(tuple(rules), path.name)


def _parse_rule(line: str) -> tuple[list[str], ScriptRule | None]:
    twice: list[str] = []
    try:
        raw = json.loads(line, object_pairs_hook=lambda pairs: _object(pairs, twice))
        json.dumps(raw, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return [f"not JSON: {error.msg} at column {error.colno}"], None
    except UnicodeEncodeError:
        return [
            ("a text contains half of a surrogate pair (\\ud800 to \\udfff), expected complete characters")
        ], None
    except RecursionError:
        return ["nested too deeply, expected a rule"], None
    except ValueError as error:  # A number with more digits than Python converts.
        return [f"not JSON that can be read: {error}"], None
    if twice:
        return [f"key {key!r} is given twice" for key in twice], None
    if not isinstance(raw, dict):
        return [f"found {type(raw).__name__}, expected a JSON object"], None
    faults = _unknown(raw, RULE_KEYS, "rule")
    view = "last"
    matches: Callable[[str], bool] = _always
    if raw.get("default") is True and "match" not in raw:
        pass
    elif isinstance(raw.get("match"), dict) and "default" not in raw:
        view, matches, more = _parse_match(raw["match"])
        faults += more
    else:
        faults.append('a rule needs either "match": {…} or "default": true')
    times = raw.get("times")
    if times is not None and (not isinstance(times, int) or isinstance(times, bool) or times < 1):
        faults.append(f"times: found {times!r}, expected a whole number of at least 1")
    reply, more = _parse_reply(raw.get("reply"))
    faults += more
    return faults, None if faults else ScriptRule(matches, view, reply, times)


def _object(pairs: list[tuple[str, Any]], twice: list[str]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice += [key for key in values if keys.count(key) > 1]
    return values


def _always(_: str) -> bool:
    return True


def _parse_match(raw: dict[str, Any]) -> tuple[str, Callable[[str], bool], list[str]]:
    faults = _unknown(raw, (*MATCHERS, "on"), "match")
    view = raw.get("on", "last")
    if view not in VIEWS:
        faults.append(f"match.on: found {view!r}, expected one of {', '.join(VIEWS)}")
        view = "last"
    matchers = [name for name in MATCHERS if name in raw]
    if len(matchers) != 1 or not isinstance(raw[matchers[0]], str):
        faults.append(f"match: expected exactly one of {', '.join(MATCHERS)} with a string")
        return view, _always, faults
    wanted: str = raw[matchers[0]]
    if matchers[0] == "exact":
        return view, lambda text: text == wanted, faults
    if matchers[0] == "contains":
        return view, lambda text: wanted in text, faults
    try:
        pattern = re.compile(wanted, re.DOTALL)
    except re.error as error:
        return view, _always, [*faults, f"match.regex: {error}"]
    return view, lambda text: pattern.search(text) is not None, faults


def _parse_reply(raw: object) -> tuple[ScriptedReply, list[str]]:
    if isinstance(raw, str):
        return ScriptedReply(text=raw), []
    if not isinstance(raw, dict):
        shown = "nothing" if raw is None else repr(raw)
        return ScriptedReply(), [f"reply: found {shown}, expected a string or an object"]
    faults = _unknown(raw, REPLY_KEYS, "reply")

    def take(name: str, kinds: tuple[type, ...], default: Any, expected: str) -> Any:
        value = raw.get(name, default)
        if value is default:
            return default
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            faults.append(f"reply.{name}: found {value!r}, expected {expected}")
            return default
        return value

    usage = take("usage", (dict,), {}, "an object with input_tokens and output_tokens")
    faults += _unknown(usage, ("input_tokens", "output_tokens"), "reply.usage")
    stop_reason = take("stop_reason", (str,), "stop", "a string")
    if stop_reason not in STOP_REASONS:
        faults.append(f"reply.stop_reason: found {stop_reason!r}, expected one of {', '.join(STOP_REASONS)}")
    delay = take("delay", (int, float), 0.0, "seconds")
    if not 0 <= delay <= MAX_DELAY:
        faults.append(f"reply.delay: found {delay!r}, expected seconds from 0 to {MAX_DELAY}")
        delay = 0.0
    calls = tuple(_parse_tool_calls(take("tool_calls", (list,), [], "a list"), faults))
    reply = ScriptedReply(
        text=take("text", (str,), "", "a string"),
        reasoning=take("reasoning", (str,), None, "a string"),
        tool_calls=calls,
        input_tokens=_count(usage, "input_tokens", faults),
        output_tokens=_count(usage, "output_tokens", faults),
        logprobs=tuple(_parse_logprobs(take("logprobs", (list,), [], "a list"), faults)),
        stop_reason="tool_calls" if calls and "stop_reason" not in raw else stop_reason,
        refusal=take("refusal", (bool,), False, "true or false"),
        delay=float(delay),
        error=take("error", (str,), None, "a string"),
        status=take("status", (int,), None, "an HTTP status"),
    )
    if reply.status is not None and reply.error is None:
        faults.append("reply.status: only allowed together with reply.error")
    elif reply.status is not None and not 400 <= reply.status <= 599:
        faults.append(
            f"reply.status: found {reply.status}, expected an HTTP status of a failure (400 to 599)"
        )
    return reply, faults


def _count(usage: dict[str, Any], name: str, faults: list[str]) -> int | None:
    value = usage.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        faults.append(f"reply.usage.{name}: found {value!r}, expected a whole number of at least 0")
        return None
    return value


def _parse_tool_calls(raw: list[Any], faults: list[str]) -> list[ScriptedToolCall]:
    calls: list[ScriptedToolCall] = []
    for index, call in enumerate(raw):
        place = f"reply.tool_calls[{index}]"
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            faults.append(f"{place}: expected an object with a name")
            continue
        faults += _unknown(call, ("name", "arguments", "id"), place)
        arguments, call_id = call.get("arguments", {}), call.get("id")
        if not isinstance(arguments, dict):
            faults.append(f"{place}.arguments: found {arguments!r}, expected an object")
        elif call_id is not None and not isinstance(call_id, str):
            faults.append(f"{place}.id: found {call_id!r}, expected a string")
        else:
            calls.append(ScriptedToolCall(call["name"], arguments, call_id))
    return calls


def _parse_logprobs(raw: list[Any], faults: list[str]) -> list[tuple[str, float]]:
    pairs: list[tuple[str, float]] = []
    for index, pair in enumerate(raw):
        match pair:
            case {"token": str(token), "logprob": int() | float() as value, **rest} if (
                not rest and not isinstance(value, bool) and -math.inf < value <= 0
            ):
                pairs.append((token, float(value)))
            case _:
                faults.append(
                    f"reply.logprobs[{index}]: expected an object with token and logprob (at most 0)"
                )
    return pairs


def _unknown(raw: dict[str, Any], keys: tuple[str, ...], where: str) -> list[str]:
    faults = []
    for key in raw:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(keys)}"
            faults.append(f"{where}: unknown key {key!r} ({hint})")
    return faults
