"""Records for the samples in Inspect's logs, the input of the mapping.

Almost all samples have exactly the form of current Inspect releases. `parse_sample` parses them directly to
records, which takes half the time of dictionaries and skips unused data. Other samples (an old layout, an
unknown field, a secret) are parsed to dictionaries, which `lenient` converts to the same records.

A field has a specific type if the mapping relies on it, and `Any` if it is copied unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, field

from aigo_bridge.redaction.redactor import Redactor
from aigo_inspect.logs.pools import has_references
from aigo_inspect.logs.shapes import MALFORMED

Name = Annotated[str, Meta(min_length=1)]
NULL, EMPTY_LIST, EMPTY_OBJECT = Raw(b"null"), Raw(b"[]"), Raw(b"{}")
Value = TypeVar("Value")
if TYPE_CHECKING:
    Repeating = Any
else:
    Repeating = Raw
"""JSON text that rarely differs between events. `Constants.put_in` replaces it by its value."""


class _Record(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Strict record. A sample with unknown fields is handled by `lenient`."""


class ToolCall(_Record, kw_only=True):
    """A tool call in a message."""

    id: str
    function: str
    arguments: Any
    parse_error: str | None = None
    view: Any = None
    type: str | None = None


class MessageRecord(_Record, kw_only=True):
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
    """Data of an event that is not in its record."""

    native: dict[str, Any]
    """The event as in the log."""
    unreadable: dict[str, Any] | None = None
    """Common event fields with an unexpected type."""
    leftover: dict[str, Any] | None = None
    """Fields that Inspect does not define."""


class _Event(_Record, tag_field="event", kw_only=True):
    uuid: str | None = None
    span_id: str | None = None
    timestamp: str | None = None
    working_start: Any = UNSET
    metadata: dict[str, Any] | None = None
    pending: None = None
    odd: Odd | None = field(default=None, name="(odd)")
    """Additional data of a record that `lenient` created."""


class ChoiceRecord(_Record, kw_only=True):
    """One answer of a model."""

    message: MessageRecord
    """Any value in a record that `lenient` created."""
    stop_reason: Any = None
    stop_details: Any = None
    logprobs: Any = None
    prompt_logprobs: Any = None
    leftover: dict[str, Any] | None = field(default=None, name="(leftover)")


class Output(_Record, kw_only=True):
    """Result of a model call."""

    model: Any = None
    choices: Annotated[list[ChoiceRecord], Meta(max_length=1)] = []
    completion: Any = None
    usage: Any = None
    input_context_tokens: Any = None
    fallback: Any = None
    time: Any = None
    metadata: Any = None
    error: Any = None
    response_id: Any = None
    more_choices: list[Any] = field(default=[], name="(choices)")
    """All answers except the first, as in the log."""
    leftover: dict[str, Any] | None = field(default=None, name="(leftover)")


class ModelRecord(_Event, tag="model", kw_only=True):
    """A model call. Its input is usually in the pool."""

    model: Name
    role: Any = None
    requested_model: Any = None
    input: list[MessageRecord] = []
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
    """A tool call."""

    type: Any = None
    id: str = ""
    function: str = ""
    arguments: Any = None
    result: Any = None
    view: Any = None
    truncated: Any = None
    error: dict[str, Any] | None = None
    events: Annotated[list[Any], Meta(max_length=0)] = []
    """Nested transcript of the tool in old logs: events created by `lenient`."""
    completed: Any = None
    working_time: Any = None
    agent: Any = None
    agent_span_id: Any = None
    failed: Any = None
    message_id: Any = None


class SpanBegin(_Event, tag="span_begin", kw_only=True):
    """Start of a span."""

    id: Any = None
    parent_id: str | None = None
    type: Any = None
    name: Any = None


class SpanEnd(_Event, tag="span_end", kw_only=True):
    """End of a span."""

    id: Any = None


class StepRecord(_Event, tag="step", kw_only=True):
    """Start or end of a span in logs before 0.3.93."""

    action: Any = None
    type: Any = None
    name: Any = None


class ErrorRecord(_Event, tag="error", kw_only=True):
    """Error of the sample."""

    error: Any = None


class StatePatch(_Event, tag="state", kw_only=True):
    """Change of the state."""

    changes: Raw


class StorePatch(_Event, tag="store", kw_only=True):
    """Change of the store."""

    changes: Raw


_PATCHES = frozenset({StatePatch, StorePatch})


class Custom(_Event, kw_only=True):
    """Event without an AI GO type. Its own fields are the content."""


class Other(_Event, kw_only=True):
    """Event of any type, created by `lenient`. The original event is the content."""

    nested: list[Any] = []
    """Nested transcript of a subtask in old logs: events created by `lenient`."""


class Sandbox(Custom, tag="sandbox", kw_only=True):
    """Command in the sandbox, or a file that was written or read."""

    action: str
    cmd: str | None = None
    options: Repeating = NULL
    file: str | None = None
    input: str | None = None
    result: int | None = None
    output: str | None = None
    completed: str | None = None


class ScoreRecord(Custom, tag="score", kw_only=True):
    """Score of the sample."""

    score: dict[str, Any]
    target: Any = None
    intermediate: bool | None = None
    scorer: str | None = None
    scorer_args: dict[str, Any] | None = None
    model_usage: dict[str, Any] | None = None
    role_usage: dict[str, Any] | None = None


class SampleInit(Custom, tag="sample_init", kw_only=True):
    """Start of the sample."""

    sample: dict[str, Any]
    state: Any = None


class Info(Custom, tag="info", kw_only=True):
    """Information that a solver added to the log."""

    source: str | None = None
    data: Any = None


class Logger(Custom, tag="logger", kw_only=True):
    """Message of a library's logger."""

    message: Any


