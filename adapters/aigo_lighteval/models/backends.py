"""lighteval's model classes as models for aigo-bridge runs: available backends and their model strings.

A backend receives documents, and a document contains less than a chat request: examples and a question as
text, a maximum length, and stop sequences. lighteval writes the examples and the question as chat turns after
the model's system prompt. Without a chat template, the prompt is the plain question. Requests that need more
are refused before a model is loaded. Requests are also refused if lighteval's class would handle them
wrongly. Comments in the code explain each of these faults. `loading` loads the models.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import ChatCompletionResponseFormatJSONSchema
from aigo_bridge.errors import SampleError, Stage, UsageError
from aigo_bridge.models.protocol import ModelRequest
from aigo_lighteval.documents.turns import is_chat
from aigo_lighteval.models.generation import named_model

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

PREFIX = "lighteval/"
"""Prefix of a backend name. It is required if the plain name means a server, for example `vllm/…` or
`sglang/…`."""


@dataclass(frozen=True)
class Backend:
    """One of lighteval's model classes."""

    name: str
    module: str
    model: str
    """Name of the model class."""
    config: str
    """Name of the configuration class."""
    passes_on: str
    """Method of lighteval's generation parameters that selects the parameters passed to the model."""
    packages: tuple[str, ...] = ()
    """Packages that the backend needs in addition to lighteval's own requirements."""
    remedy: str = ""
    """Command that installs the packages."""
    named_by: str = "model_name"
    """Configuration field for the model in the model string. Other fields set by aigo-bridge are in
    `fixed`."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    secret: tuple[str, str] | None = None
    """Configuration field of an API key, and the environment variable that contains it."""
    unused: tuple[str, ...] = ()
    """Configuration fields without any effect."""
    batch: str | None = "batch_size"
    """Configuration field for the number of documents processed together."""
    default_batch: int = 1
    has_server_name: bool = False
    """Whether the plain name means a server that is already running."""
    loads_weights: bool = False
    """Whether the model is loaded into this process. If so, prompts are counted in the model's tokens because
    lighteval would silently truncate them."""
    writes_prompts: bool = False
    """Whether lighteval writes the prompt text. Otherwise a server receives messages."""
    tells_likelihoods: bool = False
    takes_length: bool = True
    """Whether a document's maximum length reaches the model unchanged."""
    takes_timeout: bool = False
    """Whether the configuration has a `timeout` in seconds for a call."""
    hides_failures: bool = False
    """Whether a failed call looks like an empty answer."""


BACKENDS: Mapping[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend(
            "transformers",
            "lighteval.models.transformers.transformers_model",
            "TransformersModel",
            "TransformersModelConfig",
            "to_transformers_dict",
            packages=("accelerate",),
            remedy="pip install accelerate",
            unused=("pairwise_tokenization", "skip_special_tokens"),
            loads_weights=True,
            writes_prompts=True,
            tells_likelihoods=True,
        ),
        Backend(
            "vllm",
            "lighteval.models.vllm.vllm_model",
            "VLLMModel",
            "VLLMModelConfig",
            "to_vllm_dict",
            packages=("vllm", "ray", "more_itertools"),
            remedy="pip install 'lighteval[vllm]'",
            batch=None,
            default_batch=32,
            has_server_name=True,
            loads_weights=True,
            writes_prompts=True,
            tells_likelihoods=True,
        ),
        # The method `loglikelihood` returns one number per token, and a text instead of the tokens.
        Backend(
            "sglang",
            "lighteval.models.sglang.sglang_model",
            "SGLangModel",
            "SGLangModelConfig",
            "to_sglang_dict",
            packages=("sglang",),
            remedy="pip install 'lighteval[sglang]'",
            batch=None,
            default_batch=32,
            has_server_name=True,
            loads_weights=True,
            writes_prompts=True,
        ),
        # Reasoning models get ten times the requested length. A failed call returns an empty text.
        Backend(
            "litellm",
            "lighteval.models.endpoints.litellm_model",
            "LiteLLMClient",
            "LiteLLMModelConfig",
            "to_litellm_dict",
            packages=("litellm", "diskcache"),
            remedy="pip install 'lighteval[litellm]'",
            # Otherwise the class would ask another provider's server for the length.
            fixed={"max_model_length": 2**31},
            secret=("api_key", "LITELLM_API_KEY"),
            batch="concurrent_requests",
            default_batch=10,
            takes_length=False,
            takes_timeout=True,
            hides_failures=True,
        ),
        # The class uses the length and stop sequences of its configuration and ignores a document's.
        Backend(
            "inference-providers",
            "lighteval.models.endpoints.inference_providers_model",
            "InferenceProvidersClient",
            "InferenceProvidersModelConfig",
            "to_inference_providers_dict",
            batch="parallel_calls_count",
            default_batch=10,
            takes_length=False,
            takes_timeout=True,
        ),
        # Both classes read likelihoods with a field that documents no longer have.
        Backend(
            "inference-endpoint",
            "lighteval.models.endpoints.endpoint_model",
            "InferenceEndpointModel",
            "InferenceEndpointModelConfig",
            "to_tgi_ie_dict",
            named_by="endpoint_name",
            # Otherwise lighteval would create a missing endpoint, which costs money.
            fixed={"reuse_existing": True},
            writes_prompts=True,
        ),
        Backend(
            "tgi",
            "lighteval.models.endpoints.tgi_model",
            "ModelClient",
            "TGIModelConfig",
            "to_tgi_ie_dict",
            packages=("text-generation",),
            remedy="pip install 'lighteval[tgi]'",
            named_by="inference_server_address",
            fixed={"model_name": None},
            secret=("inference_server_auth", "TGI_API_KEY"),
            writes_prompts=True,
        ),
    )
}

