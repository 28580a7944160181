"""`scores-csv`: a result as one CSV file with a line for each sample and score."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aigo_bridge.engine.formats import Format, ResultExport
from aigo_bridge.errors import UsageError
from aigo_bridge.results.reading import read_log


@dataclass(frozen=True)
class Written:
    """The file that an export wrote."""

    path: Path
    lines: Sequence[str] = ()


def export_scores(result: Path, out: Path, *, force: bool) -> Written:
    """Write the scores of a result to a CSV file in a folder.

    Raises:
        UsageError: the file exists (without `force`).
    """
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{result.name.partition('.')[0]}.scores.csv"
    if path.exists() and not force:
        raise UsageError(f"{path} exists; replace it with --force")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sample", "scorer", "score", "value"])
        for sample in read_log(result):
            for score in sample.trials[0].scores or ():
                writer.writerows(
                    [sample.sample_id, score.scorer_key, name, value] for name, value in score.values.items()
                )
    return Written(path)


def _export() -> ResultExport:
    return export_scores


EXPORT: Callable[[], ResultExport] = _export
SCORES_CSV = Format("scores as CSV", results=EXPORT)
