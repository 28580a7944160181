"""Plans as lighteval documents: every field of the table, and a gap for features that a document cannot
express."""
# ruff: noqa: TC004  # the fixture `lighteval` imports them at run time

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from aigo_bridge.engine.protocol import Fidelity
from aigo_bridge.evaluation.task import plan
from aigo_bridge.jsonl_spec import load_tasks, render, to_aigo, write_aigo
from aigo_bridge.plan.plan import PlanOrigin, Sample, TaskPlan

if TYPE_CHECKING:
    from lighteval.tasks.lighteval_task import LightevalTask
    from lighteval.tasks.prompt_manager import PromptManager
    from lighteval.tasks.requests import Doc, SamplingMethod

    from aigo_lighteval.documents.translate import (
        CARRIER,
        question_gaps,
        row_text,
        rows_of,
        to_docs,
        to_task_config,
    )

pytestmark = pytest.mark.xdist_group("lighteval")

DOCUMENTS = Path(__file__).parent
MakePlan = Callable[..., TaskPlan]
MODULES = (
    "lighteval.tasks.lighteval_task",
    "lighteval.tasks.prompt_manager",
    "lighteval.tasks.requests",
    "aigo_lighteval.documents.translate",
)
SET_BY_THE_TASK = {"id", "task_name", "specific", "sampling_methods"}


@pytest.fixture(scope="module", autouse=True)
def lighteval() -> None:
    """Load lighteval and torch only in the process that runs these tests, not during collection."""
    for name in MODULES:
        globals().update(vars(import_module(name)) | globals())


def written(name: str, row: dict[str, Any], folder: Path) -> TaskPlan:
    """Plan a task in `documents/` with one row."""
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps(row) + "\n")
    return plan(PlanOrigin(str(DOCUMENTS / f"{name}.yaml"), datasets={"questions": str(rows)}))


def same(found: Doc, wanted: Doc) -> None:
    """Compare the fields of two documents, except those that a task sets in every document."""
    names = [field.name for field in fields(Doc) if field.name not in SET_BY_THE_TASK]
    assert {name: getattr(found, name) for name in names} == {name: getattr(wanted, name) for name in names}


def png(color: str) -> tuple[Image.Image, str]:
    image = Image.new("RGB", (3, 2), color)
    file = BytesIO()
    image.save(file, "PNG")
    return image, "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def test_multiple_choice_tasks_are_translated(tmp_path: Path) -> None:
    choices = ["London", "Paris", "Berlin", "Madrid"]
    made = written(
        "multiple-choice",
        {"question": "What is the capital of France?", "choices": choices, "answer": 1},
        tmp_path,
    )
    (doc,) = to_docs(made)
    same(
        doc,
        Doc(
            query="What is the capital of France?",
            choices=choices,
            gold_index=1,
            instruction="Answer the following geography question:",
        ),
    )
    assert doc.get_golds() == ["Paris"]
    assert (doc.id, doc.task_name) == ("0", "aigo-multiple-choice|0")
    assert doc.sampling_methods == [SamplingMethod.LOGPROBS]


def test_generative_tasks_are_translated(tmp_path: Path) -> None:
    made = written("generative", {"question": "Write a short story about a robot."}, tmp_path)
    (doc,) = to_docs(made)
    same(
        doc,
        Doc(
            query="Write a short story about a robot.",
            choices=[],
            gold_index=0,
            generation_size=100,
            stop_sequences=["\nEnd"],
        ),
    )
    assert doc.sampling_methods == [SamplingMethod.GENERATIVE]
    config = to_task_config(made)
    assert (config.generation_size, config.stop_sequence) == (100, ["\nEnd"])


def test_few_shot_examples_keep_their_wrong_choices(tmp_path: Path) -> None:
    choices = ["Hola mundo", "Bonjour monde", "Ciao mondo"]
    made = written(
        "few-shot",
        {"question": "Translate 'Hello world' to Spanish.", "choices": choices, "answer": 0},
        tmp_path,
    )
    (doc,) = to_docs(made)
    same(
        doc,
        Doc(
            query="Translate 'Hello world' to Spanish.",
            choices=choices,
            gold_index=0,
            fewshot_samples=[
                Doc(
                    query="Translate 'Good morning' to Spanish.",
                    choices=["Buenos días", "Bonjour", "Buongiorno"],
                    gold_index=0,
                ),
                Doc(
                    query="Translate 'Thank you' to Spanish.",
                    choices=["Gracias", "Merci", "Grazie"],
                    gold_index=0,
                ),
            ],
        ),
    )
    assert question_gaps(made) == []


