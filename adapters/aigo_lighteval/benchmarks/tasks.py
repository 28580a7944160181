"""lighteval's tasks by name, found without network access: built-in tasks and tasks in a user's file.

lighteval's registry imports all task files. One of them downloads data during the import, and others request
models from a hub, so the registry does not work offline. This module imports the files one by one. Files that
need the network are imported only for their own tasks. A file that fails is reported and skipped.
"""

from __future__ import annotations

import ast
import copy
import difflib
import importlib
import importlib.util
import inspect
import io
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from lighteval.tasks.lighteval_task import LightevalTaskConfig

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import Benchmark, BenchmarkListing, unknown
from aigo_bridge.errors import UsageError
from aigo_bridge.text.plurals import plural
from aigo_bridge.text.summaries import named_summary_of
from aigo_lighteval.versions import installed_versions

PACKAGE = "lighteval.tasks.tasks"
MULTILINGUAL = "lighteval.tasks.multilingual.tasks"
"""Package with about fifty thousand tasks that lighteval loads with `--load-tasks-multilingual`. Here it is
loaded on demand."""

NEEDS_NETWORK: Mapping[str, str] = {
    "tiny_benchmarks": "tiny:",
    "mix_eval.main": "mixeval_",
    "mt_bench.main": "mt_bench",
}
"""Task name prefixes by module, for modules that use the network during the import."""


@dataclass(frozen=True)
class Registry:
    """Tasks by name."""

    configs: Mapping[str, LightevalTaskConfig]
    modules: Mapping[str, Any]
    """Module of each task."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """Import errors by module."""


@dataclass(frozen=True)
class SelectedTask:
    """Requested task."""

    config: LightevalTaskConfig
    """Separate copy of the configuration, with metric parameters set."""
    shots: int
    """Number of examples before each question."""

    @property
    def name(self) -> str:
        """Return the task name as in lighteval's results: `gsm8k|5`."""
        return f"{self.config.name}|{self.shots}"


@cache
def built_in() -> Registry:
    """Return lighteval's own tasks that can be imported without network access."""
    return _imported(PACKAGE, except_for=NEEDS_NETWORK)


@cache
def multilingual() -> Registry:
    """Return the tasks in languages other than English. Their import takes seconds."""
    # Libraries report missing packages many times. `problems` has one line for each.
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        return _imported(MULTILINGUAL)


