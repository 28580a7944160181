"""`aigo-bridge schema`: print the JSON Schema of a kind of file."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)

KINDS = ("task", "run", "dataset", "model", "jsonl", "tasklog")


@app.command(
    "schema",
    cls=verb_command(
        "aigo-bridge schema task > task.schema.json",
        exit_codes={"0": "the schema was printed", "2": "unknown kind"},
    ),
)
def schema(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}.")],
) -> None:
    """Print the JSON Schema (draft 2020-12) of a kind of file.

    To check task files in VS Code, write `aigo-bridge schema task > task.schema.json`. Then put `#
    yaml-language-server: $schema=task.schema.json` in the first line of the task file.
    """
    import difflib

    from aigo_bridge.errors import UsageError

    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"kinds: {', '.join(KINDS)}"
        raise UsageError(f"no schema for {kind!r} ({hint})", code=Code.UNKNOWN_CHOICE)
    document = _schema(kind)
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _schema(kind: str) -> dict[str, Any]:
    if kind == "tasklog":
        from aigo_bridge.results.validating import schema_for_log

        return schema_for_log()
    if kind == "jsonl":
        from aigo_bridge.jsonl_spec import schema_for_record

        return schema_for_record()
    from aigo_bridge.reading.kinds import KINDS as FILES
    from aigo_bridge.spec.schema import json_schema

    return json_schema(FILES[kind].spec)  # type: ignore[index]  # other kinds are keys of FILES
