"""Errors in datasets: AB301 to AB323."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import CatalogueEntry, Example
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
    CatalogueEntry(
        Code.UNKNOWN_DATA_FORMAT,
        "The format of a data file is not supported",
        "Rows can be CSV, JSON, JSONL or Parquet files, or folders of text files. The file extension selects the format.",
        "Rename or convert the file.",
        Example(_EXPLAIN + "rows.txt", files={"rows.txt": "Norway,Oslo\n"}),
    ),
    CatalogueEntry(
        Code.ROWS_NOT_JSON,
        "A line is not valid JSON",
        "Each line of a JSONL file must be one complete JSON object. Single quotes, trailing commas and NaN are not valid JSON.",
        "Correct the line.",
        Example(_EXPLAIN + "rows.jsonl", files={"rows.jsonl": "{'country': 'Norway'}\n"}),
    ),
    CatalogueEntry(
        Code.ROW_SHAPE,
        "A row does not match the table",
        "The row is not an object, or it has more cells than the header. A common cause is an unquoted cell "
        "that contains a comma.",
        "Write one JSON object for each row, or put the cell in quotes.",
        Example(
            _EXPLAIN + "rows.csv", files={"rows.csv": "country,capital\nUnited States,Washington, D.C.\n"}
        ),
    ),
    CatalogueEntry(
        Code.NO_ROWS,
        "A dataset is empty",
        "The file is empty, or the filters exclude every row. A run needs at least one sample.",
        "Check the file and the filters of the dataset.",
        Example(_EXPLAIN + "rows.csv", files={"rows.csv": "country,capital\n"}),
    ),
    CatalogueEntry(
        Code.DAMAGED_TABLE,
        "A Parquet file is damaged or not a Parquet file",
        "The file was truncated during a copy, or another kind of file has the extension `.parquet`.",
        "Download or copy the file again.",
        Example(_EXPLAIN + "rows.parquet", files={"rows.parquet": "country,capital\n"}),
    ),
    CatalogueEntry(
        Code.WRONG_HEADER,
        "The header of a table is not valid",
        "The file is empty, a column name occurs twice, or the cells are not separated by commas.",
        "Give each column a unique name in the first line, separated by commas.",
        Example(_EXPLAIN + "rows.csv", files={"rows.csv": "country,country\nNorway,Oslo\n"}),
    ),
    CatalogueEntry(
        Code.DOUBTFUL_ROWS,
        "Rows look incomplete or inconsistent",
        "For example, lines have missing cells, the ids of combined datasets differ, or front matter is not "
        "valid YAML. The rows are used.",
        "Check whether the rows are as you intended.",
        Example(
            "explain task.yaml --dataset capitals=rows.csv",
            files={"rows.csv": "country,capital,note\nNorway,Oslo,x\nPeru,Lima\n"},
        ),
    ),
    CatalogueEntry(
        Code.TOO_MANY_ROWS,
        "A dataset is too large for memory",
        "A small file can unpack to many gigabytes. The size is checked before that happens.",
        "Select fewer rows with `--num-samples`. If you trust the file, raise the limit in the hint.",
        test="tests/bridge/datasets/test_rows.py::test_a_small_file_that_expands_to_gigabytes_is_refused",
    ),
    CatalogueEntry(
        Code.NETWORK_CLOSED,
        "A dataset must be downloaded",
        "Without `--network`, the command does not download rows.",
        "Add `--network`, or pass a local copy with `--dataset KEY=FILE`.",
        Example(_EXPLAIN + "entity.yaml", files=_source("{type: url, url: 'https://example.org/rows.csv'}")),
    ),
    CatalogueEntry(
        Code.REFUSED_ADDRESS,
        "Rows may not be read from this address",
        "The scheme is not supported, or the address is in a private network or in object storage. An "
        "untrusted task could use such addresses to read your data.",
        "Correct the address. If you trust it, allow it with `--allow-url ADDRESS`.",
        Example(
            _EXPLAIN + "entity.yaml --network",
            files=_source("{type: url, url: 'ftp://example.org/rows.csv'}"),
        ),
    ),
    CatalogueEntry(
        Code.FAILED_DOWNLOAD,
        "Rows could not be downloaded",
        "The server is unreachable, refuses the request, is too slow, or closes the connection early.",
        "Try again, or download the file yourself and pass it with `--dataset KEY=FILE`.",
        test="tests/security/test_addresses_of_data_sets.py::test_unknown_encodings_are_refused",
    ),
    CatalogueEntry(
        Code.FAILED_HUB_LOAD,
        "A Hugging Face dataset could not be loaded",
        "The dataset does not exist, needs code that aigo-bridge does not execute, or the hub is unreachable.",
        "Check the error of the `datasets` library in the message. To use a local copy, pass `--data-dir DIR`.",
        test="tests/bridge/datasets/test_sources.py::test_hub_dataset_that_cannot_be_loaded_is_an_error",
    ),
    CatalogueEntry(
        Code.WRONG_HUB_ARGUMENT,
        "An argument of a Hugging Face dataset is not allowed",
        "Arguments that execute remote code are refused. Some others have their own key outside `load_dataset_kwargs`.",
        "Remove the argument, or move it to the key in the message.",
        Example(
            _EXPLAIN + "entity.yaml",
            files={
                "entity.yaml": _HUB
                + "owner/name, split: test, load_dataset_kwargs: {trust_remote_code: true}}\n"
            },
        ),
    ),
    CatalogueEntry(
        Code.MISSING_COPY,
        "A folder does not contain a copy of the dataset",
        "The folder that you passed with `--data-dir` does not contain the split under any of the expected names.",
        "Put the rows at one of the paths in the message.",
        test="tests/bridge/planning/test_published_datasets.py::test_copy_without_the_split_is_an_error_with_searched_files",
    ),
    CatalogueEntry(
        Code.ROWS_NOT_GENERATED,
        "The rows of a generated dataset do not exist yet",
        "A run needs fixed rows. Create them once with `aigo-bridge generate`, which writes a file.",
        "Run the command in the hint.",
        Example(
            _EXPLAIN + "entity.yaml",
            files=_generated("{type: python, synthesize_snippet: 'def synthesize(source): return source'}"),
        ),
    ),
    CatalogueEntry(
        Code.FAILED_GENERATOR,
        "A dataset generator failed",
        "The snippet did not return a list, a model reply could not be parsed, or a column is missing.",
        "Correct the generator as the message says.",
        Example(
            "generate entity.yaml --out made.jsonl",
            files=_generated("{type: python, synthesize_snippet: 'def synthesize(source): return 5'}"),
        ),
    ),
    CatalogueEntry(
        Code.WRONG_COMPARISON,
        "A filter compares incompatible values",
        "Operators such as `greater_than` need numbers on both sides.",
        "Compare numbers, or use another operator.",
        Example(
            _EXPLAIN + "entity.yaml",
            files=_source(
                "\n  type: local\n  file_path: capitals.jsonl\n  filters:\n"
                "    - {expression: '{{ sample.country }}', op: greater_than, value: 1}"
            ),
        ),
    ),
    CatalogueEntry(
        Code.CHANGED_ROWS,
        "The rows differ from an earlier run",
        "The output folder contains results for other rows. Results over different rows cannot be compared.",
        "Use the same rows, or choose another `--out`. If the new rows are correct, the hint names the file to delete.",
        test="tests/bridge/planning/test_row_locks.py::test_changed_rows_are_rejected_after_the_first_run",
    ),
    CatalogueEntry(
        Code.UNEQUAL_LENGTHS,
        "Combined datasets have different numbers of rows",
        "`keys` combines datasets row by row, so all of them need the same number of rows.",
        "Add the missing rows, or remove the surplus rows.",
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
    CatalogueEntry(
        Code.VALUE_WITHOUT_JSON,
        "A value cannot be written as JSON",
        "For example, a text contains half of a surrogate pair, or a cell has a type that JSON does not support.",
        "Correct the text, or store the value as text.",
        Example(
            _EXPLAIN + "rows.jsonl",
            files={"rows.jsonl": '{"country": "Norway \\ud83d", "capital": "Oslo"}\n'},
        ),
    ),
    CatalogueEntry(
        Code.WRONG_TRACE_SOURCE,
        "Traces cannot be read from this source",
        "Traces of other tools can only be read from exported files. aigo-bridge does not connect to their services.",
        "Export the traces to a file and name the file.",
        Example(_EXPLAIN + "entity.yaml", files=_source("{type: langsmith}")),
    ),
    CatalogueEntry(
        Code.DATASET_NOT_GIVEN,
        "The dataset of the task was not found",
        "No file next to the task has the dataset key, and you did not pass one.",
        "Pass the dataset with `--dataset KEY=FILE`.",
        Example("explain lonely/task.yaml", files={"lonely/task.yaml": "COPY task.yaml"}),
    ),
    CatalogueEntry(
        Code.UNPINNED_SOURCE,
        "Rows are not confirmed to be the published rows",
        "The number of rows or the checksum differs from the dataset file, or the dataset file does not contain them.",
        "Download the rows again, or add `num_rows` and `digest` to the dataset file.",
        test="tests/bridge/planning/test_published_datasets.py::test_rows_that_differ_from_the_published_dataset_are_rejected",
    ),
)
