"""Generated datasets: start rows, synthesizers, and refused input."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.generating import GeneratorTools, StartRows
from aigo_bridge.datasets.rows import Rows
from aigo_bridge.datasets.sources import DatasetTools, load_dataset
from aigo_bridge.datasets.synthesis import SynthesisCall
from aigo_bridge.errors import BridgeError, DatasetError, SnippetError, SpecError, TemplateError
from aigo_bridge.spec.datasets import DatasetGeneratorSpec, DatasetSpec

CITIES = [{"city": "Bern", "country": "Switzerland"}, {"city": "Rome", "country": "Italy"}]
INLINE = {"type": "inline_samples", "samples": CITIES}


def make(
    dataset: dict[str, Any],
    *synthesizers: dict[str, Any],
    num_samples: int = 100,
    config_spec: list[dict[str, Any]] | None = None,
    config: dict[str, Any] | None = None,
    ask: Callable[[SynthesisCall], str] | None = None,
    run_snippet: Callable[[str, dict[str, Any]], Any] | None = None,
    datasets: dict[str, Callable[[], Rows]] | None = None,
) -> Rows:
    generator = DatasetGeneratorSpec.model_validate(
        {
            "key": "gen",
            "display_name": "Gen",
            "description": "",
            "config_spec": config_spec or [],
            "definition": {"dataset": dataset, "synthesizers": list(synthesizers or [{"type": "empty"}])},
        }
    )
    request = {
        "dataset_generator_key": "gen",
        "num_samples": num_samples,
        "dataset_generator_config": config or {},
    }
    spec = DatasetSpec.model_validate({"key": "d", "display_name": "D", "generator_specification": request})
    tools = DatasetTools(
        generators={"gen": generator},
        start=StartRows() if datasets is None else StartRows(dataset=lambda key: datasets[key]()),
        generation=GeneratorTools(ask=ask, run_snippet=run_snippet, workers=4),
    )
    return load_dataset(spec, base=Path(), missing="absent", tools=tools)


def data(rows: Rows) -> list[dict[str, Any]]:
    return [row.data for row in rows.rows]


def test_inline_rows_are_returned_without_warnings() -> None:
    rows = make(INLINE, num_samples=2)
    assert data(rows) == CITIES
    assert rows.warnings == ()


def test_requested_number_of_rows_is_the_maximum_and_fewer_is_a_warning() -> None:
    assert data(make(INLINE, num_samples=1)) == CITIES[:1]
    (warning,) = make(INLINE, num_samples=3).warnings
    assert warning.message == "the generator created 2 rows, but 3 were requested"


def test_empty_rows_are_generated_and_columns_are_dropped() -> None:
    assert data(make({"type": "empty", "num_samples": 2})) == [{}, {}]
    assert data(make(INLINE, {"type": "drop_columns", "columns": ["country", "nope"]}))[0] == {"city": "Bern"}


@pytest.fixture
def loaders(tmp_path: Path) -> dict[str, Callable[[], Rows]]:
    (tmp_path / "c.csv").write_text("city,x\nBern,1\nRome,2\n")
    (tmp_path / "l.csv").write_text("language,x\nde,3\nit,4\nfr,5\n")
    return {
        "cities": lambda: load_file(tmp_path / "c.csv"),
        "languages": lambda: load_file(tmp_path / "l.csv"),
    }


def test_rows_come_from_a_dataset_or_from_all_combinations(loaders: dict[str, Callable[[], Rows]]) -> None:
    one = make({"type": "dataset_samples", "key": "cities"}, datasets=loaders)
    assert data(one) == [{"city": "Bern", "x": 1}, {"city": "Rome", "x": 2}]
    both = make({"type": "dataset_sample_combinations", "keys": ["cities", "languages"]}, datasets=loaders)
    assert [(row["city"], row["language"], row["x"]) for row in data(both)] == [
        ("Bern", "de", 3), ("Bern", "it", 4), ("Bern", "fr", 5), ("Rome", "de", 3), ("Rome", "it", 4), ("Rome", "fr", 5)
    ]  # fmt: skip


def test_random_seed_gives_a_reproducible_order(loaders: dict[str, Callable[[], Rows]]) -> None:
    source = {"type": "dataset_sample_combinations", "keys": ["cities", "languages"], "random_seed": 3}
    order = [(row["city"], row["language"]) for row in data(make(source, datasets=loaders))]
    assert order == [
        ("Rome", "fr"),
        ("Bern", "de"),
        ("Bern", "fr"),
        ("Bern", "it"),
        ("Rome", "de"),
        ("Rome", "it"),
    ]


def test_unknown_datasets_and_generators_are_reported() -> None:
    with pytest.raises(DatasetError, match="the dataset 'cities' cannot be read"):
        make({"type": "dataset_samples", "key": "cities"})
    spec = DatasetSpec.model_validate(
        {
            "key": "d",
            "display_name": "D",
            "generator_specification": {
                "dataset_generator_key": "nope", "num_samples": 1, "dataset_generator_config": {}
            },
        }
    )  # fmt: skip
    with pytest.raises(DatasetError, match="'nope' is not known"):
        load_dataset(spec, base=Path())


def test_templates_fill_every_combination_of_their_fields() -> None:
    synthesizer = {
        "type": "template",
        "template": "From {{ source.city }} walk {km} to the {way}, {unknown} {{ '{km}' }}",
        "fields": {"km": [100, 200], "way": ["north", "south"]},
    }
    made = data(make(INLINE, synthesizer))
    assert len(made) == 8
    assert made[1] == {
        **CITIES[0],
        "km": 100,
        "way": "south",
        "text": "From Bern walk 100 to the south, {unknown} 100",
    }


def test_cell_text_is_never_rendered_as_a_template() -> None:
    hostile = {"type": "inline_samples", "samples": [{"city": "{{ 7 * 7 }} {km} \x000\x00"}]}
    synthesizer = {
        "type": "template",
        "template": ["{{ source.city }}|{km}"],
        "fields": {"km": ["{{ 1 }}", "{km}"]},
    }
    texts = [row["text"] for row in data(make(hostile, synthesizer))]
    assert texts == ["{{ 7 * 7 }} {km} 0|{{ 1 }}", "{{ 7 * 7 }} {km} 0|{km}"]


def test_too_many_combinations_are_refused() -> None:
    fields = {f"f{number}": list(range(100)) for number in range(6)}
    with pytest.raises(DatasetError, match="combinations of field values"):
        make(INLINE, {"type": "template", "template": "x", "fields": fields})


def test_config_values_are_bound_and_checked() -> None:
    parameter = {"type": "string", "key": "tone", "display_name": "Tone", "default_value": "dry"}
    synthesizer = {"type": "template", "template": "<< config.tone >> {{ source.city }}", "fields": {}}
    assert data(make(INLINE, synthesizer, config_spec=[parameter]))[0]["text"] == "dry Bern"
    made = make(INLINE, synthesizer, config_spec=[parameter], config={"tone": "warm"})
    assert data(made)[0]["text"] == "warm Bern"
    with pytest.raises(SpecError):
        make(INLINE, synthesizer, config_spec=[{**parameter, "default_value": None}])
    with pytest.raises(TemplateError, match=r"unknown parameter `config\.tone`"):
        make(INLINE, synthesizer)


def test_python_synthesizer_runs_only_if_allowed() -> None:
    snippet = {"type": "python", "synthesize_snippet": "def synthesize(source): ..."}
    with pytest.raises(DatasetError, match="snippets cannot be executed here"):
        make(INLINE, snippet)
    made = make(
        INLINE, snippet, run_snippet=lambda code, row: [{"code": code[:3], **row}, {"n": 1}], num_samples=3
    )
    assert data(made) == [{"code": "def", **CITIES[0]}, {"n": 1}, {"code": "def", **CITIES[1]}]
    with pytest.raises(DatasetError, match="expected a list of dicts"):
        make(INLINE, snippet, run_snippet=lambda code, row: {"not": "a list"})


def test_error_in_a_snippet_names_the_synthesizer() -> None:
    def fail(code: str, row: dict[str, Any]) -> Any:
        raise SnippetError("boom")

    with pytest.raises(DatasetError) as raised:
        make(INLINE, {"type": "empty"}, {"type": "python", "synthesize_snippet": "x"}, run_snippet=fail)
    (issue,) = raised.value.issues
    assert issue.path == ("definition", "synthesizers", 1)
    assert issue.message == "boom"


LLM = {
    "type": "llm",
    "model_key": "writer",
    "system_prompt": "You write about {{ source.country }}.",
    "user_prompt_template": "Users in {{ source.city }}",
    "sample_properties": {"name": {"type": "string"}},
}


def test_a_model_writes_columns_for_each_row() -> None:
    asked: list[SynthesisCall] = []

    def ask(question: SynthesisCall) -> str:
        asked.append(question)
        city = question.user.removeprefix("Users in ")
        return f'Here you are:\n```json\n{{"samples": [{{"name": "A-{city}"}}, {{"name": "B-{city}", "extra": 1}}]}}\n```'

    made = data(make(INLINE, LLM, ask=ask))
    assert made == [{**city, "name": f"{letter}-{city['city']}"} for city in CITIES for letter in "AB"]
    first = next(question for question in asked if "Bern" in question.user)
    assert first.model_key == "writer"
    assert first.system.startswith("You write about Switzerland.\n\nAnswer with JSON only")
    assert '"name"' in first.system
    assert first.schema is None


def test_structured_outputs_pass_the_schema() -> None:
    seen: list[Any] = []

    def ask(question: SynthesisCall) -> str:
        seen.append(question.schema)
        return '[{"name": "n"}]'

    make(INLINE, {**LLM, "use_structured_outputs": True}, ask=ask)
    assert seen[0]["properties"]["samples"]["items"]["required"] == ["name"]


def test_generated_rows_keep_the_order_of_the_start_rows() -> None:
    late = threading.Event()

    def ask(question: SynthesisCall) -> str:
        if "n0" in question.user:
            late.wait(5)
        else:
            late.set()
        return json.dumps({"name": question.user})

    source = {
        "type": "inline_samples",
        "samples": [{"city": f"n{number}", "country": ""} for number in range(10)],
    }
    made = data(make(source, LLM, ask=ask))
    assert [row["name"] for row in made] == [f"Users in n{number}" for number in range(10)]


def test_no_model_is_called_for_unrequested_rows() -> None:
    calls: list[SynthesisCall] = []

    def ask(question: SynthesisCall) -> str:
        calls.append(question)
        return '{"name": "x"}'

    source = {"type": "inline_samples", "samples": CITIES * 50}
    assert len(make(source, LLM, ask=ask, num_samples=2)) == 2
    assert len(calls) <= 4


@pytest.mark.parametrize("answer", ["no json", '{"other": 1}', "[1]", "3", '{"samples": 3}', ""])
def test_invalid_model_answer_is_retried_once_before_the_error(answer: str) -> None:
    calls: list[SynthesisCall] = []

    def ask(question: SynthesisCall) -> str:
        calls.append(question)
        return answer

    with pytest.raises(DatasetError, match="the model 'writer' answered"):
        make({"type": "inline_samples", "samples": CITIES[:1]}, LLM, ask=ask)
    assert len(calls) == 2


def test_model_synthesizer_without_a_model_or_for_files_is_refused() -> None:
    with pytest.raises(DatasetError, match="no models are available here"):
        make(INLINE, LLM)
    files = {key: value for key, value in LLM.items() if key != "user_prompt_template"} | {
        "file_ids_field": "f"
    }
    with pytest.raises(DatasetError, match="only works on the platform"):
        make(INLINE, files, ask=lambda question: "")


QA = {
    "type": "inline_samples",
    "samples": [{"question": "Capital?", "expected_answer": "Paris. It has a tower."}],
}


@pytest.mark.parametrize("columns", [{}, {"columns": None}])
def test_claims_are_extracted_labeled_and_linked_to_quotes(columns: dict[str, Any]) -> None:
    def ask(question: SynthesisCall) -> str:
        if "Split the answer" in question.system:
            return '{"items": ["Paris is the capital.", "Paris has a tower."]}'
        assert "1. Paris is the capital.\n2. Paris has a tower." in question.user
        if "essential" in question.system:
            return '{"items": ["essential", "supplementary"]}'
        return '{"items": [["Paris."], []]}'

    steps = [
        {"type": kind, "model_key": "m", **columns}
        for kind in ("claim_extraction", "claim_labeling", "link_claim_quotes")
    ]
    (row,) = data(make(QA, *steps, ask=ask))
    assert row["claims"] == ["Paris is the capital.", "Paris has a tower."]
    assert row["claims_labels"] == ["essential", "supplementary"]
    assert row["claim_source_quotes"] == [["Paris."], []]


@pytest.mark.parametrize(
    "answer", ['{"items": ["essential"]}', '{"items": ["essential", "great"]}', '{"items": [1, 2]}']
)
def test_labels_that_do_not_match_the_claims_are_refused(answer: str) -> None:
    source = {
        "type": "inline_samples",
        "samples": [{"question": "q", "expected_answer": "a", "claims": ["x", "y"]}],
    }
    with pytest.raises(DatasetError, match="expected"):
        make(source, {"type": "claim_labeling", "model_key": "m"}, ask=lambda question: answer)


def test_missing_column_is_reported() -> None:
    with pytest.raises(DatasetError, match="column 'question' is not in the row; columns: city, country"):
        make(INLINE, {"type": "claim_extraction", "model_key": "m"}, ask=lambda question: "")


def test_questions_are_generated_from_documents() -> None:
    documents = {
        "type": "inline_samples",
        "samples": [{"text": "Bern is the capital.", "document_title": "Bern"}],
    }
    step = {
        "type": "question_answering",
        "model_key": "m",
        "qa_type": "multiple_choice",
        "additional_instructions": "Be brief.",
    }
    seen: list[SynthesisCall] = []

    def ask(question: SynthesisCall) -> str:
        seen.append(question)
        return '{"question": "Capital?", "answer": "Bern", "choices": ["Bern", "Rome"]}'

    (row,) = data(make(documents, step, ask=ask))
    assert (row["question"], row["answer"], row["choices"]) == ("Capital?", "Bern", ["Bern", "Rome"])
    assert seen[0].user == "Title: Bern\nSummary: \n\nBern is the capital."
    assert "Be brief." in seen[0].system
    with pytest.raises(DatasetError, match="not among the choices"):
        make(documents, step, ask=lambda question: '{"question": "q", "answer": "x", "choices": ["a", "b"]}')


def test_earlier_task_result_as_a_source_is_refused() -> None:
    with pytest.raises(DatasetError, match="the task result 'k' cannot be read"):
        make({"type": "task_result", "ai_app_key": "a", "key": "k"})


def test_model_error_message_is_kept() -> None:
    def ask(question: SynthesisCall) -> str:
        raise BridgeError("the model is down")

    with pytest.raises(DatasetError, match="the model is down"):
        make(INLINE, LLM, ask=ask)
