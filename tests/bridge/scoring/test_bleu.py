"""`bleu`: numbers by hand from the BLEU formula, and what is kept about them."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.models import Model
from aigo_bridge.plan import Sample
from aigo_bridge.scoring import compile_scorers
from aigo_bridge.scoring.bleu import Bleu
from aigo_bridge.scoring.outcome import Outcome
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.spec.scorers import BleuScorer


def nobody(key: str) -> Model:
    raise AssertionError(f"model {key!r} was called")


SCORER = Bleu(BleuScorer(type="bleu", ground_truth="{{ sample.gt }}", value="{{ sample.answer }}"))


def bleu(answer: Any, truth: Any) -> Outcome:
    return asyncio.run(SCORER(Sample(0, {"gt": truth, "answer": answer}), None, nobody))


@pytest.mark.parametrize(
    ("answer", "truth", "score"),
    [
        ("the cat sat on the mat", "the cat sat on the mat", 1.0),
        ("Oslo", "Oslo", 1.0),  # effective order: no 2-grams are expected of one word
        ("a b c d", "a b c e", (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25),  # no 4-gram: 1 of 2, by smoothing
        ("a b", "a b c d", math.exp(1 - 4 / 2)),  # all n-grams right, punished for brevity alone
        ("a b c d e f", "a b c d", (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25),
        ("The cat", "the cat", (1 / 2 * 1 / 2) ** 0.5),  # case counts; no 2-gram: 1 of 2, by smoothing
        ("", "a", 0.0),
        ("x", "y", 0.0),
    ],
)
def test_numbers_computed_by_hand(answer: str, truth: str, score: float) -> None:
    assert bleu(answer, truth).values == {"bleu_score": pytest.approx(score, rel=1e-12)}


def test_the_metadata_say_how_the_number_came_about() -> None:
    metadata = bleu("Hello, world!", "Hello , world !").metadata
    assert metadata["answer_gt"] == "Hello , world !"
    assert metadata["answer_pred"] == "Hello, world!"
    for part in ("nrefs:1", "case:mixed", "eff:yes", "tok:13a", "smooth:exp", "version:"):
        assert part in metadata["signature"]


def test_punctuation_is_split_off() -> None:
    assert bleu("Hello, world!", "Hello , world !").values == {"bleu_score": 1.0}


def test_a_number_as_ground_truth_is_its_text() -> None:
    assert bleu("42", 42).values == {"bleu_score": 1.0}


@pytest.mark.parametrize("truth", ["", " \n"])
def test_without_a_ground_truth_there_is_no_score(truth: str) -> None:
    with pytest.raises(SampleError, match="ground truth is empty") as caught:
        bleu("a", truth)
    assert caught.value.stage == "score"


def test_without_a_value_there_must_be_an_answer() -> None:
    scorer = Bleu(BleuScorer(type="bleu", ground_truth="a"))
    with pytest.raises(SampleError, match="no chat completion"):
        asyncio.run(scorer(Sample(0, {}), None, nobody))


def test_without_sacrebleu_the_plan_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(
        UnsupportedPlanError, match=r"^scorer 'bleu' needs sacrebleu; run: pip install 'sacrebleu>=[0-9.]+'$"
    ):
        compile_scorers([BleuScorer(type="bleu", ground_truth="a")], samples=[], host=SnippetHost())


def test_sacrebleu_is_loaded_only_by_tasks_that_use_it() -> None:
    code = "import aigo_bridge.scoring, aigo_bridge.metrics, sys; sys.exit('sacrebleu' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


WORDS = st.lists(st.sampled_from(["a", "b", "ü", "猫", "1,5", "x."]), min_size=1, max_size=12).map(" ".join)


@given(WORDS, WORDS)
def test_the_score_is_a_share(answer: str, truth: str) -> None:
    assert 0.0 <= bleu(answer, truth).values["bleu_score"] <= 1.0


@given(WORDS)
def test_a_text_is_itself_exactly(text: str) -> None:
    assert bleu(text, text).values["bleu_score"] == 1.0
