"""Files in the current form: old spellings replaced in the text itself, comments and layout kept."""

from __future__ import annotations

from pathlib import Path

from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading.edits import apply
from aigo_bridge.reading.loading import Loader
from aigo_bridge.reading.reader import open_nodes
from aigo_bridge.roots import root_of


def upgrade_text(path: Path, *, root: Path | None = None) -> str:
    """The text of a YAML file with every old form in its current one; unchanged when there is none.

    Files that it refers to are read, and left alone: each is upgraded by itself.

    Args:
        path: a file of any kind.
        root: as for `read_task`.

    Raises:
        SpecError: the file cannot be read as YAML, its kind cannot be told, or it holds an old form that
            has no current one.
    """
    loader = Loader(root if root is not None else root_of(path), {})
    _, _, rewriter = open_nodes(loader, path, None, "default")
    name = str(path)
    errors: list[Issue] = [issue for issue in (*loader.issues, *rewriter.issues) if issue.severity == "error"]
    if errors:
        raise SpecError(errors)
    return apply(loader.texts[name], [edit for edit in rewriter.edits if edit.file == name])
