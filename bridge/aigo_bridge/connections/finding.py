"""Adapters by key: of the run file, shipped, or in a file beside the model's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from aigo_bridge.connections.adapters import Adapter, TemplateAdapter
from aigo_bridge.connections.shipped import SHIPPED
from aigo_bridge.errors import Issue, SpecError, TemplateError
from aigo_bridge.reading import read_adapter
from aigo_bridge.spec import AdapterSpec

FOLDERS = (".", "model_adapters", "adapters", "../model_adapters", "../adapters")
"""Where adapters lie, seen from a model's folder."""

LONGEST_FILE = 4_000_000
"""Bytes of a YAML file that is looked into."""


def adapter_of(spec: AdapterSpec) -> Adapter:
    """An author's adapter.

    Raises:
        SpecError: one of its templates is not one.
    """
    try:
        return TemplateAdapter(spec.key, spec.process_input.source_code, spec.process_output.source_code)
    except TemplateError as error:
        raise SpecError([Issue(f"adapter {spec.key!r}: {issue}") for issue in error.issues]) from error


def find_adapter(
    key: str, declared: Sequence[AdapterSpec], folder: Path, env: Mapping[str, str] | None = None
) -> Adapter | None:
    """The adapter with a key; `None` when there is none.

    Args:
        key: as the model names it.
        declared: adapters of the run file around the model; they come first.
        folder: folder of the model's file.
        env: environment variables; `None`: those of the process.

    Raises:
        SpecError: the file that declares the adapter is not valid, or several files declare it.
    """
    for spec in declared:
        if spec.key == key:
            return adapter_of(spec)
    if key in SHIPPED:
        return SHIPPED[key]
    files = list(dict.fromkeys(path.resolve() for path in _files_that_name(key, folder)))
    if not files:
        return None
    found = [spec for spec in (read_adapter(path, env=env).spec for path in files) if spec.key == key]
    if len(found) > 1:
        names = ", ".join(path.name for path in files)
        raise SpecError([Issue(f"adapter {key!r} is declared by several files: {names}")])
    return adapter_of(found[0]) if found else None


def _files_that_name(key: str, folder: Path) -> Iterator[Path]:
    """YAML files that look like the adapter's: they have templates, and the key as a text."""
    for name in FOLDERS:
        place = folder / name
        for path in sorted([*place.glob("*.yaml"), *place.glob("*.yml")]):
            try:
                if path.stat().st_size > LONGEST_FILE:
                    continue
                text = path.read_text("utf-8")
            except (OSError, UnicodeDecodeError):
                continue  # somebody else's file
            # Model and run files name adapters as well, but have no key of that name at the top.
            if "process_input" in text and _top_level_key(text) == key:
                yield path


def _top_level_key(text: str) -> str | None:
    for line in text.splitlines():
        if line.startswith("key:"):
            return line[4:].split(" #")[0].strip().strip("\"'")
    return None
