"""README.md of an export to AI GO: the commands to type, and the entities that they create."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aigo_bridge.exporting.evidence.assembling import Assembly
from aigo_bridge.exporting.evidence.options import EvidenceOptions
from aigo_bridge.exporting.python_code import visible

FIRST_LINE = "<!-- written by aigo-bridge export --to aigo -->"
_LONGEST = 200


def readme(assembly: Assembly, evaluation: str, losses: Mapping[str, Any], options: EvidenceOptions) -> str:
    """Return the text of the README."""
    app = options.app or "APP"
    lines = [
        FIRST_LINE,
        "",
        "# Results for AI GO",
        "",
        f"`lf run` creates the evaluation `{evaluation}` and uploads every result below.",
        "No model is called.",
        "",
        "```console",
        f"lf switch {app}",
        "lf run -f run.yaml --wait",
        "```",
        "",
    ]
    if options.app is None:
        lines += ["Replace `APP` with the key of your AI app.", ""]
    lines += [
        "## Results",
        "",
        "| specification | task | model | status | samples |",
        "|---|---|---|---|--:|",
    ]
    for key, specification in sorted(assembly.specifications.items()):
        evidence = specification.frame.evidence
        failures = evidence.failures if evidence is not None else None
        cells = (
            f"`{key}`",
            f"`{specification.task_key}`",
            f"`{specification.model}`" if specification.model else "",
            specification.frame.status,
            "" if failures is None else str(failures.num_total),
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## Entities", "", "| kind | key | name | on the platform |", "|---|---|---|---|"]
    lines += _rows(
        "task", ((key, task.document["display_name"], True) for key, task in assembly.tasks.items())
    )
    lines += _rows("task", ((key, name, False) for key, name in assembly.references.items()))
    lines += _rows("model", ((m.key, m.display_name, not m.is_reference) for m in assembly.models.values()))
    lines += _rows("dataset", ((d.key, d.name, True) for d in assembly.datasets.values()))
    lines += [
        "",
        "Keys end with a digest of their content, so that an entity of yours is not overwritten.",
        "Models have a placeholder as their connection. No secret is in this folder.",
        "",
    ]
    if losses:
        lines += [
            "## Losses",
            "",
            "`losses.json` lists the parts of the results that are not in this folder.",
            "",
        ]
    return "\n".join(lines)


def _rows(kind: str, entities: Iterable[tuple[str, str, bool]]) -> list[str]:
    return [
        f"| {kind} | `{key}` | {_cell(name)} | {'created' if is_new else 'has to exist'} |"
        for key, name, is_new in sorted(entities)
    ]


def _cell(text: str) -> str:
    shown = visible(" ".join(text.split())).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
