"""Generated Python that the formatter leaves as it is: names, values, arguments and docstrings as source, a
template filled in, and what it needs of a runtime copied into it.

A runtime is a module of ours, so linter, types and tests see it. What a filled template uses without having
it is copied from there, with all that this needs in turn: whole functions, classes and constants, and their
imports.
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

WIDTH = 88
"""Columns that the formatter gives a line unless it is told otherwise."""

_ITEMS = {"string": "str", "integer": "int", "float": "float", "boolean": "bool"}


@dataclass(frozen=True)
class Argument:
    """A parameter of a task as an argument of a Python function."""

    key: str
    """Key of the parameter."""
    name: str
    """Name of the argument; the key itself where that is an identifier."""
    annotation: str
    """Its type, in source."""
    default: str
    """The value at the time of the export, in source."""
    doc: str
    """What it means and what it may be, on one line."""

    @property
    def is_mutable(self) -> bool:
        """Whether the default is a list or a mapping."""
        return self.default.startswith(("[", "{"))

    def described(self) -> dict[str, str]:
        """As the manifest has it: its default on one line."""
        return {**asdict(self), "default": " ".join(self.default.split())}


def arguments_of(plan: TaskPlan, reserved: Iterable[str] = ()) -> list[Argument]:
    """The parameters of a task, with the values of the plan as defaults."""
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
    """The Python type of a parameter's values."""
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
    """What a parameter means and what it may be, on one line."""
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
    """A JSON value as Python source; lists and mappings go one item a line.

    Args:
        value: text, number, boolean, `None`, or lists and mappings of them.
        indent: column at which the value's own lines begin.
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
    """A text as Python source, with the quotes that need fewer escapes; invisible characters are escaped."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    written = (char if char.isprintable() and char != "\\" else repr(char)[1:-1] for char in text)
    return quote + "".join(written).replace(quote, f"\\{quote}") + quote


def one_line(text: str) -> str:
    """A text for docstrings and comments: one line, nothing in it that ends them or hides."""
    return visible(" ".join(text.split())).replace("\\", "\\\\").replace('"""', "'''")


def visible(text: str) -> str:
    """A text with what cannot be seen (it may turn the direction of writing) spelt out."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def module_docstring(title: str, commands: Sequence[str], about: str) -> str:
    """The docstring of a generated file: its title on one line, how it is run, and what it is."""
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
    """A docstring of one sentence."""
    space = " " * indent
    end = (" " if text.endswith('"') else "") + '"""'
    if len(line := f"{space}{opened(text)}{end}") <= WIDTH:
        return [line]
    return [*wrapped(opened(text), indent=indent), f'{space}"""']


def opened(text: str) -> str:
    """The beginning of a docstring."""
    return '"""' + (" " if text.startswith('"') else "") + text


def call(start: str, arguments: Sequence[str], end: str = ")", *, indent: int = 0) -> list[str]:
    """A call on one line if it fits, else one argument a line; `start` goes up to the bracket."""
    space = " " * indent
    if len(line := f"{space}{start}{', '.join(arguments)}{end}") <= WIDTH:
        return [line]
    return [f"{space}{start}", *(f"{space}    {argument}," for argument in arguments), f"{space}{end}"]


def wrapped(text: str, *, indent: int, hanging: int = 0) -> list[str]:
    """One line of a docstring, wrapped to the width of the source."""
    return textwrap.wrap(
        text,
        width=WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )


# Names of modules and arguments, from keys that need not be identifiers

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
"""Packages that a run may import: a file of that name beside it would stand in their way."""

_TAKEN = frozenset(sys.stdlib_module_names) | PACKAGES
LONGEST = 36
"""Characters of a name before numbers; longer keys are cut."""


def module_name(key: str, taken: Iterable[str] = ()) -> str:
    """A name for a task's file and folder: its key as an identifier, with `_2`, `_3` … if taken."""
    name = identifier(key.lower())[:LONGEST]
    return _free(f"{name}_task" if name in _TAKEN or keyword.issoftkeyword(name) else name, set(taken))


def unique_names(
    keys: Sequence[str], reserved: Iterable[str] = (), *, longest: int | None = None
) -> dict[str, str]:
    """Key → name, unique, in order; keys that are good names keep them."""
    taken = set(reserved)
    names: dict[str, str] = {}
    for key in sorted(keys, key=lambda key: key != identifier(key)):
        names[key] = _free(identifier(key)[:longest], taken)
        taken.add(names[key])
    return {key: names[key] for key in keys}


def identifier(text: str) -> str:
    """The text with everything that Python allows in no name as `_`; `é` and `名` may stay."""
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", text)) or "_"
    if not name.isidentifier():
        # A digit in front; or a character that is part of words, but not of names.
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
"""Name → the module that it is imported from; a module that is imported as a whole is its own."""


def rendered(template: Path, **values: Any) -> str:
    """A template as source. What it writes of an author's texts goes through its filters `text`, `literal`,
    `doc` and `wrapped`.
    """
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701  # source is no HTML
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
    """A module completed from a runtime, given by its name, and the runtimes that this one imports.

    What is copied stands before the last statement of the module. Imports that are not used are gone.
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
    """Every name that a module uses or gives."""
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
    """Name → source, and imports of its module; of a runtime behind those that it imports."""
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
    """A module's functions, classes and constants by name; a constant with its describing text."""
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
        yield name, "\n".join(lines[_first_line(node) - 1 : end])


def _parts(source: str, tree: ast.Module) -> tuple[str, str, str]:
    """The docstring of a module, what stands between its imports and its last statement, and that."""
    lines = source.splitlines()
    docstring, *statements = tree.body
    body = next(node for node in statements if not isinstance(node, ast.Import | ast.ImportFrom))
    end = _first_line(statements[-1]) - 1
    parts = lines[: docstring.end_lineno], lines[body.lineno - 1 : end], lines[end:]
    head, constants, final = ("\n".join(part).strip("\n") for part in parts)
    return head, constants, final


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _import_lines(imports: Imports) -> str:
    """Imports as the formatter orders them: Python's own, then the packages'."""
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
    """Constants, classes, functions."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name
