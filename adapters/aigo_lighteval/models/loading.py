"""Loading of lighteval's model classes without their response caches, hub requests and log messages."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.text.summaries import summary_of
from aigo_lighteval.models.backends import NOT_SETTINGS, Backend, ModelString, check_packages
from aigo_lighteval.versions import prepare_imports


@dataclass(frozen=True)
class ConfiguredBackend:
    """Fully configured backend model that is not loaded yet."""

    asked_as: ModelString
    config: Any
    """Configuration object of lighteval."""
    batch_size: int
    """Number of documents that are processed together."""
    max_tokens: int | None
    """Maximum answer length if the request sets none; `None`: the model's own limit."""
    generation: Mapping[str, Any]
    """Generation parameters of the model, by lighteval's names."""

    @property
    def backend(self) -> Backend:
        return self.asked_as.backend


@dataclass(frozen=True)
class LoadedModel(ConfiguredBackend):
    """Loaded backend model."""

    model: Any
    """Model object of lighteval."""

    @property
    def uses_chat_template(self) -> bool:
        """Return whether the model has a chat template. Otherwise it gets the plain text."""
        return bool(self.model.prompt_manager.use_chat_template)


def prepare(model: ModelString, attempt_timeout: int | None = None) -> ConfiguredBackend:
    """Check a backend's model string. This imports lighteval but does not load the model.

    Args:
        model: the model string.
        attempt_timeout: maximum seconds for one call, if the backend supports it.

    Raises:
        UsageError: a setting is wrong, or a package or the model folder is missing.
    """
    check_packages(model)
    prepare_imports()
    backend = model.backend
    config, max_tokens = _config(_limited(model, attempt_timeout), importlib.import_module(backend.module))
    batch = getattr(config, backend.batch) if backend.batch is not None else backend.default_batch
    generation = {
        key: value
        for key, value in config.generation_parameters.model_dump().items()
        if value is not None and key != "max_new_tokens"
    }
    return ConfiguredBackend(model, config, max(1, int(batch)), max_tokens, generation)


def _limited(model: ModelString, attempt_timeout: int | None) -> ModelString:
    if attempt_timeout is None or "timeout" in model.settings:
        return model
    if not model.backend.takes_timeout:
        raise UsageError(
            f"--attempt-timeout: the lighteval class of {model.name!r} cannot limit the time of a call;"
            " --time-limit limits a sample",
            code=Code.OPTIONS_APART,
        )
    return replace(model, settings={**model.settings, "timeout": str(attempt_timeout)})


def load(prepared: ConfiguredBackend) -> LoadedModel:
    """Load a backend's model.

    Raises:
        UsageError: the model cannot be loaded.
    """
    asked, backend = prepared.asked_as, prepared.backend
    module = importlib.import_module(backend.module)
    try:
        with _guarded_loading(module, local=asked.is_local):
            model = getattr(module, backend.model)(prepared.config)
    except Exception as error:
        # Any error that a library raises while loading is shown to the user in one line.
        message = summary_of(error)
        if backend.loads_weights and not asked.is_local and isinstance(error, OSError):
            message = f"{_not_here(asked.model)}: {message}"
        raise UsageError(
            f"model {asked.name!r} cannot be loaded: {message}", code=Code.FAILED_MODEL_LOAD
        ) from error
    _tame_litellm(backend)
    if backend.name == "transformers" and model.tokenizer.eos_token is None:
        raise UsageError(
            f"model {asked.name!r}: its tokenizer does not have an end-of-text token,"
            " which lighteval needs for padding",
            code=Code.FAILED_MODEL_LOAD,
        )
    _mean_the_temperature(model, backend, prepared.generation)
    return LoadedModel(**vars(prepared), model=model)


def _not_here(model: str) -> str:
    """Return the main reason for missing weights. Libraries only mention the hub."""
    from huggingface_hub import constants

    missing = f"folder {model!r} does not exist"
    if constants.HF_HUB_OFFLINE:
        return f"{missing}, and nothing is downloaded in offline mode (HF_HUB_OFFLINE)"
    return f"{missing}, and it could not be loaded as a model from the hub"


