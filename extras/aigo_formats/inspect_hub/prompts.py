"""Messages of Inspect's solvers as templates over a row.

Inspect's templates use `str.format`. `{prompt}` is the question so far, and other names are solver parameters
or sample metadata. An unknown name, or one without a value, remains as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from aigo_formats.definitions import ConvertedParts, KeyPath

Json = dict[str, Any]

COT = r"""
{prompt}

Before answering, reason in a step-by-step manner as to get the right answer. Provide your answer at the end on its own line in the form "ANSWER: $ANSWER" (without quotes) where $ANSWER is the answer to the question.
"""  # noqa: E501  # same text as in Inspect
"""Template of `chain_of_thought`."""

_CHOICE = """Answer the following multiple choice question{several}. The {where} of your response should be of the following format: 'ANSWER: ${letters}' (without quotes) where {letters} is {one} of {{letters}}.{think}

{{question}}

{{choices}}"""  # noqa: E501  # same text as in Inspect


def choice_template(*, cot: bool, multiple_correct: bool) -> str:
    """Return the default template of `multiple_choice`."""
    return _CHOICE.format(
        several=" where multiple answers may be correct" if multiple_correct else "",
        where="last line" if cot else "entire content",
        letters="LETTERS" if multiple_correct else "LETTER",
        one="one or more" if multiple_correct else "one",
        think=" Think step by step before answering." if cot else "",
    )


_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S*\Z|data:\S*\Z")
_FILE = re.compile(r"[^\s{}]+\.(?:txt|md|jinja2?|prompt)\Z", re.IGNORECASE)
"""Templates that Inspect may read from a file or address."""
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
ANSWERING = frozenset({"generate", "multiple_choice"})
_LETTER = "{{ 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[loop.index0] if loop.index0 < 26 else loop.index0 - 25 }}"


class FormatError(ValueError):
    """Error for a template that AI GO cannot express. The message contains the reason."""


@dataclass
class PromptMessages:
    """Messages before the answer."""

    messages: list[Json] = field(default_factory=list)
    """Roles, and contents as AI GO templates."""
    settings: list[str] = field(default_factory=list)
    """Generation settings of the solvers."""
    choosing: Json | None = None
    """Arguments of `multiple_choice`; `None` if it does not run."""


def conversation_of(parts: ConvertedParts, task: Json, path: KeyPath) -> PromptMessages:
    """Return the messages of an entry's solvers. Parts that cannot be expressed are recorded.

    Args:
        parts: recorder of problems.
        task: a checked entry.
        path: path of the entry.
    """
    columns = task["field_spec"]
    talk = PromptMessages([{"role": "user", "content": column_text(columns.get("input", "input"))}])
    solvers = task["solvers"]
    for number, solver in enumerate(solvers):
        at = (*path, "solvers", number)
        if number and solvers[number - 1]["name"] in ANSWERING:
            parts.refuse(at, f"{solver['name']!r} runs after the answer, so it may call the model again")
            return talk
        try:
            _take(parts, talk, solver, columns, at)
        except FormatError as error:
            parts.refuse((*at, "args", "template"), f"{solver['name']!r}: {error}")
    if solvers and solvers[-1]["name"] not in ANSWERING:
        parts.refuse(
            (*path, "solvers"), "no solver calls the model: neither 'generate' nor 'multiple_choice'"
        )
    for message in talk.messages:
        message["content"] = _closed(message["content"])
    return talk


def _take(parts: ConvertedParts, talk: PromptMessages, solver: Json, columns: Json, at: KeyPath) -> None:
    name, arguments = solver["name"], solver["args"]
    metadata = frozenset(columns.get("metadata", ()))
    if name in ("use_tools", "self_critique"):
        parts.refuse(at, f"{name!r} is more than one call with a fixed prompt")
    elif name == "generate":
        talk.settings += [
            key for key, value in arguments.items() if key != "tool_calls" and value not in (None, False)
        ]
    elif name == "multiple_choice":
        _choose(parts, talk, arguments, columns, at)
    else:
        template = arguments.get("template", COT if name == "chain_of_thought" else None)
        if not isinstance(template, str):
            raise FormatError(f"found {template!r}, expected a text")
        parameters = {key: value for key, value in arguments.items() if key != "template"}
        if name == "chain_of_thought":
            if parameters:
                parts.refuse((*at, "args"), f"'chain_of_thought': unknown argument {min(parameters)!r}")
            parameters, metadata = {}, frozenset()
        if name in ("prompt_template", "chain_of_thought"):
            user = next(message for message in reversed(talk.messages) if message["role"] == "user")
            parameters.pop("prompt", None)
            user["content"] = formatted(
                template, parameters, metadata - {"prompt"}, {"prompt": user["content"]}
            )
            return
        message = formatted(template, parameters, metadata, {})
        if name == "user_message":
            talk.messages.append({"role": "user", "content": message})
            return
        systems = sum(turn["role"] == "system" for turn in talk.messages)
        talk.messages.insert(systems, {"role": "system", "content": message})


def _choose(parts: ConvertedParts, talk: PromptMessages, arguments: Json, columns: Json, at: KeyPath) -> None:
    talk.choosing = {key: arguments[key] for key in ("cot", "multiple_correct") if arguments.get(key)}
    if arguments.get("max_tokens"):
        talk.settings.append("max_tokens")
    if arguments.get("shuffle"):
        parts.lose(
            (*at, "args", "shuffle"),
            "choices are shuffled differently in each run; here they keep their order",
        )
    if unknown := sorted(arguments.keys() - {"template", "cot", "multiple_correct", "max_tokens", "shuffle"}):
        parts.refuse((*at, "args", unknown[0]), f"'multiple_choice': unknown argument {unknown[0]!r}")
    if "choices" not in columns:
        parts.refuse(at, "'multiple_choice' needs 'choices' in 'field_spec'")
        return
    template = arguments.get("template")
    if template is None or template == "":
        template = choice_template(
            cot=bool(arguments.get("cot")), multiple_correct=bool(arguments.get("multiple_correct"))
        )
    if not isinstance(template, str) or "{question}" not in template or "{choices}" not in template:
        raise FormatError("Inspect requires '{question}' and '{choices}' in the template")
    choices = choices_of(columns)
    loop = f"{{% for choice in {choices} %}}"
    listed = f"{loop}{_LETTER}) {{{{ choice }}}}{{{{ '\\n' if not loop.last }}}}{{% endfor %}}"
    letters = f"{loop}{_LETTER}{{{{ ',' if not loop.last }}}}{{% endfor %}}"
    user = next(message for message in reversed(talk.messages) if message["role"] == "user")
    values = {"question": user["content"], "choices": listed, "letters": letters}
    user["content"] = formatted(template, {}, frozenset(), values, strict=True)


def choices_of(columns: Json) -> str:
    """Return an expression for the choices of a row."""
    choices = columns["choices"]
    if isinstance(choices, list):
        return f"[{', '.join(map(column, choices))}]"
    return column(choices)


def column(name: str) -> str:
    """Return an expression for a column's value."""
    return (
        f"sample.{name}"
        if _NAME.match(name) and name.isascii()
        else f"sample[{json.dumps(name, ensure_ascii=False)}]"
    )


