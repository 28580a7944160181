"""Folder of an export to AI GO. It is assembled next to its target, checked, and moved there as a whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UnsupportedPlanError, UsageError
from aigo_bridge.exporting.evidence.assembling import Assembly
from aigo_bridge.exporting.evidence.options import EvidenceOptions
from aigo_bridge.exporting.evidence.sources import EvidenceSources, gather
from aigo_bridge.exporting.folders import check_free, draft_near, refuse_secrets
from aigo_bridge.reading.reader import validate_paths
from aigo_bridge.text.escapes import visible
from aigo_bridge.text.plurals import plural

LOSSES = "losses.json"
_ENTRIES = frozenset({"run.yaml", "README.md", LOSSES, "tasks", "models", "datasets", "task_results"})
_SHOWN = 50
_FIRST_LINE = "<!-- written by aigo-bridge export --to aigo -->"
_LONGEST = 200
"""Maximum number of characters in a cell of the README."""


@dataclass(frozen=True)
class EvidenceFolder:
    """Written export, or with --dry-run the planned one."""

    folder: Path
    evaluation: str
    """Key of the evaluation."""
    created: tuple[tuple[str, int], ...]
    """Files with their sizes in bytes."""
    reused: tuple[str, ...]
    """Entities that must already exist on the platform."""
    repeated: tuple[str, ...]
    """Results that were given twice and are written one time."""
    losses: dict[str, Any]
    """Parts that are missing in the folder; empty if it is complete."""
    is_partial: bool
    """Whether a part of the given results could not be read."""


def export_evidence(
    locations: Sequence[str], out: Path, options: EvidenceOptions, tell: Callable[[str], None]
) -> EvidenceFolder:
    """Write results as a folder that AI GO accepts.

    Args:
        locations: result logs, engine logs, folders, evaluation summaries, lakes.
        out: the folder.
        options: keys, events, and whether to write any file.
        tell: called with a line for each skipped file.

    Raises:
        UsageError: the folder contains other files, an option is wrong, or a location does not contain
            anything to export.
        EvidenceError: results are damaged; lists every error.
        UnsupportedPlanError: AI GO cannot store a part of them, and losses are not allowed.
    """
    options.check()
    if not options.dry_run:
        check_free(out, force=options.force)
        _refuse_foreign(out)
    target = out.absolute()
    with tempfile.TemporaryDirectory(prefix="aigo-bridge-") as scratch, _draft(target, options) as draft:
        sources = gather(locations, Path(scratch), tell)
        assembly = Assembly(draft, options)
        for source in sources.results:
            assembly.add(source)
        _refuse(assembly, sources, options)
        assembly.check_names()
        key = assembly.write_entities()
        losses = _losses(assembly, sources)
        if losses:
            assembly.text(LOSSES, json.dumps(losses, indent=2) + "\n")
        assembly.text("README.md", _readme(assembly, key, losses, options))
        _check(draft)
        refuse_secrets(draft)
        written = _written(assembly, draft, out, key, losses, sources)
        if not options.dry_run:
            _move(draft, target)
    return written


@contextmanager
def _draft(target: Path, options: EvidenceOptions) -> Iterator[Path]:
    if options.dry_run:
        with tempfile.TemporaryDirectory(prefix="aigo-bridge-") as folder:
            yield Path(folder)
    else:
        with draft_near(target) as draft:
            yield draft


def _refuse(assembly: Assembly, sources: EvidenceSources, options: EvidenceOptions) -> None:
    """Raise one error for all results that cannot be exported."""
    issues = [*sources.issues, *assembly.issues]
    if issues:
        raise EvidenceError(issues)
    gaps = [*dict.fromkeys(map(str, assembly.gaps)), *sources.lost]
    if gaps and not options.allow_gaps:
        lines = [
            f"the export would lack {plural(len(gaps), 'part')}:",
            *(f"  - {gap}" for gap in gaps[:_SHOWN]),
            *([f"  - and {len(gaps) - _SHOWN} more"] if len(gaps) > _SHOWN else []),
            f"with --allow-gaps it is written without them, and {LOSSES} names them",
        ]
        raise UnsupportedPlanError("\n".join(lines), code=Code.UNTRANSLATED)
    if not assembly.specifications:
        raise UsageError("found no result to export", code=Code.NOTHING_THERE)


def _losses(assembly: Assembly, sources: EvidenceSources) -> dict[str, Any]:
    """Return all parts that the folder lacks."""
    losses: dict[str, Any] = {}
    if assembly.lost:
        losses["dropped"] = {key: dict(sorted(lost.items())) for key, lost in sorted(assembly.lost.items())}
    if assembly.gaps:
        losses["tasks"] = sorted(dict.fromkeys(map(str, assembly.gaps)))
    if sources.lost:
        losses["missing"] = sorted(sources.lost)
    if assembly.redaction.found:
        losses["redacted"] = dict(sorted(assembly.redaction.found.items()))
    return losses


def _check(draft: Path) -> None:
    """Check every YAML file by the rules of AI GO 3.17."""
    issues: list[Issue] = []
    for report in validate_paths([draft], root=draft, dialect="aigo-3.17", env={}):
        issues += [issue for issue in report.issues if issue.severity == "error"]
    if issues:
        raise EvidenceError(issues)


def _written(
    assembly: Assembly, draft: Path, out: Path, key: str, losses: dict[str, Any], sources: EvidenceSources
) -> EvidenceFolder:
    files = sorted(path for path in draft.rglob("*") if path.is_file())
    reused = [f"model {model.key}" for model in assembly.models.values() if model.is_reference]
    reused += [f"task {task}" for task in assembly.references]
    return EvidenceFolder(
        out,
        key,
        tuple((path.relative_to(draft).as_posix(), path.stat().st_size) for path in files),
        tuple(sorted(reused)),
        tuple(assembly.repeated),
        losses,
        bool(sources.lost),
    )


def _refuse_foreign(out: Path) -> None:
    """Raise an error for a folder with files that an export to AI GO did not write."""
    if not out.is_dir() or not any(out.iterdir()):
        return
    foreign = sorted(path.name for path in out.iterdir() if path.name not in _ENTRIES)
    mark = out / "README.md"
    if not foreign and not (mark.is_file() and mark.read_text("utf-8", "replace").startswith(_FIRST_LINE)):
        foreign = ["README.md"]
    if foreign:
        raise UsageError(
            f"--out: {', '.join(map(repr, foreign))} in folder {str(out)!r} is not from an export to AI GO;"
            " choose another folder",
            code=Code.ALREADY_THERE,
        )


def _move(draft: Path, target: Path) -> None:
    """Replace the old folder by the new one."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.rename(target)
        return
    for entry in sorted(target.iterdir()):
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    # Move the run file last, so that `lf run` does not accept the folder after an interrupted move.
    for entry in sorted(draft.iterdir(), key=lambda entry: entry.name == "run.yaml"):
        entry.rename(target / entry.name)


def _readme(assembly: Assembly, evaluation: str, losses: Mapping[str, Any], options: EvidenceOptions) -> str:
    app = options.app or "APP"
    lines = [
        _FIRST_LINE,
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
