"""Arguments that name results, shared by the verbs that take results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError

if TYPE_CHECKING:
    from aigo_bridge.results.sources import ResultSource

RESULTS_HELP = (
    "Result logs (.tasklog.json, also .gz and .zst), folders, patterns, an evaluation.json, or run files with"
    " task result logs (run.yaml, or run.yaml#KEY for one specification)."
)
"""Help text of a result argument."""


def note_missing(names: Iterable[str]) -> None:
    """Print a note for each task of an evaluation whose result is missing."""
    for name in names:
        typer.echo(f"note: the result of {name!r} is missing from the evaluation", err=True)


def named_results(locations: Sequence[str]) -> list[ResultSource]:
    """Return the named results, and all results of folders, patterns, evaluations and run files."""
    from aigo_bridge.results.sources import require_result, sources_of

    sources = sources_of(locations)
    for source in sources:
        require_result(source)
    note_missing(source.name for source in sources if source.path is None)
    results = [source for source in sources if source.path is not None]
    if not results:
        raise UsageError(f"{', '.join(locations)}: found no result", code=Code.NOTHING_THERE)
    return results
