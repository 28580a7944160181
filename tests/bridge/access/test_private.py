"""Private files are hidden, named like keys, or ignored by git. The expected values come from `git` itself."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from aigo_bridge.access.grants import Grants, granting
from aigo_bridge.access.private import reason_of, refusal

IGNORED = {
    "": [
        "*.log",
        "!keep.log",
        "/build/",
        "secret*",
        "a/**/z",
        "docs/*.txt",
        "!docs/open.txt",
        "# x",
        "",
        "\\#h",
        "o ",
        "!",
    ],
    "sub": ["!sub.log", "inner/", "*.dat", "!keep.dat"],
    "sub/deep": ["*", "!.gitignore", "!shown.txt"],
}
FILES = (
    *("x.log", "keep.log", "build/x", "other/build/x", "secret.md", "sub/secrets", "a/z", "a/b/c/z", "a/b/y"),
    *(
        "docs/a.txt",
        "docs/open.txt",
        "docs/sub/a.txt",
        "#h",
        "# x",
        "o",
        "sub/sub.log",
        "sub/x.log",
        "sub/inner/x",
    ),
    *(
        "inner/x",
        "sub/x.dat",
        "sub/keep.dat",
        "x.dat",
        "sub/deep/hidden.txt",
        "sub/deep/shown.txt",
        "plain.txt",
    ),
    *("Build/x", "ünïcode.log", "with space/x.log", "local.txt"),
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Create a repository with ignored and other files."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("local.txt\n", encoding="utf-8")
    for folder, lines in IGNORED.items():
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    return tmp_path


def test_ignored_files_match_git(repository: Path) -> None:
    done = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "-z", "--stdin"],
        input="\0".join(FILES),
        capture_output=True,
        text=True,
        check=True,
    )
    by_git = set(done.stdout.split("\0")) - {""}
    ours = {name for name in FILES if reason_of(repository / name, repository) == "ignored by git"}
    named_like_keys = {"secret.md", "sub/secrets"}
    assert ours | named_like_keys == by_git | named_like_keys
    assert len(by_git) > 10


@pytest.mark.parametrize(
    "name",
    [
        *(
            ".env",
            "x/.env",
            ".git/config",
            ".ssh/id",
            "x/../.env",
            "./.env",
            ".config/a/b.yaml",
            ".ENV.local",
        ),
        *(
            "server.pem",
            "x/SERVER.KEY",
            "id_rsa",
            "id_ed25519.pub",
            "a.p12",
            "b.pfx",
            "c.kdbx",
            "credentials",
        ),
        *("aws/credentials.csv", "prod.env", "service-account-1.json", "secrets.yaml", "terraform.tfstate"),
    ],
)
def test_hidden_files_and_key_files_are_private(name: str, tmp_path: Path) -> None:
    issue = refusal(tmp_path / name, tmp_path, repr(name))
    assert issue is not None
    assert "a task may not read it" in issue.message
    assert "--allow-file" in str(issue.hint)


@pytest.mark.parametrize(
    "name",
    ["rows.jsonl", "keys.csv", "a.b/c.txt", "prompt..txt", "token_counts.csv", "x/credential_prompts.jsonl"],
)
def test_ordinary_files_are_not_private(name: str, tmp_path: Path) -> None:
    assert refusal(tmp_path / name, tmp_path, repr(name)) is None


def test_symlink_is_checked_by_its_name_and_its_target(tmp_path: Path) -> None:
    for name in (".env", "plain.txt"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    (tmp_path / "innocent.txt").symlink_to(".env")
    (tmp_path / ".hidden.txt").symlink_to("plain.txt")
    (tmp_path / "folder").symlink_to(tmp_path / ".git", target_is_directory=True)
    for name in ("innocent.txt", ".hidden.txt", "folder/config"):
        assert reason_of(tmp_path / name, tmp_path) is not None, name
    (tmp_path / "root").symlink_to(tmp_path, target_is_directory=True)
    assert reason_of(tmp_path / "root" / "plain.txt", tmp_path) is None


def test_task_in_an_ignored_folder_can_read_its_own_files(tmp_path: Path) -> None:
    """A task in an ignored or hidden folder can read the files next to it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("scratch/\n*.dump\n", encoding="utf-8")
    for name in (
        "scratch/task/prompt.txt",
        "scratch/other/rows.txt",
        ".cache/task/prompt.txt",
        "open/x.dump",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    for own in ("scratch/task", ".cache/task"):
        assert reason_of(tmp_path / own / "prompt.txt", tmp_path, tmp_path / own) is None
        assert reason_of(tmp_path / own / "prompt.txt", tmp_path, tmp_path / "open") is not None
        assert reason_of(tmp_path / own / ".env", tmp_path, tmp_path / own) is not None
    assert reason_of(tmp_path / "scratch/other/rows.txt", tmp_path, tmp_path / "scratch/task") is not None
    assert reason_of(tmp_path / "open/x.dump", tmp_path, tmp_path / "open") is not None


def test_nested_repository_uses_its_own_ignore_rules(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("inner/\n", encoding="utf-8")
    (tmp_path / "inner" / ".git").mkdir(parents=True)
    (tmp_path / "inner" / ".gitignore").write_text("private.txt\n", encoding="utf-8")
    own = tmp_path / "inner"
    assert reason_of(own / "private.txt", tmp_path, own) == "ignored by git"
    assert reason_of(own / "open.txt", tmp_path, own) is None


def test_only_private_files_named_by_the_user_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    for name in (".env", "keys/a.pem", "b.pem"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    with granting(
        Grants(files=frozenset([os.path.realpath(tmp_path / "keys"), os.path.realpath(tmp_path / ".env")]))
    ):
        assert refusal(tmp_path / ".env", tmp_path, "") is None
        assert refusal(tmp_path / "keys" / "a.pem", tmp_path, "") is None
        assert refusal(tmp_path / "b.pem", tmp_path, "") is not None


def test_ignore_pattern_with_many_wildcards_is_fast(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*a" * 40 + "*b\nx\n", encoding="utf-8")
    start = time.process_time()
    assert reason_of(tmp_path / ("a" * 250), tmp_path) is None
    assert reason_of(tmp_path / "x", tmp_path) == "ignored by git"
    assert time.process_time() - start < 2


def test_git_is_never_executed(tmp_path: Path) -> None:
    """The settings of an untrusted repository can contain commands that git executes."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with (tmp_path / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(f"[core]\n\tfsmonitor = touch {tmp_path}/owned\n")
    (tmp_path / ".gitignore").write_text("x\n", encoding="utf-8")
    assert reason_of(tmp_path / "x", tmp_path) == "ignored by git"
    assert not (tmp_path / "owned").exists()
