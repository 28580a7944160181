"""Session of an editor: open documents and their analysis. The protocol is in `server`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from aigo_bridge.access.opening import from_here
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.reading.loading import Unreadable, read_text, with_line_feeds
from aigo_bridge.reading.messages import annotation_at
from aigo_bridge.templates.config import config_names
from aigo_editor import fields, fixes, hover, parameters, places
from aigo_editor.analysis import Analysis, AnalysisStoppedError
from aigo_editor.completion import Knowledge, Suggestion, complete, wants_columns
from aigo_editor.context import NOTHING, Context, context_at, in_text
from aigo_editor.outline import Mapping as MappingNode
from aigo_editor.outline import Node, Scalar, data_of, outline
from aigo_editor.positions import Lines
from aigo_editor.project import Project, ProjectFile, Projects, too_large

YAML = (".yaml", ".yml")
MOST_WHOLES = 5
"""Maximum number of task or run files to check for an included file."""
PAUSE = 0.1
"""Seconds without a keystroke before a text is checked."""
LONGER_PAUSE = 0.3
"""Additional seconds before its rows are checked."""

Publish = Callable[[Path, Sequence[Issue]], None]
"""Function that publishes the issues of a file and replaces the previous ones."""


@dataclass(frozen=True)
class OpenDocument:
    """Open file with the editor's text."""

    file: Path
    """Path with links resolved."""
    text: str
    version: int | None = None

    @cached_property
    def lines(self) -> Lines:
        """Lines of the text."""
        return Lines(self.text)

    @cached_property
    def root(self) -> Node:
        """Structure of the text. A prompt or snippet file is a single scalar."""
        return outline(self.text) if self.is_yaml else Scalar(0, len(self.text), self.text, "|")

    @property
    def is_yaml(self) -> bool:
        """Whether the file is YAML, rather than an included prompt or snippet."""
        return self.file.suffix in YAML


@dataclass(frozen=True)
class Findings:
    """Issues of a file and its parts."""

    quick: tuple[Issue, ...] = ()
    """Issues from reading the file."""
    planned: tuple[Issue, ...] = ()
    """Issues from reading its rows. The text may have changed since."""


