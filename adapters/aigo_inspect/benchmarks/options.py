"""Options of `inspect eval`, parsed by Inspect's own command from the command line, `INSPECT_EVAL_…`
variables, `.env` and option files. Every option therefore means the same as in the installed Inspect
release.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml
from click.core import ParameterSource
from inspect_ai import Epochs
from inspect_ai._cli import eval as command_module
from inspect_ai._eval.loader import solver_from_spec
from inspect_ai._util.dotenv import init_dotenv
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_find, registry_unqualified_name
from inspect_ai.approval._policy import approval_policies_from_config
from inspect_ai.model import GenerateConfig, GenerateConfigArgs, Model, get_model
from inspect_ai.model._util import resolve_model_roles

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import BenchmarkOption, BenchmarkRun
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.redaction.secrets import learn_arguments, learn_environment
from aigo_inspect.benchmarks.tasks import parsed_arguments
from aigo_inspect.models.models import native_model, plain_text
from aigo_inspect.models.provider import EntityAPI
from aigo_inspect.models.requests import options_of

_OWN = frozenset({"tasks", "json_output", "model", "t", "fail_on_error"})
"""Parameters of Inspect's command that `aigo-bridge run` replaces with its own options."""

NOT_TAKEN: Mapping[str, str] = {
    "json_output": "--json prints the aigo-bridge summary",
    "detach": "evidence is written when the run ends; let your shell run it in the background",
    "log_dir": "logs are written to --out",
    "log_format": "evidence and --resume need logs in the eval format",
    "no_log_samples": "evidence needs the samples in the log",
    "no_score": "evidence needs scores; use `inspect eval --no-score`, then `aigo-bridge import` for its log",
    "fail_on_error": "use --fail-on-error of aigo-bridge to limit the number of failed samples",
    "continue_on_fail": "a run continues after failed samples, unless --fail-on-error sets a limit",
    "display": "aigo-bridge shows its own progress",
    "no_ansi": "aigo-bridge shows its own progress",
    "trace": "aigo-bridge shows its own progress",
    "ctl_server": "watch a run by its progress and stop it with ctrl-C",
    "traceback_locals": "values of variables in a log may be secrets",
    "debug": "for debugging use `inspect eval`",
    "debug_port": "for debugging use `inspect eval`",
    "debug_errors": "for debugging use `inspect eval`",
}
"""Parameters of Inspect's command that a run does not support → reason."""

_TYPED: Mapping[str, str] = {
    "model": "--model",
    "num_samples": "--limit",
    "num_trials": "--epochs",
    "sample_id": "--sample-id",
    "max_connections": "--max-connections",
    "max_samples": "--max-samples",
    "attempt_timeout": "--attempt-timeout",
    "time_limit": "--time-limit",
    "token_limit": "--token-limit",
    "cost_limit": "--cost-limit",
}
"""Fields of `BenchmarkRun` → options of Inspect's command."""

TRANSPORT = frozenset(
    {
        "max_retries",
        "timeout",
        "attempt_timeout",
        "stream_idle_timeout",
        "max_connections",
        "adaptive_connections",
        "batch",
        "cache",
    }
)
"""Generation settings for the connection to a model. They do not change the request."""

_OF_INSPECT = frozenset(
    {
        "system_message",
        "max_tool_output",
        "fail_on_refusal",
        "reasoning_history",
        "internal_tools",
        "response_schema",
    }
)
"""Generation settings that Inspect applies itself, or that are part of every request to a model entity."""


@dataclass(frozen=True)
class EvalSettings:
    """Tasks, models and settings of a run, as parsed by Inspect's own command."""

    tasks: tuple[str, ...]
    """Names, files, folders and patterns of the tasks."""
    task_arguments: Mapping[str, Any]
    models: tuple[Model, ...]
    """Models to evaluate; each task runs with each model. Without a model, this is Inspect's placeholder
    model."""
    roles: Mapping[str, Model | list[Model]]
    generation: GenerateConfig
    """Generation settings for the models."""
    parameters: Mapping[str, Any]
    """All other arguments for `eval` that were set, including generation settings."""

    @property
    def num_trials(self) -> int | None:
        """Number of trials for each sample; `None` if the task decides."""
        epochs: Epochs | None = self.parameters.get("epochs")
        return None if epochs is None else epochs.epochs


