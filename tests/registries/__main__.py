"""`make registries`: number of registry tasks that convert to AI GO tasks, as tables in the docs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.registries import inspect_registry, lighteval_registry
from tests.registries.table import Verdict, markdown

PAGES = {
    "inspect": (
        Path("docs/reference/inspect-benchmarks.md"),
        inspect_registry.verdicts,
        "inspect-evals' registry",
    ),
    "lighteval": (
        Path("docs/reference/lighteval-benchmarks.md"),
        lighteval_registry.verdicts,
        "lighteval's registry",
    ),
}

MARKS = "<!-- registry -->\n", "<!-- end of registry -->\n"


def main() -> int:
    """Convert all tasks and write the tables between their marks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=list(PAGES))
    parser.add_argument("--list", action="store_true", help="print every task with its outcome")
    arguments = parser.parse_args()
    for engine in arguments.engines or PAGES:
        page, verdicts, title = PAGES[engine]
        listed: list[Verdict] = []
        for verdict in verdicts():
            listed.append(verdict)
            if arguments.list:
                print(verdict.kind, verdict.name, *verdict.reasons, sep="\t", flush=True)
        before, mark, rest = page.read_text("utf-8").partition(MARKS[0])
        _, end, after = rest.partition(MARKS[1])
        if not mark or not end:
            raise SystemExit(f"{page}: there is no place for the table, expected {MARKS}")
        text = before + mark + markdown(listed, title) + end + after
        page.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
