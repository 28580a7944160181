"""The outputs of a case as one text that can be compared and read: its commands with what they printed, then every file they made."""

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
"""Times in names of files."""

_ENDS = re.compile(rf"_({ID})(?=\.)")
"""Ids in names of files."""

PROVENANCE = ".provenance.json"

FROM_PACKAGES = ("huggingface", "pandas", "ARROW:schema")
"""Metadata of tables that libraries write."""


class Outcome(NamedTuple):
    """What the commands of a case said, and the files of its folder before and after them."""

    folder: Path
    done: Sequence[Done]
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]


def outputs(case: Case, folder: Path, worker: Worker) -> str:
    """Run a case in a folder that is not there yet, and read what came of it."""
    put(case.files, folder)
    before = _contents(folder)
    done = worker.run(folder, case.commands)
    return read(case, Outcome(folder, done, before, _contents(folder)))


def read(case: Case, outcome: Outcome) -> str:
    """An outcome without what is chance in it."""
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
    """Files in the order in which they were written last."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    files.sort(key=lambda path: (path.stat().st_mtime_ns, path))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _without_chance(name: str) -> str:
    """A file's name without a time and an id: of two that are told apart by them alone, the earlier stays first."""
    return _ENDS.sub("_<id>", _NATIVE.sub("<time>", name))


def _names(folder: Path, made: list[str], steady: Steady) -> dict[str, str]:
    """Folders of this machine, and names of files with a time or an id in them."""
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
    """A file as text: what is packed unpacked, tables as rows, archives member by member."""
    suffix = Path(name).suffix
    if suffix == ".gz":
        yield name.removesuffix(suffix), gzip.decompress(content).decode("utf-8", "backslashreplace")
    elif suffix == ".zst":
        # In how many frames it is packed is no difference.
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
    """What a provenance says without digests, which follow from the result, and without what wrote it: the machine."""
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
    """Columns with their types, what stands beside them, and the rows."""
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
