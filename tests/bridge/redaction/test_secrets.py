"""Known secrets are masked in every spelling, and ordinary values are kept."""

from __future__ import annotations

import base64
import html
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aigo_bridge.redaction.rules import redaction
from aigo_bridge.redaction.secrets import (
    MASK,
    SHORTEST,
    Redactor,
    environment_secrets,
    learn_arguments,
    learn_environment,
    redact,
    redact_error,
    redact_on_screen,
    redact_value,
)

KEY = "sk-live/9f8e7d6c+5b4a=\"ü\\'&<x>"


def all_escaped(text: str) -> str:
    """Return JSON with every character as an escape, as some writers produce it."""
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
    "hexadecimal": KEY.encode().hex(),
    "address, all escaped": "".join(f"%{byte:02X}" for byte in KEY.encode()),
    "address, lower case": quote(KEY, safe="").lower().replace("zq9x", "Zq9x"),
    "address in an address": quote(quote(KEY, safe=""), safe=""),
    "html, all escaped": "".join(f"&#{ord(char)};" for char in KEY),
    "html, hexadecimal": "".join(f"&#x{ord(char):x};" for char in KEY),
    "python, all escaped": "".join(f"\\x{ord(char):02x}" for char in KEY),
    "html in json, all escaped": all_escaped("".join(f"&#{ord(char)};" for char in KEY)),
    "base64 in an address": quote(base64.b64encode(f"me:{KEY}".encode()).decode(), safe=""),
    "every second letter escaped": "".join(
        char if at % 2 else f"\\u{ord(char):04x}" for at, char in enumerate(KEY)
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("before", ["", "x", "xy", "\\", "ß"])
def test_every_spelling_of_a_secret_is_masked(name: str, before: str) -> None:
    done = Redactor([KEY]).text(f"{before}{SPELLINGS[name]} is wrong")

    assert MASK in done
    assert done.endswith(" is wrong")
    assert "9f8e7d6c" not in done
    assert base64.b64encode(b"9f8e7d6c5b4a")[:10].decode() not in done


@settings(max_examples=20, deadline=None)
@given(secret=st.text(min_size=12, max_size=30), rest=st.lists(st.text()))
@example(secret='"}],"a":[{"b', rest=["x"])
@example(secret="123456789012", rest=[])
def test_masked_document_is_valid_and_keeps_its_keys(secret: str, rest: list[str]) -> None:
    document = json.dumps(
        {"samples": [{"num_completion_tokens": 123456789012, "text": secret}], "rest": rest}
    )

    done = json.loads(
        Redactor([secret, "num_completion_tokens"]).json(document.encode("utf-8", "surrogatepass"))
    )

    assert done["samples"][0]["num_completion_tokens"] == 123456789012
    assert len(done["rest"]) == len(rest)


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nested_json_with_a_masked_secret_is_valid(name: str, depth: int) -> None:
    document: object = {"text": f"before {SPELLINGS[name]} after", "n": 1}
    for _ in range(depth):
        document = {"inner": json.dumps(document), "rest": ["x", 2.50]}

    done = Redactor([KEY]).json(json.dumps(document).encode())

    inner: object = json.loads(done)
    for _ in range(depth):
        assert isinstance(inner, dict)
        assert inner["rest"] == ["x", 2.5]
        inner = json.loads(inner["inner"])
    assert isinstance(inner, dict)
    assert MASK in inner["text"]
    assert inner["text"].startswith("before ")
    assert inner["text"].endswith(" after")
    assert "9f8e7d6c" not in inner["text"]


def test_secret_across_several_texts_is_not_masked() -> None:
    """The quotes that end a text are never part of a secret."""
    document = {"a": "x abc\\", "defghijk": '%41bc"', "b": "%64efghijk"}

    text = json.dumps(document).encode()

    assert Redactor(['abc"defghijk', 'bc", "b": "defghijk', 'abc", "defghijk']).json(text) == text


@given(st.text(min_size=SHORTEST), st.text(), st.text())
def test_no_json_form_of_a_secret_remains(secret: str, before: str, after: str) -> None:
    mask = Redactor([secret]).text
    for shown in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        assert secret not in mask(before + shown + after).replace(MASK, "") or secret in (before + after)
    assert json.loads(mask(json.dumps({"echo": secret, "n": 1})))["n"] == 1


@given(st.text(max_size=SHORTEST - 1), st.text())
def test_short_values_are_not_masked(short: str, text: str) -> None:
    assert Redactor([short]).text(text) == text


def test_secret_contained_in_another_is_masked_completely() -> None:
    assert (
        Redactor(["abcdefgh-ijkl", "abcdefgh-ijkl-mnop"]).text("abcdefgh-ijkl-mnop abcdefgh-ijkl")
        == f"{MASK} {MASK}"
    )


def test_secret_wrapped_across_terminal_lines_is_masked() -> None:
    learn_environment({"MY_API_KEY": "abcdefgh-1234-ijklmnop"})

    shown = "│ refused: abcdefgh-12 │\n│ 34-ijklm             │\n│ nop, \x1b[1mtry again │\n"

    assert redact_on_screen(shown) == f"│ refused: {MASK}, \x1b[1mtry again │\n"


def test_secret_is_masked_in_texts_but_not_in_field_names() -> None:
    document = {
        "correcthorsebattery": "it is correcthorsebattery",
        "123456789013": [123456789013, "123456789013"],
    }

    done = Redactor(["correcthorsebattery", "123456789013"]).json(json.dumps(document).encode())

    assert json.loads(done) == {"correcthorsebattery": f"it is {MASK}", "123456789013": [123456789013, MASK]}


PEM = "\n".join(
    [
        "-----BEGIN PRIVATE KEY-----",
        "MIIEvQIBADANBgkqhkiG9w0B",
        "AQEFAASCBKcwggSjAgEAAoIB",
        "-----END PRIVATE KEY-----",
    ]
)


@pytest.mark.parametrize(
    "shown",
    [
        PEM,
        json.dumps(PEM),
        "MIIEvQIBADANBgkqhkiG9w0B",
        PEM.replace("\n", "\r\n"),
        PEM.replace("\n", ""),
        PEM.replace("\n", "\n    "),
        base64.b64encode(PEM.encode()).decode(),
    ],
)
def test_every_line_of_a_multi_line_key_is_masked(shown: str) -> None:
    done = Redactor([f"\n{PEM}\n"]).text(f"x {shown} y")

    assert "BADANBgkqhk" not in done
    assert "ASCBKcwgg" not in done
    assert base64.b64encode(b"MIIEvQIBADAN").decode()[2:-2] not in done
    assert done.startswith("x ")
    assert done.endswith(" y")


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("A_TOKEN", "h8Kq2mZx", ["h8Kq2mZx"]),
        ("A_TOKEN", "h8Kq2mZ", []),
        ("A_TOKEN", "required", []),
        ("A_TOKEN", "zqxwvjkpmbtrnygh", ["zqxwvjkpmbtrnygh"]),
        ("A_TOKEN", "Bearer 0a1b2c3d4e5f", ["Bearer 0a1b2c3d4e5f"]),
        ("MYSQL_PWD", "hunter2!", ["hunter2!"]),
        ("PWD", "/home/some0ne/else", []),
        ("A_AUTH", "Basic " + base64.b64encode(b"me:pa55w0rd").decode(), ["me:pa55w0rd", "pa55w0rd"]),
        ("A_URL", "https://h.example/?sig=ab12cd34ef56&v=2024-05-06", ["ab12cd34ef56"]),
        ("A_URL", "https://ghp0a1b2c3d4e5@h.example/x.git", ["ghp0a1b2c3d4e5"]),
        ("A_CREDENTIALS", json.dumps({"type": "x", "private_key": PEM}), [PEM]),
    ],
)
def test_environment_values_that_look_like_secrets_are_found(
    name: str, value: str, hidden: list[str]
) -> None:
    found = set(environment_secrets({name: value}))

    assert found - {value} == set(hidden) - {value}
    assert (value in hidden) <= (value in found)
    assert bool(found) == bool(hidden)