def test_images_are_translated(tmp_path: Path) -> None:
    image, url = png("red")
    message = {
        "type": "message",
        "id": "",
        "status": "completed",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is shown in this image?"},
            {"type": "input_image", "image_url": url, "detail": "auto"},
        ],
    }
    made = written("multimodal", {"asked": {"items": [message]}, "answer": "A cat"}, tmp_path)
    (doc,) = to_docs(made)
    (shown,) = doc.images
    assert (shown.size, shown.tobytes()) == (image.size, image.tobytes())
    doc.images = None
    same(doc, Doc(query="What is shown in this image?", choices=["A cat"], gold_index=0))
    assert question_gaps(made) == []


def test_an_image_at_the_start_of_a_conversation_is_in_the_document(make_plan: MakePlan) -> None:
    image, url = png("green")
    shown = {"type": "input_image", "image_url": url, "detail": "auto"}
    message = {
        "type": "message",
        "id": "",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": "?"}, shown],
    }
    turns = "[{type: load_trace, trace_column: t}, {type: generate}, {type: chat_message, role: user, content: b}, {type: generate}]"

    (doc,) = to_docs(
        make_plan([{"t": [message]}], f"\n  solver: {{type: multi_turn_solver, message_builders: {turns}}}\n")
    )

    assert doc.query == "?"
    assert [each.tobytes() for each in doc.images] == [image.tobytes()]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            [{"type": "input_image", "image_url": "https://example.org/cat.png", "detail": "auto"}],
            "not stored in the row",
        ),
        (
            [{"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}],
            "cannot be decoded",
        ),
        ([{"type": "input_image", "image_url": "data:image/png,AAAA", "detail": "auto"}], "base64"),
        ([{"type": "input_file", "file_url": "https://example.org/a.pdf"}], "input_file"),
        (
            [
                {"type": "input_image", "image_url": png("blue")[1], "detail": "auto"},
                {"type": "input_text", "text": "after"},
            ],
            "behind images",
        ),
    ],
)
def test_message_parts_other_than_text_and_images_are_unsupported(
    content: list[Any], reason: str, tmp_path: Path
) -> None:
    """No URL in a row is fetched."""
    message = {"type": "message", "id": "", "status": "completed", "role": "user", "content": content}
    made = written("multimodal", {"asked": [message], "answer": "x"}, tmp_path)
    assert len(to_docs(made)) == 1
    (gap,) = question_gaps(made)
    assert (gap.part, gap.fidelity) == ("solver.message_builders", Fidelity.UNSUPPORTED)
    assert reason in gap.reason


def test_lighteval_accepts_the_documents(make_plan: MakePlan) -> None:
    """The lighteval task sets its usual fields. All other fields are unchanged, in any order."""
    made = replace(make_plan([{"q": f"question {n}", "a": f"{n}"} for n in range(30)]), num_trials=3)
    task = LightevalTask(to_task_config(made))
    task.dataset = {"test": rows_of(made)}
    by_id = {doc.id: doc for doc in task.get_docs()}
    for doc in to_docs(made):
        same(replace(by_id[doc.id], stop_sequences=None, num_samples=3), doc)
        assert by_id[doc.id].task_name == doc.task_name
        assert by_id[doc.id].specific == doc.specific


OF_ROW = """
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      unconditioned_query: "Answer ({{ sample.subject }}):"
      original_query: "{{ sample.asked }}"
      fewshot_sorting_class: "{{ sample.subject }}"
      input_messages: [{role: user, content: "Question: {{ sample.q }}"}]
"""
EQUAL = '\n  scorers: [{type: string_equals, ground_truth: "{{ sample.a }}"}]\n'


def test_every_field_has_the_task_value_or_the_lighteval_default(make_plan: MakePlan) -> None:
    """The test covers all 18 fields of lighteval 0.13. A new field needs a decision here."""
    rows = [{"q": "2 + 2?", "asked": "two and two", "subject": "sums", "a": "4"}]
    bare = Doc(query="2 + 2?", choices=["4"], gold_index=0)
    carried = {"id": "0", "task_name": "aigo-t|0", "sampling_methods": [SamplingMethod.GENERATIVE]}

    (plain,) = to_docs(
        make_plan(
            rows,
            '\n  solver: {type: single_turn_solver, input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}}'
            + EQUAL,
        )
    )
    (told,) = to_docs(make_plan(rows, OF_ROW + EQUAL))

    same(plain, bare)
    same(
        told,
        replace(
            bare,
            query="Question: 2 + 2?",
            unconditioned_query="Answer (sums):",
            original_query="two and two",
            fewshot_sorting_class="sums",
        ),
    )
    for doc in (plain, told):
        assert {name: getattr(doc, name) for name in carried} == carried
    assert {field.name for field in fields(Doc)} == {
        "query", "choices", "gold_index", "instruction", "images", "specific", "unconditioned_query", "original_query", "id", "task_name",
        "fewshot_samples", "sampling_methods", "fewshot_sorting_class", "generation_size", "stop_sequences", "use_logits", "num_samples",
        "generation_grammar",
    }  # fmt: skip


