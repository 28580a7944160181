"""lighteval's own model classes as models of our runs: which there are, and how they are named.

A backend gets documents, and a document says less than a chat request: examples and a question in text, a
length, stop sequences. lighteval writes a document's examples and question as turns of a chat, behind the
model's system prompt; without a chat template it is the bare text of the question. What more a task asks for
is refused before anything is loaded. Where a class of lighteval does something else than it is asked (its
faults are named where they are handled), that is refused as well. `loading` loads them.
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
"""In front of a backend's name; needed where the bare name is that of a server (`vllm/…`, `sglang/…`)."""


@dataclass(frozen=True)
class Backend:
    """One of lighteval's model classes."""

    name: str
    module: str
    model: str
    """Name of the class."""
    config: str
    """Name of its configuration."""
    passes_on: str
    """Method of lighteval's generation parameters that says which of them reach the model."""
    packages: tuple[str, ...] = ()
    """What it needs beside lighteval's own requirements."""
    remedy: str = ""
    """The command that installs them."""
    named_by: str = "model_name"
    """Field of the configuration that takes what stands behind the backend's name; others of our fields are
    `fixed`."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    secret: tuple[str, str] | None = None
    """Field of the configuration that takes a key, and the environment's variable that says it."""
    unused: tuple[str, ...] = ()
    """Fields of the configuration that change nothing."""
    batch: str | None = "batch_size"
    """Field that says how many documents are worked on at a time."""
    default_batch: int = 1
    has_server_name: bool = False
    """Whether the bare name means a server that is already running."""
    loads_weights: bool = False
    """Whether the model is loaded into this process, prompts are counted in its tokens, and too long ones
    would be cut silently."""
    writes_prompts: bool = False
    """Whether lighteval writes the text that the model is given; else a server gets messages."""
    tells_likelihoods: bool = False
    takes_length: bool = True
    """Whether a document's length limit reaches the model as it is."""
    takes_timeout: bool = False
    """Whether its configuration has a `timeout` for a call, in seconds."""
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
        # Its `loglikelihood` gives one number per token, and a text in place of the tokens.
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
        # Models that reason get ten times the length that was asked for; a call that fails comes back as an
        # empty text.
        Backend(
            "litellm",
            "lighteval.models.endpoints.litellm_model",
            "LiteLLMClient",
            "LiteLLMModelConfig",
            "to_litellm_dict",
            packages=("litellm", "diskcache"),
            remedy="pip install 'lighteval[litellm]'",
            # Else it would ask a server of another provider for the length.
            fixed={"max_model_length": 2**31},
            secret=("api_key", "LITELLM_API_KEY"),
            batch="concurrent_requests",
            default_batch=10,
            takes_length=False,
            takes_timeout=True,
            hides_failures=True,
        ),
        # It reads the length and the stop sequences of its configuration, and not those of documents.
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
        # Likelihoods of both use a field that documents no longer have.
        Backend(
            "inference-endpoint",
            "lighteval.models.endpoints.endpoint_model",
            "InferenceEndpointModel",
            "InferenceEndpointModelConfig",
            "to_tgi_ie_dict",
            named_by="endpoint_name",
            # One that does not exist would be made, and paid for.
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
    "system_prompt": "the task says it",
    "cache_dir": "answers are not cached",
    "continuous_batching": "it cuts long prompts silently",
    "is_async": "runs of this engine wait for a batch",
    "multichoice_continuations_start_space": (
        "nothing in lighteval heeds it; write the space into the continuations"
    ),
    "data_parallel_size": "it loads the model again for every batch",
    "response_format": "documents have no word for it",
    "stop_tokens": "the task says them",
    "truncate_prompt": "it cuts prompts silently",
}
"""Fields of lighteval's configurations that cannot be set in a model string, and why."""


@dataclass(frozen=True)
class BackendModel:
    """A model string of a backend, taken apart: `[lighteval/]backend/model[,setting=value]…`."""

    name: str
    """As the user wrote it."""
    backend: Backend
    model: str
    """Path, repository or address."""
    settings: Mapping[str, str]

    @property
    def is_local(self) -> bool:
        """Whether it is a folder here, and no name of a hub."""
        return self.backend.loads_weights and Path(self.model).expanduser().is_dir()

    def has_chat_template(self) -> bool | None:
        """Whether the model has a template for chats; `None`: that is not known before it is loaded."""
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


