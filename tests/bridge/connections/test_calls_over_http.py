"""A connection against a real server on 127.0.0.1: what is sent, what comes back, what goes wrong."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.endpoint import Endpoint, Raw, completion, delta, events

from aigo_bridge.connections import Answered, CallError, CallInput, Connection, ConnectionSettings, load_model

CERTIFICATES = Path(__file__).parents[2] / "adapters" / "inspect" / "models" / "certificates"
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


def call(made: Connection, given: CallInput = CHAT) -> Answered:
    async def once() -> Answered:
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


def test_what_is_sent_and_what_comes_back(tmp_path: Path, endpoint: Endpoint) -> None:
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


def test_headers_of_the_file_come_before_ours(tmp_path: Path, endpoint: Endpoint) -> None:
    more = "  custom_headers: {Authorization: Basic abc, Content-Type: application/vnd.x+json}\n"
    call(connection(tmp_path, endpoint.url, more))
    assert endpoint.headers[0]["authorization"] == "Basic abc"
    assert endpoint.headers[0]["content-type"] == "application/vnd.x+json"


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_statuses_after_which_it_is_tried_again(tmp_path: Path, endpoint: Endpoint, status: int) -> None:
    endpoint.answer = lambda _: (status, {"error": {"message": "later"}})
    error = failure(connection(tmp_path, endpoint.url))
    assert error.is_transient
    assert error.kind == ("rate_limit" if status == 429 else "transient")
    assert error.message == f"model 'm': the endpoint answered {status}: later"
    assert error.status_code == status


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_statuses_that_are_final(tmp_path: Path, endpoint: Endpoint, status: int) -> None:
    endpoint.answer = lambda _: (status, {"error": {"message": "never"}})
    error = failure(connection(tmp_path, endpoint.url))
    assert error.kind == "refused"
    assert f"{status}: never" in error.message


def test_an_adapter_that_hides_what_the_endpoint_said_does_not_hide_it(
    tmp_path: Path, endpoint: Endpoint
) -> None:
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
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_the_endpoint_asks_to_wait(
    tmp_path: Path, endpoint: Endpoint, headers: dict[str, str], seconds: float | None
) -> None:
    endpoint.answer = lambda _: Raw((b"busy",), status=503, headers=headers)
    assert failure(connection(tmp_path, endpoint.url)).retry_after == seconds


def test_a_date_to_wait_for(tmp_path: Path, endpoint: Endpoint) -> None:
    date = formatdate(time.time() + 30, usegmt=True)
    endpoint.answer = lambda _: Raw((b"",), status=429, headers={"Retry-After": date})
    asked = failure(connection(tmp_path, endpoint.url)).retry_after
    assert asked is not None
    assert 25 < asked <= 30


def test_redirections_are_not_followed(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: Raw((b"",), status=307, headers={"Location": "http://elsewhere.invalid/"})
    error = failure(connection(tmp_path, endpoint.url))
    assert "307, a redirection" in error.message
    assert len(endpoint.requests) == 1


def test_a_response_without_end_is_given_up(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aigo_bridge.connections.endpoint.MOST_BYTES", 1_000_000)
    endpoint.answer = lambda _: Raw((b"x" * 100_000,) * 100)
    error = failure(connection(tmp_path, endpoint.url))
    assert "the response is longer than" in error.message
    assert not error.is_transient


def test_half_a_surrogate_pair_is_not_sent(tmp_path: Path, endpoint: Endpoint) -> None:
    error = failure(
        connection(tmp_path, endpoint.url), CallInput({"messages": [{"role": "user", "content": "\ud800"}]})
    )
    assert "half of a surrogate pair" in error.message
    error = failure(
        connection(tmp_path, endpoint.url), CallInput({"messages": []}, {"temperature": float("nan")})
    )
    assert error.kind == "invalid"
    assert endpoint.requests == []


def test_nobody_listens(tmp_path: Path, endpoint: Endpoint) -> None:
    other = Endpoint()
    other.start()
    url = other.url
    other.stop()
    error = failure(connection(tmp_path, url))
    assert error.is_transient
    assert "cannot connect to 127.0.0.1:" in error.message


def test_an_endpoint_that_is_silent(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: Raw((b"{}",), delay=0.6)
    error = failure(connection(tmp_path, endpoint.url, settings=ConnectionSettings(read_seconds=0.1)))
    assert error.is_transient
    assert error.message == "model 'm': the endpoint was silent for 0.1 s"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"choices": [', b"\xff\xfe\x00", b"null", b'{"choices": [{}]}']
)
def test_bodies_that_are_no_answer(tmp_path: Path, endpoint: Endpoint, body: bytes) -> None:
    endpoint.answer = lambda _: Raw((body,))
    error = failure(connection(tmp_path, endpoint.url))
    assert error.kind == "invalid"
    assert error.message.startswith("model 'm': ")
    if body != b"\xff\xfe\x00":  # which is no text to be shown
        began = f"the response begins {body.decode()!r}" if body else "the response is empty"
        assert began in error.message


def test_a_long_body_that_is_no_answer_is_shown_in_part(tmp_path: Path, endpoint: Endpoint) -> None:
    """A secret that would be cut in two is masked before."""
    page = "<html>" + "x" * 185 + SECRET + "y" * 10_000
    endpoint.answer = lambda _: Raw((page.encode(),))
    error = failure(connection(tmp_path, endpoint.url))
    assert f"(the response begins {'<html>' + 'x' * 185 + '[secret]y…'!r})" in error.message
    assert SECRET[:8] not in error.message


def test_streams(tmp_path: Path, endpoint: Endpoint) -> None:
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
def test_half_an_answer_is_none(tmp_path: Path, endpoint: Endpoint, raw: Raw) -> None:
    endpoint.answer = lambda _: raw
    assert failure(connection(tmp_path, endpoint.url)).is_transient


def test_a_secret_that_is_repeated_is_masked(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: (200, completion(f"your key is {SECRET}"))
    answered = call(connection(tmp_path, endpoint.url))
    assert answered.reply.choices[0].text == "your key is [secret]"
    assert SECRET not in repr(answered)
    endpoint.answer = lambda _: (401, {"error": {"message": f"wrong key {SECRET}"}})
    assert "wrong key [secret]" in failure(connection(tmp_path, endpoint.url)).message


def test_embeddings_and_what_is_none_of_their_input(tmp_path: Path, endpoint: Endpoint) -> None:
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


def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    endpoint = server()
    error = failure(connection(tmp_path, endpoint.url))
    endpoint.stop()
    assert "CERTIFICATE_VERIFY_FAILED" in error.message
    assert not error.is_transient
    assert error.hint is not None
    assert "trusted_ca" in error.hint
    assert endpoint.requests == []


def test_an_authority_of_ones_own(tmp_path: Path) -> None:
    endpoint = server()
    more = TRUSTED.format(indented(CERTIFICATES / "ca.pem"))
    assert call(connection(tmp_path, endpoint.url, more)).reply.choices[0].text == "ok"
    endpoint.stop()


def test_an_authority_in_base64(tmp_path: Path) -> None:
    import base64

    endpoint = server()
    coded = base64.b64encode((CERTIFICATES / "ca.pem").read_bytes()).decode()
    more = f"  tls_context: {{validation_context: {{trusted_ca: {coded}, trust_chain_verification: verify_trust_chain}}}}\n"
    assert call(connection(tmp_path, endpoint.url, more)).reply.choices[0].text == "ok"
    endpoint.stop()


def test_accepting_anybody(tmp_path: Path) -> None:
    endpoint = server()
    more = "  tls_context: {validation_context: {trust_chain_verification: accept_untrusted}}\n"
    assert call(connection(tmp_path, endpoint.url, more)).reply.choices[0].text == "ok"
    endpoint.stop()


def test_showing_a_certificate(tmp_path: Path) -> None:
    endpoint = server(wants_client=True)
    more = TRUSTED.format(indented(CERTIFICATES / "ca.pem"))
    with_it = ConnectionSettings(client_cert=str(CERTIFICATES / "client.pem"))
    assert call(connection(tmp_path, endpoint.url, more, with_it)).reply.choices[0].text == "ok"
    # Whether the server's alert or the end of the connection is seen first is a matter of chance.
    failure(connection(tmp_path, endpoint.url, more))
    endpoint.stop()
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_wants_a_certificate_is_not_asked_again(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """Its alert comes while connecting up to TLS 1.2 and in place of the response since."""
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
