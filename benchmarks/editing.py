"""Cost of a keystroke in a task of 1,000 lines in the language server, compared with parsing the YAML once.

    python benchmarks/editing.py [--lines N] [--strokes N]

Consecutive texts differ by one keystroke. The floor is bare `yaml.compose` with the C loader. The last line
measures the complete path: a change and a completion through the server's standard input and output, in
milliseconds of wall time."""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient
from ratios import record

from aigo_bridge.spec.task import TaskSpec
from aigo_editor.completion import Knowledge, complete
from aigo_editor.context import context_at
from aigo_editor.project import source_of
from aigo_editor.reading import problems

HEAD = """\
key: quiz
display_name: Quiz
description: ""
config_spec:
  - {type: string, key: lang, display_name: Language, default_value: en}
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - {role: user, content: "{{ sample.question }} << config.lang >>"}
  scorers:
"""
SCORERS = """\
    - type: string_equals
      key: equals-{n}
      ground_truth: "{{{{ sample.answer }}}}"
    - type: model_as_a_judge_scorer
      key: judge-{n}
      model_key: judge
      system_prompt: |
        You are judge {n}. Answer in << config.lang >>.
      user_prompt: |
        Question: {{{{ sample.question }}}}
        Answer: {{{{ solver_output.output }}}}
    - type: python
      key: code-{n}
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            total = {n}
            return {{"score": float(total)}}
"""
WARM = 5.0
"""Seconds after which the server and its processes have started."""
TYPED = "    - type: bleu\n      ground_t"
"""Text that the simulated user types at the end."""


def task(lines: int) -> str:
    parts, number = [HEAD], 0
    while sum(part.count("\n") for part in parts) < lines:
        parts.append(SCORERS.format(n=number))
        number += 1
    return "".join(parts)


def median(work: Callable[[int], object], strokes: int) -> float:
    """Return the CPU seconds of one keystroke."""
    times = []
    work(-1)  # compiles the parts that do not change between keystrokes
    for number in range(strokes):
        start = time.process_time()
        work(number)
        times.append(time.process_time() - start)
    return statistics.median(times)


async def round_trip(folder: Path, text: str, strokes: int) -> list[float]:
    """Return the seconds from a keystroke to its completions."""
    client = LanguageClient("benchmark", "1")
    await client.start_io(str(Path(sys.executable).parent / "aigo-bridge"), "lsp")
    await client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities(), root_uri=folder.as_uri()))
    client.initialized(lsp.InitializedParams())
    uri = (folder / "task.yaml").as_uri()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "yaml", 0, text)))
    await asyncio.sleep(WARM)
    gc.freeze()  # without pauses of Python's garbage collector
    times = []
    for number in range(strokes + 1):
        typed = text + TYPED + "r" * number
        place = lsp.Position(typed.count("\n"), len(typed.rpartition("\n")[2]))
        start = time.perf_counter()
        change = lsp.TextDocumentContentChangeWholeDocument(typed)
        document = lsp.VersionedTextDocumentIdentifier(number + 1, uri)
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))
        params = lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), place)
        answer = await client.text_document_completion_async(params)
        assert isinstance(answer, lsp.CompletionList)
        assert answer.items
        times.append(time.perf_counter() - start)
        await asyncio.sleep(0.05)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return times[1:]


def main(lines: int, strokes: int) -> None:
    text = task(lines)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        file = folder / "task.yaml"
        file.write_text(text, encoding="utf-8")

        def completion(number: int) -> None:
            typed = f"# {number}\n{text}{TYPED}"
            assert complete(context_at(typed, len(typed)), Knowledge(TaskSpec))

        def diagnostics(number: int) -> None:
            typed = text.replace("You are judge 3.", f"You are judge 3{'!' * number}.")
            typed += "    - {type: bleu, ground_truth: a, ground_t: b}\n"
            assert len(problems(file, {str(file): typed}, planned=False)) == 1

        floor = median(lambda _: yaml.compose(text, Loader=yaml.CSafeLoader), strokes)
        rows = {
            "completion": completion,
            "structure of the project's file": lambda number: source_of(file, f"# {number}\n{text}{TYPED}"),
            "problems": diagnostics,
        }
        print(f"{text.count(chr(10)):,} lines; yaml.compose: {floor * 1000:.1f} ms")
        for row, work in rows.items():
            seconds = median(work, strokes)
            print(f"{row:34}{seconds * 1000:8.1f} ms {seconds / floor:8.2f}")
            record(row, seconds / floor)
        waited = asyncio.run(round_trip(folder, text, strokes))
        usual, longest = statistics.median(waited) * 1000, max(waited) * 1000
        print(f"{'the whole way, of the clock':34}{usual:8.1f} ms, at most {longest:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--strokes", type=int, default=40)
    given = parser.parse_args()
    main(given.lines, given.strokes)
