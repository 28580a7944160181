"""Shared command-line options, each declared once: their Typer declarations, values and permissions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, dataclass, fields, replace
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, cast, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from aigo_bridge.access.grants import VariableUse
    from aigo_bridge.plan.plan import CachePolicy, PlanOrigin

Options = TypeVar("Options")

VERB: dict[str, Any] = {
    # Plain help: importing rich would take longer than reading the help.
    "rich_markup_mode": None,
    "add_completion": False,
    "pretty_exceptions_enable": False,
    # Help is as wide as the terminal, up to a readable maximum; without a terminal 80 columns.
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 120},
}


TYPED = "aigo_bridge.typed"
"""Key in `Context.meta` of the typed values: parameter name → one text, or several."""

SECURITY = ("root", "network", "allow_url", "allow_file", "env", "snippets", "allow")
"""Options of the panel "Security"."""


@dataclass(frozen=True)
class CommandAddresses:
    """Hook `addresses`: object storage addresses and lakes among the parameters of a command."""

    local: Callable[[Any, Mapping[str, Any]], AbstractContextManager[None]]
    """Function of the context of a command and the typed values (parameter name → one text, or several).
    Within the block, the parameters of the context have local paths.

    Inputs are copied before the block, and outputs are written after it.

    Raises:
        UsageError: an address is invalid, or the verb does not accept one there.
    """


class VerbCommand(TyperCommand):
    """Command whose help has panels, examples and exit codes."""

    panels: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Title of a panel → its options, by parameter name. Other options follow."""
    examples: ClassVar[Sequence[str]] = ()
    """Command lines."""
    exit_codes: ClassVar[Mapping[str, str]] = {}
    """Exit code → its meaning."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them as the user typed them: paths change addresses."""
        ctx.meta[TYPED] = self.make_parser(ctx).parse_args(args=list(args))[0]
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # The class is Click's in some releases of Typer, and Typer's in others.
            if type(error).__name__ == "MissingParameter":
                examples = [f"Example: {one}" for one in self.examples if f" {ctx.info_name} " in one]
                vars(error)["message"] = "\n".join([vars(error)["param"].help or "", *examples[:1]])
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the verb. Expected errors are shown as messages, with exit code 2."""
        from aigo_bridge.access.object_addresses import is_collapsed
        from aigo_bridge.cli.error_handling import reported
        from aigo_bridge.importing.lakes import may_be_lake

        typed = [text for value in ctx.meta[TYPED].values() for text in _texts(value)]
        with reported():
            if not any("://" in text or is_collapsed(text) or may_be_lake(text) for text in typed):
                return super().invoke(ctx)
            from aigo_bridge.hooks import load_hook

            # Errors of the verb are shown before its outputs are uploaded.
            with load_hook("addresses", CommandAddresses).local(ctx, ctx.meta[TYPED]), reported():
                return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line. Typer puts names of arguments in braces."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return [str(self.options_metavar), *map(_spelling, arguments)]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the description and the examples."""
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, panel by panel."""
        rows: dict[str, dict[str, tuple[str, str]]] = {"argument": {}, "option": {}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "argument":
                record = (_spelling(parameter), record[1])  # Typer adds the Python type
            if record is not None:
                rows[parameter.param_type_name][str(parameter.name)] = record
        options = rows["option"]
        panels = [(title, [options.pop(name) for name in names]) for title, names in self.panels.items()]
        security = [options.pop(name) for name in SECURITY if name in options]
        for title, records in (
            ("Arguments", list(rows["argument"].values())),
            *panels,
            ("Options", list(options.values())),
            ("Security", security),
        ):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the exit codes."""
        if self.exit_codes:
            with formatter.section("Exit codes"):
                formatter.write_dl(list(self.exit_codes.items()))


