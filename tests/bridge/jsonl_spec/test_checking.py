"""Every rule of a record: violations, their fields and messages."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bridge.jsonl_spec.jsonl_records import SOUND, json_values, made, record

from aigo_bridge.jsonl_spec import (
    CATEGORIES,
    LEGAL,
    METRIC_NAMES,
    POST_PROCESS_RULES,
    FewShotExample,
    Rule,
    TaskSpec,
    schema_for_record,
    validate_task,
)


def broken(value: object) -> list[tuple[str, str]]:
    task, errors = validate_task(value)
    assert (task is None) == bool(errors)
    return [(error.rule.value, error.field) for error in errors]


def test_example_of_the_format_page_is_valid() -> None:
    assert validate_task(SOUND) == (
        TaskSpec(
            task_id="arith_001",
            category="arithmetic",
            prompt="Compute the result. Question: 17 + 24\nAnswer:",
            targets=("41",),
            metric_name="exact_match",
            post_process="strip_whitespace",
            few_shot_examples=(FewShotExample("Question: 2 + 2\nAnswer:", "4"),),
            metadata={"difficulty": "easy"},
        ),
        (),
    )


def test_optional_fields_may_be_missing_or_empty() -> None:
    assert made(few_shot_examples=None, metadata=None) == made(few_shot_examples=[], metadata={})


def test_task_is_converted_back_to_the_same_record() -> None:
    assert made().to_record() == SOUND


def test_tasks_are_immutable_and_compared_by_value() -> None:
    assert made() == made()
    assert len({made(), made(), made(task_id="other")}) == 2
    with pytest.raises(AttributeError):
        made().prompt = "other"  # type: ignore[misc]  # that is what must fail


MCQ = {"category": "mcq", "post_process": "extract_letter"}
NINE = [{"prompt": f"{n} =", "completion": str(n)} for n in range(9)]

BROKEN: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"task_id": None}, [("missing_field", "task_id")]),
    ({"category": None}, [("missing_field", "category")]),
    ({"prompt": None}, [("missing_field", "prompt")]),
    ({"targets": None}, [("missing_field", "targets")]),
    ({"metric_name": None}, [("missing_field", "metric_name")]),
    ({"post_process": None}, [("missing_field", "post_process")]),
    ({"prompt": None, "targets": None}, [("missing_field", "prompt"), ("missing_field", "targets")]),
    ({"targetz": ["1"]}, [("unknown_field", "targetz")]),
    ({"task_id": 7}, [("field_type", "task_id")]),
    ({"category": 7}, [("field_type", "category")]),
    ({"category": ["mcq"]}, [("field_type", "category")]),
    ({"prompt": ["a"]}, [("field_type", "prompt")]),
    ({"targets": "41"}, [("field_type", "targets")]),
    ({"targets": ["41", 41]}, [("field_type", "targets[1]")]),
    ({"metric_name": {}}, [("field_type", "metric_name")]),
    ({"post_process": True}, [("field_type", "post_process")]),
    ({"post_process": []}, [("field_type", "post_process")]),
    ({"few_shot_examples": {}}, [("field_type", "few_shot_examples")]),
    ({"few_shot_examples": ["a"]}, [("field_type", "few_shot_examples[0]")]),
    (
        {"few_shot_examples": [{"prompt": "a", "completion": 4}]},
        [("field_type", "few_shot_examples[0].completion")],
    ),
    ({"few_shot_examples": [{"prompt": "a"}]}, [("missing_field", "few_shot_examples[0].completion")]),
    (
        {"few_shot_examples": [{"prompt": "a", "completion": "b", "note": "c"}]},
        [("unknown_field", "few_shot_examples[0].note")],
    ),
    (
        {"few_shot_examples": [{"prompt": "a", "completion": ""}]},
        [("blank_text", "few_shot_examples[0].completion")],
    ),
    ({"metadata": []}, [("field_type", "metadata")]),
    ({"task_id": ""}, [("blank_text", "task_id")]),
    ({"prompt": ""}, [("blank_text", "prompt")]),
    ({"prompt": " \n"}, [("blank_text", "prompt")]),
    ({"targets": ["41", " "]}, [("blank_text", "targets[1]")]),
    ({"task_id": "a b"}, [("task_id_whitespace", "task_id")]),
    ({"task_id": "a\n"}, [("task_id_whitespace", "task_id")]),
    ({"task_id": "a\u2003b"}, [("task_id_whitespace", "task_id")]),
    ({"category": "Arithmetic"}, [("category", "category")]),
    ({"metric_name": "rouge"}, [("metric_name", "metric_name")]),
    ({"post_process": "strip"}, [("post_process", "post_process")]),
    ({"post_process": "lower|strip_whitespace"}, [("combined_post_process", "post_process")]),
    ({"post_process": "lower, strip_whitespace"}, [("combined_post_process", "post_process")]),
    ({"post_process": ["lower"]}, [("combined_post_process", "post_process")]),
    ({"metric_name": "code_exec"}, [("category_metric", "metric_name")]),
    ({"category": "code_exec", "post_process": "none"}, [("category_metric", "metric_name")]),
    ({"category": "mcq", "metric_name": "f1", "targets": ["A"]}, [("category_metric", "metric_name")]),
    ({"post_process": "extract_code_block"}, [("category_post_process", "post_process")]),
    (
        {"category": "summary", "post_process": "extract_letter"},
        [("category_metric", "metric_name"), ("category_post_process", "post_process")],
    ),
    ({"prompt": "1 + 1 =\n"}, [("prompt_trailing_whitespace", "prompt")]),
    ({"prompt": "1 + 1 =\u00a0"}, [("prompt_trailing_whitespace", "prompt")]),
    ({"prompt": "Q: a\nA: b\nQ: c\nA:"}, [("prompt_few_shot", "prompt")]),
    (
        {"prompt": "Question: 2 + 2\nAnswer: 4\n\n17 + 24 ="},
        [("prompt_few_shot", "prompt")],
    ),  # the record's own example, written out
    ({"targets": []}, [("targets_empty", "targets")]),
    ({**MCQ, "targets": []}, [("targets_empty", "targets")]),
    ({**MCQ, "targets": ["A", "B"]}, [("mcq_one_target", "targets")]),
    ({**MCQ, "targets": ["F"]}, [("mcq_letter", "targets[0]")]),
    ({**MCQ, "targets": ["a"]}, [("mcq_letter", "targets[0]")]),
    ({**MCQ, "targets": ["A)"]}, [("mcq_letter", "targets[0]")]),
    ({**MCQ, "targets": [1]}, [("field_type", "targets[0]")]),
    ({**MCQ, "targets": [""]}, [("blank_text", "targets[0]")]),
    ({"category": "mcq", "post_process": "lower", "targets": ["A"]}, [("mcq_letter", "targets[0]")]),
    ({"category": "mcq", "post_process": "none", "targets": ["7"]}, [("mcq_letter", "targets[0]")]),
    ({"category": "mcq", "post_process": "none", "targets": ["É"]}, [("mcq_letter", "targets[0]")]),
    ({"few_shot_examples": NINE}, [("few_shot_cap", "few_shot_examples")]),
    (
        {"task_id": "a b", "targets": [], "metric_name": "bleu", "extra": 1},
        [
            ("unknown_field", "extra"),
            ("task_id_whitespace", "task_id"),
            ("metric_name", "metric_name"),
            ("targets_empty", "targets"),
        ],
    ),
]


@pytest.mark.parametrize(("changes", "expected"), BROKEN, ids=lambda value: str(value)[:60])
def test_invalid_record_is_reported_with_rule_and_field(
    changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert broken(record(**changes)) == expected


def test_every_record_rule_has_an_invalid_example() -> None:
    of_lines_and_files = {"json", "object", "duplicate_key", "task_id_unique"}
    assert {rule for _, expected in BROKEN for rule, _ in expected} == {*Rule} - of_lines_and_files


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "text", [SOUND]])
def test_value_that_is_not_an_object_is_refused(value: object) -> None:
    assert broken(value) == [("object", "")]


def test_null_is_not_treated_as_missing() -> None:
    assert broken({**SOUND, "metadata": None, "targets": None}) == [
        ("field_type", "targets"),
        ("field_type", "metadata"),
    ]


def test_eight_few_shot_examples_are_allowed() -> None:
    assert len(made(few_shot_examples=NINE[:8]).few_shot_examples) == 8


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("rule", POST_PROCESS_RULES)
def test_allowed_combinations_match_the_table(category: str, metric: str, rule: str) -> None:
    target = "a" if rule == "lower" else "A"
    found = broken(record(category=category, metric_name=metric, post_process=rule, targets=[target]))
    expected = []
    if metric not in LEGAL[category].metric_names:
        expected.append(("category_metric", "metric_name"))
    if rule not in LEGAL[category].post_process:
        expected.append(("category_post_process", "post_process"))
    assert found == expected


def test_every_category_metric_and_rule_is_allowed_somewhere() -> None:
    assert set(LEGAL) == set(CATEGORIES)
    assert {name for legal in LEGAL.values() for name in legal.metric_names} == set(METRIC_NAMES)
    assert {name for legal in LEGAL.values() for name in legal.post_process} == set(POST_PROCESS_RULES)


def test_allowed_combinations_match_the_format_page() -> None:
    assert LEGAL["code_exec"].metric_names == {"code_exec"}
    assert LEGAL["mcq"].metric_names == {"exact_match"}
    assert [name for name in CATEGORIES if "code_exec" in LEGAL[name].metric_names] == ["code_exec"]


def test_messages_contain_found_value_expected_value_and_fix() -> None:
    _, (error,) = validate_task(record(metric_name="exact-match"))
    assert error.message == (
        "found 'exact-match', expected one of exact_match, f1, bleu_4, rouge_l, accuracy, code_exec"
    )
    assert error.hint == "did you mean 'exact_match'?"
    assert str(error).startswith("metric_name: found 'exact-match'")


def test_long_values_are_truncated_in_messages() -> None:
    _, (error,) = validate_task(record(category="x" * 10_000))
    assert len(error.message) < 300


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*SOUND, "other"]), json_values) | json_values)
def test_any_json_value_is_valid_or_has_errors(value: Any) -> None:
    task, errors = validate_task(value)
    assert (task is None) == (len(errors) > 0)


@settings(deadline=None)
@given(st.data())
def test_any_changed_field_is_checked_without_an_exception(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*SOUND, "other"]))
    value = {**SOUND, name: data.draw(json_values)}
    task, errors = validate_task(value)
    if task is not None:
        assert validate_task(task.to_record()) == (task, ())
    assert (task is None) == bool(errors)


def test_schema_accepts_valid_records_and_refuses_most_invalid_ones() -> None:
    from jsonschema import Draft202012Validator

    schema = schema_for_record()
    Draft202012Validator.check_schema(schema)
    checker = Draft202012Validator(schema)
    assert checker.is_valid(SOUND)
    # A schema cannot check Unicode whitespace, examples inside a prompt, or the results of `lower`.
    beyond = {"prompt_few_shot", "mcq_letter", "combined_post_process"}
    for changes, expected in BROKEN:
        if not {rule for rule, _ in expected} & beyond:
            assert not checker.is_valid(orjson.loads(orjson.dumps(record(**changes)))), changes
