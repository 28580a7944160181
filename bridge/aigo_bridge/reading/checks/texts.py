"""Checks of syntax and names inside texts: `<< config.x >>`, Jinja templates, Python snippets."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, TemplateError
from aigo_bridge.reading.checks.snippets import (
    Definition,
    PositionalCall,
    check_imports,
    check_signature,
    parsed,
    top_level,
)
from aigo_bridge.reading.nodes import shown
from aigo_bridge.snippets.snippet import OLD_METRICS, has_old_scores, metrics_function
from aigo_bridge.spec.base import Path
from aigo_bridge.templates import CompiledAdapter, SampleTemplate
from aigo_bridge.templates.config import position

_MARKER = re.compile(r"<<\s*(config|secrets)\.([^\W\d][\w\-]*)((?:\.[\w\-]+)*)\s*>>")

SAMPLE = frozenset({"sample"})
SOLVED = frozenset({"sample", "solver_output"})
JUDGED = SOLVED | {"messages", "model_output", "model_outputs", "input_prompt", "trace"}
FILTERED = SOLVED | {"scores"}
NEEDS_SOLVER = JUDGED - SAMPLE


def check_markers(text: str, path: Path, known: Collection[str], root: str = "config") -> Iterator[Issue]:
    """Yield markers such as `<< config.x >>` without a parameter."""
    if "<<" not in text:
        return
    for match in _MARKER.finditer(text):
        if match[1] != root or match[2] in known:
            continue
        line, column = position(text, match.start())
        close = difflib.get_close_matches(match[2], known, n=1)
        listed = ", ".join(sorted(known)) if known else "none"
        what = "parameter" if root == "config" else "secret"
        hint = f"did you mean '<< {root}.{close[0]} >>'?" if close else f"declared: {listed}"
        yield Issue(
            f"unknown {what} {match[2]!r}",
            line=line,
            column=column,
            path=path,
            hint=hint,
            code=Code.UNKNOWN_PLACEHOLDER,
        )


def marker_names(text: str) -> set[str]:
    """Return the parameters that a text uses."""
    return {match[2] for match in _MARKER.finditer(text) if match[1] == "config"} if "<<" in text else set()


def check_template(text: str, path: Path, visible: frozenset[str] | None = None) -> Iterator[Issue]:
    """Check the Jinja syntax of a template, and its names if the `visible` variables are known."""
    if "{" not in text:
        return
    plain = _plain_names(text)
    if plain is not None:
        for name, offset in plain if visible is not None else ():
            if visible is not None and name not in visible:
                yield _unknown_name(name, *position(text, offset), path, visible)
        return
    marked = _MARKER.search(text) is not None
    template = _template(_bound(text))
    if isinstance(template, tuple):
        for issue in template:
            yield _at(issue, path, marked)
        return
    if visible is None:
        return
    for reads in sorted(template.reads):
        name = reads[0]
        if name in visible or _PLACEHOLDER.fullmatch(name):
            continue
        line = template.line_of(reads)
        yield _unknown_name(name, line, column_of(text, line, name), path, visible)


def compiled_template(text: str) -> SampleTemplate | None:
    """Return a text without `<< config.x >>` as a template; `None` if it is invalid, which `check_template`
    reports.
    """
    template = _template(text)
    return template if isinstance(template, SampleTemplate) else None


_OPENING = re.compile(r"\{[{%#]")
_PLAIN = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)*\s*-?\}\}", re.ASCII)
_JINJA_WORDS = re.compile(r"\b(?:and|or|not|is|in|if|else|true|false|none|True|False|None)\b")


def _plain_names(text: str) -> list[tuple[str, int]] | None:
    """Return the names, with their offsets, of a template that only contains `{{ name.column }}`; otherwise
    `None`.

    Most templates have this form, and compiling one takes a hundred times as long.
    """
    names = []
    end = 0
    for opening in _OPENING.finditer(text):
        if opening.start() < end:
            return None
        match = _PLAIN.match(text, opening.start())
        if match is None or _JINJA_WORDS.search(match[0]) is not None:
            return None
        names.append((match[1], match.start(1)))
        end = match.end()
    return names


def check_adapter_template(text: str, path: Path) -> Iterator[Issue]:
    """Check the Jinja syntax of an adapter's template."""
    try:
        CompiledAdapter(text)
    except TemplateError as error:
        for issue in error.issues:
            yield _at(issue, path, marked=False)


