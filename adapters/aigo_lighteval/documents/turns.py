"""Questions to the evaluated model as chat turns, for one row and for all rows of a plan.

AI GO has three forms for one question. They are a single-turn solver with messages, one with a JSON template,
and a conversation with a single answer at its end. The conversation form supports images and files. Other
plans do not ask exactly one question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.dtypes import InputImageContent, Message, TraceItem
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.exporting.manifest import ExportManifest
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
class ChatTurn:
    """Chat message."""

    role: str
    text: str
    choices: tuple[str, ...] | None = None
    """Choices for an example's answer; `None` if unknown."""
    images: tuple[str, ...] = ()
    """Image URLs in order. Most are `data:` URLs, which contain the image."""
    problem: str | None = None
    """Parts of the message that the other fields cannot store; `None` if complete."""


@dataclass(frozen=True, slots=True)
class RowPrompt:
    """Question for one row."""

    turns: Sequence[ChatTurn]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Generation options by chat completion name."""
    is_structured: bool = False
    """Whether the answer must have a given format."""
    unconditioned: str | None = None
    """Question without its context, for unconditioned likelihoods; `None` if not set."""
    original: str | None = None
    """Question before it was converted to messages; `None` if not set."""
    sorting_class: str | None = None
    """Class for balancing examples; `None` if not set."""
    is_one_text: bool = False
    """Whether the earlier turns are examples that the task writes into one message, as task records do."""


Ask = Callable[[Row], RowPrompt]
"""Function from a row to its question. It raises `SampleError` if the row cannot be rendered."""


def asker(plan: TaskPlan) -> Ask | None:
    """Return the function that creates a plan's question; `None` if the plan calls no model or has several
    turns.
    """
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
    """Return the function that creates the first question of a plan with several turns; `None` if task code
    asks or no model is called.

    Messages of other models are shown as `⟨…⟩` because they are only known in a run.
    """
    match plan.benchmark.solver if plan.entity == "model" else None:
        case solver_spec.GroupedSingleTurnSolver() as solver:
            group = GroupedSingleTurn(solver)
            return lambda row: _of_request(next(iter(group.requests(row).values())))
        case solver_spec.MultiTurnSolver(message_builders=builders):
            parts, _ = _until_answer(builders)
            return lambda row: RowPrompt(
                [turn for part in parts for turn in part(row)]
                or [ChatTurn("user", "⟨the model speaks first⟩")]
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

    def ask(row: Row) -> RowPrompt:
        turns = [
            ChatTurn(role, render(template, row), None if choices is None else choices(row))
            for role, template, choices in templates
        ]
        return RowPrompt(
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


def _record(row: Row) -> RowPrompt:
    """Return a task record as turns. lighteval writes examples and prompt in one text in the same way."""
    try:
        shots = [
            turn
            for example in row["few_shot_examples"]
            for turn in (
                ChatTurn("user", text_of(example["prompt"])),
                ChatTurn("assistant", text_of(example["completion"])),
            )
        ]
        return RowPrompt([*shots, ChatTurn("user", text_of(row["prompt"]))], is_one_text=bool(shots))
    except (KeyError, TypeError) as error:
        raise SampleError("the row is not a task record", stage="solver", kind="InvalidModelInput") from error


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


def _of_request(request: ModelRequest) -> RowPrompt:
    turns = [
        ChatTurn(message.role, message.content)
        if isinstance(message.content, str)
        else ChatTurn(message.role, "", problem="files by id")
        for message in request.input.messages
    ]
    return RowPrompt(turns, request.options, request.input.response_format is not None)


def _conversation(builders: Sequence[solver_spec.MessageBuilder]) -> Ask | None:
    *earlier, final = builders
    if not isinstance(final, solver_spec.GenerateBuilder) or final.terminate_if is not None:
        return None
    parts: list[Callable[[Row], list[ChatTurn]]] = []
    for builder in earlier:
        match builder:
            case solver_spec.ChatMessageBuilder(terminate_if=None):
                parts.append(_written(builder))
            case solver_spec.LoadTraceBuilder():
                parts.append(_recorded(builder.trace_column))
            case _:
                return None
    return lambda row: RowPrompt([turn for part in parts for turn in part(row)])


def _until_answer(builders: Sequence[Any]) -> tuple[list[Callable[[Row], list[ChatTurn]]], bool]:
    """Return the turns before the evaluated model's first answer, and whether there is an answer."""
    parts: list[Callable[[Row], list[ChatTurn]]] = []
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


def _unknown(builder: solver_spec.GenerateMessageBuilder) -> Callable[[Row], list[ChatTurn]]:
    turn = ChatTurn(
        builder.output_role or "assistant", f"⟨answer of {builder.model_key}⟩", problem="another model's text"
    )
    return lambda _: [turn]


def _written(builder: solver_spec.ChatMessageBuilder) -> Callable[[Row], list[ChatTurn]]:
    template = SampleTemplate(builder.content)
    return lambda row: [ChatTurn(builder.role, render(template, row))]


