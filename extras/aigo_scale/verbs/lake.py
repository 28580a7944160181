"""The command `aigo-bridge lake`: listing, counting, compacting and verifying the content of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_scale.lake.commits import LakeState
    from aigo_scale.lake.files import LakeFiles

app = typer.Typer(**VERB)

ACTIONS = ("list", "show", "compact", "verify")


@app.command(
    "lake",
    cls=verb_command(
        "aigo-bridge lake list team.lake",
        "aigo-bridge lake verify s3://team/evidence.lake",
        exit_codes={
            "0": "done",
            "1": "verify found a problem",
            "2": "wrong arguments, or the lake does not exist",
        },
    ),
)
def lake(
    action: Annotated[
        str,
        typer.Argument(
            metavar="list|show|compact|verify",
            help="Action: list results, show counts, compact small files, or verify all tables.",
        ),
    ],
    location: Annotated[
        str,
        typer.Argument(
            metavar="LAKE",
            help="Lake folder or URL, e.g. team.lake or s3://team/evidence.lake. For list, "
            "you can name a part: LAKE/by_task=…/by_model=…/by_run=…",
        ),
    ],
    files: Annotated[
        str | None,
        typer.Option(
            "--files", metavar="TABLE", help="With list: print the files of this table, one per line."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List, count, compact or verify the results in a lake that `import --lake` created.

    `compact` merges many small files into a few large ones. `verify` reads all tables and reports missing,
    duplicate and damaged rows.
    """
    from aigo_bridge.errors import UsageError
    from aigo_scale.lake.tables import TABLES

    if action not in ACTIONS:
        raise UsageError(f"found {action!r}, expected one of {', '.join(ACTIONS)}", code=Code.UNKNOWN_CHOICE)
    if files is not None and (action != "list" or files not in TABLES):
        raise UsageError(f"--files: only with list, one of {', '.join(TABLES)}", code=Code.OPTIONS_APART)
    code = _DO[action](location, files, as_json)
    if code:
        raise typer.Exit(code)


def _list(location: str, files: str | None, as_json: bool) -> int:
    from aigo_bridge.cli.tables import print_rows
    from aigo_bridge.cli.terminal import print_json, printable
    from aigo_scale.lake.reading import LakeReader, split

    reader = LakeReader(*split(location))
    if files is not None:
        for fragment in reader.dataset(files).get_fragments():
            typer.echo(printable(f"{reader.files}/{files}/{fragment.path}"))
        return 0
    columns = ("task", "model", "run_id", "status", "samples", "failed", "ended_at")
    rows = [
        {name: getattr(result, name) for name in columns} for result in reader.state.results(reader.selection)
    ]
    if as_json:
        print_json(rows)
    else:
        print_rows(columns, rows, 0)
    return 0


def _show(location: str, _: str | None, as_json: bool) -> int:
    from aigo_bridge.cli.terminal import print_json, printable
    from aigo_scale.lake.commits import load_state
    from aigo_scale.lake.tables import open_lake

    files = open_lake(location)
    facts = _facts(files, load_state(files))
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            text = f"{value:,}" if isinstance(value, int) else printable(value)
            typer.echo(f"{name:<22}{text}")
    return 0


def _facts(files: LakeFiles, state: LakeState) -> dict[str, Any]:
    from aigo_scale.lake.commits import file_sizes
    from aigo_scale.lake.compacting import unneeded

    results = list(state.counting.values())
    sizes = [size for delta in state.tables.values() for size in file_sizes(delta).values()]
    return {
        "lake": str(files),
        "logs": len(state.entries),
        "damaged logs": sum(bool(entry.damage) for entry in state.entries.values()),
        "results": len(results),
        "replaced by better": len(state.superseded),
        "tasks": len({result.task for result in results}),
        "models": len({result.model for result in results}),
        "samples": sum(result.samples for result in results),
        "data files": len(sizes),
        "bytes": sum(sizes),
        "files not needed": sum(len(unneeded(files, name, delta)) for name, delta in state.tables.items()),
    }


def _compact(location: str, _: str | None, as_json: bool) -> int:
    from dataclasses import asdict

    from aigo_bridge.cli.terminal import print_json, printable
    from aigo_scale.lake.compacting import compact
    from aigo_scale.lake.tables import open_lake

    done = compact(open_lake(location))
    if as_json:
        print_json(asdict(done))
        return 0
    numbers = f"{plural(done.results, 'result', form=',')}, {plural(done.before, 'file', form=',')}"
    typer.echo(printable(f"{location}: {numbers} -> {done.after:,}"))
    if done.removed:
        typer.echo(f"  deleted: {plural(done.removed, 'file', form=',')} not needed for a day")
    return 0


def _verify(location: str, _: str | None, as_json: bool) -> int:
    from aigo_bridge.cli.terminal import print_json, printable
    from aigo_bridge.exit_codes import ExitCode
    from aigo_scale.lake.tables import open_lake
    from aigo_scale.lake.verifying import problems_of

    problems = list(problems_of(open_lake(location)))
    if as_json:
        print_json(problems)
    else:
        for problem in problems:
            typer.echo(printable(problem))
        found = plural(len(problems), "problem") if problems else "whole"
        typer.echo(printable(f"{location}: {found}"))
    return ExitCode.FAILED if problems else ExitCode.DONE


_DO = {"list": _list, "show": _show, "compact": _compact, "verify": _verify}
