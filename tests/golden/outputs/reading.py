"""Outputs of a case as one readable text: its commands with their output, then every file that they wrote."""

from __future__ import annotations

import fnmatch
import gzip
import io
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import zstandard
from tests.golden.outputs.case import Case
from tests.golden.outputs.running import Done, Worker, put
from tests.golden.outputs.steady import ID, Steady
from tests.support.commands import REPOSITORY

_NATIVE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:[.]\d+|[+-]\d\d-\d\d)?)")
"""Times in file names."""

_ENDS = re.compile(rf"_({ID})(?=\.)")
"""Ids in file names."""

PROVENANCE = ".provenance.json"

FROM_PACKAGES = ("huggingface", "pandas", "ARROW:schema")
"""Table metadata written by libraries."""


class Outcome(NamedTuple):
    """Command output of a case, and the files of its folder before and after."""

    folder: Path
    done: Sequence[Done]
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]


def outputs(case: Case, folder: Path, worker: Worker) -> str:
    """Run a case in a new folder and read its outputs."""
    put(case.files, folder)
    before = _contents(folder)
    done = worker.run(folder, case.commands)
    return read(case, Outcome(folder, done, before, _contents(folder)))


def read(case: Case, outcome: Outcome) -> str:
    """Return an outcome without random values."""
    folder, done, before, after = outcome
    made = sorted(
        (name for name, content in after.items() if before.get(name) != content),
        key=_without_chance,
    )
    steady = Steady({}, ran=any(each.arguments[:1] in (("run",), ("score",)) for each in done))
    steady.names = _names(folder, made, steady)
    parts = [part for each in done for part in _command(each, steady)]
    parts += [f"=== gone: {name}\n" for name in sorted(set(before) - set(after))]
    for name in made:
        for part, text in _texts(case, name, after[name]):
            stands = steady.text(part, part)
            parts.append(f"=== {stands}\n{steady.text(stands, text)}")
            if not parts[-1].endswith("\n"):
                parts.append("\n(no newline at the end)\n")
    return "".join(parts)


def _contents(folder: Path) -> dict[str, bytes]:
    """Return files in the order of their last write."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    files.sort(key=lambda path: (path.stat().st_mtime_ns, path))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _without_chance(name: str) -> str:
    """Return a file name without time and id.

    Of two names that differ only in these, the earlier file is first.
    """
    return _ENDS.sub("_<id>", _NATIVE.sub("<time>", name))


def _names(folder: Path, made: list[str], steady: Steady) -> dict[str, str]:
    """Return folders of this machine, and file names with a time or an id."""
    names = {
        str(folder): "<folder>",
        str(folder.parent): "<parent>",
        str(REPOSITORY): "<repository>",
        sys.prefix: "<python>",
    }
    for name in made:
        for part in Path(name).parts:
            stands = _ENDS.sub(lambda found: "_" + steady.id(found[1]), _NATIVE.sub("<time>", part))
            if stands != part:
                names[part] = stands
    return dict(sorted(names.items(), key=lambda item: -len(item[0])))


def _command(done: Done, steady: Steady) -> Iterator[str]:
    line = " ".join(
        f"'{each}'" if re.search(r"[\s*'|$]", each) or not each else each for each in done.arguments
    )
    yield steady.text("arguments", f"$ aigo-bridge {line}\nexit {done.code}\n")
    for name, text in (("stdout", done.out), ("stderr", done.err)):
        if text:
            yield f"--- {name}\n{steady.text(name, text)}" + (
                "" if text.endswith("\n") else "\n(no newline at the end)\n"
            )


def _texts(case: Case, name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Return a file as text: archives unpacked member by member, tables as rows."""
    suffix = Path(name).suffix
    if suffix == ".gz":
        yield name.removesuffix(suffix), gzip.decompress(content).decode("utf-8", "backslashreplace")
    elif suffix == ".zst":
        # The number of compression frames is not compared.
        frames = zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True)
        yield name.removesuffix(suffix), frames.read().decode("utf-8", "backslashreplace")
    elif name.endswith(PROVENANCE):
        yield name, _provenance(content)
    elif suffix == ".parquet":
        yield name, _table(content)
    elif suffix == ".eval":
        yield from _members(case, name, content)
    else:
        yield name, content.decode("utf-8", "backslashreplace")


def _provenance(content: bytes) -> str:
    """Return a provenance without the machine and without digests, which follow from the result."""
    record = json.loads(content)
    run = record["run"]
    facts = {
        "made_by": [run["made_by"], run["engine"], run["provider"]],
        "models": run["models"],
        "asked": [[model["name"], model["calls"], model["answered_as"]] for model in run["asked"]],
        "samples": [record["result"]["samples"], record["result"]["samples_of_runs"], record["data"]["rows"]],
        "snippets": list(record["snippets"]),
        "prompts": list(record["prompts"]),
        "logs": sum(log["sha256"] is not None for log in record["logs"]),
        "options": record["options"],
    }
    return "".join(f"{name}: {json.dumps(fact, ensure_ascii=False)}\n" for name, fact in facts.items())


def _members(case: Case, name: str, content: bytes) -> Iterator[tuple[str, str]]:
    import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401  # Inspect's archives are packed with it

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        yield name, "".join(f"{member}\n" for member in archive.namelist())
        for member in archive.namelist():
            if any(fnmatch.fnmatch(member, pattern) for pattern in case.members):
                yield f"{name}!{member}", archive.read(member).decode("utf-8", "backslashreplace")


def _table(content: bytes) -> str:
    """Return the columns with types and metadata, and the rows."""
    import pyarrow.parquet  # type: ignore[import-untyped]  # has no types

    table = pyarrow.parquet.read_table(io.BytesIO(content))
    metadata: Mapping[bytes, bytes] = table.schema.metadata or {}
    lines = [f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in table.schema]
    lines += [
        json.dumps({key.decode(): value.decode()})
        for key, value in metadata.items()
        if key.decode() not in FROM_PACKAGES
    ]
    lines += [json.dumps(row, ensure_ascii=False, default=_other) for row in table.to_pylist()]
    return "".join(f"{line}\n" for line in lines)


def _other(value: Any) -> str:
    return f"{type(value).__name__} {value}"