def check_snippet(
    text: str, path: Path, function: str, call: PositionalCall | None = None
) -> Iterator[Issue]:
    """Check Python syntax, the called function, and its parameters (unless `call` is `None`)."""
    if _PATH_OF_CODE.fullmatch(text.strip()):
        message = f"found the path {shown(text.strip())}, expected Python code"
        yield Issue(
            message,
            path=path,
            hint=f"to insert the text of that file: !include {text.strip()}",
            code=Code.PATH_FOR_TEXT,
        )
        return
    marked = _MARKER.search(text) is not None
    code = _bound(text)
    names = _names(code)
    if isinstance(names, Issue):
        yield _at(names, path, marked)
        return
    yield from check_imports(parsed(code), code, path)
    if function == "compute_metrics" and metrics_function(code) == OLD_METRICS:
        yield Issue(
            f"{OLD_METRICS}(scores: list[dict]) is deprecated",
            path=path,
            hint="write compute_metrics(scores: list[SampleScore])",
            severity="warning",
            code=Code.OLD_FORM,
        )
    elif function not in names and not marked:
        close = difflib.get_close_matches(function, names, n=1)
        hint = f"{close[0]!r} has a similar name" if close else None
        yield Issue(
            f"the snippet does not define {function!r}", path=path, hint=hint, code=Code.MISSING_FUNCTION
        )
    elif function == "compute_scores" and has_old_scores(code):
        yield Issue(
            f"{function}({', '.join(_arguments(names[function][-1]))}) is deprecated",
            path=path,
            hint=f"write {function}(sample, solver_output)",
            severity="warning",
            code=Code.OLD_FORM,
        )
    if call is not None:
        yield from check_signature(code, path, function, call)


def _arguments(definition: Definition | None) -> list[str]:
    return [] if definition is None else [argument.arg for argument in definition.args.args]


def check_no_path(text: str, path: Path) -> Iterator[Issue]:
    """Check that a prompt is not the path of a text file, whose content was probably intended."""
    if _PATH_OF_TEXT.fullmatch(text.strip()):
        message = f"the text is the path {shown(text.strip())}, and the path itself will be sent"
        hint = f"to insert the text of that file: !include {text.strip()}"
        yield Issue(message, path=path, hint=hint, severity="warning", code=Code.PATH_FOR_TEXT)


def check_snippet_syntax(text: str, path: Path) -> Iterator[Issue]:
    """Check only the Python syntax."""
    names = _names(_bound(text))
    if isinstance(names, Issue):
        yield _at(names, path, marked=_MARKER.search(text) is not None)


_PATH_OF_CODE = re.compile(r"[^\s()=,;]+\.py")
_PATH_OF_TEXT = re.compile(r"[\w.~/\\-]+\.(?:md|txt|jinja2?|j2|py)")
_PLACEHOLDER = re.compile(r"config_\w*|secrets_\w*")


def _bound(text: str) -> str:
    """Return the text with each marker replaced by an identifier of equal length, to keep positions."""

    def identifier(match: re.Match[str]) -> str:
        lines = match[0].count("\n")
        name = re.sub(r"\W", "_", f"{match[1]}_{match[2]}")
        return name.ljust(len(match[0]) - lines, "_") + "\n" * lines

    return _MARKER.sub(identifier, text)


@lru_cache(maxsize=512)
def _template(text: str) -> SampleTemplate | tuple[Issue, ...]:
    try:
        return SampleTemplate(text)
    except TemplateError as error:
        return error.issues


@lru_cache(maxsize=512)
def _names(text: str) -> dict[str, tuple[Definition | None, ...]] | Issue:
    """Return the names at the top level of a module, or the reason why it is not valid Python."""
    try:
        return top_level(text)
    except SyntaxError as error:
        return Issue(
            f"not Python: {error.msg}",
            line=error.lineno or 1,
            column=max(error.offset or 1, 1),
            code=Code.NOT_PYTHON,
        )
    except (ValueError, RecursionError, MemoryError) as error:
        return Issue(f"not Python: {str(error) or 'nested too deep'}", line=1, column=1, code=Code.NOT_PYTHON)


def _at(issue: Issue, path: Path, marked: bool) -> Issue:
    """Return a syntax error with its position, which is uncertain in a text with markers."""
    place = (issue.line or 1, issue.column or 1)
    return Issue(
        issue.message,
        None,
        *place,
        path,
        issue.hint,
        severity="warning" if marked else "error",
        code=issue.code,
    )


def _unknown_name(
    name: str, line: int | None, column: int | None, path: Path, visible: frozenset[str]
) -> Issue:
    message = f"unknown name {name!r} in a template"
    return Issue(
        message, line=line, column=column, path=path, hint=_name_hint(name, visible), code=Code.UNKNOWN_NAME
    )


def column_of(text: str, line: int | None, name: str) -> int | None:
    """Return the 1-based column of the first use of a name in a line of a template."""
    if line is None:
        return None
    match = re.search(rf"\b{re.escape(name)}\b", text.split("\n")[line - 1])
    return match.start() + 1 if match else 1


def _name_hint(name: str, visible: frozenset[str]) -> str:
    if name == "model_input":
        return "deprecated: write 'messages', or columns of 'sample'"
    if name in NEEDS_SOLVER and "solver_output" not in visible:
        return "no solver output is available here, only 'sample'"
    close = difflib.get_close_matches(name, visible, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"available names: {', '.join(sorted(visible))}; write columns as {{{{ sample.{name} }}}}"
