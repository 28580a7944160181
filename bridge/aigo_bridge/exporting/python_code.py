"""Generated Python code in the style of the formatter: names, values, arguments and docstrings as source,
filled templates, and copied runtime code.

A runtime is a module of aigo-bridge, so linter, type checker and tests cover it. Names that a filled
template uses without defining them are copied from the runtime with all their dependencies: whole
functions, classes and constants, and their imports.
"""

from __future__ import annotations

import ast
import keyword
import re
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jinja2

from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.spec.parameters import (
    BooleanParameter,
    CategoricalParameter,
    DictParameter,
    FloatParameter,
    IntParameter,
    ListParameter,
    Parameter,
)
from aigo_bridge.text.escapes import visible

WIDTH = 88
"""Default line length of the formatter."""

_ITEMS = {"string": "str", "integer": "int", "float": "float", "boolean": "bool"}


@dataclass(frozen=True)
class Argument:
    """Parameter of a task as an argument of a Python function."""

    key: str
    """Key of the parameter."""
    name: str
    """Name of the argument; the key itself if it is an identifier."""
    annotation: str
    """Type of the argument, as source."""
    default: str
    """Value at the time of the export, as source."""
    doc: str
    """Meaning and allowed values, on one line."""

    @property
    def is_mutable(self) -> bool:
        """Whether the default is a list or a mapping."""
        return self.default.startswith(("[", "{"))

    def described(self) -> dict[str, str]:
        """Return the argument in the form of the manifest, with its default on one line."""
        return {**asdict(self), "default": " ".join(self.default.split())}


def arguments_of(plan: TaskPlan, reserved: Iterable[str] = ()) -> list[Argument]:
    """Return the parameters of a task with the values of the plan as defaults."""
    parameters = plan.task.config_spec
    names = unique_names([parameter.key for parameter in parameters], reserved, longest=50)
    return [
        Argument(
            parameter.key,
            names[parameter.key],
            annotation(parameter),
            literal(plan.config[parameter.key], indent=4),
            described(parameter),
        )
        for parameter in parameters
    ]


def annotation(parameter: Parameter) -> str:
    """Return the Python type of a parameter's values."""
    match parameter:
        case IntParameter():
            kind = "int"
        case FloatParameter():
            kind = "float"
        case BooleanParameter():
            kind = "bool"
        case ListParameter():
            kind = f"list[{_ITEMS[parameter.dtype]}]"
        case DictParameter():
            kind = f"dict[str, {_ITEMS[parameter.value_dtype]}]"
        case CategoricalParameter(multiple=True):
            kind = "list[str]"
        case _:
            kind = "str"
    return f"{kind} | None" if parameter.nullable else kind


def described(parameter: Parameter) -> str:
    """Return the meaning and the allowed values of a parameter, on one line."""
    text = one_line(parameter.description or parameter.display_name).rstrip(".")
    facts: list[str] = []
    if isinstance(parameter, CategoricalParameter):
        several = "any of" if parameter.multiple else "one of"
        facts.append(f"{several} {', '.join(map(one_line, parameter.allowed_values))}")
    elif isinstance(parameter, IntParameter | FloatParameter):
        if parameter.min is not None:
            facts.append(f"at least {parameter.min}")
        if parameter.max is not None:
            facts.append(f"at most {parameter.max}")
    elif parameter.type in ("model", "dataset", "dataset_column", "task_result"):
        facts.append({"model": "key of a model", "dataset": "key of a dataset"}.get(parameter.type, ""))
    return "; ".join(fact for fact in (text, *facts) if fact)


def literal(value: Any, *, indent: int = 0) -> str:
    """Convert a JSON value to Python source that starts in column `indent`, with one list or map item per
    line.
    """
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, Mapping):
        items = [f"{text_literal(str(k))}: {literal(v, indent=indent + 4)}" for k, v in value.items()]
        return _bracketed("{", items, "}", indent)
    if isinstance(value, list | tuple):
        return _bracketed("[", [literal(item, indent=indent + 4) for item in value], "]", indent)
    return repr(value)


def _bracketed(start: str, items: Sequence[str], end: str, indent: int) -> str:
    if not items:
        return start + end
    space = " " * indent
    return f"{start}\n" + "".join(f"{space}    {item},\n" for item in items) + f"{space}{end}"


