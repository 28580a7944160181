"""Constructions that our text must not use: `python -m tests.docs.prose`, part of `make check`.

The rules and their reasons are in docs/style.md. Each file has a limit in `prose_limits.json`: the number of hits that it had when the limit
was last lowered. A file without a limit may have three hits in a thousand words, a short one two. `--lower` lowers the limits to the current hits and
never raises one. Each surface, such as messages or test names, may have three hits in a thousand words.

Sentences of help and messages have at most 25 words. The limit of `FILE#sentences` is the number of longer sentences; without a limit it is 0.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LIMITS = Path(__file__).with_name("prose_limits.json")
PER_THOUSAND = 3
FEWEST = 2
"""Hits that a short file may have."""

MARKERS = {
    "stand or lie for be": r"\b(stands?|stood|standing|lies|lie|lay)\b(?! (for|alone|out|still|up))",
    "what-clause as a noun": (
        r"\b[Ww]hat (is|was|were|are|it|its|they|has|have|had|no|one|other|each|stands|comes|came|does|did|the|a|this"
        r"|that|runs|holds|makes|changes|fails)\b"
    ),
    "those of, that of": (
        r"\b(those (that|of|in|which|with|from|who)|that of|that which|of which|of whom|[Ww]hoever|[Ww]hatever|[Aa]nybody"
        r"|[Ss]omebody|[Nn]obody)\b"
    ),
    "none as a predicate": (
        r"\b(is|are|was|were|has|have|that|gives?|find|as) (no|none|nothing)\b|\bnothing (is|was|of|that|else)\b"
        r"|\bnone (is|was|of|has)\b"
    ),
    "too, also": r", too\b|\balso (where|behind|when|in|from|with|without|as|of|those|by|for)\b",
    "anew, beside": r"\b(anew|besides?|behind|alike|beforehand|meanwhile|thereby|elsewhere)\b",
    "told, says so": (
        r"\b(is|are|was|were|be|and) (told|said)\b|\b(says?|said|tells?|knows?|told|known) (so|of|what|which|how|whether"
        r"|who|nothing|it)\b"
    ),
    "go on": r"\b(go|goes|going|gone|went) on\b",
    "of ours": r"\bof (ours|its own|your own|their own|others)\b",
    "make of, come to": (
        r"\b(made|makes?|making) (of|from|out of)\b|\b(comes?|came) (to|of|out|in|back|again)\b|\bgives? (back|up|no)\b"
    ),
    "trailing at most": r"\bat (most[.,;:)]|once)|\bone a (line|row|sample)\b|\bas (it|they) (is|are|stands?|was|were|came)\b",
    "where for if": r"\b[Ww]here (it|they|there|a|an|the|no|nothing|none|this|that|only|both|all|several)\b",
}
"""Name of a construction → its expression, from the style guide."""
TERMS = {
    "dataset": r"\bdata sets?\b",
    "read and written tokens": r"\btokens (read|written)\b",
    "old form": r"\bold (forms?|spellings?)\b",
    "held against": r"\bheld against\b",
}
"""Words of the private dialect → their expressions; the guide has the field's terms."""
EXPRESSIONS = {name: re.compile(text) for name, text in {**MARKERS, **TERMS}.items()}

