"""Models of Inspect behind the core's Model protocol."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspect_ai._util.error import PrerequisiteError  # what Inspect raises for a role that is not set
from inspect_ai._util.exception import TerminateSampleError, TerminateTaskError
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.model import Model as NativeModel
from inspect_ai.model._model import ModelGenerateError  # a provider's refusal, wrapped with the whole request
from inspect_ai.util import LimitExceededError
from pydantic import TypeAdapter
from tenacity import RetryError

from aigo_bridge.connections import CallError, MLTask, is_model_file
from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    CustomTaskOutputMessage,
    ModelResponse,
    ModelUsage,
    TraceItem,
)
from aigo_bridge.errors import BridgeError, SampleError, Stage, UsageError
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.models import ModelRequest
from aigo_bridge.plan import TaskPlan
from aigo_bridge.secrets import learn_arguments
from aigo_inspect.content import items_from_message, logprobs_of
from aigo_inspect.native_answers import RAW_OUTPUT
from aigo_inspect.native_calls import input_message
from aigo_inspect.native_requests import generate_config, native_messages, opaque_input
from aigo_inspect.provider import PROVIDER, EntityAPI
from aigo_inspect.secrets import guard

__all__ = [
    "InspectModel",
    "answer_items",
    "chat_output",
    "evaluated_model",
    "generate_config",
    "ml_task",
    "model_response",
    "native_messages",
    "native_model",
    "refuse_unfit",
    "role_models",
]

_ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem])

_NOT_THE_MODELS = (BridgeError, LimitExceededError, TerminateSampleError, TerminateTaskError)
"""What comes out of a call of a model and is not its failure: ours, or Inspect's way to end the sample or the run."""


class InspectModel:
    """A model of Inspect behind the core's Model protocol; made per call site, the native model is shared."""

    def __init__(self, key: str, native: NativeModel, stage: Stage = "solver"):
        guard(native.api)
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

    @property
    def task(self) -> MLTask:
        """What the model is for."""
        return ml_task(self._native)

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """Generate once through Inspect, which does retries, caching, concurrency and logging.

        Raises:
            SampleError: the request has no form in Inspect or for that kind of model, the provider failed, or gave no
                answer.
        """
        api = self._native.api
        entity = api if isinstance(api, EntityAPI) else None
        messages, config = self._call(request, entity)
        if entity is not None and entity.connection.depends_on_sample:
            # Inspect's key of a cached answer does not know the row.
            config.cache = False
        try:
            output = await self._native.generate(messages, config=config)
        except CallError as error:
            raise _model_failure(error, self._stage) from error
        except _NOT_THE_MODELS:
            raise
        except Exception as error:
            # Providers raise whatever their clients raise; here it becomes the protocol's one error.
            raise _model_failure(error, self._stage) from error
        self.last_output = output
        return model_response(output, self._stage)

    def _call(
        self, request: ModelRequest, entity: EntityAPI | None
    ) -> tuple[list[ChatMessage], GenerateConfig]:
        if entity is not None and entity.connection.task != "chat_completion":
            # Options are part of the one value that such a model takes.
            return [input_message(opaque_input(request, entity.connection, self._stage))], GenerateConfig()
        if entity is not None and request.options and not entity.connection.takes_options:
            connection = entity.connection
            raise SampleError(
                f"model {connection.key!r} is asked with {', '.join(request.options)}, which its adapter"
                f" {connection.adapter.key!r} does not pass on",
                stage=self._stage,
                hint="let 'process_input' write the options in `kwargs`",
                kind="UnsupportedOption",
            )
        return native_messages(request, self._stage), generate_config(request, self._stage)


def ml_task(native: NativeModel) -> MLTask:
    """What a model of Inspect is for; all but model entities are for chat."""
    return native.api.connection.task if isinstance(native.api, EntityAPI) else "chat_completion"


def refuse_unfit(plan: TaskPlan, native: NativeModel) -> None:
    """Refuse a plan whose solver talks, with a model that makes embeddings, before anything runs.

    Raises:
        UsageError: that is the case.
    """
    solver = plan.benchmark.solver if plan.entity == "model" else None
    talks = solver is not None and (
        solver.type == "multi_turn_solver"
        or (solver.type == "single_turn_solver" and solver.input_builder.type == "chat_completion")
    )
    if talks and ml_task(native) == "embeddings":
        raise UsageError(
            f"model {native.name!r} makes embeddings and cannot answer a conversation, which the solver of task"
            f" {plan.task.key!r} leads; evaluate a model whose task is chat_completion"
        )


