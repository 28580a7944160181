"""Questions that a plan asks the evaluated model, for one row and for all: turns of a chat.

One question has three forms in AI GO: a single-turn solver with messages, one with a template that gives
JSON, and a conversation that is recorded or written out up to its only answer. The last one is how images and
files are asked about. Other plans do not ask exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.dtypes import InputImageContent, Message, TraceItem
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.exporting.manifest import Manifest
from aigo_bridge.jsonl_spec.conversion import PROMPT_TEMPLATE
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.solving.conversation import compile_input, render
from aigo_bridge.solving.solvers import GroupedSingleTurn, recorded_trace
from aigo_bridge.spec import solvers as solver_spec
from aigo_bridge.templates import SampleTemplate, as_list, text_of

_TEXTS = frozenset({"input_text", "output_text", "text"})

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message."""

    role: str
    text: str
    choices: tuple[str, ...] | None = None
    """The texts that an example's answer was chosen from; `None`: not known."""
    images: tuple[str, ...] = ()
    """Addresses of images, in order; mostly `data:` ones, which hold the image."""
    problem: str | None = None
    """What of the message is not in these fields; `None`: all is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for one row."""

    turns: Sequence[Turn]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Generation options, by their names in chat completion."""
    is_structured: bool = False
    """Whether the answer has to have a given form."""
    unconditioned: str | None = None
    """The question without what makes its answer known; `None`: there is none."""
    original: str | None = None
    """The question before it was worked into messages; `None`: there is none."""
    sorting_class: str | None = None
    """The class by which examples are balanced; `None`: there is none."""
    is_one_text: bool = False
    """Whether the turns before the last are examples that the task writes into one message, as task records
    do."""


Ask = Callable[[Row], Asked]
"""Row → what is asked; raises `SampleError` where the row cannot be rendered."""


def asker(plan: TaskPlan) -> Ask | None:
    """Makes a plan's question of a row; `None` where the model is not asked, or asked in several turns."""
    if plan.entity != "model":
        return None
    match plan.benchmark.solver:
        case solver_spec.SingleTurnSolver(input_builder=solver_spec.ChatInputBuilder() as builder):
            return _chat(builder)
        case solver_spec.SingleTurnSolver(input_builder=solver_spec.GenericInputBuilder() as builder):
            return _generic(builder)
        case solver_spec.MultiTurnSolver(message_builders=builders):
            return _conversation(builders)
    return None


def opening(plan: TaskPlan) -> Ask | None:
    """What makes a plan's first question of a row, where it is asked in several turns; `None` where the
    author's code or nobody asks.

    What another model would say stands as `⟨…⟩`: it is known in a run only.
    """
    match plan.benchmark.solver if plan.entity == "model" else None:
        case solver_spec.GroupedSingleTurnSolver() as solver:
            group = GroupedSingleTurn(solver)
            return lambda row: _of_request(next(iter(group.requests(row).values())))
        case solver_spec.MultiTurnSolver(message_builders=builders):
            parts, _ = _until_answer(builders)
            return lambda row: Asked(
                [turn for part in parts for turn in part(row)] or [Turn("user", "⟨the model speaks first⟩")]
            )
    return None


def _chat(builder: solver_spec.ChatInputBuilder) -> Ask:
    messages = builder.input_messages
    if [message.content for message in messages] == [PROMPT_TEMPLATE]:
        return _record
    templates = [
        (message.role, SampleTemplate(message.content), _choices(message.choices)) for message in messages
    ]
    unconditioned = _optional(builder.unconditioned_query)
    original, sorting_class = _optional(builder.original_query), _optional(builder.fewshot_sorting_class)

    def ask(row: Row) -> Asked:
        turns = [
            Turn(role, render(template, row), None if choices is None else choices(row))
            for role, template, choices in templates
        ]
        return Asked(
            turns,
            unconditioned=unconditioned(row),
            original=original(row),
            sorting_class=sorting_class(row),
        )

    return ask


def _optional(text: str | None) -> Callable[[Row], str | None]:
    if text is None:
        return lambda _: None
    template = SampleTemplate(text)
    return lambda row: render(template, row)


def _record(row: Row) -> Asked:
    """A task record: examples and prompt stand in one message, which lighteval writes the same way as plain
    text.
    """
    try:
        shots = [
            turn
            for example in row["few_shot_examples"]
            for turn in (
                Turn("user", text_of(example["prompt"])),
                Turn("assistant", text_of(example["completion"])),
            )
        ]
        return Asked([*shots, Turn("user", text_of(row["prompt"]))], is_one_text=bool(shots))
    except (KeyError, TypeError) as error:
        raise SampleError("the row is no task record", stage="solver", kind="InvalidModelInput") from error


