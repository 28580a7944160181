"""Language server tests with a real client for `aigo-bridge lsp`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from tests.support.commands import REPOSITORY
from tests.support.editor import CURSOR, Editor, running_editor

pytestmark = pytest.mark.slow  # each server has two processes

TASK = "quiz/task.yaml"
TEXT = """\
key: quiz
display_name: "𝄞 Quiz"
description: ""
config_spec:
  - {type: string, key: lang, display_name: Language, default_value: Norwegian}
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - {role: system, content: !include prompt.md}
        - {role: user, content: "𝄞𝄞 {{ sample.question }}"}
  scorers:
    - {$ref: scorer.yaml}
    - type: string_equals
      ground_truth: "{{ sample.answer }}"
"""
SCORER = """\
type: python
compute_scores_snippet: |
  def compute_scores(sample, solver_output):
      open("ran", "w").close()
      return {"score": 1.0}
"""
PROMPT = "Answer in << config.lang >>.\n"


EDITORS: Mapping[str, Mapping[str, Any]] = {
    "plain": {"options": {"prompts": False}},
    "with prompts": {"options": {"prompts": True}, "encodings": ("utf-8",)},
    "neovim": {"like": "neovim", "encodings": ("utf-32",)},
}


@pytest.fixture(scope="module")
def editors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Editor]]:
    """Editors of these tests. Each starts its server when a test first needs it."""
    with ExitStack() as stack:

        @cache
        def started(name: str) -> Editor:
            return stack.enter_context(running_editor(tmp_path_factory.mktemp("editor"), **EDITORS[name]))

        yield started


@pytest.fixture
def opened(request: pytest.FixtureRequest, editors: Callable[[str], Editor]) -> Iterator[Editor]:
    """Editor, `plain` unless a test names another one, with a project of the test's own."""
    editor = editors(getattr(request, "param", "plain"))
    with editor.project() as folder:
        quiz = folder / "quiz"
        quiz.mkdir()
        (folder / "pyproject.toml").touch()
        (quiz / "task.yaml").write_text(TEXT, encoding="utf-8")
        (quiz / "scorer.yaml").write_text(SCORER, encoding="utf-8")
        (quiz / "prompt.md").write_text(PROMPT, encoding="utf-8")
        (quiz / "rows.jsonl").write_text(
            '{"question": "Capital of Norway?", "answer": "Oslo"}\n', encoding="utf-8"
        )
        yield editor


def none(problems: list[lsp.Diagnostic]) -> bool:
    return not problems


def test_diagnostics_reflect_unsaved_text_included_files_and_rows(opened: Editor) -> None:
    async def work() -> None:
        await opened.open(TASK)
        await opened.until(TASK, none)
        # Unsaved and incomplete text.
        await opened.type(TASK, TEXT.replace("type: string_equals", "type: string_equal"))
        assert any(
            "did you mean 'string_equals'?" in each for each in await opened.messages(TASK, "'type': found")
        )
        await opened.type(TASK, TEXT + "  trials: {num_tri")
        await opened.messages(TASK, "not YAML")
        # Problems found with the rows.
        await opened.type(TASK, TEXT.replace("sample.answer", "sample.anwser"))
        assert await opened.messages(TASK, "is not a column") == [
            "`sample.anwser` is not a column of the dataset\ndid you mean 'answer'?"
        ]
        await opened.type(TASK, TEXT)
        await opened.until(TASK, none)
        # Unsaved included files.
        await opened.open("quiz/scorer.yaml", SCORER.replace("def compute_scores", "def compute"))
        await opened.messages("quiz/scorer.yaml", "does not define 'compute_scores'")
        await opened.open("quiz/prompt.md", "Answer in << config.lnag >>.")
        await opened.messages("quiz/prompt.md", "unknown parameter 'lnag'")
        await opened.type("quiz/prompt.md", PROMPT)
        await opened.type("quiz/scorer.yaml", SCORER)
        await opened.until("quiz/prompt.md", none)
        await opened.until("quiz/scorer.yaml", none)

    opened.run(work)
    assert not list(opened.root.rglob("ran"))


@pytest.mark.parametrize(
    ("opened", "encoding", "start"),
    [("plain", "utf-16", 41), ("with prompts", "utf-8", 45), ("neovim", "utf-32", 39)],
    indirect=["opened"],
)
def test_diagnostic_columns_use_the_negotiated_encoding(opened: Editor, encoding: str, start: int) -> None:
    async def work() -> None:
        assert opened.server.position_encoding == encoding
        await opened.open(TASK, TEXT.replace("{{ sample.question }}", "{{ question }}"))
        (problem,) = await opened.until(
            TASK, lambda problems: any("question" in each.message for each in problems)
        )
        line = TEXT.split("\n")[problem.range.start.line]
        assert line.startswith("        - {role: user, content:")
        assert problem.range.start.character == start

    opened.run(work)


