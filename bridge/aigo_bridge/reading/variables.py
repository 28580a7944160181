"""Environment variables in documents (`api_key: $OPENAI_API_KEY`): which are put in, decided by the kind of
file and the place in it.

Only values of mappings that start with `$` and hold no white space are looked at, so that model keys such as
`openai$gpt-4-1-nano` and prompts stay as they are. Inside such a value a shell's rules hold.

* A connection's own places (addresses, headers, keys, certificates, the environment of the user's inference
  code) take any variable.
* What else stands in models, adapters and run files is the user's, too, and takes any variable that is no
  secret.
* Tasks, datasets, generators, policies, evaluations, apps and whatever else may come from strangers, also
  where a run file holds or includes them, take variables that the user has named (`--env NAME`), and no
  secrets.
* A trace service's key in a dataset stays as it is written: nothing here calls that service.
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
"""Bytes that an `.env` file may have."""

LONGEST_CANDIDATE = 4096
"""Characters of a value in which variables are looked for: each name may stand for much more than it takes to
write.
"""

_SPACE = re.compile(r"\s")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{([^}]*)\})", re.ASCII)


def is_candidate(text: str) -> bool:
    """Whether variables are looked for in a value."""
    return text.startswith("$") and len(text) <= LONGEST_CANDIDATE and _SPACE.search(text) is None


def expand(text: str, env: Mapping[str, str]) -> tuple[str, list[str]]:
    """The text with variables put in, and the names of those that are not set (they stay as written)."""
    unset: list[str] = []

    def value(match: re.Match[str]) -> str:
        name = match[1] if match[1] is not None else match[2]
        if name in env:
            return env[name]
        unset.append(name)
        return match[0]

    return _VARIABLE.sub(value, text), unset


def names_in(text: str) -> list[str]:
    """The variables that a value names, each once."""
    names = (match[1] if match[1] is not None else match[2] for match in _VARIABLE.finditer(text))
    return list(dict.fromkeys(names))


def environment(env_file: Path | None = None) -> dict[str, str]:
    """The process's variables over those of `.env` in the current folder (or of `env_file`); what is secret
    of them is known from then on.

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
    """Variables of an `.env` file: `NAME=value` lines, `export` and quotes allowed, `#` starts a comment."""
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
"""Fields of a model's `config` that are used to reach it and for nothing else."""

_HINT = (
    "put API keys into a model file or the models of a run file: config.api_key, "
    "custom_headers, environment, secrets"
)


@dataclass
class Variables:
    """Puts the variables of one document in, and keeps what it did."""

    env: Mapping[str, str]
    issues: list[Issue] = field(default_factory=list)
    failed: set[tuple[str, int, int]] = field(default_factory=set)
    """Places (file, line, column) of values that are not what they should be, so that nothing more is said of
    them.
    """
    uses: list[VariableUse] = field(default_factory=list)
    expanded: dict[str, str] = field(default_factory=dict)
    """What variables became → as it was written: messages are cleared of it."""

    def put_in(self, kind: Kind, node: Node, data: Any, file: str, path: DataPath = ()) -> None:
        """Replace the variables of a document's data.

        Args:
            kind: what the document is.
            node: its nodes.
            data: the same as a tree, made of these nodes; changed in place.
            file: the file that was asked for, as marks carry it.
            path: place in the document of which this is a part.
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
        """A value with its variables put in, as far as the place may have them; what it may not is an
        issue.
        """
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
                "under [tool.aigo-bridge] in pyproject.toml of your own project"
            )
            return issue("is not allowed here", hint)
        if holds_secret(self.env[name], self.env):
            return issue("contains a value that looks like a secret; secrets cannot be used here", _HINT)
        return None


def trust_of(kind: Kind, path: DataPath, *, is_own: bool) -> Trust:
    """How far a place in a document is trusted with variables.

    Args:
        kind: what the document is.
        path: the place.
        is_own: whether it is written in the file that was asked for, and not in one that this includes.
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
    """Whether a value is, or holds, a secret of this process or of an environment, or has the form of
    a key.
    """
    is_secret = any(secret in value for secret in environment_secrets(env))
    return is_secret or redact(value) != value or looks_like_key(value)


_PART = re.compile(r"[A-Za-z0-9]{16,}")
_ARMOUR = "-----BEGIN "


def looks_like_key(value: str) -> bool:
    """Whether a value has the form of a key: letters and digits mixed over a length that no word has, a
    password in an address, a PEM.
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
