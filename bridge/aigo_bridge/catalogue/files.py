"""Errors in files: AB101 to AB138."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import CatalogueEntry, Example, edited
from aigo_bridge.codes import Code

_MEAN = "- {type: mean, field: is_correct, name: Accuracy}"
_CONTENT = 'content: "What is the capital of {{ sample.country }}? Answer with its name only."'
_SCORERS = "  scorers:\n"
_PARAMETER = 'config_spec:\n  - {type: string, key: greeting, display_name: Greeting, default_value: "Hi"}\ndefinition:\n'

ENTRIES = (
    CatalogueEntry(
        Code.MISSING_FILE,
        "A referenced file does not exist",
        "An `!include`, a `$ref` or a path in a file points to a missing file. Paths are relative to the "
        "file that contains them.",
        "Correct the path, or create the file.",
        edited(_CONTENT, "content: !include prompts/question.md"),
    ),
    CatalogueEntry(
        Code.UNREADABLE_FILE,
        "A file cannot be read",
        "The path names a folder, a pipe or a device, the file is too large, or you are not allowed to read it.",
        "Name a regular file and check its permissions.",
        edited(_CONTENT, "content: !include ."),
    ),
    CatalogueEntry(
        Code.NOT_UTF8,
        "A file is not UTF-8 text",
        "All text files must be UTF-8. This file may be Latin-1 or UTF-16 text, an archive or a spreadsheet.",
        "Save the file as UTF-8. The hint shows a command that converts it.",
        test="tests/bridge/reading/test_loading.py::test_other_encodings_are_rejected_with_position",
    ),
    CatalogueEntry(
        Code.OUTSIDE_ROOT,
        "A path points outside the root folder",
        "A task may only read files of its project. Otherwise a task from someone else could send your files to a model.",
        "Move the file into the project. If you trust the task, widen the root with `--root DIR`.",
        edited(_CONTENT, "content: !include ../secret.txt"),
    ),
    CatalogueEntry(
        Code.PRIVATE_FILE,
        "A task reads a private file",
        "Hidden files, key files and git-ignored files often contain secrets, and a task could send them to a model.",
        "Move the text into another file, or allow this file with `--allow-file PATH`.",
        edited(_CONTENT, "content: !include .env"),
    ),
    CatalogueEntry(
        Code.NOT_YAML,
        "A file is not valid YAML",
        "Common causes: an unclosed bracket or quote, a tab used for indentation, or an unquoted text that contains `: `.",
        "Check the line in the message and the line above it.",
        edited(_MEAN, "- {type: mean, field: is_correct, name: Accuracy"),
    ),
    CatalogueEntry(
        Code.REPEATED_KEY,
        "A mapping contains the same key twice",
        "YAML would silently keep the last value, so one of the two values would be lost.",
        "Remove one of the two keys.",
        edited("display_name: Capitals\n", "display_name: Capitals\ndisplay_name: Capital cities\n"),
    ),
    CatalogueEntry(
        Code.UNKNOWN_TAG,
        "A YAML tag is not supported",
        "`!include` is the only tag of the AI GO format. Tags of other tools are rejected.",
        "Remove the tag. If the value is text that begins with `!`, put it in quotes.",
        edited("description: Does", "description: !text Does"),
    ),
    CatalogueEntry(
        Code.KEY_NOT_TEXT,
        "A mapping key is not text",
        "The key is a number, a mapping or a list. A common cause is a template without quotes.",
        "Put the key or the template in quotes.",
        edited(_CONTENT, "content: {{ sample.country }}"),
    ),
    CatalogueEntry(
        Code.WRONG_REFERENCE,
        "`!include` or `$ref` does not name a single file",
        "`!include` takes the path of one text file, and `$ref` the path of one YAML file. URLs are not supported.",
        "Write a path relative to this file, for example `!include prompts/question.md`.",
        edited("dataset: {key: capitals}", "dataset: {$ref: https://example.org/capitals.yaml}"),
    ),
    CatalogueEntry(
        Code.REFERENCE_CIRCLE,
        "Files refer to each other in a circle",
        "A file cannot include itself, directly or through other files. The same applies to tasks that start "
        "from the results of other tasks.",
        "Remove one of the references.",
        edited("dataset: {key: capitals}", "dataset: {$ref: task.yaml}"),
    ),
    CatalogueEntry(
        Code.SHADOWED_KEY,
        "A key next to a `$ref` is ignored",
        "The referenced file contains the same key, and its value is used.",
        "Remove the key from one of the two files.",
        Example(
            "validate other.yaml",
            files={
                "other.yaml": "$ref: task.yaml\ndisplay_name: Other capitals\n",
            },
        ),
    ),
    CatalogueEntry(
        Code.UNKNOWN_KIND,
        "The kind of a file is not recognized",
        "Kinds are recognized by their keys. For example, a task has `definition`, a run file has "
        "`evaluation`, and a dataset has `source`.",
        "Compare the keys with the task format. If a key looks misspelled, the hint suggests the correct name.",
        Example("validate notes.yaml", files={"notes.yaml": "about: capitals\nwritten: 2024\n"}),
    ),
    CatalogueEntry(
        Code.OTHER_KIND,
        "A file is of the wrong kind",
        "For example, a run file was given instead of a task, or a file that is only a part for use with `$ref`.",
        "Name a file of the expected kind.",
        Example("validate part.yaml", files={"part.yaml": "type: string_equals\nground_truth: Oslo\n"}),
    ),
    CatalogueEntry(
        Code.EMPTY_FILE,
        "A file is empty",
        "The file contains only whitespace and comments.",
        "Add content to the file, or name another file.",
        Example("validate empty.yaml", files={"empty.yaml": "# to be written\n"}),
    ),
    CatalogueEntry(
        Code.TOO_MUCH,
        "A file exceeds a size limit",
        "The file is nested too deeply, its aliases or includes make it too large, or it has too many problems to list.",
        "Fix the listed problems first, or split the file.",
        test="tests/bridge/jsonl_spec/test_task_files.py::test_only_the_first_of_many_problems_are_shown",
    ),
    CatalogueEntry(
        Code.UNKNOWN_KEY,
        "A key is not allowed in this place",
        "The key is misspelled, belongs to another part of the file, or is not part of the AI GO format. "
        "Unknown keys are never ignored, because they could change the metrics.",
        "Use the name that the hint suggests, or remove the key.",
        edited("ground_truth:", "ground_thruth:"),
    ),
    CatalogueEntry(
        Code.MISSING_KEY,
        "A required key is missing",
        "The key does not have a default value. The task format lists all required keys.",
        "Add the key.",
        edited("display_name: Capitals\n", ""),
    ),
    CatalogueEntry(
        Code.WRONG_TYPE,
        "A value has the wrong type",
        "Examples: text instead of a number, a mapping instead of a list, or `yes`, which YAML reads as true.",
        "Write a value of the expected type. Put numbers and dates that are meant as text in quotes.",
        edited("description: Does the model know capitals?", "description: 2024"),
    ),
    CatalogueEntry(
        Code.WRONG_CHOICE,
        "A value is not one of the allowed choices",
        "Solver types, scorer types, metric types, operators and modes have fixed names.",
        "Use one of the allowed names. The hint suggests the closest one.",
        edited("type: string_equals", "type: string_equal"),
    ),
    CatalogueEntry(
        Code.WRONG_VALUE,
        "A value is outside the allowed range",
        "For example, a number is too small or a text is too long. Keys may only contain letters, digits, `_` and `-`.",
        "Choose a value within the limits in the message.",
        edited("key: capitals\ndisplay", "key: the capitals!\ndisplay"),
    ),
    CatalogueEntry(
        Code.CONTRADICTION,
        "Keys contradict each other",
        "Each key is valid alone, but the combination is contradictory or incomplete.",
        "Keep one of the keys, or add the missing one.",
        edited("  dataset: {key: capitals}\n", ""),
    ),
    CatalogueEntry(
        Code.REPEATED_ENTRY,
        "Two list entries have the same key",
        "Keys name the entries in a result, so one entry would replace the other.",
        "Rename one of the keys.",
        edited(
            "definition:\n",
            _PARAMETER.replace("definition:\n", "")
            + "  - {type: string, key: greeting, display_name: Again}\ndefinition:\n",
        ),
    ),
    CatalogueEntry(
        Code.UNSET_VARIABLE,
        "An environment variable is not set",
        "The text `$NAME` is kept unchanged. This may be what you want, for example in a price.",
        "Set the variable. To keep the text without this warning, write `$$NAME`.",
        edited("display_name: Capitals", "display_name: $REGION"),
    ),
    CatalogueEntry(
        Code.OLD_FORM,
        "A file uses deprecated syntax",
        "aigo-bridge can read files of earlier AI GO releases, but the platform accepts only the current syntax.",
        "Run `aigo-bridge upgrade FILE` to rewrite the file in the current syntax.",
        edited("dataset: {key: capitals}", "dataset: {source: {id: capitals}}"),
    ),
    CatalogueEntry(
        Code.NOT_IN_DIALECT,
        "AI GO 3.17 does not accept this syntax",
        "With `--dialect aigo-3.17`, extensions and syntax of other releases are errors.",
        "Change the file as the hint suggests, or validate without `--dialect`.",
        edited(f"\n      metrics:\n        {_MEAN}", "", command="validate --dialect aigo-3.17 task.yaml"),
    ),
    CatalogueEntry(
        Code.UNKNOWN_ENTITY,
        "A key does not match any entry",
        "A run file refers to a task, model, dataset or generator by a key that does not exist.",
        "Correct the key, or add the file to the list in the run file.",
        edited("task_key: capitals", "task_key: capitols", file="run.yaml", command="validate run.yaml"),
    ),
    CatalogueEntry(
        Code.SEVERAL_DECLARATIONS,
        "Several files declare the same key",
        "The reference is ambiguous, because more than one file has this key.",
        "Rename or remove one of the files, or name the file instead of the key.",
        Example(
            "validate task.yaml",
            files={
                "one.yaml": "key: capitals\ndisplay_name: One\nsource: {type: local, file_path: capitals.jsonl}\n",
                "two.yaml": "key: capitals\ndisplay_name: Two\nsource: {type: local, file_path: capitals.jsonl}\n",
            },
        ),
    ),
    CatalogueEntry(
        Code.UNUSED_PARAMETER,
        "A task parameter is never used",
        "The definition contains no `<< config.… >>` with this name, so the value is not used.",
        "Use the parameter in the definition, or remove it.",
        edited("definition:\n", _PARAMETER),
    ),
    CatalogueEntry(
        Code.MISSING_PARAMETER,
        "The value of a task parameter is missing",
        "The parameter does not have a default, and you did not set it.",
        "Set it with `--config KEY=VALUE`, or under `task_config` in a run file.",
        edited(
            "definition:\n",
            "config_spec:\n  - {type: string, key: greeting, display_name: Greeting}\ndefinition:\n",
            command="explain task.yaml",
        ),
    ),
    CatalogueEntry(
        Code.UNKNOWN_PARAMETER,
        "A task does not have this parameter",
        "The parameters of a task are declared in `config_spec`.",
        "Correct the name in `--config` or `task_config`.",
        Example("explain task.yaml --config contry=Norway"),
    ),
    CatalogueEntry(
        Code.WRONG_PARAMETER,
        "A parameter value is not valid",
        "The value has the wrong type, or it violates the limits or choices in `config_spec`.",
        "Set a value that `config_spec` allows.",
        edited(
            "definition:\n",
            "config_spec:\n  - {type: int, key: shots, display_name: Shots, default_value: 0}\ndefinition:\n",
            command="explain task.yaml --config shots=many",
        ),
    ),
    CatalogueEntry(
        Code.WRONG_DECLARATION,
        "A parameter declaration contradicts itself",
        "The default is not one of the allowed values, or the limits exclude every value.",
        "Correct the limits, the choices or the default.",
        edited(
            "definition:\n",
            "config_spec:\n  - {type: int, key: shots, display_name: Shots, default_value: 9, max: 5}\ndefinition:\n",
        ),
    ),
    CatalogueEntry(
        Code.WRONG_SETTING,
        "Project settings are not valid",
        "`aigo-bridge.toml`, or `[tool.aigo-bridge]` in `pyproject.toml`, is not valid TOML or contains unknown settings.",
        "Correct the line. Settings have the same names as command-line options.",
        Example("validate task.yaml", files={"aigo-bridge.toml": "[validate]\nstrikt = true\n"}),
    ),
    CatalogueEntry(
        Code.PATH_FOR_TEXT,
        "A text contains only a file path",
        "The path itself would be sent to the model or executed as code, not the content of the file.",
        "Write `!include PATH` to insert the text of the file.",
        edited(_CONTENT, "content: prompts/question.md"),
    ),
    CatalogueEntry(
        Code.WRONG_RECORD,
        "A task record in a JSONL file is not valid",
        "Each line of the file must be one task record. The message ends with the rule that the record breaks.",
        "Correct the line. `aigo-bridge schema jsonl` prints the schema of the records.",
        Example(
            "validate records.jsonl",
            files={"records.jsonl": '{"id": "a", "input": "2 + 2?", "scorer": "exactly"}\n'},
        ),
    ),
    CatalogueEntry(
        Code.DROPPED_FORM,
        "A file uses syntax that is no longer supported",
        "The file was written for an early AI GO release and contains a setting without an equivalent today.",
        "Rewrite this part as the message suggests.",
        edited("definition:\n", "evaluated_entity_type: prompt\ndefinition:\n"),
    ),
    CatalogueEntry(
        Code.REFUSED_VARIABLE,
        "A task may not read this environment variable",
        "A task could send the value to a model. Variables with secrets are always refused; other variables "
        "need your permission.",
        "Allow the variable with `--env NAME`. Put API keys under `secrets` of a model.",
        edited("description: Does the model know capitals?", "description: $HOME"),
    ),
)
