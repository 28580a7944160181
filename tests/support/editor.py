"""An editor for tests: a real client of the protocol that drives `aigo-bridge lsp` over its standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import attrs
from lsprotocol import types as lsp
from pygls import uris
from pytest_lsp.client import LanguageClient, client_capabilities, make_test_lsp_client

SECONDS = 120
"""That anything may take, on a busy machine."""
CURSOR = "█"
"""Where the cursor is, in texts of tests."""


class Editor:
    """An editor with one project."""

    def __init__(self, client: LanguageClient, folder: Path):
        self.client = client
        self.root = folder
        """Folder that the editor has opened."""
        self.folder = folder
        """Folder of the project whose files a test names."""
        self._runner: asyncio.Runner | None = None
        self.server = lsp.ServerCapabilities()
        """What the server says that it can do."""
        self.versions: dict[str, int] = {}
        self.texts: dict[str, str] = {}

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run the steps of one test in a running editor."""
        assert self._runner is not None
        self._runner.run(work())

    @contextmanager
    def project(self) -> Iterator[Path]:
        """Use a new folder in the root as the project, and close its files at the end."""
        self.folder = Path(mkdtemp(dir=self.root))
        try:
            yield self.folder
        finally:
            for name in tuple(self.versions):
                self.close(name)

    def uri(self, name: str) -> str:
        return str(uris.from_fs_path(str(self.folder / name)))

    async def open(self, name: str, text: str | None = None) -> None:
        """Open a file, with a text that need not be the saved one."""
        text = (self.folder / name).read_text("utf-8") if text is None else text
        self.versions[name], self.texts[name] = 1, text
        item = lsp.TextDocumentItem(self.uri(name), "yaml", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def close(self, name: str) -> None:
        del self.versions[name], self.texts[name]
        closed = lsp.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(closed))

    async def type(self, name: str, text: str) -> None:
        """Change the text of an open file."""
        self.versions[name] += 1
        self.texts[name] = text
        document = lsp.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name))
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))

    async def until(self, name: str, is_so: Callable[[list[lsp.Diagnostic]], bool]) -> list[lsp.Diagnostic]:
        """The problems of a file, as soon as they are as awaited."""

        async with asyncio.timeout(SECONDS):
            while True:
                problems = self.client.diagnostics.get(self.uri(name))
                if problems is not None and is_so(list(problems)):
                    return list(problems)
                await asyncio.sleep(0.02)

    async def messages(self, name: str, part: str) -> list[str]:
        """The problems of a file, as soon as one holds this text."""
        found = await self.until(name, lambda problems: any(part in each.message for each in problems))
        return [each.message for each in found]

    async def ask(self, answer: Awaitable[Any]) -> Any:
        return await asyncio.wait_for(answer, SECONDS)

    def processor_seconds(self) -> float:
        """Return the CPU seconds of the server process without its workers."""
        server = self.client._server
        assert server is not None
        fields = Path(f"/proc/{server.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def request(self, method: str, params: dict[str, Any]) -> Awaitable[Any]:
        """Send a request that is not part of the protocol."""
        answer: Awaitable[Any] = self.client.protocol.send_request_async(method, params)  # type: ignore[no-untyped-call]
        return answer

    def place(self, name: str, marked: str) -> lsp.TextDocumentPositionParams:
        """Return the cursor position in a text, in UTF-16 (or the encoding agreed with `client`)."""
        before = marked[: marked.index(CURSOR)]
        line, column = before.count("\n"), before.rpartition("\n")[2]
        encoding = "utf-16-le"
        position = lsp.Position(line, len(column.encode(encoding)) // 2)
        return lsp.TextDocumentPositionParams(lsp.TextDocumentIdentifier(self.uri(name)), position)

    async def complete(self, name: str, marked: str) -> dict[str, lsp.CompletionItem]:
        """What is offered at the cursor, after the text around it was typed."""
        at = self.place(name, marked)
        await self.type(name, marked.replace(CURSOR, ""))
        params = lsp.CompletionParams(at.text_document, at.position)
        answer = await self.ask(self.client.text_document_completion_async(params))
        return {item.label: item for item in answer.items}

    async def hover(self, name: str, marked: str) -> str | None:
        at = self.place(name, marked)
        params = lsp.HoverParams(at.text_document, at.position)
        answer = await self.ask(self.client.text_document_hover_async(params))
        return None if answer is None else str(answer.contents.value)

    async def define(self, name: str, marked: str) -> list[tuple[str, int]]:
        """Files, and lines from 0, that the cursor leads to."""
        at = self.place(name, marked)
        params = lsp.DefinitionParams(at.text_document, at.position)
        answer = await self.ask(self.client.text_document_definition_async(params))
        return [(Path(str(uris.to_fs_path(each.uri))).name, each.range.start.line) for each in answer]

    def applied(self, edit: lsp.WorkspaceEdit) -> dict[str, str]:
        """Return the texts of files after a change, by name; columns are in UTF-16."""
        texts: dict[str, str] = {}
        for uri, edits in (edit.changes or {}).items():
            path = Path(str(uris.to_fs_path(uri)))
            name = path.relative_to(self.folder).as_posix()
            lines = self.texts.get(name, path.read_text("utf-8") if path.exists() else "").split("\n")
            for each in sorted(edits, key=lambda each: (-each.range.start.line, -each.range.start.character)):
                start, end = each.range.start, each.range.end
                last = end.line if end.line < len(lines) else len(lines) - 1
                head = lines[start.line].encode("utf-16-le")[: 2 * start.character].decode("utf-16-le")
                tail = lines[last].encode("utf-16-le")[2 * end.character :].decode("utf-16-le")
                lines[start.line : last + 1] = (head + each.new_text + tail).split("\n")
            texts[name] = "\n".join(lines)
        return texts


@asynccontextmanager
async def editor(
    folder: Path,
    *,
    like: str = "visual-studio-code",
    encodings: tuple[str, ...] | None = None,
    options: dict[str, Any] | None = None,
) -> AsyncIterator[Editor]:
    """An editor that has opened a folder, and says that it can what a known one can."""
    client = make_test_lsp_client()
    opened = Editor(client, folder)

    await client.start_io(str(Path(sys.executable).parent / "aigo-bridge"), "lsp", cwd=str(folder))
    capabilities = client_capabilities(like)
    if encodings is not None:
        general = capabilities.general or lsp.GeneralClientCapabilities()
        capabilities.general = attrs.evolve(general, position_encodings=list(encodings))
    params = lsp.InitializeParams(
        capabilities=capabilities,
        root_uri=str(uris.from_fs_path(str(folder))),
        initialization_options=options,
    )
    answer = await opened.ask(client.initialize_session(params))
    opened.server = answer.capabilities
    try:
        yield opened
    finally:
        await opened.ask(client.shutdown_session())
        await asyncio.wait_for(client.stop(), SECONDS)  # type: ignore[no-untyped-call]


@contextmanager
def running_editor(folder: Path, **settings: Any) -> Iterator[Editor]:
    """An editor for several tests. Each test uses its own project."""
    with asyncio.Runner() as runner:
        connected = editor(folder, **settings)
        opened = runner.run(connected.__aenter__())
        opened._runner = runner
        try:
            yield opened
        finally:
            runner.run(connected.__aexit__(None, None, None))


def in_editor(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the steps of one test."""
    asyncio.run(work())
