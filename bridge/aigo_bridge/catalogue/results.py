"""Logs and results that cannot be read or do not fit: AB701 to AB719."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import Entry, Example
from aigo_bridge.codes import Code

ENTRIES = (
    Entry(
        Code.NO_LOGS,
        "There are no logs at this place",
        "Neither a log, nor a folder with some, nor a pattern that finds any.",
        "Correct the path; a log of another tool is named with `--from`.",
        Example("import nowhere --out out"),
    ),
    Entry(
        Code.UNREADABLE_LOG,
        "A log cannot be opened or read",
        "This user may not, the disk or the connection fails, or the file changes while it is read.",
        "See to permissions and place, and try again.",
        Example("score task.yaml stored.eval", files={"stored.eval": "PK\n"}),
    ),
    Entry(
        Code.NOT_A_LOG,
        "A file is no log of the kind that it is taken for",
        "It is JSON, a zip or a table of something else.",
        "Name the log; `aigo-bridge validate FILE` says what a file is.",
        Example("import capitals.jsonl --out out"),
    ),
    Entry(
        Code.DAMAGED_LOG,
        "A log is damaged",
        "Bytes are missing or altered. What can be read is salvaged by `import`, and the rest is listed.",
        "Fetch the log anew, or import what is left of it.",
        test="tests/adapters/lighteval/importing/test_footer.py::test_a_damaged_footer_is_told",
    ),
    Entry(
        Code.LOG_TOO_LARGE,
        "A log asks for more than its bounds allow",
        "Logs come from strangers: bounds on sizes, ratios and time stop a zip bomb before it is unpacked.",
        "Where the log is yours, raise the bound that the message names: `--bound NAME=NUMBER`.",
        test="tests/adapters/inspect/logs/test_reader.py::test_bounds_name_the_bound",
    ),
    Entry(
        Code.LOG_WITHOUT_PLAN,
        "A log was not written by aigo-bridge",
        "Going on and scoring again need the plan that our own runs leave in their logs.",
        "Import it with `aigo-bridge import`, which takes any log.",
        test="tests/end_to_end/test_stored_numbers.py::test_what_cannot_be_recomputed_is_told",
    ),
    Entry(
        Code.OTHER_RELEASE,
        "A file was written by another release",
        "Its format is one that this release does not read.",
        "Read it with the release that wrote it, or make it again.",
        test="tests/bridge/exporting/test_packing.py::test_a_folder_that_is_no_export_is_told",
    ),
    Entry(
        Code.UNMAPPED_LOG,
        "A part of a log could not be turned into evidence",
        "The log may be sound: our code failed at it.",
        "Report it with the message; the other samples are imported.",
        test="tests/adapters/inspect/importing/test_frame.py::test_a_mistake_of_our_own_is_said_to_be_ours_and_costs_one_part",
    ),
    Entry(
        Code.DAMAGED_RESULT,
        "A result log is not valid",
        "It was cut off or changed by hand, or has fields that do not fit.",
        "Make it again from the native log: `aigo-bridge import LOG`.",
        Example(
            "validate broken.tasklog.json",
            files={"broken.tasklog.json": '{"format_version": "1.0", "evidence": 5}\n'},
        ),
    ),
    Entry(
        Code.NOT_A_RESULT,
        "A file is no result",
        "A result log is what `run` and `import` write: `*.tasklog.json`, perhaps compressed.",
        "Name the result.",
        Example("report capitals.jsonl --out report.html"),
    ),
    Entry(
        Code.UNFIT_RESULT,
        "A result does not have what this needs",
        "It has several runs, no evidence, no model or no metric.",
        "Take another result, or another form.",
        test="tests/bridge/results/test_log_files.py::test_a_metric_that_is_no_number_is_refused",
    ),
    Entry(
        Code.OTHER_PLAN,
        "A log is of another task than it is scored with",
        "The task, its rows or its configuration differ, so the numbers would not be those of the log.",
        "Give the task and the values that the log was made with.",
        test="tests/extras/scale/sharding/test_merging.py::test_another_task_than_that_of_the_shards_is_refused",
    ),
    Entry(
        Code.EVIDENCE_NOT_WRITTEN,
        "Evidence could not be written",
        "The disk is full, or the folder cannot be written to. The native log stays.",
        "Make room, then `aigo-bridge import LOG --out DIR`.",
        test="tests/end_to_end/test_full_disk.py::test_evidence_that_cannot_be_written_can_be_imported_later",
    ),
    Entry(
        Code.BROKEN_ATTESTATION,
        "An attestation is missing, or is not this result's",
        "The result was changed after it was signed, or the file beside it belongs to another.",
        "Attest the result anew, or find the one that was attested.",
        Example("attest --disclose 1 result.tasklog.json"),
    ),
    Entry(
        Code.BROKEN_BUNDLE,
        "A bundle is damaged, or is none",
        "Its list of files does not fit its files.",
        "Ask for the bundle again.",
        test="tests/extras/trust/verification/test_bundling.py::test_what_leads_out_or_is_no_file_is_refused",
    ),
    Entry(
        Code.BROKEN_PROVENANCE,
        "A provenance is missing or was changed",
        "It stands beside its result and says what made it; its digest covers all of it.",
        "Take the file that was written with the result.",
        test="tests/extras/trust/provenance/test_record.py::test_a_provenance_that_is_missing_or_none_is_refused",
    ),
    Entry(
        Code.UNUSABLE_KEY,
        "A key cannot be used",
        "It is no PEM, of another kind than Ed25519, private where a public one belongs, or its passphrase is wrong.",
        "`aigo-bridge attest --new-key FILE` makes a pair.",
        Example("attest result.tasklog.json --key no.pem", files={"no.pem": "no key\n"}),
    ),
    Entry(
        Code.SHARDS_APART,
        "Shards do not belong to one run",
        "Their tasks, rows, models or options differ, so together they would be the result of nothing.",
        "Name the shards of one run.",
        test="tests/extras/scale/sharding/test_merging.py::test_another_task_than_that_of_the_shards_is_refused",
    ),
    Entry(
        Code.SHARDS_MISSING,
        "Shards are missing, or have not come to an end",
        "A merge is exact only over all of them.",
        "Run the missing ones with `run --shard K/N`; the hint has the command.",
        test="tests/extras/scale/sharding/test_belonging.py::test_missing_and_doubled_shards_are_named_together",
    ),
)
