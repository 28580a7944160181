"""Score whether the value of a column is unique. Empty values are not duplicates."""

from collections import Counter

COLUMN = "<< config.unique >>"


def compute_scores(samples):
    counts = Counter(sample[COLUMN] for sample in samples if sample[COLUMN])
    return [{"is_unique": counts[sample[COLUMN]] <= 1} for sample in samples]
