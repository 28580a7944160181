"""Numbers with their nouns: `1 sample`, `2 samples`."""

from __future__ import annotations


def plural(count: int, one: str, many: str | None = None, form: str = "") -> str:
    """Return a number with its noun, and a verb if the two forms have one.

    Args:
        count: the number.
        one: words after 1, e.g. `sample` or `sample was`.
        many: words after every other number; `None`: `one` with an `s`.
        form: format of the number, e.g. `,`.
    """
    words = one if count == 1 else f"{one}s" if many is None else many
    return f"{count:{form}} {words}"
