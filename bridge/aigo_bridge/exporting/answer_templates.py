"""Templates over the model's answer that are as short in Python: the answer, trimmed or with its case changed."""

from __future__ import annotations

import jinja2
from jinja2 import nodes

_METHODS = {"trim": "strip()", "lower": "lower()", "upper": "upper()"}
"""Filter → the method of a text that does the same."""

_ANSWERS = frozenset({"solver_output.output", "solver_output.output.choices.0.message.content"})
"""What is the answer's text, or becomes it before a filter sees it."""


def answer_methods(template: str | None) -> tuple[str, ...] | None:
    """What is done to the answer, as calls of methods in order; `None` for any other template.

    `{{ solver_output.output.choices[0].message.content | trim | lower }}` is `strip()`, `lower()`; no template at all is the answer.
    """
    if template is None:
        return ()
    try:
        body = jinja2.Environment(autoescape=False).parse(template).body  # noqa: S701  # prompts are no HTML
    except jinja2.TemplateSyntaxError:
        return None
    if len(body) != 1 or not isinstance(body[0], nodes.Output) or len(body[0].nodes) != 1:
        return None
    return _methods(body[0].nodes[0])


def _methods(node: nodes.Node) -> tuple[str, ...] | None:
    methods: list[str] = []
    while isinstance(node, nodes.Filter):
        if node.name not in _METHODS or node.args or node.kwargs or node.node is None:
            return None
        methods.insert(0, _METHODS[node.name])
        node = node.node
    return tuple(methods) if _path(node) in _ANSWERS else None


def _path(node: nodes.Node) -> str | None:
    """`output.choices[0].message` as `output.choices.0.message`; `None` for anything but a look-up by names."""
    steps: list[str] = []
    while not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Getattr):
            steps.append(node.attr)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
            steps.append(str(node.arg.value))
        else:
            return None
        node = node.node
    return ".".join([node.name, *reversed(steps)])
