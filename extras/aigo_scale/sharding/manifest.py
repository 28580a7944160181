"""`shard.json`: what a shard's folder says of itself, so that a merge knows what belongs together.

It is written when the shard begins and again when it ends. It is data: nothing that stands in it is run, and
no path in it leaves its folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.plan.shards import Shard
from aigo_bridge.process.temporary import locked
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.version import __version__

FILE = "shard.json"

LOCK = ".shard.lock"

FORMAT = 1
"""Raised when a field changes its meaning."""

MOST_BYTES = 64 << 20
"""Of a manifest: those of a run file with thousands of specifications are smaller."""

Status = Literal["started", "complete", "stopped"]
"""`started`: it is running, or was killed; `complete`: every sample was run, well or not; `stopped`: it ended
early, and can be resumed."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class ShardJob:
    """One plan of which the shard has a part."""

    evaluation: str | None
    """Key of the evaluation of a run file; `None`: a task by itself."""
    key: str
    """Name of the result."""
    run: int
    """Number of the run of a repeated task, from 0."""
    digest: str
    """Of the whole plan."""
    total: int
    """Rows of the whole plan."""
    trials: int
    models: Mapping[str, str]
    """AI GO model key (`""` for the evaluated model) → the engine's name."""
    fingerprints: Mapping[str, str]
    log: str | None = None
    """The native log, from the shard's folder; `None`: there is none, as for a shard without rows."""
    num_samples: int = 0
    """Samples in it."""
    num_failed: int = 0
    """Those that failed."""
    num_failed_trials: int = 0
    """Failed trials."""
    error: str | None = None
    """Why there is no whole log."""

    @property
    def identity(self) -> tuple[str | None, str, int]:
        """What tells it apart from the other jobs of the run."""
        return self.evaluation, self.key, self.run


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a shard is a part of, and what became of it."""

    format: int
    number: int
    of: int
    status: Status
    engine: str
    versions: Mapping[str, str]
    """Of aigo-bridge and of what the engine needs."""
    limits: Mapping[str, int | float | None]
    """Limits on each sample."""
    is_task: bool
    """Whether it is of a task by itself; otherwise of a run file, or of benchmarks."""
    benchmark: str | None = None
    """The engine's own benchmark that it is of, as it was named, `inspect:NAME`; `None`: of AI GO tasks."""
    jobs: tuple[ShardJob, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """File in the folder → SHA-256, when it has ended."""

    @property
    def shard(self) -> Shard:
        """Which part it is."""
        return Shard(self.number, self.of)


_MANIFEST = TypeAdapter(Manifest)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write it, at once or not at all.

    Raises:
        OSError: it cannot be written.
    """
    with open_for_replacing(folder / FILE) as file:
        file.write(orjson.dumps(asdict(manifest), option=orjson.OPT_INDENT_2) + b"\n")


def read_manifest(folder: Path) -> Manifest:
    """What a shard's folder says of itself.

    Raises:
        EvidenceError: it has no manifest, or a damaged one.
    """
    path = folder / FILE
    try:
        with open_regular(path) as file:
            content = file.read(MOST_BYTES)
        raw: Any = orjson.loads(content)
    except (OSError, ValueError) as error:
        raise EvidenceError(
            [Issue(f"the shard's manifest cannot be read: {error}", file=str(path), code=Code.DAMAGED_LOG)]
        ) from error
    if isinstance(raw, dict) and raw.get("format") != FORMAT:
        message = f"the manifest has format {raw.get('format')!r:.80}, this release reads format {FORMAT}"
        raise EvidenceError([Issue(message, file=str(path), code=Code.OTHER_RELEASE)])
    try:
        manifest = _MANIFEST.validate_json(content, strict=True)
        _check(manifest)
    except (ValidationError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first is not None else str(error)
        message = f"the shard's manifest is damaged: {what}"
        raise EvidenceError([Issue(message, file=str(path), code=Code.DAMAGED_LOG)]) from error
    return manifest


def _numbers(job: ShardJob) -> tuple[int, ...]:
    return job.num_samples, job.num_failed, job.num_failed_trials


def _check(manifest: Manifest) -> None:
    """What a damaged or hostile manifest would lead us to."""
    if not 1 <= manifest.number <= manifest.of:
        raise ValueError(f"its shard is {manifest.number}/{manifest.of}")
    for name in [*manifest.files, *(job.log for job in manifest.jobs if job.log is not None)]:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\0" in name:
            raise ValueError(f"it names {name!r:.80}, which is not in its folder")
    for job in manifest.jobs:
        if job.total < 0 or job.trials < 1 or job.run < 0 or min(_numbers(job)) < 0:
            raise ValueError(f"its counts of {job.key!r:.80} are none")
    if len({job.identity for job in manifest.jobs}) < len(manifest.jobs):
        raise ValueError("it names a plan twice")


def versions_of(checks: Mapping[str, str]) -> dict[str, str]:
    """What the numbers of a run may depend on."""
    return {"aigo-bridge": __version__, **checks}


def digests_in(folder: Path) -> dict[str, str]:
    """The files of a shard's folder with their digests: its logs, whatever the engine makes of them."""
    return {
        path.relative_to(folder).as_posix(): digest_of(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.name != FILE and not _is_hidden(path, folder)
    }


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def digest_of(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


class BusyError(UsageError):
    """Somebody else does the same at this moment."""


@contextmanager
def sole(lock: Path, what: str) -> Iterator[None]:
    """Do something that nobody else does at the same time.

    Args:
        lock: the file that is locked; it stays, and says nothing by itself.
        what: told of who comes second.

    Raises:
        BusyError: somebody else does it.
    """
    with locked(lock) as is_ours:
        if not is_ours:
            raise BusyError(f"{what}: no file was written; wait until it ends, or choose another --out")
        yield
