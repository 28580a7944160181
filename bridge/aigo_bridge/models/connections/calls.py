"""One model call: its input, how adapters translate it, and how it fails.

An author's adapter consists of two Jinja templates, which run in the sandbox of `aigo_bridge.templates`. The
platform's own adapters are named by key (`latticeflow$…`); `shipped` implements them in Python.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, TemplateError
from aigo_bridge.models.connections.streaming import condensed
from aigo_bridge.spec.base import MLTask
from aigo_bridge.templates import CompiledAdapter

FailureKind = Literal["rate_limit", "transient", "refused", "invalid"]
"""Kind of a failed call. `rate_limit` and `transient`: try again. `refused`: the endpoint refused the
request. `invalid`: the reply contains no answer.
"""


@dataclass(frozen=True)
class Exchange:
    """One request and its response, with secrets removed."""

    request: str
    """Request body."""
    response: str | None = None
    """Response body; `None` without a response."""
    status: int | None = None
    """HTTP status; `None` without a response or without HTTP."""
    request_id: str | None = None
    """Request ID from the endpoint; `None` if it sent none."""
    stop_reason: str | None = None
    """Stop reason in the endpoint's words; `None` if unknown."""


class CallError(BridgeError, RuntimeError):
    """Model call without a usable answer."""

    usual_code = Code.FAILED_MODEL

    def __init__(
        self,
        message: str,
        kind: FailureKind,
        *,
        hint: str | None = None,
        retry_after: float | None = None,
        exchange: Exchange | None = None,
    ):
        super().__init__(message)
        self.message = message
        self.kind: FailureKind = kind
        self.hint = hint
        self.retry_after = retry_after
        """Seconds that the endpoint asked to wait; `None` if it named no time."""
        self.exchange = exchange
        """Request and response; `None` if the request was not sent."""

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed later."""
        return self.kind in ("rate_limit", "transient")

    @property
    def status_code(self) -> int | None:
        """HTTP status of the response, under the attribute name that HTTP clients use for their errors."""
        return None if self.exchange is None else self.exchange.status


HINT = "check the address: for OpenAI-compatible servers, it usually ends in /v1"
"""Advice for an answer that is an HTML page."""

RESUME = "when the server works again, --resume runs the failed samples"
"""Advice for a server that keeps failing."""


def unreadable(where: str, status: int | None, cause: str) -> str:
    """Return the message for a reply without an answer, and how to continue. `where` names the server."""
    answered = "answered" if status is None else f"answered {status}"
    # The advice comes first because a long cause may be truncated on display.
    return f"{where} {answered} with a reply that cannot be read ({RESUME}): {cause}"


_PAGE = re.compile(r"\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_LONGEST = 100
_LOOKED_AT = 20_000
"""Number of characters of a page that are searched."""


def page_text(text: str) -> str | None:
    """Return a short summary of an HTML page; `None` for any other text."""
    start = text[:_LOOKED_AT]
    if not _PAGE.match(start):
        return None
    title = _TITLE.search(start)
    words = " ".join(html.unescape(title[1] if title is not None else _UNSEEN.sub(" ", start)).split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def page_message(text: str, status: int, address: str | None = None) -> str | None:
    """Return an error message if an endpoint answered with an HTML page; `None` for any other text."""
    words = page_text(text)
    if words is None:
        return None
    where = "" if address is None else f" at {address}"
    quote = f": {words!r}" if words else ""
    return f"the endpoint{where} answered {status} with a page of HTML, not with JSON{quote}"


@dataclass(frozen=True)
class CallInput:
    """Input of a model call in AI GO's format."""

    input: Any
    """Chat: an object with `messages` and optionally `response_format`. Embeddings: texts. Custom: any JSON.
    """
    options: Mapping[str, Any] = field(default_factory=dict)
    """Generation options, including tools, under their names in chat completion requests."""
    sample: Mapping[str, Any] | None = None
    """Dataset row of the call; `None` outside a task."""


@dataclass(frozen=True)
class ModelInfo:
    """Facts about the model for an adapter."""

    task: MLTask
    model_key: str | None
    """Name of the model at the endpoint; `None` if the URL determines the model."""

    def variables(self) -> dict[str, str]:
        """Return the values for templates; an unknown value is an empty text."""
        named = {"model_key": self.model_key} if self.model_key is not None else {}
        return {"task": self.task, "modality": "text", **named}


class Adapter(Protocol):
    """Translation between AI GO's format and the format of an endpoint."""

    @property
    def key(self) -> str:
        """Key of the adapter."""
        ...

    @property
    def takes_options(self) -> bool:
        """Whether generation options reach the endpoint."""
        ...

    def request(self, call: CallInput, info: ModelInfo) -> str:
        """Return the request body.

        Raises:
            CallError: the endpoint's format cannot express the call.
        """
        ...

    def answer(self, body: str, status: int, info: ModelInfo) -> Any:
        """Return the response as JSON in AI GO's format; `{"error": …}` if it contains no answer.

        Raises:
            CallError: the response cannot be read.
        """
        ...


class ModelInput(dict[str, Any]):
    """Chat input whose `response_format` can always be read, but is in its JSON only if the task sets one."""

    def __missing__(self, key: str) -> None:
        if key != "response_format":
            raise KeyError(key)


class TemplateAdapter:
    """Adapter that an author wrote.

    Raises:
        TemplateError: a template is invalid.
    """

    def __init__(self, key: str, process_input: str, process_output: str):
        self.key = key
        self._input = CompiledAdapter(process_input)
        self._output = CompiledAdapter(process_output)
        self.sources = (process_input, process_output)

    @property
    def takes_options(self) -> bool:
        """Whether the input template uses `kwargs`."""
        return "kwargs" in self.sources[0]

    def request(self, call: CallInput, info: ModelInfo) -> str:
        value = ModelInput(call.input) if isinstance(call.input, dict) else call.input
        try:
            return self._input.render(input=value, model_info=info.variables(), kwargs=dict(call.options))
        except TemplateError as error:
            raise self._failed("process_input", error) from error

    def answer(self, body: str, status: int, info: ModelInfo) -> Any:
        """Render the output template and parse its output as JSON."""
        try:
            text = self._output.render(body=condensed(body), model_info=info.variables(), status_code=status)
        except TemplateError as error:
            raise self._failed("process_output", error) from error
        try:
            return parse_json(text)
        except ValueError as error:
            at = getattr(error, "pos", 0)
            shown = text[max(0, at - 60) : at + 60].strip()
            hint = "write values as {{ value | tojson }}, without quotes around them"
            message = f"adapter {self.key!r}, process_output: returned invalid JSON: {error} (near {shown!r})"
            raise CallError(message, "invalid", hint=hint) from error

    def _failed(self, template: str, error: TemplateError) -> CallError:
        issue = error.issues[0]
        line = f" line {issue.line}" if issue.line is not None else ""
        message = f"adapter {self.key!r}, {template}{line}: {issue.message}"
        return CallError(message, "invalid", hint=issue.hint)


def parse_json(text: str) -> Any:
    """Parse JSON strictly: NaN and infinities are rejected.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def to_json(value: Any) -> str:
    """Return a request body as JSON text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
