"""Whether the key of each row is its own."""

from __future__ import annotations

from collections import Counter
from typing import Any


def compute_scores(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    counts = Counter(str(sample.get("<< config.key_column >>")) for sample in samples)
    return [{"is_unique": counts[str(sample.get("<< config.key_column >>"))] == 1} for sample in samples]
