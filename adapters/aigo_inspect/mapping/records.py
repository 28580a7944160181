"""Samples of Inspect's logs as records: what the mapping reads.

Nearly all samples are exactly as current releases of Inspect write them. They are parsed straight into
records, in half the time of dictionaries and without looking at what is never used: that is `parse_sample`.
What the records do not allow is not an error: such a sample (an older shape, a field that this version has
never heard of, a secret) is parsed into dictionaries, from which `lenient` makes the same records.

A field is of a certain type where the mapping relies on it, and `Any` where it is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, field

from aigo_bridge.importing.redaction import Redaction
from aigo_inspect.logs.pools import has_references
from aigo_inspect.logs.shapes import MALFORMED

Name = Annotated[str, Meta(min_length=1)]
NULL, EMPTY_LIST, EMPTY_OBJECT = Raw(b"null"), Raw(b"[]"), Raw(b"{}")
Value = TypeVar("Value")
if TYPE_CHECKING:
    Repeating = Any
else:
    Repeating = Raw
"""JSON text that is nearly always the same: `Constants.put_in` puts its value in its place."""


class _Record(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Whatever else an object of the log has makes the sample one for `lenient`."""


class ToolCall(_Record, kw_only=True):
    """A call of a tool that a message asks for."""

    id: str
    function: str
    arguments: Any
    parse_error: str | None = None
    view: Any = None
    type: str | None = None


class Message(_Record, kw_only=True):
    """A message of a conversation, of any role."""

    id: Name
    content: str | list[Any]
    source: str | None = None
    metadata: dict[str, Any] | None = None
    role: Literal["system", "user", "assistant", "tool"]
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | list[str] | None = None
    function: str | None = None
    error: dict[str, Any] | None = None
    model: str | None = None


class Odd(Struct):
    """What an event has besides the fields of its record."""

    native: dict[str, Any]
    """The event as it stands in the log."""
    unreadable: dict[str, Any] | None = None
    """Fields that all events have, where they are of another kind."""
    leftover: dict[str, Any] | None = None
    """Fields that Inspect does not have."""


class _Event(_Record, tag_field="event", kw_only=True):
    uuid: str | None = None
    span_id: str | None = None
    timestamp: str | None = None
    working_start: Any = UNSET
    metadata: dict[str, Any] | None = None
    pending: None = None
    odd: Odd | None = field(default=None, name="(odd)")
    """What else there is of it, where `lenient` made the record."""


class Choice(_Record, kw_only=True):
    """One answer of a model."""

    message: Message
    """Anything, in a record that `lenient` made."""
    stop_reason: Any = None
    stop_details: Any = None
    logprobs: Any = None
    prompt_logprobs: Any = None
    leftover: dict[str, Any] | None = field(default=None, name="(leftover)")


class Output(_Record, kw_only=True):
    """The result of a model call."""

    model: Any = None
    choices: Annotated[list[Choice], Meta(max_length=1)] = []
    completion: Any = None
    usage: Any = None
    input_context_tokens: Any = None
    fallback: Any = None
    time: Any = None
    metadata: Any = None
    error: Any = None
    response_id: Any = None
    more_choices: list[Any] = field(default=[], name="(choices)")
    """All answers but the first, as they stand in the log."""
    leftover: dict[str, Any] | None = field(default=None, name="(leftover)")


class Model(_Event, tag="model", kw_only=True):
    """A call of a model, nearly always with its input in the pool."""

    model: Name
    role: Any = None
    requested_model: Any = None
    input: list[Message] = []
    input_refs: Any = None
    tools: Repeating = EMPTY_LIST
    tool_choice: Any = None
    config: Repeating = EMPTY_OBJECT
    output: Output
    retries: Any = None
    request_ids: Any = None
    error: Any = None
    traceback: Any = None
    traceback_ansi: Any = None
    cache: Any = None
    call: dict[str, Any] | None = None
    completed: Any = None
    working_time: Any = None


class Tool(_Event, tag="tool", kw_only=True):
    """A call of a tool."""

    type: Any = None
    id: str = ""
    function: str = ""
    arguments: Any = None
    result: Any = None
    view: Any = None
    truncated: Any = None
    error: dict[str, Any] | None = None
    events: Annotated[list[Any], Meta(max_length=0)] = []
    """The transcript of what the tool did, in old logs: events, as `lenient` makes them."""
    completed: Any = None
    working_time: Any = None
    agent: Any = None
    agent_span_id: Any = None
    failed: Any = None
    message_id: Any = None


