"""The table of `docs/what-runs-where.md`, made of the features, the engines and the ledger of known gaps.

python -m tests.conformance.support_table          writes it
python -m tests.conformance.support_table --check  says whether it is current
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tests.conformance.comparing import ENGINES
from tests.conformance.features import AREAS, features
from tests.conformance.ledger import known_gap
from tests.support.commands import REPOSITORY

PAGE = REPOSITORY / "docs" / "what-runs-where.md"
BEGIN = "<!-- support table: made by `make support-table` -->"
END = "<!-- end of the support table -->"

SHOWN = {"inspect": "Inspect", "lighteval": "lighteval"}


def table() -> str:
    """One row per area for what runs everywhere, and one for each feature that some engine has not."""
    rows = [
        "| | " + " | ".join(SHOWN[engine] for engine in ENGINES) + " |",
        "|---" * (1 + len(ENGINES)) + "|",
    ]
    for area in AREAS:
        whole: list[str] = []
        others: list[str] = []
        for feature in features():
            if feature.area == area:
                gaps = [known_gap(engine, feature.id) for engine in ENGINES]
                (others if any(gaps) else whole).append(feature.name)
        rows.append(_row(f"**{area}**: {'; '.join(whole)}", ["yes"] * len(ENGINES)))
        rows += [_row(f"**{area}**: {name}", list(_cells(f"{area}: {name}"))) for name in others]
    return "\n".join(rows)


def _cells(feature: str) -> Iterator[str]:
    for engine in ENGINES:
        gap = known_gap(engine, feature)
        if gap is None:
            yield "yes"
        else:
            yield {"never": "no", "notyet": "not yet", "todo": "to do"}[gap.kind] + f": {gap.reason}"


def _row(name: str, cells: list[str]) -> str:
    return f"| {' | '.join([name, *cells])} |"


def with_table(page: str) -> str:
    """The page with the table as it is now."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE.name} has no place for the table: {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def is_current() -> bool:
    """Whether the page has it."""
    page = PAGE.read_text(encoding="utf-8")
    return with_table(page) == page


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if is_current() else f"the table in {PAGE.name} is not current: make support-table")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
