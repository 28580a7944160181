"""Options of `aigo-bridge run`, declared once, and their conversion for planning, engines and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aigo_bridge.cli.cluster_options import ClusterOptions
from aigo_bridge.cli.engine_options import MORE, OPTION
from aigo_bridge.cli.options import (
    AllowFileOption,
    AllowOption,
    AllowUrlOption,
    BadTasksOption,
    ConfigOption,
    CustomTasksOption,
    DataDirOption,
    DatasetOption,
    EnvOption,
    FullOption,
    JsonOption,
    MaxConnectionsOption,
    ModelMapOption,
    NetworkOption,
    NumSamplesOption,
    NumTrialsOption,
    RootOption,
    SamplesAtATimeOption,
    SnippetsOption,
    SubsamplingOption,
    TaskArgOption,
    refuse_options,
)
from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from collections.abc import Callable

    from aigo_bridge.cli.progress import Display
    from aigo_bridge.engine.benchmarks import BenchmarkRun
    from aigo_bridge.engine.protocol import Progress, RunSettings
    from aigo_bridge.evaluation.models import ModelChoice
    from aigo_bridge.plan.plan import PlanOrigin

CACHE_POLICIES = ("reuse", "update", "no-cache")

NOT_FOR_BENCHMARKS = (
    *("--config", "--dataset", "--full", "--subsampling", "--root", "--allow-bad-tasks", "--cache"),
    *("--record", "--replay", "--snippets", "--allow", "--env", "--allow-file", "--allow-url", "--vary"),
)
"Options that say nothing to an engine benchmark."


PANELS = {
    "Model": ("model", "model_map"),
    "Task and data": (
        "config",
        "dataset",
        "vary",
        "full",
        "data_dir",
        "task_args",
        "custom_tasks",
        "allow_bad_tasks",
    ),
    "Samples": ("num_samples", "subsampling", "num_trials", "sample_id"),
    "Output": ("out", "report", "as_json", "progress"),
    "Engine": ("engine", "max_connections", "max_samples"),
    "Resume and replay": ("resume", "cache", "record", "replay"),
    "Limits": ("fail_on_error", "attempt_timeout", "time_limit", "token_limit", "cost_limit"),
    "Security": ("root", "network", "allow_url", "allow_file", "env", "snippets", "allow"),
    "Distributed": (
        "shard",
        "on",
        "ray_address",
        "workers",
        "piece_rows",
        "pieces",
    ),
}
"""Title of a help panel → its options."""


def _warn_of_restart(reason: str) -> None:
    from aigo_bridge.cli.terminal import printable

    hint = "stop now (Ctrl-C) and undo the changes to keep the finished trials"
    typer.echo(f"warning: {printable(reason)}\n  hint: {hint}", err=True)


@dataclass(frozen=True, kw_only=True)
class RunOptions(ClusterOptions):
    """Options of a run."""

    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="Task file (YAML or JSONL task records), shipped task (aigo_tasks/gsm8k), run file, "
            "RUN_FILE#SPECIFICATION, or benchmark of an engine: inspect:NAME, "
            "inspect:FILE.py@TASK, lighteval:TASK|SHOTS.",
        ),
    ]
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL[,MODEL]",
            help="Model to evaluate, e.g. openai/gpt-4.1-mini, anthropic/…, ollama/…, hf/… or "
            "scripted/FILE. Several models each run in DIR/<model> and are compared.",
        ),
    ] = None
    model_map: ModelMapOption = None
    config: ConfigOption = None
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=VALUE,VALUE",
            help="Run once for each value of a parameter, in DIR/<key>=<value>, and compare the "
            "results. The name of a text file (.md, .txt …) means its text. Repeatable.",
        ),
    ] = None
    dataset: DatasetOption = None
    full: FullOption = False
    task_args: TaskArgOption = None
    data_dir: DataDirOption = None
    custom_tasks: CustomTasksOption = None
    num_samples: NumSamplesOption = None
    subsampling: SubsamplingOption = None
    num_trials: NumTrialsOption = None
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for native logs and evidence.")
    ] = Path("out")
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAME[,NAME]",
            help="Engine to run on. Results of several engines are in DIR/<engine> and are compared.",
        ),
    ] = "inspect"
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run of the same task in DIR.")
    ] = False
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="|".join(CACHE_POLICIES),
            help="Use of earlier results in DIR. Overrides the cache policy of a run file. [default: update]",
        ),
    ] = None
    fail_on_error: Annotated[
        str | None,
        typer.Option(
            "--fail-on-error",
            metavar="N|0.x",
            help="Stop the run if more than N samples (or this proportion) fail. You can resume it. "
            "Without this option the run continues, and any failed sample sets exit code 1.",
        ),
    ] = None
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="CASSETTE",
            help="Record every model call in this new file. With --resume, an existing file is appended to.",
        ),
    ] = None
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="CASSETTE",
            help="Answer every model call from this recording. A call that is not in it fails.",
        ),
    ] = None
    root: RootOption = None
    allow_bad_tasks: BadTasksOption = False
    max_connections: MaxConnectionsOption = None
    max_samples: SamplesAtATimeOption = None
    attempt_timeout: Annotated[
        int | None,
        typer.Option(
            "--attempt-timeout",
            min=1,
            metavar="SECONDS",
            help="Time limit of one attempt at a model call. The call is then made again, as after a server "
            "error.",
        ),
    ] = None
    time_limit: Annotated[
        int | None,
        typer.Option(
            "--time-limit",
            min=1,
            metavar="SECONDS",
            help="Time limit of one sample. Its scorers may take half as long again.",
        ),
    ] = None
    token_limit: Annotated[
        int | None, typer.Option("--token-limit", min=1, metavar="N", help="Token limit of one sample.")
    ] = None
    cost_limit: Annotated[
        float | None, typer.Option("--cost-limit", min=0, metavar="X", help="Cost limit of one sample.")
    ] = None
    snippets: SnippetsOption = None
    allow: AllowOption = None
    env: EnvOption = None
    allow_file: AllowFileOption = None
    allow_url: AllowUrlOption = None
    network: NetworkOption = True
    as_json: JsonOption = False
    report: Annotated[
        bool,
        typer.Option("--report", help="Also write DIR/report.html, a page with all results."),
    ] = False
    progress: Annotated[
        str | None,
        typer.Option(
            "--progress",
            metavar="rich|plain|none",
            help="How to show progress. [default: a bar on a terminal, otherwise lines]",
        ),
    ] = None
    sample_id: Annotated[
        str | None,
        typer.Option(
            "--sample-id",
            metavar="ID[,ID]",
            help="Run an engine's benchmark on these samples only.",
        ),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="K/N",
            help="Run shard K of N, into DIR/shard-K-of-N. `aigo-bridge merge` combines the shards.",
        ),
    ] = None
    engine_options: Annotated[list[str] | None, typer.Option(OPTION, hidden=True)] = None
    more_tasks: Annotated[list[str] | None, typer.Option(MORE, hidden=True)] = None

    def refuse_those_of_benchmarks(self) -> None:
        """Raise an error for options that apply only to benchmarks.

        Raises:
            UsageError: such an option was set.
        """
        only = "only for engine benchmarks"
        refuse_options(self, ("task_args",), f"{only}; set task parameters with --config")
        refuse_options(self, ("custom_tasks", "sample_id"), only)
        if not self.full:
            refuse_options(self, ("data_dir",), "only with --full, or for engine benchmarks")

    def origin(self) -> PlanOrigin:
        """Return the origin of the plan.

        Raises:
            UsageError: an option is invalid.
            SpecError: the task cannot be read, but is needed for the types of the config.
        """
        from aigo_bridge.cli.options import origin_of

        return origin_of(
            self.task,
            config=self.config,
            dataset=self.dataset,
            root=self.root,
            num_samples=self.num_samples,
            subsampling=self.subsampling,
            num_trials=self.num_trials,
            allow_bad_tasks=self.allow_bad_tasks,
            full=self.full,
            data_dir=self.data_dir,
            shard=self.shard,
        )

    def engine_names(self) -> list[str]:
        """Return the engine names. An unknown name is reported later, when the engine is loaded.

        Raises:
            UsageError: the list is invalid.
        """
        from aigo_bridge.errors import UsageError

        names = [name.strip() for name in self.engine.split(",")]
        if "" in names or len(set(names)) < len(names):
            raise UsageError(
                f"--engine: found {self.engine!r}, expected one or more different engines, e.g. "
                "inspect,lighteval",
                code=Code.WRONG_OPTION,
            )
        return names

    def display(self) -> Display | None:
        """Return the display of progress; `None`: the default.

        Raises:
            UsageError: the display is unknown.
        """
        from aigo_bridge.cli.progress import DISPLAYS
        from aigo_bridge.errors import UsageError

        for display in DISPLAYS:
            if self.progress == display:
                return display
        if self.progress is not None:
            raise UsageError(
                f"--progress: found {self.progress!r}, expected rich, plain or none", code=Code.WRONG_OPTION
            )
        return None

    def settings(self, on_progress: Callable[[Progress], None] | None = None) -> RunSettings:
        """Return the settings for the engines."""
        from aigo_bridge.engine.protocol import RunSettings

        return RunSettings(**self._limits(), on_progress=on_progress, on_restart=_warn_of_restart)

    def models(self) -> ModelChoice:
        """Return the models of the run.

        Raises:
            UsageError: a pair is invalid.
        """
        from aigo_bridge.cli.options import pairs
        from aigo_bridge.evaluation.models import ModelChoice

        return ModelChoice(self.model, pairs("--model-map", self.model_map))

    def benchmark(self, engine: str, task: str) -> BenchmarkRun:
        """Return the run of an engine benchmark.

        Raises:
            UsageError: options do not apply to benchmarks; all of them are listed.
        """
        from aigo_bridge.cli.options import pairs
        from aigo_bridge.engine.benchmarks import BenchmarkRun
        from aigo_bridge.errors import UsageError

        if self.engine not in ("inspect", engine):
            raise UsageError(
                (f"--engine: found {self.engine!r}, but an engine benchmark always runs on its own engine"),
                code=Code.OPTIONS_APART,
            )
        values = {name: getattr(self, name[2:].replace("-", "_")) for name in NOT_FOR_BENCHMARKS}
        used = [name for name, value in values.items() if value]
        if used:
            parameters = {"--config", "--dataset"} & set(used)
            hint = " (set its parameters with -T NAME=VALUE)" if parameters else ""
            raise UsageError(f"{', '.join(used)}: not for engine benchmarks{hint}", code=Code.OPTIONS_APART)
        return BenchmarkRun(
            **self._limits(),
            task=task,
            more_tasks=self._more_tasks(engine),
            options=self.engine_options or [],
            sample_id=self.sample_id,
            arguments=self.task_args or [],
            model=self.model,
            roles=pairs("--model-map", self.model_map),
            num_samples=self.num_samples,
            num_trials=self.num_trials,
            data_dir=self.data_dir,
            custom_tasks=self.custom_tasks,
            resume=self.resume,
            fail_on_error=self.fail_on_error,
        )

    def _more_tasks(self, engine: str) -> list[str]:
        from aigo_bridge.engine.registry import split_name
        from aigo_bridge.errors import UsageError

        names = []
        for task in self.more_tasks or []:
            benchmark = split_name(task)
            if benchmark is None or benchmark[0] != engine:
                raise UsageError(
                    (f"found {task!r} and {self.task!r}: all benchmarks of a run must belong to one engine"),
                    code=Code.OPTIONS_APART,
                )
            names.append(benchmark[1])
        return names

    def _limits(self) -> dict[str, Any]:
        """Return the options that are also fields of `RunSettings`."""
        from dataclasses import fields

        from aigo_bridge.engine.protocol import RunSettings

        names = {field.name for field in fields(RunSettings)} & {field.name for field in fields(self)}
        return {name: getattr(self, name) for name in names}
