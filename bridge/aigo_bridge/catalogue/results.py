"""Errors in logs and results: AB701 to AB719."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import CatalogueEntry, Example
from aigo_bridge.codes import Code

ENTRIES = (
    CatalogueEntry(
        Code.NO_LOGS,
        "No logs were found",
        "The path is not a log, a folder with logs, or a pattern that matches logs.",
        "Correct the path. For logs of another tool, name the format with `--from`.",
        Example("import nowhere --out out"),
    ),
    CatalogueEntry(
        Code.UNREADABLE_LOG,
        "A log cannot be opened or read",
        "You lack the permission, the disk or connection failed, or the file changed during reading.",
        "Check the path and permissions, and try again.",
        Example("score task.yaml stored.eval", files={"stored.eval": "PK\n"}),
    ),
    CatalogueEntry(
        Code.NOT_A_LOG,
        "A file is not a log of the expected kind",
        "The file is JSON, a zip archive or a table with other content.",
        "Name a log. `aigo-bridge validate FILE` shows the kind of a file.",
        Example("import capitals.jsonl --out out"),
    ),
    CatalogueEntry(
        Code.DAMAGED_LOG,
        "A log is damaged",
        "Bytes are missing or modified. `import` recovers the readable samples and lists the rest.",
        "Copy the log again, or import the readable part.",
        test="tests/adapters/lighteval/importing/test_footer.py::test_a_damaged_footer_is_reported",
    ),
    CatalogueEntry(
        Code.LOG_TOO_LARGE,
        "A log exceeds a safety limit",
        "Logs can come from untrusted sources. Limits on size, compression ratio and time stop a zip bomb "
        "before it is unpacked.",
        "If you trust the log, raise the limit in the message with `--bound NAME=NUMBER`.",
        test="tests/adapters/inspect/logs/test_reader.py::test_exceeded_bounds_are_named_in_the_error",
    ),
    CatalogueEntry(
        Code.LOG_WITHOUT_PLAN,
        "A log was not written by aigo-bridge",
        "Resuming and scoring again need the plan that aigo-bridge stores in its own logs.",
        "Import the log with `aigo-bridge import`, which accepts any engine log.",
        test="tests/end_to_end/test_stored_numbers.py::test_metrics_that_cannot_be_recomputed_are_reported",
    ),
    CatalogueEntry(
        Code.OTHER_RELEASE,
        "A file was written by another release",
        "This release does not support the format version of the file.",
        "Read the file with the release that wrote it, or create it again.",
        test="tests/bridge/exporting/test_packing.py::test_a_folder_that_is_not_an_export_is_reported",
    ),
    CatalogueEntry(
        Code.UNMAPPED_LOG,
        "A part of a log could not be converted to evidence",
        "The log may be valid: this is an error in aigo-bridge. All other samples are imported.",
        "Report the problem with the full message.",
        test="tests/adapters/inspect/importing/test_frame.py::test_a_mapping_bug_is_reported_and_loses_one_part",
    ),
    CatalogueEntry(
        Code.DAMAGED_RESULT,
        "A result log is not valid",
        "The file was truncated or edited, or its fields contradict each other.",
        "Create the result again from the engine log with `aigo-bridge import LOG`.",
        Example(
            "validate broken.tasklog.json",
            files={"broken.tasklog.json": '{"format_version": "1.0", "evidence": 5}\n'},
        ),
    ),
    CatalogueEntry(
        Code.NOT_A_RESULT,
        "A file is not a result log",
        "Result logs are written by `run` and `import` and have the extension `.tasklog.json`. They may be compressed.",
        "Name a result log.",
        Example("report capitals.jsonl --out report.html"),
    ),
    CatalogueEntry(
        Code.UNFIT_RESULT,
        "A result does not contain the required data",
        "For example, it contains several runs, or evidence, model or metrics are missing.",
        "Use another result or another output format.",
        test="tests/bridge/results/test_log_files.py::test_non_finite_metric_is_rejected",
    ),
    CatalogueEntry(
        Code.OTHER_PLAN,
        "A log does not belong to this task",
        "The task, its rows or its configuration differ from the log, so the metrics would not describe the logged run.",
        "Use the task and the options of the logged run.",
        test="tests/extras/scale/sharding/test_merging.py::test_merge_with_another_task_is_rejected",
    ),
    CatalogueEntry(
        Code.EVIDENCE_NOT_WRITTEN,
        "Evidence could not be written",
        "The disk is full, or the folder is read-only. The engine log is kept.",
        "Free some space, then run `aigo-bridge import LOG --out DIR`.",
        test="tests/end_to_end/test_full_disk.py::test_unwritten_evidence_can_be_imported_later",
    ),
    CatalogueEntry(
        Code.BROKEN_ATTESTATION,
        "An attestation is missing or does not match the result",
        "The result was changed after signing, or the attestation file belongs to another result.",
        "Sign the result again, or find the result that was signed.",
        Example("attest --disclose 1 result.tasklog.json"),
    ),
    CatalogueEntry(
        Code.BROKEN_BUNDLE,
        "A bundle is damaged or not a bundle",
        "The files in the bundle do not match its list of files.",
        "Get the bundle again from its author.",
        test="tests/extras/trust/verification/test_bundling.py::test_bundle_with_outside_or_special_members_is_rejected",
    ),
    CatalogueEntry(
        Code.BROKEN_PROVENANCE,
        "A provenance file is missing or was changed",
        "The provenance file next to a result records how the result was made. Its checksum covers the whole file.",
        "Use the provenance file that was written with the result.",
        test="tests/extras/trust/provenance/test_record.py::test_missing_or_invalid_provenance_is_rejected",
    ),
    CatalogueEntry(
        Code.UNUSABLE_KEY,
        "A key cannot be used",
        "The file is not PEM, is not an Ed25519 key, contains a private instead of a public key, or has another passphrase.",
        "Run `aigo-bridge attest --new-key FILE` to create a key pair.",
        Example("attest result.tasklog.json --key no.pem", files={"no.pem": "no key\n"}),
    ),
    CatalogueEntry(
        Code.SHARDS_APART,
        "Shards belong to different runs",
        "Their tasks, rows, models or options differ, so they cannot be merged into one result.",
        "Name only the shards of one run.",
        test="tests/extras/scale/sharding/test_merging.py::test_merge_with_another_task_is_rejected",
    ),
    CatalogueEntry(
        Code.SHARDS_MISSING,
        "Shards are missing or incomplete",
        "A merged result is only exact if it covers all shards.",
        "Run the missing shards with `run --shard K/N`. The hint shows the command.",
        test="tests/extras/scale/sharding/test_shard_matching.py::test_missing_and_duplicate_shards_are_reported_together",
    ),
)
