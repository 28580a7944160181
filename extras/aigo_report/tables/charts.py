"""Charts of results for papers: Vega-Lite specifications, drawn offline by vl-convert, and their numbers.

Names and labels are untrusted. They are used only as data values, never in an expression or a field name.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.metrics.grades import plain_number
from aigo_bridge.process.extras import package
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.values import number_text
from aigo_bridge.text.escapes import visible
from aigo_report.tables.results import Results
from aigo_report.tables.rows import Row

ChartName = Literal["metrics", "scores", "stages", "tokens"]
CHART_NAMES: tuple[ChartName, ...] = get_args(ChartName)
VEGA_LITE = "5.20"
"""Vega-Lite version that vl-convert includes."""
SCALE = 2
"""Number of PNG pixels for each pixel of the drawing."""
_BINS = 20
_MOST_VALUES = 20
"""Maximum number of score values with a separate bar. More values are grouped in bins."""
_MOST_BARS = 400
_LABEL = 200


@dataclass(frozen=True)
class Chart:
    """Chart with its data and its drawing instructions."""

    rows: list[Row]
    """Rows of numbers. Column names are the field names in the specification."""
    columns: tuple[str, ...]
    encoding: dict[str, Any]
    """Common encoding of the marks."""
    layers: tuple[dict[str, Any], ...]
    """Marks, each with its additional encoding."""
    facet: str | None = None
    """Field that splits the chart into several drawings, each with a separate scale."""

    def specification(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, including the numbers."""
        values = [{name: _shown(value) for name, value in row.items()} for row in redact_value(self.rows)]
        drawing: dict[str, Any] = {
            "width": 420,
            "height": {"step": 18},
            "encoding": self.encoding,
            "layer": list(self.layers),
        }
        if self.facet is not None:
            head = {"labelAngle": 0, "labelAlign": "left", "labelOrient": "top", "labelAnchor": "start"}
            drawing = {
                "facet": {"row": _axis(self.facet, "", sort=None, header={"title": None, **head})},
                "spec": drawing,
                "resolve": {"scale": {"x": "independent", "y": "independent"}},
            }
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "data": {"values": values},
            "background": "white",
            "config": {
                "axis": {"labelLimit": 400, "titleFontWeight": "normal"},
                "legend": {"labelLimit": 400},
                "header": {"labelLimit": 400},
            },
            **drawing,
        }


def _shown(value: Any) -> Any:
    """Return a value for drawing. Different texts stay different after shortening."""
    if not isinstance(value, str):
        return value
    if len(value) > _LABEL:
        value = f"{value[:_LABEL]}… {hashlib.sha256(value.encode()).hexdigest()[:8]}"
    return visible(value)


def chart(name: ChartName, results: Results) -> Chart:
    """Return a chart of results.

    Raises:
        UsageError: the results contain no values to draw.
        EvidenceError: a result cannot be read or is damaged.
    """
    drawn = _CHARTS[name](results)
    if not drawn.rows:
        raise UsageError(
            f"the results contain no data for the chart {name!r}, expected {_NEEDED[name]}",
            code=Code.UNDRAWABLE_CHART,
        )
    if len(drawn.rows) > _MOST_BARS:
        raise UsageError(
            f"the chart {name!r} would have {len(drawn.rows):,} marks, expected at most "
            f"{_MOST_BARS}; name fewer results",
            code=Code.UNDRAWABLE_CHART,
        )
    return drawn


def draw(drawn: Chart, out: Path) -> None:
    """Write a chart as an image file.

    Args:
        drawn: chart to draw.
        out: path that ends in `.svg` or `.png`.

    Raises:
        UsageError: the file extension is different, or vl-convert is not installed.
        OSError: the file cannot be written.
    """
    kind = format_of(out)
    convert = package("vl_convert", "a chart", "plot")
    options = {"vl_version": VEGA_LITE, "allowed_base_urls": []}  # no external data
    specification = drawn.specification()
    if kind == ".svg":
        picture = convert.vegalite_to_svg(specification, **options).encode()
    else:
        picture = convert.vegalite_to_png(specification, scale=SCALE, **options)
    # Remove secrets from texts before drawing.
    with open_for_replacing(out, clean=False) as file:
        file.write(picture)


def format_of(out: Path) -> str:
    """Return the file extension of an image.

    Raises:
        UsageError: the file extension is not supported.
    """
    kind = out.suffix.lower()
    if kind not in (".svg", ".png"):
        raise UsageError(
            f"{out}: found the extension {out.suffix!r}, expected .svg or .png", code=Code.WRONG_OPTION
        )
    return kind


def _axis(field: str, title: str, kind: str = "nominal", **more: Any) -> dict[str, Any]:
    return {"field": field, "type": kind, "title": title, **more}


def _number(field: str, title: str, **more: Any) -> dict[str, Any]:
    return _axis(field, title, "quantitative", **more)


def _count(field: str) -> dict[str, Any]:
    return _number(field, field, axis={"tickCount": 4, "tickMinStep": 1, "format": ",.10~g"})


