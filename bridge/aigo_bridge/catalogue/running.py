"""What fails while a task runs: AB601 to AB620."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import Entry, Example, edited
from aigo_bridge.codes import Code

_RUN = "run task.yaml --model scripted/answers.jsonl"
_STRING = (
    '- type: string_equals\n      ground_truth: "{{ sample.capital }}"\n      metrics:\n'
    "        - {type: mean, field: is_correct, name: Accuracy}"
)
_SOLVER = (
    "    type: single_turn_solver\n    input_builder:\n      type: chat_completion\n      input_messages:\n"
    '        - role: user\n          content: "What is the capital of {{ sample.country }}? Answer with its name only."\n'
)
_SNIPPET = "- type: python\n      compute_scores_snippet: |\n        def compute_scores(sample, solver_output):\n            "
_JUDGE = (
    "      model_key: openai$gpt-4-1-nano\n      system_prompt: Judge.\n"
    '      user_prompt: "Is {{ solver_output.output }} right?"\n'
)
_JUDGED = _RUN + " --model-map 'openai$gpt-4-1-nano=scripted/judge.jsonl'"

ENTRIES = (
    Entry(
        Code.FAILED_ENGINE,
        "The engine itself failed",
        "It ended with an error of its own, before or outside of any sample.",
        "Its words stand in the message; what was finished is in its log, and `run --resume` goes on from there.",
        test="tests/end_to_end/test_full_disk.py::test_what_inspect_refuses_before_it_has_a_log_is_an_error_of_the_engine",
    ),
    Entry(
        Code.NEVER_BEGUN,
        "A task was not begun, as the run was stopped before",
        "An interruption, or another task whose result it needs did not come to an end.",
        "`run --resume` runs what is missing.",
        test="tests/end_to_end/test_rows_of_results.py::test_a_task_whose_sibling_is_not_complete_is_not_run",
    ),
    Entry(
        Code.CHANGED_SINCE,
        "The task, its data or its model has changed since the run began",
        "Going on would mix samples of two different tasks under one number.",
        "Start a new run.",
        test="tests/adapters/inspect/models/test_provider.py::test_an_address_of_ones_own_is_another_version_of_the_model",
    ),
    Entry(
        Code.PLACE_IN_USE,
        "Another process writes to the same place, or a run has its files there",
        "Two would overwrite each other's files.",
        "Wait for its end, or take another `--out`.",
        test="tests/extras/scale/storage/test_leases.py::test_two_at_a_time_are_refused",
    ),
    Entry(
        Code.FAILED_SNIPPET,
        "The author's Python failed",
        "It raised an exception, or its process ended. The message has the line of the snippet.",
        "Mend the snippet; `aigo-bridge score` scores stored answers again without asking the model.",
        edited(_STRING, _SNIPPET + "return {'right': float(sample['size'])}", command=_RUN),
    ),
    Entry(
        Code.STOPPED_SNIPPET,
        "The author's Python was stopped",
        "It took too long, or started too many processes.",
        "Make it faster, or give it more time in the task.",
        test="tests/bridge/snippets/test_host_stopping.py::test_closing_ends_calls_in_progress",
    ),
    Entry(
        Code.UNCONFINED_SNIPPETS,
        "Snippets cannot be confined on this machine",
        "The kernel or the container forbids what keeps strangers' code apart, so none is run.",
        "docs/snippets.md says what to allow; for tasks of your own there is `--snippets in-process`.",
        test="tests/security/test_snippet_jail.py::test_what_a_shell_adds_to_an_environment_is_no_secret",
    ),
    Entry(
        Code.WRONG_SNIPPET_RESULT,
        "The author's Python returned something of another shape",
        "`compute_scores` gives one mapping of scores a sample, `solve` a trace, `postprocess` a solver output.",
        "Return what the message expects.",
        edited(_STRING, _SNIPPET + "return 'right'", command=_RUN),
    ),
    Entry(
        Code.WRONG_INPUT,
        "A template of the model's input gave no conversation for a sample",
        "It has to give messages, as a list or as JSON; quotes inside a value often break the JSON.",
        "Write values as `{{ sample.x | tojson }}`, without quotes around them.",
        test="tests/bridge/solving/test_solvers_single.py::test_json_that_cannot_be_read_is_a_fault_of_the_template",
    ),
    Entry(
        Code.UNREADABLE_VERDICT,
        "A judge's reply could not be read",
        "It was asked for JSON, and once more with the reason, and gave something else.",
        "Try a stronger judge, or a shorter prompt; the last reply stands in the message.",
        Example(
            _JUDGED,
            right=_STRING,
            wrong="- type: model_as_a_judge_classifier\n"
            + _JUDGE
            + "      correct_labels: [good]\n      incorrect_labels: [bad]",
            files={"judge.jsonl": '{"default": true, "reply": "Quite good!"}\n'},
        ),
    ),
    Entry(
        Code.VERDICT_OUT_OF_RANGE,
        "A judge's verdict is outside of what was asked for",
        "A number beyond the scale, or a label that is none. It is not clamped: that would be a number nobody gave.",
        "Say the scale or the labels more clearly in the prompt.",
        Example(
            _JUDGED,
            right=_STRING,
            wrong="- type: model_as_a_judge_scorer\n" + _JUDGE + "      score_min: 1\n      score_max: 5",
            files={
                "judge.jsonl": '{"match": {"contains": "right"}, "reply": "{\\"reasoning\\": \\"-\\", \\"score\\": 9, \\"confidence\\": 1}"}\n'
            },
        ),
    ),
    Entry(
        Code.MISSING_VALUE,
        "A sample lacks the value that its answer is compared with",
        "A cell is empty, or there is no single answer. Unscored is not zero: the sample counts as failed.",
        "Fill the cell, or say in the template what stands for a missing value.",
        Example(
            _RUN,
            files={
                "capitals.jsonl": '{"country": "Norway", "capital": "Oslo"}\n{"country": "Peru", "capital": null}\n'
            },
        ),
    ),
    Entry(
        Code.FAILED_SANDBOX,
        "The sandbox failed, or could not judge the code",
        "Code that a model wrote runs apart; the place where it runs broke, or its tests ended without a verdict.",
        "docs/sandbox.md says what the sandbox needs.",
        test="tests/adapters/inspect/sandbox/test_environment.py::test_without_a_sandbox_there_is_no_score",
    ),
    Entry(
        Code.MISSING_LIKELIHOODS,
        "There are no likelihoods of these texts",
        "Only some models tell how likely a given text is; chat endpoints do not.",
        "Take a model that does: `--engine lighteval --model transformers/PATH`.",
        test="tests/bridge/scoring/test_likelihoods.py::test_likelihoods_of_other_texts_are_not_taken",
    ),
    Entry(
        Code.EXCEEDED_LIMIT,
        "A sample came to its limit",
        "A loop made all of its iterations, or the sample its tokens, without an end.",
        "Raise the limit, or set `on_max_iterations: continue` where such an end is an answer, too.",
        edited(
            _SOLVER,
            "    type: multi_turn_solver\n    message_builders:\n      - type: loop\n        max_iterations: 2\n"
            "        message_builders:\n"
            '          - {type: chat_message, role: user, content: "The capital of {{ sample.country }}?"}\n'
            "          - {type: generate}\n",
            command=_RUN,
        ),
    ),
    Entry(
        Code.WRONG_SAMPLE_DATA,
        "A sample's data are not what a scorer or solver needs",
        "Its choices are no list, its ground truth is none of them, its tests are no texts.",
        "Mend the row, or the template that reads it.",
        edited(
            _STRING,
            '- type: string_equals_mcqa\n      ground_truth_choice: "{{ sample.capital }}"\n      choices: "{{ sample.country }}"',
            command=_RUN,
        ),
    ),
    Entry(
        Code.WRONG_TRACE,
        "A column or output does not hold the trace that is needed",
        "A solver passes recorded traces on, or a scorer looks into one, and it is none or has no answer.",
        "See what the column holds; imports write traces as they are needed.",
        edited(
            _SOLVER, "    type: pass_through_solver\n    trace_column: country\n", command="run task.yaml"
        ),
    ),
    Entry(
        Code.TOO_MANY_FAILURES,
        "More samples failed than may",
        "`--fail-on-error` says how many; the run stopped there, and keeps what it has.",
        "Look at the first errors; `run --resume` goes on.",
        test="tests/end_to_end/test_stopping.py::test_a_spent_tolerance_stops_the_run",
    ),
    Entry(
        Code.FAILED_SAMPLE,
        "A sample failed in another way",
        "The kind that stands in its evidence is an engine's or a library's own.",
        "Its message is that of the library; the native log has the traceback.",
        Example(
            "run task.yaml --model scripted/other.jsonl",
            files={"other.jsonl": '{"match": {"contains": "x"}, "reply": "y"}\n'},
        ),
    ),
    Entry(
        Code.OUTCOME_NOT_SHOWN,
        "What a run came to cannot be shown, or differs from what was written",
        "The evidence and the native log are complete; the summary on the screen is not to be trusted.",
        "Use the evidence, and report it: this is a fault of aigo-bridge.",
        test="tests/end_to_end/test_outcome_is_evidence.py::test_a_task_whose_evidence_differs",
    ),
)