@dataclass
class Session:
    """Session of one editor."""

    analysis: Analysis
    publish: Publish
    documents: dict[Path, OpenDocument] = field(default_factory=dict)
    _last_good: dict[Path, OpenDocument] = field(default_factory=dict)
    """Last analysed version of documents that became too large. Other files may still refer to them."""
    _projects: Projects = field(default_factory=Projects)
    _findings: dict[Path, Findings] = field(default_factory=dict)
    """Issues by the checked file. The issues may be in other files."""
    _shown: set[Path] = field(default_factory=set)
    _checks: dict[Path, asyncio.Task[None]] = field(default_factory=dict)

    @property
    def texts(self) -> dict[str, str]:
        """Open texts by path."""
        documents = (*self._last_good.values(), *self.documents.values())
        return {str(document.file): document.text for document in documents}

    def put(self, file: Path, text: str, version: int | None = None) -> None:
        """Store an opened or changed text."""
        if file not in self.documents:
            self._projects.look_again()
        if (reason := too_large(text)) is not None:
            if (earlier := self.documents.pop(file, None)) is not None:
                self._last_good[file] = earlier
            if (check := self._checks.pop(file, None)) is not None:
                check.cancel()
            message = f"{reason}: not checked here"
            hint = f"aigo-bridge validate {from_here(file)}"
            issue = Issue(
                message, file=str(file), line=1, column=1, hint=hint, severity="warning", code=Code.TOO_MUCH
            )
            self._findings[file] = Findings((issue,))
            self._show()
            return
        self._last_good.pop(file, None)
        self.documents[file] = OpenDocument(file, with_line_feeds(text), version)
        self.check(file)

    def close(self, file: Path) -> None:
        """Remove a closed text, so that the saved file is used again."""
        self.documents.pop(file, None)
        self._last_good.pop(file, None)
        self._findings.pop(file, None)
        task = self._checks.pop(file, None)
        if task is not None:
            task.cancel()
        self._show()
        for opened in self.documents:
            self.check(opened)

    def check(self, file: Path) -> None:
        """Schedule a check. A running check of an older text is dropped."""
        earlier = self._checks.get(file)
        if earlier is not None:
            earlier.cancel()
        self._checks[file] = asyncio.get_running_loop().create_task(self._check(file))

    def check_all(self) -> None:
        """Check all open documents after files changed on disk."""
        self._projects.look_again()
        for file in self.documents:
            self.check(file)

    async def _check(self, file: Path) -> None:
        await asyncio.sleep(PAUSE)
        project = await self.project(file)
        sources = project.holders(file)[:MOST_WHOLES]
        self._forget_others(file, sources)
        for source in sources:
            issues = await self._problems(source.file, planned=False)
            earlier = self._findings.get(source.file, Findings())
            self._findings[source.file] = replace(earlier, quick=tuple(issues))
            self._show()
        await asyncio.sleep(LONGER_PAUSE)
        for source in sources:
            issues = await self._problems(source.file, planned=True)
            self._findings[source.file] = Findings(tuple(issues), tuple(issues))
            self._show()

    async def _problems(self, file: Path, *, planned: bool) -> list[Issue]:
        try:
            return await self.analysis.problems(file, self.texts, planned=planned)
        except AnalysisStoppedError as error:
            message = f"not checked: {error}"
            return [Issue(message, file=str(file), line=1, column=1, severity="warning", code=Code.TOO_MUCH)]

    def _forget_others(self, file: Path, sources: Sequence[ProjectFile]) -> None:
        """Clear the issues of a file that is not checked by itself any more."""
        if file in self._findings and file not in {source.file for source in sources}:
            del self._findings[file]
            self._show()

    def _show(self) -> None:
        by_file: dict[Path, dict[Issue, None]] = {checked: {} for checked in self._findings}
        for checked, findings in self._findings.items():
            for issue in (*findings.quick, *filter(self._still_there, findings.planned)):
                file = checked if issue.file is None else Path(os.path.realpath(issue.file))
                by_file.setdefault(file, {})[issue] = None
        for file in self._shown - by_file.keys():
            self.publish(file, ())
        for file, issues in by_file.items():
            self.publish(file, tuple(issues))
        self._shown = set(by_file)

    def _still_there(self, issue: Issue) -> bool:
        """Return whether the line of an issue is unchanged since the check."""
        document = None if issue.file is None else self.documents.get(Path(os.path.realpath(issue.file)))
        if document is None or issue.line is None or issue.source_line is None:
            return document is None
        return document.lines.line(issue.line - 1) == issue.source_line

    def issues_of(self, file: Path) -> Iterator[Issue]:
        """Yield the published issues of a file."""
        seen: dict[Issue, None] = {}
        for checked, findings in self._findings.items():
            for issue in (*findings.quick, *filter(self._still_there, findings.planned)):
                if file == (checked if issue.file is None else Path(os.path.realpath(issue.file))):
                    seen[issue] = None
        yield from seen

    async def project(self, file: Path) -> Project:
        """Return the project of a file."""
        return await asyncio.to_thread(self._projects.around, file, self.texts)

    def text_of(self, file: Path) -> str | None:
        """Return the current text of a file; `None` if it cannot be read."""
        document = self.documents.get(Path(os.path.realpath(file)))
        if document is not None:
            return document.text
        try:
            return read_text(file, str(file))
        except Unreadable:
            return None

    # Requests at a position

    async def completions(self, document: OpenDocument, offset: int) -> list[Suggestion]:
        """Return the completion suggestions at an offset."""
        project = await self.project(document.file)
        holder = next(iter(project.holders(document.file)), None)
        context = _context(document, offset, holder)
        if context.subject == "nothing":
            return []
        knowledge = self._knowledge(document, project, holder, context.data)
        if wants_columns(context):
            knowledge = await self._with_columns(knowledge, holder)
        return complete(context, knowledge)

    async def note(self, document: OpenDocument, offset: int) -> hover.Note | None:
        """Return the hover text at an offset; `None` if missing."""
        project = await self.project(document.file)
        holder = next(iter(project.holders(document.file)), None)
        knowledge = self._knowledge(document, project, holder, data_of(document.root))
        if hover.reads_sample(document.text, document.root, offset):
            knowledge = await self._with_columns(knowledge, holder)
        note = hover.note_at(document.file, document.text, document.root, offset, knowledge, project)
        if note is None or not note.has_prompt or holder is None or holder.kind != "task":
            return note
        prompt = await self.analysis.prompt(holder.file, self.texts, 1)
        return replace(note, text=f"{note.text}\n\n---\n\n{prompt}")

    async def declarations(self, document: OpenDocument, offset: int) -> list[places.Declaration]:
        """Return the declarations of the element at an offset."""
        project = await self.project(document.file)
        holder = next(iter(project.holders(document.file)), None)
        data_files = (await self._columns(holder)).get("files", {})
        return places.declarations(document.file, document.text, document.root, offset, project, data_files)

    async def parameter(self, document: OpenDocument, offset: int) -> tuple[parameters.Parameter, Any] | None:
        """Return the parameter at an offset and the span of its name."""
        project = await self.project(document.file)
        return parameters.parameter_at(document.file, document.text, offset, project)

    async def renamed(self, document: OpenDocument, offset: int, name: str) -> list[parameters.Replacement]:
        """Return the edits that rename the parameter at an offset.

        Raises:
            RenameError: the offset is not in a parameter, or the new name is not allowed.
        """
        project = await self.project(document.file)
        used = parameters.parameter_at(document.file, document.text, offset, project)
        if used is None:
            raise parameters.RenameError("only parameters (`<< config.NAME >>`) can be renamed")
        return parameters.renamed(used[0], name, project, self.text_of)

    def fixes(self, document: OpenDocument, start: int, end: int) -> list[tuple[Issue, fixes.Fix]]:
        """Return the fixes for issues between two offsets."""
        return [
            (issue, fix)
            for issue in self.issues_of(document.file)
            if _overlaps(document.lines, issue, start, end)
            for fix in fixes.fixes(issue, document.lines, document.root)
        ]

    async def upgraded(self, document: OpenDocument) -> str | None:
        """Return the document with deprecated syntax replaced; `None` if the syntax is current or it
        cannot be rewritten.
        """
        if not any(issue.code == Code.OLD_FORM for issue in self.issues_of(document.file)):
            return None
        text = await self.analysis.upgraded(document.file, self.texts)
        return None if text == document.text else text

    async def prompt(self, document: OpenDocument, row: int) -> str:
        """Return the prompt of a row as Markdown. The document is a task or a part of one."""
        project = await self.project(document.file)
        holder = next(iter(project.holders(document.file)), None)
        file = document.file if holder is None else holder.file
        return await self.analysis.prompt(file, self.texts, row)

    def prompt_place(self, document: OpenDocument) -> int | None:
        """Return the offset for the prompt preview of a task; `None` without prompts."""
        root = document.root
        if not isinstance(root, MappingNode):
            return None
        definition = root.get("definition")
        pairs = definition.pairs if isinstance(definition, MappingNode) else ()
        return next((pair.start for pair in pairs if pair.key == "solver"), None)

    def _knowledge(
        self, document: OpenDocument, project: Project, holder: ProjectFile | None, data: object
    ) -> Knowledge:
        return Knowledge(
            root=_root_of(document, project, data),
            is_part=document.is_yaml and fields.kind_of(data, document.file) is None,
            parameters=parameters.visible(document.file, project),
            task_parameters={
                entity.key: parameters.declared(project.sources[entity.file])
                for entity in project.entities("task")
            },
            models=_keys(project, "model"),
            datasets=_keys(project, "dataset"),
            tasks=_keys(project, "task"),
            folder=document.file.parent,
            project=project.folder,
        )

    async def _with_columns(self, knowledge: Knowledge, holder: ProjectFile | None) -> Knowledge:
        columns = await self._columns(holder)
        return replace(knowledge, columns=columns.get("values", {}), nested=columns.get("nested", {}))

    async def _columns(self, holder: ProjectFile | None) -> dict[str, Any]:
        keys = dataset_keys(holder)
        if holder is None or not keys:
            return {}
        return await self.analysis.columns(holder.file, self.texts, keys)


