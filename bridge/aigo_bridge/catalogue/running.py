"""Errors during a run: AB601 to AB620."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import CatalogueEntry, Example, edited
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
    CatalogueEntry(
        Code.FAILED_ENGINE,
        "The engine failed",
        "The engine stopped with its own error, outside any sample. Finished samples are in its log.",
        "Correct the cause in the message, then continue with `run --resume`.",
        test="tests/end_to_end/test_full_disk.py::test_an_error_before_the_inspect_log_is_an_engine_error",
    ),
    CatalogueEntry(
        Code.NEVER_BEGUN,
        "A task was not started",
        "The run was interrupted, or another task whose result is needed did not complete.",
        "Run the remaining tasks with `run --resume`.",
        test="tests/end_to_end/test_rows_of_results.py::test_task_with_an_incomplete_sibling_is_not_run",
    ),
    CatalogueEntry(
        Code.CHANGED_SINCE,
        "The task, dataset or model changed since the run started",
        "Resuming would mix samples of two different tasks in one metric.",
        "Start a new run.",
        test="tests/adapters/inspect/models/test_provider.py::test_a_custom_base_url_is_another_version_of_the_model",
    ),
    CatalogueEntry(
        Code.PLACE_IN_USE,
        "The output folder is in use",
        "Another process is writing to this folder, or it contains the files of another run.",
        "Wait until the other run ends, or choose another `--out`.",
        test="tests/extras/scale/storage/test_leases.py::test_second_lease_on_a_folder_is_rejected",
    ),
    CatalogueEntry(
        Code.FAILED_SNIPPET,
        "A snippet failed",
        "The Python code of the task raised an exception, or its process ended. The message shows the line of the snippet.",
        "Correct the snippet. Then score the stored answers again with `aigo-bridge score`, without calling the model.",
        edited(_STRING, _SNIPPET + "return {'right': float(sample['size'])}", command=_RUN),
    ),
    CatalogueEntry(
        Code.STOPPED_SNIPPET,
        "A snippet was stopped",
        "The Python code of the task took too long or started too many processes.",
        "Make the code faster, or raise its time limit in the task.",
        test="tests/bridge/snippets/test_host_stopping.py::test_closing_the_host_stops_calls_in_progress",
    ),
    CatalogueEntry(
        Code.UNCONFINED_SNIPPETS,
        "Snippets cannot be confined on this machine",
        "The kernel or the container forbids the required isolation, so no snippet is executed.",
        "Read docs/reference/snippets.md for the required permissions. For your own tasks, you can use `--snippets in-process`.",
        test="tests/security/test_snippet_jail.py::test_variables_added_by_a_shell_are_not_secrets",
    ),
    CatalogueEntry(
        Code.WRONG_SNIPPET_RESULT,
        "A snippet returned a value of the wrong type",
        "`compute_scores` must return one mapping of scores per sample, `solve` a trace, and `postprocess` a solver output.",
        "Return a value of the expected type.",
        edited(_STRING, _SNIPPET + "return 'right'", command=_RUN),
    ),
    CatalogueEntry(
        Code.WRONG_INPUT,
        "An input template did not produce valid messages",
        "The template must produce a list of messages or JSON text with one. Quotes inside a value often break the JSON.",
        "Insert values as `{{ sample.x | tojson }}`, without quotes around them.",
        test="tests/bridge/solving/test_solvers_single.py::test_unreadable_json_of_a_template_fails_the_sample",
    ),
    CatalogueEntry(
        Code.UNREADABLE_VERDICT,
        "A judge reply could not be parsed",
        "The judge did not return the requested JSON, and a second request with the error did not help.",
        "Check the last reply in the message. Use a stronger judge model or a shorter prompt.",
        Example(
            _JUDGED,
            right=_STRING,
            wrong="- type: model_as_a_judge_classifier\n"
            + _JUDGE
            + "      correct_labels: [good]\n      incorrect_labels: [bad]",
            files={"judge.jsonl": '{"default": true, "reply": "Quite good!"}\n'},
        ),
    ),
    CatalogueEntry(
        Code.VERDICT_OUT_OF_RANGE,
        "A judge reply is out of range",
        "The score is outside the scale, or the label is not one of the allowed labels. The value is not "
        "clamped, because that would invent a score.",
        "Describe the scale or the labels more clearly in the prompt.",
        Example(
            _JUDGED,
            right=_STRING,
            wrong="- type: model_as_a_judge_scorer\n" + _JUDGE + "      score_min: 1\n      score_max: 5",
            files={
                "judge.jsonl": '{"match": {"contains": "right"}, "reply": "{\\"reasoning\\": \\"-\\", \\"score\\": 9, \\"confidence\\": 1}"}\n'
            },
        ),
    ),
    CatalogueEntry(
        Code.MISSING_VALUE,
        "The expected answer of a sample is missing",
        "A cell is empty, or does not contain a single answer. The sample counts as failed, because unscored is not zero.",
        "Fill in the cell, or set a default in the template.",
        Example(
            _RUN,
            files={
                "capitals.jsonl": '{"country": "Norway", "capital": "Oslo"}\n{"country": "Peru", "capital": null}\n'
            },
        ),
    ),
    CatalogueEntry(
        Code.FAILED_SANDBOX,
        "The sandbox failed",
        "Code written by a model runs in a sandbox. The sandbox did not run the tests, or the tests cannot judge the code.",
        "Read docs/reference/sandbox.md for the requirements of the sandbox.",
        test="tests/adapters/inspect/sandbox/test_environment.py::test_without_a_sandbox_the_sample_is_not_scored",
    ),
    CatalogueEntry(
        Code.MISSING_LIKELIHOODS,
        "The model returned no likelihoods",
        "Only some models return the likelihood of a given text. Chat endpoints do not.",
        "Use a model with likelihoods, for example `--engine lighteval --model transformers/PATH`.",
        test="tests/bridge/scoring/test_likelihoods.py::test_likelihoods_of_other_texts_are_ignored",
    ),
    CatalogueEntry(
        Code.EXCEEDED_LIMIT,
        "A sample reached a limit",
        "A loop reached its maximum number of iterations, or the sample reached its token limit.",
        "Raise the limit. If a loop may end this way, set `on_max_iterations: continue`.",
        edited(
            _SOLVER,
            "    type: multi_turn_solver\n    message_builders:\n      - type: loop\n        max_iterations: 2\n"
            "        message_builders:\n"
            '          - {type: chat_message, role: user, content: "The capital of {{ sample.country }}?"}\n'
            "          - {type: generate}\n",
            command=_RUN,
        ),
    ),
    CatalogueEntry(
        Code.WRONG_SAMPLE_DATA,
        "The data of a sample are not valid for a scorer or solver",
        "For example, the choices are not a list, the ground truth is not one of the choices, or the tests are not texts.",
        "Correct the row, or the template that reads it.",
        edited(
            _STRING,
            '- type: string_equals_mcqa\n      ground_truth_choice: "{{ sample.capital }}"\n      choices: "{{ sample.country }}"',
            command=_RUN,
        ),
    ),
    CatalogueEntry(
        Code.WRONG_TRACE,
        "A column or output does not contain a valid trace",
        "A solver or scorer needs a recorded trace, and the value is not a trace or does not contain an answer.",
        "Check the content of the column. `import` writes traces in the required form.",
        edited(
            _SOLVER, "    type: pass_through_solver\n    trace_column: country\n", command="run task.yaml"
        ),
    ),
    CatalogueEntry(
        Code.TOO_MANY_FAILURES,
        "Too many samples failed",
        "The run stopped at the limit set by `--fail-on-error`. Finished samples are kept.",
        "Check the first errors, then continue with `run --resume`.",
        test="tests/end_to_end/test_stopping.py::test_exceeded_error_tolerance_stops_the_run",
    ),
    CatalogueEntry(
        Code.FAILED_SAMPLE,
        "A sample failed with another error",
        "The error comes from an engine or a library. The evidence contains its type.",
        "Read the message of the library. The engine log contains the traceback.",
        Example(
            "run task.yaml --model scripted/other.jsonl",
            files={"other.jsonl": '{"match": {"contains": "x"}, "reply": "y"}\n'},
        ),
    ),
    CatalogueEntry(
        Code.OUTCOME_NOT_SHOWN,
        "The summary of a run cannot be shown",
        "The summary failed or differs from the written evidence. Evidence and engine log are complete.",
        "Use the evidence, and report this error in aigo-bridge.",
        test="tests/end_to_end/test_outcome_is_evidence.py::test_different_evidence_of_a_task_is_reported",
    ),
)