def _spelling(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [one for one in values if isinstance(one, str)]


def verb_command(
    *examples: str,
    exit_codes: Mapping[str, str],
    panels: Mapping[str, Sequence[str]] | None = None,
    base: type[VerbCommand] = VerbCommand,
) -> type[VerbCommand]:
    """Return the command class of a verb: examples, exit code → meaning, title of a panel → options."""
    values = {"examples": examples, "exit_codes": exit_codes, "panels": panels or {}}
    return type("Verb", (base,), values)


def with_options(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Give a verb the fields of a dataclass as its arguments and options; the verb gets one object."""

    def decorate(verb: Callable[[Options], None]) -> Callable[..., None]:
        def command(**values: Any) -> None:
            verb(kind(**values))

        annotations = get_type_hints(kind, include_extras=True)
        parameters = [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.default is MISSING else field.default,
                annotation=annotations[field.name],
            )
            for field in fields(kind)  # type: ignore[arg-type]  # always a dataclass
        ]
        command.__doc__ = verb.__doc__
        command.__annotations__ = annotations
        command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
        return command

    return decorate


OPTION_NAMES = {"task_args": "-T", "source": "--from"}
"""Parameter name → option, if it is not the same word."""


def refuse_options(options: object, names: Iterable[str], reason: str) -> None:
    """Raise an error for options that do not apply.

    Args:
        options: dataclass of a verb.
        names: names of its fields.
        reason: text after the names of the options that the user set.

    Raises:
        UsageError: such an option was set; lists all of them.
    """
    from aigo_bridge.errors import UsageError

    used = [OPTION_NAMES.get(name, f"--{name.replace('_', '-')}") for name in names if getattr(options, name)]
    if used:
        raise UsageError(f"{', '.join(used)}: {reason}", code=Code.OPTIONS_APART)


# Tasks

TaskArgument = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="Task file (YAML or JSONL task records), shipped task (aigo_tasks/gsm8k), "
        "run file (all its specifications), or RUN_FILE#SPECIFICATION.",
    ),
]

ModelMapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model-map",
        metavar="KEY=MODEL",
        help="Model to use for an AI GO model key, e.g. judge=openai/gpt-4.1-mini. Repeatable.",
    ),
]

ConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        metavar="KEY=VALUE",
        help="Value of a parameter of the task or run file, e.g. language=de. Repeatable.",
    ),
]

DatasetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        metavar="KEY=FILE",
        help="File for a dataset key: rows (JSONL, CSV …) or dataset YAML, e.g. capitals=rows.csv. "
        "Repeatable.",
    ),
]

FullOption = Annotated[
    bool,
    typer.Option(
        "--full",
        help="Use the real rows from the Hugging Face hub instead of the sample rows of a shipped task.",
    ),
]

TaskArgOption = Annotated[
    list[str] | None,
    typer.Option(
        "--task-arg",
        "-T",
        metavar="NAME=VALUE",
        help="Parameter of an engine's benchmark, e.g. subset=easy. Repeatable.",
    ),
]

DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="Folder with local rows instead of those on a hub: DIR/<split>.jsonl, .parquet or .csv.",
    ),
]

CustomTasksOption = Annotated[
    Path | None,
    typer.Option(
        "--custom-tasks", metavar="FILE", help="Python file with your own lighteval tasks (TASKS_TABLE)."
    ),
]

NumSamplesOption = Annotated[
    int | None,
    typer.Option(
        "--num-samples", "-n", "--limit", min=1, metavar="N", help="Number of samples. [default: all]"
    ),
]

SubsamplingOption = Annotated[
    str | None,
    typer.Option(
        "--subsampling",
        metavar="head|random",
        help="How to choose these samples: the first ones, or a fixed random choice. [default: head]",
    ),
]

NumTrialsOption = Annotated[
    int | None,
    typer.Option(
        "--num-trials",
        "--epochs",
        min=1,
        metavar="N",
        help="Number of times to solve and score each sample.",
    ),
]

RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Folder that the files of the task may read from. [default: the project folder]",
    ),
]

BadTasksOption = Annotated[
    bool,
    typer.Option("--allow-bad-tasks", help="Skip invalid task records of a JSONL file."),
]

MaxConnectionsOption = Annotated[
    int | None,
    typer.Option("--max-connections", min=1, metavar="N", help="Maximum number of concurrent model calls."),
]

SamplesAtATimeOption = Annotated[
    int | None,
    typer.Option(
        "--max-samples", min=1, metavar="N", help="Maximum number of samples in progress at the same time."
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print a JSON summary instead of tables.")]


# Permissions of a task


def _allow_variables(context: typer.Context, names: list[str] | None) -> list[str]:
    from aigo_bridge.access.grants import granted, granting
    from aigo_bridge.cli.error_handling import reported
    from aigo_bridge.errors import UsageError

    with reported():
        for name in names or ():
            if not name.isidentifier():
                raise UsageError(
                    f"--env: found {name!r}, expected a variable name, e.g. --env REGION",
                    code=Code.WRONG_OPTION,
                )
    if names:
        grants = granted()
        context.with_resource(granting(replace(grants, variables=grants.variables | set(names))))
    # Typer 0.15 asks for the length of a callback's return value.
    return names or []


def _allow_addresses(context: typer.Context, addresses: list[str] | None) -> list[str]:
    from aigo_bridge.access.addresses import check_allowed
    from aigo_bridge.access.grants import granted, granting
    from aigo_bridge.cli.error_handling import reported

    with reported():
        for address in addresses or ():
            check_allowed(address)
    if addresses:
        grants = granted()
        context.with_resource(granting(replace(grants, addresses=(*grants.addresses, *addresses))))
    return addresses or []


def _allow_files(context: typer.Context, paths: list[Path] | None) -> list[Path]:
    from aigo_bridge.access.grants import granted, granting, real_paths
    from aigo_bridge.cli.error_handling import reported

    if paths:
        grants = granted()
        with reported():
            files = grants.files | real_paths(paths)
        context.with_resource(granting(replace(grants, files=files)))
    return paths or []


def _allow_network(context: typer.Context, network: bool) -> bool:
    from aigo_bridge.access.grants import granted, granting

    context.with_resource(granting(replace(granted(), network=network)))
    return network


EnvOption = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME",
        callback=_allow_variables,
        help="Environment variable that the files of the task may read as $NAME. Variables with "
        "secrets are refused. Repeatable.",
    ),
]


AllowUrlOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-url",
        metavar="HOST|ORIGIN|ADDRESS",
        callback=_allow_addresses,
        help="Also read rows from this host, even in a private network, e.g. "
        "http://127.0.0.1:8000, or from object storage, e.g. s3://team/data. Repeatable.",
    ),
]
AllowFileOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow-file",
        metavar="PATH",
        callback=_allow_files,
        help="Also let the files of the task read this hidden file, key file, git-ignored file or "
        "folder, e.g. out/rows.jsonl. Repeatable.",
    ),
]
NetworkOption = Annotated[
    bool,
    typer.Option(
        "--network/--no-network",
        callback=_allow_network,
        help="Fetch rows of datasets from public addresses and hubs.",
    ),
]


def variables_as_json(variables: Iterable[VariableUse]) -> list[dict[str, Any]]:
    """Return the variables that files reference, and where, as JSON; their values are not included."""
    from aigo_bridge.cli.terminal import short_path

    return [
        {
            "name": use.name,
            "file": short_path(use.file),
            "line": use.line,
            "column": use.column,
            "is_set": use.is_set,
        }
        for use in variables
    ]


def uses_as_lines(
    variables: Iterable[VariableUse], addresses: Iterable[str], files: Iterable[str]
) -> list[str]:
    """Return lines about the variables, addresses and external files that files reference."""
    from aigo_bridge.cli.terminal import printable, short_path

    lines = []
    for use in variables:
        unset = "" if use.is_set else ", not set"
        lines.append(
            f"reads the environment variable {use.name} "
            f"({short_path(use.file)}:{use.line}:{use.column}{unset})"
        )
    lines += [f"reads rows from {address}" for address in addresses]
    lines += [f"reads {short_path(file)}, outside the task folder" for file in files]
    return [printable(line) for line in dict.fromkeys(lines)]


# Snippets


def _choose_confinement(snippets: str | None) -> str | None:
    """Apply the level. The first execution of a snippet prints a note if the sandbox is incomplete."""
    from aigo_bridge.cli.error_handling import reported
    from aigo_bridge.cli.terminal import note, printable
    from aigo_bridge.snippets.process import choose

    with reported():
        choose(snippets, lambda text: note(f"note: {printable(text)} (docs/reference/snippets.md)"))
    return snippets


def _allow_needs(needs: list[str] | None) -> list[str]:
    from aigo_bridge.cli.error_handling import reported
    from aigo_bridge.execution.permissions import allow

    with reported():
        allow(needs or ())
    return needs or []


SnippetsOption = Annotated[
    str | None,
    typer.Option(
        "--snippets",
        metavar="jailed|worker|in-process",
        callback=_choose_confinement,
        help="Confinement of Python in the task: jailed (no network, only system files), worker (a "
        "separate process) or in-process (none; for debugging your own code). [default: the "
        "strictest that this machine supports, at least worker]",
    ),
]

AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="network",
        callback=_allow_needs,
        help="Grant the Python in the task the network access that the task asks for. Remembered "
        "until the task changes.",
    ),
]


# Origin of a plan


def origin_of(
    task: str,
    *,
    config: list[str] | None,
    dataset: list[str] | None,
    root: Path | None,
    num_samples: int | None = None,
    subsampling: str | None = None,
    num_trials: int | None = None,
    allow_bad_tasks: bool = False,
    full: bool = False,
    data_dir: Path | None = None,
    shard: str | None = None,
) -> PlanOrigin:
    """Return the origin of a plan. With `full`, it uses the full dataset instead of sample data, from the
    copy in `data_dir` if there is one.

    Raises:
        UsageError: an option is invalid.
        SpecError: the task cannot be read, but is needed for the types of the config.
    """
    from aigo_bridge.errors import UsageError
    from aigo_bridge.evaluation.run_files import names_run_file
    from aigo_bridge.evaluation.task import full_origin, parse_config
    from aigo_bridge.plan.plan import PlanOrigin

    if subsampling not in (None, "head", "random"):
        raise UsageError(
            f"--subsampling: found {subsampling!r}, expected head or random", code=Code.WRONG_OPTION
        )
    if allow_bad_tasks and names_run_file(task):
        raise UsageError(
            f"--allow-bad-tasks: only for JSONL files with task records, found {task!r}",
            code=Code.OPTIONS_APART,
        )
    reach = None if root is None else str(root.resolve())
    files = {key: str(Path(file).resolve()) for key, file in pairs("--dataset", dataset).items()}
    origin = PlanOrigin(
        task=_stable_name(task),
        config=parse_config(task, pairs("--config", config), root=reach),
        datasets=files,
        num_samples=num_samples,
        subsampling=cast("Literal['head', 'random'] | None", subsampling),
        num_trials=num_trials,
        root=reach,
        allow_bad_tasks=allow_bad_tasks,
        shard=shard,
    )
    return full_origin(origin, data_dir) if full else origin


def pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Return repeated `KEY=VALUE` options as a mapping.

    Raises:
        UsageError: a value contains no `=`, or a key occurs twice.
    """
    from aigo_bridge.errors import UsageError

    values: dict[str, str] = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{option}: found {text!r}, expected KEY=VALUE", code=Code.WRONG_OPTION)
        if key in values:
            raise UsageError(f"{option}: {key!r} is given twice", code=Code.OPTIONS_APART)
        values[key] = value
    return values


def cache_policy(text: str | None) -> CachePolicy | None:
    """Return the cache policy that the user typed; `None` without one.

    Raises:
        UsageError: the policy is unknown.
    """
    from aigo_bridge.errors import UsageError
    from aigo_bridge.plan.plan import CachePolicy

    policies = get_args(CachePolicy)
    if text is not None and text not in policies:
        raise UsageError(
            f"--cache: found {text!r}, expected {', '.join(policies[:-1])} or {policies[-1]}",
            code=Code.WRONG_OPTION,
        )
    return cast("CachePolicy | None", text)


def _stable_name(task: str) -> str:
    """Return a name that other processes can find: of a shipped task, otherwise an absolute path."""
    from aigo_bridge.evaluation.run_files import parse_reference

    reference = parse_reference(task)
    if reference is not None:
        return str(replace(reference, file=reference.file.resolve()))
    path = Path(task)
    return str(path.resolve()) if path.exists() else task