NOT_SETTINGS: Mapping[str, str] = {
    "system_prompt": "the task sets it",
    "cache_dir": "answers are not cached",
    "continuous_batching": "it truncates long prompts silently",
    "is_async": "this engine always runs in batches",
    "multichoice_continuations_start_space": ("lighteval ignores it; write the space into the continuations"),
    "data_parallel_size": "it loads the model again for every batch",
    "response_format": "documents do not support it",
    "stop_tokens": "the task sets them",
    "truncate_prompt": "it truncates prompts silently",
}
"""Fields of lighteval's configurations that a model string cannot set, with the reason."""


@dataclass(frozen=True)
class ModelString:
    """Parsed model string of a backend: `[lighteval/]backend/model[,setting=value]…`."""

    name: str
    """Model string as the user wrote it."""
    backend: Backend
    model: str
    """Path, repository or address of the model."""
    settings: Mapping[str, str]

    @property
    def is_local(self) -> bool:
        """Return whether the model is a local folder, not a repository on a hub."""
        return self.backend.loads_weights and Path(self.model).expanduser().is_dir()

    def has_chat_template(self) -> bool | None:
        """Return whether the model has a chat template; `None` if this is unknown before loading."""
        override = self.settings.get("override_chat_template", "").lower()
        if override:
            return override in ("true", "1", "yes", "on")
        if not self.backend.loads_weights:
            return True
        if "tokenizer" in self.settings or "subfolder" in self.settings or not self.is_local:
            return None
        folder = Path(self.model).expanduser()
        if (folder / "chat_template.jinja").exists() or (folder / "chat_template.json").exists():
            return True
        try:
            return '"chat_template"' in (folder / "tokenizer_config.json").read_text("utf-8", "replace")
        except OSError:
            return False


def backend_model(name: str | None) -> ModelString | None:
    """Return the backend model of a model string; `None` if the string names another kind of model.

    Raises:
        UsageError: the string names a backend but cannot be parsed.
    """
    if name is None:
        return None
    explicit = name.startswith(PREFIX)
    kind = name.removeprefix(PREFIX).partition("/")[0]
    backend = BACKENDS.get(kind)
    if backend is None and explicit:
        raise UsageError(
            f"model {name!r}: unknown backend {kind!r} of lighteval; expected one of {', '.join(BACKENDS)}",
            code=Code.UNKNOWN_PROVIDER,
        )
    if backend is None or (backend.has_server_name and not explicit):
        return None
    named = named_model(name)
    model = named.name.removeprefix(PREFIX).partition("/")[2]
    if not model:
        raise UsageError(
            f"model {name!r}: found no model, expected {kind}/MODEL", code=Code.WRONG_MODEL_ARGUMENT
        )
    return ModelString(name, backend, model, named.settings)


def check_packages(model: ModelString) -> None:
    """Check that a backend's packages are installed, without importing them.

    Raises:
        UsageError: packages are missing. The message contains the install command.
    """
    backend = model.backend
    missing = [package for package in backend.packages if not _is_installed(package)]
    if missing:
        raise UsageError(
            f"model {model.name!r} needs {', '.join(missing)}, not installed here; run: {backend.remedy}",
            code=Code.MISSING_PACKAGE,
        )
    looks_like_path = model.model.startswith(("/", "./", "../", "~"))
    if backend.loads_weights and looks_like_path and not model.is_local:
        raise UsageError(
            f"model {model.name!r}: {model.model!r} is not a folder", code=Code.UNKNOWN_MODEL_ENTITY
        )


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