def _context(document: OpenDocument, offset: int, holder: ProjectFile | None) -> Context:
    if document.is_yaml:
        return context_at(document.text, offset)
    if holder is None:
        return NOTHING
    return in_text(document.text[:offset], offset, (), holder.data) or NOTHING


def _root_of(document: OpenDocument, project: Project, data: object) -> Any:
    """Return the class of a document, from its own kind or from the files that include it."""
    kind = fields.kind_of(data, document.file)
    if kind is not None:
        return fields.root_of_kind(kind)
    for owner, reference in project.owners(document.file):
        if not reference.is_text:
            root = annotation_at(_root_of_source(owner, project), reference.path, owner.data)[0]
            if root is not None:
                return root
    return fields.root_of_part(data) or fields.root_of_kind(None)


def _root_of_source(source: ProjectFile, project: Project) -> Any:
    return fields.root_of_kind(source.kind) if source.kind else fields.root_of_part(source.data)


def _keys(project: Project, kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({(entity.key, entity.title) for entity in project.entities(kind)}))


def dataset_keys(source: ProjectFile | None) -> list[str]:
    """Return the keys of a task's datasets, with parameter defaults filled in."""
    data = source.data if source is not None else None
    definition = data.get("definition") if isinstance(data, dict) else None
    dataset = definition.get("dataset") if isinstance(definition, dict) else None
    if not isinstance(dataset, dict) or dataset.get("source") == "task_result" or source is None:
        return []
    listed = dataset.get("keys")
    written = [dataset.get("key"), *(listed if isinstance(listed, list) else ())]
    defaults = {one.key: one.fields.get("default_value", "") for one in parameters.declared(source)}
    keys = (_bound(key, defaults) for key in written if isinstance(key, str))
    return [key for key in keys if key]


def _bound(key: str, defaults: Mapping[str, str]) -> str:
    names = config_names(key)
    return defaults.get(names[0], "") if names else key


def _overlaps(lines: Lines, issue: Issue, start: int, end: int) -> bool:
    span = lines.span_of(issue)
    return span.start <= end and start <= span.end