def _metrics(results: Results) -> Chart:
    """Return a chart of all metrics, with 95 % intervals if available."""
    rows = list(_estimated(results))
    title = "value and its 95 % interval"
    layers = (
        {
            "mark": {"type": "rule", "clip": True},
            "encoding": {
                "x": _number("low", title, scale={"zero": False, "padding": 12}, axis={"tickCount": 6}),
                "x2": {"field": "high"},
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {
                "x": _number("value", title, scale={"zero": False, "padding": 12}, axis={"tickCount": 6})
            },
        },
    )
    columns = ("result", "task", "model", "scorer", "metric", "name", "value", "low", "high", "scored")
    return Chart(rows, columns, {"y": _axis("result", "", sort=None)}, layers, facet="name")


def _estimated(results: Results) -> Iterator[Row]:
    from aigo_stats.comparison.columns import read_columns
    from aigo_stats.comparison.estimates import estimates
    from aigo_stats.statistics.intervals import NoInterval

    for path, name in zip(results.paths, results.names, strict=True):
        columns = read_columns(path)
        specification = columns.frame.specification
        entity = specification.evaluated_entity
        for metric in estimates(columns):
            interval = None if isinstance(metric.estimate, NoInterval) else metric.estimate
            yield {
                "result": name,
                "task": specification.task.key,
                "model": None if entity is None else entity.display_name,
                "scorer": metric.scorer,
                "metric": metric.metric,
                "name": f"{specification.task.key}: {metric.label}",
                "value": plain_number(metric.value),
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
                "scored": None if metric.denominator is None else metric.denominator.scored,
            }


def _scores(results: Results) -> Chart:
    """Return a chart of the score distribution. Many different values are grouped in ranges."""
    numbers: dict[tuple[str, str], Counter[float]] = {}
    for score in results.scores():
        if score["counted"] and score["value"] is not None:
            key = (score["result"], f"{score['scorer']}.{score['name']}")
            numbers.setdefault(key, Counter())[score["value"]] += 1
    rows = [row for (result, name), counts in numbers.items() for row in _bars(result, name, counts)]
    encoding = {
        "y": _axis("value", "score", sort=None),
        "x": _count("samples"),
        "color": _axis("result", ""),
        "yOffset": _axis("result", ""),
    }
    columns = ("result", "score", "value", "samples")
    return Chart(rows, columns, encoding, ({"mark": "bar"},), facet="score")


def _bars(result: str, name: str, counts: Counter[float]) -> Iterator[Row]:
    if len(counts) <= _MOST_VALUES:
        bars: Iterable[tuple[str, int]] = ((number_text(value), counts[value]) for value in sorted(counts))
    else:
        bars = _binned(counts)
    for label, samples in bars:
        yield {"result": result, "score": name, "value": label, "samples": samples}


def _binned(counts: Counter[float]) -> Iterator[tuple[str, int]]:
    """Yield the number of samples in ranges of equal width. A value at a boundary belongs to the upper range.

    The displayed boundaries are the exact boundaries.
    """
    low, high = min(counts), max(counts)
    width = (high - low) / _BINS
    for digits in range(4, 18):
        labels = [f"{low + position * width:.{digits}g}" for position in range(_BINS + 1)]
        if len(set(labels)) > _BINS:
            break
    ends = list(map(float, labels))
    bins = Counter[int]()
    for value, count in counts.items():
        bins[min(max(bisect_right(ends, value) - 1, 0), _BINS - 1)] += count
    for position in range(_BINS):
        yield f"{labels[position]} to {labels[position + 1]}", bins[position]


def _stages(results: Results) -> Chart:
    """Return a chart of sample outcomes by stage."""
    counts = Counter[tuple[str, str]]()
    for sample in results.samples():
        state = f"failed: {sample['stage'] or 'unknown'}" if sample["failed"] else sample["state"]
        counts[sample["result"], state] += 1
    rows = [{"result": result, "state": state, "samples": count} for (result, state), count in counts.items()]
    encoding = {
        "y": _axis("result", "", sort=None),
        "x": _count("samples"),
        "color": _axis("state", ""),
    }
    return Chart(rows, ("result", "state", "samples"), encoding, ({"mark": "bar"},))


def _tokens(results: Results) -> Chart:
    """Return a chart of the tokens of trials with known token counts."""
    counts = Counter[tuple[str, str]]()
    for trial in results.trials():
        for kind in ("prompt", "completion"):
            if trial[f"{kind}_tokens"] is not None:
                counts[trial["result"], kind] += trial[f"{kind}_tokens"]
    rows = [{"result": result, "kind": kind, "tokens": count} for (result, kind), count in counts.items()]
    encoding = {
        "y": _axis("result", "", sort=None),
        "x": _count("tokens"),
        "color": _axis("kind", ""),
    }
    return Chart(rows, ("result", "kind", "tokens"), encoding, ({"mark": "bar"},))


_CHARTS: dict[ChartName, Callable[[Results], Chart]] = {
    "metrics": _metrics,
    "scores": _scores,
    "stages": _stages,
    "tokens": _tokens,
}
_NEEDED: dict[ChartName, str] = {
    "metrics": "metrics with a value",
    "scores": "scores that are numbers",
    "stages": "samples",
    "tokens": "model calls that say their tokens",
}
