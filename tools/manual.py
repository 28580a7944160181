"""Write docs/aigo-bridge.1, the manual page, from the command line itself: `make manual`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from aigo_bridge.cli import VERBS, LazyGroup
from aigo_bridge.exit_codes import ExitCode

FILE = Path(__file__).resolve().parents[1] / "docs" / "aigo-bridge.1"

CODES = {
    ExitCode.DONE: "All is right.",
    ExitCode.FAILED: "What was examined is not right: failed samples, a metric without a value, a policy or"
    " a rule that does not hold.",
    ExitCode.WRONG_USE: "Wrong use, or an invalid task: nothing was run.",
    ExitCode.PARTIAL: "All is right, but something was left out or salvaged.",
    ExitCode.UNDECIDED: "A rule cannot be decided with this many samples.",
    ExitCode.HUNG_UP: "Stopped by SIGHUP.",
    ExitCode.INTERRUPTED: "Stopped by ctrl-C.",
    ExitCode.TERMINATED: "Stopped by SIGTERM.",
}


def text(words: str) -> str:
    """Words as roff has them: nothing in them is a request."""
    plain = " ".join(words.split()).replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + plain if plain.startswith((".", "'")) else plain


def bold(words: str) -> str:
    """Words in bold."""
    return f"\\fB{text(words)}\\fR"


def options(command: Any) -> list[str]:
    """Each option with its help."""
    lines = []
    for parameter in command.params:
        if not parameter.opts[0].startswith("-") or getattr(parameter, "hidden", False) or not parameter.help:
            continue
        names = ", ".join(bold(name) for name in (*parameter.opts, *parameter.secondary_opts))
        value = (
            "" if getattr(parameter, "is_flag", False) else f" \\fI{text(parameter.metavar or 'VALUE')}\\fR"
        )
        lines += [".TP", names + value, text(parameter.help)]
    return lines


def synopsis(verb: str, command: Any) -> str:
    """A verb with its arguments."""
    names = [
        parameter.metavar or parameter.name.upper()
        for parameter in command.params
        if not parameter.opts[0].startswith("-")
    ]
    arguments = " ".join(f"\\fI{text(name)}\\fR" for name in names)
    return f"{bold(f'aigo-bridge {verb}')} [\\fIOPTIONS\\fR] {arguments}".rstrip()


def manual() -> str:
    """The page."""
    group = LazyGroup(name="aigo-bridge")
    lines = [
        '.TH AIGO\\-BRIDGE 1 "" "aigo\\-bridge" "User Commands"',
        ".SH NAME",
        "aigo\\-bridge \\- AI GO evaluation tasks on Inspect AI and lighteval; engine logs as AI GO evidence",
        ".SH SYNOPSIS",
        (
            f"{bold('aigo-bridge')} [{bold('-q')}|{bold('-v')}] \\fIVERB\\fR"
            " [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]"
        ),
        ".SH OPTIONS",
        ".TP",
        f"{bold('-q')}, {bold('--quiet')}",
        "No progress and no notes; also behind the verb.",
        ".TP",
        f"{bold('-v')}, {bold('--verbose')}",
        "Each sample and each retry of a run, and the defaults that count; also behind the verb.",
        ".TP",
        bold("--install-completion"),
        "Install completion for the current shell (bash, zsh, fish, PowerShell).",
        ".TP",
        bold("--show-completion"),
        "Show completion for the current shell, to put it elsewhere.",
        ".TP",
        bold("--version"),
        "Show the version.",
        ".SH VERBS",
    ]
    for verb in VERBS:
        command = group.get_command(None, verb)
        described = inspect.cleandoc(command.help or "").split("\n\n")
        lines += [f".SS {text(verb)}", synopsis(verb, command)]
        for paragraph in described:
            lines.append(".PP")
            if paragraph.startswith("\b"):
                lines += [".nf", *map(text, paragraph.splitlines()[1:]), ".fi"]
            else:
                lines.append(text(paragraph))
        lines += options(command)
    lines.append(".SH EXIT STATUS")
    for code, meaning in CODES.items():
        lines += [".TP", bold(str(int(code))), text(meaning)]
    lines += [
        ".SH ENVIRONMENT",
        ".TP",
        bold("NO_COLOR"),
        "Not empty: no colours.",
        ".TP",
        bold("COLUMNS"),
        "Width of help, and of what is said on a terminal.",
        ".SH FILES",
        ".TP",
        bold("aigo-bridge.toml"),
        text(
            "Defaults for options of the project of the current folder; or [tool.aigo-bridge] in its"
            " pyproject.toml."
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(manual(), encoding="utf-8")