# Requests as documents


def message_problem(roles: Sequence[str], *, chat: bool | None) -> str | None:
    """Return why a chat with these roles does not fit into a document; `None` if it fits.

    Args:
        roles: roles of the messages.
        chat: whether the model has a chat template.
    """
    if list(roles[-1:]) != ["user"]:
        return "its last message is not from the user"
    if not is_chat(roles):
        return "its messages are not examples and a question, alternating between user and assistant"
    if chat is False and len(roles) > 1:
        return "the model does not have a chat template, so it cannot receive more than one message"
    return None


def option_problem(request: ModelRequest, backend: Backend, generation: Mapping[str, Any]) -> str | None:
    """Return why a document cannot carry a request's options to the model; `None` if it can.

    Args:
        request: the request.
        backend: backend that receives it.
        generation: generation parameters of the backend, by lighteval's names.
    """
    options = request.options
    if isinstance(request.input.response_format, ChatCompletionResponseFormatJSONSchema):
        return "documents do not support structured outputs"
    size, stop = options.get("max_tokens"), options.get("stop")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
        return f"max_tokens: found {size!r}, expected a whole number from 1"
    if stop is not None and not (
        isinstance(stop, str) or (isinstance(stop, list) and all(isinstance(text, str) for text in stop))
    ):
        return f"stop: found {stop!r}, expected a text or a list of texts"
    if size is not None and not backend.takes_length:
        return (
            "a request's max_tokens does not reach the model unchanged;"
            " set it in the model string: max_new_tokens=N"
        )
    settings = {"temperature": 0.0, **generation}
    for name, value in options.items():
        if value is None or name in ("max_tokens", "stop") or (name == "logprobs" and value is False):
            continue
        if name in ("logprobs", "top_logprobs"):
            return f"documents do not support {name}"
        if settings.get(name) != value:
            return (
                f"documents do not support {name}={value}; the model uses {settings.get(name)}:"
                " set it in the model string"
            )
    return None


@dataclass(frozen=True)
class ModelQuery:
    """Document with the parts of a request that lighteval stores in other places."""

    doc: Doc
    system: str | None
    """System prompt. lighteval has one per model."""
    stop: tuple[str, ...]

    @property
    def kind(self) -> tuple[Any, ...]:
        """Return the properties that all questions of a batch share: system prompt, stop sequences and
        length.
        """
        return self.system, self.stop, self.doc.generation_size


def question(
    request: ModelRequest,
    backend: Backend,
    generation: Mapping[str, Any],
    *,
    chat: bool,
    max_tokens: int | None,
    stage: Stage,
    choices: tuple[str, ...] = (),
) -> ModelQuery:
    """Convert a request to a document.

    Args:
        request: the request.
        backend: backend that receives it.
        generation: generation parameters of the backend, by lighteval's names.
        chat: whether the model has a chat template.
        max_tokens: maximum answer length if the request sets none.
        stage: stage for errors.
        choices: continuations to compute likelihoods for; empty to generate an answer.

    Raises:
        SampleError: a document cannot carry the request.
    """
    from lighteval.tasks.requests import Doc

    turns = [(message.role, message.content) for message in request.input.messages]
    problem = (
        "its conversation has parts that are not plain text"
        if request.items is not None or not all(isinstance(text, str) for _, text in turns)
        else message_problem([role for role, _ in turns], chat=chat)
    )
    problem = problem or option_problem(request, backend, generation)
    if problem is not None:
        raise SampleError(
            f"lighteval's {backend.name} backend cannot run this request: {problem}",
            stage=stage,
            kind="UnsupportedRequest",
        )
    texts = [str(text) for _, text in turns]
    system = texts.pop(0) if turns[0][0] == "system" else None
    *spoken, asked = texts
    stops = request.options.get("stop") or ()
    stop = [text for text in ([stops] if isinstance(stops, str) else stops) if text]
    size = request.options.get("max_tokens")
    doc = Doc(
        query=asked,
        choices=list(choices),
        gold_index=0,
        id="0",
        task_name="aigo|0",
        fewshot_samples=[
            Doc(query=shot_query, choices=[answered], gold_index=0)
            for shot_query, answered in zip(spoken[::2], spoken[1::2], strict=True)
        ],
        generation_size=size if isinstance(size, int) else max_tokens,
        stop_sequences=stop,
        num_samples=1,
    )
    return ModelQuery(doc, system, tuple(stop))
