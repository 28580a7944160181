"""The core's solvers, hosted as an Inspect solver."""

from __future__ import annotations

from inspect_ai.model import ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import LimitExceededError

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.dtypes import GroupedSolverTrace, SolverOutput, SolverTrace
from aigo_bridge.errors import SampleError
from aigo_bridge.models import Models
from aigo_bridge.program import Failure, SampleProgram, Solution, contained
from aigo_bridge.replaying import Replay
from aigo_bridge.solving.conversation import last_text, request_of_items
from aigo_inspect.keys import STORE_KEY
from aigo_inspect.models import evaluated_model, native_messages
from aigo_inspect.namespace import in_namespace
from aigo_inspect.stored import dump_stored


def hosted_solver(
    program: SampleProgram,
    models: Models,
    progress: ProgressCounter,
    solutions: dict[str, Solution],
    replay: Replay | None = None,
) -> Solver:
    """The plan's solver; without one, a solver that does nothing (data-set tasks).

    Args:
        program: the compiled plan.
        models: other models of the task.
        progress: told of samples that end here.
        solutions: filled for the scorers (by the trial's uuid), so that they need not read them from the store again.
        replay: outputs of an earlier run, taken where it has some.
    """
    spec = program.plan.benchmark.solver
    if spec is None or program.solver is None:
        return no_solver()

    @solver(name=spec.type)
    @in_namespace
    def factory() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            sample = program.sample(state.sample_id)
            result: Solution | Failure | None = None
            last_output: ModelOutput | None = None
            if replay is not None:
                result = await contained(replay.solution(program, sample, state.epoch - 1), "solver")
            if result is None:
                model = evaluated_model()
                result = await program.solve(sample, model, models, let_through=(LimitExceededError,))
                last_output = model.last_output
            if isinstance(result, Failure):
                _keep(state, dump_stored(result))
                progress.finished(state.sample_id, state.epoch - 1, result)
                raise SampleError(result.message, stage=result.stage, hint=result.hint, kind=result.kind)
            postprocessed = program.postprocessor is not None
            _show(state, result.output, last_output)
            _keep(state, dump_stored(result, postprocessed=postprocessed))
            if program.scorers:
                solutions[state.uuid] = result
            else:
                progress.finished(state.sample_id, state.epoch - 1, None)
            return state

        return solve

    return factory()


@solver(name="no_solver")
@in_namespace
def no_solver() -> Solver:
    """Does nothing: data-set and system tasks call no model."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


def _keep(state: TaskState, stored: str) -> None:
    """Put into the log what the solver came to.

    In the output's metadata, because each change of the store costs two events and a comparison of the whole store. The output
    itself is shared with the event of the model's call, so a copy carries the metadata.
    """
    metadata = {**(state.output.metadata or {}), STORE_KEY: stored}
    state.output = state.output.model_copy(update={"metadata": metadata})


def _show(state: TaskState, output: SolverOutput, last: ModelOutput | None) -> None:
    """Set the messages and the output that Inspect's viewer shows: of a group, all conversations one after the other."""
    traces = _traces(output)
    try:
        state.messages = [
            message
            for trace in traces
            for message in native_messages(request_of_items(trace.trace.items), "solver")
        ]
    except SampleError:
        # What Inspect has no message for (an item of a custom task, say) stands in the store and in the evidence.
        state.messages = []
    if last is not None:
        state.output = last
    else:
        text = last_text(traces[-1].trace.items) if traces else None
        state.output = ModelOutput.from_content(str(state.model), text or "")
    state.completed = True


def _traces(output: SolverOutput) -> list[SolverTrace]:
    if isinstance(output, SolverTrace):
        return [output]
    if not isinstance(output, GroupedSolverTrace):
        return []
    group = output.solver_outputs
    return list(group.values()) if isinstance(group, dict) else group