def _imported(package: str, except_for: Collection[str] = ()) -> Registry:
    folder = _folder(package)
    names = sorted(
        [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
        + [f"{path.parent.name}.main" for path in folder.glob("*/main.py")]
    )
    configs: dict[str, LightevalTaskConfig] = {}
    modules: dict[str, Any] = {}
    problems: dict[str, str] = {}
    with unchanged_process():
        for name in names:
            if name in except_for:
                continue
            try:
                module = importlib.import_module(f"{package}.{name}")
            except Exception as error:  # noqa: BLE001  # any import error of a lighteval file is reported as one line
                problems[name] = named_summary_of(error)
                continue
            for config in _table(module):
                configs[config.name] = config
                modules[config.name] = module
    return Registry(configs, modules, problems)


_OWN = "aigo_bridge_tasks_"


def own_modules() -> list[ModuleType]:
    """Return the loaded user files as modules."""
    return [module for name, module in list(sys.modules.items()) if name.startswith(_OWN)]


def from_file(file: Path) -> Registry:
    """Return the tasks of a user's file (`TASKS_TABLE`). The file is executed in this process, as in
    lighteval.

    Raises:
        UsageError: the file cannot be loaded or does not define tasks.
    """
    path = file.absolute()
    if not path.is_file():
        raise UsageError(f"file {str(file)!r} does not exist", code=Code.NOTHING_THERE)
    # Pickled metrics and dataclasses need the module in `sys.modules`.
    name = f"{_OWN}{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(
            f"{str(file)!r} is not a Python file, expected one with TASKS_TABLE", code=Code.UNKNOWN_BENCHMARK
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # any error of the user's file is reported
        raise UsageError(
            f"{str(file)!r} cannot be loaded: {named_summary_of(error)}", code=Code.UNKNOWN_BENCHMARK
        ) from error
    configs = {config.name: config for config in _table(module)}
    if not configs:
        raise UsageError(
            f"no task in {str(file)!r}: expected TASKS_TABLE, a list of LightevalTaskConfig",
            code=Code.UNKNOWN_BENCHMARK,
        )
    return Registry(configs, dict.fromkeys(configs, module))


def select(name: str, arguments: Sequence[str] = (), custom_tasks: Path | None = None) -> list[SelectedTask]:
    """Return the tasks that a name selects, in order.

    Args:
        name: `task`, `task|shots`, or a superset. For example, `mmlu` is a superset, and `bbq:` is only
            the task `bbq`. Several names are separated by commas. Each can have metric parameters
            (`task@k=1@n=4`). `file.py` or `file.py@task` selects tasks of a file.
        arguments: further metric parameters, `NAME=VALUE`.
        custom_tasks: file with additional tasks.

    Raises:
        UsageError: a task or parameter does not exist.
    """
    selection: list[SelectedTask] = []
    for part in filter(None, (part.strip() for part in name.split(","))):
        file, rest = _file_of(part)
        task, shots, parameters = _taken_apart(rest)
        values = parameters | _parameters(arguments)
        if file is not None:
            registry = from_file(file)
            configs = _in(registry, task, f"{part!r}") if task else list(registry.configs.values())
        else:
            configs = _looked_up(task, custom_tasks)
        selection += [SelectedTask(_own(config, values), shots) for config in configs]
    if not selection:
        raise UsageError(f"found no task in {name!r}", code=Code.UNKNOWN_BENCHMARK)
    names = [spec.name for spec in selection]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(
            f"{name!r} names {', '.join(twice)} more than once", code=Code.WRONG_BENCHMARK_OPTION
        )
    return selection


def _file_of(text: str) -> tuple[Path | None, str]:
    """Split a name into file and task. The file is `None` if the name does not contain one."""
    file, dot, task = text.partition(".py")
    if dot and (not task or task[0] in "@|"):
        return Path(file + dot), task.removeprefix("@")
    return None, text


def _taken_apart(text: str) -> tuple[str, int, dict[str, Any]]:
    parts = text.split("|")
    if len(parts) == 3:
        # lighteval ignores the leading suite since release 0.12.
        parts = parts[1:]
    if len(parts) > 2 or (len(parts) == 2 and not parts[1].strip().isdecimal()):
        raise UsageError(
            f"found {text!r}, expected a task, or TASK|SHOTS with a number of examples",
            code=Code.WRONG_BENCHMARK_OPTION,
        )
    task, *parameters = parts[0].split("@")
    shots = int(parts[1]) if len(parts) == 2 else 0
    return task.strip(), shots, _parameters([text_part for text_part in parameters if text_part])


def _parameters(arguments: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for text in arguments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                f"metric parameter: found {text!r}, expected NAME=VALUE", code=Code.WRONG_BENCHMARK_OPTION
            )
        try:
            values[key.strip()] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise UsageError(
                f"metric parameter {key!r}: found {value!r}, expected a number or a quoted text",
                code=Code.WRONG_BENCHMARK_OPTION,
            ) from error
    return values


def _looked_up(task: str, custom_tasks: Path | None) -> list[LightevalTaskConfig]:
    custom = from_file(custom_tasks) if custom_tasks is not None else None
    registry = built_in()
    if custom is not None:
        if both := sorted(set(custom.configs) & set(registry.configs)):
            raise UsageError(
                f"{str(custom_tasks)!r}: {', '.join(both)} is also a task of lighteval; name it differently",
                code=Code.UNKNOWN_BENCHMARK,
            )
        registry = Registry(
            {**registry.configs, **custom.configs}, {**registry.modules, **custom.modules}, registry.problems
        )
    if configs := _matching(registry, task):
        return configs
    for module, prefix in NEEDS_NETWORK.items():
        if task.startswith(prefix.rstrip(":")):
            return _in(_with_network(module), task, f"module {module!r}")
    if broken := [module for module in registry.problems if task.partition(":")[0] in module]:
        reasons = "; ".join(f"{module}: {registry.problems[module]}" for module in broken)
        raise UsageError(
            f"found no task {task!r}: its file cannot be imported ({reasons})", code=Code.UNKNOWN_BENCHMARK
        )
    if configs := _matching(multilingual(), task):
        return configs
    if broken := [module for module in multilingual().problems if task.startswith(module.partition(".")[0])]:
        reasons = "; ".join(f"{module}: {multilingual().problems[module]}" for module in broken)
        raise UsageError(
            f"found no task {task!r}: its file cannot be imported ({reasons})", code=Code.UNKNOWN_BENCHMARK
        )
    raise unknown("lighteval", task, sorted(registry.configs))


def _with_network(module: str) -> Registry:
    try:
        loaded = importlib.import_module(f"{PACKAGE}.{module}")
    except (Exception, SystemExit) as error:  # a failed download or an incompatible package
        problem = named_summary_of(error)
        raise UsageError(
            f"lighteval's file {module!r} uses the network during import, and failed: {problem}",
            code=Code.UNFIT_BENCHMARK,
        ) from error
    configs = {config.name: config for config in _table(loaded)}
    return Registry(configs, dict.fromkeys(configs, loaded))


def _in(registry: Registry, task: str, where: str) -> list[LightevalTaskConfig]:
    if configs := _matching(registry, task):
        return configs
    near = difflib.get_close_matches(task, registry.configs, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise UsageError(
        f"found no task {task!r} in {where}, which has {', '.join(registry.configs)}{hint}",
        code=Code.UNKNOWN_BENCHMARK,
    )


def _matching(registry: Registry, task: str) -> list[LightevalTaskConfig]:
    """Return all tasks of a superset, otherwise the task with this name.

    A colon at the end selects a single task that has the same name as a superset.
    """
    if task.endswith(":"):
        config = registry.configs.get(task.removesuffix(":"))
        return [] if config is None else [config]
    members = supersets(registry.configs).get(task)
    if members is not None:
        return [registry.configs[member] for member in members]
    return [registry.configs[task]] if task in registry.configs else []


def supersets(names: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the tasks by superset. A superset is a prefix before a colon that several tasks share."""
    groups = {
        key: list(members) for key, members in groupby(sorted(names), lambda name: name.partition(":")[0])
    }
    return {key: members for key, members in groups.items() if len(members) > 1}


def _own(config: LightevalTaskConfig, parameters: Mapping[str, Any]) -> LightevalTaskConfig:
    """Return a copy of a task with metric parameters set and shown in the metric name. lighteval would not
    update the name.
    """
    copied = copy.deepcopy(config)
    used: set[str] = set()
    for metric in copied.metrics:
        if "@" not in metric.metric_name:
            continue
        function = metric.sample_level_fn
        fitting = {key: value for key, value in parameters.items() if hasattr(function, key)}
        for key, value in fitting.items():
            setattr(function, key, value)
        used |= set(fitting)
        if fitting and isinstance(metric.metric_name, str):
            base, _, said = metric.metric_name.partition(":")
            defaults = dict(setting.split("=", 1) for setting in said.split("&") if "=" in setting)
            metric.metric_name = f"{base}:" + "&".join(f"{k}={v}" for k, v in (defaults | fitting).items())
    if unused := sorted(set(parameters) - used):
        raise UsageError(
            f"no metric of task {config.name!r} has a parameter {', '.join(map(repr, unused))}",
            code=Code.WRONG_BENCHMARK_OPTION,
        )
    return copied


def _table(module: Any) -> list[LightevalTaskConfig]:
    table = getattr(module, "TASKS_TABLE", None) or []
    return [config for config in table if isinstance(config, LightevalTaskConfig)]


def _folder(package: str) -> Path:
    lighteval, *inner = package.split(".")
    return Path(str(importlib.import_module(lighteval).__file__)).parent.joinpath(*inner)


@contextmanager
def unchanged_process() -> Iterator[None]:
    """Keep imports from changing global state other than modules.

    nltk must not request its data on every import. If the data is really needed, its absence raises an error
    later. Also, one of lighteval's files raises Python's limit on the digits of integers for the whole
    process.
    """
    import nltk  # type: ignore[import-untyped]  # no type stubs

    download, digits = nltk.download, sys.get_int_max_str_digits()
    nltk.download = lambda *_, **__: False
    try:
        yield
    finally:
        nltk.download = download
        sys.set_int_max_str_digits(digits)


# Listing


def listing() -> BenchmarkListing:
    """Return every task by name, and the supersets."""
    registry = built_in()
    package = f"lighteval {installed_versions()['lighteval']}"
    benchmarks = [
        Benchmark(name, package, _metric_parameters(config), _summary(registry.modules[name]))
        for name, config in registry.configs.items()
    ]
    benchmarks += [
        Benchmark(
            name, package, (), f"{plural(len(members), 'task')}: {_summary(registry.modules[members[0]])}"
        )
        for name, members in supersets(registry.configs).items()
    ]
    problems = [f"{module}: {reason}" for module, reason in registry.problems.items()]
    problems += [
        f"{module}: uses the network during import; its tasks ({prefix}…) are only found by name"
        for module, prefix in NEEDS_NETWORK.items()
    ]
    problems.append("multilingual: its tasks (belebele_…, mlmm_mmlu_…) are only found by name")
    return BenchmarkListing(tuple(sorted(benchmarks, key=lambda benchmark: benchmark.name)), tuple(problems))


def _metric_parameters(config: object) -> tuple[str, ...]:
    names: list[str] = []
    for metric in getattr(config, "metrics", ()):
        if "@" in metric.metric_name:
            names += [name for name in ("k", "n") if hasattr(metric.sample_level_fn, name)]
    return tuple(dict.fromkeys(names))


def _summary(module: object) -> str:
    """Return the summary in a file's docstring: the line after `abstract:`, or the first line."""
    lines = [line.strip() for line in (inspect.getdoc(module) or "").splitlines()]
    if "abstract:" in lines:
        lines = lines[lines.index("abstract:") + 1 :]
    message = next((line for line in lines if line), "")
    # In some files the text is missing, and the next heading follows.
    return "" if message.endswith(":") else message