def _config(model: ModelString, module: Any) -> tuple[Any, int | None]:
    """Return lighteval's configuration, and the maximum answer length if the task sets none.

    For backends that use a document's length, the configuration does not contain the length. Otherwise
    transformers models would truncate every prompt to it.
    """
    from lighteval.models.model_input import GenerationParameters
    from pydantic import ValidationError

    backend = model.backend
    cls = getattr(module, backend.config)
    fields = {*cls.model_fields, *GenerationParameters.model_fields} - {"model_name", backend.named_by}
    problems: list[str] = []
    values: dict[str, Any] = {
        backend.named_by: str(Path(model.model).expanduser()) if model.is_local else model.model
    }
    values |= backend.fixed
    secret, variable = backend.secret or ("", "")
    if variable in os.environ:
        values[secret] = os.environ[variable]
    if backend.batch is not None:
        values[backend.batch] = backend.default_batch
    generation: dict[str, Any] = {}
    for name, value in model.settings.items():
        if name in NOT_SETTINGS:
            problems.append(f"{name!r} cannot be set: {NOT_SETTINGS[name]}")
        elif name == secret:
            problems.append(
                f"{name!r} cannot be set here, because evidence contains the model string: set"
                f" {variable} in the environment"
            )
        elif name in backend.unused:
            problems.append(f"{name!r} cannot be set: it has no effect on this backend")
        elif name in backend.fixed:
            problems.append(f"{name!r} cannot be set: aigo-bridge uses {backend.fixed[name]!r}")
        elif name not in fields:
            problems.append(
                f"unknown setting {name!r}; expected one of {', '.join(sorted(fields - set(NOT_SETTINGS)))}"
            )
        elif name in GenerationParameters.model_fields:
            generation[name] = value
        else:
            values[name] = value
    if problems:
        raise UsageError(
            "\n".join(f"model {model.name!r}: {problem}" for problem in problems),
            code=Code.WRONG_MODEL_ARGUMENT,
        )
    try:
        parameters = GenerationParameters(**generation)
        unheard = [name for name in generation if not _is_heard(name, parameters, backend)]
        if unheard:
            raise UsageError(
                f"model {model.name!r}: lighteval does not pass {', '.join(unheard)} on to {backend.name}",
                code=Code.WRONG_MODEL_ARGUMENT,
            )
        length = parameters.max_new_tokens
        if backend.takes_length:
            parameters = parameters.model_copy(update={"max_new_tokens": None})
        return cls(**values, generation_parameters=parameters), length
    except ValidationError as error:
        raise UsageError(
            "\n".join(
                f"model {model.name!r}: {'.'.join(map(str, detail['loc']))}: {detail['msg']}"
                for detail in error.errors()
            ),
            code=Code.WRONG_MODEL_ARGUMENT,
        ) from error


def _is_heard(name: str, parameters: Any, backend: Backend) -> bool:
    """Return whether a generation parameter reaches the model or equals its default."""
    kind = type(parameters)
    if getattr(parameters, name) == getattr(kind(), name) or (
        backend.takes_length and name == "max_new_tokens"
    ):
        return True
    if backend.name == "transformers" and name == "seed":
        return True  # set by `_mean_the_temperature`
    alone = kind(**{name: getattr(parameters, name)})
    return bool(getattr(alone, backend.passes_on)() != getattr(kind(), backend.passes_on)())


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """Replace a name of a lighteval module in this block, if the module has it."""
    if not hasattr(module, name):
        yield
        return
    original = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, original)


@contextmanager
def _guarded_loading(module: Any, *, local: bool) -> Iterator[None]:
    """Load a model without unwanted side effects.

    lighteval creates a response cache that returns outdated answers. For a local path, its folder would be
    inside the model folder. A model with `_cache` set to `None` is called directly. lighteval also asks the
    hub for a repository's revision, even for a local folder.
    """
    with replaced(module, "SampleCache", lambda config: None), quiet_logs(), _bars_for_people():
        if not local:
            yield
            return
        with replaced(module, "_get_model_sha", lambda repo_id, revision: ""):
            yield


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Hide log messages of lighteval and transformers for every batch. Errors are still raised."""
    loggers = [logging.getLogger("lighteval"), logging.getLogger("transformers")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def _bars_for_people() -> Iterator[None]:
    """Show a progress bar for loading weights only on a terminal."""
    bars: Any = importlib.import_module("transformers.utils.logging")
    if sys.stderr.isatty() or not bars.is_progress_bar_enabled():
        yield
        return
    bars.disable_progress_bar()
    try:
        yield
    finally:
        bars.enable_progress_bar()


def _tame_litellm(backend: Backend) -> None:
    """Turn off litellm's advice and its cache, which empties answers if a package is missing."""
    litellm: Any = sys.modules.get("litellm")
    if backend.name == "litellm" and litellm is not None:
        litellm.cache = None
        litellm.suppress_debug_info = True


def _mean_the_temperature(model: Any, backend: Backend, generation: Mapping[str, Any]) -> None:
    """Make temperature 0 mean the most likely token, and any other temperature mean sampling.

    lighteval passes a temperature as a number without enabling sampling. Servers of text-generation-inference
    reject 0.
    """
    draws = bool(generation.get("temperature"))
    match backend.name:
        case "transformers" if draws:
            import torch

            model.generation_config_dict["do_sample"] = True
            if (seed := generation.get("seed")) is not None:
                torch.manual_seed(seed)
        case "tgi":
            model.generation_config.do_sample = draws
            if not draws:
                model.generation_config.temperature = None
        case "inference-endpoint":
            model.generation_config["do_sample"] = draws
            if not draws:
                model.generation_config.pop("temperature", None)
