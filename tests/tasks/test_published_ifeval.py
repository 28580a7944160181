"""IFEval instructions are checked like in lighteval; those that need NLTK models are described in the task's README."""

from __future__ import annotations

import random
import runpy
from typing import Any

import pytest
from tests.support.commands import TASKS
from tests.tasks.published import NUM_FUZZED, differences

ARGUMENTS: dict[str, dict[str, Any]] = {
    "keywords:existence": {"keywords": ["tea", "c.p"]},
    "keywords:frequency": {"keyword": " go ", "relation": "at least", "frequency": 2},
    "keywords:forbidden_words": {"forbidden_words": ["cat", "tea"]},
    "keywords:letter_frequency": {"letter": "E", "let_relation": "less than", "let_frequency": 3},
    "language:response_language": {"language": "de"},
    "length_constraints:number_paragraphs": {"num_paragraphs": 2},
    "length_constraints:number_words": {"relation": "at least", "num_words": 6},
    "length_constraints:nth_paragraph_first_word": {
        "nth_paragraph": 2,
        "num_paragraphs": 2,
        "first_word": "Then",
    },
    "detectable_content:number_placeholders": {"num_placeholders": 2},
    "detectable_content:postscript": {"postscript_marker": "P.P.S"},
    "detectable_format:number_bullet_lists": {"num_bullets": 2},
    "detectable_format:constrained_response": {},
    "detectable_format:number_highlighted_sections": {"num_highlights": 2},
    "detectable_format:multiple_sections": {"section_spliter": "SECTION ", "num_sections": 2},
    "detectable_format:json_format": {},
    "detectable_format:title": {},
    "combination:two_responses": {},
    "combination:repeat_prompt": {"prompt_to_repeat": " Say hi "},
    "startend:end_checker": {"end_phrase": " Bye. "},
    "startend:quotation": {},
    "change_case:english_capital": {},
    "change_case:english_lowercase": {},
    "punctuation:no_comma": {},
}
PIECES = (
    *(
        "tea",
        "Cup",
        "cop",
        "go",
        "Go!",
        "cat",
        "concatenate",
        "eel",
        "ÄPFEL",
        "äpfel",
        "3",
        "Then",
        "'then",
        "\"'Then,",
        "[name]",
    ),
    *(
        "p.p.s",
        "P. P.S bye",
        "p.s.",
        "* a",
        "- b",
        "** c **",
        "*one*",
        "**two**",
        "* *",
        "My answer is maybe.",
        "SECTION 1",
        "SECTION2",
    ),
    *(
        '{"a": 1}',
        "```json",
        "```",
        "<<Title>>",
        "<< >>",
        "******",
        "***",
        "Say hi",
        "Bye.",
        "bye.",
        '"',
        ",",
        "THE WEATHER IS FINE",
    ),
    *("the weather is fine today", "Das Wetter ist heute schön", " ", " ", "\n", "\n\n", "日本", "2", "."),
)


@pytest.mark.engine
@pytest.mark.xdist_group("lighteval")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ARGUMENTS)
def test_instructions_are_checked_like_lighteval(name: str) -> None:
    import langdetect
    from lighteval.tasks.tasks.ifeval.instructions_registry import INSTRUCTION_DICT

    langdetect.DetectorFactory.seed = 0
    follows = runpy.run_path(str(TASKS / "ifeval" / "scorer.py"))["follows"]
    instruction = INSTRUCTION_DICT[name](name)
    instruction.build_description(**ARGUMENTS[name])
    random_ = random.Random(name)
    answers = ["", " ", "[name], [city]", "* a\n- b", '"yes"', *PIECES]
    answers += [
        "".join(random_.choice(PIECES) for _ in range(random_.randint(1, 7))) for _ in range(NUM_FUZZED // 3)
    ]

    published: list[bool] = []

    def reference(_: object, answer: str) -> bool:
        published.append(bool(answer.strip()) and bool(instruction.check_following(answer)))
        return published[-1]

    def shipped(_: object, answer: str) -> bool:
        return bool(follows(name, answer, ARGUMENTS[name]))

    assert differences([{}], lambda _: dict.fromkeys(answers), shipped, reference) == []
    assert {*published} == {True, False}
