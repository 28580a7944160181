"""Several variants of one run: other models, or other values of parameters. Each runs in a folder of its own,
and all are compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import typer

from aigo_bridge.cli.failing import reported, show
from aigo_bridge.cli.hooks import Statistics
from aigo_bridge.cli.run_options import RunOptions
from aigo_bridge.cli.runs import Gathered, run_one, write_report
from aigo_bridge.cli.terminal import name_of, note, print_json, short_path
from aigo_bridge.codes import Code
from aigo_bridge.engine.registry import split_name
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.hooks import load_hook
from aigo_bridge.results.result_files import SUFFIX

TEXT_SUFFIXES = (".md", ".txt", ".jinja", ".j2", ".py")
"""Of files that stand for their text."""

_LONGEST_TEXT = 1_000_000
"""Bytes of such a file."""


@dataclass(frozen=True)
class Variant:
    """One of several runs."""

    name: str
    """As it is shown, and its folder in DIR."""
    options: RunOptions


def variants(options: RunOptions) -> list[Variant]:
    """The runs that were asked for; one without a name where nothing varies.

    Raises:
        UsageError: what varies makes no sense.
    """
    is_benchmark = split_name(options.task) is not None
    # An engine's own benchmark takes several models, or settings behind a comma, by itself.
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
    """Run all variants, one after the other, and compare them with the first.

    Every one is planned before any is run; one that fails does not keep the others from running.
    """
    codes: list[ExitCode] = []
    gathered: list[Gathered] = []
    if split_name(options.task) is None:
        _plan_all(runs)
    for variant in runs:
        if not options.as_json:
            note(f"{name_of(variant.name)} …")
        gathered.append(Gathered())
        try:
            codes.append(run_one(variant.options, gathered[-1]))
        except typer.Exit as error:  # it has been told
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
    """Tell what is wrong with any variant before the first is run."""
    from aigo_bridge.cli.options import cache_policy
    from aigo_bridge.evaluation.task import evaluations_of

    for variant in runs:
        options = variant.options
        options.refuse_those_of_benchmarks()
        evaluations_of(options.origin(), cache=cache_policy(options.cache), model=options.models().model)


def _compared(runs: Sequence[Variant], options: RunOptions) -> dict[str, Any] | None:
    """The comparison, for programs; shown, if the run is. `None`: there is nothing to compare."""
    folders = [variant.options.out for variant in runs if list(variant.options.out.glob(f"*{SUFFIX}"))]
    if len(folders) < 2:  # one result is compared with nothing
        return None
    try:
        compared = load_hook("statistics", Statistics).compare(folders)
    except BridgeError as error:
        # The runs are what was asked for, and they have ended well or not by themselves.
        show(error)
        names = " ".join(short_path(folder) for folder in folders)
        typer.echo(f"not compared; run `aigo-bridge compare {name_of(names)}`", err=True)
        return None
    if not options.as_json:
        compared.show()
    return compared.to_json()


def _models(text: str | None) -> list[str | None]:
    """The models; the name of a file may have commas, and so have settings behind a name, as in lighteval."""
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
    if not equals or not key or len(words) < 2 or "" in words or len(set(words)) < len(words):  # several
        raise UsageError(
            f"--vary: found {text!r}, expected KEY=VALUE,VALUE with different values", code=Code.WRONG_OPTION
        )
    return key, words


def _text(value: str) -> str:
    """What a value stands for: of a file with text, the text."""
    path = Path(value)
    if path.suffix not in TEXT_SUFFIXES or not path.is_file():
        return value
    from aigo_bridge.access.opening import read_regular

    try:
        return read_regular(path, _LONGEST_TEXT).decode("utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"--vary: {value} is not UTF-8 text text text", code=Code.NOT_UTF8) from error


def _word(value: str) -> str:
    """A value as a part of a folder's name; of a file its name alone."""
    path = Path(value.removeprefix("scripted/"))
    short = path.stem if path.is_file() else value
    return re.sub(r"[^A-Za-z0-9._-]+", "-", short).strip("-.")[:60] or "variant"


def _unused(name: str, names: Sequence[str]) -> str:
    taken = {one.casefold() for one in names}
    candidates = (name, *(f"{name}_{number}" for number in range(2, len(names) + 3)))
    return next(one for one in candidates if one.casefold() not in taken)
