"""Keys are found everywhere in the JSON text of a log."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aigo_bridge.redaction.rules import redaction

LETTERS = string.ascii_letters + string.digits
KEYS = {
    "openai or anthropic key": "sk-proj-" + LETTERS,
    "aws access key id": "AKIA" + "A1B2C3D4E5F6G7H8",
    "google api key": "AIza" + LETTERS[:35],
    "github token": "ghp_" + LETTERS[:36],
    "github fine-grained token": "github_pat_" + LETTERS[:40],
    "gitlab token": "glpat-" + LETTERS[:20],
    "hugging face token": "hf_" + LETTERS[:30],
    "slack token": "xoxb-" + LETTERS[:20],
}
WORDS = ["", " ", "\n", "\t", "\r\n", "\b", "\f", "é", "\u2028", "😀", '"', "\\", "\\n", "=", "(", "key:\n"]


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("name", KEYS)
@given(before=st.sampled_from(WORDS), after=st.sampled_from([*WORDS[:-1], "."]), times=st.integers(0, 2))
def test_a_key_is_replaced_after_any_prefix(
    ascii_only: bool, name: str, before: str, after: str, times: int
) -> None:
    """Escapes such as `\\n` and `\\u00e9` end in letters that are not part of a word; nested JSON escapes twice."""
    text = f"words{before}{KEYS[name]}{after}words" if before else f"{KEYS[name]}{after}words"
    if not after:
        text = text.removesuffix("words")
    for _ in range(times):
        text = json.dumps(text, ensure_ascii=ascii_only)
    document = json.dumps({"text": text}, ensure_ascii=ascii_only).encode()
    found = redaction(environment={})

    done = found.json(document)

    assert KEYS[name].encode() not in done
    assert f"[redacted: {name}]" in json.loads(done)["text"]
    assert found.found == {name: 1}


@pytest.mark.parametrize("word", ["task-", "risk-", "desk-", "\task-", "\risk-", "xAKIA", "aghp_"])
def test_words_that_end_like_a_key_prefix_are_kept(word: str) -> None:
    """A tab followed by `ask-…`: the preceding letters decide, not the escape before them."""
    document = json.dumps(f"do {word}{LETTERS[:40].upper()}").encode()
    assert redaction(environment={}).json(document) == document


@pytest.mark.parametrize("slash", ["/", "\\/"])
def test_environment_value_with_escaped_slashes_is_redacted(slash: str) -> None:
    secret = "abc/def/ghi+jkl="
    found = redaction(environment={"MY_API_KEY": secret})
    done = found.json(b'{"text": "key ' + secret.replace("/", slash).encode() + b' end"}')
    assert json.loads(done)["text"] == "key [redacted: value of MY_API_KEY] end"


@pytest.mark.parametrize("before", ["id-", "tag_", "-", "_", "run-7-"])
def test_key_after_a_dash_is_redacted(before: str) -> None:
    """Ids and tags join keys to other text with dashes."""
    key = KEYS["openai or anthropic key"]
    done = redaction(environment={}).json(json.dumps({"id": before + key}).encode())
    assert json.loads(done) == {"id": f"{before}[redacted: openai or anthropic key]"}


ODD = 'ab-/"\\ \n\t\x01\x7féü\u2028😀+*.{}[]'
VALUES = st.text(ODD, min_size=12, max_size=20).filter(lambda text: len(text.strip()) >= 12)


@given(
    secret=VALUES,
    before=st.sampled_from(["", "x", '"', "\\", "\\\\", "\n", "é", "n"]),
    after=st.sampled_from(["", "x", '"', "\\", '\\"', "\n", "u00fc"]),
    spellings=st.lists(st.booleans(), min_size=1, max_size=4),
)
@example(secret='zq9!secret/with"quote\\and-ünïcode', before="", after="", spellings=[True, False])
def test_environment_value_is_redacted_in_every_json_spelling(
    secret: str, before: str, after: str, spellings: list[bool]
) -> None:
    """Also checks texts that are JSON themselves, such as tool call arguments."""
    name = "value of MY_API_KEY"
    found = redaction(environment={"MY_API_KEY": secret}, well_known=False)
    text = before + secret + after
    assert secret.strip() not in found.text(text)
    assert found.texts([text, "other"]) == [found.text(text), "other"]
    found.found.clear()
    for ascii_only in spellings:
        text = json.dumps(text, ensure_ascii=ascii_only)

    done = found.json(text.encode())

    assert f"[redacted: {name}]" in json.loads(done)
    assert found.found[name] >= 1
    assert secret.strip() not in json.loads(done)


@pytest.mark.parametrize("secret", ["é" * 5_000, '"' * 5_000, "a\n" * 3_000, "\\" * 5_000, "x" * 100_000])
def test_long_environment_value_is_redacted(secret: str) -> None:
    found = redaction(environment={"MY_SECRET": secret})
    done = found.json(json.dumps([f"<{secret}>"]).encode())
    assert json.loads(done) in (["<[redacted: value of MY_SECRET]>"], ["<[redacted: value of MY_SECRET]\n>"])


def test_variables_that_are_not_secrets_are_kept() -> None:
    environment = {
        "TOKENIZERS_PARALLELISM": "false",
        "MY_TOKEN": "  short  \n",
        "HOME": "/home/somebody-else",
    }
    data = json.dumps(["false", "  short  ", "/home/somebody-else", "\udcff"]).encode()
    found = redaction(environment={**environment, "BAD_SECRET": "not utf-8 \udcff\udcff\udcff"})
    assert found.json(data) is data


@pytest.mark.parametrize("name", KEYS)
def test_a_key_in_a_document_that_is_not_utf8_is_replaced(name: str) -> None:
    found = redaction(environment={})
    document = b'{"text":"\xe4\xff ' + KEYS[name].encode() + b' \xc3"}'
    assert found.json(document) == b'{"text":"\xe4\xff [redacted: ' + name.encode() + b'] \xc3"}'
    assert found.found == {name: 1}


def test_a_value_with_bytes_that_are_not_utf8_is_replaced() -> None:
    document = b'{"text":"API_KEY=\xe4\xff1234abcd"}'
    expected = b'{"text":"API_KEY=[redacted: value of a variable named like a secret]"}'
    assert redaction(environment={}).json(document) == expected
