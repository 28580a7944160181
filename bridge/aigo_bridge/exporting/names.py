"""Names for generated Python: modules and arguments, from keys that need not be identifiers."""

from __future__ import annotations

import keyword
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence

PACKAGES = frozenset(
    {
        "aigo_bridge",
        "aigo_inspect",
        "aigo_lighteval",
        "aigo_tasks",
        "anthropic",
        "anyio",
        "datasets",
        "google",
        "groq",
        "httpx",
        "inspect_ai",
        "inspect_evals",
        "inspect_scout",
        "jinja2",
        "lighteval",
        "litellm",
        "mistralai",
        "msgspec",
        "numpy",
        "openai",
        "orjson",
        "packaging",
        "pandas",
        "pip",
        "pydantic",
        "requests",
        "rich",
        "sacrebleu",
        "scipy",
        "setuptools",
        "sklearn",
        "spacy",
        "tests",
        "tiktoken",
        "together",
        "torch",
        "tqdm",
        "transformers",
        "trio",
        "typer",
        "typing_extensions",
        "vllm",
        "yaml",
        "zstandard",
    }
)
"""Packages that a run may import: a file of that name beside it would stand in their way."""

_TAKEN = frozenset(sys.stdlib_module_names) | PACKAGES
LONGEST = 36
"""Characters of a name before numbers; longer keys are cut."""


def module_name(key: str, taken: Iterable[str] = ()) -> str:
    """A name for a task's file and folder: its key as an identifier, with `_2`, `_3` … where that is taken."""
    name = identifier(key.lower())[:LONGEST]
    return _free(f"{name}_task" if name in _TAKEN or keyword.issoftkeyword(name) else name, set(taken))


def unique_names(
    keys: Sequence[str], reserved: Iterable[str] = (), *, longest: int | None = None
) -> dict[str, str]:
    """Key → name, unique, in order; keys that are good names keep them."""
    taken = set(reserved)
    names: dict[str, str] = {}
    for key in sorted(keys, key=lambda key: key != identifier(key)):
        names[key] = _free(identifier(key)[:longest], taken)
        taken.add(names[key])
    return {key: names[key] for key in keys}


def identifier(text: str) -> str:
    """The text with everything that Python allows in no name as `_`; `é` and `名` may stay."""
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", text)) or "_"
    if not name.isidentifier():
        # A digit in front; or a character that is part of words, but not of names.
        name = "".join(char if f"_{char}".isidentifier() else "_" for char in name)
        name = name if name.isidentifier() else f"_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
