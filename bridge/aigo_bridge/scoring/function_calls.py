"""Scorer `function_call_coverage`: which of the required function calls were made.

The rules were observed with release 3.17. Required calls are a JSON list of names or `{name, arguments}`;
specified arguments must equal those of the call. Every call meets at most one requirement. Calls before the
first user message are ignored. Without requirements, everything is covered. `in_order` only changes
`all_required_calls_made`.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.dtypes import FunctionCall, SolverOutput, SolverTrace
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import Models
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.scorer import Score, ScorerType
from aigo_bridge.scoring.variables import render, variables
from aigo_bridge.spec.scorers import FunctionCallCoverageScorer, RequiredCall
from aigo_bridge.templates import SampleTemplate


@dataclass(frozen=True)
class ExpectedCall:
    """Function call that is required or was made."""

    name: str
    arguments: str | None = None
    """Canonical JSON text, equal for equal arguments. `None`: any arguments are accepted, or the call's
    arguments are unreadable.
    """

    @property
    def shown(self) -> str | dict[str, Any]:
        """Call in the notation of a task."""
        if self.arguments is None:
            return self.name
        return {"name": self.name, "arguments": json.loads(self.arguments)}

    def met_by(self, call: ExpectedCall) -> bool:
        """Return whether a call that was made meets this requirement."""
        return self.name == call.name and self.arguments in (None, call.arguments)


class FunctionCallCoverage:
    """Six scores of the calls in a trace: `all_required_calls_made` is a boolean, the coverage a
    proportion in [0, 1], the others are counts.
    """

    def __init__(self, spec: FunctionCallCoverageScorer):
        self._in_order = spec.mode == "in_order"
        calls = spec.function_calls
        self._required = SampleTemplate(calls) if isinstance(calls, str) else calls

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        if not isinstance(output, SolverTrace):
            raise SampleError(
                "the solver output is not a trace with function calls",
                stage="score",
                hint="let the solver use message_format open_responses",
                kind="MissingTrace",
            )
        required = self._calls(variables(sample, output))
        calls = [_made(call) for call in output.trace.function_calls]
        matched, unmatched, surplus = match(required, calls)
        complete = is_subsequence(required, calls) if self._in_order else not unmatched
        return Score(
            {
                "all_required_calls_made": complete,
                "required_calls_coverage": len(matched) / len(required) if required else 1.0,
                "num_required_calls_made": len(matched),
                "num_required_calls_not_made": len(unmatched),
                "num_required_calls_total": len(required),
                "num_unrequired_calls": len(surplus),
            },
            {
                "required_calls": [call.shown for call in required],
                "called": [call.shown for call in calls],
                "matched_calls": [call.shown for call in matched],
                "unmatched_calls": [call.shown for call in unmatched],
                "unrequired_calls": [call.shown for call in surplus],
            },
        )

    def _calls(self, values: dict[str, Any]) -> list[ExpectedCall]:
        if not isinstance(self._required, SampleTemplate):
            return [_static(call, values) for call in self._required]
        text = render(self._required, values)
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _unreadable(text, "a JSON list", hint="write lists as JSON, with `| tojson`") from error
        if not isinstance(listed, list):
            raise _unreadable(text, "a JSON list")
        return [_required(entry) for entry in listed]


def match(
    required: Sequence[ExpectedCall], calls: Sequence[ExpectedCall]
) -> tuple[list[ExpectedCall], list[ExpectedCall], list[ExpectedCall]]:
    """Return the required calls that were made, the required calls that were not, and surplus calls.

    As many requirements as possible are met, in any order: requirements with arguments choose first, because
    the others accept any call of the function.
    """
    remaining = Counter(calls)
    by_name: dict[str, deque[ExpectedCall]] = {}
    for call in calls:
        by_name.setdefault(call.name, deque()).append(call)
    met = [False] * len(required)
    for exact in (True, False):
        for index, call in enumerate(required):
            if (call.arguments is not None) is not exact:
                continue
            taken = call if exact else _next(by_name.get(call.name, deque()), remaining)
            if taken is not None and remaining[taken]:
                remaining[taken] -= 1
                met[index] = True
    surplus = []
    for call in reversed(calls):  # The later of equal calls is the surplus one.
        if remaining[call]:
            remaining[call] -= 1
            surplus.append(call)
    return (
        [call for call, is_met in zip(required, met, strict=True) if is_met],
        [call for call, is_met in zip(required, met, strict=True) if not is_met],
        surplus[::-1],
    )


def _next(calls: deque[ExpectedCall], remaining: Counter[ExpectedCall]) -> ExpectedCall | None:
    """Return the first call that is still available, and drop used calls before it."""
    while calls:
        if remaining[calls[0]]:
            return calls[0]
        calls.popleft()
    return None


def is_subsequence(required: Iterable[ExpectedCall], calls: Iterable[ExpectedCall]) -> bool:
    """Return whether the required calls were made in order; other calls between them are allowed."""
    following = iter(calls)
    return all(any(call.met_by(following_call) for following_call in following) for call in required)


def _made(call: FunctionCall) -> ExpectedCall:
    try:
        return ExpectedCall(call.name, _canonical(call.arguments))
    except (ValueError, RecursionError):
        return ExpectedCall(call.name)


def _required(entry: Any) -> ExpectedCall:
    if isinstance(entry, str):
        return ExpectedCall(entry)
    if isinstance(entry, dict) and isinstance(entry.get("name"), str) and set(entry) <= {"name", "arguments"}:
        arguments = entry.get("arguments")
        if arguments is None:
            return ExpectedCall(entry["name"])
        if isinstance(arguments, dict):
            return ExpectedCall(entry["name"], _canonical(json.dumps(arguments)))
    raise _unreadable(json.dumps(entry), "a function name or {name, arguments}")


def _static(call: str | RequiredCall, values: dict[str, Any]) -> ExpectedCall:
    """Return a call from a list in the task; its texts may be templates."""
    if isinstance(call, str):
        return ExpectedCall(_rendered(call, values))
    if call.arguments is None:
        return ExpectedCall(_rendered(call.name, values))
    return ExpectedCall(
        _rendered(call.name, values), _canonical(json.dumps(_rendered(call.arguments, values), default=str))
    )


def _rendered(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, str):
        template = SampleTemplate(value)
        return value if template.is_constant else render(template, values)
    if isinstance(value, list | tuple):
        return [_rendered(item, values) for item in value]
    if isinstance(value, dict):
        return {name: _rendered(item, values) for name, item in value.items()}
    return value


def _canonical(text: str) -> str:
    """Return JSON text with one spelling per value: sorted keys, 1.0 as 1; `true` differs from 1.

    Raises `ValueError` if the text is not JSON, `RecursionError` if it is nested too deeply.
    """
    return json.dumps(json.loads(text, parse_float=_whole_or_float), sort_keys=True)


def _whole_or_float(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _unreadable(text: str, expected: str, hint: str | None = None) -> SampleError:
    shown = text if len(text) <= 80 else text[:79] + "…"
    return SampleError(
        f"function_calls: found {shown!r}, expected {expected}",
        stage="score",
        hint=hint,
        kind="InvalidFunctionCalls",
    )


FUNCTION_CALL_COVERAGE = ScorerType(
    FunctionCallCoverageScorer, lambda scorer, _: FunctionCallCoverage(scorer)
)
