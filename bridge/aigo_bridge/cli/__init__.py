"""The command line: one module per verb, imported when the verb is used."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from aigo_bridge.cli.options import VERB

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Get started": {
        "init": ("aigo_bridge.cli.verbs.init", "Create a project that you can run immediately, offline."),
        "new": ("aigo_bridge.cli.verbs.new", "Add a task, a scorer or a dataset to a project."),
        "list": ("aigo_bridge.cli.verbs.list", "List the tasks that come with aigo-bridge."),
        "validate": (
            "aigo_bridge.cli.verbs.validate",
            "Validate tasks, run files, datasets, models and result logs.",
        ),
        "explain": ("aigo_bridge.cli.verbs.explain", "Show every prompt of a task without calling a model."),
        "doctor": ("aigo_bridge.cli.verbs.doctor", "Check engines, versions and plug-ins."),
    },
    "Run": {
        "run": ("aigo_bridge.cli.verbs.run", "Run a task, run file or benchmark, and write its evidence."),
        "score": (
            "aigo_bridge.cli.verbs.score",
            "Score stored answers again, without calling the evaluated model.",
        ),
        "merge": ("aigo_scale.verbs.merge", "Merge the shards of a run into one result."),
        "generate": ("aigo_bridge.cli.verbs.generate", "Create the rows of a generated dataset."),
    },
    "View results": {
        "show": ("aigo_report.verbs.show", "Show samples of a result in the terminal."),
        "report": ("aigo_report.verbs.report", "Write results as one offline HTML page."),
        "view": ("aigo_report.verbs.view", "Browse a folder of results, logs and runs in progress."),
        "table": (
            "aigo_report.verbs.table",
            "Write samples, scores or metrics as CSV, XLSX, Parquet or JSONL.",
        ),
        "sql": ("aigo_report.verbs.sql", "Query results in SQL."),
        "plot": ("aigo_report.verbs.plot", "Draw results as charts for papers and slides."),
    },
    "Compare": {
        "stats": ("aigo_stats.verbs.stats", "Show metrics with confidence intervals and sample counts."),
        "compare": ("aigo_stats.verbs.compare", "Compare results sample by sample."),
        "check": ("aigo_stats.verbs.check", "Check a result against rules, for CI."),
        "power": ("aigo_stats.verbs.power", "Estimate how many samples and trials a difference needs."),
    },
    "Move between formats": {
        "import": ("aigo_bridge.cli.verbs.import_logs", "Convert engine logs to AI GO evidence."),
        "export": (
            "aigo_bridge.cli.verbs.export",
            "Write a task or result in the format of an engine or tool.",
        ),
        "convert": ("aigo_bridge.cli.verbs.convert", "Convert task records or a benchmark to an AI GO task."),
        "lake": ("aigo_scale.verbs.lake", "List, verify or compact a lake of imported logs."),
    },
    "Trust": {
        "verify": (
            "aigo_trust.verbs.verify",
            "Check that a result was not altered and that its metrics follow.",
        ),
        "attest": ("aigo_trust.verbs.attest", "Sign a result, or disclose one of its samples."),
        "bundle": ("aigo_trust.verbs.bundle", "Pack a result and everything that proves it into one file."),
        "probe": ("aigo_trust.verbs.probe", "Change stored answers to test whether scorers notice."),
        "parity": (
            "aigo_trust.verbs.parity",
            "Certify that engines give the same metrics for the same answers.",
        ),
    },
    "Tools": {
        "schema": ("aigo_bridge.cli.verbs.schema", "Print the JSON Schema of a kind of file."),
        "upgrade": ("aigo_bridge.cli.verbs.upgrade", "Replace deprecated syntax in a task file."),
        "error": ("aigo_bridge.cli.verbs.error", "Explain an error code and its fix."),
        "lsp": ("aigo_editor.verbs.lsp", "Start the language server for your editor."),
    },
}
"""Help group → verb → (module with a Typer `app` of one command, help line)."""

VERBS: dict[str, tuple[str, str]] = {
    verb: (module, line) for group in GROUPS.values() for verb, (module, line) in group.items()
}
"""Verb → (module, help line)."""


class LazyGroup(TyperGroup):
    """Command group that knows the verbs by name and imports only the module of the used verb."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs in the order of their table."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a verb."""
        verb = _verb_app(cmd_name)
        if verb is None:
            return None
        command = typer.main.get_command(verb)
        if ctx is not None and ctx.resilient_parsing:
            from aigo_bridge.cli.completion import offer_words

            offer_words(command)
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the arguments before the verb. A signal may arrive while this loads modules."""
        try:
            return super().make_context(*args, **kwargs)
        except KeyboardInterrupt as error:
            from aigo_bridge.cli.error_handling import interrupted

            raise interrupted() from error

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return shell completions for the verb, or for an option before it."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from aigo_bridge.cli.completion import verbs

        return verbs(VERBS, incomplete)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb and its arguments with project defaults; `-q` and `-v` may be anywhere."""
        if args and args[0] not in VERBS and not ctx.resilient_parsing:
            from difflib import get_close_matches

            # Typer searches only the commands that it has imported, and none is imported yet.
            near = get_close_matches(args[0], VERBS, n=2)
            if near and _verb_app(args[0]) is None:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, near))}?")
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and name is not None and not ctx.resilient_parsing:
            from aigo_bridge.cli.defaults import set_defaults
            from aigo_bridge.cli.terminal import set_verbosity

            words, said = _without_verbosity(command, words)
            quiet, verbose = (ctx.params.get(name) or name in said for name in ("quiet", "verbose"))
            set_verbosity(quiet=quiet, verbose=verbose)

            set_defaults(ctx, name, command, words, list(VERBS))
        return name, command, words

    def invoke(self, ctx: Any) -> Any:
        """Run the verb. Ctrl+C, SIGTERM and SIGHUP print the same messages at any moment."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            from aigo_bridge.cli.error_handling import interrupted

            raise interrupted() from error
        except Exception as error:
            # Typer 0.15 raises Click's class; later releases raise a class of Typer.
            if type(error).__name__ == "BadParameter":
                from aigo_bridge.cli.defaults import explain_default

                explain_default(ctx, error)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the help lines of the verbs, group by group."""
        widest = max(map(len, VERBS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(verb.ljust(widest), line) for verb, (_, line) in group.items()])


def _verb_app(name: str) -> typer.Typer | None:
    """Return the Typer app of a verb: aigo-bridge's own, or a plug-in's."""
    if name in VERBS:
        app: typer.Typer = import_module(VERBS[name][0]).app
        return app
    from aigo_bridge.cli.error_handling import reported
    from aigo_bridge.plugins import load

    with reported():
        plugin: typer.Typer | None = load("verbs", name, typer.Typer)
    return plugin


VERBOSITY = {"-q": "quiet", "--quiet": "quiet", "-v": "verbose", "--verbose": "verbose"}
"""Verbosity options, which every verb accepts."""


def _without_verbosity(command: Any, words: list[str]) -> tuple[list[str], set[str]]:
    """Return the arguments of a verb without verbosity options, and the requested verbosity."""
    options = {name for parameter in command.params for name in parameter.opts}
    valued = {
        name
        for parameter in command.params
        if not getattr(parameter, "is_flag", False)
        for name in parameter.opts
        if name.startswith("-")
    }
    end = words.index("--") if "--" in words else len(words)
    remaining, levels = list[str](), set[str]()
    for number, word in enumerate(words):
        is_value = number > 0 and words[number - 1] in valued
        if number < end and word in VERBOSITY and word not in options and not is_value:
            levels.add(VERBOSITY[word])
        else:
            remaining.append(word)
    return remaining, levels


app = typer.Typer(
    cls=LazyGroup,
    help="Run AI GO evaluation tasks on Inspect AI and lighteval, and turn engine logs into AI GO evidence.",
    epilog="`aigo-bridge COMMAND --help` shows the options of a command. `doctor` lists plug-ins.",
    no_args_is_help=True,
    **{**VERB, "add_completion": True},
)


def _version(value: bool) -> None:
    if value:
        from aigo_bridge import __version__

        typer.echo(f"aigo-bridge {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
    quiet: bool = typer.Option(
        False, "--quiet", "-q", help="Print no progress and no notes. Also allowed after any command."
    ),
    verbose: bool = typer.Option(
        False,
        "--verbose",
        "-v",
        help="Print each sample, retry and project default. Also allowed after any command.",
    ),
) -> None:
    """Handle the options of the command itself."""


def main() -> None:
    """Run the command line of `aigo-bridge`."""
    from aigo_bridge.process import collect_late

    collect_late()
    # Plug-ins of pydantic observe other programs. Finding them reads the metadata of all installed packages.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from aigo_bridge.cli.error_handling import interrupted, stopped_by_signals
    from aigo_bridge.cli.terminal import hide_secrets

    hide_secrets()
    try:
        with stopped_by_signals():
            app()
    except KeyboardInterrupt as error:  # Signals were not handled at this moment.
        raise SystemExit(interrupted().exit_code) from error