def text_literal(text: str) -> str:
    """Convert a text to Python source, with the quotes that need fewer escapes. Invisible characters are
    escaped.
    """
    quote = "'" if text.count('"') > text.count("'") else '"'
    written = (char if char.isprintable() and char != "\\" else repr(char)[1:-1] for char in text)
    return quote + "".join(written).replace(quote, f"\\{quote}") + quote


def one_line(text: str) -> str:
    """Convert a text for docstrings and comments: one line, without invisible characters or text that would
    end them.
    """
    return visible(" ".join(text.split())).replace("\\", "\\\\").replace('"""', "'''")


def module_docstring(title: str, commands: Sequence[str], about: str) -> str:
    """Return the docstring of a generated file: title on one line, commands to run it, and description."""
    lines = [
        *wrapped(opened(title), indent=0),
        "",
        *(f"    {one_line(command)}" for command in commands),
        "",
        *wrapped(about, indent=0),
        '"""',
    ]
    return "\n".join(lines)


def docstring(text: str, *, indent: int) -> list[str]:
    """Return the lines of a one-sentence docstring."""
    space = " " * indent
    end = (" " if text.endswith('"') else "") + '"""'
    if len(line := f"{space}{opened(text)}{end}") <= WIDTH:
        return [line]
    return [*wrapped(opened(text), indent=indent), f'{space}"""']


def opened(text: str) -> str:
    """Return the start of a docstring."""
    return '"""' + (" " if text.startswith('"') else "") + text


def call(start: str, arguments: Sequence[str], end: str = ")", *, indent: int = 0) -> list[str]:
    """Return a call on one line if it fits, otherwise one argument per line. `start` ends with `(`."""
    space = " " * indent
    if len(line := f"{space}{start}{', '.join(arguments)}{end}") <= WIDTH:
        return [line]
    return [f"{space}{start}", *(f"{space}    {argument}," for argument in arguments), f"{space}{end}"]


def wrapped(text: str, *, indent: int, hanging: int = 0) -> list[str]:
    """Wrap one line of a docstring to the line length."""
    return textwrap.wrap(
        text,
        width=WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )


# Names of modules and arguments, from keys that may not be identifiers

PACKAGES = frozenset(
    {
        "aigo_bridge", "aigo_inspect", "aigo_lighteval", "aigo_tasks", "anthropic", "anyio", "datasets",
        "google", "groq", "httpx", "inspect_ai", "inspect_evals", "inspect_scout", "jinja2", "lighteval",
        "litellm", "mistralai", "msgspec", "numpy", "openai", "orjson", "packaging", "pandas", "pip",
        "pydantic", "requests", "rich", "sacrebleu", "scipy", "setuptools", "sklearn", "spacy", "tests",
        "tiktoken", "together", "torch", "tqdm", "transformers", "trio", "typer", "typing_extensions",
        "vllm", "yaml", "zstandard",
    }
)  # fmt: skip
"""Packages that a run may import. A file with the same name in its folder would hide the package."""

_TAKEN = frozenset(sys.stdlib_module_names) | PACKAGES
LONGEST = 36
"""Maximum number of characters in a name before its number; longer keys are truncated."""


def module_name(key: str, taken: Iterable[str] = ()) -> str:
    """Return a name for a task's file and folder: its key as an identifier, with `_2`, `_3` … if taken."""
    name = identifier(key.lower())[:LONGEST]
    return _free(f"{name}_task" if name in _TAKEN or keyword.issoftkeyword(name) else name, set(taken))


def unique_names(
    keys: Sequence[str], reserved: Iterable[str] = (), *, longest: int | None = None
) -> dict[str, str]:
    """Return key → unique name, in order. Keys that are valid names are kept."""
    taken = set(reserved)
    names: dict[str, str] = {}
    for key in sorted(keys, key=lambda key: key != identifier(key)):
        names[key] = _free(identifier(key)[:longest], taken)
        taken.add(names[key])
    return {key: names[key] for key in keys}


def identifier(text: str) -> str:
    """Return the text with all characters that Python names may not contain replaced by `_`. Letters such as
    `é` and `名` are kept.
    """
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", text)) or "_"
    if not name.isidentifier():
        # A leading digit, or a character that is part of words but not of names
        name = "".join(char if f"_{char}".isidentifier() else "_" for char in name)
        name = name if name.isidentifier() else f"_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


Imports = dict[str, str]
"""Name → module that it is imported from. A module that is imported as a whole maps to itself."""


