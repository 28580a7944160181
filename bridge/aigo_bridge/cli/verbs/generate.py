"""`aigo-bridge generate`: generate the rows of a dataset."""

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
    ModelMapOption,
    NetworkOption,
    RootOption,
    SnippetsOption,
    verb_command,
)
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

app = typer.Typer(**VERB)


@app.command(
    "generate",
    cls=verb_command(
        "aigo-bridge generate questions.yaml --out questions.jsonl",
        "aigo-bridge run task.yaml --dataset questions=questions.jsonl",
        exit_codes={"0": "the rows were written", "2": "wrong arguments or an invalid generator"},
    ),
)
def generate(
    dataset_file: Annotated[
        Path, typer.Argument(metavar="DATASET", help="Dataset file (YAML) with a generator_specification.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="JSONL file for the rows, e.g. rows.jsonl.")
    ],
    model_map: ModelMapOption = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            metavar="KEY=FILE",
            help="File of a dataset that the generator starts from, e.g. seeds=seeds.jsonl. Repeatable.",
        ),
    ] = None,
    root: RootOption = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="Engine that calls the models.")
    ] = "inspect",
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
    allow_url: AllowUrlOption = None,
    network: NetworkOption = True,
    snippets: SnippetsOption = None,
) -> None:
    """Generate the rows of a dataset and write them to a file.

    Generation calls models and executes snippets. It is a separate step, so that all runs use the same
    rows. Run a task on the rows with `--dataset KEY=FILE`.
    """
    from aigo_bridge.cli.error_handling import show_issues
    from aigo_bridge.cli.options import pairs
    from aigo_bridge.cli.terminal import short_path
    from aigo_bridge.engine.registry import load_engine
    from aigo_bridge.errors import UsageError
    from aigo_bridge.evaluation.generation import GenerationInputs, generate_rows
    from aigo_bridge.results.log_files import open_for_replacing

    if not dataset_file.is_file():
        raise UsageError(f"file {str(dataset_file)!r} does not exist", code=Code.NOTHING_THERE)
    sources = GenerationInputs(
        load_engine(engine), pairs("--model-map", model_map), pairs("--dataset", dataset), root
    )
    rows = generate_rows(dataset_file, sources)
    show_issues(rows.warnings)
    out.parent.mkdir(parents=True, exist_ok=True)
    with open_for_replacing(out) as file:
        for row in rows.rows:
            file.write(json.dumps(row.data, ensure_ascii=False, default=str).encode() + b"\n")
    typer.echo(f"{plural(len(rows.rows), 'row')} in {short_path(out)}")
