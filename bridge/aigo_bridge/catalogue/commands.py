"""What is typed and cannot be meant, and this machine: AB801 to AB816, AB901 to AB906."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import Entry, Example
from aigo_bridge.codes import Code

_RUN = "run task.yaml --model scripted/answers.jsonl "

ENTRIES = (
    Entry(
        Code.WRONG_OPTION,
        "An option's value is not one that it takes",
        "The message has what was found and what is expected.",
        "Correct it; `aigo-bridge VERB --help` describes all options.",
        Example(_RUN + "--cache sometimes"),
    ),
    Entry(
        Code.OPTIONS_APART,
        "Options do not go together, or not with this",
        "One of them has no meaning beside the other, or for this kind of file.",
        "Leave one of them out.",
        Example(_RUN + "--sample-id 3"),
    ),
    Entry(
        Code.NOTHING_THERE,
        "There is no such file or folder",
        "A path on the command line leads nowhere.",
        "Correct the path.",
        Example("validate taks.yaml"),
    ),
    Entry(
        Code.ALREADY_THERE,
        "Something is there already",
        "Nothing is written over without being told so.",
        "Choose another name, or say `--force` where the command has it.",
        Example("attest --new-key task.yaml"),
    ),
    Entry(
        Code.UNKNOWN_CHOICE,
        "There is nothing by that name",
        "No shipped task, engine, sample, table, chart or kind is called so.",
        "Take one of the names in the message.",
        Example("schema taks"),
    ),
    Entry(
        Code.WRONG_RULE,
        "A rule of `check` cannot be decided",
        "Its words are not those of a rule, it has no margin, or it reads what the result does not have.",
        "Write it like one of the forms in the message.",
        Example("check result.tasklog.json --rule 'Accuracy should be good'"),
    ),
    Entry(
        Code.INCOMPARABLE_RESULTS,
        "Results cannot be compared like this",
        "One is named twice, files are mixed with folders, or they are of different tasks.",
        "Name results of the same task, each once.",
        Example("compare result.tasklog.json result.tasklog.json"),
    ),
    Entry(
        Code.WRONG_QUERY,
        "A query cannot be carried out",
        "It is no single SELECT, or names a column or table that is not there.",
        "`aigo-bridge sql --schema` lists tables and columns.",
        Example("sql 'SELEC 1' result.tasklog.json"),
    ),
    Entry(
        Code.UNUSABLE_OUTPUT,
        "A place cannot be written to",
        "It is a file where a folder is needed, or this user may not write there.",
        "Name another place.",
        Example(_RUN + "--out capitals.jsonl"),
    ),
    Entry(
        Code.WRONG_ADDRESS,
        "An address in object storage cannot be used here",
        "It is not of the form SCHEME://BUCKET/KEY, has a password in it, or a path of this machine is needed.",
        "Correct it; keys stand in the environment, never in an address.",
        Example("validate s3://user:secret@bucket/task.yaml"),
    ),
    Entry(
        Code.FAILED_STORAGE,
        "An object storage refuses or cannot be reached",
        "There is no such bucket or object, no right to it, or no connection. Nothing is lost: what was made is kept.",
        "See to name and rights; the message says where the files are.",
        test="tests/end_to_end/test_object_storage.py::test_what_cannot_be_put_at_the_end_is_kept_here",
    ),
    Entry(
        Code.UNKNOWN_BENCHMARK,
        "An engine has no such benchmark",
        "The name or file holds no task of the engine.",
        "`aigo-bridge list inspect` and `list lighteval` show what there is.",
        Example("run inspect:no_such_benchmark --model mockllm/model"),
    ),
    Entry(
        Code.WRONG_BENCHMARK_OPTION,
        "An option is none of the benchmark's",
        "Benchmarks of an engine take that engine's options, and parameters of their own with `-T`.",
        "Correct it as the message says.",
        Example("run inspect:inspect_evals/gsm8k --model mockllm/model --limit 1 -n 2"),
    ),
    Entry(
        Code.UNFIT_BENCHMARK,
        "A benchmark cannot be run right as asked",
        "Its rows, metrics or model would make a number that is not the benchmark's.",
        "Change what the message names.",
        test="tests/adapters/lighteval/benchmarks/test_faults.py::test_more_examples_than_the_split_has_are_said_in_numbers",
    ),
    Entry(
        Code.UNDRAWABLE_CHART,
        "The results have nothing for this chart",
        "Charts need certain numbers: several results, repeated trials, scores of a judge.",
        "Take another chart, or other results.",
        test="tests/extras/report/tables/test_charts.py::test_nothing_to_draw_and_too_much_are_told",
    ),
    Entry(
        Code.MISSING_ARGUMENT,
        "Something has to be said in addition",
        "The command cannot be carried out with what was given.",
        "Add what the message names.",
        Example("check result.tasklog.json"),
    ),
    Entry(
        Code.MISSING_PACKAGE,
        "A package that this needs is not installed",
        "Engines and heavy libraries are extras, so that the rest is small.",
        "Run the command that the message names.",
        test="tests/bridge/scoring/test_strings.py::test_without_sacrebleu_the_plan_is_refused_in_one_line",
    ),
    Entry(
        Code.OLD_PACKAGE,
        "An engine is too old, or of a release that is not known to work",
        "Its types and files differ from those that the adapter was tested with.",
        "Run the command that the message names; `aigo-bridge doctor` shows all versions.",
        test="tests/end_to_end/test_missing_extras.py::test_an_engine_that_is_too_old_is_told_with_the_command",
    ),
    Entry(
        Code.NO_SANDBOX,
        "The local sandbox cannot be had on this machine",
        "It needs Linux, and namespaces that the kernel or the container may forbid.",
        "docs/sandbox.md says what to allow, and which other sandboxes there are.",
        test="tests/bridge/sandbox/test_jail.py::test_where_namespaces_are_not_allowed_it_is_refused_with_the_reason",
    ),
    Entry(
        Code.PORT_IN_USE,
        "A port cannot be used",
        "Another program has it, or this user may not.",
        "Take another, or `--port 0`.",
        test="tests/extras/report/verbs/test_view.py::test_a_port_that_is_taken_and_a_folder_that_is_none_are_told",
    ),
    Entry(
        Code.WRONG_LIMIT,
        "A variable that sets a limit holds no number",
        "Limits of this machine can be raised by variables of the environment.",
        "Set it to a number as the message says.",
        test="tests/extras/scale/storage/test_leases.py::test_seconds_are_bounded",
    ),
    Entry(
        Code.SYSTEM_ERROR,
        "The system refuses a file operation",
        "The disk is full, a folder cannot be written to, too many files are open.",
        "The words are the system's; nothing is left half-written.",
        test="tests/end_to_end/test_wrong_use.py::test_a_file_that_cannot_be_written_is_told_by_its_own_name",
    ),
    Entry(
        Code.UNCODED,
        "An error that carries no code of its own",
        "It was raised by an engine or program that was added to aigo-bridge.",
        "Its message is all that is known; ask who made the addition.",
        test="tests/bridge/catalogue/test_catalogue.py::test_an_error_of_others_is_raised_and_shown_without_one",
    ),
)