@pytest.mark.parametrize("key", ["correcthorse", "hunter22", "00112233", "Aaaaaaaaaaaaaaaa"])
def test_argument_used_as_a_key_is_masked(key: str) -> None:
    learn_arguments({"client_args": {"default_headers": {"X-Auth": key}}})
    assert redact(f"<{key}>") == f"<{MASK}>"


@pytest.mark.parametrize("key", ["none", "not-needed", "no-key", "lm-studio", "EMPTY", "dummykey"])
def test_placeholder_key_is_not_masked(key: str) -> None:
    learn_arguments({"api_key": key})
    assert redact(f"<{key}>") == f"<{key}>"


def test_text_of_only_escapes_is_masked_in_linear_time() -> None:
    """The cost is linear in the length, because escapes are not compared in pairs."""
    learn_environment({"MY_API_KEY": "abcdefgh-1234-ijklmnop"})
    text = "\\u0061%61&#97;" * 20_000

    assert redact(text) is text


def test_secrets_in_the_environment_are_found(tmp_path: Path) -> None:
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
        "s3cret%2Fproxy-word", "s3cret/proxy-word", "me:s3cret%2Fproxy-word", "me:s3cret/proxy-word",
    }  # fmt: skip
    assert Redactor(found).text(" ".join(harmless.values())) == " ".join(harmless.values())


