"""Generation settings of requests for lighteval's tasks, as lighteval's own server clients send them.

The default temperature is 0. Length and stop sequences are the document's. The user can override all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lighteval.models.model_input import GenerationParameters
from lighteval.tasks.requests import Doc

from aigo_lighteval.models.callers import ConnectionCaller
from aigo_lighteval.models.generation import SERVER_NAMES
from aigo_lighteval.models.messages import Caller

Json = dict[str, Any]

REASONING = re.compile(r"openai/(o\d|gpt-5)")
"""OpenAI models that do not take a temperature and use another name for the length. lighteval's client does
the same."""

_FROM_DOCUMENT = ("max_tokens", "stop")


def options_of(doc: Doc) -> Json:
    """Return a document's answer settings as chat completion options."""
    options: Json = {}
    if doc.generation_size is not None:
        options["max_tokens"] = doc.generation_size
    if stops := [stop for stop in doc.stop_sequences or () if stop]:
        options["stop"] = stops
    return options


def apply_settings(docs: Sequence[Doc], settings: Mapping[str, Any]) -> None:
    """Override the answer settings of documents with the user's settings, as lighteval does."""
    for doc in docs:
        doc.generation_size = settings.get("max_tokens", doc.generation_size)
        doc.stop_sequences = settings.get("stop", doc.stop_sequences)


def common_options(caller: Caller) -> Json:
    """Return the options that all requests share, without the options from documents."""
    if isinstance(caller, ConnectionCaller) and not caller.connection.takes_options:
        return {}
    temperature = {} if REASONING.match(_server(caller)) else {"temperature": 0}
    return {
        name: value
        for name, value in {**temperature, **caller.settings}.items()
        if value is not None and name not in _FROM_DOCUMENT
    }


def request_options(doc: Doc, caller: Caller) -> Json:
    """Return all options of a document's request."""
    options = {**common_options(caller), **options_of(doc)}
    if "max_tokens" in options and REASONING.match(_server(caller)):
        options["max_completion_tokens"] = options.pop("max_tokens")
    return options


def _server(caller: Caller) -> str:
    return caller.connection.display_name if isinstance(caller, ConnectionCaller) else caller.name


def generation_parameters(caller: Caller) -> GenerationParameters:
    """Return the settings of all requests for lighteval's results."""
    ends = {name: caller.settings[name] for name in _FROM_DOCUMENT if name in caller.settings}
    options = {**common_options(caller), **ends}
    values = {name: options[sent] for name, sent in SERVER_NAMES.items() if sent in options}
    parameters = GenerationParameters(**values)
    # Without a temperature, lighteval would record 0, although the request does not contain it.
    return parameters if "temperature" in values else parameters.model_copy(update={"temperature": None})