class SpanBegin(_Event, tag="span_begin", kw_only=True):
    """A span begins."""

    id: Any = None
    parent_id: str | None = None
    type: Any = None
    name: Any = None


class SpanEnd(_Event, tag="span_end", kw_only=True):
    """A span ends."""

    id: Any = None


class Step(_Event, tag="step", kw_only=True):
    """A span of a log before 0.3.93 begins or ends."""

    action: Any = None
    type: Any = None
    name: Any = None


class ErrorEvent(_Event, tag="error", kw_only=True):
    """The sample failed."""

    error: Any = None


class StatePatch(_Event, tag="state", kw_only=True):
    """A change of the state."""

    changes: Raw


class StorePatch(_Event, tag="store", kw_only=True):
    """A change of the store."""

    changes: Raw


_PATCHES = frozenset({StatePatch, StorePatch})


class Custom(_Event, kw_only=True):
    """An event that AI GO has no type for; the fields of its own are its content."""


class Other(_Event, kw_only=True):
    """An event of any kind, as `lenient` makes it; its source is its content."""

    nested: list[Any] = []
    """The transcript of a subtask, in old logs: events, as `lenient` makes them."""


class Sandbox(Custom, tag="sandbox", kw_only=True):
    """A command in the sandbox, or a file written or read."""

    action: str
    cmd: str | None = None
    options: Repeating = NULL
    file: str | None = None
    input: str | None = None
    result: int | None = None
    output: str | None = None
    completed: str | None = None


class Score(Custom, tag="score", kw_only=True):
    """The sample was scored."""

    score: dict[str, Any]
    target: Any = None
    intermediate: bool | None = None
    scorer: str | None = None
    scorer_args: dict[str, Any] | None = None
    model_usage: dict[str, Any] | None = None
    role_usage: dict[str, Any] | None = None


class SampleInit(Custom, tag="sample_init", kw_only=True):
    """The sample begins."""

    sample: dict[str, Any]
    state: Any = None


class Info(Custom, tag="info", kw_only=True):
    """Something that a solver wanted to be in the log."""

    source: str | None = None
    data: Any = None


class Logger(Custom, tag="logger", kw_only=True):
    """A message of a library's logger."""

    message: Any


class Approval(Custom, tag="approval", kw_only=True):
    """Whether a tool may be called."""

    message: str
    call: dict[str, Any]
    view: dict[str, Any] | None = None
    approver: str
    decision: str
    modified: dict[str, Any] | None = None
    explanation: str | None = None


class SampleLimit(Custom, tag="sample_limit", kw_only=True):
    """A limit ended the sample."""

    type: str
    message: str
    limit: Any = None


class ScoreEdit(Custom, tag="score_edit", kw_only=True):
    """A score was changed later."""

    score_name: str
    edit: dict[str, Any]


class Compaction(Custom, tag="compaction", kw_only=True):
    """The context was made shorter."""

    type: Any = None
    role: Any = None
    tokens_before: Any = None
    tokens_after: Any = None
    source: Any = None


class _Pools(_Record, kw_only=True):
    """The distinct messages of all model calls."""

    messages: list[Message] = []
    calls: list[Any] = []


ParsedEvent = (
    Model
    | Tool
    | SpanBegin
    | SpanEnd
    | ErrorEvent
    | StatePatch
    | StorePatch
    | Sandbox
    | Score
    | SampleInit
    | Info
    | Logger
    | Approval
    | SampleLimit
    | ScoreEdit
    | Compaction
)
NativeEvent = ParsedEvent | Step | Other


class _Sample(_Record, kw_only=True):
    """One sample in one epoch, fields in Inspect's order."""

    id: int | str
    epoch: int
    input: str | list[Any]
    choices: list[Any] | None = None
    target: Any = None
    description: str | None = None
    sandbox: Any = None
    files: list[Any] | None = None
    setup: str | None = None
    messages: list[Message]
    output: dict[str, Any] | None = None
    scores: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    store: dict[str, Any] | None = None
    events: list[ParsedEvent]
    timelines: list[Any] | None = None
    model_usage: dict[str, Any] | None = None
    role_usage: dict[str, Any] | None = None
    model_fallbacks: list[Any] | None = None
    started_at: str | None = None
    completed_at: str | None = None
    total_time: Any = None
    working_time: Any = None
    uuid: str | None = None
    invalidation: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    error_retries: list[Any] | None = None
    attachments: dict[str, str] = {}
    events_data: _Pools | None = None
    limit: dict[str, Any] | None = None
    turn_count: Any = None
    token_limit: Any = None
    token_limit_type: Any = None
    token_limit_usage: Any = None
    message_limit: Any = None
    time_limit: Any = None


