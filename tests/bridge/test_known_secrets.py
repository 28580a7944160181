"""What the process knows to be secret is taken out however it is spelled; ordinary values are not taken for secrets."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aigo_bridge.secrets import (
    MASK,
    Redactor,
    environment_secrets,
    learn_arguments,
    learn_environment,
    redact,
    redact_error,
    redact_value,
)

KEY = "sk-live/9f8e7d6c+5b4a=\"ü\\'&<x>"


def all_escaped(text: str) -> str:
    """JSON as some writers have it: every character as an escape."""
    return "".join(f"\\u{ord(char):04x}" for char in text)


SPELLINGS = {
    "as it is": KEY,
    "json": json.dumps(KEY)[1:-1],
    "json, unicode": json.dumps(KEY, ensure_ascii=False)[1:-1],
    "json, slashes": json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "json in json": json.dumps(json.dumps({"error": KEY})),
    "json, all escaped": all_escaped(KEY),
    "json, escaped for pages": json.dumps(KEY)[1:-1]
    .replace("<", "\\u003c")
    .replace(">", "\\u003e")
    .replace("&", "\\u0026"),
    "python": repr({"key": KEY}),
    "html": html.escape(KEY),
    "address": quote(KEY),
    "query": quote(KEY, safe=""),
    "basic authorization": base64.b64encode(f"somebody:{KEY}".encode()).decode(),
    "url-safe base64": base64.urlsafe_b64encode(KEY.encode()).decode(),
}


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("before", ["", "x", "xy", "\\", "ß"])
def test_every_spelling_is_found(name: str, before: str) -> None:
    done = Redactor([KEY])(f"{before}{SPELLINGS[name]} is wrong")

    assert MASK in done
    assert done.endswith(" is wrong")
    assert "9f8e7d6c" not in done
    assert base64.b64encode(b"9f8e7d6c5b4a")[:10].decode() not in done


@settings(max_examples=20, deadline=None)
@given(secret=st.text(min_size=12, max_size=30), rest=st.lists(st.text()))
@example(secret='"}],"a":[{"b', rest=["x"])
@example(secret="123456789012", rest=[])
def test_a_document_stays_valid_and_keeps_its_keys(secret: str, rest: list[str]) -> None:
    document = json.dumps(
        {"samples": [{"num_completion_tokens": 123456789012, "text": secret}], "rest": rest}
    )

    done = json.loads(
        Redactor([secret, "num_completion_tokens"]).json(document.encode("utf-8", "surrogatepass"))
    )

    assert done["samples"][0]["num_completion_tokens"] == 123456789012
    assert len(done["rest"]) == len(rest)


def test_what_an_environment_has_of_secrets(tmp_path: Path) -> None:
    file = tmp_path / "service-account.json"
    file.touch()
    secrets = {
        "OPENAI_API_KEY": "sk-1234567890ab",
        "LOCAL_KEY": "key-of-the-test",
        "MY_TOKEN": " 0123456789abcdef\n",
        "DB_PASS": "correct horse battery",
        "HTTPS_PROXY": "http://me:s3cret%2Fproxy-word@proxy.example:3128",
    }
    harmless = {
        "TOKENIZERS_PARALLELISM": "false",
        "SECRET_COUNT": "1",
        "TEST_TOKEN": "test",
        "SHORT_KEY": "not-needed",
        "MAX_TOKENS": "100000000000",
        "TOKEN_SINCE": "2026-11-22T13:30:00",
        "FIELD_KEY": "num_completion_tokens",
        "TOKEN_URL": "https://login.example.com/oauth/token",
        "GOOGLE_APPLICATION_CREDENTIALS": str(file),
        "TOKENIZER": "meta-llama/Llama-3.1-8B-Instruct",
        "HOME": "/home/somebody-with-a-long-name",
        "BAD_SECRET": "not utf-8 \udcff\udcff\udcff",
    }

    found = environment_secrets({**secrets, **harmless})

    assert set(found) == {
        "sk-1234567890ab", "key-of-the-test", "0123456789abcdef", "correct horse battery",
        "s3cret%2Fproxy-word", "s3cret/proxy-word",
    }  # fmt: skip
    assert Redactor(found)(" ".join(harmless.values())) == " ".join(harmless.values())


def test_what_is_learned_is_hidden_everywhere() -> None:
    assert redact("the password is 'hunter2-hunter2'") == "the password is 'hunter2-hunter2'"
    learn_environment({"SITE_PASSWORD": "hunter2-hunter2"})
    learn_arguments({"api_key": "abcdefgh-1234", "base_url": "http://127.0.0.1:1/v1"})

    assert redact("the password is 'hunter2-hunter2'") == f"the password is '{MASK}'"
    assert redact_value({"error": ["abcdefgh-1234", 1, None], "hunter2-hunter2": (True,)}) == {
        "error": [MASK, 1, None],
        MASK: (True,),
    }


def test_an_exception_and_what_it_came_from() -> None:
    learn_environment({"MY_API_KEY": "abcdefgh-1234"})

    class StatusError(Exception):
        def __init__(self, message: str, body: object):
            super().__init__(message)
            self.message, self.body, self.status_code = message, body, 429

    caught = StatusError("wrong key abcdefgh-1234", {"error": {"key": "abcdefgh-1234"}})
    caught.__cause__ = ValueError("inner abcdefgh-1234")

    redact_error(caught)

    assert str(caught) == caught.message == f"wrong key {MASK}"
    assert caught.body == {"error": {"key": MASK}}
    assert caught.status_code == 429
    assert str(caught.__cause__) == f"inner {MASK}"


def test_an_exception_that_cannot_be_changed_is_left_out_of_the_chain() -> None:
    """Its text is made anew each time, from what it does not let go."""
    learn_environment({"MY_API_KEY": "abcdefgh-1234"})

    class StubbornError(Exception):
        def __str__(self) -> str:
            return "abcdefgh-1234"

    error = RuntimeError("outer")
    error.__cause__ = StubbornError()

    redact_error(error)

    assert error.__cause__ is None