class Approval(Custom, tag="approval", kw_only=True):
    """Decision about a tool call."""

    message: str
    call: dict[str, Any]
    view: dict[str, Any] | None = None
    approver: str
    decision: str
    modified: dict[str, Any] | None = None
    explanation: str | None = None


class SampleLimit(Custom, tag="sample_limit", kw_only=True):
    """Limit that ended the sample."""

    type: str
    message: str
    limit: Any = None


class ScoreEdit(Custom, tag="score_edit", kw_only=True):
    """Later change of a score."""

    score_name: str
    edit: dict[str, Any]


class Compaction(Custom, tag="compaction", kw_only=True):
    """Compaction of the context."""

    type: Any = None
    role: Any = None
    tokens_before: Any = None
    tokens_after: Any = None
    source: Any = None


class _Pools(_Record, kw_only=True):
    """Distinct messages of all model calls."""

    messages: list[MessageRecord] = []
    calls: list[Any] = []


ParsedEvent = (
    ModelRecord
    | Tool
    | SpanBegin
    | SpanEnd
    | ErrorRecord
    | StatePatch
    | StorePatch
    | Sandbox
    | ScoreRecord
    | SampleInit
    | Info
    | Logger
    | Approval
    | SampleLimit
    | ScoreEdit
    | Compaction
)
NativeEvent = ParsedEvent | StepRecord | Other


class _Sample(_Record, kw_only=True):
    """One sample in one epoch, with fields in Inspect's order."""

    id: int | str
    epoch: int
    input: str | list[Any]
    choices: list[Any] | None = None
    target: Any = None
    description: str | None = None
    sandbox: Any = None
    files: list[Any] | None = None
    setup: str | None = None
    messages: list[MessageRecord]
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


class SampleRecord(Struct):
    """Input of the mapping, which consumes it. References to attachments and pool messages are not resolved
    yet.
    """

    fields: dict[str, Any]
    """All other fields of the sample."""
    events: list[Any]
    """Events, each of a type in `NativeEvent`."""
    messages: list[Any]
    """Message records. A message with an unexpected form is unchanged."""
    pool: list[Any] = []
    """Distinct messages of all model calls, in the same form as `messages`."""
    calls: list[Any] = []
    """Distinct messages of all raw requests."""
    attachments: dict[str, Any] = {}


# Parsing


class ValueCache(Generic[Value]):
    """Cache of values for JSON texts that are repeated in thousands of events of a log. Each value is created
    once and shared.
    """

    def __init__(self, make: Callable[[Any], Value]):
        self._value = lru_cache(256)(lambda text: make(msgspec.json.decode(text)))
        self._last: tuple[Raw, Value] | None = None

    def of(self, raw: Raw) -> Value:
        """Return the value of a JSON text, which must not be changed. Raise the errors of `make`, or
        `ValueError` if it is not JSON.
        """
        if self._last is not None and raw == self._last[0]:
            return self._last[1]
        text = bytes(raw)
        value = self._value(text)
        # A copy, so that the document of the text can be freed.
        self._last = Raw(text), value
        return value


class Tools(NamedTuple):
    """Tools that were offered to a model."""

    definitions: list[Any]
    names: list[str]


def tools_in(definitions: Any) -> Tools:
    """Return tool definitions with their names. Raise `TypeError` if they are not valid."""
    if not isinstance(definitions, list) or not all(isinstance(tool, dict) for tool in definitions):
        raise TypeError("expected a list of tools")
    return Tools(definitions, [str(tool["name"]) for tool in definitions if tool.get("name")])


def settings_in(value: Any) -> dict[str, Any]:
    """Return the model settings that are set."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {type(value).__name__}")
    return {key: item for key, item in value.items() if item is not None}


class Constants:
    """Values that are the same in the events of a whole log."""

    def __init__(self) -> None:
        self.tools = ValueCache(lambda value: None if has_references(value) else tools_in(value))
        """Tools that were offered to a model; `None` if they contain references, which differ by sample."""
        self.config = ValueCache(settings_in)
        """Settings of a model."""
        self.options = ValueCache(lambda value: None if has_references(value) else [value])
        """Options of a sandbox command, in a list; `None` if they contain references."""

    def put_in(self, events: list[Any]) -> None:
        """Replace repeated JSON texts with their values, unless they differ by sample.

        Raise any of `shapes.MALFORMED` if a value or an unread text is not JSON or has an unexpected form.
        """
        for event in events:
            kind = type(event)
            if kind is ModelRecord:
                tools = self.tools.of(event.tools)
                event.tools = event.tools if tools is None else tools
                event.config = self.config.of(event.config)
            elif kind is Sandbox:
                if event.options == NULL:
                    event.options = None
                elif (options := self.options.of(event.options)) is not None:
                    event.options = options
            elif kind in _PATCHES:
                # Patches are not used, but the search for secrets requires UTF-8.
                bytes(event.changes).decode()


_DECODER = msgspec.json.Decoder(_Sample)
_APART = ("messages", "events", "attachments", "events_data")
_FIELDS = [name for name in _Sample.__struct_fields__ if name not in _APART]


def parse_sample(data: bytes, redaction: Redactor, constants: Constants) -> SampleRecord | None:
    """Return the sample in `data`; `None` if it needs `lenient` or may contain a secret."""
    try:
        sample = _DECODER.decode(data)
        constants.put_in(sample.events)
    except MALFORMED:
        return None
    if redaction.suspects(data):
        return None
    pools = sample.events_data or _Pools()
    fields = {name: value for name in _FIELDS if (value := getattr(sample, name)) is not None}
    return SampleRecord(
        fields,
        sample.events,
        sample.messages,
        pools.messages,
        pools.calls,
        sample.attachments,
    )
