"""The command line: one module per verb, imported when the verb is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from aigo_bridge.cli.options import VERB

VERBS: dict[str, tuple[str, str]] = {
    "init": ("aigo_bridge.cli.verbs.projects.init", "Begin a project that runs at once, offline."),
    "new": ("aigo_bridge.cli.verbs.projects.new", "Add a task, a scorer or a data set to a project."),
    "run": ("aigo_bridge.cli.verbs.run", "Run an AI GO task on an engine and write its evidence."),
    "merge": ("aigo_bridge.cli.verbs.merge", "Merge the shards of a run into the results of one run."),
    "explain": ("aigo_bridge.cli.verbs.explain", "Show every prompt of a task without calling a model."),
    "import": ("aigo_bridge.cli.verbs.import_logs", "Turn an engine's logs into AI GO evidence."),
    "lake": (
        "aigo_bridge.cli.verbs.looking.lake",
        "Look after a lake: what is in it, whether it is whole, compact it.",
    ),
    "export": ("aigo_bridge.cli.verbs.export", "Write a task as an engine's files, or a result as its log."),
    "convert": ("aigo_bridge.cli.verbs.convert", "Convert task records or a benchmark to an AI GO task."),
    "generate": ("aigo_bridge.cli.verbs.generate", "Make the rows of a generated data set."),
    "validate": (
        "aigo_bridge.cli.verbs.validate",
        "Validate tasks, run files, data sets, models and result logs.",
    ),
    "score": (
        "aigo_bridge.cli.verbs.score",
        "Score stored outputs again, without calling the evaluated model.",
    ),
    "stats": ("aigo_bridge.cli.verbs.stats", "Show a result's numbers with intervals and denominators."),
    "compare": ("aigo_bridge.cli.verbs.compare", "Compare results sample by sample: is the new one better?"),
    "check": ("aigo_bridge.cli.verbs.check", "Hold a result against rules, for CI."),
    "parity": (
        "aigo_bridge.cli.verbs.parity",
        "Write a certificate that engines make the same of the same answers.",
    ),
    "power": ("aigo_bridge.cli.verbs.power", "Say how many samples and trials a difference needs."),
    "report": ("aigo_bridge.cli.verbs.report", "Write results as a page to look at, offline."),
    "view": (
        "aigo_bridge.cli.verbs.looking.view",
        "Look at a folder in the browser: results, logs, runs that go on, comparisons.",
    ),
    "show": ("aigo_bridge.cli.verbs.looking.show", "Show samples of a result in the terminal."),
    "table": (
        "aigo_bridge.cli.verbs.looking.table",
        "Write samples, scores or metrics of results as CSV, XLSX, Parquet or JSONL.",
    ),
    "plot": ("aigo_bridge.cli.verbs.looking.plot", "Draw results as charts for papers, in SVG or PNG."),
    "sql": ("aigo_bridge.cli.verbs.looking.sql", "Ask results in SQL."),
    "verify": (
        "aigo_bridge.cli.verbs.proving.verify",
        "Check a result: was it altered, do its numbers follow?",
    ),
    "attest": ("aigo_bridge.cli.verbs.proving.attest", "Sign what a result says, or prove one sample of it."),
    "bundle": (
        "aigo_bridge.cli.verbs.proving.bundle",
        "Put a result and all that it is checked against into one file.",
    ),
    "probe": (
        "aigo_bridge.cli.verbs.proving.probe",
        "Change stored outputs, and say which scorers should have noticed, or should not have.",
    ),
    "lsp": (
        "aigo_bridge.cli.verbs.projects.lsp",
        "Serve an editor: problems, completion, meanings, prompts of rows.",
    ),
    "schema": ("aigo_bridge.cli.verbs.schema", "Print the JSON Schema of a kind of file."),
    "upgrade": ("aigo_bridge.cli.verbs.upgrade", "Rewrite old spellings in the current form."),
    "error": ("aigo_bridge.cli.verbs.looking.error", "Say what the code of an error means, and what to do."),
    "doctor": ("aigo_bridge.cli.verbs.doctor", "Check the engines and their versions."),
    "list": ("aigo_bridge.cli.verbs.list", "List the tasks that come with aigo-bridge."),
}
"""Verb → (module with a Typer `app` of one command, help line)."""


class LazyGroup(TyperGroup):
    """Knows the verbs by name and imports the module of the one that is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Verbs in the order of their table."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a verb."""
        verb = _verb_app(cmd_name)
        if verb is None:
            return None
        command = typer.main.get_command(verb)
        if ctx is not None and ctx.resilient_parsing:
            from aigo_bridge.cli.completion import offer_words

            offer_words(command)
        return command

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """What a shell offers for the verb, or an option in front of it."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from aigo_bridge.cli.completion import verbs

        return verbs(VERBS, incomplete)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb, and its words with the project's defaults; `-q` and `-v` may stand anywhere."""
        if args and args[0] not in VERBS and not ctx.resilient_parsing:
            from difflib import get_close_matches

            # Typer looks among the commands that it has imported, which are none.
            near = get_close_matches(args[0], VERBS, n=2)
            if near and _verb_app(args[0]) is None:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, near))}?")
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and name is not None and not ctx.resilient_parsing:
            from aigo_bridge.cli.defaults import with_defaults
            from aigo_bridge.cli.failing import reported
            from aigo_bridge.cli.terminal import set_verbosity

            words, said = _without_verbosity(command, words)
            quiet, verbose = (ctx.params.get(name) or name in said for name in ("quiet", "verbose"))
            set_verbosity(quiet=quiet, verbose=verbose)

            from aigo_bridge.cli.storage.copies import with_copies

            words = with_defaults(ctx, name, command, words, list(VERBS))
            with reported():
                words = with_copies(ctx, name, command, words)
        return name, command, words

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; ctrl-C, SIGTERM and SIGHUP are told by the same words wherever they strike."""
        from aigo_bridge.cli.storage.copies import places_of

        try:
            with places_of(ctx):
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            from aigo_bridge.cli.failing import interrupted

            raise interrupted() from error
        except Exception as error:
            # Typer 0.15 has Click's class for it, later releases one of their own.
            if type(error).__name__ == "BadParameter":
                from aigo_bridge.cli.defaults import explain_default

                explain_default(ctx, error)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The verbs' help lines, from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


def _verb_app(name: str) -> typer.Typer | None:
    """Return the Typer app of a verb: aigo-bridge's own, or a plug-in's."""
    if name in VERBS:
        app: typer.Typer = import_module(VERBS[name][0]).app
        return app
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.plugins import load

    with reported():
        plugin: typer.Typer | None = load("verbs", name, typer.Typer)
    return plugin


VERBOSITY = {"-q": "quiet", "--quiet": "quiet", "-v": "verbose", "--verbose": "verbose"}
"""How much is said, for every verb."""


def _without_verbosity(command: Any, words: list[str]) -> tuple[list[str], set[str]]:
    """The words of a verb without those on how much is said, and what they ask for."""
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
    help="AI GO evaluation tasks on Inspect AI and lighteval; engine logs as AI GO evidence.",
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
        False, "--quiet", "-q", help="No progress and no notes; of any verb, and also behind it."
    ),
    verbose: bool = typer.Option(
        False,
        "--verbose",
        "-v",
        help="Each sample and each retry of a run, and defaults; also behind a verb.",
    ),
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Entry point of `aigo-bridge`."""
    from aigo_bridge.cli.failing import stopped_by_signals
    from aigo_bridge.cli.terminal import hide_secrets

    hide_secrets()
    with stopped_by_signals():
        app()
