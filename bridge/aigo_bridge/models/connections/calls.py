"""One call of a model: what is asked, how adapters translate it, and how it fails.

An author's adapter is two Jinja templates, which run in the sandbox of `aigo_bridge.templates`. Those that
the platform ships are named by key (`latticeflow$…`) and stand in `shipped` as code of our own.
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
from aigo_bridge.templates import AdapterTemplate

FailureKind = Literal["rate_limit", "transient", "refused", "invalid"]
"""`rate_limit` and `transient`: try again; `refused`: the endpoint said no; `invalid`: what it said is no
answer.
"""


@dataclass(frozen=True)
class Exchange:
    """One request and its response as they went over the wire, secrets taken out."""

    request: str
    """Body of the request."""
    response: str | None = None
    """Body of the response; `None` when none came."""
    status: int | None = None
    """HTTP status; `None` when no response came, or when no HTTP was spoken."""
    request_id: str | None = None
    """The endpoint's own name for the exchange; `None` when it gave none."""
    stop_reason: str | None = None
    """Why the model stopped writing, in the endpoint's words; `None`: unknown."""


class CallError(BridgeError, RuntimeError):
    """A model was called and gave no answer that can be used."""

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
        """Seconds that the endpoint asked to wait; `None` when it did not say."""
        self.exchange = exchange
        """What went over the wire; `None` when nothing did."""

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed later."""
        return self.kind in ("rate_limit", "transient")

    @property
    def status_code(self) -> int | None:
        """HTTP status of the response, under the name that HTTP clients' errors have it."""
        return None if self.exchange is None else self.exchange.status


HINT = "is the address right? Of servers that speak OpenAI's protocol it usually ends in /v1"
"""What to do about a page."""

RESUME = "when the server works again, --resume asks for the failed samples"
"""Advice about a server that keeps failing."""


def unreadable(where: str, status: int | None, cause: str) -> str:
    """Return the problem of a reply without an answer, and how to continue; `where`: the server."""
    answered = "answered" if status is None else f"answered {status}"
    # What to do comes first: a long cause may be cut where it is shown.
    return f"{where} {answered} with a reply that cannot be read ({RESUME}): {cause}"


_PAGE = re.compile(r"\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_LONGEST = 100
_LOOKED_AT = 20_000
"""Characters of a page that are looked at."""


def page_text(text: str) -> str | None:
    """Return a page of HTML in a few words; `None` for any other text."""
    start = text[:_LOOKED_AT]
    if not _PAGE.match(start):
        return None
    title = _TITLE.search(start)
    words = " ".join(html.unescape(title[1] if title is not None else _UNSEEN.sub(" ", start)).split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def page_message(text: str, status: int, address: str | None = None) -> str | None:
    """That an endpoint has answered with a page; `None` for a text that is none."""
    words = page_text(text)
    if words is None:
        return None
    where = "" if address is None else f" at {address}"
    quote = f": {words!r}" if words else ""
    return f"the endpoint{where} answered {status} with a page of HTML, not with JSON{quote}"


@dataclass(frozen=True)
class CallInput:
    """Input of a model call, in AI GO's form."""

    input: Any
    """Chat: an object with `messages` and perhaps `response_format`; embeddings: texts; custom: any JSON."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Generation options, tools among them, under their names in chat completion requests."""
    sample: Mapping[str, Any] | None = None
    """The row that the call is made for; `None` outside of a task."""


@dataclass(frozen=True)
class ModelInfo:
    """Facts about the model for an adapter."""

    task: MLTask
    model_key: str | None
    """Name of the model at the endpoint; `None`: the address says it."""

    def variables(self) -> dict[str, str]:
        """Values for templates; an unknown value prints as an empty text."""
        named = {"model_key": self.model_key} if self.model_key is not None else {}
        return {"task": self.task, "modality": "text", **named}


class Adapter(Protocol):
    """Translates one way and the other."""

    @property
    def key(self) -> str:
        """Its key."""
        ...

    @property
    def takes_options(self) -> bool:
        """Whether generation options reach the endpoint."""
        ...

    def request(self, call: CallInput, info: ModelInfo) -> str:
        """Body of the request.

        Raises:
            CallError: the call has no form there.
        """
        ...

    def answer(self, body: str, status: int, info: ModelInfo) -> Any:
        """What the response says, as JSON in AI GO's form; `{"error": …}` when it holds no answer.

        Raises:
            CallError: the response cannot be read.
        """
        ...


class ModelInput(dict[str, Any]):
    """A chat input whose `response_format` is there to ask for, and not in its JSON, when there is none."""

    def __missing__(self, key: str) -> None:
        if key != "response_format":
            raise KeyError(key)


class TemplateAdapter:
    """An author's adapter.

    Raises:
        TemplateError: one of its templates is not one.
    """

    def __init__(self, key: str, process_input: str, process_output: str):
        self.key = key
        self._input = AdapterTemplate(process_input)
        self._output = AdapterTemplate(process_output)
        self.sources = (process_input, process_output)

    @property
    def takes_options(self) -> bool:
        """Whether the input template looks at `kwargs` at all."""
        return "kwargs" in self.sources[0]

    def request(self, call: CallInput, info: ModelInfo) -> str:
        """Render the input template."""
        value = ModelInput(call.input) if isinstance(call.input, dict) else call.input
        try:
            return self._input.render(input=value, model_info=info.variables(), kwargs=dict(call.options))
        except TemplateError as error:
            raise self._failed("process_input", error) from error

    def answer(self, body: str, status: int, info: ModelInfo) -> Any:
        """Render the output template and read what it gives as JSON."""
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
            message = f"adapter {self.key!r}, process_output: gave no JSON: {error} (near {shown!r})"
            raise CallError(message, "invalid", hint=hint) from error

    def _failed(self, template: str, error: TemplateError) -> CallError:
        issue = error.issues[0]
        line = f" line {issue.line}" if issue.line is not None else ""
        message = f"adapter {self.key!r}, {template}{line}: {issue.message}"
        return CallError(message, "invalid", hint=issue.hint)


def parse_json(text: str) -> Any:
    """JSON as the standard has it: no NaN, no infinities.

    Raises:
        ValueError: the text is none.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def to_json(value: Any) -> str:
    """JSON text of a body."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
