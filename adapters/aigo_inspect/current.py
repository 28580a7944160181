"""Samples exactly as current releases of Inspect write them, parsed straight into typed records.

Nearly all logs are of this shape, and records are made in half the time of dictionaries and without looking at what is never used.
What the records do not allow is not an error: such a sample (an older shape, a failed call, a field that this version has
never heard of, a secret) is read the general way, by `parsing` and `events`, which understands all that a log can hold.

What gives a record is UTF-8 throughout: what is left as text here, because it is the same in thousands of events, is parsed by
`current_events` and `current_calls`, all of it, and patches, which nobody wants, are at least looked through.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from aigo_bridge.importing.redaction import Redaction

Whole = Annotated[int, Meta(ge=-(2**62), le=2**62)]
"""A number that fits into any column or field; others are kept beside it."""
Number = Whole | float
Id = Annotated[str, Meta(min_length=1, max_length=44)]
"""An id that Inspect made; shorter than any reference to a text that was taken out."""
Name = Annotated[str, Meta(min_length=1)]
NULL = Raw(b"null")


class _Strict(Struct, forbid_unknown_fields=True, gc=False):
    """Fields that must be null (or absent) are of type `None`: only the general way can do them justice."""


class UnusualError(Exception):
    """A sample that has to be read the general way."""


class ToolCall(_Strict, kw_only=True):
    """A call of a tool that a message asks for."""

    id: str
    function: str
    arguments: Any
    parse_error: str | None = None
    view: Any = None
    type: str | None = None


class Message(_Strict, kw_only=True):
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


class _Event(_Strict, tag_field="event", kw_only=True):
    uuid: Id
    span_id: Id | None = None
    timestamp: str
    working_start: Number
    metadata: dict[str, Any] | None = None
    pending: None = None


class Choice(_Strict, kw_only=True):
    """One answer of a model."""

    message: Message
    stop_reason: str
    stop_details: None = None
    logprobs: None = None
    prompt_logprobs: None = None


class Output(_Strict, kw_only=True):
    """What a model call came to."""

    model: str
    choices: list[Choice]
    completion: str = ""
    usage: dict[str, Any] | None = None
    input_context_tokens: int | None = None
    fallback: dict[str, Any] | None = None
    time: Number | None = None
    metadata: dict[str, Any] | None = None
    error: str | None = None
    response_id: str | None = None


class Model(_Event, tag="model", kw_only=True):
    """A call of a model, with its input in the pool."""

    model: Name
    role: str | None = None
    requested_model: str | None = None
    input: list[Any]
    input_refs: list[list[int]]
    tools: Raw
    tool_choice: str | dict[str, Any]
    config: Raw
    output: Output
    retries: int | None = None
    request_ids: list[Any] | None = None
    error: str | None = None
    traceback: str | None = None
    traceback_ansi: None = None
    cache: str | None = None
    call: dict[str, Any] | None = None
    completed: str | None = None
    working_time: Number | None = None


class Tool(_Event, tag="tool", kw_only=True):
    """A call of a tool."""

    type: str | None = None
    id: str
    function: str
    arguments: dict[str, Any]
    result: Any
    view: dict[str, Any] | None = None
    truncated: list[int] | None = None
    error: dict[str, Any] | None = None
    events: list[Any] = []
    completed: str | None = None
    working_time: Number | None = None
    agent: str | None = None
    agent_span_id: str | None = None
    failed: bool | None = None
    message_id: str | None = None


class SpanBegin(_Event, tag="span_begin", kw_only=True):
    """A span begins."""

    id: Id
    parent_id: str | None = None
    type: str | None = None
    name: str


class SpanEnd(_Event, tag="span_end", kw_only=True):
    """A span ends."""

    id: str


class StatePatch(_Event, tag="state", kw_only=True):
    """A change of the state."""

    changes: Raw


class StorePatch(_Event, tag="store", kw_only=True):
    """A change of the store."""

    changes: Raw


class Custom(_Event, kw_only=True):
    """An event that AI GO has no type for; the fields of its own are its content."""


class Sandbox(Custom, tag="sandbox", kw_only=True):
    """A command in the sandbox, or a file written or read."""

    action: str
    cmd: str | None = None
    options: Raw = NULL
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

    message: dict[str, Any]


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
    limit: Number | None = None


class ScoreEdit(Custom, tag="score_edit", kw_only=True):
    """A score was changed later."""

    score_name: str
    edit: dict[str, Any]


class Compaction(Custom, tag="compaction", kw_only=True):
    """The context was made shorter."""

    type: str
    role: str | None = None
    tokens_before: Whole | None = None
    tokens_after: Whole | None = None
    source: str | None = None


class Pools(_Strict, kw_only=True):
    """The distinct messages of all model calls."""

    messages: list[Message] = []
    calls: list[Any] = []


NativeEvent = (
    Model
    | Tool
    | SpanBegin
    | SpanEnd
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


class CurrentSample(_Strict, kw_only=True):
    """One sample in one epoch that ended without an error, fields in Inspect's order."""

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
    events: list[NativeEvent]
    timelines: list[Any] | None = None
    model_usage: dict[str, Any] | None = None
    role_usage: dict[str, Any] | None = None
    model_fallbacks: list[Any] | None = None
    started_at: str | None = None
    completed_at: str | None = None
    total_time: Number | None = None
    working_time: Number | None = None
    uuid: str | None = None
    invalidation: None = None
    error: None = None
    error_retries: list[None] | None = None
    attachments: dict[str, str] = {}
    events_data: Pools | None = None
    limit: dict[str, Any] | None = None
    turn_count: int | None = None
    token_limit: int | None = None
    token_limit_type: str | None = None
    token_limit_usage: int | None = None
    message_limit: int | None = None
    time_limit: int | None = None


_DECODER = msgspec.json.Decoder(CurrentSample)


def parse_current(data: bytes, redaction: Redaction) -> CurrentSample | None:
    """The sample in `data`, or `None` when it has to be read the general way."""
    try:
        sample = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if sample.error_retries or redaction.suspects(data) else sample