def test_completions_work_in_invalid_text_and_included_files(opened: Editor) -> None:
    async def work() -> None:
        await opened.open(TASK)
        broken = TEXT.replace("description:", "description: [")
        columns = await opened.complete(TASK, broken.replace("sample.question }}", "sample.█"))
        assert set(columns) == {"question", "answer"}
        edit = columns["question"].text_edit
        assert isinstance(edit, lsp.TextEdit)
        assert edit.range.start == edit.range.end
        assert edit.range.start.character == len('        - {role: user, content: "') + 4 + len(" {{ sample.")
        keys = await opened.complete(TASK, TEXT + "      pur█")
        assert "purpose" in keys
        assert "ground_truth" not in keys
        types = await opened.complete(TASK, TEXT.replace("type: string_equals", "type: █"))
        assert "model_as_a_judge_scorer" in types
        whole = await opened.complete(TASK, TEXT.replace("key: rows", "key: << config.█"))
        assert list(whole) == ["lang"]
        files = await opened.complete(TASK, TEXT.replace("!include prompt.md", "!include █"))
        assert "prompt.md" in files
        # Included files and prompts.
        await opened.open("quiz/scorer.yaml")
        part = await opened.complete("quiz/scorer.yaml", "type: python\n█")
        assert {"compute_scores_snippet", "metrics"} <= set(part)
        await opened.type(TASK, TEXT)
        await opened.open("quiz/prompt.md")
        assert set(await opened.complete("quiz/prompt.md", "In {{ sample.█")) == {"question", "answer"}

    opened.run(work)


def test_hover_shows_reference_parameter_column_and_prompt(opened: Editor) -> None:
    async def work() -> None:
        await opened.open(TASK)
        field = await opened.hover(TASK, TEXT.replace("ground_truth", "ground█_truth"))
        assert field is not None
        reference = (REPOSITORY / "docs" / "reference" / "task-format" / "scorers.md").read_text("utf-8")
        meaning = field.rpartition("\n\n")[2]
        assert f"| `ground_truth` | text | required | {meaning}" in reference
        column = await opened.hover(TASK, TEXT.replace("sample.answer", "sample.ans█wer"))
        assert column is not None
        assert "Oslo" in column
        chosen = await opened.hover(TASK, TEXT.replace("string_equals", "string█_equals"))
        assert chosen is not None
        assert "is_correct" in chosen
        prompt = await opened.hover(TASK, TEXT.replace("  input_messages", "  input█_messages"))
        assert prompt is not None
        assert "Answer in Norwegian." in prompt
        assert "𝄞𝄞 Capital of Norway?" in prompt
        await opened.type(TASK, TEXT.replace("𝄞𝄞", "Now:"))
        prompt = await opened.hover(TASK, TEXT.replace("  input_messages", "  input█_messages"))
        assert prompt is not None
        assert "Now: Capital of Norway?" in prompt
        assert await opened.hover(TASK, TEXT.replace("\n  scorers", "\n█  scorers")) is None

    opened.run(work)
    assert not list(opened.root.rglob("ran"))


def test_go_to_definition_opens_the_referenced_file(opened: Editor) -> None:
    (opened.folder / "models.yaml").write_text(
        "key: judge\ndisplay_name: J\nrate_limit: 3\nconfig: {}\n", encoding="utf-8"
    )
    judged = TEXT + "    - {type: model_as_a_judge_scorer, model_key: judge}\n"

    async def work() -> None:
        await opened.open(TASK, judged)

        async def leads(old: str, new: str) -> list[tuple[str, int]]:
            return await opened.define(TASK, judged.replace(old, new, 1))

        assert await leads("!include prompt.md", "!include pro█mpt.md") == [("prompt.md", 0)]
        assert await leads("{$ref: scorer.yaml}", "{$ref: sco█rer.yaml}") == [("scorer.yaml", 0)]
        assert await leads("{key: rows}", "{key: ro█ws}") == [("rows.jsonl", 0)]
        assert await leads("sample.question", "sample.que█stion") == [("rows.jsonl", 0)]
        assert await leads("model_key: judge", "model_key: ju█dge") == [("models.yaml", 0)]
        assert await leads("role: user", "role: us█er") == []
        prompt = PROMPT + "About {{ sample.question }}.\n"
        name = "quiz/prompt.md"
        await opened.open(name, prompt)
        assert await opened.define(name, prompt.replace("lang", "la█ng")) == [("task.yaml", 4)]
        assert await opened.define(name, prompt.replace("quest", "que█st")) == [("rows.jsonl", 0)]
        parameter = await opened.hover(name, prompt.replace("lang", "la█ng"))
        assert parameter is not None
        assert "default `Norwegian`" in parameter
        column = await opened.hover(name, prompt.replace("quest", "que█st"))
        assert column is not None
        assert "Capital of Norway?" in column
        assert await opened.hover(name, prompt.replace("Answer", "Ans█wer")) is None

    opened.run(work)