def backend_model(name: str | None) -> BackendModel | None:
    """The backend that a model string means; `None` for strings that mean something else.

    Raises:
        UsageError: the string names a backend, and cannot be taken apart.
    """
    if name is None:
        return None
    explicit = name.startswith(PREFIX)
    kind = name.removeprefix(PREFIX).partition("/")[0]
    backend = BACKENDS.get(kind)
    if backend is None and explicit:
        raise UsageError(
            f"model {name!r}: lighteval has no backend {kind!r}; expected one of {', '.join(BACKENDS)}",
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
    return BackendModel(name, backend, model, named.settings)


def check_packages(model: BackendModel) -> None:
    """Make sure that a backend's packages are there, without importing any.

    Raises:
        UsageError: some are missing; the message has the command that installs them.
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
            f"model {model.name!r}: {model.model!r} is no folder", code=Code.UNKNOWN_MODEL_ENTITY
        )


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


# Requests as documents


def message_problem(roles: Sequence[str], *, chat: bool | None) -> str | None:
    """Why a chat of these roles is no document; `None`: it is one.

    Args:
        roles: of the messages.
        chat: whether messages are written in the model's own form.
    """
    if list(roles[-1:]) != ["user"]:
        return "its last message is not the user's"
    if not is_chat(roles):
        return "its messages are not a question behind examples, by user and assistant in turn"
    if chat is False and len(roles) > 1:
        return "the model has no chat template, so there is no form for more than one message"
    return None


def option_problem(request: ModelRequest, backend: Backend, generation: Mapping[str, Any]) -> str | None:
    """Why a request's options have no place in a document, or would not reach the model; `None`: they have.

    Args:
        request: what is asked.
        backend: who is asked.
        generation: generation parameters that the backend was given, by lighteval's names.
    """
    options = request.options
    if isinstance(request.input.response_format, ChatCompletionResponseFormatJSONSchema):
        return "documents have no word for structured outputs"
    size, stop = options.get("max_tokens"), options.get("stop")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
        return f"max_tokens: found {size!r}, expected a whole number from 1"
    if stop is not None and not (
        isinstance(stop, str) or (isinstance(stop, list) and all(isinstance(text, str) for text in stop))
    ):
        return f"stop: found {stop!r}, expected a text or a list of texts"
    if size is not None and not backend.takes_length:
        return (
            "a request's max_tokens does not reach the model as it is;"
            " write it in the model string, max_new_tokens=N"
        )
    settings = {"temperature": 0.0, **generation}
    for name, value in options.items():
        if value is None or name in ("max_tokens", "stop") or (name == "logprobs" and value is False):
            continue
        if name in ("logprobs", "top_logprobs"):
            return f"documents have no word for {name}"
        if settings.get(name) != value:
            return (
                f"documents have no word for {name}={value}; the model's own is {settings.get(name)}:"
                " write it in the model string"
            )
    return None


@dataclass(frozen=True)
class Question:
    """A document, and what belongs to it but stands elsewhere in lighteval."""

    doc: Doc
    system: str | None
    """System prompt; lighteval has one per model."""
    stop: tuple[str, ...]

    @property
    def kind(self) -> tuple[Any, ...]:
        """What questions of one batch share: system prompt, stop sequences, length."""
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
) -> Question:
    """The document of a request.

    Args:
        request: what is asked.
        backend: who is asked.
        generation: its generation parameters, by lighteval's names.
        chat: whether messages are written in the model's own form.
        max_tokens: length of the answer where the request says none.
        stage: of errors.
        choices: continuations whose likelihoods are asked; none when an answer is generated.

    Raises:
        SampleError: a document cannot say what the request asks.
    """
    from lighteval.tasks.requests import Doc

    turns = [(message.role, message.content) for message in request.input.messages]
    problem = (
        "its conversation has parts that are no plain text"
        if request.items is not None or not all(isinstance(text, str) for _, text in turns)
        else message_problem([role for role, _ in turns], chat=chat)
    )
    problem = problem or option_problem(request, backend, generation)
    if problem is not None:
        raise SampleError(
            f"lighteval's {backend.name} backend cannot be asked this: {problem}",
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
    return Question(doc, system, tuple(stop))
