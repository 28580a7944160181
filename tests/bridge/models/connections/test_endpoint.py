"""Requests, responses and failures of a connection to a real server on 127.0.0.1."""

from __future__ import annotations

import gzip
import json
import os
import socket
import ssl
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.commands import REPOSITORY
from tests.support.endpoint import Endpoint, Raw, completion, delta, events

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.models.connections import (
    CallError,
    CallInput,
    CallResult,
    Connection,
    ConnectionSettings,
    load_model,
)

CERTIFICATES = REPOSITORY / "tests" / "support" / "certificates"
CHAT = CallInput({"messages": [{"role": "user", "content": "hé"}]})
SECRET = "sk-not-for-anybodys-eyes"


def connection(
    folder: Path, url: str, more: str = "", settings: ConnectionSettings | None = None
) -> Connection:
    (folder / "model.yaml").write_text(
        "key: m\ndisplay_name: M\nconfig:\n"
        f"  url: {url}/chat\n  api_key: $MODEL_KEY\n  model_key: m-1\n  adapter: {{key: latticeflow$openai}}\n{more}"
    )
    found = load_model(str(folder / "model.yaml"), settings=settings, env={"MODEL_KEY": SECRET})
    assert isinstance(found, Connection)
    return found


def call(made: Connection, given: CallInput = CHAT) -> CallResult:
    async def once() -> CallResult:
        try:
            return await made.call(given)
        finally:
            await made.aclose()

    return anyio.run(once)


def failure(made: Connection, given: CallInput = CHAT) -> CallError:
    with pytest.raises(CallError) as caught:
        call(made, given)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.exchange)
    return caught.value


def test_requests_and_responses_have_the_expected_form(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: Raw(
        (b'{"choices": [{"message": {"content": "\xc3\xa9"}}]}',), headers={"X-Request-Id": "r7"}
    )
    more = "  custom_headers: {X-Team: evals, X-Count: 3, X-On: true}\n"
    answered = call(connection(tmp_path, endpoint.url, more))
    assert endpoint.paths == ["/v1/chat"]
    assert endpoint.requests == [{"model": "m-1", **CHAT.input}]
    headers = endpoint.headers[0]
    assert headers["authorization"] == f"Bearer {SECRET}"
    assert (headers["x-team"], headers["x-count"], headers["x-on"]) == ("evals", "3", "true")
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"].startswith("aigo-bridge/")
    assert answered.reply.choices[0].text == "é"
    assert (answered.exchange.status, answered.exchange.request_id) == (200, "r7")
    assert answered.exchange.request == '{"model": "m-1", "messages": [{"role": "user", "content": "hé"}]}'


def test_headers_in_the_model_file_override_the_defaults(tmp_path: Path, endpoint: Endpoint) -> None:
    more = "  custom_headers: {Authorization: Basic abc, Content-Type: application/vnd.x+json}\n"
    call(connection(tmp_path, endpoint.url, more))
    assert endpoint.headers[0]["authorization"] == "Basic abc"
    assert endpoint.headers[0]["content-type"] == "application/vnd.x+json"


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_retryable_status_is_a_transient_error(tmp_path: Path, endpoint: Endpoint, status: int) -> None:
    endpoint.answer = lambda _: (status, {"error": {"message": "later"}})
    error = failure(connection(tmp_path, endpoint.url))
    assert error.is_transient
    assert error.kind == ("rate_limit" if status == 429 else "transient")
    assert error.message == f"model 'm': the endpoint answered {status}: later"
    assert error.status_code == status


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_client_error_status_is_final(tmp_path: Path, endpoint: Endpoint, status: int) -> None:
    endpoint.answer = lambda _: (status, {"error": {"message": "never"}})
    error = failure(connection(tmp_path, endpoint.url))
    assert error.kind == "refused"
    assert f"{status}: never" in error.message


def test_an_adapter_cannot_hide_the_endpoint_error(tmp_path: Path, endpoint: Endpoint) -> None:
    (tmp_path / "adapter.yaml").write_text(
        'key: mine\ndisplay_name: A\nprocess_input: {language: jinja, source_code: "{}"}\n'
        'process_output: {language: jinja, source_code: \'{"error": "status was not 200"}\'}\n'
    )
    made = connection(tmp_path, endpoint.url)
    text = (tmp_path / "model.yaml").read_text().replace("latticeflow$openai", "mine")
    (tmp_path / "model.yaml").write_text(text)
    found = load_model(str(tmp_path / "model.yaml"), env={"MODEL_KEY": SECRET})
    assert isinstance(found, Connection)
    endpoint.answer = lambda _: (403, {"detail": "wrong project"})
    assert "status was not 200 (the endpoint answered 403: wrong project)" in failure(found).message
    assert made.digest != found.digest


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "1e999"}, None),
        ({"Retry-After": "9" * 400}, None),
        ({"retry-after-ms": "-1", "Retry-After": "9"}, None),
        ({"Retry-After": "Wed, 21 Oct 1992 07:28:00 GMT"}, None),
        ({"Retry-After": "Wed, 21 Oct 99999 07:28:00 GMT"}, None),
        ({"Retry-After": "Mon, 01 Jan 0001 00:00:00 +2359"}, None),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_header_is_read(
    tmp_path: Path, endpoint: Endpoint, headers: dict[str, str], seconds: float | None
) -> None:
    endpoint.answer = lambda _: Raw((b"busy",), status=503, headers=headers)
    assert failure(connection(tmp_path, endpoint.url)).retry_after == seconds


