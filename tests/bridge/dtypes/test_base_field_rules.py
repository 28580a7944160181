"""Rules that hold for all types: unknown fields, dumps, reading JSON, strictness, times, automatic values."""

from __future__ import annotations

import copy
import json
import math
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

import aigo_bridge.dtypes as dtypes
from aigo_bridge.dtypes import (
    ActionRecord,
    BaseTraceEvent,
    ChatCompletionInputMessage,
    ChatCompletionJSONSchema,
    ChatCompletionOutputMessage,
    CustomEvent,
    CustomTaskOutputMessage,
    DatasetProgressState,
    FileContentItem,
    FileRef,
    FunctionCall,
    InputFileContent,
    InputTextContent,
    LFBaseModel,
    Message,
    MessageRole,
    MetricData,
    ModelCustomConnectionConfig,
    ModelUsage,
    OutputTextContent,
    RunEvidence,
    SampleData,
    SampleEvidence,
    SampleTrialEvidence,
    ScoreAggregator,
    ScoresData,
    SingleSolverOutput,
    SolverData,
    SpanEndEvent,
    StoredDataset,
    StoredModel,
    SystemTaskMetricEntry,
    TaskExecution,
    TaskProgressState,
    TaskResultError,
    TaskResultEvidence,
    TaskResultFailures,
    TaskScorerTemplate,
    Trace,
    TraceMetadata,
    TrialsDefinitionTemplate,
    UserMessage,
)

MESSAGE = {"type": "message", "id": "", "status": "completed", "role": "user", "content": []}

KEEPS_UNKNOWN_FIELDS = {
    "ChatCompletionInput",
    "ChatCompletionInputMessage",
    "ChatCompletionOutputMessage",
    "ChatCompletionModelOutput",
    "ChatCompletionModelOutputChoice",
    "ChatCompletionJSONSchema",
    "ChatCompletionResponseFormatJSONSchema",
    "ChatCompletionResponseFormatText",
    "RAGCompletionOutput",
    "RAGCompletionModelOutputChoice",
    "RAGReference",
    "EmbeddingsModelOutput",
    "ModelUsage",
    "JudgeInput",
    "SolverJudgeInput",
    "SingleSolverJudgeInput",
    "ChatCompletionJudgeInput",
    "SolverTraceJudgeInput",
    "CustomTaskInputMessage",
    "CustomTaskOutputMessage",
    "TaskSolverTemplate",
    "TaskScorerTemplate",
    "TaskMetricTemplate",
}
OPEN_RESPONSES = {
    "Message",
    "UserMessage",
    "AssistantMessage",
    "SystemMessage",
    "FunctionCall",
    "FunctionCallOutput",
    "InputTextContent",
    "OutputTextContent",
    "TextContent",
    "SummaryTextContent",
    "ReasoningTextContent",
    "RefusalContent",
    "InputImageContent",
    "InputFileContent",
    "InputVideoContent",
    "UrlCitationBody",
    "TextCitationBody",
    "LogProb",
    "TopLogProb",
}
MODELS = [
    model
    for name in dtypes.__all__
    if isinstance(model := getattr(dtypes, name), type) and issubclass(model, BaseModel)
]


def without_unknown(error: ValidationError) -> set[str]:
    return {details["type"] for details in error.errors()} - {"missing"}