async def rename(opened: Editor, name: str, marked: str, new_name: str) -> Any:
    at = opened.place(name, marked)
    params = lsp.RenameParams(at.text_document, at.position, new_name)
    return await opened.ask(opened.client.text_document_rename_async(params))


def test_rename_changes_a_parameter_in_all_files(opened: Editor) -> None:
    text = TEXT.replace('"𝄞𝄞 {{', '"𝄞𝄞 << config.lang >> {{')

    async def work() -> None:
        await opened.open(TASK, text)
        marked = text.replace("config.lang", "config.la█ng")
        at = opened.place(TASK, marked)
        params = lsp.PrepareRenameParams(at.text_document, at.position)
        answer = await opened.ask(opened.client.text_document_prepare_rename_async(params))
        assert answer.placeholder == "lang"
        texts = opened.applied(await rename(opened, TASK, marked, "tongue"))
        assert texts[TASK] == text.replace("key: lang", "key: tongue").replace("config.lang", "config.tongue")
        assert texts["quiz/prompt.md"] == "Answer in << config.tongue >>.\n"
        with pytest.raises(JsonRpcException, match="is not a parameter name"):
            await rename(opened, TASK, marked, "a b")
        with pytest.raises(JsonRpcException, match="only parameters"):
            await rename(opened, TASK, text.replace("role: user", "role: us█er"), "tongue")

    opened.run(work)


async def actions(opened: Editor, name: str, problem: lsp.Diagnostic) -> list[lsp.CodeAction]:
    params = lsp.CodeActionParams(
        lsp.TextDocumentIdentifier(opened.uri(name)), problem.range, lsp.CodeActionContext([problem])
    )
    return list(await opened.ask(opened.client.text_document_code_action_async(params)) or ())


def test_code_actions_fix_typos_and_deprecated_syntax(opened: Editor) -> None:
    old = TEXT.replace("definition:\n", "definition:\n  type: declarative_task\n")

    async def work() -> None:
        await opened.open(TASK, TEXT.replace("sample.question", "sample.quesiton"))
        (problem,) = await opened.until(TASK, lambda problems: len(problems) == 1)
        (action,) = await actions(opened, TASK, problem)
        assert action.edit is not None
        assert opened.applied(action.edit)[TASK] == TEXT
        await opened.type(TASK, old)
        problems = await opened.until(
            TASK, lambda problems: any("deprecated" in each.message for each in problems)
        )
        every = {each.kind: each for each in await actions(opened, TASK, problems[0])}
        rewritten = every[lsp.CodeActionKind.SourceFixAll].edit
        assert rewritten is not None
        assert opened.applied(rewritten)[TASK] == old.replace("declarative_task", "benchmark_task")

    opened.run(work)


@pytest.mark.parametrize(
    ("opened", "prompts"), [("with prompts", True), ("plain", False)], indirect=["opened"]
)
def test_prompt_lens_is_offered_only_if_the_editor_supports_it(opened: Editor, prompts: bool) -> None:
    async def work() -> None:
        await opened.open(TASK)
        params = lsp.CodeLensParams(lsp.TextDocumentIdentifier(opened.uri(TASK)))
        lenses = await opened.ask(opened.client.text_document_code_lens_async(params))
        assert len(lenses) == prompts
        if prompts:
            assert list(lenses[0].command.arguments) == [opened.uri(TASK), 1]
            assert lenses[0].range.start.line == TEXT[: TEXT.index("  solver:")].count("\n")
            await _prompts(opened)

    opened.run(work)


async def _prompts(opened: Editor) -> None:
    row = {"uri": opened.uri(TASK), "row": 1}
    shown = await opened.ask(opened.request("aigoBridge/prompt", row))
    assert "𝄞𝄞 Capital of Norway?" in shown.markdown
    row["row"] = 7
    shown = await opened.ask(opened.request("aigoBridge/prompt", row))
    assert shown.markdown == "Row 7 does not exist: the dataset has 1 row."


@pytest.mark.parametrize("opened", ["neovim"], indirect=True)
def test_unrelated_files_are_ignored_and_closed_files_are_cleared(opened: Editor) -> None:
    (opened.folder / "compose.yaml").write_text("services: {web: {image: x}}\n", encoding="utf-8")
    shutil.copy(opened.folder / "quiz" / "rows.jsonl", opened.folder / "quiz" / "more.jsonl")

    async def work() -> None:
        await opened.open("compose.yaml")
        await opened.open(TASK, TEXT.replace("{key: rows}", "{key: more, kye: x}"))
        await opened.messages(TASK, "unknown key 'kye'")
        assert opened.uri("compose.yaml") not in opened.client.diagnostics
        await opened.open("large.yaml", "key: " + "a" * 1_000_001)
        (large,) = await opened.messages("large.yaml", "larger than 1,000,000 characters")
        assert f"aigo-bridge validate {opened.folder.name}/large.yaml" in large
        opened.close(TASK)
        await opened.until(TASK, none)
        assert CURSOR not in TEXT

    opened.run(work)