def column_text(name: str) -> str:
    """Return a template that prints a column."""
    return f"{{{{ {column(name)} }}}}"


def formatted(
    template: str,
    parameters: Mapping[str, Any],
    metadata: frozenset[str],
    texts: Mapping[str, str],
    *,
    strict: bool = False,
) -> str:
    """Convert a `str.format` template to an AI GO template.

    Args:
        template: Inspect's template.
        parameters: constants by name.
        metadata: columns that the template may use.
        texts: AI GO templates that replace names.
        strict: whether an unknown name is an error instead of text.

    Raises:
        FormatError: the template cannot be expressed.
    """
    if _ADDRESS.match(template) or _FILE.match(template):
        raise FormatError("Inspect may read the template from another file; write it here")
    pieces: list[str] = []
    text = ""
    for literal, name, layout, conversion in _fields(template):
        text += literal
        if name is None:
            continue
        first = name.partition(".")[0].partition("[")[0]
        is_known = first in texts or first in parameters or first in metadata
        if not name or layout or conversion or (is_known and first != name):
            raise FormatError(f"the field {{{name}}} is not a plain name")
        unknown = f"{{{name}}}"
        value = parameters.get(name)
        if name in texts or (name in metadata and name not in parameters):
            pieces += [constant(text), texts[name] if name in texts else _cell(name, unknown)]
            text = ""
        elif strict:
            raise FormatError(
                f"the field {unknown} is not one of {', '.join(sorted(texts))}, so Inspect fails"
            )
        else:
            text += unknown if value is None else str(value)
    return "".join([*pieces, constant(text)])


def _cell(name: str, unknown: str) -> str:
    value = column(name)
    return f"{{{{ {value} if {value} is not none else {json.dumps(unknown, ensure_ascii=False)} }}}}"


def _fields(template: str) -> Sequence[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(Formatter().parse(template))
    except ValueError as error:
        raise FormatError(f"it is not a template: {error}") from None


def constant(text: str) -> str:
    """Return a text for use in an AI GO template, with braces protected."""
    return f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}" if "{" in text or "}" in text else text


def _closed(template: str) -> str:
    """Return a template that prints its final line feeds. Jinja would drop one."""
    body = template.rstrip("\n")
    return body if body == template else f"{body}{{{{ {json.dumps(template[len(body) :])} }}}}"