def taken_options() -> tuple[BenchmarkOption, ...]:
    """Return the options of Inspect's command that `aigo-bridge run inspect:…` accepts.

    Unsupported options are included, so that they can be rejected with a reason.
    """
    return tuple(
        BenchmarkOption((*parameter.opts, *parameter.secondary_opts), _value(parameter))
        for parameter in command_module.eval_command.params
        if parameter.name not in _OWN and isinstance(parameter, click.Option)
    )


def _value(option: click.Option) -> Any:
    if option.is_flag:
        return "none"
    # Click does not publish whether a value is optional (`--retry-on-error[=N]`).
    return "optional" if getattr(option, "_flag_needs_value", False) else "required"


def settings_of(request: BenchmarkRun) -> EvalSettings:
    """Parse the settings of a run with Inspect's own command.

    Raises:
        UsageError: an option is not valid, has no effect, or names a model that cannot be created.
    """
    init_dotenv()
    learn_environment()
    parsed_arguments(request.arguments)
    arguments = _read(request)
    _refuse_without_effect(arguments, request)
    tasks = arguments.pop("tasks", None) or ()
    base_url, model_args = (
        arguments.pop("model_base_url", None),
        dict(arguments.pop("model_args", None) or {}),
    )
    names, roles = arguments.pop("model", None), arguments.pop("model_roles", None) or {}
    task_arguments = arguments.pop("task_args", None) or {}
    unset: tuple[Any, ...] = (None, {}, [], ())
    parameters = {name: value for name, value in arguments.items() if value not in unset}
    generation = _generation(parameters)
    learn_arguments({"headers": generation.extra_headers or {}, "base_url": base_url or ""})
    _check(parameters)
    return EvalSettings(
        tasks=(tasks,) if isinstance(tasks, str) else tuple(tasks),
        task_arguments=task_arguments,
        models=_models(names, base_url, model_args, generation),
        roles={
            **{role: _role(bound) for role, bound in roles.items()},
            **{role: native_model(name) for role, name in request.roles.items()},
        },
        generation=generation,
        parameters=parameters,
    )


def _generation(parameters: Mapping[str, Any]) -> GenerateConfig:
    names = GenerateConfigArgs.__annotations__
    return GenerateConfig(**{name: value for name, value in parameters.items() if name in names})


# Parsing with Inspect's command


def _read(request: BenchmarkRun) -> dict[str, Any]:
    """Return the arguments with which Inspect's command would call `eval`."""
    typed = {option: getattr(request, name) for name, option in _TYPED.items()}
    words = [word.partition("=")[0] for word in request.options]
    twice = [option for option, value in typed.items() if value is not None and option in words]
    if twice:
        raise UsageError(
            f"{', '.join(twice)}: set twice (-n is --limit, --num-trials is --epochs)",
            code=Code.WRONG_BENCHMARK_OPTION,
        )
    texts = [text for option, value in typed.items() if value is not None for text in (option, str(value))]
    texts += [text for argument in request.arguments for text in ("-T", argument)]
    names = [name for name in (request.task, *request.more_tasks) if name]
    try:
        context = command_module.eval_command.make_context(
            "inspect eval", [*request.options, *texts, "--", *names], auto_envvar_prefix="INSPECT_EVAL"
        )
        _leave_out(context, request)
        context.params["display"] = "none"
        with context, _captured() as calls:
            command_module.eval_command.invoke(context)
    except (BridgeError, KeyboardInterrupt):
        raise
    except click.ClickException as error:
        raise UsageError(error.format_message(), code=Code.WRONG_BENCHMARK_OPTION) from error
    except (PrerequisiteError, ValueError, TypeError, LookupError, OSError, yaml.YAMLError) as error:
        raise UsageError(
            f"options of inspect: {plain_text(error)}", code=Code.WRONG_BENCHMARK_OPTION
        ) from error
    (arguments,) = calls
    return _without_those_of_files(arguments)