def rendered(template: Path, **values: Any) -> str:
    """Render a template as source. Texts of an author must pass through its filters `text`, `literal`, `doc`
    and `wrapped`.
    """
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701  # source code is not HTML
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["text"] = text_literal
    environment.filters["literal"] = literal
    environment.filters["wrapped"] = lambda text: wrapped(text, indent=0)
    environment.filters["doc"] = lambda text: "\n".join(docstring(text, indent=4))
    return environment.from_string(template.read_text(encoding="utf-8")).render(values)


def with_runtime(source: str, runtime: str) -> str:
    """Return a module with the required code from a runtime, given by its name, and from the runtimes that it
    imports.

    The copied code precedes the last statement of the module. Unused imports are removed.
    """
    tree = ast.parse(source)
    imports = _imports(tree)
    definitions = _definitions(runtime)
    wanted = _names(tree)
    included: set[str] = set()
    while new := (wanted & definitions.keys()) - included:
        included |= new
        for name in new:
            text, needed = definitions[name]
            imports = needed | imports
            wanted |= _names(ast.parse(text))
    copied = [text for name, (text, _) in definitions.items() if name in included]
    used = {name: module for name, module in imports.items() if name in wanted and not _is_runtime(module)}
    head, constants, final = _parts(source, tree)
    return "\n\n\n".join(["\n\n".join([head, _import_lines(used), constants]), *copied, final + "\n"])


def names_in(source: str) -> set[str]:
    """Return every name that a module uses or defines."""
    tree = ast.parse(source)
    return {
        name
        for node in ast.walk(tree)
        for field in ("id", "name", "arg")
        if isinstance(name := getattr(node, field, None), str)
    }


def _is_runtime(module: str) -> bool:
    return module.endswith(".runtime")


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _imports(tree: ast.Module) -> Imports:
    imports: Imports = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            imports |= {alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports |= {alias.name: node.module or "" for alias in node.names}
    return imports


def _definitions(module: str) -> dict[str, tuple[str, Imports]]:
    """Return name → source and imports of its module. Definitions of imported runtimes come first."""
    source, tree = _runtime(module)
    imports = _imports(tree)
    definitions: dict[str, tuple[str, Imports]] = {}
    for imported in sorted(filter(_is_runtime, set(imports.values()))):
        definitions |= _definitions(imported)
    return definitions | {name: (text, imports) for name, text in _statements(source, tree)}


@cache
def _runtime(module: str) -> tuple[str, ast.Module]:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    return source, ast.parse(source)


def _statements(source: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield a module's functions, classes and constants by name; a constant includes its docstring."""
    lines = source.splitlines()
    for number, node in enumerate(tree.body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                name = node.name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case _:
                continue
        following = tree.body[number + 1] if number + 1 < len(tree.body) else node
        is_described = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        end = following.end_lineno if is_described else node.end_lineno
        yield name, "\n".join(lines[first_line(node) - 1 : end])


def _parts(source: str, tree: ast.Module) -> tuple[str, str, str]:
    """Return the docstring of a module, the code between imports and last statement, and that statement."""
    lines = source.splitlines()
    docstring, *statements = tree.body
    body = next(node for node in statements if not isinstance(node, ast.Import | ast.ImportFrom))
    end = first_line(statements[-1]) - 1
    parts = lines[: docstring.end_lineno], lines[body.lineno - 1 : end], lines[end:]
    head, constants, final = ("\n".join(part).strip("\n") for part in parts)
    return head, constants, final


def first_line(node: ast.stmt) -> int:
    """Return the line of a statement, or of its first decorator."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _import_lines(imports: Imports) -> str:
    """Return the imports in the order of the formatter: the standard library, then packages."""
    groups: list[list[str]] = [[], []]
    for module in sorted({name for name, module in imports.items() if name == module}):
        groups[module.partition(".")[0] not in sys.stdlib_module_names].append(f"import {module}")
    for module in sorted({module for name, module in imports.items() if name != module}):
        names = sorted((name for name in imports if imports[name] == module != name), key=_import_order)
        line = f"from {module} import {', '.join(names)}"
        if len(line) > WIDTH:
            line = "\n".join(call(f"from {module} import (", names))
        groups[module.partition(".")[0] not in sys.stdlib_module_names].append(line)
    return "\n\n".join("\n".join(lines) for lines in groups if lines)


def _import_order(name: str) -> tuple[int, str]:
    """Return a sort key: constants, classes, functions."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name
