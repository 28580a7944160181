"""Language server on standard input and output.

Reference: Language Server Protocol 3.17. Documents are sent as a whole. For partial changes, pygls would
split lines as Python does, but the protocol has only three line ends.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from aigo_bridge.errors import Issue
from aigo_bridge.version import __version__
from aigo_editor.analysis import Analysis
from aigo_editor.completion import Suggestion, What
from aigo_editor.fixes import Fix, words_of
from aigo_editor.parameters import RenameError, Replacement
from aigo_editor.positions import Lines, TextRange, Unit
from aigo_editor.session import OpenDocument, Session

NAME = "aigo-bridge"
SHOW_PROMPT = "aigoBridge.showPrompt"
"""Command of the editor extension that shows the prompt of a row, given a URI and a row number."""
PROMPT = "aigoBridge/prompt"
"""Custom request of aigo-bridge: `{uri, row}` → `{markdown}`."""

_TRIGGERS = (".", "<", "/", '"', "'", " ", ":", "|")
_KINDS: dict[What, lsp.CompletionItemKind] = {
    "key": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.EnumMember,
    "parameter": lsp.CompletionItemKind.Variable,
    "column": lsp.CompletionItemKind.Field,
    "entity": lsp.CompletionItemKind.Reference,
    "variable": lsp.CompletionItemKind.Variable,
    "filter": lsp.CompletionItemKind.Function,
    "file": lsp.CompletionItemKind.File,
}


def serve() -> None:
    """Serve one editor until it sends `exit` or standard input ends."""
    # Printed text must not mix with protocol messages.
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        # Loaded objects stay in memory. A garbage collection over them takes 0.1 s and would delay typing.
        gc.collect()
        gc.freeze()
        create().start_io(sys.stdin.buffer, output)


class BridgeServer(LanguageServer):
    """Language server with the session of one editor."""

    def __init__(self) -> None:
        super().__init__(NAME, __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.uris: dict[Path, str] = {}
        """URI that the editor uses for each file."""
        self.has_prompts = False
        """Whether the editor supports the command for prompt previews."""
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """Session of the editor, available after its initialize request."""
        if self._session is None:
            root = self.workspace.root_path
            folder = Path(root) if root and Path(root).is_dir() else Path.cwd()
            self._session = Session(Analysis.of(folder), self.publish)
        return self._session

    @property
    def unit(self) -> Unit:
        """Column unit negotiated with the editor."""
        encoding = self.workspace.position_encoding
        return cast("Unit", getattr(encoding, "value", encoding) or "utf-16")

    def file_of(self, uri: str) -> Path | None:
        """Return the path of a document; `None` for an unsaved document."""
        path = uris.to_fs_path(uri) if uri.startswith("file:") else None
        if path is None:
            return None
        file = Path(os.path.realpath(path))
        self.uris[file] = uri
        return file

    def uri_of(self, file: Path) -> str:
        """Return the editor's URI of a file."""
        real = Path(os.path.realpath(file))
        return self.uris.get(real) or str(uris.from_fs_path(str(real)))

    def document(self, uri: str) -> OpenDocument | None:
        """Return an open document that aigo-bridge supports."""
        file = self.file_of(uri)
        return None if file is None else self.session.documents.get(file)

    def lines_of(self, file: Path) -> Lines:
        """Return the current lines of a file."""
        document = self.session.documents.get(Path(os.path.realpath(file)))
        return document.lines if document is not None else Lines(self.session.text_of(file) or "")

    def range_of(self, lines: Lines, span: TextRange) -> lsp.Range:
        """Convert a span to a range in the editor's units."""
        start, end = lines.place(span.start, self.unit), lines.place(span.end, self.unit)
        return lsp.Range(lsp.Position(*start), lsp.Position(*end))

    def offset_of(self, document: OpenDocument, position: lsp.Position) -> int:
        """Convert an editor position to an offset."""
        return document.lines.offset(position.line, position.character, self.unit)

    def publish(self, file: Path, issues: Sequence[Issue]) -> None:
        """Publish the issues of a file. They replace the previous ones."""
        document = self.session.documents.get(file)
        diagnostics = [self._diagnostic(issue, document) for issue in issues]
        version = None if document is None else document.version
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(self.uri_of(file), diagnostics, version)
        )

    def _diagnostic(self, issue: Issue, document: OpenDocument | None) -> lsp.Diagnostic:
        if document is not None:
            place = self.range_of(document.lines, document.lines.span_of(issue))
        else:  # the file is not open, so the line comes from the issue
            number = (issue.line or 1) - 1
            line = Lines((issue.source_line or "").replace("\n", " "))
            span = line.span_of(replace(issue, line=1))
            inside = self.range_of(line, span)
            place = lsp.Range(
                lsp.Position(number, inside.start.character), lsp.Position(number, inside.end.character)
            )
        severity = (
            lsp.DiagnosticSeverity.Error if issue.severity == "error" else lsp.DiagnosticSeverity.Warning
        )
        return lsp.Diagnostic(place, words_of(issue), severity, code=issue.code, source=NAME)

    def item(self, suggestion: Suggestion, number: int, lines: Lines) -> lsp.CompletionItem:
        """Convert a suggestion to a completion item that keeps our order."""
        rank = f"{0 if suggestion.is_urgent else 1}{number:04}"
        edit = lsp.TextEdit(self.range_of(lines, suggestion.replaced), suggestion.text)
        notes = lsp.MarkupContent(lsp.MarkupKind.Markdown, suggestion.notes) if suggestion.notes else None
        return lsp.CompletionItem(
            label=suggestion.label,
            kind=_KINDS[suggestion.what],
            detail=suggestion.detail or None,
            documentation=notes,
            sort_text=rank,
            filter_text=suggestion.label,
            text_edit=edit,
        )

    def workspace_edit(self, edits: Sequence[Replacement]) -> lsp.WorkspaceEdit:
        """Convert edits to a workspace edit."""
        changes: dict[str, list[lsp.TextEdit]] = {}
        for edit in edits:
            place = self.range_of(self.lines_of(edit.file), edit.span)
            changes.setdefault(self.uri_of(edit.file), []).append(lsp.TextEdit(place, edit.text))
        return lsp.WorkspaceEdit(changes=changes)

    def action(self, document: OpenDocument, issue: Issue, fix: Fix) -> lsp.CodeAction:
        """Convert a fix to a code action."""
        return lsp.CodeAction(
            fix.title,
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=[self._diagnostic(issue, document)],
            edit=self.workspace_edit([Replacement(document.file, fix.span, fix.text)]),
            is_preferred=True,
        )


