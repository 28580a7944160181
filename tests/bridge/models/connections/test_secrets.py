"""References to secrets in model files."""

from __future__ import annotations

import pytest

from aigo_bridge.models.connections.secrets import MissingSecretError, checked, resolved, secret_name


@pytest.mark.parametrize("text", ["<< secrets.A-b_1 >>", "  <<secrets.A-b_1>> "])
def test_secret_references_are_recognized(text: str) -> None:
    assert secret_name(text) == "A-b_1"


@pytest.mark.parametrize("text", ["<< config.A >>", "<< secrets.a b >>", "{{ secrets.A }}"])
def test_other_texts_are_not_secret_references(text: str) -> None:
    assert secret_name(text) is None


def test_missing_secrets_and_variables_are_reported_by_name() -> None:
    with pytest.raises(MissingSecretError, match=r"unknown secret 'B' \(declared: A\)"):
        resolved("B", {"A": "x"})
    with pytest.raises(MissingSecretError, match="environment variable 'KEY' is not set"):
        resolved("A", {"A": "${KEY}"})
    assert checked("openai$gpt-4") == "openai$gpt-4"


def test_secret_reference_inside_a_text_is_rejected() -> None:
    with pytest.raises(MissingSecretError, match="must be the whole value"):
        secret_name("Basic << secrets.A >>")
