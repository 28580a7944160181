"""Manifest `shard.json` of a shard's folder, which shows a merge which shards belong together.

It is written when the shard starts and again when it ends. It is plain data: its content is never executed,
and its paths must not leave the folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.plan.shards import Shard
from aigo_bridge.process.temporary import locked
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.version import __version__

if TYPE_CHECKING:
    from aigo_bridge.evaluation.planning import Evaluation
    from aigo_bridge.plan.plan import TaskPlan

FILE = "shard.json"

LOCK = ".shard.lock"

FORMAT = 1
"""Format version, increased when the meaning of a field changes."""

MOST_BYTES = 64 << 20
"""Maximum size of a manifest in bytes. Manifests for thousands of specifications are smaller."""

Identity = tuple[str | None, str, int]
"""Identity of a plan within a run: evaluation of a run file, result, and number of the run."""

Status = Literal["started", "complete", "stopped"]
"""Status of a shard. `started`: it is running or was killed. `complete`: every sample was run, with or
without failures. `stopped`: it ended early and can be resumed."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class ShardJob:
    """Shard's part of one plan."""

    evaluation: str | None
    """Key of the evaluation of a run file; `None` for a single task."""
    key: str
    """Name of the result."""
    run: int
    """Run number of a repeated task, from 0."""
    digest: str
    """Checksum of the whole plan."""
    total: int
    """Number of rows of the whole plan."""
    trials: int
    models: Mapping[str, str]
    """Model names of the engine by AI GO model key (`""`: evaluated model)."""
    fingerprints: Mapping[str, str]
    log: str | None = None
    """Native log, relative to the shard's folder; `None` if missing, as for a shard without rows."""
    num_samples: int = 0
    """Number of samples in the log."""
    num_failed: int = 0
    """Number of failed samples."""
    num_failed_trials: int = 0
    """Number of failed trials."""
    error: str | None = None
    """Reason why the log is missing or incomplete."""

    @property
    def identity(self) -> Identity:
        """Return the identity of the job within the run."""
        return self.evaluation, self.key, self.run


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class ShardManifest:
    """Description of a shard, with its status and its files."""

    format: int
    number: int
    of: int
    status: Status
    engine: str
    versions: Mapping[str, str]
    """Versions of aigo-bridge and of the engine's packages."""
    limits: Mapping[str, int | float | None]
    """Limits for each sample."""
    is_task: bool
    """Whether the shard belongs to a single task. Otherwise it belongs to a run file or a benchmark."""
    benchmark: str | None = None
    """Engine benchmark as the user named it, `inspect:NAME`; `None` for AI GO tasks."""
    jobs: tuple[ShardJob, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 checksums by file in the folder, after the shard has ended."""

    @property
    def shard(self) -> Shard:
        """Return the number of the shard and the total."""
        return Shard(self.number, self.of)


_MANIFEST = TypeAdapter(ShardManifest)


def plan_identity(evaluation: Evaluation, plan: TaskPlan) -> Identity:
    """Return the identity of a plan within the run of its evaluation."""
    run = 0 if plan.specification is None else plan.specification.run
    return None if evaluation.is_task else evaluation.key, plan.name, run


def write_manifest(folder: Path, manifest: ShardManifest) -> None:
    """Write the manifest atomically.

    Raises:
        OSError: the file cannot be written.
    """
    with open_for_replacing(folder / FILE) as file:
        file.write(orjson.dumps(asdict(manifest), option=orjson.OPT_INDENT_2) + b"\n")


def read_manifest(folder: Path) -> ShardManifest:
    """Read the manifest of a shard's folder.

    Raises:
        EvidenceError: the manifest is missing or damaged.
    """
    path = folder / FILE
    try:
        with open_regular(path) as file:
            content = file.read(MOST_BYTES)
        raw: Any = orjson.loads(content)
    except (OSError, ValueError) as error:
        raise EvidenceError(
            f"the shard's manifest cannot be read: {error}", file=str(path), code=Code.DAMAGED_LOG
        ) from error
    if isinstance(raw, dict) and raw.get("format") != FORMAT:
        message = f"the manifest has format {raw.get('format')!r:.80}, this release reads format {FORMAT}"
        raise EvidenceError(message, file=str(path), code=Code.OTHER_RELEASE)
    try:
        manifest = _MANIFEST.validate_json(content, strict=True)
        _check(manifest)
    except (ValidationError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first is not None else str(error)
        message = f"the shard's manifest is damaged: {what}"
        raise EvidenceError(message, file=str(path), code=Code.DAMAGED_LOG) from error
    return manifest


def _numbers(job: ShardJob) -> tuple[int, ...]:
    return job.num_samples, job.num_failed, job.num_failed_trials


def _check(manifest: ShardManifest) -> None:
    """Refuse values of a damaged or malicious manifest."""
    if not 1 <= manifest.number <= manifest.of:
        raise ValueError(f"its shard is {manifest.number}/{manifest.of}")
    for name in [*manifest.files, *(job.log for job in manifest.jobs if job.log is not None)]:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\0" in name:
            raise ValueError(f"it names {name!r:.80}, which is not in its folder")
    for job in manifest.jobs:
        if job.total < 0 or job.trials < 1 or job.run < 0 or min(_numbers(job)) < 0:
            raise ValueError(f"its counts of {job.key!r:.80} are invalid")
    if len({job.identity for job in manifest.jobs}) < len(manifest.jobs):
        raise ValueError("it names a plan twice")


def versions_of(checks: Mapping[str, str]) -> dict[str, str]:
    """Return the versions that can influence a run's metrics."""
    return {"aigo-bridge": __version__, **checks}


def digests_in(folder: Path) -> dict[str, str]:
    """Return the checksums of all files in a shard's folder, including all log files of the engine."""
    return {
        path.relative_to(folder).as_posix(): digest_of(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.name != FILE and not _is_hidden(path, folder)
    }


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def digest_of(path: Path) -> str:
    """Return the SHA-256 checksum of a file.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


class BusyError(UsageError):
    """Error for an operation that another process is already doing."""


@contextmanager
def sole(lock: Path, what: str) -> Iterator[None]:
    """Lock a file, so that other processes cannot do the same.

    Args:
        lock: file to lock. It remains, and its content is not used.
        what: message for the process that comes second.

    Raises:
        BusyError: another process holds the lock.
    """
    with locked(lock) as is_ours:
        if not is_ours:
            raise BusyError(f"{what}: no file was written; wait until it ends, or choose another --out")
        yield
