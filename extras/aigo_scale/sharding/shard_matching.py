"""Check that shards belong together before a merge. All problems are reported together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.plan.shards import Shard
from aigo_bridge.text.plurals import plural
from aigo_scale.sharding.manifest import FILE, Identity, ShardJob, ShardManifest, digest_of, read_manifest
from aigo_scale.sharding.running import differing

_MOST_NAMED = 20


@dataclass(frozen=True)
class FoundShard:
    """Shard on disk."""

    folder: Path
    manifest: ShardManifest

    @property
    def shard(self) -> Shard:
        """Return the number of the shard and the total."""
        return self.manifest.shard

    def job(self, identity: Identity) -> ShardJob:
        """Return the shard's part of one plan."""
        return next(job for job in self.manifest.jobs if job.identity == identity)


@dataclass(frozen=True)
class Shards:
    """Shards that belong together, in order."""

    found: tuple[FoundShard, ...]
    missing: tuple[int, ...] = ()
    """Numbers of shards that are missing or never ended."""
    stopped: tuple[int, ...] = ()
    """Numbers of shards that ended early."""

    @property
    def first(self) -> ShardManifest:
        """Return the first manifest, for values that all shards share."""
        return self.found[0].manifest

    @property
    def is_whole(self) -> bool:
        """Return whether all shards exist and are complete."""
        return not self.missing and not self.stopped


def number_of_shards(place: Path) -> int | None:
    """Return the total number of shards of a folder's run; `None` if the folder does not contain shards."""
    for folder in sorted(place.glob("shard-*-of-*")):
        number = folder.name.rpartition("-")[2]
        if number.isdigit():
            return int(number)
    return None


def find_shards(places: Sequence[Path], *, partial: bool = False) -> Shards:
    """Return the shards at some locations. Each is a shard folder or contains shard folders.

    Args:
        places: folders named by the user.
        partial: whether to accept missing and stopped shards.

    Raises:
        UsageError: a folder does not contain shards.
        EvidenceError: the shards are not parts of one run, one of them has changed since it ended, or
            shards are missing or duplicate. The error contains all problems.
    """
    folders = list(dict.fromkeys(folder.resolve() for place in places for folder in _folders(place)))
    problems: list[Issue] = []
    shards: list[FoundShard] = []
    for folder in folders:
        try:
            shards.append(FoundShard(folder, read_manifest(folder)))
        except EvidenceError as error:
            problems += error.issues
    shards.sort(key=lambda one: (one.manifest.of, one.manifest.number))
    for one in shards[1:]:
        differences = differing(shards[0].manifest, one.manifest)
        if differences:
            message = f"not a shard of the same run as {_name(shards[0].folder)}: {'; '.join(differences)}"
            problems.append(Issue(message, file=str(one.folder), code=Code.SHARDS_APART))
    if problems:
        raise EvidenceError(problems)
    problems += _doubled(shards)
    ended = [one for one in shards if one.manifest.status != "started"]
    numbers = {one.manifest.number for one in ended}
    missing = tuple(number for number in range(1, shards[0].manifest.of + 1) if number not in numbers)
    stopped = tuple(one.manifest.number for one in ended if one.manifest.status == "stopped")
    if not partial:
        problems += _incomplete(shards, missing)
    elif not ended:
        problems.append(Issue("no shard is complete, so there is nothing to merge", code=Code.SHARDS_MISSING))
    problems += [issue for one in ended for issue in _changed(one)]
    if problems:
        raise EvidenceError(problems)
    return Shards(tuple(ended), missing, stopped)


def _folders(place: Path) -> list[Path]:
    if (place / FILE).exists():
        return [place]
    inner = sorted(path.parent for path in place.glob(f"shard-*/{FILE}")) if place.is_dir() else []
    if inner:
        return inner
    what = "has no shard" if place.is_dir() else "is not a folder"
    begun = [path.name for path in place.glob("shard-*-of-*")] if place.is_dir() else []
    hint = f"; {', '.join(sorted(begun)[:_MOST_NAMED])} were never begun" if begun else ""
    raise UsageError(
        f"{str(place)!r} {what} ({FILE}){hint}; expected the --out of `aigo-bridge run --shard K/N`, or"
        " folders of single shards",
        code=Code.NO_LOGS,
    )


def _doubled(found: Sequence[FoundShard]) -> list[Issue]:
    folders: dict[int, list[Path]] = {}
    for one in found:
        folders.setdefault(one.manifest.number, []).append(one.folder)
    return [
        Issue(
            f"shard {number} is there {plural(len(places), 'time')}: {', '.join(map(str, places))}",
            hint="keep one of them",
            code=Code.SHARDS_APART,
        )
        for number, places in folders.items()
        if len(places) > 1
    ]


def _incomplete(found: Sequence[FoundShard], missing: Sequence[int]) -> list[Issue]:
    of = found[0].manifest.of
    never = sorted(set(missing) - {one.manifest.number for one in found})
    problems = []
    hint = "merge the existing shards with --partial"
    if never:
        problems.append(
            Issue(f"missing: {shard_numbers(never)} of {of}", hint=hint, code=Code.SHARDS_MISSING)
        )
    for one in found:
        number, job = one.manifest.number, next((job for job in one.manifest.jobs if job.error), None)
        again = f"continue it with `run --shard {number}/{of} --resume`; {hint}"
        if one.manifest.status == "started":
            message = f"shard {number} of {of} is incomplete: it is running, or was killed"
            problems.append(Issue(message, file=str(one.folder), hint=again, code=Code.SHARDS_MISSING))
        elif one.manifest.status == "stopped":
            reason = f" ({job.error})" if job is not None else ""
            message = f"shard {number} of {of} ended early{reason}"
            problems.append(Issue(message, file=str(one.folder), hint=again, code=Code.SHARDS_MISSING))
    return problems


def _changed(one: FoundShard) -> list[Issue]:
    """Return an issue for each file that has changed since the shard ended."""
    problems = []
    for name, digest in one.manifest.files.items():
        path = one.folder / name
        try:
            if digest_of(path) == digest:
                continue
            reason = "was cut off or changed since the shard ended"
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
        problems.append(Issue(f"shard {one.shard}: {name} {reason}", file=str(path), code=Code.DAMAGED_LOG))
    unnamed = [job.log for job in one.manifest.jobs if job.log not in (None, *one.manifest.files)]
    return problems + [
        Issue(
            f"shard {one.shard}: the digest of {name} is missing from the manifest",
            file=str(one.folder / FILE),
            code=Code.DAMAGED_LOG,
        )
        for name in unnamed
    ]


def shard_numbers(numbers: Sequence[int]) -> str:
    """Return shard numbers as text, for example `shards 3, 5–9`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(start) if start == end else f"{start}–{end}" for start, end in runs]
    more = f" and {len(shown) - _MOST_NAMED} more ranges" if len(shown) > _MOST_NAMED else ""
    return f"shard{'s' if len(numbers) > 1 else ''} {', '.join(shown[:_MOST_NAMED])}{more}"


def _name(folder: Path) -> str:
    return repr(str(folder))
