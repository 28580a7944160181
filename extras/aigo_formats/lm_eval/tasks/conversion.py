"""Conversion of an lm-evaluation-harness task to an AI GO task with the same prompts, settings and scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from aigo_bridge.errors import Issue, TemplateError
from aigo_bridge.templates import SampleTemplate
from aigo_bridge.text.json_text import key_of
from aigo_bridge.text.plurals import plural
from aigo_formats.conversions import ConvertedTask, Refusal
from aigo_formats.definitions import Definition, Function, KeyPath
from aigo_formats.lm_eval.tasks.prompts import UntranslatableError, literal, text_of
from aigo_formats.lm_eval.tasks.scorers import HarnessParts, answer_scorers, choice_scorers

Json = dict[str, Any]

OUTPUT_TYPES = ("generate_until", "multiple_choice", "loglikelihood", "loglikelihood_rolling")
MOST_TOKENS = 256
"""Default maximum of answer tokens in the harness."""
FILE_LOADERS = frozenset({"json", "csv", "parquet", "text", "arrow", "imagefolder", "audiofolder"})
"""Values of `dataset_path` that are file loaders, not datasets."""

_GENERATION = {"max_gen_toks": "max_tokens", "max_tokens": "max_tokens", "top_p": "top_p"}
"""Chat completion options by generation setting."""
_WITHOUT_FORM = {
    "process_results": "scores are computed by",
    "doc_to_image": "the prompt contains images from",
    "doc_to_audio": "the prompt contains audio from",
    "use_prompt": "the prompt is from promptsource,",
    "gen_prefix": "the answer begins with",
}
"""Keys that prevent a conversion, with the start of the message."""
_ROWS = ("process_docs", "custom_dataset")
"""Keys of functions that create the rows."""


def name_of(definition: Definition) -> str:
    """Return the name of a task, or its file name."""
    name = definition.values.get("task")
    return name if isinstance(name, str) and name else definition.path.stem


def convert(
    definition: Definition, *, key: str | None = None, allow: bool = False
) -> ConvertedTask | Refusal:
    """Convert a definition to an AI GO task.

    Args:
        definition: definition of one task.
        key: key of the AI GO task; `None`: derived from the task's name.
        allow: whether to convert with lost parts. The task's description lists them.
    """
    parts = HarnessParts(definition)
    values = definition.values
    if (written := values.get("class")) is not None:
        called = written.name if isinstance(written, Function) else written
        parts.refuse(("class",), f"the task is the Python class {called!r}, which is not run")
        return Refusal(tuple(parts.fatal), ())
    kind = values.get("output_type", "generate_until")
    if kind not in OUTPUT_TYPES:
        parts.refuse(("output_type",), f"found {kind!r}, expected one of {', '.join(OUTPUT_TYPES)}")
    elif kind.startswith("loglikelihood"):
        parts.refuse(
            ("output_type",),
            f"no scorer of AI GO matches {kind!r}: the model does not choose or answer anything",
        )
    _refuse_functions(parts)
    prompt = _prompt(parts)
    dataset_key = f"{(key or key_of(name_of(definition)))[:235]}-rows"
    dataset = _dataset(parts, dataset_key)
    scorers: list[Json] = []
    builder: Json = {}
    if kind == "multiple_choice":
        scorers, builder = choice_scorers(parts), _choice_builder(prompt)
    elif kind == "generate_until":
        scorers, builder = answer_scorers(parts), _answer_builder(parts, prompt)
    if not scorers and not parts.fatal:
        parts.refuse(
            ("metric_list",), "nothing would be scored: no metric of the task has an equivalent in AI GO"
        )
    if parts.fatal or (parts.lost and not allow):
        return Refusal(tuple(parts.fatal), tuple(parts.lost))
    issues = (*(replace(issue, severity="warning") for issue in parts.lost), *parts.told)
    task = _document(definition, key or key_of(name_of(definition)), dataset_key, builder, scorers, issues)
    return ConvertedTask(task, dataset, issues)


def _document(
    definition: Definition,
    key: str,
    dataset_key: str,
    builder: Json,
    scorers: list[Json],
    issues: tuple[Issue, ...],
) -> Json:
    values = definition.values
    name, alias = name_of(definition), values.get("task_alias")
    metadata = values.get("metadata")
    version = metadata.get("version") if isinstance(metadata, dict) else None
    release = "" if version is None else f", version {version}"
    document: Json = {
        "key": key,
        "display_name": (alias if isinstance(alias, str) and alias else name)[:250],
        "description": f"The task {name!r} of lm-evaluation-harness{release}",
    }
    if issues:
        lines = [f"- {issue.message}" for issue in issues]
        document["long_description"] = "\n".join(["Different from lm-evaluation-harness:", "", *lines]) + "\n"
    tags = values.get("tag") or []
    if tags := [tag for tag in (tags if isinstance(tags, list) else [tags]) if isinstance(tag, str)]:
        document["tags"] = tags
    document["tasks"] = ["chat_completion"]
    document["definition"] = {
        "type": "benchmark_task",
        "dataset": {"key": dataset_key},
        "solver": {"type": "single_turn_solver", "input_builder": builder},
        "scorers": scorers,
    }
    return document


# Issues that prevent a conversion


def _refuse_functions(parts: HarnessParts) -> None:
    values = parts.definition.values
    for name, meaning in _WITHOUT_FORM.items():
        if (value := values.get(name)) is not None:
            shown = (
                f"the function {value.name!r}, which is not run"
                if isinstance(value, Function)
                else repr(value)
            )
            parts.refuse((name,), f"{meaning} {shown}")
    for name in ("doc_to_text", "doc_to_target", "doc_to_choice", "description"):
        if isinstance(value := values.get(name), Function):
            parts.refuse(
                (name,),
                f"{name!r} is the function {value.name!r}, which is not run",
                "write its result as a template, or as a column of your rows",
            )
    for path, function in _functions(values.get("generation_kwargs"), ("generation_kwargs",)):
        parts.refuse(path, f"a setting is the function {function.name!r}, which is not run")
    repeats = values.get("repeats", 1)
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        parts.refuse(("repeats",), f"found {repeats!r}, expected a number from 1")
    elif repeats > 1:
        parts.tell(
            ("repeats",),
            f"each sample is run once instead of {plural(repeats, 'time')}; only first answers are scored",
        )


def _functions(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Function]]:
    if isinstance(value, Function):
        yield path, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _functions(part, (*path, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _functions(part, (*path, number))


# Rows


def _dataset(parts: HarnessParts, key: str) -> Json | None:
    values = parts.definition.values
    remedy = f"pass the finished rows: --dataset {key}=FILE"
    is_given = False
    for name in _ROWS:
        if (value := values.get(name)) is not None:
            called = value.name if isinstance(value, Function) else value
            parts.lose((name,), f"rows are created by {called!r}, which is not run", remedy)
            is_given = True
    path: Any = values.get("dataset_path")
    split: Any = values.get("test_split") or values.get("validation_split")
    if is_given:
        return None
    if not isinstance(path, str) or not path:
        parts.refuse(("dataset_path",), f"'dataset_path': found {path!r}, expected the name of a dataset")
        return None
    if path in FILE_LOADERS or path.startswith((".", "/", "~")):
        parts.lose(("dataset_path",), f"rows are files that the loader {path!r} reads", remedy)
        return None
    if not isinstance(split, str):
        parts.refuse(("test_split",), "found no 'test_split' and no 'validation_split', so there are no rows")
        return None
    arguments: Json = {}
    subset, more = values.get("dataset_name"), values.get("dataset_kwargs")
    if subset is not None:
        arguments["name"] = str(subset)
    for option, setting in more.items() if isinstance(more, dict) else ():
        if option == "trust_remote_code":
            parts.tell(
                ("dataset_kwargs", option),
                "dataset code is never run, so 'trust_remote_code' is left out",
            )
        elif _is_plain(setting):
            arguments[str(option)] = setting
        else:
            parts.refuse(("dataset_kwargs", option), f"found {setting!r}, expected plain data")
    source: Json = {"type": "huggingface", "path": path, "split": split}
    if arguments:
        source["load_dataset_kwargs"] = arguments
    shown = f"{path} {subset}" if subset is not None else path
    return {"key": key, "display_name": shown[:250], "source": source}


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


# Prompts


def _prompt(parts: HarnessParts) -> str | None:
    """Return the text before an answer, as the harness builds it without a chat template."""
    values = parts.definition.values
    question = values.get("doc_to_text")
    if isinstance(question, Function):
        return None
    if not isinstance(question, str):
        hint = (
            "a number selects one of several contexts, which AI GO does not support"
            if isinstance(question, int)
            else None
        )
        parts.refuse(("doc_to_text",), f"'doc_to_text': found {question!r}, expected a template", hint)
        return None
    description = values.get("description") or ""
    examples = _examples(parts)
    if isinstance(description, Function):
        return None
    introduction = parts.text("description") if description else ""
    asking = parts.text("doc_to_text") if question else ""
    if introduction is None or asking is None or examples is None:
        return None
    middle = f"{{{{ {literal(examples)} }}}}" if examples else ""
    return f"{introduction}{middle}{asking}"


def _examples(parts: HarnessParts) -> str | None:
    """Return the few-shot examples as text; `None` if this is not possible. The reason is recorded."""
    values = parts.definition.values
    count = values.get("num_fewshot") or 0
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        parts.refuse(("num_fewshot",), f"found {count!r}, expected a number from 0")
        return None
    if not count:
        return ""
    config = values.get("fewshot_config") or {}
    samples = config.get("samples") if isinstance(config, dict) else None
    if values.get("fewshot_split") or not isinstance(config, dict) or config.get("split") or not samples:
        parts.lose(
            ("num_fewshot",),
            f"{count} worked examples are drawn from a split, so they are left out",
            "write them as 'samples' of 'fewshot_config', with 'sampler: first_n'",
        )
        return ""
    if not isinstance(samples, list):
        parts.lose(
            ("fewshot_config", "samples"),
            f"{count} worked examples come from a function, so they are left out",
        )
        return ""
    if config.get("sampler") != "first_n":
        parts.lose(
            ("fewshot_config",),
            f"{count} worked examples are drawn separately for each sample, so they are left out",
            "with 'sampler: first_n' they are always the same",
        )
        return ""
    if len(samples) < count:
        parts.refuse(("num_fewshot",), f"found {count}, but there are {len(samples)} worked examples")
        return None
    around = {**values, **{name: value for name, value in config.items() if value is not None}}
    shown: list[str] = []
    for number, sample in enumerate(samples[:count]):
        try:
            shown.append(_example(sample, around))
        except (UntranslatableError, TemplateError, ValueError, LookupError, TypeError) as error:
            reason = error.issues[0].message if isinstance(error, TemplateError) else error
            parts.refuse(
                ("fewshot_config", "samples", number), f"this worked example cannot be used: {reason}"
            )
    return "".join(shown) if len(shown) == count else None


def _example(sample: Any, around: Mapping[str, Any]) -> str:
    if not isinstance(sample, dict):
        raise TypeError(f"found {sample!r}, expected a mapping")
    question = _shown(around.get("doc_to_text"), sample)
    answer = _shown(around.get("doc_to_target"), sample)
    choices = around.get("doc_to_choice")
    if choices is not None and str(answer).isdigit():
        listed = sample.get(choices) if isinstance(choices, str) else choices
        if not isinstance(listed, list | dict):
            raise ValueError("its choices are not a list")
        answer = (list(listed.values()) if isinstance(listed, dict) else listed)[int(answer)]
    if isinstance(answer, list):
        answer = answer[0]
    delimiter, end = around.get("target_delimiter", " "), around.get("fewshot_delimiter", "\n\n")
    return f"{question}{delimiter}{answer}{end}"


def _shown(template: Any, sample: Mapping[str, Any]) -> Any:
    if isinstance(template, Function):
        raise UntranslatableError(f"{template.name!r} is not run")
    if not isinstance(template, str):
        return template
    if template in sample:
        return sample[template]
    return SampleTemplate(text_of(template)).render(sample=dict(sample))


def _choice_builder(prompt: str | None) -> Json:
    content = prompt or ""
    if content.endswith("\n"):
        content = content[:-1] + '{{ "\\n" }}'  # a template's final line feed is not part of its text
    return {"type": "chat_completion", "input_messages": [{"role": "user", "content": content}]}


def _answer_builder(parts: HarnessParts, prompt: str | None) -> Json:
    options = ", ".join(f'"{name}": {json.dumps(value)}' for name, value in _options(parts).items())
    if "{{" in options or "{%" in options or "{#" in options:
        options = f"{{{{ {literal(options)} }}}}"
    message = '{"role": "user", "content": {{ prompt | tojson }}}'
    template = f'{{% set prompt %}}{prompt or ""}{{% endset %}}{{"messages": [{message}], {options}}}'
    return {"type": "generic", "template": template}


def _options(parts: HarnessParts) -> Json:
    """Return the generation settings as chat completion options."""
    values = parts.definition.values
    written = values.get("generation_kwargs") or {}
    if not isinstance(written, dict):
        parts.refuse(("generation_kwargs",), f"found {written!r}, expected a mapping")
        return {}
    ends = written.get("until", values.get("fewshot_delimiter", "\n\n"))
    ends = [ends] if isinstance(ends, str) else ends or []
    if not isinstance(ends, list) or not all(isinstance(end, str) for end in ends):
        parts.refuse(("generation_kwargs", "until"), f"found {ends!r}, expected texts that end an answer")
        ends = []
    is_drawn = written.get("do_sample") is True
    temperature = float_of(written.get("temperature", 1.0 if is_drawn else 0.0))
    options: Json = {"temperature": temperature, "max_tokens": MOST_TOKENS}
    for name, value in written.items():
        if name in _GENERATION and isinstance(value, int | float) and not isinstance(value, bool):
            options[_GENERATION[name]] = value
        elif name not in ("until", "do_sample", "temperature"):
            parts.lose(("generation_kwargs", name), f"the generation setting {name!r} is left out")
    if options["temperature"] is None:
        parts.refuse(("generation_kwargs", "temperature"), "expected a number")
    if ends := [end for end in ends if end]:
        options["stop"] = ends
    return options


def float_of(value: Any) -> float | None:
    """Return a number, which can be written as text; `None` if the value is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
