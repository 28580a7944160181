"""Rows that cannot be read or do not fit: AB301 to AB323."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import Entry, Example
from aigo_bridge.codes import Code

_EXPLAIN = "explain task.yaml --dataset capitals="
_ENTITY = "key: capitals\ndisplay_name: Capitals\nsource: "
_HUB = "key: capitals\ndisplay_name: Capitals\nsource: {type: huggingface, path: "


def _source(text: str) -> dict[str, str]:
    return {"entity.yaml": f"{_ENTITY}{text}\n"}


def _generated(synthesizers: str) -> dict[str, str]:
    return {
        "entity.yaml": "key: capitals\ndisplay_name: Capitals\ngenerator_specification: "
        "{dataset_generator_key: maker, num_samples: 2, dataset_generator_config: {}}\n",
        "maker.yaml": "key: maker\ndisplay_name: Maker\ndescription: Makes rows\n"
        f"definition:\n  dataset: {{type: inline_samples, samples: [{{text: a}}]}}\n  synthesizers:\n    - {synthesizers}\n",
    }


ENTRIES = (
    Entry(
        Code.UNKNOWN_DATA_FORMAT,
        "The kind of a data file is not known",
        "Rows are read from CSV, JSON, JSONL and Parquet, and from folders of text files; the name's end tells which.",
        "Rename or convert the file.",
        Example(_EXPLAIN + "rows.txt", files={"rows.txt": "Norway,Oslo\n"}),
    ),
    Entry(
        Code.ROWS_NOT_JSON,
        "A line of the rows is not JSON",
        "In JSONL every line is one whole object; single quotes, a comma at the end and NaN are not JSON.",
        "Mend the line.",
        Example(_EXPLAIN + "rows.jsonl", files={"rows.jsonl": "{'country': 'Norway'}\n"}),
    ),
    Entry(
        Code.ROW_SHAPE,
        "A row has another shape than its table",
        "It is no object, or has more cells than the header: often a comma inside of a cell without quotes.",
        "Write one object with a key for each column, or put the cell in quotes.",
        Example(
            _EXPLAIN + "rows.csv", files={"rows.csv": "country,capital\nUnited States,Washington, D.C.\n"}
        ),
    ),
    Entry(
        Code.NO_ROWS,
        "There are no rows",
        "The file is empty, or a filter leaves nothing. A result of no samples would be no result.",
        "Look at the file and at the filters of the task.",
        Example(_EXPLAIN + "rows.csv", files={"rows.csv": "country,capital\n"}),
    ),
    Entry(
        Code.DAMAGED_TABLE,
        "A Parquet file is damaged, or none",
        "It was cut off while it was copied, or is something else by that name.",
        "Fetch it anew.",
        Example(_EXPLAIN + "rows.parquet", files={"rows.parquet": "country,capital\n"}),
    ),
    Entry(
        Code.WRONG_HEADER,
        "The header of a table cannot name its columns",
        "The file is empty, a name occurs twice, or the cells are separated by something else than commas.",
        "Give every column a name of its own in the first line.",
        Example(_EXPLAIN + "rows.csv", files={"rows.csv": "country,country\nNorway,Oslo\n"}),
    ),
    Entry(
        Code.DOUBTFUL_ROWS,
        "Rows were read, and something about them is odd",
        "Cells are missing at the end of a line, ids of data sets side by side differ, front matter is no YAML.",
        "See whether that is meant.",
        Example(
            "explain task.yaml --dataset capitals=rows.csv",
            files={"rows.csv": "country,capital,note\nNorway,Oslo,x\nPeru,Lima\n"},
        ),
    ),
    Entry(
        Code.TOO_MANY_ROWS,
        "The rows take more than this machine should give them",
        "A small file can unpack to many gigabytes, so there are limits before that happens.",
        "Select fewer rows with `--num-samples`, or raise the limit that the hint names where the file is yours.",
        test="tests/bridge/datasets/test_rows.py::test_a_small_file_that_stands_for_gigabytes_is_refused",
    ),
    Entry(
        Code.NETWORK_CLOSED,
        "Something would have to be fetched",
        "Without `--network` nothing is: a command that plans or validates should not need one.",
        "Add `--network`, or name a copy of the rows with `--dataset KEY=FILE`.",
        Example(_EXPLAIN + "entity.yaml", files=_source("{type: url, url: 'https://example.org/rows.csv'}")),
    ),
    Entry(
        Code.REFUSED_ADDRESS,
        "An address is not one that rows are fetched from",
        "It is of no kind that is fetched, or leads into the private network or an object storage, where a stranger's"
        " task has no business.",
        "Correct it; `--allow-url` allows an inner address, or a place in object storage, that is meant.",
        Example(
            _EXPLAIN + "entity.yaml --network",
            files=_source("{type: url, url: 'ftp://example.org/rows.csv'}"),
        ),
    ),
    Entry(
        Code.FAILED_DOWNLOAD,
        "Rows could not be fetched",
        "The server is not there, says no, takes too long, or ends in the middle.",
        "Try again, or fetch the file by hand and name it with `--dataset KEY=FILE`.",
        test="tests/security/test_addresses_of_data_sets.py::test_other_encodings_are_refused",
    ),
    Entry(
        Code.FAILED_HUB_LOAD,
        "A data set of the Hugging Face hub could not be loaded",
        "It is not there, needs code that is not run here, or the hub cannot be reached.",
        "Look at the message of the library behind it; `--data-dir` takes a copy on this machine.",
        test="tests/bridge/datasets/test_sources.py::test_a_hub_data_set_that_cannot_be_loaded_is_an_error",
    ),
    Entry(
        Code.WRONG_HUB_ARGUMENT,
        "An argument for a data set of the hub is not taken",
        "Arguments that run strangers' code, or belong beside `load_dataset_kwargs`, are refused.",
        "Remove it, or write it where the message says.",
        Example(
            _EXPLAIN + "entity.yaml",
            files={
                "entity.yaml": _HUB
                + "owner/name, split: test, load_dataset_kwargs: {trust_remote_code: true}}\n"
            },
        ),
    ),
    Entry(
        Code.MISSING_COPY,
        "A folder has no copy of the data set",
        "`--data-dir` was given, and the split is not in it under a name that is looked for.",
        "Put the rows at one of the places that the message names.",
        test="tests/bridge/planning/test_published.py::test_a_copy_without_the_split_says_where_it_was_looked_for",
    ),
    Entry(
        Code.ROWS_NOT_GENERATED,
        "The rows of a generated data set have to be made first",
        "A run needs rows that stay; `generate` makes them once, into a file.",
        "Run the command that the hint names.",
        Example(
            _EXPLAIN + "entity.yaml",
            files=_generated("{type: python, synthesize_snippet: 'def synthesize(source): return source'}"),
        ),
    ),
    Entry(
        Code.FAILED_GENERATOR,
        "A generator could not make its rows",
        "Its snippet gives no list, a model's answer cannot be read, or a column is missing.",
        "Mend the generator as the message says.",
        Example(
            "generate entity.yaml --out made.jsonl",
            files=_generated("{type: python, synthesize_snippet: 'def synthesize(source): return 5'}"),
        ),
    ),
    Entry(
        Code.WRONG_COMPARISON,
        "A filter compares what cannot be compared",
        "`greater_than` and its like need numbers on both sides.",
        "Compare numbers, or take another operator.",
        Example(
            _EXPLAIN + "entity.yaml",
            files=_source(
                "\n  type: local\n  file_path: capitals.jsonl\n  filters:\n"
                "    - {expression: '{{ sample.country }}', op: greater_than, value: 1}"
            ),
        ),
    ),
    Entry(
        Code.CHANGED_ROWS,
        "The rows are others than in an earlier run",
        "Results in one folder are compared with each other, which means nothing over different rows.",
        "Take the same rows again or another `--out`; the hint says what to delete where the new ones are right.",
        test="tests/bridge/planning/test_row_locks.py::test_other_rows_are_refused_from_then_on",
    ),
    Entry(
        Code.UNEQUAL_LENGTHS,
        "Data sets side by side have different numbers of rows",
        "`keys` puts row by row together, so all of them need as many.",
        "See which one lacks rows.",
        Example(
            "validate pair.yaml",
            files={
                "rivers.jsonl": '{"river": "Rhine"}\n',
                "pair.yaml": "key: pair\ndisplay_name: Pair\ndescription: ''\ndefinition:\n"
                "  dataset: {keys: [capitals, rivers]}\n"
                "  solver: {type: single_turn_solver, input_builder: {type: generic, template: '{}'}}\n",
            },
        ),
    ),
    Entry(
        Code.VALUE_WITHOUT_JSON,
        "A value of a row cannot be written as JSON",
        "Half of a character pair, or a type that tables know and JSON does not.",
        "Write the character whole, or the value as text.",
        Example(
            _EXPLAIN + "rows.jsonl",
            files={"rows.jsonl": '{"country": "Norway \\ud83d", "capital": "Oslo"}\n'},
        ),
    ),
    Entry(
        Code.WRONG_TRACE_SOURCE,
        "Traces cannot be read from such a source",
        "Sessions of other tools are read from exported files only; their services are not asked.",
        "Export the traces, and name the file.",
        Example(_EXPLAIN + "entity.yaml", files=_source("{type: langsmith}")),
    ),
    Entry(
        Code.DATASET_NOT_GIVEN,
        "The task's data set is not there",
        "There is no file with its key beside the task, and none was given.",
        "Give it: `--dataset KEY=FILE`.",
        Example("explain lonely/task.yaml", files={"lonely/task.yaml": "COPY task.yaml"}),
    ),
    Entry(
        Code.UNPINNED_SOURCE,
        "Rows are not, or cannot be shown to be, the published ones",
        "The number of rows or their digest is not the one that stands beside the revision, or none stands there.",
        "Fetch the rows anew, or write `num_rows` and `digest` into the data set's file.",
        test="tests/bridge/planning/test_published.py::test_other_rows_than_the_published_are_refused_with_all_that_is_wrong",
    ),
)
