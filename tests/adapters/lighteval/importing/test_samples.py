"""Import of documents, prompts, answers and metrics, and redaction, losses and bounds of the output."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.lighteval.importing.results import (
    details_path,
    doc,
    imported,
    load,
    response,
    results_json,
    results_path,
    row,
    the_log,
    write_details,
    write_run,
)
from tests.support.commands import Run

from aigo_bridge.dtypes import (
    InputImageContent,
    Message,
    ModelCallEvent,
    SampleEvidence,
    SolverTrace,
    TaskResultLog,
)
from aigo_bridge.errors import UsageError
from aigo_bridge.importing.log_import import LossReport
from aigo_lighteval.importing.rows import PromptSettings, golds_of, prompt_items

Json = dict[str, Any]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 8


def samples_of(log: TaskResultLog) -> list[SampleEvidence]:
    assert log.evidence is not None
    return log.evidence.samples or []


def solver_of(sample: SampleEvidence, trial: int = 0) -> SolverTrace:
    solver = sample.trials[trial].solver
    assert solver is not None
    assert isinstance(solver.output, SolverTrace)
    return solver.output


def call_of(sample: SampleEvidence, trial: int = 0, number: int = 0) -> ModelCallEvent:
    event = (solver_of(sample, trial).trace.events or [])[number]
    assert isinstance(event, ModelCallEvent)
    return event


def spoken(sample: SampleEvidence, trial: int = 0) -> list[tuple[str, str]]:
    return [
        (item.role.value, "".join(getattr(part, "text", "") for part in item.content))
        for item in solver_of(sample, trial).trace.items
        if isinstance(item, Message)
    ]


def one(
    tmp_path: Path, document: Json, answer: Json, metric: Json | None = None, **content: Any
) -> TaskResultLog:
    rows = [{"doc": document, "metric": metric or {"em": 1.0}, "model_response": answer}]
    return the_log(write_run(tmp_path / "run", rows, results_json(**content)), tmp_path / "out")


def test_a_text_prompt_becomes_one_user_message(tmp_path: Path) -> None:
    log = one(tmp_path, doc(), response("yes", input="<|user|>question<|end|>"))
    assert spoken(samples_of(log)[0]) == [("user", "<|user|>question<|end|>"), ("assistant", "yes")]


def test_a_missing_prompt_is_rebuilt_as_in_lighteval(tmp_path: Path) -> None:
    shots = [
        doc(7, query="Be short. one?", choices=["uno"], instruction="Be short. "),
        doc(8, query="two?", choices=["dos", "due"], gold_index=1),
    ]
    document = doc(query="Be short. three?", instruction="Be short. ", fewshot_samples=shots)
    config = {"model_name": "m", "model_config": {"system_prompt": "You know numbers."}}
    log = one(tmp_path, document, response("tres", input=None), config_general=config)

    from lighteval.tasks.prompt_manager import PromptManager
    from lighteval.tasks.requests import Doc

    def as_doc(fields: Json) -> Doc:
        own = {**fields, "fewshot_samples": [as_doc(shot) for shot in fields["fewshot_samples"]]}
        return Doc(**own)

    native = PromptManager(True, None, "You know numbers.").prepare_prompt_api(as_doc(document))
    expected = [(message["role"], message["content"]) for message in native]
    assert spoken(samples_of(log)[0]) == [*expected, ("assistant", "tres")]
    notes = (call_of(samples_of(log)[0]).metadata or {})["lighteval"]
    assert notes["prompt"] == "rebuilt from the document"


@given(st.data())
def test_rebuilt_prompts_equal_lighteval_prompts(data: st.DataObject) -> None:
    from lighteval.tasks.prompt_manager import PromptManager
    from lighteval.tasks.requests import Doc

    words = st.text("ab \nü", max_size=6)
    instruction = data.draw(st.none() | words)
    system = data.draw(st.none() | words)

    def fields(*, shots: bool) -> Json:
        lead = instruction if instruction is not None and data.draw(st.booleans()) else ""
        choices = data.draw(st.lists(words, min_size=1, max_size=3))
        index = st.integers(0, len(choices) - 1)
        return {
            "query": lead + data.draw(words),
            "choices": choices,
            "gold_index": data.draw(index | st.lists(index, min_size=1, max_size=3)),
            "instruction": instruction if data.draw(st.booleans()) else None,
            "fewshot_samples": [fields(shots=False) for _ in range(data.draw(st.integers(0, 3)))]
            if shots
            else [],
        }

    def as_doc(found: Json) -> Doc:
        return Doc(**{**found, "fewshot_samples": [as_doc(shot) for shot in found["fewshot_samples"]]})

    document = fields(shots=True)
    native = as_doc(document)
    items, rebuilt = prompt_items(document, {"input": None}, PromptSettings(system), LossReport())
    assert rebuilt
    ((plain,), _) = prompt_items(document, {"input": None}, PromptSettings(system, chat=False), LossReport())
    assert plain["content"][0]["text"] == PromptManager(False, None, system).prepare_prompt(native)
    expected = PromptManager(True, None, system).prepare_prompt_api(native)
    assert [(item["role"], item["content"][0]["text"]) for item in items] == [
        (message["role"], message["content"]) for message in expected
    ]
    assert golds_of(document) == native.get_golds()


def test_images_are_in_the_model_input_and_in_the_sample_data(tmp_path: Path) -> None:
    document = doc(images=[{"bytes": PNG, "path": None}, {"bytes": None, "path": "https://x/y.png"}])
    log = one(tmp_path, document, response("a cat", input="<image><image>What is it?"))
    (sample,) = samples_of(log)
    (user, _) = solver_of(sample).trace.items
    assert isinstance(user, Message)
    urls = [part.image_url for part in user.content if isinstance(part, InputImageContent)]
    assert urls == ["data:image/png;base64,iVBORw0KGgowMDAwMDAwMA==", "https://x/y.png"]
    assert sample.trials[0].sample is not None
    assert sample.trials[0].sample.data["images"] == urls


def test_message_parts_keep_their_types(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "What is it?", "image": None},
        {"type": "image", "text": None, "image": {"bytes": PNG, "path": None}},
    ]
    document = doc(images=[{"bytes": PNG, "path": None}])
    log = one(tmp_path, document, response("a cat", input=[{"role": "user", "content": parts}]))
    (user, _) = solver_of(samples_of(log)[0]).trace.items
    assert isinstance(user, Message)
    assert [part.type for part in user.content] == ["input_text", "input_image"]


def test_scored_text_is_kept_if_it_differs_from_the_answer(tmp_path: Path) -> None:
    answer = response("<think>hm</think> yes", text_post_processed=[" yes"], reasonings=[None])
    (sample,) = samples_of(one(tmp_path, doc(), answer))
    assert spoken(sample)[-1] == ("assistant", "<think>hm</think> yes")
    assert (call_of(sample).metadata or {})["lighteval"] == {"text_post_processed": " yes"}


def test_reasoning_is_not_part_of_the_answer_text(tmp_path: Path) -> None:
    (sample,) = samples_of(one(tmp_path, doc(), response("yes", reasonings=["it must be"])))
    assert solver_of(sample).trace.get_last_assistant_text() == "yes"
    assert spoken(sample)[1:] == [("assistant", "it must be"), ("assistant", "yes")]


def test_an_empty_answer_differs_from_a_missing_one(tmp_path: Path) -> None:
    rows = [row(0, ""), {**row(1), "model_response": response()}]
    empty, none = samples_of(the_log(write_run(tmp_path / "run", rows), tmp_path / "out"))
    assert spoken(empty)[-1] == ("assistant", "")
    assert spoken(none) == [("user", "question")]
    assert solver_of(none).raw_outputs == [None]


def test_tokens_and_logits_are_kept_except_in_minimal_imports(tmp_path: Path) -> None:
    answer = response(
        "yes", "no", input_tokens=[1, 2, 3], output_tokens=[[4], [5, 6]], logits=[[0.5], [0.25, 1.0]]
    )
    run = write_run(tmp_path / "run", [{"doc": doc(), "metric": {"em": 1.0}, "model_response": answer}])
    (sample,) = samples_of(the_log(run, tmp_path / "all"))
    first, second = ((call_of(sample, n).metadata or {})["lighteval"] for n in (0, 1))
    assert first == {"input_tokens": [1, 2, 3], "output_tokens": [[4]], "logits": [[0.5]]}
    assert second == {"output_tokens": [[5, 6]], "logits": [[0.25, 1.0]]}

    code, (report,) = imported(run, tmp_path / "few", events="minimal", max_loss=2)
    assert report.output is not None
    (sample,) = samples_of(load(report.output))
    assert (call_of(sample).metadata or {})["lighteval"] == {}
    assert report.summary["loss"]["dropped"] == {
        f"{name} of an answer (--events minimal)": 1 for name in ("input_tokens", "logits", "output_tokens")
    }
    assert code == 1


def test_contexts_can_be_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    sample = samples_of(the_log(run, tmp_path / "out", context="none"))[0]
    call = call_of(sample)
    assert call.input_context == []
    assert (call.metadata or {})["lighteval"]["context"] == {"left_out": 1}
    assert spoken(sample) == [("user", "question"), ("assistant", "yes")]


def test_unknown_fields_are_kept(tmp_path: Path) -> None:
    answer = response("yes") | {"latency": 0.5, "finish_reason": "stop"}
    (sample,) = samples_of(one(tmp_path, doc() | {"difficulty": "hard"}, answer))
    assert (call_of(sample).metadata or {})["lighteval"] == {"latency": 0.5, "finish_reason": "stop"}
    assert sample.trials[0].sample is not None
    assert sample.trials[0].sample.data["difficulty"] == "hard"


def test_equal_ids_in_two_splits_stay_distinct(tmp_path: Path) -> None:
    rows = [
        row(1, "b"),
        row(0, "a"),
        {**row(0, "c"), "doc": doc(0, query="of another split")},
        {**row(0, "d"), "doc": doc(0, query="of a third")},
    ]
    log = the_log(write_run(tmp_path / "run", rows), tmp_path / "out")
    found = [(s.sample_id, spoken(s)[-1][1], (s.trials[0].sample or log).data["id"]) for s in samples_of(log)]  # type: ignore[union-attr]
    assert found == [("0", "a", "0"), ("0-2", "c", "0"), ("0-3", "d", "0"), ("1", "b", "1")]


def test_repeated_documents_get_distinct_ids(tmp_path: Path) -> None:
    log = the_log(write_run(tmp_path / "run", [row(0, "a"), row(0, "b")]), tmp_path / "out")
    assert [(s.sample_id, spoken(s)[-1][1]) for s in samples_of(log)] == [("0", "a"), ("0-2", "b")]


def test_numeric_ids_are_sorted_as_numbers(tmp_path: Path) -> None:
    log = the_log(write_run(tmp_path / "run", [row(n) for n in (10, 9, 2, 100)]), tmp_path / "out")
    assert [s.sample_id for s in samples_of(log)] == ["2", "9", "10", "100"]


def test_likelihoods_keep_infinity_as_text_and_ignore_padding(tmp_path: Path) -> None:
    answer = response(
        logprobs=[-1.5, -math.inf], argmax_logits_eq_gold=[True, False], output_tokens=[[1, 2], [3, -1]]
    )
    (sample,) = samples_of(one(tmp_path, doc(sampling_methods=["LOGPROBS"]), answer))
    assert solver_of(sample).raw_outputs == [
        {
            "log_likelihoods": [
                {"continuation": "yes", "log_likelihood": -1.5, "num_tokens": 2, "is_greedy": True},
                {"continuation": "no", "log_likelihood": "-Infinity", "num_tokens": 1, "is_greedy": False},
            ]
        }
    ]


def test_metric_functions_are_recorded_without_memory_addresses(tmp_path: Path) -> None:
    config = {
        "demo|0": {
            "name": "demo",
            "metrics": [
                {
                    "metric_name": ["em", "f1"],
                    "corpus_level_fn": {
                        "em": "<lighteval.metrics.x.Best object at 0x7ffa>",
                        "f1": "Macro(average=None)",
                    },
                }
            ],
        }
    }
    log = one(tmp_path, doc(), response("a"), metrics={"em": 1, "f1": 0.5, "other": 3}, config_tasks=config)
    assert log.evidence is not None
    assert [(m.scorer_key, m.metric_type) for m in log.evidence.metrics or []] == [
        ("em", "lighteval.metrics.x.Best"),
        ("f1", "Macro"),
        ("other", "other"),
    ]


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"model_name": "openai/gpt-oss-20b", "dtype": "float16"}, "custom_connection"),
        ({"model_name": "openai/gpt-4.1", "provider": "openai"}, "provider_connection"),
    ],
)
def test_local_weights_named_like_a_provider_are_not_a_provider_model(
    config: Json, kind: str, tmp_path: Path
) -> None:
    general = {"model_name": config["model_name"], "model_config": config}
    log = one(tmp_path, doc(), response("a"), config_general=general)
    assert log.specification.evaluated_entity is not None
    assert log.specification.evaluated_entity.config.connection_type == kind  # type: ignore[union-attr]


def test_a_subset_of_samples_is_recorded_in_the_specification(tmp_path: Path) -> None:
    general = results_json()["config_general"] | {"max_samples": 3}
    log = one(tmp_path, doc(), response("a"), config_general=general)
    assert log.specification.run_config.num_samples == 3
    assert log.specification.run_config.subsampling is not None
    assert log.specification.run_config.subsampling.value == "random"


KEY = "sk-" + "a1B2" * 8


def test_secrets_are_redacted_in_all_output_files(tmp_path: Path) -> None:
    general = {
        "model_name": "m",
        "model_config": {"api_key": "a word of a key", "eos_token": "</s>", "max_new_tokens": 5, "note": KEY},
    }
    rows = [row(0, f"the key is {KEY}"), row(1, "nothing")]
    rows[1]["doc"]["specific"] = {"note": f"{KEY} again"}
    rows[0]["doc"]["specific"] = {"note": "x"}
    run = write_run(tmp_path / "run", rows, results_json(config_general=general))

    code, (report,) = imported(run, tmp_path / "out")
    assert code == 0
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    assert KEY.encode() not in written
    assert b"a word of a key" not in written
    assert b"</s>" in written
    assert report.summary["redacted"] == {"openai or anthropic key": 5, "value of api_key": 1}
    assert report.output is not None
    assert len(samples_of(load(report.output))) == 2

    imported(run, tmp_path / "open", redact=False)
    assert KEY.encode() in b"".join(path.read_bytes() for path in (tmp_path / "open").iterdir())


def test_a_secret_of_digits_in_a_number_leaves_valid_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "123456789012")
    rows = [row(0, "123456789012", metric={"f1": 0.123456789012})]
    run = write_run(tmp_path / "run", rows, results_json(metrics={"f1": 0.5}))
    _, (report,) = imported(run, tmp_path / "out")
    assert report.output is not None
    (sample,) = samples_of(load(report.output))
    assert spoken(sample)[-1][1] == "[redacted: value of MY_TOKEN]"
    assert (sample.trials[0].scores or [])[0].values == {"f1": "0.[redacted: value of MY_TOKEN]"}


def test_user_defined_redaction_patterns_are_applied(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row(0, "call 555-1234")])
    code, (report,) = imported(run, tmp_path / "out", patterns=(r"\d{3}-\d{4}",), redact=False)
    assert code == 0
    assert report.output is not None
    assert spoken(samples_of(load(report.output))[0])[-1][1] == r"call [redacted: pattern _d{3}-_d{4}]"
    with pytest.raises(UsageError, match="is not a regular expression"):
        imported(run, tmp_path / "out", patterns=("(",))
    with pytest.raises(UsageError, match="found bound"):
        imported(run, tmp_path / "out", bounds={"sise": 1})


def test_the_loss_report_counts_kept_content(tmp_path: Path) -> None:
    _, (report,) = imported(write_run(tmp_path / "run"), tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.loss.json")
    written = json.loads(path.read_text())
    assert written["kept"] == {"metric": 1, "model call": 3, "sample": 3, "score": 3}
    assert (written["changed"], written["dropped"], written["damage"]) == ({}, {}, [])
    assert written["log"] == report.log


@pytest.mark.xdist_group("lighteval")
def test_an_imported_aigo_bridge_run_equals_the_original(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"q": "2+2", "a": "4"}\n{"q": "2+3", "a": "5"}\n')
    (tmp_path / "m.jsonl").write_text('{"match": {"regex": "."}, "reply": "4"}\n')
    (tmp_path / "t.yaml").write_text(
        "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  dataset: {key: d}\n"
        "  solver:\n    type: single_turn_solver\n"
        "    input_builder: {type: chat_completion, input_messages: [{role: user, content: '{{ sample.q }}'}]}\n"
        "  scorers: [{type: string_equals, ground_truth: '{{ sample.a }}'}]\n"
    )
    done = aigo("run", "t.yaml", "--engine", "lighteval", "--model", "scripted/m.jsonl", "--out", "run")
    assert done.code == 0, done.err
    done = aigo("import", "run", "--out", "again", "--json")
    assert done.code == 0, done.err
    (again,) = (tmp_path / "again").glob("*.tasklog.json")
    (first,) = (tmp_path / "run").glob("*.tasklog.json")
    assert again.read_bytes() == first.read_bytes()
    assert done.json[0]["samples"] == 2

    # A damaged run is imported like any other: with its metrics and without documents.
    (details,) = (tmp_path / "run").rglob("details_*.parquet")
    details.write_bytes(details.read_bytes()[:100])
    done = aigo("import", "run", "--out", "salvaged", "--json")
    assert done.code == 3
    assert done.json[0]["unreadable"]


def test_imported_answers_can_be_rescored(aigo: Run, tmp_path: Path) -> None:
    run = write_run(tmp_path / "native", [row(0, "yes"), row(1, "no")])
    aigo("import", run, "--out", "evidence")
    (log,) = (tmp_path / "evidence").glob("*.tasklog.json")
    (tmp_path / "t.yaml").write_text(
        "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  dataset: {key: d}\n"
        "  solver:\n    type: single_turn_solver\n"
        "    input_builder: {type: chat_completion, input_messages: [{role: user, content: '{{ sample.query }}'}]}\n"
        "  scorers: [{type: string_equals, ground_truth: '{{ sample.golds[0] }}'}]\n"
    )
    done = aigo("score", "t.yaml", log, "--out", "scored")
    assert done.code == 0, done.err
    (scored,) = (tmp_path / "scored").rglob("*.tasklog.json")
    values = [(s.trials[0].scores or [])[0].values for s in samples_of(load(scored))]
    assert [next(iter(value.values())) for value in values] == [1, 0]


def test_imported_likelihoods_can_be_rescored(aigo: Run, tmp_path: Path) -> None:
    def asked(number: int, *logprobs: float) -> Json:
        answer = response(
            logprobs=list(logprobs), argmax_logits_eq_gold=[True, False], output_tokens=[[1, 2], [3, -1]]
        )
        document = doc(number, sampling_methods=["LOGPROBS"])
        return {"doc": document, "metric": {"em": float(logprobs[0] > logprobs[1])}, "model_response": answer}

    rows = [asked(0, -1.0, -2.0), asked(1, -3.0, -2.0)]
    run = write_run(tmp_path / "native", rows, results_json(metrics={"em": 0.5}))
    aigo("import", run, "--out", "evidence")
    (log,) = (tmp_path / "evidence").glob("*.tasklog.json")
    (tmp_path / "t.yaml").write_text(
        "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  dataset: {key: d}\n"
        "  solver:\n    type: single_turn_solver\n"
        "    input_builder: {type: chat_completion, input_messages: [{role: user, content: '{{ sample.query }}'}]}\n"
        "  scorers:\n  - type: string_equals_mcqa\n    method: loglikelihood\n"
        "    choices: '{{ sample.choices }}'\n    ground_truth_choice: '{{ sample.golds[0] }}'\n"
    )
    done = aigo("score", "t.yaml", log, "--out", "scored")
    assert done.code == 0, done.err
    (scored,) = (tmp_path / "scored").rglob("*.tasklog.json")
    values = [(s.trials[0].scores or [])[0].values for s in samples_of(load(scored))]
    assert [next(iter(value.values())) for value in values] == [1, 0]


def test_details_with_several_row_groups_are_read_as_one_table(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    write_details(details_path(run), [row(n, str(n)) for n in range(1000)], row_group_size=37)
    log = the_log(run, tmp_path / "out")
    assert [spoken(s)[-1][1] for s in samples_of(log)] == [str(n) for n in range(1000)]
    assert results_path(run).exists()