def test_learned_secrets_are_masked_everywhere() -> None:
    assert redact("the password is 'hunter2-hunter2'") == "the password is 'hunter2-hunter2'"
    learn_environment({"SITE_PASSWORD": "hunter2-hunter2"})
    learn_arguments({"api_key": "abcdefgh-1234", "base_url": "http://127.0.0.1:1/v1"})

    assert redact("the password is 'hunter2-hunter2'") == f"the password is '{MASK}'"
    assert redact_value({"error": ["abcdefgh-1234", 1, None], "hunter2-hunter2": (True,)}) == {
        "error": [MASK, 1, None],
        MASK: (True,),
    }


def test_exception_and_its_cause_are_masked() -> None:
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


def test_unchangeable_exception_is_removed_from_the_chain() -> None:
    """Its text is recomputed on every access and cannot be replaced."""
    learn_environment({"MY_API_KEY": "abcdefgh-1234"})

    class StubbornError(Exception):
        def __str__(self) -> str:
            return "abcdefgh-1234"

    error = RuntimeError("outer")
    error.__cause__ = StubbornError()

    redact_error(error)

    assert error.__cause__ is None


@dataclass(frozen=True)
class Reply:
    text: str
    parts: tuple[object, ...] = ()


def test_texts_in_frozen_dataclasses_are_masked() -> None:
    redactor = Redactor([KEY])
    clean = Reply("plain", (Reply("x"), 1))

    assert redactor.value(clean) is clean
    assert redactor.value((Reply("x", (Reply(f"<{KEY}>"),)), 2)) == (Reply("x", (Reply(f"<{MASK}>"),)), 2)


def test_values_of_secret_settings_are_masked_and_counted() -> None:
    redactor = Redactor()
    settings: dict[str, object] = {
        "args": [{"api_key": "not-in-any-format", "eos_token": "</s>", "model": "m"}],
        "Token": 5,
    }

    assert redactor.settings(settings) == {
        "args": [{"api_key": "[redacted: value of api_key]", "eos_token": "</s>", "model": "m"}],
        "Token": 5,
    }
    assert redactor.found == {"value of api_key": 1}


def test_secret_of_digits_is_masked_as_a_whole_number() -> None:
    redactor = redaction(environment={"MY_API_KEY": "123456789013"}, well_known=False)
    documents = [b'{"a":[5123456789013,1.5],"b":"x"}', b'{"123456789013":true}']

    clean = json.loads(b"[" + redactor.joined(documents) + b"]")

    assert clean == [
        {"a": ["5[redacted: value of MY_API_KEY]", 1.5], "b": "x"},
        {"[redacted: value of MY_API_KEY]": True},
    ]
    assert redactor.found == {"value of MY_API_KEY": 2}
    document: object = {"a": 123456789013}
    assert redactor.value(document) == {"a": "[redacted: value of MY_API_KEY]"}


def test_secret_in_invalid_unicode_is_masked() -> None:
    redactor = Redactor(["grüße-12345678"])
    assert redactor.text("\udcff <grüße-12345678>") == f"\udcff <{MASK}>"
    assert redactor.json('"\udcff grüße-12345678"'.encode("utf-8", "surrogateescape")) == b'"\xff [secret]"'
    assert redactor.value(b"\xff <" + "grüße-12345678".encode() + b">") == b"\xff <" + MASK.encode() + b">"
