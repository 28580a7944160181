"""Models of Inspect behind the core's Model protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai._util.error import PrerequisiteError  # what Inspect raises for a role that is not set
from inspect_ai._util.exception import TerminateSampleError, TerminateTaskError
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ResponseSchema,
    get_model,
)
from inspect_ai.model import Model as NativeModel
from inspect_ai.util import JSONSchema, LimitExceededError
from pydantic import TypeAdapter, ValidationError
from tenacity import RetryError

from aigo_bridge.dtypes import (
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    ChatCompletionResponseFormatJSONSchema,
    ModelResponse,
    ModelUsage,
    TraceItem,
)
from aigo_bridge.errors import BridgeError, SampleError, Stage
from aigo_bridge.models import ModelRequest
from aigo_inspect.content import items_from_message
from aigo_inspect.native_messages import messages_of

_ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem])

_MESSAGES: TypeAdapter[list[ChatMessage]] = TypeAdapter(list[ChatMessage])

_NOT_THE_MODELS = (BridgeError, LimitExceededError, TerminateSampleError, TerminateTaskError)
"""What comes out of a call of a model and is not its failure: ours, or Inspect's way to end the sample or the run."""

_OPTION_NAMES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "stop": "stop_seqs",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logprobs": "logprobs",
    "top_logprobs": "top_logprobs",
}
"""Chat completion option → the field of Inspect's `GenerateConfig`."""


class InspectModel:
    """A model of Inspect behind the core's Model protocol; made per call site, the native model is shared."""

    def __init__(self, key: str, native: NativeModel, stage: Stage = "solver"):
        self._key = key
        self._native = native
        self._stage: Stage = stage
        self.last_output: ModelOutput | None = None
        """Inspect's own output of the last call, for Inspect's views."""

    @property
    def key(self) -> str:
        """AI GO key; `""` for the evaluated model."""
        return self._key

    @property
    def name(self) -> str:
        """Inspect's name, `provider/model`."""
        return str(self._native)

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """Generate once through Inspect, which does retries, caching, concurrency and logging.

        Raises:
            SampleError: the request has no form in Inspect, the provider failed, or gave no answer.
        """
        messages = native_messages(request, self._stage)
        config = generate_config(request, self._stage)
        try:
            output = await self._native.generate(messages, config=config)
        except _NOT_THE_MODELS:
            raise
        except Exception as error:
            # Providers raise whatever their clients raise; here it becomes the protocol's one error.
            raise _model_failure(error, self._stage) from error
        self.last_output = output
        return model_response(output, self._stage)


def evaluated_model() -> InspectModel:
    """The model under evaluation of the running task."""
    return InspectModel("", get_model())


def role_models(model_map: Mapping[str, str]) -> Any:
    """Look-up of other models: by role if Inspect was given one of that name, else by the map.

    Never falls back to the evaluated model: a judge would grade itself.
    """

    def find(key: str) -> InspectModel:
        # Inspect's command line turns `-` in role names into `_`.
        for role in dict.fromkeys((key, key.replace("-", "_"))):
            try:
                return InspectModel(key, get_model(role=role, required=True), stage="score")
            except PrerequisiteError:
                continue
        if key in model_map:
            return InspectModel(key, get_model(model_map[key], role=key), stage="score")
        raise SampleError(
            f"no model was given for {key!r}",
            stage="score",
            hint=f"map it: --model-map '{key}=provider/model', or --model-role '{key}=provider/model' in Inspect",
            kind="MissingModel",
        )

    return find


