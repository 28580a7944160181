"""All output goes through the function that redacts secrets; other writers are listed here with a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.commands import REPOSITORY

ELSEWHERE = {
    "bridge/aigo_bridge/redaction/secrets.py": "the sink itself",
    "bridge/aigo_bridge/results/log_files.py": "writes through the sink",
    "bridge/aigo_bridge/exporting/folders.py": "exports are searched before they take their place",
    "bridge/aigo_bridge/exporting/manifest.py": "exports are searched before they take their place",
    "extras/aigo_formats/inspect_hub/exporting.py": "exports are searched before they take their place",
    "bridge/aigo_bridge/exporting/packing.py": "exports are searched before they take their place",
    "adapters/aigo_inspect/exporting/export.py": "exports are searched before they take their place",
    "adapters/aigo_inspect/exporting/native.py": "exports are searched before they take their place",
    "adapters/aigo_lighteval/exporting/export.py": "exports are searched before they take their place",
    "adapters/aigo_lighteval/exporting/native.py": "exports are searched before they take their place",
    "bridge/aigo_bridge/datasets/sources.py": "a dataset as it was downloaded, for the cache",
    "bridge/aigo_bridge/importing/result_tables.py": "logs are cleaned while they are read",
    "extras/aigo_scale/lake/files.py": "rows of logs that were cleaned while they were read",
    "adapters/aigo_inspect/importing/ranges.py": "samples of a log, which are cleaned while they are read",
    "bridge/aigo_bridge/exporting/evidence/logs.py": "attachments: contents of samples, which are cleaned before",
    "bridge/aigo_bridge/exporting/evidence/assembling.py": "texts go through the redaction of the export",
    "adapters/aigo_inspect/importing/writing.py": "logs are cleaned while they are read",
    "adapters/aigo_inspect/sandbox/environment.py": "files of the answer's own code, gone at the end of the sample",
    "adapters/aigo_inspect/sandbox/__init__.py": "a probe inside the sandbox",
    "bridge/aigo_bridge/projects/creating.py": "templates of this package, and names that the user gives",
    "bridge/aigo_bridge/sandbox/jail.py": "settings of the kernel",
    "bridge/aigo_bridge/sandbox/jailing.py": "pipes",
    "bridge/aigo_bridge/sandbox/keeper.py": "an archive that the next jail of the sample unpacks, gone at its end",
    "bridge/aigo_bridge/sandbox/workspace.py": "files of a row for its jail, gone at the end of the sample",
    "bridge/aigo_bridge/sandbox/levels.py": "settings of the kernel",
    "extras/aigo_editor/server.py": "the pipe to the editor",
    "extras/aigo_editor/worker.py": "the pipe to the server",
    "bridge/aigo_bridge/execution/permissions.py": "digests of tasks, in the user's own configuration",
    "extras/aigo_report/viewing/preparing.py": "blocks are cleaned before they are packed; copies of logs in a private folder, gone with the server",
    "extras/aigo_report/verbs/view.py": "the address for the browser, in a private folder, gone with the server",
    "adapters/aigo_inspect/importing/running.py": "a copy of a log for the import, in the caller's private folder",
    "adapters/aigo_inspect/logs/buffer.py": "a member of that copy",
    "adapters/aigo_inspect/running/codec.py": "numbers that were cleaned when they became JSON",
    "bridge/aigo_bridge/snippets/worker.py": "settings of the kernel",
    "extras/aigo_trust/provenance/envelope.py": "a new key, for its owner alone, where the user asks for one",
    "extras/aigo_scale/storage/mirror.py": "copies of files that went through the sink",
    "extras/aigo_trust/verification/bundling.py": "files as they are, whose digests have to stay; what is made is of the task",
}
"""Who opens files to write without the sink → why nothing secret gets there."""

_METHODS = frozenset({"write_text", "write_bytes"})
_OPENERS = frozenset({"open", "fdopen", "NamedTemporaryFile", "mkstemp"})


def writers(path: Path) -> Iterator[int]:
    """Return the lines of a module that open or write a file directly."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [
            argument.value
            for argument in (
                *node.args,
                *(keyword.value for keyword in node.keywords if keyword.arg == "mode"),
            )
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        ]
        opens = name in _OPENERS and any(
            set(mode) <= set("rwxabt+") and set(mode) & set("wxa+") for mode in modes
        )
        if name in _METHODS or name in {"NamedTemporaryFile", "mkstemp"} or opens:
            yield node.lineno


def test_every_writer_goes_through_the_sink() -> None:
    found = {
        path.relative_to(REPOSITORY).as_posix(): lines
        for folder in ("bridge", "adapters", "extras")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        if (lines := list(writers(path)))
    }

    assert {path: lines for path, lines in found.items() if path not in ELSEWHERE} == {}
    assert [path for path in ELSEWHERE if not (REPOSITORY / path).exists()] == []
