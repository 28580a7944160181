"""YAML files of an export to AI GO, with their includes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True)
class Include:
    """Text in a separate file, named relative to the including file."""

    name: str


class _Dumper(yaml.SafeDumper):
    """Dumper that writes multi-line texts as blocks and supports includes."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # YAML cannot escape a lone surrogate.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return dumper.represent_scalar("tag:yaml.org,2002:str", whole, style="|" if "\n" in whole else None)


def _include(dumper: yaml.SafeDumper, include: Include) -> yaml.ScalarNode:
    return dumper.represent_scalar("!include", include.name)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Include, _include)


def yaml_text(document: Mapping[str, Any], *comments: str) -> str:
    """Return a document as YAML, preceded by comments."""
    text: str = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return "".join(f"# {line}\n" for line in comments) + text


def with_snippet_files(document: Any, stem: str, files: dict[str, str]) -> Any:
    """Return a task with its snippets moved to separate files, which are added to `files` (name → text)."""
    if isinstance(document, Mapping):
        return {
            name: _snippet(value, f"{stem}_{name.removesuffix('_snippet')}", files)
            if isinstance(value, str) and str(name).endswith("_snippet")
            else with_snippet_files(value, stem, files)
            for name, value in document.items()
        }
    if isinstance(document, list):
        return [with_snippet_files(value, stem, files) for value in document]
    return document


def _snippet(text: str, stem: str, files: dict[str, str]) -> Any:
    # An include is stripped of surrounding whitespace, and one line does not need a file.
    if "\n" not in text.strip() or text.strip() not in (text, text.rstrip("\n")):
        return text
    number, name = 2, f"{stem}.py"
    while name in files and files[name] != text:
        number, name = number + 1, f"{stem}_{number}.py"
    files[name] = text
    return Include(name)