class Sample(Struct):
    """A sample to be mapped, which consumes it; references to texts and to messages of the pool are not
    resolved yet.
    """

    fields: dict[str, Any]
    """Whatever else it has."""
    events: list[Any]
    """Any of `NativeEvent`."""
    messages: list[Any]
    """Records of messages; whatever is no `Message` as it stands in the log."""
    pool: list[Any] = []
    """The distinct messages of all model calls, alike."""
    calls: list[Any] = []
    """The distinct messages of all raw requests."""
    attachments: dict[str, Any] = {}


# Parsing


class Repeated(Generic[Value]):
    """Values made of JSON texts that stand in thousands of events of a log and are nearly always the same:
    made once, and shared.
    """

    _MOST = 256

    def __init__(self, make: Callable[[Any], Value]):
        self._make = make
        self._values: dict[bytes, Value] = {}
        self._last: tuple[Raw, Value] | None = None

    def of(self, raw: Raw) -> Value:
        """The value for this JSON, which must not be changed; raises what `make` raises, or a `ValueError`
        for what is no JSON.
        """
        if self._last is not None and raw == self._last[0]:
            return self._last[1]
        text = bytes(raw)
        value = self._values.get(text)
        if value is None:
            value = self._make(msgspec.json.decode(text))
            if len(self._values) >= self._MOST:
                self._values.clear()
            self._values[text] = value
        # A copy, that does not hold the document the value stands in.
        self._last = Raw(text), value
        return value


class Tools(NamedTuple):
    """The tools that a model was offered."""

    definitions: list[Any]
    names: list[str]


def tools_in(definitions: Any) -> Tools:
    """Definitions of tools with their names; a `TypeError` where they are none."""
    if not isinstance(definitions, list) or not all(isinstance(tool, dict) for tool in definitions):
        raise TypeError("expected a list of tools")
    return Tools(definitions, [str(tool["name"]) for tool in definitions if tool.get("name")])


def settings_in(value: Any) -> dict[str, Any]:
    """The settings of a model that are given."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {type(value).__name__}")
    return {key: item for key, item in value.items() if item is not None}


class Constants:
    """Values that are the same in the events of a whole log."""

    def __init__(self) -> None:
        self.tools = Repeated(lambda value: None if has_references(value) else tools_in(value))
        """Tools that a model was offered; `None` where they have references to texts, which differ by sample.
        """
        self.config = Repeated(settings_in)
        """The settings of a model."""
        self.options = Repeated(lambda value: None if has_references(value) else [value])
        """Options of a command in the sandbox, in a list; `None` as for tools."""

    def put_in(self, events: list[Any]) -> None:
        """Put values in the place of JSON texts that repeat; those that differ by sample stay.

        Raises any of `shapes.MALFORMED` where a value, or a text that is not looked at, is no JSON or of
        another shape.
        """
        for event in events:
            kind = type(event)
            if kind is Model:
                tools = self.tools.of(event.tools)
                event.tools = event.tools if tools is None else tools
                event.config = self.config.of(event.config)
            elif kind is Sandbox:
                if event.options == NULL:
                    event.options = None
                elif (options := self.options.of(event.options)) is not None:
                    event.options = options
            elif kind in _PATCHES:
                # Nobody wants them, but secrets are only looked for in UTF-8.
                bytes(event.changes).decode()


_DECODER = msgspec.json.Decoder(_Sample)
_PLAIN = tuple(
    name
    for name in _Sample.__struct_fields__
    if name not in ("messages", "events", "attachments", "events_data")
)


def parse_sample(data: bytes, redaction: Redaction, constants: Constants) -> Sample | None:
    """The sample in `data`; `None` when it is one for `lenient`, or may hold a secret."""
    try:
        sample = _DECODER.decode(data)
        constants.put_in(sample.events)
    except MALFORMED:
        return None
    if redaction.suspects(data):
        return None
    pools = sample.events_data or _Pools()
    return Sample(
        {name: getattr(sample, name) for name in _PLAIN},
        sample.events,
        sample.messages,
        pools.messages,
        pools.calls,
        sample.attachments,
    )
