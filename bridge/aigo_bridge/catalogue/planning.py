"""What cannot be carried out as it is written: AB501 to AB510."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import Entry, Example, edited
from aigo_bridge.codes import Code

_RUN = "run task.yaml --model scripted/answers.jsonl "

ENTRIES = (
    Entry(
        Code.ENGINE_GAP,
        "An engine cannot carry out a part of the task",
        "Rather than to leave it out or do it by halves, nothing is run. The message lists every such part.",
        "Take the other engine (`--engine`), or change the part; `docs/what-runs-where.md` has all of them.",
        edited(
            "type: single_turn_solver",
            "type: agent_solver",
            command="run task.yaml --engine lighteval --model scripted/answers.jsonl",
        ),
    ),
    Entry(
        Code.NOTHING_TO_RUN,
        "There is nothing to run in this file",
        "It has no evaluation, or every specification has a stored result.",
        "Add an `evaluation` with specifications, or run the task by itself.",
        Example("run models.yaml", files={"models.yaml": "models:\n  - $provider: openai/gpt-4.1-nano\n"}),
    ),
    Entry(
        Code.UNKNOWN_SPECIFICATION,
        "A run file has no specification of that name",
        "Behind `#` stands the key of one of its specifications.",
        "Take one of the keys in the message.",
        Example("run run.yaml#capitols"),
    ),
    Entry(
        Code.SURPLUS_ARGUMENT,
        "Something was given that nothing uses",
        "A data set or a model by a key that the task does not have: perhaps a slip, and then another one is missing.",
        "Correct the key, or leave it out.",
        Example(_RUN + "--dataset capitols=capitals.jsonl"),
    ),
    Entry(
        Code.WRONG_EARLIER_RESULT,
        "An earlier result that the task starts from cannot be had",
        "The rows of such a task are the samples of another task's result.",
        "Run that task first, or give its result: `--dataset KEY=FILE.tasklog.json`.",
        edited(
            "dataset: {key: capitals}",
            "dataset: {source: task_result, key: earlier}",
            command="explain task.yaml",
        ),
    ),
    Entry(
        Code.NO_FULL_DATASET,
        "`--full` has no real data set to take",
        "It stands for the data set of the hub that lies beside a shipped task.",
        "Give rows of your own with `--dataset KEY=FILE`, or leave `--full` out.",
        Example(_RUN + "--full"),
    ),
    Entry(
        Code.UNUSED_OPTION,
        "An option has no effect on this task",
        "For instance a model where a data set is evaluated.",
        "Leave it out.",
        Example(
            "run controls.yaml --num-samples 2",
            files={
                "controls.yaml": "key: controls\ndisplay_name: Controls\ndescription: ''\ndefinition:\n  type: system_task\n"
                "  compute_evidence_snippet: |\n    def compute_evidence():\n"
                '        return {"metrics": {"has_owner": {"value": 1.0}}}\n'
            },
        ),
    ),
    Entry(
        Code.NOT_EXPORTABLE,
        "A task or result cannot be exported exactly",
        "A part has no form in the files of the other tool, and would be lost or mean something else there.",
        "Export without `--native`, or change the part that the message names.",
        edited(
            "- type: string_equals\n",
            "- type: python\n      compute_scores_snippet: |\n"
            "        def compute_scores(sample, solver_output):\n            return {'one': 1}\n"
            "    - type: string_equals\n",
            command="export task.yaml --native --to inspect --out out",
        ),
    ),
    Entry(
        Code.NOT_ALLOWED,
        "The task's code needs what was not allowed",
        "Snippets have neither network nor programs unless you say so for this very task.",
        "If you trust it, give the command once more with the `--allow` of the message.",
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
    Entry(
        Code.OTHER_EXPORT,
        "Exported files are not those that were exported",
        "They were changed, mixed with another export, or do not have what is asked for, so numbers would be wrong.",
        "Export the task again into an empty folder.",
        test="tests/bridge/exporting/test_packing.py::test_another_data_set_is_not_in_the_export",
    ),
    Entry(
        Code.UNTRANSLATED,
        "A task of another project has no form in AI GO",
        "What the message names would be lost, or cannot be said: a function in Python, which is not run; numbers"
        " over all answers; examples that are drawn; solvers that ask more than once.",
        "Write that part as a template or a column; what may be left out is left out with `--allow-gaps`, and the"
        " task says so.",
        Example(
            "convert lm-eval:quiz.yaml --out out",
            files={
                "quiz.yaml": "task: quiz\ndataset_path: owner/rows\ntest_split: test\n"
                'doc_to_text: !function utils.prompt\ndoc_to_target: "{{answer}}"\n'
            },
        ),
    ),
)
