"""Constructions that our text must not use: `python -m tests.docs.prose`, part of `make check`.

The rules and their reasons are in docs/style.md. Each file has a limit in `prose_limits.json`: the number of hits that it had when the limit
was last lowered. A file without a limit may have three hits in a thousand words, a short one two. `--lower` lowers limits to what the files have; none rises.

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


@dataclass(frozen=True)
class Hit:
    """A construction in a file."""

    file: str
    line: int
    name: str
    text: str


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file that people read, each with its line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        blank = _CODE.sub(lambda code: "\n" * code[0].count("\n") + " ", text)
        yield from enumerate(blank.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and len(_WORD.findall(node.value)) >= _SENTENCE
        ):
            for number, line in enumerate(_CODE.sub(" ", node.value).splitlines()):
                yield node.lineno + number, line
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], _CODE.sub(" ", token.string.lstrip("#"))


def long_sentences(path: Path) -> Iterator[Hit]:
    """Yield the sentences of help and messages that are too long. A placeholder counts as one word.

    Literals with line breaks are code or prompts; only the docstrings of commands are help.
    """
    if path.suffix != ".py":
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
                yield Hit(name, getattr(node, "lineno", 0), f"{len(words)} words in a sentence", sentence)


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
        path for folder in ("bridge", "adapters", "extras") for path in (REPOSITORY / folder).rglob("*.py")
    ]
    return sorted(path for path in [*pages, *sources] if path.name not in {"CHANGELOG.md", "LICENSE.md"})


def hits_of(path: Path) -> tuple[list[Hit], int]:
    """Return the hits of a file, and the number of its words."""
    name, hits, words = path.relative_to(REPOSITORY).as_posix(), list[Hit](), 0
    for line, text in prose_of(path):
        words += len(_WORD.findall(text))
        for kind, expression in EXPRESSIONS.items():
            hits += [Hit(name, line, kind, match[0]) for match in expression.finditer(text)]
    return hits, words


def main() -> int:
    """Compare every file with its limit; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.docs.prose", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="show every hit of these files or folders")
    parser.add_argument("--lower", action="store_true", help="lower the limits to what the files have")
    options = parser.parse_args()
    limits: dict[str, int] = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    chosen = [path.resolve() for path in options.paths]
    over, lowered, total, total_words = list[str](), dict[str, int](), 0, 0
    for path in files():
        if chosen and not any(path == each or each in path.parents for each in chosen):
            continue
        hits, words = hits_of(path)
        total, total_words = total + len(hits), total_words + words
        name, usual = path.relative_to(REPOSITORY).as_posix(), max(FEWEST, words * PER_THOUSAND // 1000)
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
    print(
        *over,
        f"{total} hits in {total_words:,} words: {1000 * total / max(1, total_words):.1f} per 1,000",
        sep="\n",
    )
    if options.lower:
        LIMITS.write_text(json.dumps(lowered, indent=1, sort_keys=True) + "\n")
        return 0
    return 1 if over and not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
