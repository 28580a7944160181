"""Redaction of the data that an import writes, and of secrets under known names in configurations."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from aigo_bridge.importing.redaction import Redaction
from aigo_bridge.text.json_text import dumps

_SECRET_NAME = re.compile(r"(?i)(^|_|-)(api[_-]?key|token|secret|password|authorization|credentials?)$")
_SHORTEST = 12
"""Minimum number of characters of a secret; `eos_token: </s>` is too short."""


def without_secrets(value: Any, counts: Counter[str], name: str = "") -> Any:
    """Return a copy in which values under secret names are masked. The configuration of a model contains its
    API key.
    """
    if isinstance(value, dict):
        return {key: without_secrets(item, counts, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item, counts) for item in value]
    is_text = isinstance(value, str) and len(value) >= _SHORTEST and not value.startswith("[redacted:")
    if not is_text or not _SECRET_NAME.search(name):
        return value
    kind = f"value of {name}"
    counts[kind] += 1
    return f"[redacted: {kind}]"


def redacted(values: Sequence[bytes], redaction: Redaction) -> bytes:
    """Return JSON values without secrets, joined by commas.

    A secret that contains only digits may be part of a number. The replacement text then replaces the
    whole number.
    """
    data = b",\n".join(values)
    counts = dict(redaction.found)
    clean = redaction.apply(data)
    if clean is data or clean == data:
        return data
    try:
        json.loads(b"[" + clean + b"]")
    except ValueError:
        redaction.found.clear()
        redaction.found.update(counts)
        return b",\n".join(dumps(_walked(json.loads(value), redaction)) for value in values)
    return clean


def _walked(value: Any, redaction: Redaction) -> Any:
    if isinstance(value, dict):
        return {_walked(key, redaction): _walked(item, redaction) for key, item in value.items()}
    if isinstance(value, list):
        return [_walked(item, redaction) for item in value]
    if isinstance(value, str):
        return redaction.text(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        text = json.dumps(value).encode()
        clean = redaction.apply(text)
        return value if clean == text else clean.decode()
    return value
