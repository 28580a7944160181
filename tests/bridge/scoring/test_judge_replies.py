"""Reading a judge's reply: a verdict is accepted only if it is unambiguous."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.scoring.judge_replies import UnreadableReplyError, canonical, read_label, read_number

pytestmark = pytest.mark.usefixtures("own_heap")

LABELS = ("correct", "incorrect")


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ('{"prediction": "correct"}', "correct"),
        ('{"label": "incorrect"}', "incorrect"),
        ('```json\n{"prediction": "correct", "reasoning": "same"}\n```', "correct"),
        ('Let me think.\n\n{"prediction": "incorrect"}\nThat is all.', "incorrect"),
        ('{"result": {"prediction": "correct"}}', "correct"),
        ('{"steps": ["a { b"], "x": {}} {"prediction": "correct"}', "correct"),
        ("correct", "correct"),
        ("  Correct.\n", "Correct"),
        ("**incorrect**", "incorrect"),
        ("`correct`", "correct"),
        ('"INCORRECT"!', "INCORRECT"),
        ('{"prediction": "Correct "} and again {"prediction": "correct"}', "correct"),
        ('{"prediction": "maybe"}', "maybe"),
        ('{"prediction": true}', "true"),
        ('{"prediction": 1.0}', "1"),
        ('{"prediction": 7}', "7"),
    ],
)
def test_label_is_read_from_a_reply(reply: str, label: str) -> None:
    assert read_label(reply, LABELS).value == label


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("It is correct, I think", "neither JSON with a prediction nor one of 'correct', 'incorrect'"),
        ("maybe", "nor one of"),
        ('{"prediction": null}', "its prediction is None, expected a label"),
        ('{"prediction": ["correct"]}', "expected a label"),
        ('{"prediction": "  "}', "expected a label"),
        ('{"prediction": "correct', "neither JSON"),
        ("[" * 100_000, "neither JSON"),
        (
            'First I thought {"prediction": "correct"} but it is {"prediction": "incorrect"}',
            "it contains several verdicts",
        ),
    ],
)
def test_reply_without_exactly_one_label_is_unreadable(reply: str, reason: str) -> None:
    with pytest.raises(UnreadableReplyError, match=reason.replace("[", r"\[")):
        read_label(reply, LABELS)


def test_whole_reply_is_the_label_if_labels_are_unknown() -> None:
    assert read_label("  deutsch \n", ()).value == "deutsch"


def test_truncated_json_is_not_a_label() -> None:
    with pytest.raises(UnreadableReplyError):
        read_label('{"reasoning": "it is written in', ())


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ('{"score": 4}', 4.0),
        ('{"score": "0.25", "reasoning": "of 3 points …"}', 0.25),
        ('```json\n{"score": -1e-3}\n```', -0.001),
        ("4", 4.0),
        ("Score: 3.5.", 3.5),
        ("**.5**", 0.5),
        ("I give it a 2, no more", 2.0),
        ("+7", 7.0),
        ('{"score": 1} … {"score": 1.0}', 1.0),
    ],
)
def test_number_is_read_from_a_reply(reply: str, number: float) -> None:
    assert read_number(reply).value == number


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no idea",
        "4 out of 5",
        "4/5",
        "0,8",
        "1,000",
        "1.2.3",
        "On a scale of 1 to 5 I give 4",
        "as gpt-4 would say",
        "nan",
        "infinity",
        '{"score": NaN}',
        '{"score": Infinity}',
        '{"score": "nan"}',
        '{"score": "high"}',
        '{"score": "1_000"}',
        '{"score": true}',
        '{"score": null}',
        '{"score": [4]}',
        '{"score": 1' + "0" * 400 + "}",
        '{"score": ' + "9" * 5000 + "}",
        '{"score": 1} {"score": 2}',
        # The reply was truncated before the score: the 3 is part of the reasoning.
        '{"reasoning": "It makes 3 points and then',
        '{"reasoning": "fine", "confidence": 0.9}',
    ],
)
def test_ambiguous_number_is_unreadable(reply: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read_number(reply)


@given(st.text(max_size=200))
def test_any_reply_is_read_or_unreadable(reply: str) -> None:
    for read in (read_number, lambda text: read_label(text, LABELS), lambda text: read_label(text, ())):
        with contextlib.suppress(UnreadableReplyError):
            assert read(reply).value is not None


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"])),
    st.text(max_size=20),
)
def test_json_inside_prose_is_found(score: float, before: str, reasoning: str) -> None:
    verdict = read_number(before + json.dumps({"score": score, "reasoning": reasoning}))
    assert verdict.value == score
    assert verdict.reasoning == reasoning


@pytest.mark.parametrize(
    "reply",
    [
        '{"a": ' * 200_000,
        "{" * 1_000_000,
        '{"a": "' + "x{" * 500_000,
        "1" * 1_000_000,
        "1 " * 500_000,
        '{"k": {"k": ' * 300 + "1" + "}" * 600 + "{" * 100_000,
    ],
)
def test_huge_replies_are_rejected_quickly(reply: str) -> None:
    start = time.process_time()
    with pytest.raises(UnreadableReplyError):
        read_number(reply)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("confidence", "read"),
    [(0, 0.0), (1, 1.0), ("0.5", 0.5), (1.5, None), (-1, None), ("sure", None), (None, None)],
)
def test_confidence_is_a_proportion_or_unknown(confidence: object, read: float | None) -> None:
    assert read_number(json.dumps({"score": 1, "confidence": confidence})).confidence == read


def test_exact_label_is_preferred_to_another_case() -> None:
    assert canonical("YES", ("yes", "YES")) == "YES"
    assert canonical(" Yes ", ("no", "yes")) == "yes"
    assert canonical("STRASSE", ("straße",)) == "straße"
    assert canonical("ja", ("yes",)) is None
