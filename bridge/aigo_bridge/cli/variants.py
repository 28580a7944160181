"""Variants of a run with different models or parameter values, each in its own folder, and compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import typer

from aigo_bridge.cli.error_handling import reported, show
from aigo_bridge.cli.hooks import Statistics
from aigo_bridge.cli.run_options import RunOptions
from aigo_bridge.cli.runs import RunOutputs, run_one, write_report
from aigo_bridge.cli.terminal import name_of, note, print_json, short_path
from aigo_bridge.codes import Code
from aigo_bridge.engine.registry import split_name
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.hooks import load_hook
from aigo_bridge.results.result_files import SUFFIX

TEXT_SUFFIXES = (".md", ".txt", ".jinja", ".j2", ".py")
"""Extensions of files that are replaced by their text."""

_LONGEST_TEXT = 1_000_000
"""Maximum size of such a file in bytes."""


@dataclass(frozen=True)
class Variant:
    """One variant of a run."""

    name: str
    """Displayed name, and folder name in DIR."""
    options: RunOptions


def variants(options: RunOptions) -> list[Variant]:
    """Return the requested runs; one run without a name if nothing varies.

    Raises:
        UsageError: the varied values are invalid.
    """
    is_benchmark = split_name(options.task) is not None
    # An engine's own benchmark handles several models, and settings after a comma, itself.
    models: Sequence[str | None] = [options.model] if is_benchmark else _models(options.model)
    varied = [_values(text) for text in options.vary or ()]
    keys = [key for key, _ in varied]
    if len(set(keys)) < len(keys):
        raise UsageError(
            f"--vary: {next(key for key in keys if keys.count(key) > 1)!r} is set twice",
            code=Code.OPTIONS_APART,
        )
    given = {text.partition("=")[0] for text in options.config or ()}
    if both := sorted(given & set(keys)):
        raise UsageError(f"--vary: {both[0]!r} is already set with --config", code=Code.OPTIONS_APART)
    if len(models) == 1 and not varied:
        return [Variant("", options)]
    if varied and is_benchmark:
        raise UsageError(
            "--vary: not for an engine benchmark (set its parameters with -T NAME=VALUE)",
            code=Code.OPTIONS_APART,
        )
    if refused := [name for name in ("--shard", "--record") if getattr(options, name[2:])]:
        raise UsageError(
            (f"{refused[0]}: cannot be combined with several variants; run each variant separately"),
            code=Code.OPTIONS_APART,
        )
    if len(options.engine_names()) > 1:
        raise UsageError(
            (
                "--engine: found several engines and several variants; compare engines with one "
                "variant at a time"
            ),
            code=Code.OPTIONS_APART,
        )
    runs: list[Variant] = []
    for model, values in product(models, product(*(values for _, values in varied))):
        parts = [_word(model)] if model is not None and len(models) > 1 else []
        parts += [f"{key}={_word(value)}" for key, value in zip(keys, values, strict=True)]
        name = _unused("+".join(parts), [variant.name for variant in runs])
        config = [*(options.config or ()), *(f"{k}={_text(v)}" for k, v in zip(keys, values, strict=True))]
        own = replace(
            options, model=model, config=config or None, vary=None, out=options.out / name, report=False
        )
        runs.append(Variant(name, own))
    return runs


def run_variants(runs: Sequence[Variant], options: RunOptions) -> ExitCode:
    """Run all variants one after the other, and compare them with the first.

    All variants are planned before any runs. A failed variant does not stop the others.
    """
    codes: list[ExitCode] = []
    gathered: list[RunOutputs] = []
    if split_name(options.task) is None:
        _plan_all(runs)
    for variant in runs:
        if not options.as_json:
            note(f"{name_of(variant.name)} …")
        gathered.append(RunOutputs())
        try:
            codes.append(run_one(variant.options, gathered[-1]))
        except typer.Exit as error:  # The error has already been reported.
            codes.append(ExitCode(error.exit_code))
        if codes[-1] >= ExitCode.HUNG_UP:
            break
    comparison = _compared(runs[: len(codes)], options)
    if options.as_json:
        rows = [
            {
                "name": variant.name,
                "model": variant.options.model,
                "out": str(variant.options.out),
                "exit_code": int(code),
                "result": one.contents[0] if one.contents else None,
            }
            for variant, code, one in zip(runs, codes, gathered, strict=False)
        ]
        print_json({"variants": rows, "comparison": comparison})
    if options.report:
        with reported(ExitCode.FAILED):
            write_report(options, [path for one in gathered for path in one.results])
    return max(codes)


def _plan_all(runs: Sequence[Variant]) -> None:
    """Report problems of all variants before the first one runs."""
    from aigo_bridge.cli.options import cache_policy
    from aigo_bridge.evaluation.task import evaluations_of

    for variant in runs:
        options = variant.options
        options.refuse_those_of_benchmarks()
        evaluations_of(options.origin(), cache=cache_policy(options.cache), model=options.models().model)


def _compared(runs: Sequence[Variant], options: RunOptions) -> dict[str, Any] | None:
    """Show the comparison, or return it as JSON; `None` if there is nothing to compare."""
    folders = [variant.options.out for variant in runs if list(variant.options.out.glob(f"*{SUFFIX}"))]
    if len(folders) < 2:  # A comparison needs two results.
        return None
    try:
        compared = load_hook("statistics", Statistics).compare(folders)
    except BridgeError as error:
        # The runs themselves have ended, and their exit codes are independent of the comparison.
        show(error)
        names = " ".join(short_path(folder) for folder in folders)
        typer.echo(f"not compared; run `aigo-bridge compare {name_of(names)}`", err=True)
        return None
    if not options.as_json:
        compared.show()
    return compared.to_json()


def _models(text: str | None) -> list[str | None]:
    """Return the models. File names may contain commas, and so may settings after a model name, as in
    lighteval.
    """
    if text is None or "," not in text or Path(text.removeprefix("scripted/")).exists():
        return [text]
    names = [name.strip() for name in text.split(",")]
    if any("=" in name for name in names):
        return [text]
    if "" in names or len(set(names)) < len(names):
        raise UsageError(
            f"--model: found {text!r}, expected one or more different models, e.g. A,B",
            code=Code.WRONG_OPTION,
        )
    return list[str | None](names)


def _values(text: str) -> tuple[str, list[str]]:
    key, equals, values = text.partition("=")
    words = [value.strip() for value in values.split(",")]
    if (
        not equals or not key or len(words) < 2 or "" in words or len(set(words)) < len(words)
    ):  # A variation needs several values.
        raise UsageError(
            f"--vary: found {text!r}, expected KEY=VALUE,VALUE with different values", code=Code.WRONG_OPTION
        )
    return key, words


def _text(value: str) -> str:
    """Return the text of a text file, otherwise the value itself."""
    path = Path(value)
    if path.suffix not in TEXT_SUFFIXES or not path.is_file():
        return value
    from aigo_bridge.access.opening import read_regular

    try:
        return read_regular(path, _LONGEST_TEXT).decode("utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"--vary: {value} is not UTF-8 text", code=Code.NOT_UTF8) from error


def _word(value: str) -> str:
    """Return a value as a part of a folder name; for a file, only its stem."""
    path = Path(value.removeprefix("scripted/"))
    short = path.stem if path.is_file() else value
    return re.sub(r"[^A-Za-z0-9._-]+", "-", short).strip("-.")[:60] or "variant"


def _unused(name: str, names: Sequence[str]) -> str:
    taken = {one.casefold() for one in names}
    candidates = (name, *(f"{name}_{number}" for number in range(2, len(names) + 3)))
    return next(one for one in candidates if one.casefold() not in taken)
