"""Secrets are found where they are referred to, and taken out of whatever is shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.models.connections.secrets import Mask, MissingSecretError, checked, resolved, secret_name
from aigo_bridge.redaction.redactor import MASK, SHORTEST


@given(st.text(min_size=SHORTEST), st.text(), st.text())
def test_no_form_of_a_secret_survives(secret: str, before: str, after: str) -> None:
    mask = Mask([secret])
    for shown in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        assert secret not in mask(before + shown + after).replace(MASK, "") or secret in (before + after)
    assert json.loads(mask(json.dumps({"echo": secret, "n": 1})))["n"] == 1


@given(st.text(max_size=SHORTEST - 1), st.text())
def test_short_values_are_words_of_answers_and_stay(short: str, text: str) -> None:
    assert Mask([short])(text) == text


def test_a_secret_inside_of_another_does_not_uncover_it() -> None:
    assert (
        Mask(["abcdefgh-ijkl", "abcdefgh-ijkl-mnop"])("abcdefgh-ijkl-mnop abcdefgh-ijkl") == f"{MASK} {MASK}"
    )


@pytest.mark.parametrize("text", ["<< secrets.A-b_1 >>", "  <<secrets.A-b_1>> "])
def test_references(text: str) -> None:
    assert secret_name(text) == "A-b_1"


@pytest.mark.parametrize("text", ["<< config.A >>", "<< secrets.a b >>", "{{ secrets.A }}"])
def test_what_is_no_reference(text: str) -> None:
    assert secret_name(text) is None


def test_missing_secrets_and_variables_are_told_by_name() -> None:
    with pytest.raises(MissingSecretError, match=r"unknown secret 'B' \(declared: A\)"):
        resolved("B", {"A": "x"})
    with pytest.raises(MissingSecretError, match="environment variable 'KEY' is not set"):
        resolved("A", {"A": "${KEY}"})
    assert checked("openai$gpt-4") == "openai$gpt-4"


def test_a_reference_in_the_middle_of_a_text_is_refused() -> None:
    with pytest.raises(MissingSecretError, match="must be the whole value"):
        secret_name("Basic << secrets.A >>")