def test_task_settings_are_in_the_lighteval_task(make_plan: MakePlan) -> None:
    """The sampler of lighteval balances examples by class."""
    from random import Random

    rows = [
        {"q": f"q{number}", "asked": "", "subject": subject, "a": "x"}
        for number, subject in enumerate(["sums", "sums", "sums", "words"])
    ]
    made = make_plan(rows, OF_ROW + EQUAL)
    task = LightevalTask(to_task_config(made))
    task.dataset = {"test": rows_of(made)}

    docs = task.get_docs()
    drawn = task.fewshot_sampler.sample_fewshot_examples(2, 1, formatted_doc=None, sampler=Random(1))

    assert {doc.unconditioned_query for doc in docs} == {"Answer (sums):", "Answer (words):"}
    assert {doc.use_logits for doc in docs} == {False}
    assert {doc.fewshot_sorting_class for doc in drawn} == {"sums", "words"}


@pytest.mark.parametrize(
    ("option", "use_logits", "fidelities"),
    [
        ('"logprobs": true', True, [Fidelity.APPROXIMATE]),
        ('"logprobs": false', False, []),
        ('"top_logprobs": 2', False, [Fidelity.UNSUPPORTED]),
    ],
)
def test_logits_are_requested_if_the_task_requests_probabilities(
    option: str, use_logits: bool, fidelities: list[Fidelity], make_plan: MakePlan
) -> None:
    template = f'{{"messages": [{{"role": "user", "content": "x"}}], {option}}}'
    made = make_plan(
        [{"q": "x"}],
        f"\n  solver: {{type: single_turn_solver, input_builder: {{type: generic, template: '{template}'}}}}\n",
    )

    assert [doc.use_logits for doc in to_docs(made)] == [use_logits]
    assert [gap.fidelity for gap in question_gaps(made)] == fidelities


def test_trials_become_lighteval_samples(make_plan: MakePlan) -> None:
    made = replace(make_plan([{"q": "one", "a": "1"}]), num_trials=4)
    assert [doc.num_samples for doc in to_docs(made)] == [4]
    assert to_task_config(made).num_samples == [4]


def test_letter_choices_are_translated(make_plan: MakePlan) -> None:
    ask = '\n  solver: {type: single_turn_solver, input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}}'
    mcqa = '\n  scorers: [{type: string_equals_mcqa, choices: [A, B, C], ground_truth_choice: "{{ sample.a }}"}]\n'
    docs = to_docs(make_plan([{"q": "x", "a": "C"}, {"q": "y", "a": "none of them"}], ask + mcqa))
    assert [(doc.choices, doc.gold_index) for doc in docs] == [(["A", "B", "C"], 2), (["A", "B", "C"], 0)]


def test_likelihoods_are_requested_for_continuations(make_plan: MakePlan) -> None:
    ask = '\n  solver: {type: single_turn_solver, input_builder: {type: chat_completion, unconditioned_query: "Answer:", input_messages: [{role: user, content: "{{ sample.q }}"}]}}'
    mcqa = '\n  scorers: [{type: string_equals_mcqa, method: loglikelihood, choices: [A, B], continuations: [" one", " two"], ground_truth_choice: B}]\n'
    (doc,) = to_docs(make_plan([{"q": "x"}], ask + mcqa))
    assert (doc.choices, doc.gold_index, doc.unconditioned_query) == ([" one", " two"], 1, "Answer:")