class TestUnknownFields:
    @pytest.mark.parametrize("model", MODELS)
    def test_unknown_fields_are_kept_or_dropped_by_model_family(self, model: type[BaseModel]) -> None:
        keeps = model.model_config["extra"] == "allow"

        assert keeps == (model.__name__ in KEEPS_UNKNOWN_FIELDS | OPEN_RESPONSES)
        assert issubclass(model, LFBaseModel) == (model.__name__ not in OPEN_RESPONSES)

    def test_constructor_and_adapter_refuse_unknown_fields(self) -> None:
        with pytest.raises(ValidationError, match="not permitted"):
            SampleData(data={}, x=1)  # type: ignore[call-arg]  # unknown on purpose
        with pytest.raises(ValidationError, match="not permitted"):
            TypeAdapter(SampleData).validate_python({"data": {}, "x": 1})

    def test_reading_drops_unknown_fields_at_any_depth(self) -> None:
        data = {
            "index": 0,
            "sample_id": "1",
            "sample": {"data": {"x": 1}, "x": 1},
            "solver": None,
            "scores": [{"scorer_key": "s", "values": {}, "x": {"y": 1}}],
            "errors": [],
            "x": 1,
        }

        trial = SampleTrialEvidence.model_validate(data)

        assert trial.model_dump() == {
            "index": 0,
            "sample_id": "1",
            "sample": {"data": {"x": 1}},
            "solver": None,
            "scores": [{"scorer_key": "s", "values": {}}],
            "errors": [],
        }

    def test_reading_does_not_change_the_input(self) -> None:
        data: dict[str, Any] = {"num_errors": 1, "num_total": 2, "x": [1]}
        before = copy.deepcopy(data)

        TaskResultFailures.model_validate(data)

        assert data == before

    def test_chat_types_keep_unknown_fields(self) -> None:
        by_hand = ChatCompletionInputMessage(role="user", content="a", name="x")
        read = ChatCompletionInputMessage.model_validate({"role": "user", "content": "a", "name": "x"})

        assert by_hand == read
        assert read.model_dump() == {"role": "user", "content": "a", "name": "x"}

    def test_file_references_drop_unknown_fields_only_when_read(self) -> None:
        assert FileRef.model_validate({"file_id": "f", "x": 1}).model_dump() == {"file_id": "f"}
        with pytest.raises(ValidationError):
            FileRef(file_id="f", x=1)  # type: ignore[call-arg]  # unknown on purpose
        with pytest.raises(ValidationError):
            FileContentItem(type="file", file=FileRef(file_id="f"), x=1)  # type: ignore[call-arg]  # unknown on purpose

    @pytest.mark.parametrize(
        "event",
        [
            {"type": "message_event", "item": MESSAGE, "x": 1},
            {"type": "custom", "name": "n", "data": {}, "x": 1},
            {
                "type": "function_call_event",
                "call_id": "",
                "function": "f",
                "arguments": "",
                "result": "",
                "x": 1,
            },
        ],
    )
    def test_unknown_field_in_an_undiscriminated_union_is_an_error(self, event: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            Trace.model_validate({"items": [], "events": [event]})

    def test_unknown_field_in_a_solver_output_or_model_config_is_an_error(self) -> None:
        with pytest.raises(ValidationError):
            SolverData.model_validate({"output": {"messages": [], "output": None, "x": 1}})
        config = {"connection_type": "provider_connection", "provider_id": "openai", "model_key": "m", "x": 1}
        with pytest.raises(ValidationError):
            StoredModel.model_validate(
                {
                    "id": "",
                    "display_name": "M",
                    "key": "k",
                    "task": "custom",
                    "adapter_id": "a",
                    "config": config,
                }
            )

    def test_unknown_fields_in_discriminated_unions_and_nullable_fields_are_dropped(self) -> None:
        aggregator = ScoreAggregator.model_validate(
            {"score_name": "s", "aggregator": {"function": "pass@k", "k": 2, "x": 1}, "y": 2}
        )
        trace = Trace.model_validate({"items": [], "metadata": {"model": "m", "x": 1}})

        assert aggregator.model_dump() == {"score_name": "s", "aggregator": {"function": "pass@k", "k": 2}}
        assert trace.model_dump() == {"items": [], "metadata": {"model": "m"}}

    def test_unknown_fields_in_a_list_inside_a_union_are_dropped(self) -> None:
        grouped = dtypes.GroupedSolverOutput.model_validate(
            {"solver_outputs": [{"messages": [], "output": None, "x": 1}]}
        )
        files = [{"type": "file", "file": {"file_id": "f", "x": 1}, "y": 1}]
        message = ChatCompletionInputMessage.model_validate({"role": "user", "content": files})

        assert grouped.model_dump() == {"solver_outputs": [{"messages": [], "output": None}]}
        assert message.model_dump() == {
            "role": "user",
            "content": [{"type": "file", "file": {"file_id": "f"}}],
        }

    def test_unknown_field_named_like_a_union_branch_is_dropped(self) -> None:
        """Error paths contain both keys and labels of union branches."""
        read = ScoreAggregator.model_validate(
            {"score_name": "s", "aggregator": {"function": "mean", "mean": {"x": 1}, "x": 2}}
        )

        assert read.model_dump() == {"score_name": "s", "aggregator": {"function": "mean"}}


class TestDefaultDump:
    def test_unset_fields_are_omitted(self) -> None:
        assert ScoresData(scorer_key="s", values={}).model_dump() == {"scorer_key": "s", "values": {}}

    def test_explicitly_set_default_is_written(self) -> None:
        data = {"scorer_key": "s", "scorer_purpose": "score", "values": {}, "direct_ios": []}
        assert ScoresData.model_validate(data).model_dump(mode="json") == data

    def test_a_field_assigned_later_counts_as_set(self) -> None:
        score = ScoresData(scorer_key="s", values={})
        score.scorer_name = "S"
        assert score.model_dump() == {"scorer_key": "s", "values": {}, "scorer_name": "S"}

    def test_optional_null_is_omitted_even_if_the_default_differs(self) -> None:
        metric = MetricData(values={}, metric_key="m", scorer_purpose=None, reason=None)

        assert metric.model_dump() == {"values": {}, "metric_key": "m"}
        assert ScoresData(scorer_key="s", values={}, metadata=None).model_dump() == {
            "scorer_key": "s",
            "values": {},
        }
        assert MetricData.model_validate_json(metric.model_dump_json()).scorer_purpose is not None

    @pytest.mark.parametrize(
        "model",
        [
            SampleEvidence(sample_id=None, sample=None, solver=None, scores=None, errors=[]),
            SampleTrialEvidence(index=0, sample_id=1, sample=None, solver=None, scores=None, errors=[]),
            TaskResultEvidence(metrics=None),
            RunEvidence(index=0, metrics=None),
            SingleSolverOutput(messages=[], output=None),
            DatasetProgressState(num_total_samples=None, num_samples_generated=None),
            TaskProgressState(
                num_total_samples=None, num_processed_samples=None, num_samples_with_errors=None
            ),
            CustomTaskOutputMessage(content=None),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_a_required_null_is_written_and_reads_back(self, model: LFBaseModel) -> None:
        text = model.model_dump_json()

        required = {name for name, field in type(model).model_fields.items() if field.is_required()}
        assert set(json.loads(text)) == required
        assert type(model).model_validate_json(text) == model

    def test_unknown_fields_and_free_form_values_keep_nulls(self) -> None:
        item = CustomTaskOutputMessage(content={"a": None}, x=None)
        assert item.model_dump() == {"content": {"a": None}, "x": None}
        call = {"id": "", "call_id": "c", "name": "n", "arguments": "", "status": "completed", "x": None}
        assert Trace.model_validate({"items": [call]}).model_dump(mode="json") == {"items": [call]}

    def test_dump_rules_apply_to_nested_open_responses_objects(self) -> None:
        part = OutputTextContent(text="a", annotations=[], logprobs=None)
        message = Message(id="", status="completed", role="assistant", content=[part])

        dump = Trace(items=[message]).model_dump(mode="json")

        assert dump["items"][0]["content"] == [{"text": "a", "annotations": []}]
        assert "type" not in dump["items"][0]

    def test_open_responses_object_alone_dumps_set_fields_in_python_and_all_in_json(self) -> None:
        part = InputFileContent(filename="f")

        assert part.model_dump() == {"filename": "f"}
        assert json.loads(part.model_dump_json()) == {"type": "input_file", "filename": "f", "file_url": None}

    @pytest.mark.parametrize(
        ("item", "written", "read"),
        [
            (
                UserMessage(id="x", status="completed", content=[InputTextContent(text="a")]),
                {"id": "x", "status": "completed", "content": [{"text": "a"}]},
                "CustomTaskInputMessage",
            ),
            (
                FunctionCall(id="i", call_id="c", name="n", arguments="{}", status="completed"),
                {"id": "i", "call_id": "c", "name": "n", "arguments": "{}", "status": "completed"},
                "FunctionCall",
            ),
            (CustomTaskOutputMessage(content=1), {"content": 1}, "CustomTaskInputMessage"),
        ],
    )
    def test_item_built_without_a_type_is_dumped_without_it(self, item: Any, written: Any, read: str) -> None:
        trace = Trace(items=[item])

        assert trace.model_dump(mode="json") == {"items": [written]}
        assert type(Trace.model_validate(trace.model_dump(mode="json")).items[0]).__name__ == read

    def test_an_event_built_in_python_gets_another_id_when_read(self) -> None:
        trace = Trace(items=[], events=[CustomEvent(name="n", data={})])

        assert trace.model_dump() == {"items": [], "events": [{"name": "n", "data": {}}]}
        assert Trace.model_validate(trace.model_dump()).events != trace.events

    def test_exclude_unset_false_writes_every_field(self) -> None:
        full = Trace(items=[]).model_dump(exclude_unset=False)

        assert full == {
            "FORMAT": "open_responses",
            "items": [],
            "metadata": None,
            "events": None,
            "span_id": None,
            "span_name": None,
            "span_type": None,
        }
        assert Trace(items=[]).model_dump_include_unset() == full
        assert json.loads(Trace(items=[]).model_dump_json_include_unset()) == full

    def test_exclude_none_also_removes_required_nulls(self) -> None:
        evidence = TaskResultEvidence(metrics=None)
        assert evidence.model_dump(exclude_unset=False, exclude_none=True) == {"errors": []}

    def test_exclude_unset_true_is_the_default(self) -> None:
        metric = MetricData(values={"a": 1}, metric_key="m", reason=None)
        assert metric.model_dump(exclude_unset=True) == metric.model_dump()
        assert metric.model_dump_json(exclude_unset=True) == metric.model_dump_json()

    def test_plain_model_and_adapter_write_all_fields(self) -> None:
        class Plain(BaseModel):
            failures: TaskResultError

        error = TaskResultError(error_type="E", message="m")
        full = {"error_type": "E", "message": "m", "hint": None, "stage": None}

        assert Plain(failures=error).model_dump() == {"failures": full}
        assert TypeAdapter(TaskResultError).dump_python(error) == full

    def test_alias_is_used_in_dumps_and_both_names_are_read(self) -> None:
        by_alias = ChatCompletionJSONSchema.model_validate({"name": "n", "schema": {"a": 1}, "strict": True})
        by_name = ChatCompletionJSONSchema.model_validate(
            {"name": "n", "schema_dict": {"a": 1}, "strict": True}
        )

        assert by_alias == by_name
        assert by_name.schema_dict == {"a": 1}
        assert by_name.model_dump() == {"name": "n", "schema": {"a": 1}, "strict": True}
        assert by_name.model_dump(by_alias=False) == {"name": "n", "schema_dict": {"a": 1}, "strict": True}

    def test_python_mode_keeps_enum_members_and_datetimes(self) -> None:
        record = ActionRecord.model_validate({"action": "exclude_from_metrics", "rule_key": "r"})
        metadata = TraceMetadata(created_at=datetime(2024, 1, 1, tzinfo=UTC))

        assert record.model_dump()["action"] is dtypes.ActionRuleAction.exclude_from_metrics
        assert record.model_dump(mode="json")["action"] == "exclude_from_metrics"
        assert metadata.model_dump() == {"created_at": datetime(2024, 1, 1, tzinfo=UTC)}

    def test_views_are_never_written(self) -> None:
        trace = Trace.model_validate({"items": [MESSAGE]})
        assert set(trace.model_dump(exclude_unset=False)) == set(Trace.model_fields)

    def test_include_and_exclude_behave_like_pydantic(self) -> None:
        metric = MetricData(values={"a": 1, "b": 2}, metric_key="m")
        assert metric.model_dump(include={"values": {"a"}}) == {"values": {"a": 1}}
        assert metric.model_dump(exclude={"values"}) == {"metric_key": "m"}


class TestReadingJson:
    @pytest.mark.parametrize("text", ["", "{", '{"data": }', "nonsense", '{"data": {}} x'])
    @pytest.mark.parametrize("model", [SampleData, InputTextContent, ModelUsage])
    def test_malformed_json_raises_the_standard_error(self, model: type[BaseModel], text: str) -> None:
        with pytest.raises(json.JSONDecodeError):
            model.model_validate_json(text)

    def test_nan_and_infinity_in_json_are_accepted(self) -> None:
        data = SampleData.model_validate_json('{"data": {"a": NaN, "b": -Infinity, "c": 1e999}}').data
        assert math.isnan(data["a"])
        assert data["b"] == -math.inf
        assert data["c"] == math.inf

    def test_last_duplicate_key_wins(self) -> None:
        assert SampleData.model_validate_json('{"data": {"a": 1, "a": 2}}').data == {"a": 2}

    def test_lone_surrogates_can_be_read(self) -> None:
        assert SampleData.model_validate_json(r'{"data": {"a": "\ud800"}}').data == {"a": "\ud800"}

    def test_bytes_are_read_like_text(self) -> None:
        assert SampleData.model_validate_json('{"data": {"a": "é"}}'.encode()).data == {"a": "é"}

    def test_instance_is_returned_unchanged(self) -> None:
        sample = SampleData(data={})
        assert SampleData.model_validate(sample) is sample


class TestStrictness:
    def test_numbers_are_converted_if_lossless(self) -> None:
        assert TaskResultFailures.model_validate({"num_errors": "3", "num_total": 3.0}).num_errors == 3
        assert TaskResultFailures.model_validate({"num_errors": True, "num_total": 1}).num_errors == 1
        with pytest.raises(ValidationError):
            TaskResultFailures.model_validate({"num_errors": 3.5, "num_total": 4})

    def test_number_is_refused_as_text_and_tuple_is_accepted_as_list(self) -> None:
        with pytest.raises(ValidationError):
            FileRef.model_validate({"file_id": 1})
        assert TraceMetadata.model_validate({"tags": ("a",)}).tags == ["a"]

    def test_booleans_are_read_from_text_and_numbers(self) -> None:
        assert ChatCompletionJSONSchema.model_validate({"name": "n", "strict": "true"}).strict is True
        assert ChatCompletionJSONSchema.model_validate({"name": "n", "strict": 1}).strict is True

    @pytest.mark.parametrize(("given", "read"), [("1", "1"), (1, 1), (1.0, 1), (True, 1)])
    def test_sample_id_keeps_text_or_number_type(self, given: Any, read: Any) -> None:
        sample = SampleEvidence(sample_id=given, sample=None, solver=None, scores=None, errors=[])
        assert (sample.sample_id, type(sample.sample_id)) == (read, type(read))

    @pytest.mark.parametrize(
        ("given", "read"), [(1, 1), (1.0, 1.0), (True, 1.0), ("1.5", 1.5), (10**30, 10**30)]
    )
    def test_metric_values_keep_their_type(self, given: Any, read: Any) -> None:
        value = MetricData(values={"a": given}, metric_key="m").values["a"]
        assert (value, type(value)) == (read, type(read))
        entry = SystemTaskMetricEntry(value=given).value
        assert (entry, type(entry)) == (read, type(read))

    def test_null_metric_value_is_refused(self) -> None:
        with pytest.raises(ValidationError):
            MetricData.model_validate({"values": {"a": None}, "metric_key": "m"})

    def test_optional_field_with_a_non_null_default_refuses_null(self) -> None:
        with pytest.raises(ValidationError):
            ScoresData.model_validate({"scorer_key": "s", "values": {}, "direct_ios": None})
        with pytest.raises(ValidationError):
            ScoresData.model_validate({"scorer_key": "s", "values": {}, "scorer_purpose": None})
        assert SpanEndEvent.model_validate({"span_id": "s", "id": None}).id is None

    def test_enum_members_are_not_strings_and_are_read_from_values(self) -> None:
        role: object = MessageRole.user
        assert role != "user"
        assert Message.model_validate(MESSAGE).role is MessageRole.user
        with pytest.raises(ValidationError):
            dtypes.FilterMembership.model_validate({"op": "in_", "expression": "", "values": []})

    @pytest.mark.parametrize("reader", ["data", "json"])
    def test_user_message_role_accepts_only_the_enum_member(self, reader: str) -> None:
        def from_json() -> UserMessage:
            return UserMessage.model_validate_json(json.dumps(MESSAGE))

        def from_data() -> UserMessage:
            return UserMessage.model_validate(MESSAGE)

        with pytest.raises(ValidationError):
            (from_json if reader == "json" else from_data)()
        fields = {key: value for key, value in MESSAGE.items() if key != "role"}
        assert UserMessage(**fields).role is MessageRole.user
        assert UserMessage(**fields, role=MessageRole.user).role is MessageRole.user

    def test_dumped_turn_cannot_be_loaded(self) -> None:
        turn = Trace.model_validate({"items": [MESSAGE]}).turns[0]
        with pytest.raises(ValidationError):
            dtypes.Turn.model_validate(turn.model_dump(mode="json"))


class TestLimits:
    @pytest.mark.parametrize(
        ("model", "valid", "field", "refused"),
        [
            (dtypes.EvaluationConfig, {}, "num_samples", [0]),
            (dtypes.TrialsConfig, {"num_trials": 2}, "num_trials", [1]),
            (dtypes.RepeatabilityConfig, {"num_runs": 2}, "num_runs", [1]),
            (dtypes.PassAtKAggregator, {"function": "pass@k", "k": 1}, "k", [0]),
            (dtypes.PassPowerKAggregator, {"function": "pass^k", "k": 1}, "k", [0]),
            (
                dtypes.DatasetGenerationRequest,
                {"dataset_generator_config": {}, "num_samples": 1},
                "num_samples",
                [0],
            ),
            (dtypes.ExecutionProgress, {"progress": 1}, "progress", [-0.1, 1.1]),
            (dtypes.StringParameterExample, {"value": "", "display_name": "x"}, "display_name", [""]),
            (StoredDataset, {"id": "", "key": "k", "display_name": "x"}, "display_name", [""]),
            (
                StoredDataset,
                {"id": "", "key": "k", "display_name": "x"},
                "key",
                ["", "a b", "k" * 251, "openai$k"],
            ),
            (ActionRecord, {"action": "exclude_from_metrics", "rule_key": "r"}, "rule_key", ["", "ü"]),
            (dtypes.Secret, {"name": "A"}, "name", ["", "a b"]),
            (dtypes.StoredTag, {"id": "", "value": "", "color": "#fff"}, "color", ["#ffff", "fff", "#ggg"]),
            (TaskScorerTemplate, {"type": "t"}, "key", ["a b"]),
            (dtypes.CompactionEvent, {"strategy": "trim"}, "strategy", ["drop"]),
            (ChatCompletionOutputMessage, {"role": "user", "content": ""}, "role", ["developer"]),
            (Trace, {"items": []}, "FORMAT", ["other"]),
            (
                dtypes.FloatParameterSpec,
                {"type": "float", "key": "", "display_name": "x"},
                "display_name",
                [""],
            ),
        ],
    )
    def test_values_outside_the_limits_are_refused(
        self, model: type[BaseModel], valid: dict[str, Any], field: str, refused: list[Any]
    ) -> None:
        model.model_validate(valid)
        for value in refused:
            with pytest.raises(ValidationError):
                model.model_validate({**valid, field: value})

    def test_custom_model_needs_a_timeout_and_concurrency_of_at_least_one(self) -> None:
        config = {
            "connection_type": "custom_inference",
            "adapter_id": "",
            "run_inference_snippet": "",
            "environment": {},
        }
        model = {"id": "", "display_name": "M", "key": "openai$m", "task": "custom", "adapter_id": ""}

        StoredModel.model_validate(
            {**model, "config": {**config, "timeout": 1}, "max_concurrent_requests": 1}
        )
        with pytest.raises(ValidationError):
            StoredModel.model_validate({**model, "config": {**config, "timeout": 0.5}})
        with pytest.raises(ValidationError):
            StoredModel.model_validate(
                {**model, "config": {**config, "timeout": 1}, "max_concurrent_requests": 0}
            )
        with pytest.raises(ValidationError):
            StoredModel.model_validate({**model, "key": "other$m", "config": {**config, "timeout": 1}})

    def test_fields_without_a_published_limit_accept_any_value(self) -> None:
        assert TrialsDefinitionTemplate(num_trials=0).num_trials == 0
        assert TrialsDefinitionTemplate(num_trials="<< n >>").num_trials == "<< n >>"
        dtypes.IntParameterSpec(type="int", key="", display_name="x", min=2, max=1)
        dtypes.CategoricalParameterSpec(
            type="categorical", key="k", display_name="x", allowed_values=["a"], default_value="b"
        )
        ChatCompletionJSONSchema(name="not a name " * 20, strict=False)

    def test_headers_must_be_printable_ascii_and_values_keep_their_type(self) -> None:
        connection = {"connection_type": "custom_connection", "adapter_id": "", "url": ""}
        headers = {"a": "x", "b": 1, "c": True, "d": {"name": "S"}}

        read = ModelCustomConnectionConfig.model_validate(
            {**connection, "custom_headers": headers}
        ).custom_headers

        assert read == {"a": "x", "b": 1.0, "c": True, "d": dtypes.Secret(name="S")}
        assert isinstance(read["b"], float)
        for text in ("é", "a\nb", "\x00"):
            with pytest.raises(ValidationError):
                ModelCustomConnectionConfig.model_validate({**connection, "custom_headers": {"a": text}})

    def test_api_key_is_hidden_in_the_repr_but_written_in_the_dump(self) -> None:
        config = ModelCustomConnectionConfig(
            connection_type="custom_connection", adapter_id="", url="", api_key="sk-secret"
        )
        assert "sk-secret" not in repr(config)
        assert json.loads(config.model_dump_json())["api_key"] == "sk-secret"

    def test_typed_dictionaries_refuse_other_values(self) -> None:
        for headers in ({"a": 1}, {"a": None}):
            with pytest.raises(ValidationError):
                dtypes.ModelEndpointOutput.model_validate(
                    {"body": "", "status_code": 200, "headers": headers}
                )
        with pytest.raises(ValidationError):
            SampleData.model_validate({"data": {1: "a"}})


class TestSpecialValues:
    def test_nan_and_infinity_are_null_in_json_dumps_only(self) -> None:
        metric = MetricData(values={"a": math.inf}, metric_key="m")

        assert json.loads(metric.model_dump_json())["values"] == {"a": None}
        assert metric.model_dump()["values"] == {"a": math.inf}
        with pytest.raises(ValidationError):
            MetricData.model_validate_json(metric.model_dump_json())

    def test_large_integers_are_kept(self) -> None:
        big = 2**200
        assert SampleData.model_validate_json(SampleData(data={"a": big}).model_dump_json()).data == {
            "a": big
        }

    def test_lone_surrogate_cannot_be_dumped_as_json(self) -> None:
        with pytest.raises((PydanticSerializationError, UnicodeEncodeError)):
            SampleData(data={"a": "\ud800"}).model_dump_json()

    def test_free_form_values_are_converted_to_the_nearest_json_type(self) -> None:
        data = {"s": {1}, "t": (1, 2), "b": b"ab", "d": datetime(2024, 1, 2, 3, 4, 5)}  # noqa: DTZ001  # without offset on purpose
        assert json.loads(SampleData(data=data).model_dump_json())["data"] == {
            "s": [1],
            "t": [1, 2],
            "b": "ab",
            "d": "2024-01-02T03:04:05",
        }


class TestTimes:
    @pytest.mark.parametrize(
        ("given", "written"),
        [
            ("2024-01-01T00:00:00.123Z", "2024-01-01T00:00:00.123000Z"),
            ("2024-01-01T02:00:00+02:00", "2024-01-01T02:00:00+02:00"),
            ("2024-01-01 00:00", "2024-01-01T00:00:00"),
            ("2024-01-01", "2024-01-01T00:00:00"),
            ("2024-01-01T00:00:00.123456789Z", "2024-01-01T00:00:00.123456Z"),
            (1700000000, "2023-11-14T22:13:20Z"),
            ("1700000000", "2023-11-14T22:13:20Z"),
            (1700000000000, "2023-11-14T22:13:20Z"),
        ],
    )
    def test_times_are_read_in_many_formats_and_written_in_one(self, given: Any, written: str) -> None:
        metadata = TraceMetadata.model_validate({"created_at": given})
        event = CustomEvent.model_validate({"name": "", "data": {}, "timestamp": given})

        assert json.loads(metadata.model_dump_json()) == {"created_at": written}
        assert json.loads(event.model_dump_json())["timestamp"] == written
        assert TraceMetadata.model_validate({"created_at": written}) == metadata

    @pytest.mark.parametrize("given", ["", "2024-01-01T24:00", "20240101T000000Z", True])
    def test_other_time_formats_are_refused(self, given: Any) -> None:
        with pytest.raises(ValidationError):
            TraceMetadata.model_validate({"created_at": given})

    def test_other_time_fields_accept_seconds_but_not_text(self) -> None:
        with pytest.raises(ValidationError):
            TaskExecution.model_validate({"runtime": 1, "started_at": "2024-01-01", "ended_at": 2})
        with pytest.raises(ValidationError):
            StoredDataset.model_validate(
                {"id": "", "key": "k", "display_name": "x", "created_at": "2024-01-01"}
            )


class TestAutomaticValues:
    @pytest.mark.parametrize(
        "event",
        [BaseTraceEvent(), CustomEvent(name="", data={}), SpanEndEvent(span_id="s")],
        ids=lambda event: type(event).__name__,
    )
    def test_default_event_id_is_random_and_counts_as_unset(self, event: BaseTraceEvent) -> None:
        assert event.id is not None
        assert uuid.UUID(event.id).version == 4
        assert len(event.id) == 36
        assert "id" not in event.model_dump()

    def test_given_event_id_is_kept(self) -> None:
        assert BaseTraceEvent(id=None).id is None
        assert BaseTraceEvent(id="").id == ""

    def test_evidence_has_an_empty_trial_list_by_default(self) -> None:
        evidence = SampleEvidence(sample_id=1, sample=None, solver=None, scores=None, errors=[])
        assert evidence.trials == []
        assert "trials" not in evidence.model_dump()

    def test_a_message_needs_an_id(self) -> None:
        with pytest.raises(ValidationError):
            Message.model_validate({key: value for key, value in MESSAGE.items() if key != "id"})


class TestReadAccess:
    def test_fields_are_attributes_and_keys(self) -> None:
        message = ChatCompletionInputMessage(role="user", content="hi", name="x")

        assert message.role == message["role"] == "user"
        assert message["name"] == "x"
        assert "role" in message
        assert "nothing" not in message
        assert message.get("nothing", 1) == 1
        assert message.get("role") == "user"
        with pytest.raises(KeyError):
            message["nothing"]

    def test_attribute_and_key_access_work_at_every_level(self) -> None:
        output = dtypes.ChatCompletionModelOutput.model_validate(
            {"choices": [{"message": {"role": "assistant", "content": "4"}}]}
        )
        assert output["choices"][0]["message"]["content"] == output.choices[0].message.content == "4"

    def test_views_are_keys_too_but_methods_are_not(self) -> None:
        trace = dtypes.SolverTrace(trace=Trace.model_validate({"items": [MESSAGE]}), raw_outputs=[])

        assert trace["messages"] == trace.messages
        assert trace["output"] is None
        for name in ("append", "model_fields", "model_dump", "__class__", "_own"):
            assert name not in trace

    def test_alias_is_accepted_as_a_key(self) -> None:
        form = ChatCompletionJSONSchema.model_validate({"name": "n", "schema": {"a": 1}, "strict": True})
        assert form["schema"] == form["schema_dict"] == {"a": 1}
        assert "schema" in form

    def test_unknown_field_named_like_the_alias_is_read_by_key(self) -> None:
        message = ChatCompletionInputMessage.model_validate({"role": "user", "content": "", "schema": 3})
        assert message["schema"] == 3


IMAGE = {"type": "input_image", "detail": "auto", "image_url": None}
FILE = {"type": "input_file", "filename": None, "file_url": None}
QUESTION = {"type": "message", "id": "m", "status": "completed", "role": "user", "content": [IMAGE, FILE]}
ANSWER = {"role": "assistant", "content": "x", "refusal": None}
CHOICES = {"choices": [{"message": ANSWER}], "usage": None}
ENCLOSING: dict[str, tuple[type[LFBaseModel], dict[str, Any]]] = {
    "a trace": (Trace, {"items": [QUESTION]}),
    "a turn": (
        dtypes.Turn,
        {"user_message": {**QUESTION, "role": MessageRole.user}, "assistant_items": [QUESTION]},
    ),
    "messages of a solver output": (
        SingleSolverOutput,
        {"messages": [ANSWER], "output": CHOICES, "direct_ios": []},
    ),
    "a solver's trace": (dtypes.SolverTrace, {"trace": {"items": [QUESTION]}, "raw_outputs": [CHOICES]}),
    "solver data": (SolverData, {"output": {"messages": [ANSWER], "output": None, "direct_ios": []}}),
    "a response": (dtypes.ModelResponse, {"items": [QUESTION], "raw_output": CHOICES}),
    "an event": (dtypes.MessageEvent, {"type": "message_event", "item": QUESTION}),
    "a free value": (SampleData, {"data": {"a": ChatCompletionOutputMessage.model_validate(ANSWER)}}),
    "free values in a list": (
        SampleData,
        {"data": {"a": [ChatCompletionOutputMessage.model_validate(ANSWER)]}},
    ),
}


@pytest.mark.parametrize("name", ENCLOSING)
def test_nulls_of_unset_fields_are_omitted_in_every_enclosing_object(name: str) -> None:
    kind, data = ENCLOSING[name]
    value = kind.model_validate(data)
    for dumped in (value.model_dump_json(), json.dumps(value.model_dump(mode="json"))):
        assert not {name for name in ("refusal", "image_url", "filename", "file_url") if name in dumped}, (
            dumped
        )
    assert kind.model_validate(value.model_dump(mode="python")) is not None
    if name == "messages of a solver output":
        assert '"refusal":null' in value.model_dump_json(exclude_unset=False)


def test_nulls_in_plain_free_form_values_are_kept() -> None:
    data = {"a": {"refusal": None, "deep": [{"image_url": None}]}}
    assert SampleData(data=data).model_dump(mode="json") == {"data": data}
