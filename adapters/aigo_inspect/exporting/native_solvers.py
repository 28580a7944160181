"""The solver of a task as plain Inspect code."""

from __future__ import annotations

from textwrap import dedent

from aigo_bridge.exporting.comparisons import has_own_value
from aigo_bridge.plan import TaskPlan
from aigo_inspect.exporting.native_samples import is_scripted


def solver_code(plan: TaskPlan, *, has_config: bool) -> list[str]:
    """The functions of the solver; none for tasks that ask nothing."""
    solver = plan.benchmark.solver
    if solver is None:
        return []
    if solver.type == "pass_through_solver":
        return [_RECORDED]
    answered = _ANSWERED.format(call=_CONFIGURED_CALL if has_config else _PLAIN_CALL)
    if solver.type != "multi_turn_solver":
        return [answered, _ASK]
    if is_scripted(solver.message_builders):
        return [_ROLES, _SPOKEN, answered, _CONVERSATION]
    needs_answer = any(not has_own_value(scorer) for scorer in plan.benchmark.scorers)
    without = _NO_ANSWER if needs_answer else ""
    return [_ROLES, _SPOKEN, answered, _ASKED, _CARRY_OUT, _REPEAT, _PLAY.replace("{without}", without)]


def solver_call(plan: TaskPlan) -> str:
    """How the task uses it."""
    solver = plan.benchmark.solver
    if solver is None:
        return "[]"
    return {"pass_through_solver": "recorded()", "multi_turn_solver": "conversation()"}.get(
        solver.type, "ask()"
    )


def _block(text: str) -> str:
    return dedent(text).strip("\n")


_ANSWERED = _block(
    '''
    async def answered(state: TaskState, generate: Generate) -> TaskState:
        """One call of the model; without an answer the sample fails, so that it is not scored."""
        {call}
        if state.output.error and not state.output.completion:
            raise RuntimeError(f"the model failed: {{state.output.error}}")
        return state
    '''
)

_PLAIN_CALL = 'state = await generate(state, tool_calls="none")'

_CONFIGURED_CALL = """config = GenerateConfig.model_validate(state.metadata["config"])
    state.output = await get_model().generate(state.messages, config=config)
    state.messages.append(state.output.message)"""

_ASK = _block(
    '''
    @solver
    def ask() -> Solver:
        """One question, one answer."""

        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state = await answered(state, generate)
            state.store.set("solved", True)
            return state

        return solve
    '''
)

_RECORDED = _block(
    '''
    @solver
    def recorded() -> Solver:
        """No model is asked: the answer is in the sample."""

        async def solve(state: TaskState, generate: Generate) -> TaskState:
            answer = state.metadata["answer"]
            state.output = ModelOutput.from_content(str(state.model), answer)
            state.messages.append(state.output.message)
            return state

        return solve
    '''
)

_ROLES = _block(
    """
    ROLES = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }
    """
)

_SPOKEN = _block(
    '''
    def spoken(turn: list[dict[str, str]]) -> list[ChatMessage]:
        """The messages of one turn."""
        return [ROLES[each["role"]](content=each["content"]) for each in turn]
    '''
)

_CONVERSATION = _block(
    '''
    @solver
    def conversation() -> Solver:
        """An answer, then for every further turn its messages and another answer."""

        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state = await answered(state, generate)
            *turns, closing = state.metadata["turns"]
            for turn in turns:
                state.messages += spoken(turn)
                state = await answered(state, generate)
            state.messages += spoken(closing)
            state.store.set("solved", True)
            return state

        return solve
    '''
)

# Conversations whose course depends on what is said

_ASKED = _block(
    '''
    async def asked(question: dict[str, Any], state: TaskState) -> str:
        """What another model says; its own messages do not stay in the conversation."""
        conversation = list(state.messages) if question["with_conversation"] else []
        model = get_model(role=question["role"], required=True)
        output = await model.generate(conversation + spoken(question["messages"]))
        text = output.message.text
        if output.message.tool_calls and not text:
            raise RuntimeError(f"{question['role']} gave no text to append")
        state.messages += spoken([{"role": question["says_as"], "content": text}])
        return text
    '''
)

_CARRY_OUT = _block(
    '''
    async def carry_out(
        step: dict[str, Any],
        state: TaskState,
        generate: Generate,
        answers: list[ModelOutput],
    ) -> dict[str, Any] | None:
        """One step; gives its condition to stop if the text that it added meets it."""
        if "loop" in step:
            await repeat(step, state, generate, answers)
            return None
        if "say" in step:
            text = step["say"]["content"]
            state.messages += spoken([step["say"]])
        elif "ask" in step:
            text = await asked(step["ask"], state)
        else:
            await answered(state, generate)
            answers.append(state.output)
            text = state.output.message.text
        stop = step.get("stop")
        return stop if stop is not None and stop["includes"] in text else None
    '''
)

_REPEAT = _block(
    '''
    async def repeat(
        loop: dict[str, Any],
        state: TaskState,
        generate: Generate,
        answers: list[ModelOutput],
    ) -> None:
        """A loop; what its last iteration added is taken back if the condition says so."""
        for _ in range(loop["times"]):
            messages, said = len(state.messages), len(answers)
            for step in loop["loop"]:
                stop = await carry_out(step, state, generate, answers)
                if stop is not None:
                    if not stop["keep"]:
                        del state.messages[messages:], answers[said:]
                    return
        if loop["must_stop"]:
            raise RuntimeError("the loop made all of its iterations and was not stopped")
    '''
)

_NO_ANSWER = """
        if not answers:
            raise RuntimeError("the conversation ended without an answer to score")"""

_PLAY = _block(
    '''
    @solver
    def conversation() -> Solver:
        """The steps of the sample, until one of them ends the conversation."""

        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.messages = []
            answers: list[ModelOutput] = []
            for step in state.metadata["steps"]:
                messages, said = len(state.messages), len(answers)
                stop = await carry_out(step, state, generate, answers)
                if stop is not None:
                    if not stop["keep"]:
                        del state.messages[messages:], answers[said:]
                    break{without}
            state.output = answers[-1] if answers else ModelOutput()
            state.store.set("solved", True)
            return state

        return solve
    '''
)