def test_retry_after_date_is_converted_to_seconds(tmp_path: Path, endpoint: Endpoint) -> None:
    date = formatdate(time.time() + 30, usegmt=True)
    endpoint.answer = lambda _: Raw((b"",), status=429, headers={"Retry-After": date})
    asked = failure(connection(tmp_path, endpoint.url)).retry_after
    assert asked is not None
    assert 25 < asked <= 30


def test_redirects_are_not_followed(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: Raw((b"",), status=307, headers={"Location": "http://elsewhere.invalid/"})
    error = failure(connection(tmp_path, endpoint.url))
    assert "307, a redirection" in error.message
    assert len(endpoint.requests) == 1


ENDLESS = 10_000
"""Chunks of an answer that nobody should wait for."""


def endless(chunk: bytes, **raw: Any) -> Raw:
    return Raw((chunk,) * ENDLESS, **raw)


@pytest.mark.parametrize(
    ("answer", "message", "transient"),
    [
        (endless(b"x" * 100_000), "the answer is longer than 1 MiB; the rest was not read", False),
        (events(*[delta("x" * 500)] * ENDLESS), "longer than 1 MiB", False),
        (
            endless(b"<p>" * 30_000, status=404),
            "answered 404 with more than 1 MiB, which were not read",
            False,
        ),
        (endless(b"<p>" * 30_000, status=503), "answered 503 with more than 1 MiB", True),
    ],
    ids=["text", "stream", "error page", "transient error page"],
)
def test_endless_response_is_not_read_completely(
    tmp_path: Path,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    answer: Raw,
    message: str,
    transient: bool,
) -> None:
    monkeypatch.setenv("AIGO_BRIDGE_ANSWER_MIB", "1")
    endpoint.answer = lambda _: answer
    error = failure(connection(tmp_path, endpoint.url))
    assert message in error.message
    assert error.is_transient == transient
    if answer.status == 200:
        assert error.hint is not None
        assert "AIGO_BRIDGE_ANSWER_MIB" in error.hint


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "much"])
def test_invalid_response_size_limit_is_rejected(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("AIGO_BRIDGE_ANSWER_MIB", value)
    with pytest.raises(UsageError, match=r"AIGO_BRIDGE_ANSWER_MIB: found .*, expected a number of MiB"):
        connection(tmp_path, endpoint.url)


def test_slow_stream_is_stopped_at_the_total_time_limit(tmp_path: Path, endpoint: Endpoint) -> None:
    """An endpoint that sends data regularly is not silent, but the whole answer has a time limit."""

    class Trickle(tuple[bytes, ...]):
        def __iter__(self) -> Iterator[bytes]:
            for _ in range(1000):
                time.sleep(0.05)
                yield b": still there\n\n"

    endpoint.answer = lambda _: Raw(Trickle(), headers={"Content-Type": "text/event-stream"})
    made = connection(tmp_path, endpoint.url, settings=ConnectionSettings(read_seconds=0.1))
    error = failure(made)
    assert "the answer had not ended after 0.6 s" in error.message
    assert error.code == Code.FAILED_MODEL
    assert not error.is_transient


GOOD = json.dumps(completion("packed")).encode()


@pytest.mark.parametrize(
    ("coding", "body", "message"),
    [
        ("gzip", gzip.compress(GOOD), None),
        ("x-gzip", gzip.compress(GOOD[:50]) + gzip.compress(GOOD[50:]), None),
        ("deflate", zlib.compress(GOOD), None),
        ("gzip", gzip.compress(b"x" * 5_000_000), "the answer is longer than 1 MiB"),
        (
            "gzip, gzip",
            gzip.compress(gzip.compress(b"x" * 5_000_000)),
            "encoded in 'gzip, gzip', which was not requested",
        ),
        ("br", b"\x00", "encoded in 'br', which was not requested"),
        ("gzip", gzip.compress(GOOD)[:-9], "the response was truncated"),
        ("gzip", GOOD, "the response is damaged"),
    ],
    ids=["one", "members", "zlib", "bomb", "bomb in a bomb", "unknown", "cut off", "none"],
)
def test_compressed_responses_are_decompressed_within_the_limit(
    tmp_path: Path,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    coding: str,
    body: bytes,
    message: str | None,
) -> None:
    monkeypatch.setenv("AIGO_BRIDGE_ANSWER_MIB", "1")
    endpoint.answer = lambda _: Raw((body,), headers={"Content-Encoding": coding})
    made = connection(tmp_path, endpoint.url)
    if message is None:
        assert call(made).reply.choices[0].text == "packed"
    else:
        tracemalloc.start()
        try:
            assert message in failure(made).message
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()
    assert endpoint.headers[0]["accept-encoding"] == "gzip"


NUMBERS = [-1, 1e999, -1e999, float("nan"), 10**400, 1e300, True, None, "3", [1], {"a": 1}]
BODIES = [
    ("usage", lambda odd: {**completion("ok"), "usage": {"prompt_tokens": odd, "completion_tokens": odd}}),
    ("cached", lambda odd: {**completion("ok"), "usage": {"prompt_tokens": 1, "prompt_tokens_details": odd}}),
    ("created", lambda odd: {**completion("ok"), "created": odd}),
    (
        "logprobs",
        lambda odd: _with_choice(logprobs={"content": [{"token": "a", "logprob": odd, "bytes": odd}]}),
    ),
    (
        "tops",
        lambda odd: _with_choice(logprobs={"content": [{"token": "a", "logprob": 0, "top_logprobs": odd}]}),
    ),
    ("index", lambda odd: _with_choice(index=odd)),
    ("choices", lambda odd: {"choices": odd}),
    ("choice", lambda odd: {"choices": [odd]}),
    (
        "calls",
        lambda odd: completion("", tool_calls=[{"id": odd, "function": {"name": "f", "arguments": odd}}]),
    ),
    ("call", lambda odd: completion("", tool_calls=odd)),
]


def _with_choice(**fields: Any) -> dict[str, Any]:
    body = completion("ok")
    return {**body, "choices": [{**body["choices"][0], **fields}]}


@pytest.mark.parametrize(("place", "body"), BODIES, ids=[place for place, _ in BODIES])
def test_unusual_numbers_in_a_response_are_handled(
    tmp_path: Path, endpoint: Endpoint, place: str, body: Callable[[Any], Any]
) -> None:
    """Each response is either a valid answer or an error, and every recorded token count is a valid count."""
    made = connection(tmp_path, endpoint.url)
    for odd in NUMBERS:
        text = json.dumps(body(odd)).encode()
        endpoint.answer = partial(_always, Raw((text,)))
        _call_is_contained(made)


@pytest.mark.parametrize("field", ["index", "usage", "choices", "tool index", "logprobs"])
def test_unusual_numbers_in_a_stream_are_handled(tmp_path: Path, endpoint: Endpoint, field: str) -> None:
    made = connection(tmp_path, endpoint.url)
    for odd in NUMBERS:
        piece, end = delta("a"), delta(finish="stop")
        choice = piece["choices"][0]
        if field == "tool index":
            choice["delta"]["tool_calls"] = [{"index": odd, "function": {"name": "f"}}]
        elif field in ("usage", "choices"):
            piece[field] = odd
        else:
            choice[field] = odd
        endpoint.answer = partial(_always, events(piece, end))
        _call_is_contained(made)


def _always(reply: Raw, _: Any) -> Raw:
    return reply


def _call_is_contained(made: Connection) -> None:
    try:
        reply = call(made).reply
    except CallError:
        return
    counts = () if reply.usage is None else (reply.usage.prompt, reply.usage.completion, reply.usage.cached)
    assert all(count is None or (type(count) is int and 0 <= count <= 2**53) for count in counts)


def test_lone_surrogate_and_nan_are_not_sent(tmp_path: Path, endpoint: Endpoint) -> None:
    error = failure(
        connection(tmp_path, endpoint.url), CallInput({"messages": [{"role": "user", "content": "\ud800"}]})
    )
    assert "half of a surrogate pair" in error.message
    error = failure(
        connection(tmp_path, endpoint.url), CallInput({"messages": []}, {"temperature": float("nan")})
    )
    assert error.kind == "invalid"
    assert endpoint.requests == []


def test_refused_connection_is_a_transient_error(tmp_path: Path, endpoint: Endpoint) -> None:
    other = Endpoint()
    other.start()
    url = other.url
    other.stop()
    error = failure(connection(tmp_path, url))
    assert error.is_transient
    assert "cannot connect to 127.0.0.1:" in error.message


def test_silent_endpoint_is_a_transient_error(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: Raw((b"{}",), delay=0.6)
    error = failure(connection(tmp_path, endpoint.url, settings=ConnectionSettings(read_seconds=0.1)))
    assert error.is_transient
    assert error.message == "model 'm': the endpoint was silent for 0.1 s"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"choices": [', b"\xff\xfe\x00", b"null", b'{"choices": [{}]}']
)
def test_invalid_response_body_is_an_error(tmp_path: Path, endpoint: Endpoint, body: bytes) -> None:
    endpoint.answer = lambda _: Raw((body,))
    error = failure(connection(tmp_path, endpoint.url))
    # Invalid JSON was truncated or comes from a proxy: a retry may succeed.
    assert error.kind == ("invalid" if body in (b"<html>", b"null", b'{"choices": [{}]}') else "transient")
    if error.is_transient:
        assert (
            f"{endpoint.url.removeprefix('http://').removesuffix('/v1')} answered 200 with" in error.message
        )
    assert error.message.startswith("model 'm': ")
    if body != b"\xff\xfe\x00":  # not a text that can be shown
        began = f"the response begins {body.decode()!r}" if body else "the response is empty"
        assert began in error.message


def test_long_invalid_body_is_shortened_and_masked(tmp_path: Path, endpoint: Endpoint) -> None:
    """Secrets are masked before the text is shortened."""
    page = "<html>" + "x" * 185 + SECRET + "y" * 10_000
    endpoint.answer = lambda _: Raw((page.encode(),))
    error = failure(connection(tmp_path, endpoint.url))
    assert f"(the response begins {'<html>' + 'x' * 185 + '[secret]y…'!r})" in error.message
    assert SECRET[:8] not in error.message


def test_streamed_answer_is_assembled_with_its_usage(tmp_path: Path, endpoint: Endpoint) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    last = {**delta(), "choices": [], "usage": usage}
    endpoint.answer = lambda _: events(delta("Os"), delta("lo"), delta(finish="length"), last)
    answered = call(connection(tmp_path, endpoint.url))
    choice = answered.reply.choices[0]
    assert (choice.text, choice.finish_reason) == ("Oslo", "length")
    assert answered.reply.usage is not None
    assert answered.reply.usage.cached == 4


@pytest.mark.parametrize(
    "raw",
    [
        events(delta("Os"), delta("lo"), done=False, cut=True),
        events(delta("Os"), delta("lo"), done=False),
        Raw((b'{"choices": [{"message": {"con',), cut=True),
        events(delta("Os"), {"error": {"message": "overloaded"}}, done=False),
    ],
    ids=["cut stream", "stream without an end", "cut body", "error in the middle"],
)
def test_a_truncated_answer_is_an_error(tmp_path: Path, endpoint: Endpoint, raw: Raw) -> None:
    endpoint.answer = lambda _: raw
    assert failure(connection(tmp_path, endpoint.url)).is_transient


@pytest.mark.parametrize("whole", [True, False])
def test_secret_split_across_stream_chunks_is_masked(tmp_path: Path, endpoint: Endpoint, whole: bool) -> None:
    pieces = [delta(SECRET[at : at + 3]) for at in range(0, len(SECRET), 3)]
    sent = (
        events(delta("it is "), *pieces, delta(".", finish="stop")) if whole else events(*pieces, done=False)
    )
    endpoint.answer = lambda _: sent
    made = connection(tmp_path, endpoint.url)

    if whole:
        answered = call(made)
        assert answered.reply.choices[0].text == "it is [secret]."
        exchange = answered.exchange
    else:
        error = failure(made)
        assert error.exchange is not None
        exchange = error.exchange
    assert exchange.response is not None
    assert "sk-" not in exchange.response
    assert exchange.response.startswith("[secret] (")


def test_secret_split_across_logprob_tokens_is_masked(tmp_path: Path, endpoint: Endpoint) -> None:
    body = completion(f"it is {SECRET}")
    listed = [{"token": SECRET[at : at + 3], "logprob": -0.5} for at in range(0, len(SECRET), 3)]
    body["choices"][0]["logprobs"] = {"content": listed}
    endpoint.answer = lambda _: (200, body)

    answered = call(connection(tmp_path, endpoint.url))

    assert answered.reply.choices[0].text == "it is [secret]"
    assert answered.reply.choices[0].logprobs == ()
    assert answered.exchange.response is not None
    assert '"sk-"' not in answered.exchange.response


@pytest.mark.parametrize("spell", [lambda c: f"\\u{ord(c):04x}", lambda c: c.replace("-", "\\u002d")])
def test_secret_written_with_json_escapes_is_masked(
    tmp_path: Path, endpoint: Endpoint, spell: Callable[[str], str]
) -> None:
    spelled = "".join(map(spell, SECRET))
    body = f'{{"choices": [{{"message": {{"content": "it is {spelled}"}}}}]}}'
    endpoint.answer = lambda _: Raw((body.encode(),))

    answered = call(connection(tmp_path, endpoint.url))

    assert answered.reply.choices[0].text == "it is [secret]"
    assert answered.exchange.response == '{"choices": [{"message": {"content": "it is [secret]"}}]}'


def test_secret_repeated_by_the_endpoint_is_masked(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: (200, completion(f"your key is {SECRET}"))
    answered = call(connection(tmp_path, endpoint.url))
    assert answered.reply.choices[0].text == "your key is [secret]"
    assert SECRET not in repr(answered)
    endpoint.answer = lambda _: (401, {"error": {"message": f"wrong key {SECRET}"}})
    assert "wrong key [secret]" in failure(connection(tmp_path, endpoint.url)).message


def test_embeddings_reject_unsuitable_inputs(tmp_path: Path, endpoint: Endpoint) -> None:
    data = [{"index": 0, "embedding": [1.0, 2.0]}]
    endpoint.answer = lambda _: (200, {"data": data})
    made = connection(tmp_path, endpoint.url)
    text = (tmp_path / "model.yaml").read_text() + "task: embeddings\n"
    (tmp_path / "model.yaml").write_text(text)
    made_ = load_model(str(tmp_path / "model.yaml"), env={"MODEL_KEY": SECRET})
    assert isinstance(made_, Connection)
    assert call(made_, CallInput(["a"])).reply.raw == {"embeddings": [[1.0, 2.0]]}
    assert "expected a list of texts" in failure(made_).message
    assert "1 vectors for 2 texts" in failure(made_, CallInput(["a", "b"])).message
    assert made.task == "chat_completion"


def test_one_connection_serves_several_event_loops(tmp_path: Path, endpoint: Endpoint) -> None:
    made = connection(tmp_path, endpoint.url)
    assert [call(made).reply.choices[0].text for _ in range(3)] == ["ok"] * 3


def test_free_connections_are_used_again(tmp_path: Path, endpoint: Endpoint) -> None:
    made = connection(tmp_path, endpoint.url)

    async def waves() -> None:
        for _ in range(3):
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(made.call, CHAT)
        await made.aclose()

    anyio.run(waves)
    assert (len(endpoint.requests), len(endpoint.clients)) == (12, 4)


# TLS


def server(**options: Any) -> Endpoint:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem")
    if options.get("wants_client"):
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(CERTIFICATES / "ca.pem")
    made = Endpoint(context)
    made.start()
    return made


TRUSTED = """  tls_context:
    validation_context:
      trusted_ca: |
{}
"""


def indented(path: Path) -> str:
    return "".join(f"        {line}\n" for line in path.read_text().splitlines())


def test_certificate_from_unknown_authority_is_rejected(tmp_path: Path) -> None:
    endpoint = server()
    error = failure(connection(tmp_path, endpoint.url))
    endpoint.stop()
    assert "CERTIFICATE_VERIFY_FAILED" in error.message
    assert not error.is_transient
    assert error.hint is not None
    assert "trusted_ca" in error.hint
    assert endpoint.requests == []


def test_custom_certificate_authority_is_trusted(tmp_path: Path) -> None:
    endpoint = server()
    more = TRUSTED.format(indented(CERTIFICATES / "ca.pem"))
    assert call(connection(tmp_path, endpoint.url, more)).reply.choices[0].text == "ok"
    endpoint.stop()


def test_base64_certificate_authority_is_trusted(tmp_path: Path) -> None:
    import base64

    endpoint = server()
    coded = base64.b64encode((CERTIFICATES / "ca.pem").read_bytes()).decode()
    more = f"  tls_context: {{validation_context: {{trusted_ca: {coded}, trust_chain_verification: verify_trust_chain}}}}\n"
    assert call(connection(tmp_path, endpoint.url, more)).reply.choices[0].text == "ok"
    endpoint.stop()


def test_untrusted_certificate_can_be_accepted_by_setting(tmp_path: Path) -> None:
    endpoint = server()
    more = "  tls_context: {validation_context: {trust_chain_verification: accept_untrusted}}\n"
    assert call(connection(tmp_path, endpoint.url, more)).reply.choices[0].text == "ok"
    endpoint.stop()


def test_client_certificate_is_sent(tmp_path: Path) -> None:
    endpoint = server(wants_client=True)
    more = TRUSTED.format(indented(CERTIFICATES / "ca.pem"))
    with_it = ConnectionSettings(client_cert=str(CERTIFICATES / "client.pem"))
    assert call(connection(tmp_path, endpoint.url, more, with_it)).reply.choices[0].text == "ok"
    # Whether the server's alert or the end of the connection is seen first is a matter of chance.
    failure(connection(tmp_path, endpoint.url, more))
    endpoint.stop()
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_missing_client_certificate_is_not_retried(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """Up to TLS 1.2 the alert arrives while connecting, since TLS 1.3 instead of the response."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(CERTIFICATES / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(CERTIFICATES / "ca.pem")

    def refuse(listening: socket.socket) -> None:
        accepted, _ = listening.accept()
        with context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as secured:
            with pytest.raises(ssl.SSLError):
                secured.do_handshake()
            # Closing with something unread would reset the connection, and the alert could be lost.
            while os.read(secured.fileno(), 1 << 16):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=refuse, args=[listening])
        thread.start()
        url = f"https://localhost:{listening.getsockname()[1]}/v1"
        error = failure(connection(tmp_path, url, TRUSTED.format(indented(CERTIFICATES / "ca.pem"))))
        thread.join()
    assert not error.is_transient
    assert error.hint is not None
    assert "client_cert" in error.hint
    assert "localhost" in error.message