@contextmanager
def _captured() -> Iterator[list[dict[str, Any]]]:
    """Capture the arguments with which Inspect's command calls `eval`, and do not run it."""
    module: Any = command_module
    calls: list[dict[str, Any]] = []
    native = module.eval
    module.eval = lambda **arguments: calls.append(arguments)
    try:
        yield calls
    finally:
        module.eval = native


def _leave_out(context: click.Context, request: BenchmarkRun) -> None:
    """Reject unsupported options from the command line, and report ignored environment variables."""
    refused = []
    for parameter in context.command.params:
        name = str(parameter.name)
        reason = NOT_TAKEN.get(name)
        if reason is None:
            continue
        source, value = context.get_parameter_source(name), context.params[name]
        default = parameter.get_default(context)
        # Click uses a sentinel object for a missing default.
        default = default if isinstance(default, str | int | float) else None
        context.params[name] = default
        if source == ParameterSource.COMMANDLINE:
            refused.append(f"{parameter.opts[0]}: {reason}")
        elif (
            source == ParameterSource.ENVIRONMENT
            and name not in ("display", "no_ansi")
            and value not in (default, None, False, "eval")
            and request.on_note is not None
        ):
            request.on_note(f"{_variable(parameter)} is ignored: {reason}")
    if refused:
        raise UsageError(
            "unsupported options of `inspect eval`:\n  " + "\n  ".join(refused),
            code=Code.WRONG_BENCHMARK_OPTION,
        )


def _variable(parameter: click.Parameter) -> str:
    variables = parameter.envvar
    names = [variables] if isinstance(variables, str) else list(variables or ())
    names.append(f"INSPECT_EVAL_{str(parameter.name).upper()}")
    return next((name for name in names if name in os.environ), names[0])


def _without_those_of_files(arguments: dict[str, Any]) -> dict[str, Any]:
    """Remove the settings that aigo-bridge controls. Reject a `--run-config` that changes them."""
    conflicts = {
        "log_samples": arguments.get("log_samples") is False,
        "fail_on_error": arguments.get("fail_on_error") not in (None, False),
        "continue_on_fail": bool(arguments.get("continue_on_fail")),
    }
    reasons = {"log_samples": NOT_TAKEN["no_log_samples"], **NOT_TAKEN}
    refused = [f"{name}: {reasons[name]}" for name, is_asked in conflicts.items() if is_asked]
    if refused:
        raise UsageError(
            "--run-config has unsupported settings:\n  " + "\n  ".join(refused),
            code=Code.WRONG_BENCHMARK_OPTION,
        )
    left_out = {"log_dir", "log_format", "log_header_only", "display", "score", "score_display"}
    left_out |= {"debug_errors", "trace", "ctl_server", *conflicts}
    return {name: value for name, value in arguments.items() if name not in left_out}


# Checks


def _refuse_without_effect(arguments: Mapping[str, Any], request: BenchmarkRun) -> None:
    """Reject options that Inspect's command accepts and silently ignores."""
    words = {word.partition("=")[0] for word in request.options}
    refused = []
    if words & {"--epochs-reducer", "--no-epochs-reducer"} and arguments.get("epochs") is None:
        refused.append(
            "--epochs-reducer: needs --num-trials N, without which Inspect does not reduce with it"
        )
    if words & {"-S", "--solver-config"} and arguments.get("solver") is None:
        refused.append("-S, --solver-config: these are arguments of --solver, which is missing")
    if arguments.get("sample_id") is not None:
        for name, option in (("limit", "--limit"), ("sample_shuffle", "--sample-shuffle")):
            if arguments.get(name) is not None:
                refused.append(f"--sample-id and {option} (or -n): use only one of them")
    names = arguments.get("model")
    scripted = isinstance(names, str) and names.startswith("scripted/")
    if scripted and arguments.get("model_base_url") is not None:
        refused.append("--model-base-url: a scripted model does not use an address")
    if refused:
        raise UsageError(
            "options without effect:\n  " + "\n  ".join(refused), code=Code.WRONG_BENCHMARK_OPTION
        )


