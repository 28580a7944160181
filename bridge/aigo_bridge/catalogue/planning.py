"""Errors of planning and exports: AB501 to AB511."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import CatalogueEntry, Example, edited
from aigo_bridge.codes import Code

_RUN = "run task.yaml --model scripted/answers.jsonl "

ENTRIES = (
    CatalogueEntry(
        Code.ENGINE_GAP,
        "The engine does not support a part of the task",
        "Unsupported parts are never skipped, so the run does not start. The message lists all of them.",
        "Use the other engine with `--engine`, or change these parts. `docs/reference/feature-matrix.md` lists the "
        "features of each engine.",
        edited(
            "type: single_turn_solver",
            "type: agent_solver",
            command="run task.yaml --engine lighteval --model scripted/answers.jsonl",
        ),
    ),
    CatalogueEntry(
        Code.NOTHING_TO_RUN,
        "A file contains nothing to run",
        "The file does not contain an evaluation, or all of its specifications use stored results.",
        "Add an `evaluation` with specifications, or run the task directly.",
        Example("run models.yaml", files={"models.yaml": "models:\n  - $provider: openai/gpt-4.1-nano\n"}),
    ),
    CatalogueEntry(
        Code.UNKNOWN_SPECIFICATION,
        "A run file does not contain this specification",
        "The text after `#` must be the key of a specification.",
        "Use one of the keys in the message.",
        Example("run run.yaml#capitols"),
    ),
    CatalogueEntry(
        Code.SURPLUS_ARGUMENT,
        "An argument is not used by the task",
        "You passed a dataset or model for a key that the task does not have. If the key is misspelled, the "
        "real one is missing.",
        "Correct the key, or remove the option.",
        Example(_RUN + "--dataset capitols=capitals.jsonl"),
    ),
    CatalogueEntry(
        Code.WRONG_EARLIER_RESULT,
        "The earlier result that a task needs is not available",
        "The rows of this task are the samples of another task's result.",
        "Run the other task first, or pass its result with `--dataset KEY=FILE.tasklog.json`.",
        edited(
            "dataset: {key: capitals}",
            "dataset: {source: task_result, key: earlier}",
            command="explain task.yaml",
        ),
    ),
    CatalogueEntry(
        Code.NO_FULL_DATASET,
        "`--full` does not work for this task",
        "`--full` runs the Hugging Face dataset that belongs to a shipped task. This task does not belong to one.",
        "Pass your own rows with `--dataset KEY=FILE`, or remove `--full`.",
        Example(_RUN + "--full"),
    ),
    CatalogueEntry(
        Code.UNUSED_OPTION,
        "An option does not apply to this task",
        "For example, `--model` for a task that evaluates a dataset.",
        "Remove the option.",
        Example(
            "run controls.yaml --num-samples 2",
            files={
                "controls.yaml": "key: controls\ndisplay_name: Controls\ndescription: ''\ndefinition:\n  type: system_task\n"
                "  compute_evidence_snippet: |\n    def compute_evidence():\n"
                '        return {"metrics": {"has_owner": {"value": 1.0}}}\n'
            },
        ),
    ),
    CatalogueEntry(
        Code.NOT_EXPORTABLE,
        "A task or result cannot be exported exactly",
        "The target format cannot express a part, so the part would be lost or change its meaning.",
        "Export without `--native`, or change the part in the message.",
        edited(
            "- type: string_equals\n",
            "- type: python\n      compute_scores_snippet: |\n"
            "        def compute_scores(sample, solver_output):\n            return {'one': 1}\n"
            "    - type: string_equals\n",
            command="export task.yaml --native --to inspect --out out",
        ),
    ),
    CatalogueEntry(
        Code.NOT_ALLOWED,
        "The code of a task needs a permission",
        "Snippets may not use the network or start programs unless you allow it for this task.",
        "If you trust the task, run the command again with the `--allow` option in the message.",
        Example(
            _RUN,
            files={
                "task.yaml": "key: capitals\ndisplay_name: Capitals\ndescription: ''\nneeds: network\ndefinition:\n"
                "  dataset: {key: capitals}\n  solver:\n    type: single_turn_solver\n    input_builder:\n"
                "      type: chat_completion\n      input_messages: [{role: user, content: hi}]\n"
                "  scorers:\n    - type: python\n      compute_scores_snippet: |\n"
                "        def compute_scores(sample, solver_output):\n            return {'one': 1}\n",
            },
        ),
    ),
    CatalogueEntry(
        Code.OTHER_EXPORT,
        "Exported files were changed",
        "The files were modified, mixed with another export, or are incomplete. The metrics would be wrong.",
        "Export the task again into an empty folder.",
        test="tests/bridge/exporting/test_packing.py::test_dataset_that_is_not_in_the_export_is_refused",
    ),
    CatalogueEntry(
        Code.UNTRANSLATED,
        "AI GO cannot express a task of another tool",
        "The part in the message cannot be converted. Examples: Python functions, metrics over all answers, "
        "randomly drawn examples, and solvers with several model calls.",
        "Rewrite the part as a template or a column. To convert without optional parts, use `--allow-gaps`; "
        "the new task lists the gaps.",
        Example(
            "convert lm-eval:quiz.yaml --out out",
            files={
                "quiz.yaml": "task: quiz\ndataset_path: owner/rows\ntest_split: test\n"
                'doc_to_text: !function utils.prompt\ndoc_to_target: "{{answer}}"\n'
            },
        ),
    ),
)
