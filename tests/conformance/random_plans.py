"""Random tasks in the form of feature tasks: valid combinations of solvers, scorers, metrics, trials, rules
and data.

The answer of a scripted model depends on the question and, with trials, on the number of earlier requests. It
never depends on the order of samples, which is specific to an engine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

Json = Any
Documents = st.SearchStrategy[dict[str, Json]]

TEXTS = (
    "yes",
    "no",
    " yes",
    "Yes\n",
    "",
    "A",
    "B) because",
    "0.5",
    "naïve 😀",
    "e\u0301",
    "two\nlines",
    "\u202eodd\u0000",
    "None",
    "nan",
)
LABELS = ("yes", "no", "maybe")
NUMBERS = (0, 1, -2, 0.5, 1e30, True, None, float("nan"), float("inf"), "3")
IDS = ("a/b", "../up", "01", "1", "ü#0", " ", "0#0", "x" * 90)
JUDGED = (
    '{"prediction": "yes", "reasoning": "so"}', '{"label": "no"}', "maybe", "yes", "0.25", "Score: 1", '{"score": 7}', "",
    "{broken", "between 0 and 1", '{"labels": [{"claim": 1, "label": "entailment"}]}', '{"claims": ["One."]}',
)  # fmt: skip

text = st.sampled_from(TEXTS)

_PICK = """
def compute_scores(sample{output}):
    n = sample.get("n")
    if isinstance(n, str):
        raise ValueError("a text: é")
    missing = n is None or n != n
    return {{"scores": {{"n": None if missing else float(n), "known": not missing, "label": sample["label"], "nan": float("nan")}},
             "metadata": {{"q": sample["q"]}}}}
"""
_ALL = """
def compute_scores(samples):
    return [{"place": place, "of": len(samples)} for place, sample in enumerate(samples)]
"""
_METRIC = """
def compute_metrics(scores):
    known = [score.values["n"] for score in scores if score.values.get("n") is not None]
    return {"n_sum": sum(known) / len(known), "letters": sum(len(score.metadata["q"]) for score in scores if score.metadata)}
"""
_SOLVER = """
async def run_solver(sample, model, trace):
    trace.append_system_message("Be brief.")
    trace.append_user_message(sample["q"])
    response = await model.predict(trace.items, temperature=0.5)
    trace.add_model_response(response)
    if sample["flag"]:
        trace.append_user_message("Sure about " + response.text + "?")
        trace.add_model_response(await model.predict(trace.items))
    return trace
"""
_POSTPROCESSOR = """
def postprocess(sample, solver_output):
    words = str(sample["a"]).split()
    return [({**sample, "a": word, "sample_id": None if sample["flag"] else word + sample["q"]}, solver_output) for word in words]
