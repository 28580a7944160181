"""Templates of an `eval.yaml` are rendered like in Inspect."""

from __future__ import annotations

import random
from typing import Any

from inspect_ai._util.format import format_template
from inspect_ai.solver._multiple_choice import MultipleChoiceTemplate
from inspect_ai.solver._prompt import DEFAULT_COT_TEMPLATE

from aigo_bridge.templates import SampleTemplate
from aigo_formats.inspect_hub.prompts import COT, FormatError, choice_template, formatted

PIECES = (
    "{prompt}",
    "{story}",
    "{ä}",
    "{n}",
    "{none}",
    "{{",
    "}}",
    "{x y}",
    "{?}",
    "{tone}",
    "{%",
    "%}",
    "{#",
    "\n",
    " ",
    "Ö😀",
    "a",
    '"',
    "\\n",
    "'",
)
ROW: dict[str, Any] = {"story": "{prompt} {{ 7 * 7 }} {% x %}", "ä": "€", "n": 2.0, "none": None}


def test_default_templates_match_inspect() -> None:
    assert COT == DEFAULT_COT_TEMPLATE
    templates = {
        choice_template(cot=cot, multiple_correct=several)
        for cot in (True, False)
        for several in (True, False)
    }
    assert templates == {template.value for template in MultipleChoiceTemplate}


def test_random_templates_render_as_in_inspect() -> None:
    random_state = random.Random(0)
    same = refused = 0
    for _ in range(3_000):
        template = "".join(random_state.choices(PIECES, k=random_state.randint(1, 7)))
        parameters = {"tone": random_state.choice(["kind", 3, True, None, ["a"]])}
        question = "Why {tone}?"
        try:
            text = formatted(template, parameters, frozenset(ROW), {"prompt": "{{ sample.question }}"})
        except FormatError:
            refused += 1
            continue
        rendered = SampleTemplate(f"{text}|").render(sample={**ROW, "question": question})
        assert rendered == format_template(template, {"prompt": question, **ROW, **parameters}) + "|", (
            template
        )
        same += 1
    assert same > 1_500
    assert refused > 100
