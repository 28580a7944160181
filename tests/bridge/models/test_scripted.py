"""Rules of the scripted model: every feature, and every mistake with its line."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import SpecError
from aigo_bridge.models.scripted import Script, ScriptedReply, ScriptedToolCall, load_script

CHAT = [
    ("system", "Be brief."),
    ("user", "Capital of France?"),
    ("assistant", "Paris"),
    ("user", "And of Spain?"),
]


def script(path: Path, *rules: object) -> Script:
    path = path / "rules.jsonl"
    path.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    return load_script(path)


def faults(path: Path, *lines: str) -> list[tuple[int | None, str]]:
    path = path / "rules.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_script(path)
    assert all(issue.file == str(path) for issue in caught.value.issues)
    return [(issue.line, issue.message) for issue in caught.value.issues]


@pytest.mark.parametrize(
    "match",
    [
        {"exact": "And of Spain?"},
        {"contains": "Spain"},
        {"regex": "(?i)^and OF"},
        {"regex": "of.Spain\\?$"},
        {"exact": "And of Spain?", "on": "last"},
        {"exact": "And of Spain?", "on": "user"},
        {"exact": "Be brief.", "on": "system"},
        {"contains": "user: Capital of France?\nassistant: Paris\nuser: And", "on": "all"},
        {"regex": "system.*Paris", "on": "all"},
    ],
)
def test_rule_matches_its_messages(tmp_path: Path, match: dict[str, str]) -> None:
    assert script(tmp_path, {"match": match, "reply": "yes"}).reply(CHAT).text == "yes"


@pytest.mark.parametrize(
    "match",
    [
        {"exact": "and of spain?"},
        {"exact": "And of Spain"},
        {"contains": "France"},
        {"regex": "^of"},
        {"contains": "Paris", "on": "user"},
        {"contains": "Spain", "on": "system"},
    ],
)
def test_rule_does_not_match_other_messages(tmp_path: Path, match: dict[str, str]) -> None:
    reply = script(tmp_path, {"match": match, "reply": "yes"}).reply(CHAT)
    assert reply.error is not None
    assert reply.error.startswith("no rule of rules.jsonl matches the messages")
    assert "'And of Spain?'" in reply.error


def test_empty_conversation_is_answered(tmp_path: Path) -> None:
    assert script(tmp_path, {"match": {"exact": ""}, "reply": "hm"}).reply([]).text == "hm"


def test_first_matching_rule_answers(tmp_path: Path) -> None:
    rules = script(
        tmp_path,
        {"match": {"contains": "Spain"}, "times": 2, "reply": {"error": "busy", "status": 503}},
        {"match": {"contains": "Spain"}, "reply": "Madrid"},
        {"default": True, "reply": "?"},
    )
    assert [rules.reply(CHAT).error or rules.reply(CHAT).text for _ in range(1)] == ["busy"]
    assert [rules.reply(CHAT).error for _ in range(2)] == ["busy", None]
    assert rules.reply(CHAT).text == "Madrid"
    assert rules.reply([("user", "else")]).text == "?"


def test_limited_rule_answers_exactly_its_times_across_threads(tmp_path: Path) -> None:
    rules = script(tmp_path, {"default": True, "times": 50, "reply": "a"}, {"default": True, "reply": "b"})
    seen: list[str] = []
    threads = [
        threading.Thread(target=lambda: seen.extend(rules.reply(CHAT).text for _ in range(25)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (seen.count("a"), seen.count("b")) == (50, 150)


def test_reply_can_set_every_field(tmp_path: Path) -> None:
    reply = {
        "text": "It is sunny.",
        "reasoning": "Looked out.",
        "tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "c1"}, {"name": "now"}],
        "usage": {"input_tokens": 7, "output_tokens": 0},
        "logprobs": [{"token": "It", "logprob": -0.5}, {"token": " is", "logprob": 0}],
        "stop_reason": "max_tokens",
        "refusal": True,
        "delay": 0.5,
    }
    assert script(tmp_path, {"default": True, "reply": reply}).reply(CHAT) == ScriptedReply(
        text="It is sunny.",
        reasoning="Looked out.",
        tool_calls=(ScriptedToolCall("weather", {"city": "Oslo"}, "c1"), ScriptedToolCall("now", {})),
        input_tokens=7,
        output_tokens=0,
        logprobs=(("It", -0.5), (" is", 0.0)),
        stop_reason="max_tokens",
        refusal=True,
        delay=0.5,
    )


def test_tool_calls_set_the_default_stop_reason(tmp_path: Path) -> None:
    reply = {"tool_calls": [{"name": "now"}]}
    assert script(tmp_path, {"default": True, "reply": reply}).reply(CHAT).stop_reason == "tool_calls"


def test_error_reply_has_its_status(tmp_path: Path) -> None:
    reply = script(tmp_path, {"default": True, "reply": {"error": "slow down", "status": 429}}).reply(CHAT)
    assert (reply.error, reply.status) == ("slow down", 429)


@given(st.text(), st.text())
def test_any_text_is_matched_and_returned_unchanged(
    tmp_path_factory: pytest.TempPathFactory, question: str, answer: str
) -> None:
    folder = tmp_path_factory.mktemp("script")
    path = folder / "rules.jsonl"
    # Unescaped, as people write it: Unicode line separators occur in the middle of a line.
    rule = {"match": {"exact": question}, "reply": {"text": answer}}
    path.write_text(json.dumps(rule, ensure_ascii=False) + "\r\n", encoding="utf-8", newline="")
    assert load_script(path).reply([("user", question)]).text == answer


def test_a_byte_order_mark_and_blank_lines_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'\xef\xbb\xbf\r\n{"default": true, "reply": "x"}\r\n\r\n')
    assert load_script(path).reply(CHAT).text == "x"


GOOD = '{"default": true, "reply": "x"}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes at column 2"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "found list, expected a JSON object"),
        ("{}", 'a rule needs either "match": {…} or "default": true'),
        ('{"default": false, "reply": "x"}', 'a rule needs either "match"'),
        ('{"default": true, "match": {"exact": "x"}, "reply": "x"}', 'a rule needs either "match"'),
        ('{"match": "x", "reply": "x"}', 'a rule needs either "match"'),
        ('{"default": true, "replay": "x", "reply": "x"}', "unknown key 'replay' (did you mean 'reply'?)"),
        ('{"default": true}', "reply: found nothing, expected a string or an object"),
        ('{"default": true, "reply": 4}', "reply: found 4, expected a string or an object"),
        ('{"default": true, "reply": "a", "reply": "b"}', "key 'reply' is given twice"),
        ('{"default": true, "reply": "\\ud800"}', "half of a surrogate pair"),
        (
            '{"default": true, "times": 0, "reply": "x"}',
            "times: found 0, expected a whole number of at least 1",
        ),
        ('{"default": true, "times": true, "reply": "x"}', "times: found True"),
        ('{"default": true, "times": 1.5, "reply": "x"}', "times: found 1.5"),
        (
            '{"match": {}, "reply": "x"}',
            "match: expected exactly one of exact, contains, regex with a string",
        ),
        ('{"match": {"exact": "a", "regex": "b"}, "reply": "x"}', "match: expected exactly one of"),
        ('{"match": {"exact": 4}, "reply": "x"}', "match: expected exactly one of"),
        ('{"match": {"regex": "("}, "reply": "x"}', "match.regex: missing ), unterminated subpattern"),
        (
            '{"match": {"exact": "a", "on": "first"}, "reply": "x"}',
            "match.on: found 'first', expected one of last",
        ),
        ('{"match": {"exakt": "a"}, "reply": "x"}', "match: unknown key 'exakt' (did you mean 'exact'?)"),
        ('{"default": true, "reply": {"txt": "a"}}', "reply: unknown key 'txt' (did you mean 'text'?)"),
        ('{"default": true, "reply": {"text": 4}}', "reply.text: found 4, expected a string"),
        ('{"default": true, "reply": {"delay": -1}}', "reply.delay: found -1, expected seconds from 0"),
        ('{"default": true, "reply": {"delay": NaN}}', "reply.delay: found nan"),
        ('{"default": true, "reply": {"delay": 1e999}}', "reply.delay: found inf"),
        (f'{{"default": true, "reply": {{"delay": 1{"0" * 400}}}}}', "reply.delay: found 1000"),
        ('{"default": true, "reply": {"delay": true}}', "reply.delay: found True, expected seconds"),
        ('{"default": true, "reply": {"refusal": 1}}', "reply.refusal: found 1, expected true or false"),
        ('{"default": true, "reply": {"stop_reason": "end"}}', "reply.stop_reason: found 'end'"),
        (
            '{"default": true, "reply": {"status": 500}}',
            "reply.status: only allowed together with reply.error",
        ),
        ('{"default": true, "reply": {"error": "e", "status": 200}}', "reply.status: found 200"),
        ('{"default": true, "reply": {"usage": 3}}', "reply.usage: found 3"),
        ('{"default": true, "reply": {"usage": {"input_tokens": -1}}}', "reply.usage.input_tokens: found -1"),
        ('{"default": true, "reply": {"usage": {"tokens": 1}}}', "reply.usage: unknown key 'tokens'"),
        (
            '{"default": true, "reply": {"tool_calls": [{}]}}',
            "reply.tool_calls[0]: expected an object with a name",
        ),
        (
            '{"default": true, "reply": {"tool_calls": [{"name": "f", "arguments": "{}"}]}}',
            "tool_calls[0].arguments",
        ),
        ('{"default": true, "reply": {"tool_calls": [{"name": "f", "id": 1}]}}', "tool_calls[0].id: found 1"),
        ('{"default": true, "reply": {"tool_calls": [{"name": "f", "args": {}}]}}', "unknown key 'args'"),
        (
            '{"default": true, "reply": {"logprobs": [{"token": "a"}]}}',
            "reply.logprobs[0]: expected an object",
        ),
        ('{"default": true, "reply": {"logprobs": [{"token": "a", "logprob": true}]}}', "reply.logprobs[0]"),
        ('{"default": true, "reply": {"logprobs": [{"token": "a", "logprob": 0.5}]}}', "reply.logprobs[0]"),
        ('{"default": true, "reply": {"logprobs": [{"token": "a", "logprob": NaN}]}}', "reply.logprobs[0]"),
    ],
)
def test_a_malformed_rule_is_reported_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    found = faults(tmp_path, GOOD, "", line)
    assert {number for number, _ in found} == {3}
    assert any(message in text for _, text in found)


def test_all_mistakes_are_reported_together(tmp_path: Path) -> None:
    found = faults(tmp_path, "{", GOOD, '{"times": 0, "reply": {"status": "x", "text": 1}}', "4")
    assert [line for line, _ in found] == [1, 3, 3, 3, 3, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rules found, expected one JSON object per line"),
        (b"\n \n", "no rules found"),
        (b"\xff\xfe", "the scripted model's rules are not UTF-8 text"),
        (None, "cannot read the scripted model's rules: No such file or directory"),
    ],
)
def test_files_without_rules_are_reported(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "rules.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SpecError, match=message):
        load_script(path)


def test_a_long_last_message_is_shortened(tmp_path: Path) -> None:
    rules: Any = {"match": {"exact": "a"}, "reply": "b"}
    assert len(script(tmp_path, rules).reply([("user", "x" * 100_000)]).error or "") < 400


def test_number_with_too_many_digits_is_reported_with_its_line(tmp_path: Path) -> None:
    ((line, message),) = faults(tmp_path, '{"reply": ' + "9" * 5000 + "}")
    assert line == 1
    assert message.startswith("not JSON that can be read")
