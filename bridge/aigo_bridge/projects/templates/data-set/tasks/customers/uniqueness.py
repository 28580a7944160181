"""Whether the value of a row in one column is its own; an empty one is nobody's double."""

from collections import Counter

COLUMN = "<< config.unique >>"


def compute_scores(samples):
    counts = Counter(sample[COLUMN] for sample in samples if sample[COLUMN])
    return [{"is_unique": counts[sample[COLUMN]] <= 1} for sample in samples]
