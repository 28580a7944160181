"""Errors of the command line and the machine: AB801 to AB816, AB901 to AB906."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import CatalogueEntry, Example
from aigo_bridge.codes import Code

_RUN = "run task.yaml --model scripted/answers.jsonl "

ENTRIES = (
    CatalogueEntry(
        Code.WRONG_OPTION,
        "An option value is not valid",
        "The message shows the value and the expected form.",
        "Correct the value. `aigo-bridge COMMAND --help` describes all options.",
        Example(_RUN + "--cache sometimes"),
    ),
    CatalogueEntry(
        Code.OPTIONS_APART,
        "Options cannot be combined",
        "The options contradict each other, or one of them does not apply to this kind of file.",
        "Remove one of the options.",
        Example(_RUN + "--sample-id 3"),
    ),
    CatalogueEntry(
        Code.NOTHING_THERE,
        "A file or folder does not exist",
        "A path on the command line is wrong.",
        "Correct the path.",
        Example("validate taks.yaml"),
    ),
    CatalogueEntry(
        Code.ALREADY_THERE,
        "The output already exists",
        "Existing files are not overwritten without your permission.",
        "Choose another name, or add `--force` if the command has it.",
        Example("attest --new-key task.yaml"),
    ),
    CatalogueEntry(
        Code.UNKNOWN_CHOICE,
        "A name is unknown",
        "A shipped task, engine, sample, table, chart or kind with this name does not exist.",
        "Use one of the names in the message.",
        Example("schema taks"),
    ),
    CatalogueEntry(
        Code.WRONG_RULE,
        "A rule of `check` is not valid",
        "The form of the rule is not supported, its margin is missing, or it refers to a value that the result does not have.",
        "Write the rule in one of the forms in the message.",
        Example("check result.tasklog.json --rule 'Accuracy should be good'"),
    ),
    CatalogueEntry(
        Code.INCOMPARABLE_RESULTS,
        "Results cannot be compared",
        "A result is named twice, files are mixed with folders, or the results belong to different tasks.",
        "Name each result once, and only results of the same task.",
        Example("compare result.tasklog.json result.tasklog.json"),
    ),
    CatalogueEntry(
        Code.WRONG_QUERY,
        "An SQL query is not valid",
        "The query is not a single SELECT, or it uses an unknown column or table.",
        "Run `aigo-bridge sql --schema` to list tables and columns.",
        Example("sql 'SELEC 1' result.tasklog.json"),
    ),
    CatalogueEntry(
        Code.UNUSABLE_OUTPUT,
        "An output path cannot be written",
        "The path is a file instead of a folder, or you are not allowed to write there.",
        "Choose another output path.",
        Example(_RUN + "--out capitals.jsonl"),
    ),
    CatalogueEntry(
        Code.WRONG_ADDRESS,
        "An object storage address is not valid",
        "The address does not have the form SCHEME://BUCKET/KEY, contains a password, or the command needs a local path.",
        "Correct the address. Put credentials into environment variables, never into an address.",
        Example("validate s3://user:secret@bucket/task.yaml"),
    ),
    CatalogueEntry(
        Code.FAILED_STORAGE,
        "Object storage is unreachable or refuses access",
        "The bucket or object does not exist, you lack the permission, or the connection failed. Finished "
        "output is kept on this machine.",
        "Check the address and your permissions. The message shows the location of the files.",
        test="tests/end_to_end/test_object_storage.py::test_output_that_cannot_be_uploaded_is_kept_locally",
    ),
    CatalogueEntry(
        Code.UNKNOWN_BENCHMARK,
        "A benchmark with this name does not exist in the engine",
        "The name or file does not contain a task of the engine.",
        "Run `aigo-bridge list inspect` or `aigo-bridge list lighteval` to see the available benchmarks.",
        Example("run inspect:no_such_benchmark --model mockllm/model"),
    ),
    CatalogueEntry(
        Code.WRONG_BENCHMARK_OPTION,
        "A benchmark does not have this option",
        "Engine benchmarks accept the options of their engine, and their own parameters with `-T`.",
        "Correct the option as the message says.",
        Example("run inspect:inspect_evals/gsm8k --model mockllm/model --limit 1 -n 2"),
    ),
    CatalogueEntry(
        Code.UNFIT_BENCHMARK,
        "A benchmark cannot run correctly with these options",
        "With these rows, metrics or model, the result would not be comparable with the published benchmark.",
        "Change the option in the message.",
        test="tests/adapters/lighteval/benchmarks/test_faults.py::test_too_many_few_shot_examples_are_reported_with_numbers",
    ),
    CatalogueEntry(
        Code.UNDRAWABLE_CHART,
        "The results do not contain data for this chart",
        "Some charts need several results, repeated trials or judge scores.",
        "Choose another chart or other results.",
        test="tests/extras/report/tables/test_charts.py::test_chart_without_data_or_with_too_many_marks_is_rejected",
    ),
    CatalogueEntry(
        Code.MISSING_ARGUMENT,
        "A required option is missing",
        "The command needs more information.",
        "Add the option in the message.",
        Example("check result.tasklog.json"),
    ),
    CatalogueEntry(
        Code.MISSING_PACKAGE,
        "A required package is not installed",
        "Engines and large libraries are optional extras.",
        "Run the install command in the message.",
        test="tests/bridge/scoring/test_strings.py::test_missing_sacrebleu_is_reported_with_the_install_command",
    ),
    CatalogueEntry(
        Code.OLD_PACKAGE,
        "An engine version is not supported",
        "The installed version is too old or was not tested. Its types and files may differ.",
        "Run the install command in the message. `aigo-bridge doctor` shows all versions.",
        test="tests/end_to_end/test_missing_extras.py::test_an_outdated_engine_is_reported_with_the_command",
    ),
    CatalogueEntry(
        Code.NO_SANDBOX,
        "The local sandbox is not available",
        "The sandbox needs Linux and namespaces. The kernel or the container may forbid namespaces.",
        "Read docs/reference/sandbox.md for the required permissions and for other sandboxes.",
        test="tests/bridge/sandbox/test_jail.py::test_missing_namespace_permission_is_an_error_with_the_reason",
    ),
    CatalogueEntry(
        Code.PORT_IN_USE,
        "A port cannot be used",
        "Another program uses the port, or you are not allowed to use it.",
        "Choose another port, or use `--port 0` for a free one.",
        test="tests/extras/report/verbs/test_view.py::test_used_port_and_missing_folder_are_reported",
    ),
    CatalogueEntry(
        Code.WRONG_LIMIT,
        "An environment variable for a limit is not a number",
        "Limits of this machine can be raised with environment variables.",
        "Set the variable to a number, as in the message.",
        test="tests/extras/scale/storage/test_leases.py::test_lease_seconds_outside_the_limits_are_rejected",
    ),
    CatalogueEntry(
        Code.SYSTEM_ERROR,
        "The operating system refused a file operation",
        "For example, the disk is full, a folder is read-only, or too many files are open. The message ends "
        "with the system error.",
        "Correct the cause and run the command again. No partial files are left.",
        test="tests/end_to_end/test_wrong_use.py::test_an_unwritable_file_is_reported_by_name",
    ),
    CatalogueEntry(
        Code.UNCODED,
        "An error without a code",
        "An engine or a plug-in raised this error.",
        "Contact the author of the engine or plug-in with the message.",
        test="tests/bridge/catalogue/test_catalogue.py::test_error_from_third_party_code_has_no_code",
    ),
)