def test_task_records_are_translated(tmp_path: Path) -> None:
    """The record has examples and several correct targets; its plain text is the exact prompt."""
    records = tmp_path / "tasks.jsonl"
    rows = [
        {
            "task_id": f"t{number}",
            "category": category,
            "prompt": "Question: 17 + 24\nAnswer:",
            "targets": targets,
            "metric_name": metric,
            "post_process": rule,
            **shots,
        }
        for number, (category, metric, targets, rule, shots) in enumerate(
            [
                (
                    "arithmetic",
                    "exact_match",
                    ["41", "forty-one"],
                    "strip_whitespace",
                    {
                        "few_shot_examples": [
                            {"prompt": "Question: 2 + 2\nAnswer:", "completion": "4"},
                            {"prompt": "Question: 9 - 12\nAnswer:", "completion": "-3"},
                        ]
                    },
                ),
                ("arithmetic", "accuracy", ["7"], "strip_whitespace", {}),
                ("summary", "rouge_l", ["a b"], "none", {}),
                ("summary", "bleu_4", ["a b"], "extract_first_line", {}),
                ("classification", "f1", ["yes"], "lower", {}),
                ("code_exec", "code_exec", ["assert f(1) == 1"], "extract_code_block", {}),
            ]
        )
    ]
    records.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tasks = list(load_tasks(records))
    assert len(tasks) == len(rows)
    made = plan(PlanOrigin(str(write_aigo(to_aigo(tasks), tmp_path / "task"))))
    docs = to_docs(made)
    assert [doc.choices for doc in docs] == [row["targets"] for row in rows]
    assert [doc.gold_index for doc in docs] == [[0, 1], [0], [0], [0], [0], [0]]
    assert docs[0].get_golds() == ["41", "forty-one"]
    assert [(shot.query, shot.choices) for shot in docs[0].fewshot_samples] == [
        ("Question: 2 + 2\nAnswer:", ["4"]),
        ("Question: 9 - 12\nAnswer:", ["-3"]),
    ]
    assert [PromptManager().prepare_prompt(doc) for doc in docs] == [render(task) for task in tasks]
    (gap,) = question_gaps(made)
    assert (gap.fidelity, "same message" in gap.reason) == (Fidelity.APPROXIMATE, True)


def test_system_messages_become_instructions_with_an_approximate_gap(make_plan: MakePlan) -> None:
    messages = '[{role: system, content: "Be {{ sample.how }}."}, {role: user, content: "{{ sample.q }}"}]'
    ask = f"\n  solver: {{type: single_turn_solver, input_builder: {{type: chat_completion, input_messages: {messages}}}}}\n"
    one = make_plan([{"q": "x", "how": "brief"}], ask)
    assert [doc.instruction for doc in to_docs(one)] == ["Be brief."]
    assert [gap.fidelity for gap in question_gaps(one)] == [Fidelity.APPROXIMATE]
    two = make_plan([{"q": "x", "how": "brief"}, {"q": "x", "how": "kind"}], ask)
    assert {gap.fidelity for gap in question_gaps(two)} == {Fidelity.APPROXIMATE, Fidelity.UNSUPPORTED}


@pytest.mark.parametrize(
    ("solver", "reason"),
    [
        (
            "{type: python, run_solver_snippet: 'async def run_solver(sample, model, trace): ...'}",
            "one answer",
        ),
        (
            "{type: multi_turn_solver, message_builders: [{type: generate}, {type: generate}]}",
            "one answer",
        ),
        (
            '{type: single_turn_solver, input_builder: {type: generic, template: \'{"messages": [{"role": "user", "content": "x"}], "temperature": 0.5}\'}}',
            "documents do not support temperature",
        ),
        (
            '{type: single_turn_solver, input_builder: {type: generic, template: \'{"messages": [{"role": "user", "content": "x"}], "max_tokens": {{ sample.n }}}\'}}',
            "depends on the row",
        ),
        (
            "{type: single_turn_solver, input_builder: {type: chat_completion, input_messages: [{role: user, content: a}, {role: user, content: b}]}}",
            "not examples and a question",
        ),
        (
            "{type: single_turn_solver, input_builder: {type: chat_completion, input_messages: [{role: user, content: a}, {role: assistant, content: b}]}}",
            "not from the user",
        ),
        (
            "{type: single_turn_solver, input_builder: {type: generic, template: 'no JSON'}}",
            "cannot be rendered",
        ),
    ],
)
def test_options_without_a_document_field_are_unsupported(
    solver: str, reason: str, make_plan: MakePlan
) -> None:
    made = make_plan([{"n": 1}, {"n": 2}], f"\n  solver: {solver}\n")
    assert len(to_docs(made)) == 2
    (gap,) = question_gaps(made)
    assert (reason in gap.reason, gap.fidelity) == (True, Fidelity.UNSUPPORTED)