def create() -> BridgeServer:
    """Return a server that is ready to start."""
    server = BridgeServer()
    _documents(server)
    _questions(server)
    _changes(server)
    return server


def _documents(server: BridgeServer) -> None:
    """Register the document notifications."""

    @server.feature(lsp.INITIALIZED)
    async def initialized(params: lsp.InitializedParams) -> None:
        await server.session.analysis.start()

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        options = params.initialization_options
        wanted = options.get("prompts") if isinstance(options, dict) else getattr(options, "prompts", False)
        server.has_prompts = bool(wanted)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        if (file := server.file_of(item.uri)) is not None:
            server.session.put(file, item.text, item.version)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        if (file := server.file_of(params.text_document.uri)) is not None:
            text = server.workspace.get_text_document(params.text_document.uri).source
            server.session.put(file, text, params.text_document.version)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        server.session.check_all()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def watched(params: lsp.DidChangeWatchedFilesParams) -> None:
        server.session.check_all()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        if (file := server.file_of(params.text_document.uri)) is not None:
            server.session.close(file)

    @server.feature(lsp.SHUTDOWN)
    async def shutdown(params: Any) -> None:
        await server.session.analysis.stop()


def _questions(server: BridgeServer) -> None:
    """Register the requests that read documents."""

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=_TRIGGERS))
    async def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        document = server.document(params.text_document.uri)
        if document is None:
            return lsp.CompletionList(is_incomplete=False, items=[])
        offset = server.offset_of(document, params.position)
        suggestions = await server.session.completions(document, offset)
        items = [server.item(one, number, document.lines) for number, one in enumerate(suggestions)]
        return lsp.CompletionList(is_incomplete=False, items=items)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        note = await server.session.note(document, server.offset_of(document, params.position))
        if note is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, note.text)
        return lsp.Hover(content, server.range_of(document.lines, note.span))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def define(params: lsp.DefinitionParams) -> list[lsp.Location]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        offset = server.offset_of(document, params.position)
        return [
            lsp.Location(server.uri_of(place.file), server.range_of(server.lines_of(place.file), place.span))
            for place in await server.session.declarations(document, offset)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions())
    async def lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        document = server.document(params.text_document.uri)
        place = None if document is None else server.session.prompt_place(document)
        if document is None or place is None or not server.has_prompts:
            return []
        command = lsp.Command("prompt of row 1", SHOW_PROMPT, arguments=[params.text_document.uri, 1])
        return [lsp.CodeLens(server.range_of(document.lines, TextRange(place, place)), command)]

    @server.feature(PROMPT)
    async def prompt(params: Any) -> dict[str, str]:
        document = server.document(str(params.uri))
        if document is None:
            return {"markdown": "The file is not open."}
        return {"markdown": await server.session.prompt(document, int(params.row))}


def _changes(server: BridgeServer) -> None:
    """Register the requests that change documents."""

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    async def renameable(params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        used = await server.session.parameter(document, server.offset_of(document, params.position))
        if used is None:
            return None
        return lsp.PrepareRenamePlaceholder(server.range_of(document.lines, used[1]), used[0].key)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        offset = server.offset_of(document, params.position)
        try:
            return server.workspace_edit(await server.session.renamed(document, offset, params.new_name))
        except RenameError as error:
            raise JsonRpcInvalidParams(str(error)) from error

    kinds = [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=kinds))
    async def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        start = server.offset_of(document, params.range.start)
        end = server.offset_of(document, params.range.end)
        fixes = [
            server.action(document, issue, fix) for issue, fix in server.session.fixes(document, start, end)
        ]
        text = await server.session.upgraded(document)
        if text is not None:
            edit = server.workspace_edit([Replacement(document.file, TextRange(0, len(document.text)), text)])
            title = "Replace deprecated syntax"
            fixes.append(lsp.CodeAction(title, kind=lsp.CodeActionKind.SourceFixAll, edit=edit))
        return fixes
