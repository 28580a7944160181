"""The options of `aigo-bridge run` that say where pieces of it are carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from aigo_bridge.codes import Code


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """On which cluster, and in which pieces."""

    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="ray",
            help="Run in small pieces on a Ray cluster, and merge them: DIR has what one run would have"
            " written.",
        ),
    ] = None
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address",
            metavar="HOST:PORT|auto",
            help="With --on ray: the cluster. [one of this machine, as long as the run takes]",
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, metavar="N", help="With --on ray: processes at a time. [one for each CPU]"
        ),
    ] = None
    piece_rows: Annotated[
        int | None,
        typer.Option("--piece-rows", min=1, metavar="N", help="With --on ray: rows of a piece. [100]"),
    ] = None
    pieces: Annotated[
        int | None,
        typer.Option("--pieces", min=1, metavar="N", help="With --on ray: number of pieces instead."),
    ] = None


def refuse_without_cluster(options: ClusterOptions) -> None:
    """Refuse options that say how a cluster is used where none is.

    Raises:
        UsageError: they were given.
    """
    from aigo_bridge.errors import UsageError

    if options.on not in (None, "ray"):
        raise UsageError(f"--on: found {options.on!r}, expected ray", code=Code.UNKNOWN_CHOICE)
    given = {
        "--ray-address": options.ray_address,
        "--workers": options.workers,
        "--piece-rows": options.piece_rows,
        "--pieces": options.pieces,
    }
    used = [name for name, value in given.items() if value is not None]
    if options.on is None and used:
        raise UsageError(f"{', '.join(used)}: with --on ray only", code=Code.OPTIONS_APART)
