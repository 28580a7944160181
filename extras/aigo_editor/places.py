"""Go to definition: declaration of a file, dataset, model, task or parameter that a document names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aigo_bridge.access.existence import is_file
from aigo_bridge.access.opening import is_below
from aigo_bridge.reading.kinds import Kind
from aigo_editor import parameters
from aigo_editor.hover import read_at
from aigo_editor.outline import Mapping as MappingNode
from aigo_editor.outline import Node, Scalar, Sequence, Spot, node_at, spot_at
from aigo_editor.positions import START, TextRange
from aigo_editor.project import Project, inner_span

_KINDS: Mapping[str, Kind] = {
    "model_key": "model",
    "task_key": "task",
    "dataset_key": "dataset",
    "dataset_generator_key": "generator",
}


@dataclass(frozen=True)
class Declaration:
    """Target of "go to definition"."""

    file: Path
    span: TextRange = START


def declarations(
    file: Path, text: str, root: Node, offset: int, project: Project, data_files: Mapping[str, str]
) -> list[Declaration]:
    """Return the declarations of the element at an offset; empty if unknown.

    Args:
        file: path of the document.
        text: current text of the document.
        root: outline of the document.
        offset: offset of the cursor.
        project: project of the document.
        data_files: file with the rows or the declaration of each dataset key.
    """
    used = parameters.parameter_at(file, text, offset, project)
    if used is not None:
        return [Declaration(used[0].file, used[0].span)]
    spot = spot_at(root, offset)
    if spot.pair is not None and isinstance(spot.node, MappingNode):
        value = spot.pair.value
        if not isinstance(value, Scalar) or (value.tag != "!include" and spot.pair.key != "$ref"):
            return []
        spot = Spot((*spot.path, spot.pair.key), value)
    if not isinstance(spot.node, Scalar):
        return []
    return list(dict.fromkeys(_of_scalar(file, text, root, spot, offset, project, data_files)))


def _of_scalar(
    file: Path,
    text: str,
    root: Node,
    spot: Spot,
    offset: int,
    project: Project,
    data_files: Mapping[str, str],
) -> Iterator[Declaration]:
    assert isinstance(spot.node, Scalar)
    node = spot.node
    if node.tag == "!include" or spot.path[-1:] in {("$ref",), ("file_path",)}:
        target = file.parent / node.text.strip()
        if is_below(target, project.folder) and is_file(target):
            yield Declaration(Path(target.resolve()))
        return
    read = read_at(text, node, offset)
    if read is not None:
        variable, name, _ = read
        if variable == "sample":
            nested = data_files.get(name or "", next(iter(data_files.values()), None))
            yield from () if nested is None else (Declaration(Path(nested)),)
        elif variable == "scores" and name is not None:
            yield from _scorer(file, root, name)
        return
    names = [part for part in spot.path if isinstance(part, str)]
    is_dataset = spot.path[:3] in {("definition", "dataset", "key"), ("definition", "dataset", "keys")}
    kind: Kind | None = "dataset" if is_dataset else _KINDS.get(names[-1] if names else "")
    if kind is None:
        return
    for entity in project.entities(kind):
        if entity.key == node.text:
            yield Declaration(entity.file, entity.span)
    if kind == "dataset" and node.text in data_files:
        place = Path(data_files[node.text])
        if place not in project.sources:
            yield Declaration(place)


def _scorer(file: Path, root: Node, key: str) -> Iterator[Declaration]:
    scorers = node_at(root, ("definition", "scorers"))
    for scorer in scorers.items if isinstance(scorers, Sequence) else ():
        written = scorer.get("key") or scorer.get("type") if isinstance(scorer, MappingNode) else None
        if isinstance(written, Scalar) and written.text == key:
            yield Declaration(file, inner_span(written))
