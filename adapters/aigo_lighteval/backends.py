"""lighteval's own model classes as models of our runs: which there are, what they can be asked, how they are named.

A backend gets documents, and a document says less than a chat request: examples and a question in text, a length, stop sequences. What more
a task asks for is refused before anything is loaded. Where a class of lighteval does something else than it is asked (its faults are named
where they are handled), that is refused as well. `loading` loads them.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.errors import UsageError

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
    """Field of the configuration that takes what stands behind the backend's name; others of our fields are `fixed`."""
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
    """Whether the model is loaded into this process, prompts are counted in its tokens, and too long ones would be cut silently."""
    writes_prompts: bool = False
    """Whether lighteval writes the text that the model is given; else a server gets messages."""
    tells_likelihoods: bool = False
    takes_length: bool = True
    """Whether a document's length limit reaches the model as it is."""
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
        # Models that reason get ten times the length that was asked for; a call that fails comes back as an empty text.
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
    "multichoice_continuations_start_space": "nothing in lighteval heeds it; write the space into the continuations",
    "data_parallel_size": "it loads the model again for every batch",
    "response_format": "documents have no word for it",
    "stop_tokens": "the task says them",
    "truncate_prompt": "it cuts prompts silently",
    "generation_parameters": "write its fields, e.g. temperature=0.7",
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
        """Whether the model has a template for chats, as far as that is known without loading it; `None`: it is not."""
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
    kind, _, rest = name.removeprefix(PREFIX).partition("/")
    backend = BACKENDS.get(kind)
    if backend is None and explicit:
        raise UsageError(
            f"model {name!r}: lighteval has no backend {kind!r}; expected one of {', '.join(BACKENDS)}"
        )
    if backend is None or (backend.has_server_name and not explicit):
        return None
    # A comma may stand in a path; settings are the last parts that have the form of one.
    parts = rest.split(",")
    cut = len(parts)
    while cut > 1 and parts[cut - 1].partition("=")[0].strip().isidentifier() and "=" in parts[cut - 1]:
        cut -= 1
    model = ",".join(parts[:cut])
    if not model:
        raise UsageError(f"model {name!r}: found no model, expected {kind}/MODEL")
    settings = dict(_setting(part) for part in parts[cut:])
    return BackendModel(name, backend, model, settings)


def _setting(part: str) -> tuple[str, str]:
    key, _, value = part.partition("=")
    return key.strip(), value.strip()


def check_packages(asked: BackendModel) -> None:
    """Make sure that a backend's packages are there, without importing any.

    Raises:
        UsageError: some are missing; the message has the command that installs them.
    """
    backend = asked.backend
    missing = [package for package in backend.packages if not _is_installed(package)]
    if missing:
        raise UsageError(
            f"model {asked.name!r} needs {', '.join(missing)}, not installed here; run: {backend.remedy}"
        )
    looks_like_path = asked.model.startswith(("/", "./", "../", "~"))
    if backend.loads_weights and looks_like_path and not asked.is_local:
        raise UsageError(f"model {asked.name!r}: {asked.model!r} is no folder")


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
