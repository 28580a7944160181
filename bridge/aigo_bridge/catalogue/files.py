"""Files that cannot be read, or are not what they are named for: AB101 to AB137."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import Entry, Example, edited
from aigo_bridge.codes import Code

_MEAN = "- {type: mean, field: is_correct, name: Accuracy}"
_CONTENT = 'content: "What is the capital of {{ sample.country }}? Answer with its name only."'
_SCORERS = "  scorers:\n"
_PARAMETER = 'config_spec:\n  - {type: string, key: greeting, display_name: Greeting, default_value: "Hi"}\ndefinition:\n'

ENTRIES = (
    Entry(
        Code.MISSING_FILE,
        "A file that another one names is not there",
        "An `!include`, a `$ref` or a path in a file leads nowhere. Paths are relative to the file that has them.",
        "Correct the path, or put the file there.",
        edited(_CONTENT, "content: !include prompts/question.md"),
    ),
    Entry(
        Code.UNREADABLE_FILE,
        "A file is there and cannot be read",
        "It is a folder, a pipe or a device, it is too large, or this user may not read it.",
        "Name a regular file, and see to its permissions.",
        edited(_CONTENT, "content: !include ."),
    ),
    Entry(
        Code.NOT_UTF8,
        "A file is not UTF-8 text",
        "All text files are UTF-8. What looks like text in an editor may be Latin-1 or UTF-16, an archive or a table.",
        "Save the file as UTF-8; the hint has a command that converts it.",
        test="tests/bridge/reading/test_loading.py::test_other_encodings_are_refused_with_the_place",
    ),
    Entry(
        Code.OUTSIDE_ROOT,
        "A path leads out of the root folder",
        "A task reads files of its own project only, so that a task from somebody else cannot send yours to a model.",
        "Move the file into the project, or widen the root with `--root DIR` where the task is yours.",
        edited(_CONTENT, "content: !include ../secret.txt"),
    ),
    Entry(
        Code.PRIVATE_FILE,
        "A task names a private file",
        "Hidden files, key files and files that git ignores often hold secrets, and a task would send them to a model.",
        "Move the text into another file, or name the file: `--allow-file PATH`.",
        edited(_CONTENT, "content: !include .env"),
    ),
    Entry(
        Code.NOT_YAML,
        "The file is not YAML",
        "A bracket or a quote is not closed, a tab indents, or a text with `: ` in it has no quotes.",
        "Look at the line, and at the one above it.",
        edited(_MEAN, "- {type: mean, field: is_correct, name: Accuracy"),
    ),
    Entry(
        Code.REPEATED_KEY,
        "A key is given twice in one mapping",
        "YAML lets the last one win without a word, so one of the two values would be lost.",
        "Remove one of them.",
        edited("display_name: Capitals\n", "display_name: Capitals\ndisplay_name: Capital cities\n"),
    ),
    Entry(
        Code.UNKNOWN_TAG,
        "A YAML tag means nothing here",
        "AI GO knows `!include` only; tags of other tools are not carried out.",
        "Remove the tag, or put a value that begins with `!` in quotes.",
        edited("description: Does", "description: !text Does"),
    ),
    Entry(
        Code.KEY_NOT_TEXT,
        "A key is not text",
        "A mapping or list stands where a key belongs, often a template without quotes, or a number is used as a key.",
        "Put the key in quotes.",
        edited(_CONTENT, "content: {{ sample.country }}"),
    ),
    Entry(
        Code.WRONG_REFERENCE,
        "`!include` or `$ref` does not name one file",
        "`!include` takes the path of one text file and `$ref` that of one YAML file; addresses are not followed.",
        "Write a path relative to this file.",
        edited("dataset: {key: capitals}", "dataset: {$ref: https://example.org/capitals.yaml}"),
    ),
    Entry(
        Code.REFERENCE_CIRCLE,
        "Files refer to each other in a circle",
        "A file that is part of itself has no end. Results that runs start from can be such a circle, too.",
        "Take one of the references out.",
        edited("dataset: {key: capitals}", "dataset: {$ref: task.yaml}"),
    ),
    Entry(
        Code.SHADOWED_KEY,
        "A key stands beside a `$ref` whose file has it too",
        "The value of the file that is referred to counts; the one beside the reference has no effect.",
        "Remove one of the two.",
        Example(
            "validate other.yaml",
            files={
                "other.yaml": "$ref: task.yaml\ndisplay_name: Other capitals\n",
            },
        ),
    ),
    Entry(
        Code.UNKNOWN_KIND,
        "What kind of file this is cannot be told",
        "Kinds are recognised by their keys: a task has `definition`, a run file `evaluation`, a data set `source`.",
        "Compare its keys with those in the task format; a misspelt one is named in the hint.",
        Example("validate notes.yaml", files={"notes.yaml": "about: capitals\nwritten: 2024\n"}),
    ),
    Entry(
        Code.OTHER_KIND,
        "The file is of another kind than is needed here",
        "For instance a run file where a task belongs, or a part that another file refers to.",
        "Name the file that is meant.",
        Example("validate part.yaml", files={"part.yaml": "type: string_equals\nground_truth: Oslo\n"}),
    ),
    Entry(
        Code.EMPTY_FILE,
        "The file is empty",
        "There is nothing in it but white space and comments.",
        "Write it, or name another.",
        Example("validate empty.yaml", files={"empty.yaml": "# to be written\n"}),
    ),
    Entry(
        Code.TOO_MUCH,
        "The file holds more than is looked at",
        "It is nested too deeply, aliases or includes make it too large, or it has more problems than are listed.",
        "Mend what is listed first, or take the file apart.",
        test="tests/bridge/jsonl_spec/test_task_files.py::test_of_very_many_problems_the_first_are_shown",
    ),
    Entry(
        Code.UNKNOWN_KEY,
        "A key is not known at this place",
        "It is misspelt, belongs elsewhere, or is not part of AI GO. Nothing is ignored: it might change the numbers.",
        "Take the word that the hint offers, or remove the key.",
        edited("ground_truth:", "ground_thruth:"),
    ),
    Entry(
        Code.MISSING_KEY,
        "A key that must be there is missing",
        "The task format says which keys have no default.",
        "Write the key.",
        edited("display_name: Capitals\n", ""),
    ),
    Entry(
        Code.WRONG_TYPE,
        "A value is of another type than expected",
        "Text where a number belongs, a mapping where a list belongs, `yes` that YAML reads as true.",
        "Write what is expected; put numbers and dates that are meant as text in quotes.",
        edited("description: Does the model know capitals?", "description: 2024"),
    ),
    Entry(
        Code.WRONG_CHOICE,
        "A value is none of those that can be chosen",
        "Types of solvers, scorers and metrics, operators and modes have fixed names.",
        "Take one of the names; the hint has the nearest.",
        edited("type: string_equals", "type: string_equal"),
    ),
    Entry(
        Code.WRONG_VALUE,
        "A value is outside of what is allowed",
        "A number is too small, a text empty or too long, a key has other signs than letters, digits, `_` and `-`.",
        "Choose a value within the limits that the message names.",
        edited("key: capitals\ndisplay", "key: the capitals!\ndisplay"),
    ),
    Entry(
        Code.CONTRADICTION,
        "Keys do not go together",
        "Each is right by itself, and together they say two things, or half of one.",
        "Keep the one that is meant.",
        edited("  dataset: {key: capitals}\n", ""),
    ),
    Entry(
        Code.REPEATED_ENTRY,
        "Two entries of a list have the same key",
        "Results are named by these keys, so one would replace the other.",
        "Give one of them another key.",
        edited(
            "definition:\n",
            _PARAMETER.replace("definition:\n", "")
            + "  - {type: string, key: greeting, display_name: Again}\ndefinition:\n",
        ),
    ),
    Entry(
        Code.UNSET_VARIABLE,
        "An environment variable is not set",
        "The text `$NAME` stays as it is. That may be meant: a price, for instance.",
        "Set the variable, or write `$$NAME` for the text itself.",
        edited("display_name: Capitals", "display_name: $REGION"),
    ),
    Entry(
        Code.OLD_FORM,
        "An old spelling was understood",
        "Files of earlier releases of AI GO are read, and the platform takes the current form only.",
        "`aigo-bridge upgrade FILE` writes the file in the current form.",
        edited("dataset: {key: capitals}", "dataset: {source: {id: capitals}}"),
    ),
    Entry(
        Code.NOT_IN_DIALECT,
        "The release 3.17 of AI GO does not take this",
        "With `--dialect aigo-3.17`, extensions and forms that are newer or older are refused.",
        "Write what the hint says, or validate without the option.",
        edited(f"\n      metrics:\n        {_MEAN}", "", command="validate --dialect aigo-3.17 task.yaml"),
    ),
    Entry(
        Code.UNKNOWN_ENTITY,
        "A key names nothing that is there",
        "A run file refers to a task, model, data set or generator by a key that none of its entries has.",
        "Correct the key, or add the file to the list.",
        edited("task_key: capitals", "task_key: capitols", file="run.yaml", command="validate run.yaml"),
    ),
    Entry(
        Code.SEVERAL_DECLARATIONS,
        "Several files declare the same key",
        "Which of them is meant cannot be told.",
        "Rename or remove one, or name the file itself.",
        Example(
            "validate task.yaml",
            files={
                "one.yaml": "key: capitals\ndisplay_name: One\nsource: {type: local, file_path: capitals.jsonl}\n",
                "two.yaml": "key: capitals\ndisplay_name: Two\nsource: {type: local, file_path: capitals.jsonl}\n",
            },
        ),
    ),
    Entry(
        Code.UNUSED_PARAMETER,
        "A parameter is never used",
        "No `<< config.… >>` in the definition names it, so its value changes nothing.",
        "Use it, or remove it.",
        edited("definition:\n", _PARAMETER),
    ),
    Entry(
        Code.MISSING_PARAMETER,
        "A parameter has no value",
        "It has no default, and none was given.",
        "Give it with `--config KEY=VALUE`, or under `task_config` in a run file.",
        edited(
            "definition:\n",
            "config_spec:\n  - {type: string, key: greeting, display_name: Greeting}\ndefinition:\n",
            command="explain task.yaml",
        ),
    ),
    Entry(
        Code.UNKNOWN_PARAMETER,
        "A value is given for a parameter that does not exist",
        "The task declares its parameters in `config_spec`.",
        "Correct the name.",
        Example("explain task.yaml --config contry=Norway"),
    ),
    Entry(
        Code.WRONG_PARAMETER,
        "A value does not fit its parameter",
        "It is of another type, or outside of the limits or choices that `config_spec` declares.",
        "Give a value that fits.",
        edited(
            "definition:\n",
            "config_spec:\n  - {type: int, key: shots, display_name: Shots, default_value: 0}\ndefinition:\n",
            command="explain task.yaml --config shots=many",
        ),
    ),
    Entry(
        Code.WRONG_DECLARATION,
        "A parameter's declaration contradicts itself",
        "Its default is none of its allowed values, or no value fits between its limits.",
        "Mend the limits, the choices or the default.",
        edited(
            "definition:\n",
            "config_spec:\n  - {type: int, key: shots, display_name: Shots, default_value: 9, max: 5}\ndefinition:\n",
        ),
    ),
    Entry(
        Code.WRONG_SETTING,
        "A project's settings cannot be used",
        "`aigo-bridge.toml`, or `[tool.aigo-bridge]` in `pyproject.toml`, is not TOML or has settings that do not exist.",
        "Mend the line; settings are named as the options of the verbs.",
        Example("validate task.yaml", files={"aigo-bridge.toml": "[validate]\nstrikt = true\n"}),
    ),
    Entry(
        Code.PATH_FOR_TEXT,
        "A path stands where a text is expected",
        "The path itself would be sent to the model, or run as code.",
        "Write `!include PATH` to take the text of that file.",
        edited(_CONTENT, "content: prompts/question.md"),
    ),
    Entry(
        Code.WRONG_RECORD,
        "A task record in a JSONL file is not valid",
        "Every line of such a file is one task; the message ends with the rule that it breaks.",
        "Mend the line; `aigo-bridge schema jsonl` describes the records.",
        Example(
            "validate records.jsonl",
            files={"records.jsonl": '{"id": "a", "input": "2 + 2?", "scorer": "exactly"}\n'},
        ),
    ),
    Entry(
        Code.DROPPED_FORM,
        "An old form has no meaning any more",
        "A file of an early release says something that today's AI GO cannot say.",
        "Write it anew as the message says.",
        edited("definition:\n", "evaluated_entity_type: prompt\ndefinition:\n"),
    ),
    Entry(
        Code.REFUSED_VARIABLE,
        "An environment variable is not put in at this place",
        "A task could send it to a model. Variables that hold secrets never are, others only where you allow them.",
        "Allow it with `--env NAME` where that is meant; keys belong into a model's `secrets`.",
        edited("description: Does the model know capitals?", "description: $HOME"),
    ),
)
