"""Verification of a result, a bundle or a disclosed sample, and the public function `aigo_bridge.verify`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, EvidenceError, UsageError
from aigo_bridge.process.temporary import temporary_folder
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.sources import ResultSource, one_result
from aigo_bridge.text.json_text import read_json
from aigo_bridge.version import __version__
from aigo_trust.provenance.definitions import digest_or_none
from aigo_trust.provenance.record import row_of, sample_id
from aigo_trust.provenance.texts import read_texts
from aigo_trust.verification.bundling import (
    OpenBundle,
    bundled_materials,
    is_bundle,
    open_bundle,
    report_findings,
)
from aigo_trust.verification.contents import compare_task, unequal
from aigo_trust.verification.disclosures import is_disclosure
from aigo_trust.verification.levels import TITLES, Finding, Level, Verification, level
from aigo_trust.verification.materials import Materials, identity_of
from aigo_trust.verification.signature import check_disclosure
from aigo_trust.verification.verifying import marked_levels
from aigo_trust.verification.verifying import verify as verify_log

if TYPE_CHECKING:
    from aigo_bridge.api.planning import StrPath
    from aigo_bridge.spec.task import TaskSpec


def verify(
    result: StrPath,
    *,
    task: StrPath | None = None,
    datasets: Mapping[str, StrPath] | None = None,
    root: StrPath | None = None,
    log: StrPath | None = None,
    rerun_scorers: bool = False,
    replay: StrPath | None = None,
    provenance: StrPath | None = None,
    attestation: StrPath | None = None,
    key: StrPath | None = None,
    identity: str | None = None,
    issuer: str | None = None,
    trust_config: StrPath | None = None,
) -> Verification:
    """Verify a result level by level: valid log, metrics, scores, answers, digests, engine log, signature.

    Code inside a result is never executed. Snippets and templates come from your own task.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
    checked = aigo_bridge.verify(outcome.result, task="examples/capitals", rerun_scorers=True)
    verdicts = {level.name: level.verdict for level in checked.levels}
    assert verdicts["metrics"] == verdicts["scores"] == verdicts["digests"] == "proved"
    assert checked.exit_code == 0  # no failed level
    assert checked.summary.startswith("partly verified")  # without an engine log and a key
    ```

    Args:
        result: path of a result log, of a result in a run file (`run.yaml#KEY`), of a bundle from
            `aigo-bridge bundle`, or of a sample from `attest --disclose`.
        task: your own task of this result; `FILE#KEY` for a run file.
        datasets: replacement file for each dataset key, e.g. `{"capitals": "capitals.jsonl"}`.
        root: folder that the task's files may not leave; `None` for the task's folder.
        log: engine log of the result, e.g. `logs/run.eval`.
        rerun_scorers: whether to execute the Python scorers and metrics of `task` on the stored outputs.
        replay: cassette of the run. The model's answers are compared with it, and judge replies are read
            from it.
        provenance: provenance file of the result; `None` for the file next to the result, if it exists.
        attestation: attestation file of the result; `None` for the file next to the result, if it exists.
        key: public key (PEM) of the required signer.
        identity: identity of the required keyless signer: an e-mail address or a workflow URL.
        issuer: identity provider of `identity`, e.g. `https://accounts.google.com`.
        trust_config: sigstore client trust configuration, for `identity` with your own services.

    Returns:
        Outcome of the verification.

        - `summary` is the verdict in one line.
        - `levels` contains a `verdict` and `findings` for each level, or the `reason` why it was not
          checked.
        - `reliable` lists statements that remain true if a level failed.
        - `exit_code` is 1 if a level failed. It is 3 if you provided an argument for a level that could not
          be checked. Otherwise it is 0.

    Raises:
        UsageError: a file does not exist, or an argument is not applicable.
        SpecError: the task cannot be planned.
        DatasetError: the dataset rows cannot be used.
    """

    def path(file: StrPath | None) -> Path | None:
        return None if file is None else Path(file)

    return verify_source(
        one_result(Path(result)),
        Materials(
            task=None if task is None else os.fspath(task),
            datasets={name: str(Path(file).resolve()) for name, file in (datasets or {}).items()},
            root=None if root is None else str(Path(root).resolve()),
            log=None if log is None else os.fspath(log),
            rerun_scorers=rerun_scorers,
            replay=path(replay),
            provenance=path(provenance),
            attestation=path(attestation),
            key=path(key),
            identity=identity_of(identity, issuer, path(trust_config)),
        ),
    )


def verify_source(source: ResultSource, materials: Materials) -> Verification:
    """Verify a result, a bundle or a disclosed sample, and label the outcome with its source.

    Raises:
        UsageError, SpecError, DatasetError: as for `verify_any`.
    """
    assert source.path is not None
    return replace(verify_any(source.path, materials), result=Path(source.label))


def verify_any(path: Path, materials: Materials) -> Verification:
    """Verify a result, a bundle or a disclosed sample.

    Raises:
        UsageError: the file is none of these, or an option is not applicable.
        SpecError, DatasetError: the user's own task cannot be planned.
    """
    if not path.is_file():
        raise UsageError(f"file {str(path)!r} does not exist", code=Code.NOTHING_THERE)
    if is_bundle(path):
        return _verify_bundle(path, materials)
    if is_disclosure(path):
        return check_disclosure(path, materials.signer)
    return verify_log(path, materials)


def _verify_bundle(path: Path, materials: Materials) -> Verification:
    with temporary_folder("aigo-verify-") as folder:
        try:
            bundle = open_bundle(path, folder)
        except EvidenceError as error:
            findings = [Finding(issue.message, tuple(issue.path)) for issue in error.issues]
            levels = {name: level(name, [], unchecked="the bundle cannot be opened") for name in TITLES}
            levels["log"] = level("log", findings)
            return Verification(path, tuple(levels.values()))
        verification = verify_log(bundle.result, bundled_materials(bundle, materials))
        levels_of_result = [
            _with_bundle(item, bundle, own=materials.task is not None) if item.name == "digests" else item
            for item in verification.levels
        ]
        return replace(verification, result=path, levels=marked_levels(levels_of_result, materials))


def _with_bundle(digests: Level, bundle: OpenBundle, *, own: bool) -> Level:
    findings = [*bundle.findings, *digests.findings]
    notes = list(digests.notes)
    unchecked = digests.reason
    if bundle.release == __version__:
        findings += report_findings(bundle)
    else:
        notes.append("its report is not compared: it was written by another release of aigo-bridge")
    if bundle.task is not None and not own:
        notes = [note for note in notes if not note.startswith("task, config and rows are those")]
        try:
            findings += _packed_findings(bundle)
            notes.append("task, config and rows match the bundle's task, which was planned and not run")
        except BridgeError as error:
            findings.append(Finding(f"the bundle's task cannot be planned: {error}", file="task"))
    failure = None if bundle.findings else digests.failure
    return level(
        "digests", findings, notes=notes, unchecked=unchecked, failure=failure, intact=digests.intact
    )


def _packed_findings(bundle: OpenBundle) -> Iterator[Finding]:
    from aigo_bridge.exporting.manifest import read_manifest
    from aigo_bridge.exporting.packing import packed_plan, task_digest
    from aigo_bridge.reading import read
    from aigo_bridge.spec.task import TaskSpec
    from aigo_trust.verification.user_plan import OwnTask

    assert bundle.task is not None
    texts = read_texts(bundle.result)
    frame = LogReader(bundle.result).frame()
    if bundle.rows is None:
        plan = packed_plan(bundle.task, dict(frame.specification.config))
        entity = frame.specification.evaluated_entity
        complete = frame.status == "success"
        own = OwnTask(plan, plan, complete=complete)
        yield from compare_task(texts, own, getattr(entity, "adapter_id", None), None)[0]
        return
    manifest = read_manifest(bundle.task)
    assert manifest.task_file is not None
    document = read(TaskSpec, bundle.task / manifest.task_file, root=bundle.task / "task")
    if task_digest(document.spec) != manifest.task_digest:
        yield Finding("the task files were changed after bundling", file="task")
    yield from _definition_findings(texts.frame, document.spec)
    rows = {json.dumps(row.get("id"), ensure_ascii=False): row.get("sha256") for row in bundle.rows}
    for sample in texts.samples:
        name = json.dumps(read_json(sample_id(sample)), ensure_ascii=False)
        if name not in rows:
            yield Finding("the dataset does not have this row", sample.path, name)
        elif rows[name] != digest_or_none(row_of(sample)):
            yield Finding("its row differs from the dataset (digest)", sample.path, name, field="data")


def _definition_findings(frame: Mapping[str, Any], spec: TaskSpec) -> Iterator[Finding]:
    """Yield a finding for each difference between the result's task and the bundled task. Planned fields are
    ignored.
    """
    stored = frame["specification"]["task"]
    document = orjson.loads(orjson.dumps(spec.model_dump(mode="json", by_alias=True, exclude_unset=True)))
    for name in ("solver", "scorers", "trials", "actions"):
        mine, other = document["definition"].get(name), stored["definition"].get(name)
        if mine is not None or other:
            yield from unequal(mine, other, ("specification", "task", "definition", name))