_CODE = re.compile(
    r"^(```|~~~).*?^\1[^\n]*$|`[^`\n]*`|\]\([^)]*\)|<[^>\n]+>|https?://\S+", re.DOTALL | re.MULTILINE
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_SENTENCE = 4
"""Words from which a literal counts as text for people."""
LONGEST = 25
"""Maximum number of words in a sentence of help and messages."""
_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n")


_TEST_NAME = re.compile(r"def test_(\w+)")
_FRONT_END = re.compile(r"/\*.*|^\s*\*.*|(?<!:)//.*|\"[^\"]{12,}\"|>[^<>{}]{8,}<|`[^`]{12,}`")
"""Comments and texts of a line of TypeScript."""


@dataclass(frozen=True)
class Passage:
    """A text that people read."""

    surface: str
    line: int
    text: str


@dataclass(frozen=True)
class Hit:
    """A construction in a file."""

    file: str
    surface: str
    line: int
    name: str
    text: str


def passages(path: Path) -> Iterator[Passage]:
    """Yield the texts of a file that people read."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        blank = _CODE.sub(lambda code: "\n" * code[0].count("\n") + " ", text)
        for number, line in enumerate(blank.splitlines(), 1):
            yield Passage("ADRs" if path.parent.name == "adr" else "docs", number, line)
    elif path.suffix == ".py" and path.name.startswith("test_"):
        for number, line in enumerate(text.splitlines(), 1):
            if name := _TEST_NAME.search(line):
                yield Passage("test names", number, name[1].replace("_", " "))
    elif path.suffix != ".py":
        for number, line in enumerate(text.splitlines(), 1):
            yield Passage("front end", number, " ".join(_FRONT_END.findall(line)))
    else:
        yield from _passages_of_python(text)


def _passages_of_python(text: str) -> Iterator[Passage]:
    tree = ast.parse(text)
    surfaces: dict[ast.AST, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(_is_command, node.decorator_list)):
            surfaces[node.body[0]] = "help"
        elif isinstance(node, ast.Expr):
            surfaces[node.value] = surfaces.get(node, "docstrings")
        elif isinstance(node, ast.keyword) and node.arg == "help":
            surfaces |= dict.fromkeys(ast.walk(node.value), "help")
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and len(_WORD.findall(node.value)) >= _SENTENCE
        ):
            for number, line in enumerate(_CODE.sub(" ", node.value).splitlines()):
                yield Passage(surfaces.get(node, "messages"), node.lineno + number, line)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Passage("comments", token.start[0], _CODE.sub(" ", token.string.lstrip("#")))


def long_sentences(path: Path) -> Iterator[Hit]:
    """Yield the sentences of help and messages that are too long. A placeholder counts as one word.

    Literals with line breaks are code or prompts; only the docstrings of commands are help.
    """
    if path.suffix != ".py" or path.name.startswith("test_"):
        return
    tree, texts, parts = ast.parse(path.read_text(encoding="utf-8")), dict[ast.AST, str](), set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {part for part in ast.walk(node) if part is not node}
            texts[node] = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
            texts[node] = node.value
        elif isinstance(node, ast.FunctionDef) and any(map(_is_command, node.decorator_list)):
            texts[node] = ast.get_docstring(node) or ""
    name = path.relative_to(REPOSITORY).as_posix()
    for node, text in texts.items():
        if node in parts or (isinstance(node, ast.JoinedStr) and "\n" in text):
            continue
        for sentence in _END.split(text):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > LONGEST:
                yield Hit(name, "", getattr(node, "lineno", 0), f"{len(words)} words in a sentence", sentence)


def _is_command(decorator: ast.expr) -> bool:
    return (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Attribute)
        and decorator.func.attr == "command"
    )


def files() -> list[Path]:
    """Return the files that people read, generated pages and foreign texts left out."""
    pages = [
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / "tasks").rglob("*.md"),
    ]
    sources = [
        path
        for folder in ("bridge", "adapters", "extras", "benchmarks")
        for path in (REPOSITORY / folder).rglob("*.py")
    ]
    tests = (REPOSITORY / "tests").rglob("test_*.py")
    front_end = (REPOSITORY / "frontend" / "src").glob("*.ts*")
    return sorted(
        path
        for path in [*pages, *sources, *tests, *front_end]
        if path.name not in {"CHANGELOG.md", "LICENSE.md"}
    )


def hits_of(path: Path) -> tuple[list[Hit], Counter[str]]:
    """Return the hits of a file, and the number of its words by surface."""
    name, hits, words = path.relative_to(REPOSITORY).as_posix(), list[Hit](), Counter[str]()
    for passage in passages(path):
        words[passage.surface] += len(_WORD.findall(passage.text))
        for kind, expression in EXPRESSIONS.items():
            hits += [
                Hit(name, passage.surface, passage.line, kind, match[0])
                for match in expression.finditer(passage.text)
            ]
    return hits, words


def main() -> int:
    """Compare every file with its limit; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.docs.prose", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="show every hit of these files or folders")
    parser.add_argument("--lower", action="store_true", help="lower the limits to what the files have")
    options = parser.parse_args()
    limits: dict[str, int] = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    chosen = [path.resolve() for path in options.paths]
    over, lowered, total, total_words = list[str](), dict[str, int](), Counter[str](), Counter[str]()
    for path in files():
        if chosen and not any(path == each or each in path.parents for each in chosen):
            continue
        hits, words = hits_of(path)
        total.update(hit.surface for hit in hits)
        total_words.update(words)
        name = path.relative_to(REPOSITORY).as_posix()
        usual = max(FEWEST, words.total() * PER_THOUSAND // 1000)
        limit = limits.get(name, usual)
        if len(hits) > limit:
            over.append(f"{name}: {len(hits)} hits, at most {limit} are allowed")
        if len(hits) > usual:
            lowered[name] = min(len(hits), limits.get(name, len(hits)))
        if chosen or len(hits) > limit:
            over += [f"  {hit.file}:{hit.line}: {hit.text!r} ({hit.name})" for hit in hits]
        long, allowed = list(long_sentences(path)), limits.get(f"{name}#sentences", 0)
        if long:
            lowered[f"{name}#sentences"] = min(len(long), allowed)
        if chosen or len(long) > allowed:
            over += [f"  {hit.file}:{hit.line}: {hit.name}: {hit.text}" for hit in long]
    for surface, words_of_it in total_words.items():
        rate = 1000 * total[surface] / max(1, words_of_it)
        line = f"{surface}: {total[surface]} hits in {words_of_it:,} words, {rate:.1f} per 1,000"
        print(line)
        if rate > PER_THOUSAND and not chosen:
            over.append(f"{line}, at most {PER_THOUSAND} are allowed")
    print(*over, sep="\n", end="\n" if over else "")
    if options.lower:
        LIMITS.write_text(json.dumps(lowered, indent=1, sort_keys=True) + "\n")
        return 0
    return 1 if over and not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
