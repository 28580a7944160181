"""Bundles: a result with all its evidence in one zip file. Equal contents give equal bytes.

```text
bundle.json       names, digests and roles of all members
result/           the result, its provenance and its attestations
log/              the engine log, with its folder structure
cassette/         the recorded calls of the run
task/             the task with all included files, and its rows (`rows.json`: digests of the rows)
report.html       the report of the result
```
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import orjson

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.process.temporary import temporary_folder
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.sources import ResultSource
from aigo_bridge.text.canonical_json import canonical_digest
from aigo_bridge.text.json_text import read_json
from aigo_bridge.version import __version__
from aigo_report.page.writing import write_report
from aigo_trust.provenance.definitions import digest_or_none
from aigo_trust.provenance.record import provenance_file, provenance_of
from aigo_trust.provenance.sigstore_bundles import bundle_file
from aigo_trust.provenance.statement import attestation_file
from aigo_trust.recording.tail import tail_of
from aigo_trust.verification.levels import Finding
from aigo_trust.verification.materials import Materials
from aigo_trust.verification.recordings import check_cassette

if TYPE_CHECKING:
    from aigo_bridge.plan.plan import TaskPlan

FORMAT = "aigo-bridge/bundle/v1"
MANIFEST = "bundle.json"
ROWS = "rows.json"
MOST_MEMBERS = 10_000
MOST_BYTES = 16 << 30
"""Maximum uncompressed size of all members in bytes."""
LARGEST_MANIFEST = 1 << 26
_CHUNK = 1 << 20
_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16


@dataclass(frozen=True)
class Contents:
    """Inputs of a bundle."""

    result: Path
    materials: Materials
    """Task, datasets and root folder."""
    log: Path | None = None
    cassette: Path | None = None
    with_data: bool = True
    """Whether to include the dataset rows; otherwise their digests are included."""


def write_bundle(contents: Contents, out: Path) -> list[str]:
    """Write a bundle, and return the names of its members.

    Raises:
        UsageError: a named file does not exist.
        EvidenceError: the result cannot be read.
        SpecError, DatasetError, UnsupportedPlanError: the task cannot be planned, or cannot be moved to
            another folder.
        OSError: the bundle cannot be written.
    """
    if not contents.result.is_file():
        raise UsageError(f"result {str(contents.result)!r} does not exist", code=Code.NOTHING_THERE)
    frame = LogReader(contents.result).frame()
    with temporary_folder("aigo-bundle-") as place:
        members = {f"result/{file.name}": file for file in _result_files(contents.result)}
        names: dict[str, Any] = {"result": f"result/{contents.result.name}", "log": None, "task": None}
        if contents.log is not None:
            log_members = _log_members(contents.log)
            names["log"] = next(iter(log_members))
            members |= log_members
        if contents.cassette is not None:
            names["cassette"] = f"cassette/{contents.cassette.name}"
            members[names["cassette"]] = _cassette(contents)
        if contents.materials.task is not None:
            plan = _task_plan(contents.result, contents.materials.task, frame, contents.materials)
            members |= _task_members(plan, place / "task", with_data=contents.with_data)
            names["task"] = "task"
        members |= _report_members(contents.result, place)
        _pack(out, members, {**names, "with_data": contents.with_data})
    return [MANIFEST, *sorted(members)]


def _result_files(result: Path) -> Iterator[Path]:
    yield result
    for file in (provenance_file(result), attestation_file(result), bundle_file(result)):
        if file.is_file():
            yield file


def _task_plan(result: Path, task: str, frame: TaskResultLog, materials: Materials) -> TaskPlan:
    """Return the plan with the rows of the run.

    Raises:
        UsageError: the dataset files are not named.
    """
    from aigo_trust.verification.user_plan import own_task

    own = own_task(task, result, frame, provenance_of(result), materials)
    if own.rows is None and own.elsewhere is not None:
        raise UsageError(own.elsewhere, code=Code.MISSING_ARGUMENT)
    return own.plan


def _cassette(contents: Contents) -> Path:
    """Return the cassette. It must belong to the result's run, because a bundle contains no other
    recording.
    """
    cassette = contents.cassette
    assert cassette is not None
    if not cassette.is_file():
        raise UsageError(f"cassette {str(cassette)!r} does not exist", code=Code.MISSING_FILE)
    check = check_cassette(cassette, provenance_of(contents.result))
    if check.findings:
        raise EvidenceError(str(check.findings[0]), file=str(cassette), code=Code.NOT_RECORDED)
    if tail_of(cassette).is_file():
        message = f"its last lines are in {tail_of(cassette).name}: the recording is incomplete"
        hint = "continue it with: aigo-bridge run … --resume --record FILE"
        raise EvidenceError(message, file=str(cassette), hint=hint, code=Code.NOT_RECORDED)
    return cassette


def _log_members(log: Path) -> dict[str, Path]:
    """Return the files of an engine log, with the main file first."""
    if not log.exists():
        raise UsageError(f"log {str(log)!r} does not exist", code=Code.NOTHING_THERE)
    if log.is_dir():
        raise UsageError(f"{str(log)!r} is a folder: name the log itself", code=Code.NOTHING_THERE)
    from aigo_bridge.engine.registry import logs_by_engine, native_files

    names = logs_by_engine([str(log)])
    files = [file.absolute() for name in names for file in native_files(name, log)]
    files = list(dict.fromkeys(files)) or [log.absolute()]
    base = Path(os.path.commonpath([file.parent for file in files]))
    return {f"log/{file.relative_to(base).as_posix()}": file for file in files}


def _report_members(result: Path, folder: Path) -> dict[str, Path]:
    write_report([ResultSource(result, result.name)], folder / "report.html")
    pages = sorted([*folder.glob("report*.html"), *folder.glob("report/*")])
    return {page.relative_to(folder).as_posix(): page for page in pages}


def report_findings(bundle: OpenBundle) -> Iterator[Finding]:
    """Yield a finding for each difference between the bundled report and the one of this release."""
    with temporary_folder("aigo-report-") as folder:
        try:
            members = _report_members(bundle.result, folder)
        except UsageError:  # problems of the result are reported by the result's own check
            yield Finding("a report of the result cannot be written", file="report.html")
            return
        expected = {name: _digest(file) for name, file in members.items()}
    files = [*bundle.folder.glob("report*.html"), *bundle.folder.glob("report/*")]
    pages = {page.relative_to(bundle.folder).as_posix(): _digest(page) for page in files if page.is_file()}
    for name in sorted(expected.keys() | pages.keys()):
        if expected.get(name) != pages.get(name):
            yield Finding("is not the report of the result", file=name)


def _task_members(plan: TaskPlan, folder: Path, *, with_data: bool) -> dict[str, Path]:
    from aigo_bridge.exporting.manifest import manifest_of
    from aigo_bridge.exporting.packing import pack

    manifest = manifest_of(plan, "task", "hosted", engine="", requirements=(), commands=())
    pack(plan, folder, manifest).write(folder)
    if not with_data:
        for file in folder.glob("samples*.jsonl"):
            file.unlink()
        rows = [
            {
                "id": sample.id,
                "sha256": digest_or_none(orjson.loads(orjson.dumps(dict(sample.data), default=str))),
            }
            for sample in plan.samples
        ]
        (folder / ROWS).write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"task/{file.relative_to(folder).as_posix()}": file for file in files}


def _pack(out: Path, members: Mapping[str, Path], names: Mapping[str, Any]) -> None:
    """Write the zip file: members sorted by name, without times, owners and comments."""
    digests = {name: _digest(members[name]) for name in sorted(members)}
    content = {"format": FORMAT, "release": __version__, **names, "members": digests}
    manifest = orjson.dumps({**content, "digest": canonical_digest(content)}, option=orjson.OPT_INDENT_2)
    with open_for_replacing(out, clean=False) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_entry(MANIFEST), manifest + b"\n")
        for name in digests:
            with (
                members[name].open("rb") as source,
                archive.open(_entry(name), "w", force_zip64=True) as target,
            ):
                shutil.copyfileobj(source, target, _CHUNK)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _MODE
    entry.create_system = 3
    return entry


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


# Reading bundles


@dataclass(frozen=True)
class OpenBundle:
    """Bundle unpacked into a folder."""

    folder: Path
    result: Path
    log: Path | None
    task: Path | None
    """Folder of the packed task."""
    rows: list[Any] | None
    """Digests of the rows; `None` if the bundle contains the rows."""
    findings: tuple[Finding, ...]
    """Members that differ from the manifest."""
    release: Any = None
    """Release of aigo-bridge that wrote the bundle."""
    cassette: Path | None = None
    """Recorded calls of the run."""


def is_bundle(path: Path) -> bool:
    """Return whether a file is a zip file."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def open_bundle(path: Path, folder: Path) -> OpenBundle:
    """Unpack a bundle into a folder. Paths outside the folder and contents above the size limit are rejected.

    Raises:
        EvidenceError: the file is not a bundle, or exceeds the limits of a bundle.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = _entries(path, archive)
            manifest = _manifest(path, archive)
            findings = [*_unpacked(archive, entries, manifest["members"], folder)]
    except (
        LogTooLargeError,
        zipfile.BadZipFile,
        OSError,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        raise EvidenceError(
            f"cannot be read as a bundle: {error}", file=str(path), code=Code.BROKEN_BUNDLE
        ) from error
    result = _inside(folder, manifest.get("result"))
    if result is None or not result.is_file():
        raise EvidenceError("the bundle does not contain a result", file=str(path), code=Code.BROKEN_BUNDLE)
    task = _inside(folder, manifest.get("task"))
    rows_file = None if task is None else task / ROWS
    rows = None
    if rows_file is not None and rows_file.is_file():
        rows = read_json(rows_file.read_bytes())
    return OpenBundle(
        folder,
        result,
        _inside(folder, manifest.get("log")),
        task,
        rows if isinstance(rows, list) else None,
        tuple(findings),
        manifest.get("release"),
        _inside(folder, manifest.get("cassette")),
    )


def _entries(path: Path, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    entries = archive.infolist()
    problem = None
    most = min(MOST_BYTES, DEFAULT_BOUNDS.most_unpacked(path.stat().st_size))
    if len(entries) > MOST_MEMBERS:
        problem = f"it has {len(entries):,} members, expected at most {MOST_MEMBERS:,}"
    elif sum(entry.file_size for entry in entries) > most:
        problem = f"its members have more than {most:,} bytes"
    elif len({entry.filename for entry in entries}) < len(entries):
        problem = "a member occurs twice"
    for entry in entries:
        DEFAULT_BOUNDS.check_member(entry.filename, entry.file_size, entry.compress_size)
        name = PurePosixPath(entry.filename)
        kind = entry.external_attr >> 28
        if (
            name.is_absolute()
            or ".." in name.parts
            or "\\" in entry.filename
            or ":" in entry.filename.split("/")[0]
        ):
            problem = f"member {entry.filename!r:.80} points outside the folder"
        elif kind not in (0, 8) or not entry.filename or entry.is_dir():
            problem = f"member {entry.filename!r:.80} is not a regular file"
    if problem is not None:
        raise EvidenceError(f"cannot be read as a bundle: {problem}", file=str(path), code=Code.BROKEN_BUNDLE)
    return entries


def _manifest(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        with archive.open(MANIFEST) as file:
            text = file.read(LARGEST_MANIFEST)
        DEFAULT_BOUNDS.check_document(MANIFEST, text)
        manifest = read_json(text)
    except KeyError as error:
        raise EvidenceError(
            f"not a bundle: {MANIFEST} is missing", file=str(path), code=Code.BROKEN_BUNDLE
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise EvidenceError(
            f"its {MANIFEST} does not have format {FORMAT}", file=str(path), code=Code.BROKEN_BUNDLE
        )
    content = {name: value for name, value in manifest.items() if name != "digest"}
    if canonical_digest(content) != manifest.get("digest") or not isinstance(manifest.get("members"), dict):
        raise EvidenceError(
            f"its {MANIFEST} was altered: its digest differs", file=str(path), code=Code.BROKEN_BUNDLE
        )
    return manifest


def _unpacked(
    archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo], members: Mapping[str, Any], folder: Path
) -> Iterator[Finding]:
    """Unpack the members listed in the manifest. Yield a finding for each member that differs from the
    manifest.
    """
    for entry in entries:
        if entry.filename == MANIFEST:
            continue
        if entry.filename not in members:
            yield Finding("was added to the bundle", file=entry.filename)
            continue
        target = folder / entry.filename
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        try:
            with archive.open(entry) as source, target.open("xb") as file:
                while chunk := source.read(_CHUNK):
                    size += len(chunk)
                    if size > entry.file_size:
                        raise ValueError(f"member {entry.filename!r} is larger than declared")
                    digest.update(chunk)
                    file.write(chunk)
        except zipfile.BadZipFile as error:
            yield Finding(f"cannot be unpacked: {error}", file=entry.filename)
            continue
        if members[entry.filename] != digest.hexdigest():
            yield Finding("is not the file that was bundled: its digest differs", file=entry.filename)
    for name in members.keys() - {entry.filename for entry in entries}:
        yield Finding("was removed from the bundle", file=name)


def _inside(folder: Path, name: Any) -> Path | None:
    if not isinstance(name, str) or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        return None
    place = folder / name
    return place if place.exists() else None


def bundled_materials(bundle: OpenBundle, materials: Materials) -> Materials:
    """Return the files for checking a bundle: its own contents, and the files that the user names."""
    log = None if bundle.log is None else str(bundle.log)
    return replace(materials, log=materials.log or log, replay=materials.replay or bundle.cassette)
