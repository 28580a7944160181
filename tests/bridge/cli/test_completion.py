"""Shell completion: the protocol of each shell's script, and typed input in each installed shell."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.commands import Run
from typer.testing import CliRunner

from aigo_bridge.cli import VERBS, app

BIN = Path(sys.executable).parent
ASKING = {
    "bash": lambda line, word: {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - bool(word))},
    "zsh": lambda line, word: {"_TYPER_COMPLETE_ARGS": line},
    "fish": lambda line, word: {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    "powershell": lambda line, word: {
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": word,
    },
}
"""Shell → what its script puts into the environment for a line, of which the last word is being typed."""


def offered(shell: str, line: str) -> list[str]:
    word = "" if line.endswith(" ") else line.rsplit(maxsplit=1)[-1]
    environment = {"_AIGO_BRIDGE_COMPLETE": f"complete_{shell}", **ASKING[shell](line, word)}
    out = CliRunner().invoke(app, [], prog_name="aigo-bridge", env=environment).stdout
    pattern = {"zsh": r'"([^"]+)"(?::"|\n|\)\))', "fish": r"^([^\t\n]+)", "powershell": r"^(.+?):::"}
    return re.findall(pattern.get(shell, r"^(.+)$"), out, re.MULTILINE)


@pytest.mark.parametrize("shell", ASKING)
def test_completion_offers_commands_options_and_values(shell: str) -> None:
    assert offered(shell, "aigo-bridge val") == ["validate"]
    assert "--resume" in offered(shell, "aigo-bridge run --res")
    assert offered(shell, "aigo-bridge run --subsampling ") == ["head", "random"]
    assert offered(shell, "aigo-bridge init --template mu") == ["multi-turn"]
    assert offered(shell, "aigo-bridge run x --engine light") == ["lighteval"]
    assert offered(shell, "aigo-bridge run aigo_tasks/gs") == ["aigo_tasks/gsm8k"]
    assert "--install-completion" in offered(shell, "aigo-bridge --inst")


def test_completion_offers_all_commands_without_importing_them() -> None:
    code = (
        "import os, sys\n"
        "os.environ.update(_AIGO_BRIDGE_COMPLETE='complete_bash', COMP_WORDS='aigo-bridge ', COMP_CWORD='1')\n"
        "sys.argv = ['aigo-bridge']\n"
        "from aigo_bridge.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*[name for name in sys.modules if '.verbs.' in name], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == list(VERBS)
    assert done.stderr.split() == []


def test_file_names_are_completed_by_the_shell() -> None:
    for line in (
        "aigo-bridge run ",
        "aigo-bridge run a",
        "aigo-bridge validate ta",
        "aigo-bridge run x --out ",
    ):
        assert offered("bash", line) == []


def test_completion_works_with_an_invalid_settings_file(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "aigo-bridge.toml").write_text("[run")

    assert offered("bash", "aigo-bridge run --subsampling h") == ["head"]


def needs(shell: str) -> str:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(
            f"{shell} is not installed here: its script is asked above, and not tried in the shell itself"
        )
    return path


def installed(shell: str, home: Path) -> dict[str, str]:
    """Return an environment in which `aigo-bridge --install-completion` was run in a shell."""
    path = needs(shell)
    environment = {
        "HOME": str(home),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "PS1": "> ",
    }
    line = f"aigo-bridge --install-completion{'' if shell != 'pwsh' else ' | Out-Host'}; true"
    done = subprocess.run([path, "-c", line], env=environment, cwd=home, capture_output=True, text=True)
    assert f"{shell} completion installed" in done.stdout, done.stderr
    return environment


def test_completion_works_in_bash(tmp_path: Path) -> None:
    environment = installed("bash", tmp_path)
    script = (
        "source ~/.bashrc; COMP_WORDS=(aigo-bridge run --subsampling h); COMP_CWORD=3;"
        " $(complete -p aigo-bridge | sed 's/.*-F \\([^ ]*\\).*/\\1/') aigo-bridge; echo \"${COMPREPLY[@]}\""
    )

    done = subprocess.run(["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("head\n", "")


def test_completion_works_in_fish(tmp_path: Path) -> None:
    environment = installed("fish", tmp_path)

    done = subprocess.run(
        ["fish", "-c", "complete -C 'aigo-bridge run --subsampling h'"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip

    assert done.stdout == "head\n", done.stderr


def test_completion_works_in_zsh(tmp_path: Path) -> None:
    """The completion system of zsh works only in a terminal, so the test types into one."""
    environment = installed("zsh", tmp_path)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execve(needs("zsh"), ["zsh", "-i"], environment)
    said = ""

    def wait_for(text: str, typed: bytes = b"") -> None:
        nonlocal said
        deadline = time.monotonic() + 60
        while text not in said.replace("\x07", "") and time.monotonic() < deadline:
            os.write(terminal, typed)
            if select.select([terminal], [], [], 2)[0]:
                said += os.read(terminal, 4096).decode("utf-8", "replace")
        assert text in said.replace("\x07", ""), said

    try:
        wait_for("> ")
        os.write(terminal, b"aigo-bridge run --subsampling h")
        # On the first press of the key in a session, zsh only loads the script.
        wait_for("--subsampling head", b"\t")
    finally:
        os.kill(process, 9)
        os.close(terminal)
        os.waitpid(process, 0)


def test_completion_works_in_powershell(tmp_path: Path) -> None:
    environment = installed("pwsh", tmp_path)
    script = (
        ". $PROFILE; (TabExpansion2 'aigo-bridge run --subsampling h' 31).CompletionMatches.CompletionText"
    )

    done = subprocess.run(["pwsh", "-Command", script], env=environment, capture_output=True, text=True)

    assert done.stdout.split() == ["head"], done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_show_completion_prints_the_script(shell: str, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [needs(shell), "-c", "aigo-bridge --show-completion; true"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip

    assert f"_AIGO_BRIDGE_COMPLETE=complete_{shell}" in done.stdout
    assert not [path for path in tmp_path.rglob("*") if "aigo" in path.name or path.name.endswith("rc")]