SAYS = '{type: chat_message, role: user, content: "{{ sample.q }}"}'
SYSTEM = "{type: chat_message, role: system, content: Be brief.}"
OTHER = f"{{type: generate_message, model_key: other, output_role: user, extra_input_messages: [{SAYS}]}}"


@pytest.mark.parametrize(
    ("solver", "query", "instruction"),
    [
        (f"[{SAYS}, {{type: generate}}, {{type: chat_message, role: user, content: Sure?}}, {{type: generate}}]", "why?", None),
        (f"[{SYSTEM}, {{type: loop, max_iterations: 2, message_builders: [{SAYS}, {{type: generate}}]}}]", "why?", "Be brief."),
        (f"[{{type: loop, max_iterations: 2, message_builders: [{SAYS}]}}, {{type: generate}}, {{type: generate}}]", "why?", None),
        (f"[{OTHER}, {{type: generate}}, {SAYS}, {{type: generate}}]", "⟨answer of other⟩", None),
        ("[{type: generate}, {type: generate}]", "⟨the model speaks first⟩", None),
        (f"[{{type: load_trace, trace_column: t}}, {{type: generate}}, {SAYS}, {{type: generate}}]", "recorded", None),
    ],
    ids=range(6),
)  # fmt: skip
def test_a_multi_turn_conversation_becomes_its_first_question(
    solver: str, query: str, instruction: str | None, make_plan: MakePlan
) -> None:
    """A document never has an empty question, because lighteval would send it."""
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "recorded"}]}
    rows = [{"q": "why?", "t": {"items": [{**said, "id": "", "status": "completed"}]}}]
    made = make_plan(rows, f"\n  solver: {{type: multi_turn_solver, message_builders: {solver}}}\n")

    (doc,) = to_docs(made)

    assert (doc.query, doc.instruction) == (query, instruction)
    (gap,) = question_gaps(made)
    assert (gap.fidelity, "it contains only the first question" in gap.reason) == (Fidelity.UNSUPPORTED, True)


def test_other_solvers_have_non_empty_questions(make_plan: MakePlan) -> None:
    group = '{"one": {"messages": [{"role": "user", "content": {{ sample.q | tojson }}}]}, "two": {"messages": []}}'
    grouped = f"{{type: grouped_single_turn_solver, input_builder: {{type: generic, template: '{group}'}}}}"
    ended = "{type: single_turn_solver, input_builder: {type: chat_completion, input_messages: [{role: user, content: a}, {role: assistant, content: b}]}}"
    code = "{type: python, run_solver_snippet: 'async def run_solver(sample, model, trace): ...'}"
    for solver, query in ((grouped, "why?"), (ended, "a"), (code, '{"q": "why?", "g": 1}')):
        (doc,) = to_docs(make_plan([{"q": "why?", "g": 1}], f"\n  solver: {solver}\n"))
        assert doc.query == query


def test_example_choices_without_the_answer_are_a_gap(make_plan: MakePlan) -> None:
    messages = '[{role: user, content: a}, {role: assistant, content: "{{ sample.a }}", choices: "{{ sample.c }}"}, {role: user, content: b}]'
    ask = f"\n  solver: {{type: single_turn_solver, input_builder: {{type: chat_completion, input_messages: {messages}}}}}\n"
    rows = [{"a": "y", "c": ["x", "y"]}, {"a": "z", "c": ["x", "y"]}]
    made = make_plan(rows, ask)
    shots = [doc.fewshot_samples[0] for doc in to_docs(made)]
    assert [(shot.choices, shot.gold_index) for shot in shots] == [(["x", "y"], 1), (["z"], 0)]
    assert ["do not include its answer" in gap.reason for gap in question_gaps(made)] == [True]


@given(
    st.dictionaries(
        st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
    )
)
def test_a_row_is_restored_from_its_document(data: dict[str, Any]) -> None:
    row = json.loads(row_text(Sample(7, data)))
    assert row["id"] == 7
    assert repr(row["data"]) == repr(data)  # NaN is not equal to itself
    row_text(Sample(7, data)).encode("ascii")


def test_documents_can_be_stored(make_plan: MakePlan) -> None:
    """Lone surrogates cannot be encoded as UTF-8."""
    made = replace(make_plan([{"q": "a", "a": "b"}]), samples=(Sample(0, {"q": "a\ud800", "a": "\udfff"}),))
    (doc,) = to_docs(made)
    assert (doc.query, doc.choices) == ("a?", ["?"])
    assert json.loads(doc.specific[CARRIER])["data"]["q"] == "a\ud800"