def _check(parameters: Mapping[str, Any]) -> None:
    """Create the solver and approval policies of the options, so that a wrong name is reported before the run
    starts.
    """
    try:
        if "solver" in parameters:
            solver_from_spec(parameters["solver"])
        if isinstance(parameters.get("approval"), str):
            approval_policies_from_config(parameters["approval"])
    except Exception as error:
        # Code and files of the user can raise any exception.
        raise UsageError(
            f"--solver, --approval: {type(error).__name__}: {plain_text(error)}",
            code=Code.WRONG_BENCHMARK_OPTION,
        ) from error
    sandbox = parameters.get("sandbox")
    if sandbox is None:
        return
    names = sorted({registry_unqualified_name(info) for info in registry_find(_is_sandbox)})
    if sandbox.type.rpartition("/")[2] not in names:
        raise UsageError(
            f"--sandbox: found {sandbox.type!r}, expected one of {', '.join(names)}",
            code=Code.WRONG_BENCHMARK_OPTION,
        )


def _is_sandbox(info: Any) -> bool:
    return bool(info.type == "sandboxenv")


# Models


def _models(
    named: Any, base_url: str | None, model_args: Mapping[str, Any], generation: GenerateConfig
) -> tuple[Model, ...]:
    if named is None:
        return (get_model("none"),)
    if isinstance(named, list) and all(isinstance(model, Model) for model in named):
        return tuple(named)
    names = _names(named) if isinstance(named, str) else named
    models = tuple(native_model(name, model_args, base_url=base_url, config=generation) for name in names)
    _refuse_unsent(models, generation)
    return models


def _refuse_unsent(models: Sequence[Model], generation: GenerateConfig) -> None:
    """Reject generation settings that a model entity would not send to its endpoint."""
    settings = generation.model_dump(exclude_none=True, exclude={*TRANSPORT, *_OF_INSPECT})
    refused = []
    for model in models:
        if not isinstance(model.api, EntityAPI):
            continue
        takes = model.api.connection.takes_options
        unsent = [
            f"--{name.replace('_', '-')}"
            for name, value in settings.items()
            if not (takes and options_of(GenerateConfig(**{name: value})))
        ]
        if unsent:
            adapter = model.api.connection.adapter.key
            refused.append(
                f"{', '.join(unsent)}: the adapter {adapter!r} of {model.name!r} does not pass it on"
            )
    if refused:
        raise UsageError("\n".join(refused), code=Code.WRONG_BENCHMARK_OPTION)


def _names(text: str) -> list[str]:
    """Split a comma-separated list of model names. The name of an existing file may contain a comma."""
    if Path(text).is_file() or Path(text.partition("/")[2]).is_file():
        return [text]
    return [name.strip() for name in text.split(",") if name.strip()]


def _role(bound: Any) -> Model | list[Model]:
    """Return the models of a role from the values of Inspect's command: names, or models with settings."""
    models = [native_model(item) if isinstance(item, str) else item for item in _listed(bound)]
    return models if len(models) > 1 else models[0]


def _listed(bound: Any) -> Sequence[Any]:
    items = bound if isinstance(bound, list) else [bound]
    if not items or not all(isinstance(item, str | Model) for item in items):
        raise UsageError(
            f"--model-role: found {bound!r}, expected NAME=MODEL or NAME={{model: …}}",
            code=Code.WRONG_BENCHMARK_OPTION,
        )
    return items


def with_roles(roles: Mapping[str, Model | list[Model]]) -> dict[str, Model | list[Model]]:
    """Return models with their role set."""
    return dict(resolve_model_roles(dict(roles)) or {})