def native_messages(request: ModelRequest, stage: Stage) -> list[ChatMessage]:
    """The conversation of a request as Inspect's messages.

    Raises:
        SampleError: a part of it has no place there.
    """
    if request.items is None:
        return [_native_message(message, stage) for message in request.input.messages]
    items = [item.model_dump(mode="json", exclude_unset=False) for item in request.items]
    for item in items:
        _check_item(item, stage)
    try:
        return _MESSAGES.validate_python(_with_reasoning(messages_of(items)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _unsupported(
            f"the conversation has no form in Inspect: {where}: {first['msg']}", stage
        ) from error


def _check_item(item: Mapping[str, Any], stage: Stage) -> None:
    kind = item["type"]
    if kind.startswith("custom_task"):
        raise _unsupported(
            "the conversation has an item of a custom task, which chat models do not take", stage
        )
    content = item.get("content") or item.get("output") or []
    for part in content if isinstance(content, list) else []:
        source = {
            "input_image": part.get("image_url"),
            "input_file": part.get("file_url"),
            "input_video": part.get("video_url"),
        }.get(part["type"], "data:")
        # Inspect would take anything else for a file of this machine, and send its content to the provider.
        if not str(source or "").lower().startswith(("http://", "https://", "data:")):
            found = "no address" if not source else f"the address {str(source)[:80]!r}"
            raise _unsupported(
                f"a part of type {part['type']} has {found}, expected an http or data URL", stage
            )


def _with_reasoning(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with reasoning back in the answer that it led to; in AI GO's items it stands in front of it."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        before = joined[-1] if joined else None
        if before is not None and message["role"] == "assistant" and _is_reasoning(before):
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            joined[-1] = {**message, "content": [*before["content"], *parts]}
            if before.get("tool_calls"):
                joined[-1]["tool_calls"] = [*before["tool_calls"], *message.get("tool_calls", [])]
        else:
            joined.append(message)
    return joined


def _is_reasoning(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return (
        message["role"] == "assistant"
        and isinstance(content, list)
        and bool(content)
        and all(part["type"] == "reasoning" for part in content)
    )


def _native_message(
    message: ChatCompletionInputMessage | ChatCompletionOutputMessage, stage: Stage
) -> ChatMessage:
    if not isinstance(message.content, str):
        raise _unsupported(
            "a message refers to a file by id, which Inspect cannot resolve",
            stage,
            "put the text into the message",
        )
    match message.role:
        case "system":
            return ChatMessageSystem(content=message.content)
        case "assistant":
            return ChatMessageAssistant(content=message.content)
        case _:
            return ChatMessageUser(content=message.content)


def _unsupported(message: str, stage: Stage, hint: str | None = None) -> SampleError:
    return SampleError(message, stage=stage, hint=hint, kind="UnsupportedContent")


def _model_failure(error: Exception, stage: Stage) -> SampleError:
    """A provider's failure; of a call that was tried several times, the last one's."""
    if isinstance(error, RetryError):
        last = error.last_attempt.exception()
        error = last if isinstance(last, Exception) else error
    message = str(error) or type(error).__name__
    return SampleError(message, stage=stage, kind=type(error).__name__)


def generate_config(request: ModelRequest, stage: Stage) -> GenerateConfig:
    """Inspect's typed config of a request; a value of the wrong type is an error of the sample."""
    values: dict[str, Any] = {_OPTION_NAMES[name]: value for name, value in request.options.items()}
    if isinstance(values.get("stop_seqs"), str):
        values["stop_seqs"] = [values["stop_seqs"]]
    response_format = request.input.response_format
    try:
        if isinstance(response_format, ChatCompletionResponseFormatJSONSchema):
            wanted = response_format.json_schema
            values["response_schema"] = ResponseSchema(
                name=wanted.name,
                description=wanted.description,
                json_schema=JSONSchema.model_validate(wanted.schema_dict or {}),
                strict=wanted.strict,
            )
        return GenerateConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SampleError(
            f"the model's options are not valid: {where}: {first['msg']}",
            stage=stage,
            kind="InvalidModelInput",
        ) from error


def model_response(output: ModelOutput, stage: Stage) -> ModelResponse:
    """Inspect's output as AI GO's: the raw chat output and the items of the first choice.

    Raises:
        SampleError: the model gave no answer.
    """
    if output.error and not output.completion:
        raise SampleError(f"the model failed: {output.error}", stage=stage, kind="ModelError")
    if not output.choices:
        raise SampleError("the model gave no answer (no choices)", stage=stage, kind="ModelError")
    usage = output.usage
    raw = ChatCompletionModelOutput(
        choices=[
            ChatCompletionModelOutputChoice(
                message=ChatCompletionOutputMessage(role="assistant", content=choice.message.text)
            )
            for choice in output.choices
        ],
        # Inspect's input_tokens leaves out what came from a cache; the prompt was longer.
        usage=usage
        and ModelUsage(
            num_prompt_tokens=usage.input_tokens
            + (usage.input_tokens_cache_read or 0)
            + (usage.input_tokens_cache_write or 0),
            num_completion_tokens=usage.output_tokens,
        ),
    )
    message = output.choices[0].message.model_dump(mode="json", exclude_none=True)
    return ModelResponse(raw_output=raw, items=_ITEMS.validate_python(items_from_message(message)))
