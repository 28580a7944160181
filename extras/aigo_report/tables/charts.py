"""Charts of results for papers and slides: Vega-Lite specifications and their numbers, drawn offline by
vl-convert.

Names and labels are untrusted. They are used only as data values and titles, never in an expression or as a
field name.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
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
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.values import number_text
from aigo_bridge.text.escapes import visible
from aigo_bridge.text.numbers import shown_number, shown_range
from aigo_report.tables.results import Results
from aigo_report.tables.rows import Row

ChartName = Literal["metrics", "scores", "stages", "tokens"]
CHART_NAMES: tuple[ChartName, ...] = get_args(ChartName)
ThemeName = Literal["paper", "dark"]
THEME_NAMES: tuple[ThemeName, ...] = get_args(ThemeName)
VEGA_LITE = "5.20"
"""Vega-Lite version that vl-convert includes."""
PPI = 300
"""Resolution of PNG files in pixels per inch, as journals require."""
SUFFIXES = (".svg", ".png", ".pdf")
_BINS = 20
_MOST_VALUES = 20
"""Maximum number of score values with a separate bar. More values are grouped in bins."""
_MOST_BARS = 400
_LABEL = 200
_PROPORTION = (0.0, 1.0)

FONT = "Arimo, 'Liberation Sans', Arial, Helvetica, sans-serif"
"""vl-convert contains Liberation Sans, which has the same shapes and widths as the embedded Arimo."""
FONTS = Path(__file__).with_name("fonts")
_FACES = {
    "latin": "U+0-FF,U+131,U+152-153,U+2BB-2BC,U+2C6,U+2DA,U+2DC,U+304,U+308,U+329,U+2000-206F,U+20AC,U+2122,"
    "U+2191,U+2193,U+2212,U+2215,U+FEFF,U+FFFD",
    "latin-ext": "U+100-2BA,U+2BD-2C5,U+2C7-2CC,U+2CE-2D7,U+2DD-2FF,U+1D00-1DBF,U+1E00-1E9F,U+1EF2-1EFF,"
    "U+20A0-20AB,U+20AD-20C0,U+2113,U+2C60-2C7F,U+A720-A7FF",
    "greek": "U+370-377,U+37A-37F,U+384-38A,U+38C,U+38E-3A1,U+3A3-3FF",
    "cyrillic": "U+301,U+400-45F,U+490-491,U+4B0-4B1,U+2116",
}
"""Font files and their characters, as CSS writes them."""


@dataclass(frozen=True)
class Theme:
    """Colours and sizes of a chart."""

    background: str
    ink: str
    grid: str
    colors: tuple[str, ...]
    """Colours of series that also color-blind readers can tell apart."""
    size: int
    """Font size in pixels. All other sizes follow from it."""

    def config(self) -> dict[str, Any]:
        """Return the Vega-Lite configuration."""
        axis = {
            **{f"{part}Color": self.ink for part in ("label", "title", "domain", "tick")},
            **{f"{part}FontSize": self.size for part in ("label", "title")},
            "titleFontWeight": "normal",
            "gridColor": self.grid,
            "labelLimit": 40 * self.size,
            "labelFlush": False,
        }
        return {
            "font": FONT,
            "view": {"stroke": None},
            "axis": axis,
            "axisY": {"domain": False, "ticks": False, "grid": False, "labelPadding": self.size * 0.7},
            "title": {
                "color": self.ink,
                "fontSize": self.size * 1.1,
                "fontWeight": "normal",
                "anchor": "start",
                "frame": "group",
                "limit": 60 * self.size,
            },
            "legend": {
                "orient": "top",
                "labelColor": self.ink,
                "labelFontSize": self.size,
                "labelLimit": 40 * self.size,
            },
            "range": {"category": list(self.colors)},
        }


THEMES: dict[ThemeName, Theme] = {
    "paper": Theme(
        "white",
        "#1a1a1a",
        "#e2e2e2",
        ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#595959"),
        10,
    ),
    "dark": Theme(
        "#11161f",
        "#eef1f6",
        "#39424f",
        ("#56b4e9", "#e69f00", "#35c79a", "#e59ac8", "#f0e442", "#ff8a4c", "#c3c9d4"),
        16,
    ),
}


@dataclass(frozen=True)
class Chart:
    """Chart with its data and its drawing instructions."""

    rows: list[Row]
    """Rows of numbers. Column names are the field names in the specification."""
    columns: tuple[str, ...]
    drawing: Callable[[list[Row], Theme], dict[str, Any]]
    """Function that returns marks and axes for some rows."""
    facet: str | None = None
    """Field that splits the chart into several drawings, each with a separate scale."""

    def specification(self, theme: ThemeName = "paper") -> dict[str, Any]:
        """Return the Vega-Lite specification, including the numbers."""
        look = THEMES[theme]
        parts: dict[str, list[Row]] = {}
        for row in redact_value(self.rows):
            part = "" if self.facet is None else str(row[self.facet])
            parts.setdefault(part, []).append({name: _shown(value) for name, value in row.items()})
        drawings = [
            {
                **({"title": _shown(title)} if self.facet is not None else {}),
                "data": {"values": rows},
                "width": 32 * look.size,
                **self.drawing(rows, look),
            }
            for title, rows in parts.items()
        ]
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "background": look.background,
            "padding": look.size,
            "config": look.config(),
            "vconcat": drawings,
            "bounds": "flush",
            "spacing": 7 * look.size,
            "resolve": {"legend": {"color": "shared"}},
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


def draw(drawn: Chart, out: Path, theme: ThemeName = "paper") -> None:
    """Write a chart as an image file. SVG and PDF files contain their fonts.

    Args:
        drawn: chart to draw.
        out: path that ends in `.svg`, `.png` or `.pdf`.
        theme: colours and sizes.

    Raises:
        UsageError: the file extension is different, or vl-convert is not installed.
        OSError: the file cannot be written.
    """
    kind = format_of(out)
    convert = package("vl_convert", "a chart", "plot")
    options = {"vl_version": VEGA_LITE, "allowed_base_urls": []}  # no external data
    specification = drawn.specification(theme)
    if kind == ".svg":
        picture = _with_fonts(convert.vegalite_to_svg(specification, **options)).encode()
    elif kind == ".png":
        picture = convert.vegalite_to_png(specification, ppi=PPI, **options)
    else:
        picture = convert.vegalite_to_pdf(specification, **options)
    # Remove secrets from texts before drawing.
    with open_for_replacing(out, clean=False) as file:
        file.write(picture)


def _with_fonts(svg: str) -> str:
    """Return an SVG drawing that contains the fonts of its characters."""
    characters = {ord(character) for character in svg}
    faces = [
        f"@font-face{{font-family:Arimo;src:url({_data_url(name)}) format('woff2');unicode-range:{ranges}}}"
        for name, ranges in _FACES.items()
        if any(map(characters.__contains__, _codes(ranges)))
    ]
    end = svg.index(">") + 1
    return f"{svg[:end]}<style>{''.join(faces)}</style>{svg[end:]}"


def _data_url(face: str) -> str:
    data = (FONTS / f"arimo-{face}.woff2").read_bytes()
    return f"data:font/woff2;base64,{b64encode(data).decode()}"


def _codes(ranges: str) -> Iterator[int]:
    for part in ranges.split(","):
        low, _, high = part[2:].partition("-")
        yield from range(int(low, 16), int(high or low, 16) + 1)


def format_of(out: Path) -> str:
    """Return the file extension of an image.

    Raises:
        UsageError: the file extension is not supported.
    """
    kind = out.suffix.lower()
    if kind not in SUFFIXES:
        raise UsageError(
            f"{out}: found the extension {out.suffix!r}, expected .svg, .png or .pdf", code=Code.WRONG_OPTION
        )
    return kind


def _axis(field: str, title: str, kind: str = "nominal", **more: Any) -> dict[str, Any]:
    return {"field": field, "type": kind, "title": title, **more}


def _number(field: str, title: str, **more: Any) -> dict[str, Any]:
    return _axis(field, title, "quantitative", **more)


def _count(field: str) -> dict[str, Any]:
    return _number(field, field, axis={"tickCount": 4, "tickMinStep": 1, "format": ","})


def _labels(results: Results, *, tasks: bool) -> list[str]:
    """Return a label for each result: its model.

    The task is added if the results have several tasks and `tasks` is set, and the file if labels are equal.
    """
    heads = []
    for path, name in zip(results.paths, results.names, strict=True):
        specification = LogReader(path).frame().specification
        entity = specification.evaluated_entity
        heads.append((specification.display_name, name if entity is None else entity.display_name))
    several = len({task for task, _ in heads}) > 1
    texts = [f"{task} · {model}" if tasks and several else model for task, model in heads]
    # A chart of metrics has a part for each task, and each part has its own labels.
    counts = Counter(zip((task for task, _ in heads), texts, strict=True))
    return [
        f"{text} ({name})" if counts[task, text] > 1 and text != name else text
        for (task, _), text, name in zip(heads, texts, results.names, strict=True)
    ]


def _metrics(results: Results) -> Chart:
    """Return a chart of all metrics, with 95 % intervals if available."""
    columns = (
        *("result", "label", "task", "model", "scorer", "metric", "name"),
        *("value", "low", "high", "scored"),
    )
    return Chart(list(_estimated(results)), columns, _intervals, facet="name")


def _intervals(rows: list[Row], theme: Theme) -> dict[str, Any]:
    percent = all(row["proportion"] for row in rows)
    intervals = sum(row["low"] is not None for row in rows)
    title = "value" if not intervals else "value and 95 % interval"
    axis: dict[str, Any] = {"tickCount": 6, "format": ".6~g"}
    scale: dict[str, Any] = {"zero": False, "padding": theme.size * 1.2, "nice": True}
    if percent:
        axis = {"tickCount": 6, "labelExpr": "format(datum.value * 100, '.6~g') + ' %'"}
        scale = {"domain": _around(rows), "nice": True}
    color = theme.colors[0]
    x = {"scale": scale, "axis": axis}
    return {
        "height": {"step": theme.size * 1.9},
        "encoding": {"y": _axis("label", "", sort=None)},
        "layer": [
            {
                "mark": {"type": "rule", "clip": True, "color": color, "strokeWidth": theme.size * 0.17},
                "encoding": {"x": _number("low", title, **x), "x2": {"field": "high"}},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": theme.size * 5,
                    "opacity": 1,
                    "color": color,
                },
                "encoding": {"x": _number("value", title, **x)},
            },
            {
                "mark": {"type": "text", "align": "left", "color": theme.ink, "fontSize": theme.size},
                "encoding": {"text": {"field": "text"}, "x": {"value": 33 * theme.size}},
            },
        ],
    }


def _around(rows: list[Row]) -> list[float]:
    """Return the part of the scale 0 to 1 that contains all values and intervals."""
    ends = [row[name] for row in rows for name in ("value", "low", "high") if row[name] is not None]
    room = max(0.05 * (max(ends) - min(ends)), 0.01)
    return [max(0.0, min(ends) - room), min(1.0, max(ends) + room)]


def _estimated(results: Results) -> Iterator[Row]:
    from aigo_stats.comparison.columns import read_columns
    from aigo_stats.comparison.estimates import estimates
    from aigo_stats.statistics.intervals import NoInterval

    labels = _labels(results, tasks=False)
    for path, name, label in zip(results.paths, results.names, labels, strict=True):
        columns = read_columns(path)
        specification = columns.frame.specification
        entity = specification.evaluated_entity
        for metric in estimates(columns):
            interval = None if isinstance(metric.estimate, NoInterval) else metric.estimate
            value = plain_number(metric.value)
            text = shown_number(value, metric.scale)
            if interval is not None:
                text += f"  ({shown_range(interval.low, interval.high, metric.scale)})"
            yield {
                "result": name,
                "label": label,
                "task": specification.task.key,
                "model": None if entity is None else entity.display_name,
                "scorer": metric.scorer,
                "metric": metric.metric,
                "name": f"{specification.display_name}: {metric.label}",
                "value": value,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
                "scored": None if metric.denominator is None else metric.denominator.scored,
                "text": text,
                "proportion": metric.scale == _PROPORTION,
            }


def _scores(results: Results) -> Chart:
    """Return a chart of the score distribution. Many different values are grouped in ranges."""
    labels = dict(zip(results.names, _labels(results, tasks=True), strict=True))
    several = len(labels) > 1
    numbers: dict[tuple[str, str], Counter[float]] = {}
    for score in results.scores():
        if score["counted"] and score["value"] is not None:
            key = (score["result"], f"{score['scorer']}.{score['name']}")
            numbers.setdefault(key, Counter())[score["value"]] += 1
    rows = [
        {**row, "label": labels[result], "part": name if several else f"{name} · {labels[result]}"}
        for (result, name), counts in numbers.items()
        for row in _bars(result, name, counts)
    ]
    return Chart(rows, ("result", "label", "score", "value", "samples"), _distribution, facet="part")


def _distribution(rows: list[Row], theme: Theme) -> dict[str, Any]:
    several = len({row["label"] for row in rows}) > 1
    series = {"color": _axis("label", "", sort=None), "yOffset": _axis("label", "", sort=None)}
    return {
        "height": {"step": theme.size * (1.1 if several else 1.8), **({"for": "offset"} if several else {})},
        "mark": {"type": "bar", "color": theme.colors[0]},
        "encoding": {
            "y": _axis("value", "", sort=None),
            "x": _count("samples"),
            **(series if several else {}),
        },
    }


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
    return _stacked(results, counts, ("state", "samples"))


def _tokens(results: Results) -> Chart:
    """Return a chart of the tokens of trials with known token counts."""
    counts = Counter[tuple[str, str]]()
    for trial in results.trials():
        for kind, name in (("input", "prompt_tokens"), ("output", "completion_tokens")):
            if trial[name] is not None:
                counts[trial["result"], kind] += trial[name]
    return _stacked(results, counts, ("kind", "tokens"))


def _stacked(results: Results, counts: Counter[tuple[str, str]], names: tuple[str, str]) -> Chart:
    """Return a chart with a bar for each result, made of its parts."""
    part, number = names
    labels = dict(zip(results.names, _labels(results, tasks=True), strict=True))
    rows: list[Row] = [
        {"result": result, "label": labels[result], part: name, number: count}
        for (result, name), count in counts.items()
    ]

    def drawing(_: list[Row], theme: Theme) -> dict[str, Any]:
        return {
            "height": {"step": theme.size * 1.9},
            "mark": "bar",
            "encoding": {
                "y": _axis("label", "", sort=None),
                "x": _count(number),
                "color": _axis(part, "", sort=None),
            },
        }

    return Chart(rows, ("result", "label", part, number), drawing)


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
    "tokens": "model calls with token counts",
}
