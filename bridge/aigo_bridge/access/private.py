"""Files in the root folder that a task may not read: hidden files, key files and all files that git ignores,
unless the user allows them (`--allow-file`, or `files` in the user's own project).

A task from another author is often in the user's project. There it could include the project's `.env` or
`.git/config`, whose content would be sent to a model and written into evidence.

Ignored files are determined from the `.gitignore` files. Git itself is never started: the settings of an
untrusted repository can name commands that git runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.access.existence import is_folder, is_present
from aigo_bridge.access.grants import allows_file
from aigo_bridge.access.opening import from_here, is_below, outside, read_regular, real_path
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

KEY_FILES = (
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdbx", "*.kdb", "*.ppk"),
    *("*.gpg", "*.pgp", "*.asc", "*.age", "*.ovpn", "*.env", "*.tfstate", "*.tfvars", "*.keytab"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "_netrc", "htpasswd", "kubeconfig*"),
    *("credentials", "*credentials.json", "credentials.*", "client_secret*.json", "service_account*.json"),
    *("service-account*.json", "secrets", "secrets.y*ml", "secrets.toml", "secrets.json", "secrets.ini"),
    *("secrets.txt", "secret", "secret.txt", "token", "token.json", "token.txt"),
)
"""Lowercase names of files that contain keys."""

_LARGEST = 1_000_000
"""Maximum bytes that are read from a `.gitignore`."""
_MOST_PATTERNS = 10_000
_MOST_STARS = 4
"""Maximum wildcards in one part of a pattern: the matching time doubles with each of them."""
_TOO_MANY_STARS = re.compile(rf"(?:\*[^*/]+){{{_MOST_STARS},}}\*")


def refusal(
    path: Path, root: Path | None, shown: str, *, own: Path | None = None, file: str | None = None
) -> Issue | None:
    """Return why a file or folder that a task references may not be read; `None` if it may.

    Args:
        path: the file or folder.
        root: folder that it may not leave; `None`: it may lie anywhere, and the user has named it.
        shown: the path as a message shows it.
        own: folder of the file that names it. If that folder is itself hidden or ignored by git, files below
            it are not: they came with the file that names them.
        file: the file that the issue is about.
    """
    if root is None:
        return None
    if not is_below(path, root):
        return outside(shown, path, root, file)
    reason = reason_of(path, root, own)
    if reason is None or allows_file(path):
        return None
    return Issue(
        f"{shown} is {reason}; a task may not read it",
        file=file,
        hint=f"to allow it, use --allow-file {from_here(path)}",
        code=Code.PRIVATE_FILE,
    )


def refusals_below(folder: Path, root: Path, own: Path | None = None) -> list[Issue]:
    """Return why files below a folder may not be read, for readers that walk the folder themselves."""
    issues = []
    for place, folders, files in os.walk(folder):
        for name in sorted((*folders, *files)):
            path = Path(place, name)
            shown = path.relative_to(folder).as_posix() + (": the link" if path.is_symlink() else "")
            if (issue := refusal(path, root, shown, own=own, file=str(path))) is not None:
                issues.append(issue)
                if name in folders:
                    folders.remove(name)
    return issues


def reason_of(path: Path, root: Path, own: Path | None = None) -> str | None:
    """Return why a file is private, to end the sentence "the file is …"; `None` if it is not."""
    real, real_root = real_path(path), real_path(root)
    places = {(_plain(path), _plain(root)), (_plain(path), real_root), (real, real_root)}
    reasons = (
        _reason(place, around, own) for place, around in sorted(places) if place.is_relative_to(around)
    )
    return next(filter(None, reasons), None)


def _reason(place: Path, root: Path, owner_folder: Path | None) -> str | None:
    owner_folders = () if owner_folder is None else (_plain(owner_folder), real_path(owner_folder))
    start = next(
        (folder for folder in owner_folders if place.is_relative_to(folder) and folder.is_relative_to(root)),
        None,
    )
    if any(part.startswith(".") for part in place.relative_to(start or root).parts):
        return "a hidden file or in a hidden folder"
    name = place.name.lower()
    if any(fnmatchcase(name, pattern) for pattern in KEY_FILES) and not is_folder(place):
        return "named like a key file"
    if (start is None or not _is_ignored(start, root)) and _is_ignored(place, root):
        return "ignored by git"
    return None


def _plain(path: Path) -> Path:
    return Path(os.path.normpath(path.absolute()))


# .gitignore


def _is_ignored(path: Path, root: Path) -> bool:
    """Return whether git ignores a path or a folder above it, according to the `.gitignore` files from its
    repository (otherwise from the root folder) downwards.
    """
    top = next((place for place in (path, *path.parents) if is_present(place / ".git")), root)
    if not path.is_relative_to(top):
        return False
    parts = path.relative_to(top).parts
    rules = [*_rules(top / ".git" / "info" / "exclude", top)]
    folder = top
    for number, part in enumerate(parts, 1):
        rules += _rules(folder / ".gitignore", folder)
        folder = folder / part
        if rules and _matches(folder, rules, ends_in_slash=number < len(parts) or is_folder(folder)):
            return True
    return False


def _matches(path: Path, rules: list[tuple[Path, GitIgnoreSpec]], *, ends_in_slash: bool) -> bool:
    """Return whether a path is ignored, according to the nearest file with a matching pattern."""
    for folder, spec in reversed(rules):
        relative = path.relative_to(folder).as_posix() + ("/" if ends_in_slash else "")
        said = spec.check_file(relative).include
        if said is not None:
            return said
    return False


def _rules(file: Path, folder: Path) -> Iterator[tuple[Path, GitIgnoreSpec]]:
    try:
        status = file.stat()
    except OSError:
        return
    spec = _patterns(file, status.st_mtime_ns, status.st_size)
    if spec is not None:
        yield folder, spec


@lru_cache(1_000)
def _patterns(file: Path, _changed_ns: int, _size: int) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        text = read_regular(file, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return None
    patterns = []
    for line in text.splitlines()[:_MOST_PATTERNS]:
        if _TOO_MANY_STARS.search(line):
            continue
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:  # Git skips such a line.
            continue
        patterns.append(line)
    return GitIgnoreSpec.from_lines(patterns)
