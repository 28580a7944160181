"""Reader of lm-evaluation-harness task files, with includes and the position of every value.

Functions (`!function utils.process_docs`) are kept as names. Their code is never imported or executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aigo_bridge.access.grants import record_file
from aigo_bridge.access.opening import is_below, outside
from aigo_bridge.access.private import refusal
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading.messages import nearest
from aigo_formats.definitions import Definition, Dialect, KeyPath, ValuePosition, read_yaml

MOST_FILES = 100
"""Maximum number of included files for one definition."""

# fmt: off
KEYS = frozenset(
    {
        "task", "task_alias", "tag", "group", "group_alias", "include", "dataset_path", "dataset_name",
        "dataset_kwargs", "custom_dataset", "training_split", "validation_split", "test_split",
        "fewshot_split", "process_docs", "doc_to_text", "doc_to_target", "doc_to_choice", "doc_to_image",
        "doc_to_audio", "unsafe_code", "process_results", "use_prompt", "description", "target_delimiter",
        "fewshot_delimiter", "fewshot_config", "num_fewshot", "metric_list", "output_type",
        "generation_kwargs", "repeats", "filter_list", "should_decontaminate",
        "doc_to_decontamination_query", "gen_prefix", "metadata", "class", "aggregate_metric_list",
        "task_list",
    }
)
# fmt: on
"""Keys of tasks and groups in the harness since release 0.4."""

HARNESS = Dialect("lm-evaluation-harness", has_functions=True)


def read_definition(path: Path, root: Path) -> Definition:
    """Read a task or group file.

    Args:
        path: the file.
        root: folder that includes must not leave.

    Raises:
        SpecError: the file or an included file cannot be read. The error contains all problems of one
            file.
    """
    warnings: list[Issue] = []
    values, places = _merged(path, root, str(path), (), warnings)
    definition = Definition(path, values, places, tuple(warnings))
    issues = [_unknown(definition, key) for key in values if key not in KEYS and "class" not in values]
    if issues:
        raise SpecError(issues)
    return definition


def _unknown(definition: Definition, key: Any) -> Issue:
    if not isinstance(key, str):
        return definition.issue((str(key),), f"the key {key!r} is not text", Code.KEY_NOT_TEXT)
    hint = nearest(key, sorted(KEYS)) or "lm-evaluation-harness would reject it"
    return definition.issue((key,), f"unknown key {key!r}", Code.UNKNOWN_KEY, hint)


def _merged(
    path: Path, root: Path, shown: str, above: tuple[Path, ...], warnings: list[Issue]
) -> tuple[dict[str, Any], dict[KeyPath, ValuePosition]]:
    if not is_below(path, root):
        raise SpecError([outside(shown, path, root)])
    if above:
        if (issue := refusal(path, root, shown, own=above[-1].parent)) is not None:
            raise SpecError([issue])
        record_file(path)
    real = path.resolve()
    if real in above:
        circle = " → ".join(file.name for file in (*above[above.index(real) :], real))
        raise SpecError(f"files include each other: {circle}", file=shown, code=Code.REFERENCE_CIRCLE)
    if len(above) >= MOST_FILES:
        raise SpecError(f"more than {MOST_FILES} files include each other", file=shown, code=Code.TOO_MUCH)
    own, own_places = read_yaml(path, shown, HARNESS, warnings)
    included = own.pop("include", None)
    values: dict[str, Any] = {}
    places: dict[KeyPath, ValuePosition] = {}
    names = included if isinstance(included, list) else [] if included is None else [included]
    for number, name in enumerate(names):
        place = own_places.get(("include", number), own_places[("include",)])
        if not isinstance(name, str):
            raise SpecError(
                f"'include': found {name!r}, expected the name of a file",
                file=place.file,
                line=place.line,
                column=place.column,
                code=Code.WRONG_TYPE,
            )
        file = path.parent / name
        try:
            inner, inner_places = _merged(file, root, _shown(shown, name), (*above, real), warnings)
        except SpecError as error:
            # Problems with an included file itself come without a line, so report the include.
            raise SpecError(
                [
                    issue
                    if issue.line is not None
                    else Issue(
                        issue.message,
                        place.file,
                        place.line,
                        place.column,
                        ("include",),
                        issue.hint,
                        code=issue.code,
                    )
                    for issue in error.issues
                ]
            ) from error
        inner.pop("task_list", None)
        _put(values, places, inner, inner_places)
    _put(values, places, own, own_places)
    return values, places


def _put(
    values: dict[str, Any],
    places: dict[KeyPath, ValuePosition],
    new: Mapping[str, Any],
    new_places: Mapping[KeyPath, ValuePosition],
) -> None:
    """Replace existing keys, with all nested positions, by new ones."""
    for path in [path for path in places if path[0] in new]:
        del places[path]
    values.update(new)
    places.update(new_places)


def _shown(file: str, name: str) -> str:
    return str(Path(file).parent / name) if not Path(name).is_absolute() else name