"""


def message(role: str, content: str) -> dict[str, Json]:
    kind = "output_text" if role == "assistant" else "input_text"
    part = {"type": kind, "text": content, **({"annotations": []} if role == "assistant" else {})}
    return {"type": "message", "id": "", "status": "completed", "role": role, "content": [part]}


@st.composite
def traces(draw: st.DrawFn) -> Json:
    """Return a recorded conversation in one of the accepted forms. Some are empty."""
    items = [message("user", draw(text)), message("assistant", draw(text))]
    if draw(st.booleans()):
        call = {
            "type": "function_call",
            "id": "f",
            "call_id": "c",
            "name": "search",
            "arguments": "{}",
            "status": "completed",
        }
        items.insert(1, call)
    return draw(
        st.sampled_from([{"items": items}, items, json.dumps(items), {"items": items[:1]}, "no trace", None])
    )


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Json]]:
    rows: list[dict[str, Json]] = []
    size = draw(st.integers(1, 4))
    ids = draw(st.none() | st.permutations(IDS) | st.permutations([7, -1, 2**53 + 1, 0]))
    for number in range(size):
        row = {
            "q": f"question {number}",
            "a": draw(text),
            "label": draw(st.sampled_from(LABELS)),
            "flag": draw(st.booleans()),
            "items": [number],
            "claims": ["One."] * draw(st.integers(0, 2)),
            "trace": draw(traces()),
        }
        if draw(st.booleans()):
            row["n"] = draw(st.sampled_from(NUMBERS))
        if ids is not None:
            row["sample_id"] = ids[number]
        rows.append(row)
    rows[0].setdefault("n", 1)
    return rows


@st.composite
def replies(draw: st.DrawFn) -> Json:
    said: Json = draw(text)
    match draw(st.integers(0, 11)):
        case 0:
            return {"error": "down"}
        case 1:
            return {"error": "forbidden", "status": 403}
        case 2:
            return {
                "text": said,
                "tool_calls": [
                    {"name": draw(st.sampled_from(["search", "book"])), "arguments": {"for": said}}
                ],
            }
        case 3:
            return {"text": said, "reasoning": "Let me see."}
        case 4:
            return {"text": said, "refusal": True}
        case 5:
            return {
                "text": said,
                "stop_reason": draw(st.sampled_from(["max_tokens", "content_filter"])),
                "usage": {"input_tokens": 3, "output_tokens": 0},
            }
    return said


@st.composite
def scripts(draw: st.DrawFn, size: int, say: st.SearchStrategy[Json]) -> tuple[list[dict[str, Json]], bool]:
    """Return rules for a table of this size, and whether an answer depends on the number of earlier
    requests.
    """
    rules: list[dict[str, Json]] = []
    counts = False
    for number in range(size):
        asked = {"contains": f"question {number}", "on": "all"}
        if draw(st.integers(0, 3)) == 0:
            counts = True
            rules.append({"match": asked, "times": draw(st.integers(1, 2)), "reply": draw(say)})
        rules.append({"match": asked, "reply": draw(say)})
    return [*rules, {"default": True, "reply": draw(say)}], counts


# Solvers


@st.composite
def builders(draw: st.DrawFn, depth: int = 0) -> list[dict[str, Json]]:
    ends = {"includes": draw(st.sampled_from(["yes", "no", "never"])), "keep_iteration": draw(st.booleans())}
    made: list[dict[str, Json]] = []
    for _ in range(draw(st.integers(1, 3))):
        match draw(st.integers(0, 4)):
            case 0 if depth == 0:
                inner = draw(builders(1))
                done = draw(st.sampled_from(["error", "continue"]))
                made.append(
                    {
                        "type": "loop",
                        "max_iterations": draw(st.integers(0, 2)),
                        "on_max_iterations": done,
                        "message_builders": inner,
                    }
                )
            case 1:
                extra = [{"type": "chat_message", "role": "user", "content": "Ask about {{ sample.q }}."}]
                made.append(
                    {
                        "type": "generate_message",
                        "model_key": "other",
                        "extra_input_messages": extra,
                        "output_role": "user",
                    }
                )
            case 2:
                made.append({"type": "chat_message", "role": "user", "content": "{{ sample.a }}"})
            case 3 if depth == 0:
                made.append({"type": "load_trace", "trace_column": "trace"})
            case _:
                made.append({"type": "generate"})
        if draw(st.booleans()) and made[-1]["type"] not in ("loop", "load_trace"):
            made[-1]["terminate_if"] = ends
    return made


@st.composite
def solvers(draw: st.DrawFn) -> dict[str, Json] | None:
    ask = {
        "role": "user",
        "content": draw(
            st.sampled_from(
                ["{{ sample.q }}", "{{ sample.q }} {{ sample.n }}", "{{ sample.q }} {{ 1 // sample.n }}"]
            )
        ),
    }
    form = draw(st.sampled_from(["open_responses", "latticeflow"]))
    solver: dict[str, Json]
    match draw(st.integers(0, 6)):
        case 0:
            return None
        case 1:
            template = '{"messages": [{"role": "user", "content": {{ sample.q | tojson }}}], "max_tokens": 5, "stop": ["x"]}'
            solver = {
                "type": "single_turn_solver",
                "input_builder": {"type": "generic", "template": template},
            }
        case 2:
            steps = [{"type": "chat_message", "role": "user", "content": "{{ sample.q }}"}, *draw(builders())]
            solver = {"type": "multi_turn_solver", "message_format": form, "message_builders": steps}
        case 3:
            solver = {"type": "pass_through_solver", "trace_column": "trace", "message_format": form}
        case 4:
            solver = {"type": "python", "run_solver_snippet": _SOLVER}
        case 5:
            one = '{"messages": [{"role": "user", "content": {{ sample.q | tojson }}}]}'
            template = draw(st.sampled_from([f"[{one}, {one}]", f'{{"first": {one}, "then": {one}}}']))
            solver = {
                "type": "grouped_single_turn_solver",
                "input_builder": {"type": "generic", "template": template},
            }
        case _:
            system = [{"role": "system", "content": "Say {{ sample.label }}."}] if draw(st.booleans()) else []
            chat = {"type": "chat_completion", "input_messages": [*system, ask]}
            solver = {"type": "single_turn_solver", "message_format": form, "input_builder": chat}
    if draw(st.integers(0, 3)) == 0:
        solver["postprocessor"] = {"type": "python", "postprocess_snippet": _POSTPROCESSOR}
    return solver


# Scorers and metrics


@st.composite
def metrics(draw: st.DrawFn, *fields: str, python: bool = False) -> list[dict[str, Json]] | None:
    if not draw(st.booleans()):
        return draw(st.sampled_from([None, []]))
    kinds = ["mean", "min", "max", "std_dev", "frequency", "weighted_average", "multiclass-classification"]
    made: list[dict[str, Json]] = []
    for _ in range(draw(st.integers(1, 3))):
        field = draw(st.sampled_from(fields))
        match draw(st.sampled_from([*kinds, "python"] if python else kinds)):
            case "weighted_average":
                made.append(
                    {"type": "weighted_average", "field": field, "weights": {"yes": 1, "no": -1, "True": 2}}
                )
            case "multiclass-classification":
                made.append(
                    {
                        "type": "multiclass-classification",
                        "field_gt": field,
                        "field_pred": draw(st.sampled_from(fields)),
                    }
                )
            case "python":
                made.append({"type": "python", "compute_metrics_snippet": _METRIC})
            case kind:
                made.append({"type": kind, "field": field})
    return made


@st.composite
def scorers(draw: st.DrawFn, *, solved: bool, grouped: bool, rows_change: bool) -> dict[str, Json]:
    judged = {
        "model_key": "judge",
        "user_prompt": "{{ sample.q }}: " + ("{{ solver_output.output }}" if solved and not grouped else ""),
    }
    value = None if solved and not grouped else "{{ sample.label }}"
    made: list[st.SearchStrategy[dict[str, Json]]] = [
        st.fixed_dictionaries({"type": st.just("string_equals"), "ground_truth": st.sampled_from(["{{ sample.a }}", "yes", "{{ 1 // sample.n }}"]),
                               "value": st.just(value), "metrics": metrics("is_correct")}),
        st.fixed_dictionaries({"type": st.just("bleu"), "ground_truth": st.just("{{ sample.a }}"), "value": st.just(value), "metrics": metrics("bleu_score")}),
        st.fixed_dictionaries({"type": st.just("python"), "compute_scores_snippet": st.just(_PICK.format(output=", solver_output" if solved else "")),
                               "metrics": metrics("n", "known", "label", "nan", python=True)}),
        st.fixed_dictionaries({"type": st.just("model_as_a_judge_classifier"), "correct_labels": st.just(["yes"]), "incorrect_labels": st.just(["no"]),
                               "metrics": metrics("is_correct")}).map(lambda each: {**each, **judged}),
        st.fixed_dictionaries({"type": st.just("model_as_a_judge_scorer"), "score_max": st.sampled_from([1, 10]), "use_structured_outputs": st.booleans(),
                               "metrics": metrics("score")}).map(lambda each: {**each, **judged}),
        st.fixed_dictionaries({"type": st.just("labeler_via_model"), "valid_labels": st.sampled_from([[], ["yes", "no"]]),
                               "metrics": metrics("label")}).map(lambda each: {**each, **judged}),
    ]  # fmt: skip
    if not rows_change:
        made.append(
            st.fixed_dictionaries(
                {
                    "type": st.just("python_all_samples"),
                    "compute_scores_snippet": st.just(_ALL),
                    "metrics": metrics("place", "of"),
                }
            )
        )
    if solved and not grouped:
        made += [
            st.fixed_dictionaries({"type": st.just("string_equals_mcqa"), "ground_truth_choice": st.just("A"), "choices": st.just(["A", "B"]),
                                   "metrics": metrics("is_correct")}),
            st.fixed_dictionaries({"type": st.just("function_call_coverage"), "function_calls": st.just(["search"]),
                                   "mode": st.sampled_from(["any_order", "in_order"]), "metrics": metrics("required_calls_coverage")}),
            st.fixed_dictionaries({"type": st.just("rag_checker"), "judge_model_key": st.just("judge"), "query_column": st.just("q"),
                                   "target_column": st.just("a"), "target_claims_column": st.just("claims"), "response_claims_column": st.just("claims"),
                                   "scores_to_compute": st.just(["recall", "precision"])}),
        ]  # fmt: skip
    scorer = draw(st.one_of(made))
    return {name: given for name, given in scorer.items() if given is not None}


# Trials and rules


FIELDS = {
    "python": ("n", "known", "label", "nan"),
    "python_all_samples": ("place", "of"),
    "bleu": ("bleu_score",),
    "labeler_via_model": ("label",),
    "model_as_a_judge_scorer": ("score",),
    "rag_checker": ("recall", "precision"),
    "function_call_coverage": ("required_calls_coverage", "num_unrequired_calls"),
}
"""Scorer type → scores. Other types have `is_correct`."""


@st.composite
def trials(draw: st.DrawFn, scorers: Sequence[Json]) -> dict[str, Json]:
    aggregators = [
        {"function": "mean"}, {"function": "min"}, {"function": "max", "score_name": "most"}, {"function": "pass@k", "k": 2}, {"function": "pass^k", "k": 3},
    ]  # fmt: skip
    known = [field for each in scorers for field in FIELDS.get(each["type"], ("is_correct",))]
    pairs = st.tuples(st.sampled_from(known or ["none"]), st.sampled_from(aggregators))
    chosen = draw(st.lists(pairs, max_size=3 if known else 0, unique_by=str))
    return {
        "num_trials": draw(st.integers(1, 3)),
        "score_aggregators": [{"score_name": name, "aggregator": each} for name, each in chosen],
    }


def rules(scorers: Sequence[Json]) -> st.SearchStrategy[list[dict[str, Json]]]:
    filters: list[dict[str, Json]] = [
        {"op": "is_true", "expression": "{{ sample.flag }}"},
        {"op": "in", "expression": "{{ sample.label }}", "values": ["no", "maybe"]},
        {"op": "greater_than", "expression": "{{ 1 // sample.n }}", "value": 0},
        {"op": "not_exists", "expression": "{{ sample.n }}"},
    ]
    scores = [
        f"{{{{ scores.{each['key']}.{FIELDS.get(each['type'], ('is_correct',))[0]} }}}}" for each in scorers
    ]
    filters += [{"op": "exists", "expression": score} for score in scores]
    filters += [{"op": "less_than", "expression": score, "value": 1} for score in scores]
    return st.lists(st.sampled_from(filters), max_size=2, unique_by=str).map(
        lambda chosen: [
            {"key": f"rule-{number}", "action": "exclude_from_metrics", "filter": each}
            for number, each in enumerate(chosen)
        ]
    )


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Json]:
    """Return a task with its rows and the rules of its models."""
    rows = draw(tables())
    solver = draw(solvers())
    grouped = solver is not None and solver["type"] == "grouped_single_turn_solver"
    rows_change = solver is not None and "postprocessor" in solver
    one = scorers(solved=solver is not None, grouped=grouped, rows_change=rows_change)
    chosen = [
        {**each, "key": f"scorer_{number}"} for number, each in enumerate(draw(st.lists(one, max_size=3)))
    ]
    definition: dict[str, Json] = {
        "scorers": chosen,
        "actions": draw(rules(chosen)),
    }
    if solver is not None:
        definition["solver"] = solver
    if draw(st.integers(0, 2)) == 0:
        definition["trials"] = draw(trials(chosen))
    model, counts = draw(scripts(len(rows), replies()))
    others: dict[str, Json] = {}
    named = json.dumps(definition)
    for key, say in (("judge", st.sampled_from(JUDGED) | replies()), ("other", replies())):
        if f'"{key}"' in named:
            others[key], also = draw(scripts(len(rows), say))
            counts |= also
    # If answers depend on the number of earlier requests, the requests must have a fixed order.
    options = {"max_samples": 1} if counts else {"max_connections": draw(st.integers(1, 4))}
    document: dict[str, Json] = {
        "definition": definition,
        "rows": rows,
        "model": model,
        "models": others,
        "options": options,
    }
    if draw(st.integers(0, 4)) == 0:
        document["num_samples"] = draw(st.integers(1, 5))
        document["subsampling"] = draw(st.sampled_from(["head", "random"]))
    return document
