"""Evidence: construction, metric names, and accepted log formats."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.bridge.dtypes.building import message

from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionModelOutput,
    EmbeddingsModelOutput,
    LFBaseModel,
    MetricData,
    ModelEndpointInput,
    ModelEndpointOutput,
    OpenResponsesModelOutput,
    RAGCompletionOutput,
    RunEvidence,
    SampleData,
    SampleEvidence,
    ScoresData,
    SingleSolverOutput,
    SolverTrace,
    StoredDataset,
    StoredModel,
    TaskResultEvidence,
    TaskResultLog,
    TaskResultSpecification,
    TextCitationBody,
    make_explicit,
)

DIRECT: dict[str, Any] = {
    "solver_model_direct_input": ModelEndpointInput(body="{}"),
    "solver_model_direct_output": ModelEndpointOutput(body="{}", status_code=200),
}
CHAT = ChatCompletionModelOutput.model_validate(
    {"choices": [{"message": {"role": "assistant", "content": "a"}}]}
)
ASKED = ChatCompletionInput.model_validate(
    {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "q", "name": "dropped"},
            {"role": "assistant", "content": "before"},
            {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
        ]
    }
)


def build(**arguments: Any) -> SampleEvidence:
    return SampleEvidence.build(
        **{
            "model_input": "q",
            "model_output": "a",
            "score_values": {"s": 1},
            "sample_id": "1",
            **DIRECT,
            **arguments,
        }
    )


class TestBuild:
    def test_evidence_is_built_with_one_trial(self) -> None:
        evidence = build(sample_data={"q": "?"})

        assert evidence.model_fields_set == {"sample_id", "sample", "solver", "scores", "errors", "trials"}
        assert (evidence.sample, evidence.solver, evidence.scores, evidence.errors) == (None, None, None, [])
        (trial,) = evidence.trials
        assert (trial.index, trial.sample_id, trial.errors) == (0, "1", [])
        assert trial.sample == SampleData(data={"q": "?"})

    def test_sample_is_never_null(self) -> None:
        assert build().trials[0].sample == SampleData(data={})

    def test_sample_id_is_required(self) -> None:
        with pytest.raises(ValidationError):
            build(sample_id=None)

    def test_evidence_without_input_and_output_has_no_solver(self) -> None:
        assert build(model_input=None, model_output=None).trials[0].solver is None

    def test_open_responses_needs_raw_input_and_raw_output(self) -> None:
        for missing in DIRECT:
            with pytest.raises(ValidationError):
                build(**{missing: None})
        solver = build().trials[0].solver
        assert solver is not None
        assert isinstance(solver.output, SolverTrace)
        assert len(solver.output.direct_ios) == 1
        assert solver.output.raw_outputs == ["a"]

    def test_chat_messages_become_items_without_types(self) -> None:
        items = self.items(model_input=ASKED, model_output=CHAT)

        assert [type(item).__name__ for item in items] == [
            "SystemMessage",
            "UserMessage",
            "AssistantMessage",
            "UserMessage",
            "AssistantMessage",
        ]
        assert [item.model_dump(mode="json") for item in items[1:4]] == [
            {"id": "", "status": "completed", "role": "user", "content": [{"text": "q"}]},
            {
                "id": "",
                "status": "completed",
                "role": "assistant",
                "content": [{"text": "before", "annotations": []}],
            },
            {"id": "", "status": "completed", "role": "user", "content": [{"text": ""}]},
        ]

    def test_references_become_citations(self) -> None:
        choice = {"message": {"role": "assistant", "content": "a"}, "references": [{"content": "r"}]}
        item = self.items(model_output=RAGCompletionOutput.model_validate({"choices": [choice]}))[1]
        assert item.content[0].annotations == [TextCitationBody(content="r")]
        assert item.model_dump()["content"][0]["annotations"] == [{"content": "r"}]

    def test_other_inputs_and_outputs_become_custom_items(self) -> None:
        vectors = EmbeddingsModelOutput(embeddings=[[1.0]])
        items = self.items(model_input=["text"], model_output=vectors)
        assert [(item.type, item.content) for item in items] == [
            ("custom_task_input_message", ["text"]),
            ("custom_task_output_message", vectors),
        ]

    def test_output_items_are_copied_and_missing_choice_gives_no_item(self) -> None:
        answer = message("assistant", "a")
        assert self.items(model_output=OpenResponsesModelOutput(items=[answer]))[1] is answer
        assert len(self.items(model_output=ChatCompletionModelOutput(choices=[]))) == 1

    def test_the_latticeflow_format_is_a_single_conversation(self) -> None:
        solver = build(model_input=ASKED, model_output=CHAT, message_format="latticeflow").trials[0].solver
        assert solver is not None
        assert solver.output == SingleSolverOutput.from_input_and_output(ASKED, CHAT, *DIRECT.values())
        without = build(message_format="latticeflow", solver_model_direct_input=None).trials[0].solver
        assert without is not None
        assert isinstance(without.output, SingleSolverOutput)
        assert without.output.direct_ios == []

    def test_score_parts_become_one_score_of_the_trial(self) -> None:
        class Values(LFBaseModel):
            a: int = 1
            b: int | None = None

        (score,) = (
            build(score_values=Values(), score_metadata=Values(a=2), scorer_key="k").trials[0].scores or []
        )
        assert (score.scorer_key, score.values, score.metadata) == (
            "k",
            {"a": 1, "b": None},
            {"a": 2, "b": None},
        )
        (plain,) = build(score_metadata={}).trials[0].scores or []
        assert (plain.scorer_key, plain.metadata, plain.direct_ios) == ("my_scorer_key", {}, [])
        io = {"scorer_model_direct_input": DIRECT["solver_model_direct_input"]}
        assert (build(**io).trials[0].scores or [])[0].direct_ios == []
        io["scorer_model_direct_output"] = DIRECT["solver_model_direct_output"]
        assert len((build(**io).trials[0].scores or [])[0].direct_ios) == 1

    def test_build_with_1_trial_keeps_the_given_parts(self) -> None:
        score = ScoresData(scorer_key="s", values={})
        evidence = SampleEvidence.build_with_1_trial(
            sample_id=3, sample=None, solver=None, scores=[score], errors=[]
        )

        assert (evidence.sample_id, evidence.scores) == (3, None)
        assert evidence.trials[0].scores == [score]
        assert "action_records" not in evidence.model_dump()

    @staticmethod
    def items(**arguments: Any) -> list[Any]:
        solver = build(**arguments).trials[0].solver
        assert solver is not None
        assert isinstance(solver.output, SolverTrace)
        return list(solver.output.items)


def metric(key: str, scorer: str | None = None, **values: float) -> MetricData:
    return MetricData(values=values, metric_key=key, scorer_key=scorer)


class TestMetrics:
    def test_dictionary_becomes_one_metric(self) -> None:
        expected = MetricData(
            values={"a": 1},
            metric_key="task_metric",
            metric_type="task_metric_type",
            scorer_key="task_scorer",
        )
        assert TaskResultEvidence.adapt_metrics_if_needed({"a": 1}) == [expected]
        assert TaskResultEvidence.model_validate({"metrics": {"a": 1}}).metrics == [expected]
        assert len(TaskResultEvidence(metrics={}).metrics or []) == 1
        with pytest.raises(ValidationError):
            RunEvidence.model_validate({"index": 0, "metrics": {}})

    @pytest.mark.parametrize("value", [None, [], [1], "x", 1])
    def test_other_metric_values_are_returned_unchanged(self, value: Any) -> None:
        assert TaskResultEvidence.adapt_metrics_if_needed(value) is value

    def test_metric_values_that_are_not_numbers_are_refused(self) -> None:
        with pytest.raises(ValidationError):
            TaskResultEvidence.adapt_metrics_if_needed({"a": "x"})
        with pytest.raises(ValidationError):
            TaskResultEvidence.model_validate({"metrics": {"a": "x"}})

    @pytest.mark.parametrize(
        ("metrics", "flat"),
        [
            (None, {}),
            ([], {}),
            ([metric("m", a=1, b=2)], {"a": 1, "b": 2}),
            ([metric("m", a=1, b=2), metric("n", a=3)], {"m_a": 1, "m_b": 2, "n_a": 3}),
            ([metric("m", "s", a=1), metric("m", "t", a=2)], {"s_m_a": 1, "t_m_a": 2}),
            ([metric("m", None, a=1), metric("m", "t", a=2)], {"None_m_a": 1, "t_m_a": 2}),
            ([metric("m", "s", a=1), metric("m", "s", a=2)], {"s_m_a": 2}),
        ],
    )
    def test_flat_metric_names_are_as_short_as_possible_and_unique(
        self, metrics: Any, flat: dict[str, float]
    ) -> None:
        assert TaskResultEvidence(metrics=metrics).build_flat_metrics_dict() == flat


TASK: dict[str, Any] = {
    "id": "t",
    "key": "t",
    "display_name": "T",
    "description": "",
    "config_spec": [],
    "tags": [],
    "provider": "user",
    "definition": {
        "type": "benchmark_task",
        "evaluated_entity_type": "model",
        "dataset": {"id": "d"},
        "solver": {"type": "single_turn_solver", "input_builder": {"x": None}},
        "scorers": [{"type": "string_equals", "key": "s", "own": None}],
    },
}
MODEL: dict[str, Any] = {
    "id": "m",
    "display_name": "M",
    "key": "openai$gpt",
    "task": "chat_completion",
    "adapter_id": "a",
    "config": {"connection_type": "provider_connection", "provider_id": "openai", "model_key": "gpt"},
}
LOG: dict[str, Any] = {
    "format_version": "v1",
    "app_version": "x",
    "status": "success",
    "evidence": {"metrics": [{"values": {"a": 1.0}, "metric_key": "mean"}], "samples": []},
    "specification": {
        "display_name": "E",
        "config": {},
        "run_config": {},
        "task": TASK,
        "evaluated_entity": MODEL,
    },
    "execution": {"runtime": 1.0, "started_at": 1, "ended_at": 2},
    "errors": [],
}
LEGACY_SAMPLE: dict[str, Any] = {
    "sample_id": "1",
    "sample": {"data": {"q": None}},
    "solver": {"output": {"messages": [{"role": "user", "content": "q"}], "output": None}},
    "scores": [{"scorer_key": "s", "values": {"a": None}}],
    "errors": [{"error_type": "E", "message": "m"}],
}


def changed(data: dict[str, Any], *path: Any, **fields: Any) -> dict[str, Any]:
    """Return a copy with changed fields in the dictionary at a path. `...` removes a field."""
    data = copy.deepcopy(data)
    here = data
    for part in path:
        here = here[part]
    here.update(fields)
    for name, value in fields.items():
        if value is ...:
            del here[name]
    return data


class TestTaskResultLog:
    def test_log_is_written_as_it_was_read(self) -> None:
        assert TaskResultLog.model_validate(LOG).model_dump(mode="json") == LOG
        assert json.loads(TaskResultLog.model_validate_json(json.dumps(LOG)).model_dump_json()) == LOG

    def test_minimal_log_is_read(self) -> None:
        smallest = changed(
            changed(LOG, "specification", evaluated_entity=...),
            "specification",
            "task",
            definition={"type": "system_task", "compute_evidence_snippet": ""},
        )
        smallest["evidence"] = None
        assert TaskResultLog.model_validate(smallest).model_dump(mode="json") == smallest

    @pytest.mark.parametrize(
        ("path", "fields"),
        [
            (
                (),
                [
                    "format_version",
                    "app_version",
                    "status",
                    "evidence",
                    "specification",
                    "execution",
                    "errors",
                ],
            ),
            (("specification",), ["display_name", "task", "config", "run_config"]),
            (
                ("specification", "task"),
                ["id", "key", "display_name", "description", "config_spec", "definition", "provider", "tags"],
            ),
            (("execution",), ["runtime", "started_at", "ended_at"]),
            (("evidence",), ["metrics"]),
        ],
    )
    def test_missing_required_field_is_refused(self, path: tuple[str, ...], fields: list[str]) -> None:
        for field in fields:
            with pytest.raises(ValidationError):
                TaskResultLog.model_validate(changed(LOG, *path, **{field: ...}))

    def test_values_outside_an_enumeration_are_refused(self) -> None:
        for fields in ({"status": "failed"}, {"format_version": "v2"}, {"errors": None}):
            with pytest.raises(ValidationError):
                TaskResultLog.model_validate(changed(LOG, **fields))

    def test_deprecated_name_of_the_definition_is_read(self) -> None:
        old = changed(LOG, "specification", "task", "definition", type="declarative_task")

        for log in (TaskResultLog.model_validate(old), TaskResultLog(**old)):
            assert log.model_dump(mode="json") == LOG
        with pytest.raises(ValidationError):
            TaskResultSpecification.model_validate(old["specification"])

    def test_reading_a_log_does_not_change_the_input(self) -> None:
        log = changed(LOG, "evidence", samples=[LEGACY_SAMPLE])
        before = copy.deepcopy(log)
        TaskResultLog.model_validate(log)
        assert log == before

    def test_log_of_a_later_release_is_read(self) -> None:
        """Later fields are dropped, even if a union would refuse them, and removed fields are filled in."""
        later = changed(LOG, "specification", "task", "definition", evaluated_entity_type=...)
        later = changed(later, "specification", "evaluated_entity", usage={"num_tasks": 0})
        later = changed(later, "specification", "task", source="custom")
        later["evidence"]["model_token_usages"] = []
        later["specification"]["task"]["config_spec"] = [
            {"type": "string", "key": "k", "display_name": "K", "default_file_content": None},
            {"type": "model", "key": "m", "display_name": "M", "usage": "judge"},
        ]

        log = TaskResultLog.model_validate(later)

        assert isinstance(log.specification.evaluated_entity, StoredModel)
        dump = log.model_dump(mode="json")
        assert dump["specification"]["task"]["definition"]["evaluated_entity_type"] == "model"
        assert [spec["key"] for spec in dump["specification"]["task"]["config_spec"]] == ["k", "m"]
        assert "usage" not in dump["specification"]["evaluated_entity"]

    def test_missing_type_of_a_dataset_entity_is_filled_in(self) -> None:
        log = changed(LOG, "specification", "task", "definition", evaluated_entity_type=None)
        log["specification"]["evaluated_entity"] = {"id": "d", "display_name": "D", "key": "d"}

        read = TaskResultLog.model_validate(log).model_dump(mode="json")

        assert read["specification"]["task"]["definition"]["evaluated_entity_type"] == "dataset"

    def test_invalid_model_entity_is_read_as_a_dataset(self) -> None:
        """This is a known problem of the format, which `validate_log` reports."""
        log = changed(LOG, "specification", "evaluated_entity", key="plain", surprise=1)
        assert isinstance(TaskResultLog.model_validate(log).specification.evaluated_entity, StoredDataset)
        with_prefix = changed(LOG, "specification", "evaluated_entity", surprise=1)
        with pytest.raises(ValidationError):
            TaskResultLog.model_validate(with_prefix)


class TestLegacySamples:
    @pytest.mark.parametrize("trials", [..., None, []])
    def test_legacy_sample_without_trials_gets_one_trial(self, trials: Any) -> None:
        sample = {**LEGACY_SAMPLE, "trials": trials}
        if trials is ...:
            del sample["trials"]

        log = TaskResultLog.model_validate(changed(LOG, "evidence", samples=[sample]))

        assert log.model_dump(mode="json")["evidence"]["samples"] == [
            {
                "sample_id": "1",
                "sample": None,
                "solver": None,
                "scores": None,
                "action_records": [],
                "errors": [],
                "trials": [
                    {
                        "index": 0,
                        "sample_id": "1",
                        "sample": {"data": {"q": None}},
                        "solver": {
                            "output": {
                                "messages": [{"role": "user", "content": "q"}],
                                "output": None,
                                "direct_ios": [],
                            }
                        },
                        "scores": [
                            {
                                "scorer_key": "s",
                                "scorer_purpose": "score",
                                "values": {"a": None},
                                "direct_ios": [],
                            }
                        ],
                        "errors": [{"error_type": "E", "message": "m"}],
                    }
                ],
            }
        ]

    def test_legacy_sample_may_have_missing_parts(self) -> None:
        log = TaskResultLog.model_validate(changed(LOG, "evidence", samples=[{"sample_id": 1}]))
        assert log.evidence is not None
        assert log.evidence.samples is not None
        assert log.evidence.samples[0].trials[0].scores is None

    def test_unknown_field_in_legacy_scores_is_an_error(self) -> None:
        sample = {**LEGACY_SAMPLE, "scores": [{"scorer_key": "s", "values": {}, "x": 1}]}
        with pytest.raises(ValidationError):
            TaskResultLog.model_validate(changed(LOG, "evidence", samples=[sample]))

    @pytest.mark.parametrize(
        "part", [{"scores": 3}, {"errors": 3}, {"scores": [3]}, {"sample": 3}, {"solver": []}]
    )
    def test_legacy_part_of_the_wrong_type_is_an_error(self, part: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            TaskResultLog.model_validate(changed(LOG, "evidence", samples=[{**LEGACY_SAMPLE, **part}]))

    def test_legacy_sample_read_alone_and_instances_are_unchanged(self) -> None:
        alone = SampleEvidence.model_validate(LEGACY_SAMPLE)
        assert alone.trials == []
        assert alone.model_dump(mode="json") == LEGACY_SAMPLE

        evidence = TaskResultEvidence(metrics=[], samples=[alone])
        log = TaskResultLog.model_validate({**LOG, "evidence": evidence})
        assert log.evidence is evidence

    def test_samples_with_trials_are_kept(self) -> None:
        runs = [{"index": 0, "metrics": [], "samples": [LEGACY_SAMPLE]}]
        log = TaskResultLog.model_validate(changed(LOG, "evidence", runs=runs))
        assert log.model_dump(mode="json")["evidence"]["runs"] == runs


FREE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TRIALS = st.fixed_dictionaries(
    {
        "index": st.integers(0, 3),
        "sample_id": st.text() | st.integers(),
        "sample": st.none() | st.fixed_dictionaries({"data": st.dictionaries(st.text(), FREE, max_size=3)}),
        "solver": st.none()
        | st.fixed_dictionaries(
            {
                "output": st.fixed_dictionaries(
                    {
                        "trace": st.fixed_dictionaries(
                            {
                                "items": st.lists(
                                    st.fixed_dictionaries(
                                        {
                                            "type": st.just("message"),
                                            "id": st.text(),
                                            "status": st.sampled_from(["completed", "incomplete"]),
                                            "role": st.sampled_from(["user", "assistant", "developer"]),
                                            "content": st.lists(
                                                st.fixed_dictionaries(
                                                    {"type": st.just("text"), "text": st.text()}
                                                ),
                                                max_size=2,
                                            ),
                                        },
                                        optional={"created_by": FREE},
                                    )
                                    | st.fixed_dictionaries(
                                        {"type": st.just("custom_task_output_message"), "content": FREE}
                                    ),
                                    max_size=3,
                                )
                            }
                        ),
                        "raw_outputs": st.lists(st.none() | st.text() | st.integers(), max_size=2),
                    }
                )
            }
        ),
        "scores": st.none()
        | st.lists(
            st.fixed_dictionaries(
                {"scorer_key": st.text(), "values": st.dictionaries(st.text(), FREE, max_size=2)}
            ),
            max_size=2,
        ),
        "errors": st.lists(
            st.fixed_dictionaries({"error_type": st.text(), "message": st.text()}), max_size=1
        ),
    }
)


class TestLaws:
    @given(trials=st.lists(TRIALS, min_size=1, max_size=2))
    def test_json_to_object_to_json_is_the_identity(self, trials: list[dict[str, Any]]) -> None:
        sample = {
            "sample_id": None,
            "sample": None,
            "solver": None,
            "scores": None,
            "errors": [],
            "trials": trials,
        }
        text = json.dumps(changed(LOG, "evidence", samples=[sample]))

        dump = TaskResultLog.model_validate_json(text).model_dump_json()

        assert json.loads(dump) == json.loads(text)

    @given(trial=TRIALS)
    def test_dumps_never_lose_a_required_null(self, trial: dict[str, Any]) -> None:
        from aigo_bridge.dtypes import SampleTrialEvidence

        dump = SampleTrialEvidence.model_validate(trial).model_dump(mode="json")
        assert {key for key, value in trial.items() if value is None} <= set(dump)
        assert SampleTrialEvidence.model_validate(dump).model_dump(mode="json") == dump


class TestExplicit:
    def test_explicit_evidence_writes_types_roles_and_ids(self) -> None:
        evidence = make_explicit(build(model_input=ASKED, model_output=None))

        dump = json.loads(evidence.model_dump_json())

        items = dump["trials"][0]["solver"]["output"]["trace"]["items"]
        assert [item["type"] for item in items] == ["message"] * 4 + ["custom_task_output_message"]
        assert items[1]["content"] == [{"type": "input_text", "text": "q"}]
        read = SampleEvidence.model_validate(dump)
        assert read.model_dump(mode="json") == dump

    def test_explicit_events_keep_their_ids(self) -> None:
        from aigo_bridge.dtypes import CustomEvent, Trace

        trace = make_explicit(Trace(items=[], events=[CustomEvent(name="n", data={})]))
        assert Trace.model_validate_json(trace.model_dump_json()) == trace