def test_diagnostics_of_outdated_text_are_not_published(opened: Editor) -> None:
    async def work() -> None:
        await opened.open(TASK)
        for number in range(30):  # key strokes: only the last text counts
            await opened.type(TASK, TEXT.replace("type: string_equals", f"type: string_equals_{number}"))
        await opened.type(TASK, TEXT.replace("key: quiz", "key: quiz!"))
        (problem,) = await opened.messages(TASK, "quiz!")
        assert "letters" in problem

    opened.run(work)


def test_included_snippets_are_analyzed_and_model_keys_are_offered(opened: Editor) -> None:
    text = TEXT + "    - {type: python, compute_scores_snippet: !include score.py}\n"
    judged = text + "    - {type: model_as_a_judge_scorer, model_key: █}\n"
    (opened.folder / "models.yaml").write_text(
        "key: strict-judge\ndisplay_name: J\nrate_limit: 3\nconfig: {}\n", encoding="utf-8"
    )
    snippet = "def compute_scores(sample, solver_output):\n    return {'score': len('<< config.lang >>')}\n"
    (opened.folder / "quiz" / "score.py").write_text(snippet, encoding="utf-8")

    async def work() -> None:
        await opened.open(TASK, text)
        assert "strict-judge" in await opened.complete(TASK, judged)
        await opened.type(TASK, text)
        assert await opened.define(TASK, text.replace("!include score.py", "!include sc█ore.py")) == [
            ("score.py", 0)
        ]
        await opened.open("quiz/score.py", snippet.replace("compute_scores", "compute"))
        await opened.messages(TASK, "does not define 'compute_scores'")
        await opened.type("quiz/score.py", snippet.replace("return {", "return {{"))
        (problem,) = await opened.until(
            "quiz/score.py",
            lambda problems: [each.code for each in problems] == ["AB150"],
        )
        assert problem.range.start.line == 1
        assert list(await opened.complete("quiz/score.py", "x = << config.█")) == ["lang"]

    opened.run(work)


def test_completion_in_a_thousand_lines_takes_under_a_tenth_of_a_second(opened: Editor) -> None:
    """Measure the CPU time of the server. `benchmarks/editing.py` measures elapsed time."""
    scorer = SCORER.replace("\n", "\n      ").rstrip()
    text = TEXT + "".join(f"    - key: code-{number}\n      {scorer}\n" for number in range(160))
    assert text.count("\n") > 950
    strokes = 20

    async def work() -> None:
        await opened.open(TASK, text)
        await opened.until(TASK, none)
        typed = text + "    - type: string_equals\n      ground_"
        assert "ground_truth" in await opened.complete(TASK, typed + CURSOR)
        before = opened.processor_seconds()
        for number in range(strokes):
            word = "truth"[: number % 5]
            assert "ground_truth" in await opened.complete(TASK, typed + word + CURSOR)
        assert (opened.processor_seconds() - before) / strokes < 0.1

    opened.run(work)


@pytest.mark.parametrize(
    "hostile",
    ["[" * 300_000, "".join(f"k{number}: 1\n" for number in range(90_000)), "a: " + "[{" * 150_000],
    ids=["brackets", "keys", "mixed"],
)
def test_hostile_text_does_not_block_the_server(hostile: str, opened: Editor) -> None:
    """The task still uses the last valid text of the included file."""

    async def work() -> None:
        await opened.open(TASK)
        await opened.open("quiz/scorer.yaml", SCORER)
        await opened.until(TASK, none)
        before = opened.processor_seconds()
        start = time.monotonic()
        await opened.type("quiz/scorer.yaml", hostile)
        await opened.open("hostile.yaml", hostile)
        await opened.messages("quiz/scorer.yaml", "more than 50,000 lines, brackets and commas")
        assert (
            "column" in str(await opened.hover(TASK, TEXT.replace("sample.answer", "sample.ans█wer"))).lower()
        )
        assert "string_equals" in await opened.complete(TASK, TEXT.replace("type: string_equals", "type: █"))
        assert time.monotonic() - start < 10
        assert opened.processor_seconds() - before < 2
        await opened.type(TASK, TEXT)
        await opened.until(TASK, none)
        await opened.type("quiz/scorer.yaml", SCORER)
        await opened.until("quiz/scorer.yaml", none)

    opened.run(work)
