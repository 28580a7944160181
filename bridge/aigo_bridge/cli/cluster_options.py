"""Options of `aigo-bridge run` for distributed runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from aigo_bridge.codes import Code


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Cluster and shards of a run."""

    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="ray",
            help="Run the shards on a Ray cluster and merge them. DIR has the same files as one run.",
        ),
    ] = None
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address",
            metavar="HOST:PORT|auto",
            help="Address of the Ray cluster. [default: a cluster on this machine, for the duration of "
            "the run]",
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, metavar="N", help="Number of worker processes. [default: one per CPU]"
        ),
    ] = None
    piece_rows: Annotated[
        int | None,
        typer.Option("--piece-rows", min=1, metavar="N", help="Rows of one shard. [default: 100]"),
    ] = None
    pieces: Annotated[
        int | None,
        typer.Option("--pieces", min=1, metavar="N", help="Number of shards, instead of --piece-rows."),
    ] = None


def refuse_without_cluster(options: ClusterOptions) -> None:
    """Raise an error for cluster options without `--on ray`.

    Raises:
        UsageError: a cluster option was set.
    """
    from aigo_bridge.cli.options import refuse_options
    from aigo_bridge.errors import UsageError

    if options.on not in (None, "ray"):
        raise UsageError(f"--on: found {options.on!r}, expected ray", code=Code.UNKNOWN_CHOICE)
    if options.on is None:
        names = ("ray_address", "workers", "piece_rows", "pieces")
        refuse_options(options, names, "only with --on ray")
