"""One task of a run → its result file, document by document."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aigo_bridge.engine import ImportOptions
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.bounds import Bounds
from aigo_bridge.importing.damage import UNMAPPED, Damage, unmapped
from aigo_bridge.importing.encoding import dumps
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.output import PartWriter, open_draft
from aigo_bridge.importing.redaction import Redaction
from aigo_bridge.importing.result import ImportResult
from aigo_lighteval.parquet import require_parquet

from .finding import Run
from .frame import frame_of, functions_of
from .header import Header, own_part
from .prompts import Prompting
from .samples import SampleMapper

MALFORMED = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""What code that reads well-formed rows raises at others."""
_MANY = 64
"""Samples that are written together."""


def write_task(
    run: Run,
    header: Header,
    task: str,
    details: str | None,
    target: Path,
    options: ImportOptions,
    bounds: Bounds,
    redaction: Redaction,
    damage: list[Damage],
) -> ImportResult:
    """Write `<target>.tasklog.<format>` and `<target>.loss.json`.

    Args:
        run: the files.
        header: what the results file says; empty when there is none.
        task: the task's name.
        details: its details; `None` when there are none.
        target: the files that are written, without their suffixes.
        options: how it is imported.
        bounds: what the files may ask of the machine.
        redaction: what is taken out.
        damage: what could not be read of the run as a whole.
    """
    loss = LossReport()
    damage = list(damage)
    source = details or run.location
    mapper = SampleMapper(
        run=f"{run.date}/{task}",
        source=source,
        model=header.model or run.model,
        prompts=prompting(header),
        options=options,
        loss=loss,
    )
    output = target.with_name(f"{target.name}.tasklog.{options.output_format}")
    with open_draft(output) as file, _no_cycle_collection():
        writer = PartWriter(file, options.output_format)
        written, whole = False, False
        if details is None:
            reason = "no details: lighteval writes them with --save-details only"
            damage.append(Damage(f"{run.location}: {task}", None, reason))
        else:
            before = len(damage)
            for pieces in _samples(details, mapper, bounds, redaction, damage):
                writer.write([b",\n" if written else b'{"evidence":{"samples":[\n', pieces])
                written = True
            whole = len(damage) == before
            if whole:
                told, declared = own_part(header.results, task), own_part(header.tasks, task)
                damage += [
                    Damage(f"{run.location}: {task}", None, reason)
                    for reason in mapper.scores.disagreements(told, functions_of(declared))
                ]
        totals = mapper.totals
        frame = frame_of(run, header, task, totals, mapper.scores.names, damage, loss)
        evidence = frame.pop("evidence")
        head = b"\n]," if written else b'{"evidence":{"samples":' + (b"[]," if whole else b"null,")
        writer.write([head, redacted(evidence, redaction)[1:], b",", redacted(frame, redaction)[1:], b"\n"])
        writer.finish()
    result = ImportResult(
        log=f"{run.location} ({task})",
        output=output,
        loss_file=target.with_name(f"{target.name}.loss.json"),
        status=frame["status"],
        samples=totals.samples,
        trials=totals.trials,
        failed=totals.failed,
        damage=tuple(damage),
        loss=loss,
        redacted=redaction.found,
    ).judged(options.max_loss)
    result.write_loss()
    return result


def _samples(
    details: str, mapper: SampleMapper, bounds: Bounds, redaction: Redaction, damage: list[Damage]
) -> Iterator[bytes]:
    """The documents as JSON, several at a time; damage ends them or leaves out one."""
    pending: list[bytes] = []
    try:
        require_parquet(details)
        from .details import Details

        found = Details(details, bounds, damage.append)
        for asked in found.documents():
            try:
                pending.append(dumps(mapper.sample(asked)))
            except MALFORMED as error:
                where = f"{details}: document {asked.sample_id}"
                damage.append(Damage(where, None, unmapped("the document", error), UNMAPPED))
            if len(pending) == _MANY:
                yield _joined(pending, redaction)
                pending = []
        if found.renamed:
            mapper.loss.changed["document with the id of another: numbered"] += found.renamed
    except EvidenceError as error:
        damage.append(Damage(details, None, str(error)))
    if pending:
        yield _joined(pending, redaction)


def _joined(samples: list[bytes], redaction: Redaction) -> bytes:
    return _checked(b",\n".join(samples), redaction, wrap=True)


def redacted(value: Any, redaction: Redaction) -> bytes:
    """A value as JSON without secrets."""
    return _checked(dumps(value), redaction, wrap=False)


def _checked(data: bytes, redaction: Redaction, *, wrap: bool) -> bytes:
    """JSON without secrets.

    A secret of nothing but digits can stand in the middle of a number; the text is put into the place of the whole number then.
    """
    before = dict(redaction.found)
    clean = redaction.apply(data)
    if clean is data or clean == data:
        return data
    try:
        json.loads(b"[" + clean + b"]" if wrap else clean)
    except ValueError:
        redaction.found.clear()
        redaction.found.update(before)
        values = json.loads(b"[" + data + b"]" if wrap else data)
        texts = (
            [dumps(_walked(value, redaction)) for value in values]
            if wrap
            else [dumps(_walked(values, redaction))]
        )
        return b",\n".join(texts)
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


def prompting(header: Header) -> Prompting:
    """How the model was prompted, from its configuration."""
    found = header.model_config.get("system_prompt")
    chat = header.model_config.get("override_chat_template") is not False
    return Prompting(found if isinstance(found, str) else None, chat)


@contextmanager
def _no_cycle_collection() -> Iterator[None]:
    """Samples are trees and die with their last reference; looking for cycles among them only costs time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
