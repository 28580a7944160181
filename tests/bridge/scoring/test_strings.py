"""`string_equals` and `string_equals_mcqa` compare exactly; `bleu` scores by n-grams."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    EmbeddingsModelOutput,
    SolverTrace,
    Trace,
)
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.models.protocol import Model
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.registry import compile_scorers
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.scoring.strings import Bleu, StringEquals, StringEqualsMCQA
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving.conversation import output_items
from aigo_bridge.spec.scorers import BleuScorer, StringEqualsMCQAScorer, StringEqualsScorer


def nobody(key: str) -> Model:
    raise AssertionError(f"model {key!r} was called")


def said(text: str) -> SolverTrace:
    message = ChatCompletionOutputMessage(role="assistant", content=text)
    output = ChatCompletionModelOutput(choices=[ChatCompletionModelOutputChoice(message=message)])
    trace = SolverTrace(trace=Trace(items=[]), raw_outputs=[output], direct_ios=[])
    trace.append_user_message("Say it.")
    trace.extend(output_items(output))
    return trace


def equals(output: SolverTrace | None, data: dict[str, Any], **fields: Any) -> Score:
    spec = StringEqualsScorer(type="string_equals", **{"ground_truth": "{{ sample.a }}", **fields})
    return asyncio.run(StringEquals(spec)(Sample(0, data), output, nobody))


def mcqa(answer: str, *, truth: str = "B", choices: Any = ("A", "B", "C"), data: Any = None) -> Score:
    spec = StringEqualsMCQAScorer(type="string_equals_mcqa", ground_truth_choice=truth, choices=choices)
    return asyncio.run(StringEqualsMCQA(spec)(Sample(0, data or {}), said(answer), nobody))


@pytest.mark.parametrize(("null", "answer", "word"), [(None, "None", "null"), (math.nan, "nan", "missing")])
def test_missing_ground_truth_fails_the_sample(null: object, answer: str, word: str) -> None:
    """An answer `None` or `nan` is not correct for a row without ground truth, unless the task defines this word."""
    with pytest.raises(
        SampleError, match=rf"ground_truth: {{{{ sample\.a }}}} is {word} in this sample"
    ) as caught:
        equals(said(answer), {"a": null})
    assert (caught.value.stage, caught.value.kind) == ("score", "MissingValue")
    with pytest.raises(SampleError, match=r"value: {{ sample\.b }} is"):
        equals(None, {"a": "x", "b": null}, value=" {{ sample.b }}\n")
    with pytest.raises(SampleError, match=r"ground_truth_choice: {{ sample\.a }} is"):
        mcqa(answer, truth="{{ sample.a }}", data={"a": null})
    own = "{{ sample.a if sample.a is string else 'nan' }}"
    assert equals(said("nan"), {"a": null}, ground_truth=own).values == {"is_correct": 1.0}
    assert equals(said(answer), {"a": answer}).values == {"is_correct": 1.0}


@pytest.mark.parametrize(
    ("answer", "truth", "score"),
    [
        ("Oslo", "Oslo", 1.0),
        ("oslo", "Oslo", 0.0),
        ("Oslo ", "Oslo", 0.0),
        ("Oslo\n", "Oslo", 0.0),
        ("Oslo.", "Oslo", 0.0),
        ("", "", 1.0),
        (unicodedata.normalize("NFD", "Zürich"), unicodedata.normalize("NFC", "Zürich"), 0.0),
        ("👩‍🔬", "👩‍🔬", 1.0),
        ("4", 4, 1.0),
        ("True", True, 1.0),
        ("1e5", 100000.0, 0.0),
    ],
)
def test_equality_is_exact(answer: str, truth: object, score: float) -> None:
    outcome = equals(said(answer), {"a": truth})
    assert outcome.values == {"is_correct": score}
    assert outcome.metadata == {"answer_gt": str(truth), "answer_pred": answer}


@given(st.text(), st.text())
def test_only_identical_texts_are_equal(answer: str, truth: str) -> None:
    assert equals(said(answer), {"a": truth}).values["is_correct"] == float(answer == truth)


def test_one_line_break_at_the_end_of_a_folded_ground_truth_is_dropped() -> None:
    assert equals(said("Oslo"), {"a": "Oslo"}, ground_truth="{{ sample.a }}\n").values == {"is_correct": 1.0}
    assert equals(said("Oslo"), {"a": "Oslo"}, ground_truth="{{ sample.a }}\n\n").values == {
        "is_correct": 0.0
    }
    assert equals(said("Oslo"), {"a": "Oslo\n"}).values == {"is_correct": 0.0}


def test_a_value_is_compared_instead_of_the_answer() -> None:
    assert equals(None, {"a": "x", "b": "x"}, value="{{ sample.b }}").values == {"is_correct": 1.0}
    trace_text = "{{ solver_output.trace.get_last_assistant_text() }}"
    assert equals(said("x"), {"a": "x"}, value=trace_text).values == {"is_correct": 1.0}
    assert equals(said("x"), {"a": "x"}, value="").values == {"is_correct": 0.0}


@pytest.mark.parametrize(
    "output",
    [
        None,
        SolverTrace(trace=Trace(items=[]), raw_outputs=[], direct_ios=[]),
        SolverTrace(
            trace=Trace(items=[]), raw_outputs=[ChatCompletionModelOutput(choices=[])], direct_ios=[]
        ),
        SolverTrace(
            trace=Trace(items=[]), raw_outputs=[EmbeddingsModelOutput(embeddings=[[1.0]])], direct_ios=[]
        ),
    ],
)
def test_output_without_chat_completion_fails_the_sample(output: SolverTrace | None) -> None:
    with pytest.raises(SampleError, match="does not contain a chat completion to compare") as caught:
        equals(output, {"a": "x"})
    assert (caught.value.stage, caught.value.kind) == ("score", "MissingValue")
    assert "`value`" in str(caught.value.hint)


def test_missing_column_fails_the_sample() -> None:
    with pytest.raises(SampleError, match="a") as caught:
        equals(said("x"), {"b": "x"})
    assert (caught.value.stage, caught.value.kind) == ("score", "TemplateError")


@pytest.mark.parametrize(
    ("answer", "predicted", "score", "validity"),
    [
        ("B", "B", 1.0, "valid"),
        ("B) Oslo", "B", 1.0, "valid"),
        ("Because", "B", 1.0, "valid"),
        ("b", "b", 0.0, "invalid"),
        (" B", " ", 0.0, "invalid"),
        ("(B)", "(", 0.0, "invalid"),
        ("A", "A", 0.0, "valid"),
        ("", "", 0.0, "invalid"),
        ("Ｂ", "Ｂ", 0.0, "invalid"),
    ],
)
def test_only_the_first_character_counts(answer: str, predicted: str, score: float, validity: str) -> None:
    outcome = mcqa(answer)
    assert outcome.values == {"is_correct": score}
    assert outcome.metadata == {
        "ground_truth_choices": ["A", "B", "C"],
        "ground_truth_correct_choice": "B",
        "predicted_choice": predicted,
        "completion_validity": validity,
    }


@pytest.mark.parametrize(
    "choices", ["{{ sample.c }}", '["A", "B"]', "['A', 'B']", "{{ sample.c | tojson }}", "{{ sample.text }}"]
)
def test_choices_can_be_a_list_or_its_text(choices: str) -> None:
    outcome = mcqa("B", choices=choices, data={"c": ["A", "B"], "text": '["A", "B"]'})
    assert outcome.metadata["ground_truth_choices"] == ["A", "B"]
    assert outcome.metadata["completion_validity"] == "valid"


@pytest.mark.parametrize("choices", ["AB", "{{ sample.missing }}", "[1, 2]", '{"A": 1}'])
def test_invalid_choices_fail_the_sample(choices: str) -> None:
    with pytest.raises(SampleError, match="choices: ") as caught:
        mcqa("B", choices=choices)
    assert caught.value.stage == "score"


def test_validity_does_not_change_the_score() -> None:
    outcome = mcqa("Z", truth="Z")
    assert outcome.values == {"is_correct": 1.0}
    assert outcome.metadata["completion_validity"] == "invalid"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ sample.a }}", "x"),
        ("{{ solver_output.output.choices[0].message.content }}", "yes"),
        ("{{ messages[-1].content }}", "yes"),
        ("{{ model_output.choices | length }}", "1"),
        ("{{ model_outputs | length }}", "1"),
        ("{{ input_prompt }}", "Say it."),
        ("{{ trace.items | length }}", "2"),
        # A name that the template sets in one branch and reads in another.
        ("{% if sample.b is defined %}{% set messages = [] %}{% endif %}{{ messages | length }}", "2"),
        ("{% macro said(trace) %}{{ sample.a }}{% endmacro %}{{ said(1) }}", "x"),
        ("{% for message in messages %}{{ message.role }} {% endfor %}", "user assistant "),
        ("{{ messages | length if sample.a else 0 }}", "2"),
        ("{{ (trace is defined) and ('messages' in sample) }}", "False"),
    ],
)
def test_templates_can_read_the_answer_in_every_form(template: str, text: str) -> None:
    """Views of the solver output are only created for templates that use them."""
    outcome = equals(said("yes"), {"a": "x"}, ground_truth=template)
    assert outcome.metadata == {"answer_gt": text, "answer_pred": "yes"}
    assert equals(said("yes"), {"a": "x"}, ground_truth="x", value=template).metadata["answer_pred"] == text


def test_unknown_name_is_reported_with_known_names() -> None:
    with pytest.raises(SampleError, match=r"`answr` is undefined; known: sample, solver_output, messages"):
        equals(said("yes"), {"a": "x"}, ground_truth="{{ answr }}")
    with pytest.raises(SampleError, match=r"`sample.b` is undefined; known: a"):
        equals(said("yes"), {"a": "x"}, ground_truth="{{ sample.b }}")


SCORER = Bleu(BleuScorer(type="bleu", ground_truth="{{ sample.gt }}", value="{{ sample.answer }}"))


def bleu(answer: Any, truth: Any) -> Score:
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
def test_bleu_scores_equal_those_computed_by_hand(answer: str, truth: str, score: float) -> None:
    assert bleu(answer, truth).values == {"bleu_score": pytest.approx(score, rel=1e-12)}


def test_bleu_metadata_contain_texts_and_signature() -> None:
    metadata = bleu("Hello, world!", "Hello , world !").metadata
    assert metadata["answer_gt"] == "Hello , world !"
    assert metadata["answer_pred"] == "Hello, world!"
    for part in ("nrefs:1", "case:mixed", "eff:yes", "tok:13a", "smooth:exp", "version:"):
        assert part in metadata["signature"]


def test_bleu_separates_punctuation() -> None:
    assert bleu("Hello, world!", "Hello , world !").values == {"bleu_score": 1.0}


def test_bleu_accepts_a_number_as_ground_truth() -> None:
    assert bleu("42", 42).values == {"bleu_score": 1.0}


@pytest.mark.parametrize("truth", ["", " \n"])
def test_bleu_with_empty_ground_truth_fails_the_sample(truth: str) -> None:
    with pytest.raises(SampleError, match="ground truth is empty") as caught:
        bleu("a", truth)
    assert caught.value.stage == "score"


def test_bleu_without_answer_or_value_fails_the_sample() -> None:
    scorer = Bleu(BleuScorer(type="bleu", ground_truth="a"))
    with pytest.raises(SampleError, match="does not contain a chat completion"):
        asyncio.run(scorer(Sample(0, {}), None, nobody))


def test_missing_sacrebleu_is_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(
        UnsupportedPlanError, match=r"^scorer 'bleu' needs sacrebleu; run: pip install 'sacrebleu>=[0-9.]+'$"
    ) as caught:
        compile_scorers([BleuScorer(type="bleu", ground_truth="a")], samples=[], host=SnippetHost())
    assert caught.value.code == Code.MISSING_PACKAGE


def test_sacrebleu_is_loaded_only_by_tasks_that_use_it() -> None:
    code = "import aigo_bridge.scoring, aigo_bridge.metrics, sys; sys.exit('sacrebleu' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


WORDS = st.lists(st.sampled_from(["a", "b", "ü", "猫", "1,5", "x."]), min_size=1, max_size=12).map(" ".join)


@given(WORDS, WORDS)
def test_bleu_score_is_between_0_and_1(answer: str, truth: str) -> None:
    assert 0.0 <= bleu(answer, truth).values["bleu_score"] <= 1.0


@given(WORDS)
def test_bleu_score_of_identical_texts_is_1(text: str) -> None:
    assert bleu(text, text).values["bleu_score"] == 1.0
