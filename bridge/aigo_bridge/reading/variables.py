"""Expansion of environment variables in documents (`api_key: $OPENAI_API_KEY`), depending on the kind of file
and the path of the value.

Only mapping values that start with `$` and do not contain whitespace are expanded, so that model keys such
as `openai$gpt-4-1-nano` and prompts stay unchanged. Inside such a value, the rules of a shell apply.

* Connection fields (URLs, headers, keys, certificates, the environment of the user's inference code)
  accept any variable.
* Other fields of models, adapters and run files belong to the user and accept any variable that is not a
  secret.
* Tasks, datasets, generators, policies, evaluations, apps and all other files may come from strangers,
  even if a run file includes them. They accept only variables that the user has named (`--env NAME`), and
  no secrets.
* The key of a trace service in a dataset is not expanded, because the service is never called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from yaml.nodes import Node

from aigo_bridge.access.grants import VariableUse, allows_variable, process_variables
from aigo_bridge.access.opening import read_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, Severity
from aigo_bridge.reading.kinds import Kind
from aigo_bridge.reading.nodes import VariableNode, child, issue_at, place_of
from aigo_bridge.redaction.secrets import SECRET_NAMES, environment_secrets, learn_environment, redact

LONGEST_ENV_FILE = 1_000_000
"""Maximum size of an `.env` file in bytes."""

LONGEST_CANDIDATE = 4096
"""Maximum number of characters in a value with variables. Each name may expand to a much longer text."""

_SPACE = re.compile(r"\s")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{([^}]*)\})", re.ASCII)


def is_candidate(text: str) -> bool:
    """Return whether a value may contain variables."""
    return text.startswith("$") and len(text) <= LONGEST_CANDIDATE and _SPACE.search(text) is None


def expand(text: str, env: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the text with variables expanded, and the names of unset variables, which stay as written."""
    unset: list[str] = []

    def value(match: re.Match[str]) -> str:
        name = match[1] if match[1] is not None else match[2]
        if name in env:
            return env[name]
        unset.append(name)
        return match[0]

    return _VARIABLE.sub(value, text), unset


def names_in(text: str) -> list[str]:
    """Return the variables in a value without duplicates."""
    names = (match[1] if match[1] is not None else match[2] for match in _VARIABLE.finditer(text))
    return list(dict.fromkeys(names))


def environment(env_file: Path | None = None) -> dict[str, str]:
    """Return the variables of the process, added to the variables of `.env` in the current folder (or of
    `env_file`). Secrets among them are then known to the redactor.

    Raises:
        OSError: `env_file` is given and cannot be read.
        UnicodeDecodeError: the file is not UTF-8.
    """
    path = env_file or Path(".env")
    stored = {}
    if env_file is not None or path.is_file():
        stored = parse_env(read_regular(path, LONGEST_ENV_FILE).decode("utf-8"))
    variables = {**stored, **process_variables()}
    learn_environment(variables)
    return variables


def parse_env(text: str) -> dict[str, str]:
    """Parse an `.env` file: `NAME=value` lines with optional `export` and quotes; `#` starts a comment."""
    variables: dict[str, str] = {}
    for line in text.removeprefix("\ufeff").splitlines():
        match = _ENV_LINE.fullmatch(line)
        if match is None:
            continue
        name, quoted, apostrophed, plain = match.groups()
        if quoted is not None:
            variables[name] = re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), quoted)
        else:
            variables[name] = apostrophed if apostrophed is not None else plain.strip()
    return variables


