"""Task records for tests: one valid record, and random ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from aigo_bridge.jsonl_spec import LEGAL, TaskSpec, validate_task

SOUND: dict[str, Any] = {
    "task_id": "arith_001",
    "category": "arithmetic",
    "prompt": "Compute the result. Question: 17 + 24\nAnswer:",
    "targets": ["41"],
    "metric_name": "exact_match",
    "few_shot_examples": [{"prompt": "Question: 2 + 2\nAnswer:", "completion": "4"}],
    "post_process": "strip_whitespace",
    "metadata": {"difficulty": "easy"},
}


def record(**changes: Any) -> dict[str, Any]:
    """Return the valid record with changes. `None` removes a field."""
    return {name: value for name, value in {**SOUND, **changes}.items() if value is not None}


def made(**changes: Any) -> TaskSpec:
    """Return a task from the valid record with changes."""
    task, errors = validate_task(record(**changes))
    assert task is not None, errors
    return task


texts = st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip()))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def tasks(draw: st.DrawFn) -> TaskSpec:
    """Generate any valid task."""
    category = draw(st.sampled_from(sorted(LEGAL)))
    legal = LEGAL[category]
    post_process = draw(st.sampled_from(sorted(legal.post_process)))
    letters = {"extract_letter": "ABCDE", "lower": "abz"}.get(post_process, "AZaz")
    targets = (
        [draw(st.sampled_from(letters))]
        if category == "mcq"
        else draw(st.lists(texts, min_size=1, max_size=3))
    )
    found = {
        "task_id": draw(st.from_regex(r"[^\s]{1,12}", fullmatch=True)),
        "category": category,
        "prompt": draw(texts).rstrip(),
        "targets": targets,
        "metric_name": draw(st.sampled_from(sorted(legal.metric_names))),
        "post_process": post_process,
        "few_shot_examples": draw(
            st.lists(st.fixed_dictionaries({"prompt": texts, "completion": texts}), max_size=3)
        ),
        "metadata": draw(st.dictionaries(st.text(max_size=5), json_values, max_size=3)),
    }
    task, errors = validate_task(found)
    assert task is not None, errors
    return task
