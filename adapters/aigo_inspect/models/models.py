"""Implementation of the core's `Model` protocol with Inspect models."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspect_ai._util.error import PrerequisiteError  # raised for a role without a model
from inspect_ai._util.exception import TerminateSampleError, TerminateTaskError
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.model import Model as NativeModel
from inspect_ai.model._model import ModelGenerateError  # wraps a provider's refusal and the whole request
from inspect_ai.util import LimitExceededError
from tenacity import RetryError

from aigo_bridge.access.opening import in_words
from aigo_bridge.codes import Code
from aigo_bridge.dtypes import ModelResponse
from aigo_bridge.errors import BridgeError, SampleError, Stage, UsageError
from aigo_bridge.execution.checkpoint import ASKER
from aigo_bridge.models.connections import CallError, MLTask, is_model_file
from aigo_bridge.models.connections.transports import ANSWER
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.redaction.secrets import learn_arguments
from aigo_bridge.text.summaries import summary_of
from aigo_inspect.models.answers import answer_items, chat_output, model_response
from aigo_inspect.models.calls import calling, failures_kept, keep_answers
from aigo_inspect.models.cassettes import played_failures, played_task
from aigo_inspect.models.provider import PROVIDER, EntityAPI
from aigo_inspect.models.requests import (
    generate_config,
    input_message,
    native_messages,
    opaque_input,
)
from aigo_inspect.models.secrets import guard

__all__ = [
    "InspectModel",
    "answer_items",
    "chat_output",
    "evaluated_model",
    "generate_config",
    "ml_task",
    "model_failures",
    "model_response",
    "native_messages",
    "native_model",
    "plain_text",
    "refuse_unfit",
    "role_models",
]

_NOT_THE_MODELS = (BridgeError, LimitExceededError, TerminateSampleError, TerminateTaskError)
"""Exceptions that a model call may raise although the model did not fail: aigo-bridge's errors, and Inspect's
signals to end a sample or the run."""


class InspectModel:
    """Inspect model that implements the core's `Model` protocol. Each call site has its own
    object; the native model is shared.
    """

    def __init__(self, key: str, native: NativeModel, stage: Stage = "solver"):
        guard(native.api)
        keep_answers(native.api)
        self._key = key
        self._native = native
        self._stage: Stage = stage
        self.last_output: ModelOutput | None = None
        """Inspect's output of the last call, for Inspect's log viewer."""

    @property
    def key(self) -> str:
        """AI GO key of the model; `""` for the evaluated model."""
        return self._key

    @property
    def name(self) -> str:
        """Inspect's model name, `provider/model`."""
        return str(self._native)

    @property
    def task(self) -> MLTask:
        """ML task of the model."""
        return played_task(self._key, self._native.api) or ml_task(self._native)

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """Generate once through Inspect, which handles retries, caching, concurrency and logging.

        Raises:
            SampleError: Inspect or this kind of model does not support the request, the provider failed, or
                it gave no answer.
        """
        asker = ASKER.get()
        call = None if asker is None else asker.call(self._key, self.name, request)
        with failures_kept(call):
            api = self._native.api
            entity = api if isinstance(api, EntityAPI) else None
            messages, config = self._call(request, entity)
            if entity is not None and entity.connection.depends_on_sample:
                # Inspect's cache key does not include the dataset row.
                config.cache = False
            with played_failures(call, self._stage), model_failures(self._stage), calling(call):
                output = await self._native.generate(messages, config=config)
            self.answered(output)
            return model_response(output, self._stage)

    def answered(self, output: ModelOutput) -> None:
        """Store the output of a call by this object or by an agent.

        Raises:
            SampleError: the answer is too long.
        """
        _refuse_endless(output, self._stage)
        self.last_output = output

    def _call(
        self, request: ModelRequest, entity: EntityAPI | None
    ) -> tuple[list[ChatMessage], GenerateConfig]:
        if entity is not None and entity.connection.task != "chat_completion":
            # Such a model takes one value, which includes the options.
            connection = entity.connection
            value = opaque_input(request, connection.task, connection.key, self._stage)
            return [input_message(value)], GenerateConfig()
        if (task := played_task(self._key, self._native.api) or "chat_completion") != "chat_completion":
            return [input_message(opaque_input(request, task, self._key, self._stage))], GenerateConfig()
        if entity is not None and request.options and not entity.connection.takes_options:
            connection = entity.connection
            raise SampleError(
                f"model {connection.key!r} receives {', '.join(request.options)}, which its adapter"
                f" {connection.adapter.key!r} does not pass on",
                stage=self._stage,
                hint="let 'process_input' write the options in `kwargs`",
                kind="UnsupportedOption",
            )
        return native_messages(request, self._stage), generate_config(request, self._stage)


def _refuse_endless(output: ModelOutput, stage: Stage) -> None:
    """Reject an answer above the length limit. Inspect's own providers have no limit, and processing an
    answer takes several times its size.

    Raises:
        SampleError: the answer is too long.
    """
    most = ANSWER.bytes
    if sum(len(choice.message.text) for choice in output.choices) > most:
        message = f"the answer is longer than {in_words(most)}"
        raise SampleError(message, stage=stage, hint=ANSWER.hint, kind="ModelError")


def ml_task(native: NativeModel) -> MLTask:
    """Return the ML task of an Inspect model. It is chat completion, except for model entities."""
    return native.api.connection.task if isinstance(native.api, EntityAPI) else "chat_completion"


