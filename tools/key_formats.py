"""Write `bridge/aigo_bridge/redaction/key_formats.json` from a release of gitleaks (MIT): `python
tools/key_formats.py gitleaks.toml VERSION`.

Taken are the rules whose keys begin with letters of their own: such a rule needs no words around the key, and
is looked for at the speed of its first letters. The regular expressions are translated from Go's dialect to
Python's; what stands before and behind the key is left to the code that looks for it.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "bridge" / "aigo_bridge" / "redaction" / "key_formats.json"
LEAST = 4
"""Letters that a key must begin with."""
OURS = (
    "aws-",
    "gcp-api-key",
    "github-",
    "hugging",
    "jwt",
    "private-key",
    "openai-",
    "anthropic-",
    "slack-",
    "stripe-",
    "gitlab-pat",
    "microsoft-teams-webhook",
    "clickhouse-",
    "databricks-",
    "digitalocean-",
    "perplexity-",
    "vault-",
    "artifactory-reference-",
)
"""Kinds that this package has rules of its own for, which find more; and those whose first letters stand in
any base64 or address.
"""
NO_SECRETS = ("-public-", "-pub-", "-id", "-test-")

_BEHIND = (r"""(?:[\x60'"\s;]|\\[nr]|$)""", r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""", r"(?:[^\w-]|\z)", r"\b")


def token(regex: str) -> str:
    """The part of a rule that is the key, in Python's dialect."""
    anywhere = regex.startswith("(?i)")
    text = regex.removeprefix("(?i)").removeprefix(r"\b")
    for behind in _BEHIND:
        text = text.removesuffix(behind)
    while text.startswith("(") and not text.startswith("(?") and text.endswith(")"):
        text = text[1:-1]
    if "(?i)" in text:
        first, _, rest = text.partition("(?i)")
        text = f"{first}(?i:{rest})"
    text = text.replace("[[:alnum:]]", "[A-Za-z0-9]")
    return f"(?i:{text})" if anywhere else text


def literal(pattern: str) -> str:
    """The letters that every match begins with."""
    found = re.match(r"(?:[A-Za-z0-9_~-]|\\[.-])*", pattern)
    text = found[0] if found else ""
    behind = pattern[len(text) : len(text) + 1]
    return (text[:-1] if behind in set("?*{") and behind else text).replace("\\", "")


def main(source: str, version: str) -> None:
    """Write the rules of one release."""
    rules = {}
    for rule in tomllib.loads(Path(source).read_text())["rules"]:
        name = rule["id"]
        if "regex" not in rule or name.startswith(OURS) or any(part in name for part in NO_SECRETS):
            continue
        pattern = token(rule["regex"])
        start = literal(pattern)
        try:
            re.compile(pattern.encode())
        except re.error:
            continue
        if len(start) >= LEAST and "{" in pattern:
            rules[name.replace("-", " ")] = [start, pattern]
    content = {
        "source": f"https://github.com/gitleaks/gitleaks/blob/{version}/config/gitleaks.toml",
        "licence": "MIT, Copyright (c) 2019 Zachary Rice; see key_formats.LICENSE",
        "rules": dict(sorted(rules.items())),
    }
    TARGET.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
