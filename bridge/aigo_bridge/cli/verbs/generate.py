"""`aigo-bridge generate`: the rows of a generated data set, as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    AllowUrlOption,
    EnvOption,
    NetworkOption,
    SnippetsOption,
    choose_confinement,
)
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

app = typer.Typer(**VERB)


@app.command("generate")
def generate(
    dataset_file: Annotated[
        Path, typer.Argument(metavar="DATASET", help="Data set file (YAML) with a generator_specification.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="JSONL file for the rows.")],
    model_map: Annotated[
        list[str] | None,
        typer.Option(
            "--model-map",
            metavar="KEY=MODEL",
            help="Which model a key of the generator stands for. Repeatable.",
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset", metavar="KEY=FILE", help="File of a data set that it starts from. Repeatable."
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="Folder that included files may reach. [the project]"),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="Engine that reaches the models.")
    ] = "inspect",
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
    allow_url: AllowUrlOption = None,
    network: NetworkOption = True,
    snippets: SnippetsOption = None,
) -> None:
    """Make the rows of a generated data set; run a task on them with `--dataset KEY=FILE`.

    Generating calls models and runs the author's snippets, so it is a step of its own: the rows that numbers
    stand on
    are a file.
    """
    from aigo_bridge.cli.failing import reported, show_issues
    from aigo_bridge.cli.options import pairs
    from aigo_bridge.cli.terminal import short_path
    from aigo_bridge.engine.registry import load_engine
    from aigo_bridge.errors import UsageError
    from aigo_bridge.evaluation.generation import Sources, generate_rows
    from aigo_bridge.results.log_files import open_for_replacing

    with reported():
        choose_confinement(snippets)
        if not dataset_file.is_file():
            raise UsageError(f"there is no file {str(dataset_file)!r}", code=Code.NOTHING_THERE)
        sources = Sources(
            load_engine(engine), pairs("--model-map", model_map), pairs("--dataset", dataset), root
        )
        rows = generate_rows(dataset_file, sources)
        show_issues(rows.warnings)
        out.parent.mkdir(parents=True, exist_ok=True)
        with open_for_replacing(out) as file:
            for row in rows.rows:
                file.write(json.dumps(row.data, ensure_ascii=False, default=str).encode() + b"\n")
    typer.echo(f"{plural(len(rows.rows), 'row')} in {short_path(out)}")
