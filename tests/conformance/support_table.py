"""Generator of the tables in `docs/reference/feature-matrix.md` from the features, the engines and the ledger
of known gaps.

python -m tests.conformance.support_table          write the tables
python -m tests.conformance.support_table --check  check that the tables are up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.comparing import ENGINES
from tests.conformance.features import AREAS, Feature, features
from tests.conformance.ledger import known_gap
from tests.support.commands import REPOSITORY

PAGE = REPOSITORY / "docs" / "reference" / "feature-matrix.md"
BEGIN = "<!-- support table: made by `make support-table` -->"
END = "<!-- end of the support table -->"
BEGIN_NAMES = "<!-- names: made by `make support-table` -->"
END_NAMES = "<!-- end of the names -->"

SHOWN = {"inspect": "Inspect", "lighteval": "lighteval"}


def table() -> str:
    """Return a table with one row for each area's common features, and one for each feature with a gap."""
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


def names() -> Mapping[str, Mapping[str, list[Feature]]]:
    """Return kind → name in task files → features that use it."""
    uses: dict[str, dict[str, list[Feature]]] = {
        kind: {} for kind in ("solver", "scorer", "metric", "aggregator")
    }
    for feature in features():
        for kind, name in sorted(set(_used(feature.document))):
            uses[kind].setdefault(name, []).append(feature)
    return uses


def _used(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of all parts of a feature's task. A short document uses a single turn
    solver.
    """
    definition = document.get("definition", {})
    if "ask" in document:
        yield "solver", "single_turn_solver"
    if "solver" in definition:
        yield "solver", definition["solver"]["type"]
    for scorer in definition.get("scorers", ()):
        yield "scorer", scorer["type"]
        for metric in scorer.get("metrics", ()):
            yield "metric", metric["type"]
    for entry in definition.get("trials", {}).get("score_aggregators", ()):
        yield "aggregator", entry["aggregator"]["function"]


def names_table() -> str:
    """Return a table of the solvers, scorers, metrics and aggregators that the same engines support. An engine
    supports a name if it runs a feature that uses it.
    """
    rows = [
        "| | | " + " | ".join(SHOWN[engine] for engine in ENGINES) + " |",
        "|---" * (2 + len(ENGINES)) + "|",
    ]
    for kind, uses in names().items():
        names_by_support: dict[tuple[str, ...], list[str]] = {}
        for name, using in sorted(uses.items()):
            cells = [list(_cells(feature.id)) for feature in using]
            best = (max(column, key=lambda cell: cell == "yes") for column in zip(*cells, strict=True))
            names_by_support.setdefault(tuple(best), []).append(f"`{name}`")
        rows += [_row(f"{kind} | {', '.join(texts)}", list(best)) for best, texts in names_by_support.items()]
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
    """Return the page with up-to-date tables."""
    return _replaced(_replaced(page, BEGIN, table(), END), BEGIN_NAMES, names_table(), END_NAMES)


def _replaced(page: str, begin: str, content: str, end: str) -> str:
    before, first, behind = page.partition(begin)
    _, last, after = behind.partition(end)
    if not (first and last):
        raise SystemExit(f"{PAGE.name} has no place for a table: {begin} … {end}")
    return f"{before}{begin}\n{content}\n{end}{after}"


def is_current() -> bool:
    """Return whether the tables of the page are up to date."""
    page = PAGE.read_text(encoding="utf-8")
    return with_table(page) == page


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if is_current() else f"a table in {PAGE.name} is not current: make support-table")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
