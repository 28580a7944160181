"""Options of an engine's own command on the command line of `run`. They are separated from aigo-bridge's
options before Typer reads them, and passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from aigo_bridge.cli.options import VerbCommand

Value = Literal["required", "optional", "none"]

OPTION = "--engine-option"
"""Hidden option that contains the engine's own arguments, one at a time."""
MORE = "--more"
"""Hidden option that contains each task after the first."""


class RunCommand(VerbCommand):
    """Command class of `run`; for an engine benchmark, it also accepts options of the engine's command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments and pass the engine's own arguments on."""
        from aigo_bridge.cli.error_handling import reported

        with reported():
            words = self._sorted(args)
        try:
            return super().parse_args(ctx, words)
        except Exception as error:
            # Typer 0.15 raises Click's class; later releases raise a class of Typer.
            if type(error).__name__ == "NoSuchOption":
                self._leave_out_hidden(error)
                _explain(error, str(getattr(error, "option_name", "")))
            raise

    def _leave_out_hidden(self, error: Any) -> None:
        """Remove hidden options from the suggestions."""
        hidden = {name for option in self.params if getattr(option, "hidden", False) for name in option.opts}
        error.possibilities = [name for name in error.possibilities or () if name not in hidden]

    def _engine(self, words: Sequence[str], own_options: Mapping[str, Value]) -> str | None:
        """Return the engine of the benchmark to run; `None` if the task is not a benchmark."""
        for number, word in enumerate(words):
            previous = words[number - 1] if number else ""
            if own_options.get(previous) != "required" and _engine_of(word) is not None:
                return _engine_of(word)
        return None

    def _sorted(self, words: list[str]) -> list[str]:
        own_options = {
            name: _value_of(parameter)
            for parameter in self.params
            for name in (*parameter.opts, *parameter.secondary_opts)
        }
        engine = self._engine(words, own_options)
        if engine is None:
            return words
        from aigo_bridge.engine.registry import benchmarks_of, load_engine

        options = benchmarks_of(engine).options
        native: Mapping[str, Value] = {}
        if options is not None:
            load_engine(engine)
            native = {name: option.value for option in options() for name in option.names}
        sorted_words, tasks = list[str](), 0
        for group, is_native in _groups(words, native, own_options):
            if is_native:
                sorted_words += [f"{OPTION}={word}" for word in group]
            elif len(group) == 1 and _engine_of(group[0]) is not None:
                tasks += 1
                sorted_words.append(group[0] if tasks == 1 else f"{MORE}={group[0]}")
            else:
                sorted_words += group
        return sorted_words


def _groups(
    words: Sequence[str], native: Mapping[str, Value], own_options: Mapping[str, Value]
) -> Iterator[tuple[list[str], bool]]:
    """Yield options with their values and single arguments, and whether the engine reads them."""
    position = 0
    while position < len(words):
        word = words[position]
        name, value = _option(word, native) or _option(word, own_options) or (word, "none")
        has_value = value != "none" and word == name
        follows = position + 1 < len(words) and not (
            value == "optional" and words[position + 1].startswith("-")
        )
        size = 2 if has_value and follows else 1
        yield list(words[position : position + size]), _option(word, native) is not None
        position += size


def _option(word: str, options: Mapping[str, Value]) -> tuple[str, Value] | None:
    """Return an option's name and how it takes its value, as in `-Sname=value` or in the next argument."""
    if not word.startswith("-") or word in ("-", "--"):
        return None
    name = word.partition("=")[0] if word.startswith("--") else word[:2]
    return (name, options[name]) if name in options else None


def _value_of(parameter: Any) -> Value:
    return (
        "none"
        if getattr(parameter, "is_flag", False) or not parameter.opts[0].startswith("-")
        else "required"
    )


class MergeCommand(RunCommand):
    """Command class of `merge`; it accepts the same options if its task is an engine benchmark."""

    def _engine(self, words: Sequence[str], own_options: Mapping[str, Value]) -> str | None:
        """Return the engine of the benchmark whose shards are merged; `None` for shards of a task."""
        option = "--task"
        for number, word in enumerate(words):
            if word == option and number + 1 < len(words):
                return _engine_of(words[number + 1])
            if word.startswith(f"{option}="):
                return _engine_of(word.removeprefix(f"{option}="))
        return None


def names_benchmark(word: str) -> bool:
    """Return whether an argument is an engine benchmark."""
    return _engine_of(word) is not None


def _explain(error: Any, option: str) -> None:
    """Add the engines whose benchmarks accept an unknown option to its error message."""
    from aigo_bridge.engine.registry import benchmarks_of, engine_names
    from aigo_bridge.errors import BridgeError

    for name in engine_names():
        try:
            options = benchmarks_of(name).options
            is_known = options is not None and any(option in native.names for native in options())
        except (BridgeError, ImportError):
            continue
        if is_known:
            error.message += (
                f" (only for {name} benchmarks, {name}:NAME; for an AI GO task, put model "
                "settings into the model file or the solver)"
            )


def _engine_of(word: str) -> str | None:
    if ":" not in word or word.startswith("-"):
        return None
    from aigo_bridge.engine.registry import split_name

    benchmark = split_name(word)
    return None if benchmark is None else benchmark[0]
