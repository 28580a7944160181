"""Provenance file `<name>.provenance.json` next to a result.

The file contains digests of the result, of each sample and of the inputs, and describes the models and the
environment. AI GO's evidence already has fields for the task, its config, the evaluated entity, the number of
samples and trials, times and token counts. Those values stay in the result, and the provenance has only their
digests. All other facts are only in the provenance.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.engine.provenance import Provenance, ResultOrigin
from aigo_bridge.engine.recording import PREFIX
from aigo_bridge.errors import EvidenceError
from aigo_bridge.process import no_collections
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results.log_files import COMPRESSIONS, open_for_replacing
from aigo_bridge.text.canonical_json import canonical_digest
from aigo_bridge.text.json_text import read_json
from aigo_trust.provenance.definitions import RowsDigest, digest_or_none, specification_digests
from aigo_trust.provenance.environment import command_line, environment, repository_state
from aigo_trust.provenance.merkle import leaf_digest, tree_root
from aigo_trust.provenance.model_identity import ModelIdentities
from aigo_trust.provenance.parts import frame_parts, packed, scanned
from aigo_trust.provenance.texts import RELEASED, ResultTexts, SampleText, read_texts

FORMAT = "aigo-bridge/provenance/v1"
SUFFIX = ".provenance.json"
LARGEST = 1 << 31
"""Maximum size in bytes of a file that is read into memory."""
_RESULT_SUFFIXES = (".tasklog.json", ".tasklog.jsonl", ".json", ".jsonl")
_CHUNK = 1 << 20
_PROVIDER = re.compile(r"[a-z][a-z0-9_-]*")


def provenance_file(result: Path) -> Path:
    """Return the path of the provenance file of a result."""
    return result.with_name(f"{stem_of(result)}{SUFFIX}")


def stem_of(result: Path) -> str:
    """Return the file name of a result without its suffixes."""
    name = result.name
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    for suffix in _RESULT_SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def write_provenance(result: Path, origin: ResultOrigin) -> Path:
    """Write the provenance of a new result, and replace an earlier provenance.

    Raises:
        EvidenceError: the result cannot be read.
        OSError: the file cannot be written.
    """
    file = provenance_file(result)
    # A result must never be next to the provenance of an earlier result.
    file.unlink(missing_ok=True)
    with no_collections():
        record = record_of(read_texts(result), origin)
    with open_for_replacing(file) as target:
        target.write(orjson.dumps(record, option=orjson.OPT_INDENT_2) + b"\n")
    return file


def record_of(texts: ResultTexts, origin: ResultOrigin) -> dict[str, Any]:
    """Return the provenance of a result as plain data, without known secrets."""
    result, rows, answering = _digested(texts)
    frame = texts.frame
    specification = frame.get("specification")
    specification = specification if isinstance(specification, Mapping) else {}
    execution = frame.get("execution")
    content: dict[str, Any] = redact_value(
        {
            "format": FORMAT,
            "result": result,
            **specification_digests(specification),
            "data": rows.to_json(),
            "plan": None if origin.plan is None else dict(origin.plan),
            "run": {
                "made_by": origin.verb,
                "app_version": frame.get("app_version"),
                "engine": origin.engine,
                "engine_version": origin.engine_version or _version_in(frame.get("app_version")),
                "provider": _provider(origin.models.get(""), specification),
                "models": dict(origin.models),
                **answering.to_json(),
                "started_at": _time(execution, "started_at"),
                "ended_at": _time(execution, "ended_at"),
                "revision": _revision(specification),
            },
            "logs": [log for location in origin.logs for log in log_digests(location)],
            "cassette": None if origin.cassette is None else dict(origin.cassette),
            "options": dict(origin.options),
            "environment": environment(),
            "repository": repository_state(origin.folder or Path()),
            "command": command_line(),
            "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    )
    return {**content, "digest": digest_or_none(content)}


def _digested(texts: ResultTexts) -> tuple[dict[str, Any], RowsDigest, ModelIdentities]:
    leaves: list[bytes] = []
    ids: list[str] = []
    checksums: list[str] = []
    rows, answering, size = RowsDigest(), ModelIdentities(), 0
    for sample in texts.samples:
        size += len(memoryview(sample.text))
        if size > RELEASED:
            texts.release()
            size = 0
        name, row, parts = scanned(sample.text)
        leaves.append(leaf_digest(sample.text))
        ids.append(name)
        checksums.append(packed(parts))
        answering.add(sample.text)
        if sample.run in (None, 0):
            rows.add(_row_in(row))
    runs = [sum(1 for sample in texts.samples if sample.run == run) for run in _runs(texts.samples)]
    result = {
        "name": texts.path.name,
        "sha256": texts.digest(),
        "bytes": len(texts.content),
        "root": tree_root(leaves).hex(),
        "frame": packed(frame_parts(texts.frame)),
        "samples": sum(1 for sample in texts.samples if sample.run is None),
        "samples_of_runs": runs,
        "ids": ids,
        "leaves": [leaf.hex() for leaf in leaves],
        "parts": checksums,
    }
    return result, rows, answering


def _runs(samples: Iterable[SampleText]) -> list[int]:
    return sorted({sample.run for sample in samples if sample.run is not None})


def sample_id(sample: SampleText) -> str:
    """Return the ID of a sample as JSON text, such as `3` or `"a"`; `null` without an ID."""
    return scanned(sample.text)[0]


def row_of(sample: SampleText) -> Any:
    """Return the dataset values of a sample; `None` if the sample does not contain them."""
    return _row_in(scanned(sample.text)[1])


def _row_in(text: Any) -> Any:
    value = None if text is None else read_json(bytes(text))
    return value.get("data") if isinstance(value, dict) else None


def log_digests(location: str | Path) -> list[dict[str, Any]]:
    """Return the SHA-256 of each file of an engine log; `None` for files that are remote or unreadable."""
    if isinstance(location, str) and "://" in location:
        return [{"name": location.rpartition("/")[2], "sha256": None, "bytes": None}]
    path = Path(location)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return [_log_digest(file, path) for file in files]


def _log_digest(file: Path, location: Path) -> dict[str, Any]:
    name = str(file.relative_to(location)) if file != location else file.name
    digest, size = hashlib.sha256(), 0
    try:
        with open_regular(file) as content:
            while chunk := content.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError:
        return {"name": name, "sha256": None, "bytes": None}
    return {"name": name, "sha256": digest.hexdigest(), "bytes": size}


def _provider(model: str | None, specification: Mapping[str, Any]) -> str | None:
    """Return the provider of the evaluated model: the prefix of its name, or else the value in the result."""
    beginning, slash, remainder = (model or "").removeprefix(PREFIX).partition("/")
    if beginning == "openai-api" and "/" in remainder:
        return f"{beginning}/{remainder.partition('/')[0]}"  # any endpoint with an OpenAI-compatible API
    if slash and _PROVIDER.fullmatch(beginning):
        return beginning
    entity = specification.get("evaluated_entity")
    config = entity.get("config") if isinstance(entity, Mapping) else None
    if not isinstance(config, Mapping):
        return None
    provider = config.get("provider_id") or config.get("adapter_id")
    return provider if isinstance(provider, str) else None


def _version_in(app_version: Any) -> str | None:
    """Return the engine version in a text such as `aigo-bridge 0.1.0 (inspect_ai 0.3.50)`."""
    if not isinstance(app_version, str) or not app_version.endswith(")") or "(snippets" in app_version:
        return None
    return app_version.rpartition("(")[2].rstrip(")").rpartition(" ")[2] or None


def _time(execution: Any, name: str) -> Any:
    value = execution.get(name) if isinstance(execution, Mapping) else None
    return value if isinstance(value, int | float) else None


def _revision(specification: Mapping[str, Any]) -> Any:
    """Return the commit of an imported log's run."""
    value: Any = specification.get("config")
    for name in ("inspect", "eval", "revision"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if digest_or_none(value) is not None else None


def read_provenance(file: Path) -> dict[str, Any]:
    """Read a provenance file, and check its digest.

    Raises:
        EvidenceError: the file is not a provenance file, is damaged or was modified.
    """
    try:
        with open_regular(file) as content:
            record = read_json(content.read(LARGEST))
    except FileNotFoundError as error:
        raise EvidenceError("the file does not exist", file=str(file), code=Code.BROKEN_PROVENANCE) from error
    except (OSError, ValueError, RecursionError) as error:
        raise EvidenceError(
            f"cannot be read: {error}", file=str(file), code=Code.BROKEN_PROVENANCE
        ) from error
    check_record(record, str(file))
    assert isinstance(record, dict)
    return record


def provenance_of(result: Path) -> dict[str, Any] | None:
    """Return the provenance next to a result; `None` if missing.

    Raises:
        EvidenceError: the file cannot be read, is damaged or was modified.
    """
    file = provenance_file(result)
    return read_provenance(file) if file.is_file() else None


def check_record(record: Any, file: str) -> None:
    """Raise an error for data that is not a valid provenance.

    Raises:
        EvidenceError: the data is not a provenance, or was modified after it was written.
    """
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        kind = record.get("format") if isinstance(record, dict) else None
        raise EvidenceError(
            f"found format {kind!r:.80}, expected {FORMAT!r}",
            file=file,
            path=("format",),
            code=Code.BROKEN_PROVENANCE,
        )
    content = {name: value for name, value in record.items() if name != "digest"}
    try:
        digest = canonical_digest(content)
    except ValueError as error:
        raise EvidenceError(str(error), file=file, code=Code.BROKEN_PROVENANCE) from error
    if record.get("digest") != digest:
        message = (
            f"was modified: its digest is {record.get('digest')!r:.20}, but its content has {digest!r:.20}"
        )
        raise EvidenceError(message, file=file, path=("digest",), code=Code.BROKEN_PROVENANCE)
    if not _is_sound(record):
        raise EvidenceError(
            "lacks the parts of a provenance", file=file, path=("result",), code=Code.BROKEN_PROVENANCE
        )


def _is_sound(record: Mapping[str, Any]) -> bool:
    result = record.get("result")
    if not isinstance(result, Mapping):
        return False
    lists = [result.get(name) for name in ("ids", "leaves", "parts")]
    texts = [result.get(name) for name in ("sha256", "root", "frame")]
    return (
        all(isinstance(items, list) and all(isinstance(item, str) for item in items) for items in lists)
        and len({len(items) for items in lists if isinstance(items, list)}) == 1
        and all(isinstance(text, str) for text in texts)
        and isinstance(record.get("data"), Mapping)
        and isinstance(record.get("logs"), list)
    )


PROVENANCE = Provenance(write_provenance, provenance_file, provenance_of)
