"""Snippets in the runner's own process, for debugging with breakpoints. They are not isolated or limited."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, SnippetError
from aigo_bridge.snippets.channel import Callback
from aigo_bridge.snippets.protocol import InOut, Remote, decode, encode, plain
from aigo_bridge.snippets.snippet import Snippet, install_aliases
from aigo_bridge.snippets.worker import SnippetCode, describe, lend, load


async def call_here(
    functions: dict[Snippet, Any],
    snippet: Snippet,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    callbacks: Mapping[str, Callback] | None,
) -> Any:
    """Run a call like `SnippetHost.call`; `functions` caches compiled code. Values pass through JSON, as with
    a worker.

    Raises:
        SnippetError: as in `SnippetHost.call`.
    """
    install_aliases()
    is_file = snippet.origin is not None
    place = SnippetCode(snippet.source, snippet.origin or snippet.label, snippet.first_line, is_file)
    inout: list[Any] = []
    failures: list[Exception] = []
    try:
        arguments = [_argument(value, callbacks, inout, failures) for value in args]
        named = {name: _argument(value, callbacks, inout, failures) for name, value in kwargs.items()}
    except (TypeError, ValueError, RecursionError) as error:
        raise SnippetError(
            snippet.told(f"its input cannot be sent as JSON: {error}"), code=Code.FAILED_SNIPPET
        ) from error
    try:
        if snippet not in functions:
            functions[snippet] = load(place, snippet.function)
        value = functions[snippet](*arguments, **named)
        if inspect.isawaitable(value):
            value = await value
        if value is None and inout:
            value = inout[0]
        return json.loads(json.dumps(value, default=plain))
    # The author's code may raise anything; exceptions that are not for the snippet (an engine limit) are
    # passed on unchanged.
    except Exception as error:
        if error in failures and not isinstance(error, BridgeError):
            raise
        raise SnippetError(snippet.told(describe(error, place)), code=Code.FAILED_SNIPPET) from error


def _argument(
    value: Any, callbacks: Mapping[str, Callback] | None, inout: list[Any], failures: list[Exception]
) -> Any:
    if isinstance(value, Remote):
        methods = {name: _method(callback, failures) for name, callback in (callbacks or {}).items()}
        return lend(value.attributes, methods)
    if isinstance(value, InOut):
        inout.append(decode(json.loads(json.dumps(encode(value.value)))))
        return inout[-1]
    return decode(json.loads(json.dumps(encode(value))))


def _method(callback: Callback, failures: list[Exception]) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        sent = json.loads(json.dumps([args, kwargs], default=plain))
        try:
            return decode(json.loads(json.dumps(encode(await callback(*sent[0], **sent[1])))))
        except Exception as error:
            failures.append(error)
            raise

    return call
