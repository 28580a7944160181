"""Generate docs/aigo-bridge.1, the manual page, from the help texts: `make manual`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from aigo_bridge.cli import VERBS, LazyGroup
from aigo_bridge.exit_codes import ExitCode

FILE = Path(__file__).resolve().parents[1] / "docs" / "aigo-bridge.1"

CODES = {
    ExitCode.DONE: "Success.",
    ExitCode.FAILED: "A check failed: failed samples, a metric without a value, or a failed policy or rule.",
    ExitCode.WRONG_USE: "Wrong arguments or an invalid task. Nothing was run.",
    ExitCode.PARTIAL: "Success, but some parts were skipped or recovered.",
    ExitCode.UNDECIDED: "Not enough samples to decide a rule.",
    ExitCode.HUNG_UP: "Stopped by SIGHUP.",
    ExitCode.INTERRUPTED: "Stopped by ctrl-C.",
    ExitCode.TERMINATED: "Stopped by SIGTERM.",
}


def text(words: str) -> str:
    """Return words escaped for roff."""
    plain = " ".join(words.split()).replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + plain if plain.startswith((".", "'")) else plain


def bold(words: str) -> str:
    """Return words in bold."""
    return f"\\fB{text(words)}\\fR"


def options(command: Any) -> list[str]:
    """Return the lines of all options."""
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
    """Return a verb with its arguments."""
    names = [
        parameter.metavar or parameter.name.upper()
        for parameter in command.params
        if not parameter.opts[0].startswith("-")
    ]
    arguments = " ".join(f"\\fI{text(name)}\\fR" for name in names)
    return f"{bold(f'aigo-bridge {verb}')} [\\fIOPTIONS\\fR] {arguments}".rstrip()


def manual() -> str:
    """Return the text of the manual page."""
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
        "Print no progress and no notes. Also allowed after any command.",
        ".TP",
        f"{bold('-v')}, {bold('--verbose')}",
        "Print each sample, retry and project default. Also allowed after any command.",
        ".TP",
        bold("--install-completion"),
        "Install completion for the current shell (bash, zsh, fish or PowerShell).",
        ".TP",
        bold("--show-completion"),
        "Print the completion script of the current shell.",
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
            lines += [".PP", text(paragraph)]
        if command.examples:
            lines += [".PP", "Examples:", ".PP", ".nf", *map(text, command.examples), ".fi"]
        lines += options(command)
        if command.exit_codes:
            lines += [".PP", "Exit codes:"]
        for code, meaning in command.exit_codes.items():
            lines += [".TP", bold(code), text(meaning)]
    lines.append(".SH EXIT STATUS")
    for code, meaning in CODES.items():
        lines += [".TP", bold(str(int(code))), text(meaning)]
    lines += [
        ".SH ENVIRONMENT",
        ".TP",
        bold("NO_COLOR"),
        "If set, the output has no colors.",
        ".TP",
        bold("COLUMNS"),
        "Width of the help and of terminal output.",
        ".SH FILES",
        ".TP",
        bold("aigo-bridge.toml"),
        text(
            "Default options of the project in the current folder. You can also use [tool.aigo-bridge] in"
            " pyproject.toml."
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(manual(), encoding="utf-8")