def native_model(
    name: str, model_args: Mapping[str, Any] | None = None, *, role: str | None = None
) -> NativeModel:
    """A model by what a user calls it: Inspect's name for it, or the file of a model entity.

    Args:
        name: `provider/model`; `model.yaml` or `aigo_bridge/model.yaml`; `run.yaml#key` for a file with several models.
        model_args: arguments for its provider.
        role: the role that it has in the run.

    Raises:
        UsageError: there is no such model, or it cannot be made.
        SpecError: its file is not valid; every problem with its place.
    """
    arguments = dict(model_args or {})
    learn_arguments(arguments)
    if _is_entity(name):
        name = f"{PROVIDER}/{name}"
    try:
        # Not memoized: settings of the environment and files may have changed since an earlier run.
        return get_model(name, role=role, memoize=False, **arguments)
    except BridgeError:
        raise
    except (PrerequisiteError, ValueError, ImportError, TypeError) as error:
        raise UsageError(f"model {name!r}: {_plain(error)}") from error


def _is_entity(name: str) -> bool:
    """Whether a name is a model's file; a name with a provider in front stays what it is unless there is such a file."""
    if name.startswith(f"{PROVIDER}/") or not is_model_file(name):
        return False
    from inspect_ai._util.registry import registry_find, registry_unqualified_name

    first = name.partition("/")[0]
    providers = registry_find(
        lambda info: info.type == "modelapi" and registry_unqualified_name(info) == first
    )
    return not providers or Path(name.rpartition("#")[0] or name).is_file()


def _plain(error: Exception) -> str:
    """An error's text without terminal markup."""
    from rich.errors import MarkupError
    from rich.text import Text

    text = str(getattr(error, "message", None) or error)
    with contextlib.suppress(MarkupError):
        text = Text.from_markup(text).plain
    # What this is said in says that it is an error.
    return text.strip().removeprefix("ERROR: ")


def evaluated_model() -> InspectModel:
    """The model under evaluation of the running task."""
    return InspectModel("", get_model())


def role_models(model_map: Mapping[str, str]) -> Any:
    """Look-up of other models: by role if Inspect was given one of that name, else by the map.

    Never falls back to the evaluated model: a judge would grade itself.
    """
    made: dict[str, NativeModel] = {}
    """Model files of the map, each made once: they hold connections."""

    def mapped(key: str) -> NativeModel:
        name = model_map[key]
        if not _is_entity(name):
            return get_model(name, role=key)
        if key not in made:
            made[key] = native_model(name, role=key)
        return made[key]

    def find(key: str) -> InspectModel:
        # Inspect's command line turns `-` in role names into `_`.
        for role in dict.fromkeys((key, key.replace("-", "_"))):
            try:
                return InspectModel(key, get_model(role=role, required=True), stage="score")
            except PrerequisiteError:
                continue
        if key in model_map:
            return InspectModel(key, mapped(key), stage="score")
        raise SampleError(
            f"no model was given for {key!r}",
            stage="score",
            hint=f"map it: --model-map '{key}=provider/model', or --model-role '{key}=provider/model' in Inspect",
            kind="MissingModel",
        )

    return find


def _model_failure(error: Exception, stage: Stage) -> SampleError:
    """A provider's failure; of a call that was tried several times, the last one's."""
    if isinstance(error, RetryError):
        last = error.last_attempt.exception()
        error = last if isinstance(last, Exception) else error
    if isinstance(error, ModelGenerateError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, CallError):
        return SampleError(error.message, stage=stage, hint=error.hint, kind="ModelError")
    message = str(error) or type(error).__name__
    return SampleError(message, stage=stage, kind=type(error).__name__)


def model_response(output: ModelOutput, stage: Stage) -> ModelResponse:
    """Inspect's output as AI GO's: the raw chat output and the items of the first choice.

    Raises:
        SampleError: the model gave no answer.
    """
    if output.error and not output.completion:
        raise SampleError(f"the model failed: {output.error}", stage=stage, kind="ModelError")
    if not output.choices:
        raise SampleError("the model gave no answer (no choices)", stage=stage, kind="ModelError")
    kept = (output.metadata or {}).get(RAW_OUTPUT)
    if kept is None:
        return ModelResponse(raw_output=chat_output(output), items=answer_items(output))
    if kept["task"] == "chat_completion":
        return ModelResponse(raw_output=kept["output"], items=answer_items(output))
    content = kept["output"]
    if kept["task"] == "embeddings":
        content = content["embeddings"]
    answer = CustomTaskOutputMessage(type="custom_task_output_message", content=content)
    return ModelResponse(raw_output=kept["output"], items=[answer])


_INCOMPLETE = frozenset({"max_tokens", "model_length", "content_filter"})
"""Reasons to stop in the middle of an answer."""


def answer_items(output: ModelOutput) -> list[TraceItem]:
    """The first choice as items of a trace."""
    choice = output.choices[0]
    message = choice.message.model_dump(mode="json", exclude_none=True)
    logprobs = logprobs_of(choice.model_dump(mode="json", include={"logprobs"}), LossReport())
    status = "incomplete" if choice.stop_reason in _INCOMPLETE else "completed"
    return _ITEMS.validate_python(items_from_message(message, status=status, logprobs=logprobs))


def chat_output(output: ModelOutput) -> ChatCompletionModelOutput:
    """All choices in AI GO's chat form."""
    usage = output.usage
    return ChatCompletionModelOutput(
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