def _recorded(column: str) -> Callable[[Row], list[ChatTurn]]:
    return lambda row: [_turn(item) for item in recorded_trace(row, column).items]


def _turn(item: TraceItem) -> ChatTurn:
    if not isinstance(item, Message):
        return ChatTurn("tool", "", problem=f"items of type {item.type}")
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
    return ChatTurn(role, "\n".join(texts), images=tuple(images), problem=problem)


# Properties that all rows share, for exported tasks with lighteval's own models


ROWS = "rows"
"""Folder of the rows that lighteval loads. The library for that guesses column types, and keeps using a
cached copy after the file has changed. Therefore rows contain only a sample number and the id of the export.
"""
SPLIT = "test"
EXAMPLES = "train"
"""Split of the examples. lighteval uses the first ones in order."""

SETTINGS = ("temperature", "top_p")
"""Generation options with the same name in a model's configuration. Others reach only some backends."""


@dataclass(frozen=True)
class SharedFields:
    """Properties that are the same for all rows."""

    system: str | None = None
    """System prompt."""
    examples: tuple[tuple[ChatTurn, ChatTurn], ...] = ()
    """Examples before every question, as questions with answers."""
    size: int | None = None
    """Maximum tokens of an answer."""
    stop: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other options in `SETTINGS`."""

    @property
    def is_of_model(self) -> bool:
        """Return whether the model's configuration must contain some of them."""
        return self.system is not None or bool(self.settings)


def mark(manifest: ExportManifest) -> str:
    """Return the id of an export for its rows."""
    return manifest.digest[:16]


def version(digest: str) -> int:
    """Return a plan's version in lighteval. Its answer cache depends on it."""
    return int(digest[:7], 16)


def question_text(question: RowPrompt) -> str:
    """Return the text of the message after the examples."""
    if not question.is_one_text:
        return question.turns[-1].text if question.turns else ""
    *shots, prompt = [turn.text for turn in question.turns]
    pairs = zip(shots[::2], shots[1::2], strict=True)
    return "".join(f"{query} {answer}\n\n" for query, answer in pairs) + prompt


def shared_question(plan: TaskPlan) -> tuple[SharedFields, list[str]]:
    """Return the properties that all rows share, and why lighteval's own models cannot run the plan.

    The reasons are empty if they can. Rows that cannot be rendered are skipped because they fail with any
    model.
    """
    solver = None if plan.entity == "system" else plan.benchmark.solver
    if solver is None or not plan.calls_model:
        return SharedFields(), ["the task does not call a model, and lighteval's backends always do"]
    ask = asker(plan)
    if ask is None:
        return SharedFields(), ["a document is one question with one answer"]
    common: SharedFields | None = None
    problems: dict[str, None] = {}
    if any(scorer.weighs_unconditioned for scorer in plan.benchmark.scorers):
        problems[
            "it compares choices with an unconditioned query, which lighteval 0.13 does not send to a model"
        ] = None
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
    return common or SharedFields(), list(problems)


def is_chat(roles: Sequence[str]) -> bool:
    """Return whether user and assistant alternate, optionally after a system message."""
    spoken = list(roles[1:] if roles[:1] == ["system"] else roles)
    return bool(spoken) and spoken == [("user", "assistant")[place % 2] for place in range(len(spoken))]


def _problems(question: RowPrompt) -> Iterator[str]:
    roles = [turn.role for turn in question.turns]
    if not is_chat(roles) or roles[-1] != "user":
        yield "its messages are not examples and a question"
    unknown = sorted(set(question.options) - {"max_tokens", "stop", *SETTINGS})
    if unknown or question.is_structured:
        yield (
            "lighteval does not support"
            f" {', '.join([*unknown, *['response_format'] * question.is_structured])}"
        )
    if any(turn.images for turn in question.turns):
        yield "only some of lighteval's backends support images"
    elif any(turn.problem for turn in question.turns):
        yield "its messages contain more than text"


def _shared(question: RowPrompt) -> SharedFields:
    turns = list(question.turns)
    system = turns.pop(0).text if turns and turns[0].role == "system" else None
    examples = () if question.is_one_text else tuple(zip(turns[:-1:2], turns[1::2], strict=False))
    stop = question.options.get("stop") or ()
    size = question.options.get("max_tokens")
    return SharedFields(
        system,
        examples,
        size if isinstance(size, int) else None,
        (stop,) if isinstance(stop, str) else tuple(stop),
        {name: question.options[name] for name in SETTINGS if question.options.get(name) is not None},
    )


def _differences(one: SharedFields, two: SharedFields) -> Iterator[str]:
    if one.system != two.system:
        yield "its system message depends on the row, and lighteval has one for each model"
    if one.examples != two.examples:
        yield "its examples depend on the row, and lighteval uses the same for all rows"
    if (one.size, one.stop, one.settings) != (two.size, two.stop, two.settings):
        yield "its generation options depend on the row, and lighteval uses the same for all rows"


def storable(text: str) -> str:
    """Return a text that can be encoded. Lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