def _choices(listed: str | tuple[str, ...] | None) -> Callable[[Row], tuple[str, ...] | None] | None:
    if listed is None:
        return None
    if not isinstance(listed, str):
        return lambda _: listed
    template = SampleTemplate(listed)

    def choices(row: Row) -> tuple[str, ...]:
        try:
            return tuple(map(str, as_list(template.evaluate(sample=row))))
        except TemplateError as error:
            raise SampleError(f"choices: {error}", stage="solver", kind="TemplateError") from error

    return choices


def _generic(builder: solver_spec.GenericInputBuilder) -> Ask:
    build = compile_input(builder)
    return lambda row: _of_request(build(row))


def _of_request(request: ModelRequest) -> Asked:
    turns = [
        Turn(message.role, message.content)
        if isinstance(message.content, str)
        else Turn(message.role, "", problem="files by id")
        for message in request.input.messages
    ]
    return Asked(turns, request.options, request.input.response_format is not None)


def _conversation(builders: Sequence[solver_spec.MessageBuilder]) -> Ask | None:
    *earlier, final = builders
    if not isinstance(final, solver_spec.GenerateBuilder) or final.terminate_if is not None:
        return None
    parts: list[Callable[[Row], list[Turn]]] = []
    for builder in earlier:
        match builder:
            case solver_spec.ChatMessageBuilder(terminate_if=None):
                parts.append(_written(builder))
            case solver_spec.LoadTraceBuilder():
                parts.append(_recorded(builder.trace_column))
            case _:
                return None
    return lambda row: Asked([turn for part in parts for turn in part(row)])


def _until_answer(builders: Sequence[Any]) -> tuple[list[Callable[[Row], list[Turn]]], bool]:
    """The turns before the evaluated model's first answer, and whether there is one."""
    parts: list[Callable[[Row], list[Turn]]] = []
    for builder in builders:
        match builder:
            case solver_spec.GenerateBuilder():
                return parts, True
            case solver_spec.ChatMessageBuilder():
                parts.append(_written(builder))
            case solver_spec.LoadTraceBuilder():
                parts.append(_recorded(builder.trace_column))
            case solver_spec.GenerateMessageBuilder():
                parts.append(_unknown(builder))
            case solver_spec.LoopBuilder():
                looped, is_answered = _until_answer(builder.message_builders)
                parts += looped
                if is_answered:
                    return parts, True
    return parts, False


def _unknown(builder: solver_spec.GenerateMessageBuilder) -> Callable[[Row], list[Turn]]:
    turn = Turn(
        builder.output_role or "assistant", f"⟨what {builder.model_key} says⟩", problem="another model's text"
    )
    return lambda _: [turn]


def _written(builder: solver_spec.ChatMessageBuilder) -> Callable[[Row], list[Turn]]:
    template = SampleTemplate(builder.content)
    return lambda row: [Turn(builder.role, render(template, row))]


def _recorded(column: str) -> Callable[[Row], list[Turn]]:
    return lambda row: [_turn(item) for item in recorded_trace(row, column).items]


def _turn(item: TraceItem) -> Turn:
    if not isinstance(item, Message):
        return Turn("tool", "", problem=f"items of type {item.type}")
    role = "system" if item.role.value == "developer" else item.role.value
    texts: list[str] = []
    images: list[str] = []
    problem: str | None = None
    for part in item.content:
        if isinstance(part, InputImageContent) and part.image_url:
            images.append(str(part.image_url))
        elif part.type in _TEXTS:
            if images:
                problem = "texts behind images"
            texts.append(str(getattr(part, "text", "")))
        else:
            problem = f"contents of type {part.type}"
    if len(texts) > 1:
        problem = problem or "several texts in one message"
    return Turn(role, "\n".join(texts), images=tuple(images), problem=problem)


# What all rows share, for exported tasks that lighteval's own models are asked


ROWS = "rows"
"""Folder of the rows as lighteval loads them. It does so with a library that guesses types of columns, and
that keeps a copy which it takes for current when the file has changed. So rows are numbers of samples, and
each says of which export."""
SPLIT = "test"
EXAMPLES = "train"
"""Split of the examples: lighteval takes the first ones of it, in order."""

