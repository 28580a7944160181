"""Data sets: from a file, a folder, the web or a generator to identified, selected rows."""

from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.filtering import CompiledFilter, matches
from aigo_bridge.datasets.generating import GeneratorTools, StartRows
from aigo_bridge.datasets.rows import Missing, Row, Rows, Selection
from aigo_bridge.datasets.sources import DatasetTools, load_dataset
from aigo_bridge.datasets.synthesis import Question

__all__ = [
    "CompiledFilter",
    "DatasetTools",
    "GeneratorTools",
    "Missing",
    "Question",
    "Row",
    "Rows",
    "Selection",
    "StartRows",
    "load_dataset",
    "load_file",
    "matches",
]
