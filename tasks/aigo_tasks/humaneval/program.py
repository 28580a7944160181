"""The program of an answer, as `extract_code_block` of inspect-evals reads it: of the blocks that say they are Python the
first, else the first that says nothing, else the whole answer.

A block ends at a line of a fence, before any other fence, at a fence behind its last line, or, where it says that it is
Python, with the text. Blocks without code do not count.
"""

from __future__ import annotations

import re
from typing import Any

LABEL = r"(?:python3|python|py)"
END = r"(?:^```[ \t\r]*$|(?=^```)|(?<=\S)```[ \t\r]*$|(\Z))"
LABELLED = re.compile(
    rf"(?:^```[ \t]*{LABEL}(?=[\s`])[^\n]*|```[ \t]*{LABEL}[ \t]*)\r?\n(.*?){END}", re.DOTALL | re.MULTILINE | re.IGNORECASE
)
FENCED = re.compile(rf"^```[ \t]*([^\s`]*)[^\n]*\r?\n(.*?){END}", re.DOTALL | re.MULTILINE)


def block(text: str) -> str | None:
    """The code of the first block; `None`: there is none."""
    for match in LABELLED.finditer(text):
        if match.group(1).strip():
            return match.group(1)
    for match in FENCED.finditer(text):
        if not match.group(1) and match.group(2).strip() and match.group(3) is None:
            return match.group(2)
    return None


def program(sample: dict[str, Any], answer: str) -> str:
    """The row's signature and docstring, and then the answer: of a block what follows the first line that ends with a colon."""
    code = block(answer)
    if code is None:
        return f"{sample['prompt']}{answer}\n"
    code = code.replace("\r\n", "\n")
    return f"{sample['prompt']}{code[code.find(':' + chr(10) + '    ') + 2 :]}\n"


def postprocess(sample: dict[str, Any], solver_output: Any) -> list[tuple[dict[str, Any], Any]]:
    answer = solver_output.output.choices[0].message.content
    return [({**sample, "program": program(sample, answer)}, solver_output)]