_ENV_LINE = re.compile(
    r"""\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*"""
    r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|((?:[^#\s'"]|(?<!\s)\#|[ \t]+(?!\#|\s*$)|['"](?!$))*))"""
    r"""\s*(?:\#.*)?""",
    re.ASCII,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


Trust = Literal["connection", "own", "granted", "never"]
DataPath = tuple[str | int, ...]

CONNECTION_FIELDS = frozenset(
    {
        "url",
        "deploy_url",
        "project_endpoint",
        "api_key",
        "custom_headers",
        "environment",
        "tls_context",
        "client_secret",
        "access_key_id",
        "secret_access_key",
        "session_token",
    }
)
"""Fields of a model's `config` that are only used for the connection."""

_HINT = (
    "put API keys into a model file or the models of a run file: config.api_key, "
    "custom_headers, environment, secrets"
)


@dataclass
class Variables:
    """Expansion of the variables in one document, with a record of the changes."""

    env: Mapping[str, str]
    issues: list[Issue] = field(default_factory=list)
    failed: set[tuple[str, int, int]] = field(default_factory=set)
    """Positions (file, line, column) of invalid values, so that no further problems of them are reported."""
    uses: list[VariableUse] = field(default_factory=list)
    expanded: dict[str, str] = field(default_factory=dict)
    """Expanded text → text as written, to remove expanded values from messages."""

    def put_in(self, kind: Kind, node: Node, data: Any, file: str, path: DataPath = ()) -> None:
        """Expand the variables of a document's data.

        Args:
            kind: kind of the document.
            node: nodes of the document.
            data: tree that was created from these nodes; changed in place.
            file: file name of the requested file in marks.
            path: path of this part in the document.
        """
        keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
        for key in keys:
            entry = child(node, key)
            if entry is None:
                continue
            inner = entry[1]
            if isinstance(inner, VariableNode):
                trust = trust_of(kind, (*path, key), is_own=inner.start_mark.name == file)
                data[key] = self.text(inner, trust)
            else:
                self.put_in(kind, inner, data[key], file, (*path, key))

    def text(self, node: VariableNode, trust: Trust) -> str:
        """Return a value with allowed variables expanded; others become issues."""
        if trust == "never":
            return str(node.value)
        names = names_in(node.value)
        self.uses += [VariableUse(name, *place_of(node), name in self.env) for name in names]
        problems = [problem for name in names if (problem := self._problem(node, name, trust))]
        self.issues += problems
        if any(problem.severity == "error" for problem in problems):
            self.failed.add(place_of(node))
            return str(node.value)
        text, _ = expand(node.value, self.env)
        if text != node.value:
            node.is_expanded = True
            self.expanded[text] = node.value
        return text

    def _problem(self, node: VariableNode, name: str, trust: Trust) -> Issue | None:
        def issue(message: str, hint: str | None, severity: Severity = "error") -> Issue:
            code = Code.UNSET_VARIABLE if severity == "warning" else Code.REFUSED_VARIABLE
            return issue_at(
                node, f"environment variable {name!r} {message}", code=code, hint=hint, severity=severity
            )

        if name not in self.env:
            return issue("is not set; the text is kept unchanged", None, "warning")
        if trust == "connection":
            return None
        if SECRET_NAMES.search(name):
            return issue("looks like a secret; secrets cannot be used here", _HINT)
        if trust == "granted" and not allows_variable(name):
            hint = (
                f'to allow it, use --env {name}; to allow it permanently, add env = ["{name}"] '
                "under [tool.aigo-bridge] in the pyproject.toml of your project"
            )
            return issue("is not allowed here", hint)
        if holds_secret(self.env[name], self.env):
            return issue("contains a value that looks like a secret; secrets cannot be used here", _HINT)
        return None


def trust_of(kind: Kind, path: DataPath, *, is_own: bool) -> Trust:
    """Return the trust level of a path in a document for variables.

    Args:
        kind: kind of the document.
        path: path of the value.
        is_own: whether the value is in the requested file, and not in an included one.
    """
    match kind, path:
        case "model", ("secrets", *_):
            return "connection"
        case "model", ("config", str(name), *_) if name in CONNECTION_FIELDS:
            return "connection"
        case (("model" | "adapter"), _):
            return "own"
        case "dataset", ("source", "api_key"):
            return "never"
        case "run", ("secrets", *_):
            return "connection"
        case "run", ("models", int(), *rest):
            return trust_of("model", tuple(rest), is_own=is_own)
        case "run", ("model_adapters", *_):
            return "own"
        case "run", ("datasets", int(), *rest):
            return trust_of("dataset", tuple(rest), is_own=is_own)
        case "run", ("config" | "run_config", *_) if is_own:
            return "own"
        case "run", ("evaluation", "task_specifications", *_) if is_own:
            return "own"
        case "plan", ("evaluations", int(), *rest):
            return trust_of("run", tuple(rest), is_own=is_own)
        case "plan", ("evaluation_specifications", *_) if is_own:
            return "own"
    return "granted"


def holds_secret(value: str, env: Mapping[str, str]) -> bool:
    """Return whether a value contains a secret of this process or of an environment, or looks like a key."""
    is_secret = any(secret in value for secret in environment_secrets(env))
    return is_secret or redact(value) != value or looks_like_key(value)


_PART = re.compile(r"[A-Za-z0-9]{16,}")
_ARMOUR = "-----BEGIN "


def looks_like_key(value: str) -> bool:
    """Return whether a value looks like a key: a long mix of letters and digits, a password in a URL, or a
    PEM block.
    """
    if _ARMOUR in value or any(map(_is_mixed, _PART.findall(value))):
        return True
    try:
        return urlsplit(value).password is not None
    except ValueError:
        return False


def _is_mixed(part: str) -> bool:
    digits = sum(character.isdigit() for character in part)
    return digits >= 3 and len(part) - digits >= 3