SETTINGS = ("temperature", "top_p")
"""Generation options that a model's configuration has under the same name; others reach only some of the
backends."""


@dataclass(frozen=True)
class Shared:
    """What is the same for all rows."""

    system: str | None = None
    """System prompt."""
    examples: tuple[tuple[Turn, Turn], ...] = ()
    """Questions with their answers, in front of every question."""
    size: int | None = None
    """Most tokens of an answer."""
    stop: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other options, of `SETTINGS`."""

    @property
    def is_of_model(self) -> bool:
        """Whether the model's configuration has to say some of it."""
        return self.system is not None or bool(self.settings)


def mark(manifest: Manifest) -> str:
    """What rows say of their export."""
    return manifest.digest[:16]


def version(digest: str) -> int:
    """A plan's version in lighteval, whose cache of answers goes by it."""
    return int(digest[:7], 16)


def question_text(question: Asked) -> str:
    """The message that the examples lead to."""
    if not question.is_one_text:
        return question.turns[-1].text if question.turns else ""
    *shots, prompt = [turn.text for turn in question.turns]
    pairs = zip(shots[::2], shots[1::2], strict=True)
    return "".join(f"{query} {answer}\n\n" for query, answer in pairs) + prompt


def shared_question(plan: TaskPlan) -> tuple[Shared, list[str]]:
    """What all rows share, and why lighteval's own models cannot be asked what the plan asks (nothing, if
    they can).

    Rows that cannot be rendered are not looked at: they fail whoever is asked.
    """
    solver = None if plan.entity == "system" else plan.benchmark.solver
    if solver is None or not plan.calls_model:
        return Shared(), ["the task asks no model, and lighteval's backends always do"]
    ask = asker(plan)
    if ask is None:
        return Shared(), ["a document is one question with one answer"]
    common: Shared | None = None
    problems: dict[str, None] = {}
    if any(scorer.weighs_unconditioned for scorer in plan.benchmark.scorers):
        problems["it weighs choices against an unconditioned query, which lighteval 0.13 asks no model"] = (
            None
        )
    for sample in plan.samples:
        try:
            question = ask(sample.data)
        except SampleError:
            continue
        problems |= dict.fromkeys(_problems(question))
        shared = _shared(question)
        if common is None:
            common = shared
        elif shared != common:
            problems |= dict.fromkeys(_differences(common, shared))
    return common or Shared(), list(problems)


def is_chat(roles: Sequence[str]) -> bool:
    """Whether user and assistant speak in turn, with nothing but a system message in front of them."""
    spoken = list(roles[1:] if roles[:1] == ["system"] else roles)
    return bool(spoken) and spoken == [("user", "assistant")[place % 2] for place in range(len(spoken))]


def _problems(question: Asked) -> Iterator[str]:
    roles = [turn.role for turn in question.turns]
    if not is_chat(roles) or roles[-1] != "user":
        yield "its messages are not examples and a question"
    unknown = sorted(set(question.options) - {"max_tokens", "stop", *SETTINGS})
    if unknown or question.is_structured:
        yield (
            "lighteval has no word for"
            f" {', '.join([*unknown, *['response_format'] * question.is_structured])}"
        )
    if any(turn.images for turn in question.turns):
        yield "only some of lighteval's backends see images"
    elif any(turn.problem for turn in question.turns):
        yield "its messages have more than texts"


def _shared(question: Asked) -> Shared:
    turns = list(question.turns)
    system = turns.pop(0).text if turns and turns[0].role == "system" else None
    examples = () if question.is_one_text else tuple(zip(turns[:-1:2], turns[1::2], strict=False))
    stop = question.options.get("stop") or ()
    size = question.options.get("max_tokens")
    return Shared(
        system,
        examples,
        size if isinstance(size, int) else None,
        (stop,) if isinstance(stop, str) else tuple(stop),
        {name: question.options[name] for name in SETTINGS if question.options.get(name) is not None},
    )


def _differences(one: Shared, two: Shared) -> Iterator[str]:
    if one.system != two.system:
        yield "its system message depends on the row, and lighteval has one per model"
    if one.examples != two.examples:
        yield "its examples depend on the row, and lighteval has the same for all"
    if (one.size, one.stop, one.settings) != (two.size, two.stop, two.settings):
        yield "its generation options depend on the row, and lighteval has the same for all"


def storable(text: str) -> str:
    """A text that can be encoded: half surrogate pairs become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
