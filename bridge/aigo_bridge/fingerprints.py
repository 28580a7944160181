"""What tells a model apart from another one of the same name: two runs may only share answers where it is equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCRIPTED = "scripted/"


def fingerprint_of(name: str) -> str:
    """SHA-256 of what is known of a model that is named by an engine's string.

    Of a file, a scripted model's rules or a model entity (`model.yaml`, `run.yaml#key`), its content counts too; of a folder of weights
    (`transformers/FOLDER,dtype=float16`) the names, sizes and times of its files. That a provider has changed a model behind its name cannot be
    seen.
    """
    return sha256_of([name, _content_of(name)])


def _content_of(name: str) -> Any:
    file = Path(name.removeprefix(SCRIPTED) if name.startswith(SCRIPTED) else name.partition("#")[0])
    try:
        if file.is_file():
            return hashlib.sha256(file.read_bytes()).hexdigest()
        folder = _folder_of(name)
        if folder is None:
            return None
        return sorted(
            [str(each.relative_to(folder)), each.stat().st_size, each.stat().st_mtime_ns]
            for each in folder.iterdir()
            if each.is_file()
        )
    except OSError:
        return None  # whoever makes the model says why it cannot be read


def _folder_of(name: str) -> Path | None:
    """The folder in an engine's string, after the names of engine and backend."""
    rest = name.partition(",")[0]
    for _ in range(2):
        _, _, rest = rest.partition("/")
        if rest and Path(rest).is_dir():
            return Path(rest)
    return None


def mixed(earlier: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Fingerprints of a run that goes on from an earlier one: of a model that has changed since, neither the old one nor the new one."""
    return {
        key: found if earlier.get(key, found) == found else sha256_of([earlier[key], found])
        for key, found in own.items()
    }


def sha256_of(content: Any) -> str:
    """SHA-256 over the canonical JSON of a value."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