def refuse_unfit(plan: TaskPlan, native: NativeModel) -> None:
    """Reject a plan whose solver holds a conversation if the model creates embeddings.

    Raises:
        UsageError: the model does not fit the solver.
    """
    solver = plan.benchmark.solver if plan.entity == "model" else None
    if solver is not None and solver.talks and ml_task(native) == "embeddings":
        raise UsageError(
            f"model {native.name!r} creates embeddings and cannot hold the conversation of the solver of"
            f" task {plan.task.key!r}; evaluate a model whose task is chat_completion",
            code=Code.UNFIT_MODEL,
        )


def native_model(
    name: str,
    model_args: Mapping[str, Any] | None = None,
    *,
    role: str | None = None,
    base_url: str | None = None,
    config: GenerateConfig | None = None,
) -> NativeModel:
    """Return the Inspect model for a model name or for the file of a model entity.

    Args:
        name: `provider/model`; `model.yaml` or `aigo_bridge/model.yaml`; `run.yaml#key` for a file with
            several models.
        model_args: arguments for the provider.
        role: role of the model in the run.
        base_url: another base URL for the provider.
        config: generation settings.

    Raises:
        UsageError: the model does not exist or cannot be created.
        SpecError: the model file is not valid. The error lists every problem with its position.
    """
    arguments = dict(model_args or {})
    if base_url is not None:
        arguments["base_url"] = base_url
    learn_arguments(arguments)
    if _is_entity(name):
        name = f"{PROVIDER}/{name}"
    try:
        # Not memoized: environment variables and files may have changed since an earlier run.
        settings = config or GenerateConfig()
        return get_model(name, role=role, config=settings, memoize=False, **arguments)
    except BridgeError:
        raise
    except (PrerequisiteError, ValueError, ImportError, TypeError) as error:
        raise UsageError(f"model {name!r}: {plain_text(error)}", code=Code.UNKNOWN_PROVIDER) from error


def _is_entity(name: str) -> bool:
    """Return whether a name refers to a model file. With a provider prefix, the file must exist."""
    if name.startswith(f"{PROVIDER}/") or not is_model_file(name):
        return False
    from inspect_ai._util.registry import registry_find, registry_unqualified_name

    prefix = name.partition("/")[0]
    providers = registry_find(
        lambda info: info.type == "modelapi" and registry_unqualified_name(info) == prefix
    )
    return not providers or Path(name.rpartition("#")[0] or name).is_file()


def plain_text(error: BaseException) -> str:
    """Return an Inspect error as one paragraph without terminal markup. For other errors, return the most
    useful line.
    """
    from rich.errors import MarkupError
    from rich.text import Text

    if not isinstance(error, PrerequisiteError):
        return summary_of(error)
    text = str(error.message)
    with contextlib.suppress(MarkupError):
        text = Text.from_markup(text).plain
    # The caller's message already says that this is an error.
    lines = [line.strip() for line in text.strip().removeprefix("ERROR: ").splitlines() if line.strip()]
    following = [*lines[1:], ""]
    sentences = (
        line if _continues(line, after) else f"{line}." for line, after in zip(lines, following, strict=True)
    )
    return " ".join(sentences)


def _continues(line: str, after: str) -> bool:
    """Return whether a line continues on the next one, so that it needs no full stop."""
    return not line[-1].isalnum() or not after[:1].isupper()


def evaluated_model() -> InspectModel:
    """Return the evaluated model of the running task."""
    return InspectModel("", get_model())


def role_models(model_map: Mapping[str, str]) -> Any:
    """Return a function that finds other models: by role if Inspect has that role, otherwise by the map.

    It never falls back to the evaluated model, because a judge would then grade itself.
    """
    entities: dict[str, NativeModel] = {}
    """Models from files in the map. Each is created only once, because it holds connections."""

    def mapped(key: str) -> NativeModel:
        name = model_map[key]
        if not _is_entity(name):
            return get_model(name, role=key)
        if key not in entities:
            entities[key] = native_model(name, role=key)
        return entities[key]

    def find(key: str) -> InspectModel:
        # Inspect's command line replaces `-` with `_` in role names.
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
            hint=f"map it: --model-map '{key}=provider/model', or --model-role '{key}=provider/model'"
            " in Inspect",
            kind="MissingModel",
        )

    return find


@contextmanager
def model_failures(stage: Stage) -> Iterator[None]:
    """Convert every exception of a provider in this block to `SampleError`. Clients raise many different
    types.
    """
    try:
        yield
    except CallError as error:
        raise _model_failure(error, stage) from error
    except _NOT_THE_MODELS:
        raise
    except Exception as error:
        raise _model_failure(error, stage) from error


def _model_failure(error: Exception, stage: Stage) -> SampleError:
    """Convert a provider's exception; after several attempts, the exception of the last one."""
    if isinstance(error, RetryError):
        cause = error.last_attempt.exception()
        error = cause if isinstance(cause, Exception) else error
    if isinstance(error, ModelGenerateError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, CallError):
        return SampleError(error.message, stage=stage, hint=error.hint, kind="ModelError")
    message = plain_text(error) if isinstance(error, PrerequisiteError) else str(error)
    return SampleError(message or type(error).__name__, stage=stage, kind=type(error).__name__)
