"""A third engine, as small as one can be: the core's sample program, sample by sample, and a log that is one JSON file.

Its models are `echo`, which says the last message again, and `scripted/FILE`. What it does not do it declares: as a gap, or by
leaving the row of its table of capabilities empty.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import anyio

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import ChatCompletionModelOutput, Message, ModelResponse
from aigo_bridge.dtypes.items import message_text
from aigo_bridge.engine import protocol
from aigo_bridge.engine.engine import Capabilities
from aigo_bridge.engine.protocol import Evidence, Execution, Fidelity, Gap, Job, LogRef, RunSettings
from aigo_bridge.errors import EngineError, EvidenceError, SampleError, UsageError
from aigo_bridge.execution.codec import Json, dump_result, dump_solution, load_result, load_solution
from aigo_bridge.execution.program import compile_program
from aigo_bridge.execution.solutions import SampleFailure, ScorerRow
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.models.scripted import Script, load_script
from aigo_bridge.plan.logged_plan import LoggedPlan, logged_plan
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.results.assembling import scores_data
from aigo_bridge.results.records import TrialRecord
from aigo_bridge.solving.conversation import assistant_item


@dataclass(frozen=True)
class EchoModel:
    """Says what it was told, or what its rules say."""

    key: str
    name: str
    rules: Script | None

    async def predict(self, request: ModelRequest) -> ModelResponse:
        messages = [(str(message.role), str(message.content)) for message in request.input.messages]
        for item in request.items or ():
            messages += [(str(item.role), message_text(item))] if isinstance(item, Message) else []
        text = messages[-1][1]
        if self.rules is not None:
            reply = self.rules.reply(messages)
            if reply.error is not None:
                kind = "RuntimeError" if reply.status is None else "HTTPStatusError"
                raise SampleError(reply.error, stage="solver", kind=kind)
            text = reply.text
        raw = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        output = ChatCompletionModelOutput.model_validate(raw)
        return ModelResponse(raw_output=output, items=[assistant_item(text)])


Models = Mapping[str, EchoModel]
"""By AI GO key; `""` is the evaluated one."""


def _models(job: Job) -> Models:
    names = {**job.model_map, **({"": job.model or ""} if job.plan.calls_model else {})}
    for name in names.values():
        if name != "echo" and not name.startswith("scripted/"):
            raise UsageError(f"model {name!r}: engine 'echo' has the models echo and scripted/FILE")
    return {
        key: EchoModel(key, name, None if name == "echo" else load_script(Path(name.partition("/")[2])))
        for key, name in names.items()
    }


class EchoEngine:
    """Runs plans in this process, one sample at a time."""

    name = "echo"
    capabilities: ClassVar[Capabilities] = Capabilities()

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        if plan.entity == "system":
            return [Gap("definition (system_task)", "has no samples", Fidelity.UNSUPPORTED)]
        gaps = [*protocol.contradictions(plan), *protocol.likelihood_gaps(plan)]
        if plan.benchmark.solver is not None and plan.benchmark.solver.postprocessor is not None:
            gaps.append(Gap("solver.postprocessor", "a sample stays one sample here", Fidelity.UNSUPPORTED))
        sandboxed, reason = protocol.sandboxed_parts(plan), "no sandbox is available here"
        return gaps + [Gap(part, reason, Fidelity.UNSUPPORTED) for part in sandboxed]

    def run(self, jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
        if any((settings.time_limit, settings.token_limit, settings.cost_limit)):
            raise UsageError("--time-limit, --token-limit, --cost-limit: engine 'echo' knows no limits")
        models = [_models(job) for job in jobs]
        settings.out.mkdir(parents=True, exist_ok=True)
        return [_run(job.plan, chosen, settings.out) for job, chosen in zip(jobs, models, strict=True)]

    def read(self, log: Path) -> Evidence:
        try:
            stored = json.loads(log.read_bytes())
            plan, times = logged_plan(stored["plan"]), (stored["started_at"], stored["ended_at"])
            trials = partial(_records, plan, stored["trials"])
            return Evidence(plan, Execution("success", *times), stored["models"], trials)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise EvidenceError(f"{str(log)!r} is no log of echo: {error}", code=Code.NOT_A_LOG) from error


def _run(plan: TaskPlan, models: Models, out: Path) -> LogRef:
    log: Json = {"plan": plan.header(), "models": {key: model.name for key, model in models.items()}}
    log |= {"started_at": time.time(), "trials": anyio.run(_trials, plan, models), "ended_at": time.time()}
    path = out / f"{plan.name}-{time.time_ns()}.echo.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    return LogRef("echo", path)


async def _trials(plan: TaskPlan, models: Models) -> list[Json]:
    program, trials = compile_program(plan), list[Json]()
    for sample, index in ((sample, index) for sample in plan.samples for index in range(plan.num_trials)):
        trial: Json = {"id": sample.id, "index": index, "data": dict(sample.data), "scores": {}}
        rows: Sequence[ScorerRow] = (ScorerRow(sample, None),)
        if program.solver is not None:
            model = models.get("") or EchoModel("", "echo", None)
            solution = await program.solve(sample, model, lambda key: models[key])
            trial |= dump_solution(
                solution, lambda output: output.model_dump(mode="json"), postprocessed=False
            )
            rows = () if isinstance(solution, SampleFailure) else solution.rows
        for row, scorer in ((row, scorer) for row in rows for scorer in program.scorers):
            result = await program.score(scorer, row, lambda key: models[key])
            trial["scores"][scorer.key] = dump_result(result)
        trials.append(trial)
    program.host.close()
    return trials


def _records(plan: LoggedPlan, trials: Sequence[Mapping[str, Any]]) -> Iterator[TrialRecord]:
    for trial in trials:
        solution = load_solution(trial, Sample(trial["id"], trial["data"]))
        output = None if solution is None or isinstance(solution, SampleFailure) else solution.output
        errors = [solution.to_error()] if isinstance(solution, SampleFailure) else []
        scores = []
        for key, spec in zip(plan.outline.scorer_keys, plan.outline.scorers, strict=True):
            result = load_result(trial["scores"][key]) if key in trial["scores"] else None
            if isinstance(result, SampleFailure):
                errors.append(result.to_error(f"scorer {key!r}"))
            elif result is not None:
                named = (key, spec.purpose, spec.display_name)
                scores.append(scores_data(*named, result.values, result.metadata))
        yield TrialRecord(trial["id"], trial["index"], trial["data"], output, tuple(scores), tuple(errors))
