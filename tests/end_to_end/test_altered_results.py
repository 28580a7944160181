"""Every alteration of a result, provenance file, attestation, native log, cassette or bundle is detected and located.

`AIGO_ALTERATIONS=2000` sets the number of alterations (`make nightly`); the default covers every kind for every source.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from tests.support.commands import REPOSITORY, TASKS
from tests.support.forked import finished

from aigo_bridge.engine.provenance import ResultOrigin
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.results.log_files import FIRST_LINE
from aigo_bridge.text.canonical_json import canonical_digest
from aigo_trust.provenance.envelope import make_key, private_key
from aigo_trust.provenance.record import provenance_file, write_provenance
from aigo_trust.provenance.statement import attestation_file
from aigo_trust.recording.container import cassette_lines
from aigo_trust.recording.tail import TailWriter
from aigo_trust.verification.attestations import attest_result
from aigo_trust.verification.bundling import Contents, write_bundle
from aigo_trust.verification.levels import Verification
from aigo_trust.verification.materials import Materials
from aigo_trust.verification.opening import verify_any
from aigo_trust.verification.verifying import verify

CHANGES = int(os.environ.get("AIGO_ALTERATIONS", "160"))
TRIVIA = TASKS / "hp-trivia"
GOLDEN = REPOSITORY / "tests/golden"
TASKS_OF = {"run": REPOSITORY / "examples/capitals", "judged": TRIVIA}
"""Source → its task, where that is bundled with it, and its calls were recorded."""


@dataclass(frozen=True)
class Source:
    """Result with all files that are verified with it."""

    name: str
    result: Path
    log: Path
    bundle: Path
    key: Path
    task: Path | None = None
    """Of a task that is scored again; its replies are in the cassette, too."""
    cassette: Path | None = None


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    """Attested and bundled results: a run, a run with judges, a run with a failed sample, trials of a run file, and
    imported logs of both engines.
    """
    folder = tmp_path_factory.mktemp("altered")
    public = make_key(folder / "key.pem")
    made = [
        _run(folder),
        _run_with_judge(folder),
        _run_with_failure(folder),
        _repeated(folder),
        *_imported(folder),
    ]
    for name, result, log in made:
        attest_result(result, private_key(folder / "key.pem"))
        task = TASKS_OF.get(name)
        materials = Materials(None if task is None else str(task))
        cassette = folder / f"{name}.cassette" if task is not None else None
        write_bundle(Contents(result, materials, log=log, cassette=cassette), folder / f"{name}.zip")
    return [
        Source(
            name,
            result,
            log,
            folder / f"{name}.zip",
            public,
            TASKS_OF.get(name),
            folder / f"{name}.cassette" if name in TASKS_OF else None,
        )
        for name, result, log in made
    ]


def _aigo(folder: Path, *arguments: object, code: int = 0) -> None:
    done = finished(["aigo-bridge", *map(str, arguments)], cwd=folder, env=dict(os.environ), timeout=120)
    assert done.returncode == code, done.stderr


def _run(folder: Path) -> tuple[str, Path, Path]:
    example = REPOSITORY / "examples/capitals"
    model = f"scripted/{example}/answers.jsonl"
    _aigo(folder, "run", example, "--model", model, "--record", "run.cassette", "--out", "run")
    return "run", folder / "run/capitals.tasklog.json", next((folder / "run").glob("*.eval"))


def _run_with_judge(folder: Path) -> tuple[str, Path, Path]:
    judge = f"openai$gpt-4-1-nano=scripted/{TRIVIA}/judge.jsonl"
    model = f"scripted/{TRIVIA}/answers.jsonl"
    _aigo(
        folder,
        "run",
        TRIVIA,
        "--model",
        model,
        "--model-map",
        judge,
        "--num-samples",
        4,
        "--num-trials",
        2,
        "--record",
        "judged.cassette",
        "--out",
        "judged",
    )
    return (
        "judged",
        next((folder / "judged").glob("*.tasklog.json")),
        next((folder / "judged").glob("*.eval")),
    )


def _run_with_failure(folder: Path) -> tuple[str, Path, Path]:
    """Run the other engine without an answer for one sample."""
    example, answers = REPOSITORY / "examples/capitals", folder / "failing.jsonl"
    broken = {"match": {"contains": "Peru"}, "reply": {"error": "out of order", "status": 400}}
    answers.write_bytes(orjson.dumps(broken) + b"\n" + (example / "answers.jsonl").read_bytes())
    words = ("run", example, "--model", f"scripted/{answers}", "--engine", "lighteval", "--out", "failed")
    _aigo(folder, *words, code=1)
    return "failed", folder / "failed/capitals.tasklog.json", _results_of(folder / "failed")


def _results_of(folder: Path) -> Path:
    return next(folder.rglob("results_*.json"))


def _repeated(folder: Path) -> tuple[str, Path, Path]:
    """Run one task several times."""
    example = folder / "example"
    shutil.copytree(REPOSITORY / "examples/capitals", example)
    (example / "run.yaml").write_text(
        """
models: [{$provider: scripted/answers.jsonl}]
tasks: [{$ref: task.yaml}]
evaluation:
  key: twice
  display_name: Twice
  description: ""
  task_specifications:
    - {key: twice, task_key: capitals, model_key: scripted$answers-jsonl, repeatability: {num_runs: 2}}
"""
    )
    _aigo(example, "run", "run.yaml", "--out", "out")
    return "twice", example / "out/twice.tasklog.json", min((example / "out").glob("*.eval"))


def _imported(folder: Path) -> list[tuple[str, Path, Path]]:
    log = GOLDEN / "inspect/0.3.240.eval"
    shutil.copyfile(log, folder / log.name)
    _aigo(folder, "import", log.name, "--provenance", "--out", "inspect")
    with zipfile.ZipFile(GOLDEN / "lighteval/0.13.0.zip") as archive:
        archive.extractall(folder / "native")
    _aigo(folder, "import", "native", "--provenance", "--out", "lighteval")
    result = min((folder / "lighteval").glob("*.tasklog.json"))
    date = result.name.removesuffix(".tasklog.json")[-26:]
    results = next(path for path in (folder / "native").rglob(f"results_{date}.json"))
    return [
        ("inspect", folder / "inspect/0.3.240.tasklog.json", folder / log.name),
        ("lighteval", result, results),
    ]


Change = Callable[[Source, Path, random.Random], tuple[Path, Materials, set[str]]]
"""Alters a copy of a source; returns what is checked, against what, and texts of which one has to be in what is told."""


def _copied(source: Source, folder: Path) -> Path:
    result = folder / source.result.name
    for file, copy in (
        (source.result, result),
        (provenance_file(source.result), provenance_file(result)),
        (attestation_file(source.result), attestation_file(result)),
    ):
        shutil.copyfile(file, copy)
    return result


def _other_digit(text: bytes, place: int, chance: random.Random) -> bytes:
    digit = chance.choice([number for number in b"0123456789" if number != text[place]])
    return text[:place] + bytes([digit]) + text[place + 1 :]


def _digits(text: bytes) -> list[int]:
    return [place for place, byte in enumerate(text) if byte in b"0123456789"]


def _ids(lines: list[bytes]) -> list[str]:
    return [orjson.dumps(orjson.loads(line.rstrip(b","))["sample_id"]).decode() for line in lines]


def _lines(content: bytes) -> tuple[list[bytes], int]:
    """Return the samples of a `.json` result, one in each line, and the end of the list."""
    if not content.startswith(FIRST_LINE):
        return [], 0
    end = content.index(b"\n]", len(FIRST_LINE))
    return content[len(FIRST_LINE) : end].split(b"\n"), end


def digit(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    result = _copied(source, folder)
    content = result.read_bytes()
    place = chance.choice(_digits(content))
    result.write_bytes(_other_digit(content, place, chance))
    lines, end = _lines(content)
    named = {"evidence", "field", "byte", "specification", "execution"}
    if len(FIRST_LINE) <= place < end:
        number = content[len(FIRST_LINE) : place].count(b"\n")
        named = {f"sample {_ids(lines)[number]}", f"samples[{number}]", "byte"}
        with suppress(ValueError):  # no number any more: its byte is named
            named.add(f"sample {_ids(_lines(result.read_bytes())[0])[number]}")
    return result, Materials(), named


def swapped(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    result = _copied(source, folder)
    content = result.read_bytes()
    lines, end = _lines(content)
    if len(lines) < 2:
        return digit(source, folder, chance)
    one, two = chance.sample(range(len(lines)), 2)
    ids = _ids(lines)
    samples = [line.rstrip(b",") for line in lines]
    samples[one], samples[two] = samples[two], samples[one]
    result.write_bytes(FIRST_LINE + b",\n".join(samples) + content[end:])
    return result, Materials(), {f"sample {ids[one]}"}


def removed(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    result = _copied(source, folder)
    content = result.read_bytes()
    lines, end = _lines(content)
    if len(lines) < 2:
        return digit(source, folder, chance)
    number = chance.randrange(len(lines))
    gone = _ids(lines)[number]
    samples = [line.rstrip(b",") for place, line in enumerate(lines) if place != number]
    result.write_bytes(FIRST_LINE + b",\n".join(samples) + content[end:])
    return result, Materials(), {f"sample {gone}: was removed"}


def removed_failure(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    """Remove failed samples, which improves the metric."""
    if source.name != "failed":
        return removed(source, folder, chance)
    result = _copied(source, folder)
    content = result.read_bytes()
    lines, end = _lines(content)
    (number,) = [number for number, line in enumerate(lines) if b"out of order" in line]
    samples = [line.rstrip(b",") for place, line in enumerate(lines) if place != number]
    result.write_bytes(FIRST_LINE + b",\n".join(samples) + content[end:])
    return result, Materials(), {f"sample {_ids(lines)[number]}: was removed"}


def own_task(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    """Change the prompt or a row of the task."""
    if source.name not in ("run", "failed"):
        return prompt(source, folder, chance)
    task = folder / "task"
    shutil.copytree(REPOSITORY / "examples/capitals", task)
    name, start = chance.choice([("task.yaml", b'content: "'), ("capitals.jsonl", b'"country": "')])
    content = (task / name).read_bytes()
    begin = content.index(start) + len(start)
    place = next(at for at in range(begin, len(content)) if content[at : at + 1].isalpha())
    (task / name).write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    named = {"task.yaml": {"field 'content'"}, "capitals.jsonl": {"row", "data", "sample "}}[name]
    return _copied(source, folder), Materials(str(task)), named


def prompt(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    """Change one letter of a prompt, an answer or a dataset row."""
    result = _copied(source, folder)
    content = result.read_bytes()
    begin = content.index(chance.choice([b'"text":"', b'"data":{"']))
    place = next(at for at in range(begin + 9, len(content)) if content[at : at + 1].isalpha())
    result.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    return result, Materials(), {"sample ", "evidence"}


def provenance(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    result = _copied(source, folder)
    file = provenance_file(result)
    content = file.read_bytes()
    file.write_bytes(_other_digit(content, chance.choice(_digits(content)), chance))
    return result, Materials(), {file.name}


def attestation(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    result = _copied(source, folder)
    file = attestation_file(result)
    envelope = orjson.loads(file.read_bytes())
    payload = envelope["payload"]
    place = chance.randrange(len(payload) - 4)
    letter = chance.choice([other for other in "ABCxyz012" if other != payload[place]])
    envelope["payload"] = payload[:place] + letter + payload[place + 1 :]
    file.write_bytes(orjson.dumps(envelope))
    return result, Materials(key=source.key), {file.name}


def another_key(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    """Change the complete result with its provenance and sign it with another key."""
    result = _copied(source, folder)
    content = result.read_bytes()
    lines, end = _lines(content)
    if len(lines) > 1 and chance.random() < 0.5:
        result.write_bytes(FIRST_LINE + b",\n".join(line.rstrip(b",") for line in lines[1:]) + content[end:])
        write_provenance(result, ResultOrigin("run", models={}))
    make_key(folder / "other.pem")
    attest_result(result, private_key(folder / "other.pem"))
    return result, Materials(key=source.key), {"not signed by the key"}


def native_log(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    result = _copied(source, folder)
    log = folder / source.log.name
    content = source.log.read_bytes()
    place = chance.randrange(len(content))
    log.write_bytes(
        content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]
    )
    return result, Materials(log=str(log)), {source.log.name}


def bundle(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    """Change, remove or add a bundle member."""
    copy = folder / "b.zip"
    kind = chance.choice(["altered", "altered", "altered", "removed", "added"])
    with zipfile.ZipFile(source.bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(
        [name for name in members if name != "bundle.json" and not name.endswith(".tasklog.json")]
    )
    if kind == "removed":
        del members[name]
    elif kind == "added":
        name = "task/more.yaml"
        members[name] = b"key: x\n"
    else:
        name = chance.choice(list(members))
        place = chance.choice(_digits(members[name]) or [0])
        members[name] = _other_digit(members[name], place, chance)
    with zipfile.ZipFile(copy, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return copy, Materials(key=source.key), {name, "bundle.json", "was altered"}


def bundle_written_anew(
    source: Source, folder: Path, chance: random.Random
) -> tuple[Path, Materials, set[str]]:
    """Change a bundle and update the checksums of its members."""
    copy = folder / "b.zip"
    with zipfile.ZipFile(source.bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = orjson.loads(members["bundle.json"])
    names = [name for name in members if name.startswith(("result/", "task/", "report", "cassette/"))]
    name = chance.choice([name for name in names if not name.endswith((".intoto.json", "export.json"))])
    place = chance.choice(_digits(members[name]) or [0])
    if name.endswith(("task.yaml", "samples.jsonl")):
        # Change text of a prompt or row, because an equivalent spelling is the same task.
        start = b'content: "' if name.endswith("yaml") else b'": "'
        begin = members[name].index(start) + len(start)
        place = next(at for at in range(begin, len(members[name])) if members[name][at : at + 1].isalpha())
    old = members[name]
    members[name] = (
        _other_digit(old, place, chance)
        if old[place] in b"0123456789"
        else old[:place] + bytes([old[place] ^ 1]) + old[place + 1 :]
    )
    content = {key: value for key, value in manifest.items() if key != "digest"}
    content["members"][name] = hashlib.sha256(members[name]).hexdigest()
    members["bundle.json"] = orjson.dumps({**content, "digest": canonical_digest(content)})
    with zipfile.ZipFile(copy, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return (
        copy,
        Materials(key=source.key),
        {Path(name).name, "sample ", "field ", "bundle's task", "provenance"},
    )


Line = tuple[dict[str, Any], bytes]


def _recorded(
    source: Source, folder: Path, chance: random.Random, change: Callable[[list[Line]], set[str]]
) -> tuple[Path, Materials, set[str]]:
    """Write a cassette with changed lines and valid checksums."""
    if source.cassette is None:
        return digit(source, folder, chance)
    lines = list(cassette_lines(source.cassette, lambda issue: pytest.fail(str(issue))))
    named = change(lines)
    copy = folder / "c.cassette"
    copy.write_bytes(b"".join(b"%08x %s\n" % (zlib.crc32(text), text) for _, text in lines))
    result = _copied(source, folder)
    return result, Materials(replay=copy), {f"c.cassette, sample {name}" for name in named} or {"c.cassette"}


def _calls(lines: list[Line]) -> list[int]:
    return [number for number, (line, _) in enumerate(lines) if "call" in line]


def _sample(line: Line) -> str:
    return orjson.dumps(line[0]["call"]["sample"]).decode()


def recorded_digit(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    def change(lines: list[Line]) -> set[str]:
        number = chance.choice(_calls(lines))
        line, text = lines[number]
        lines[number] = (line, _other_digit(text, chance.choice(_digits(text)), chance))
        try:
            return {_sample((orjson.loads(lines[number][1]), b""))}
        except ValueError:  # a number that begins with 0: it is no line of a sample any more
            return set()

    return _recorded(source, folder, chance, change)


def recorded_swap(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    def change(lines: list[Line]) -> set[str]:
        one, two = chance.sample(_calls(lines), 2)
        lines[one], lines[two] = lines[two], lines[one]
        return {_sample(lines[one]), _sample(lines[two])}

    return _recorded(source, folder, chance, change)


def recorded_removal(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    def change(lines: list[Line]) -> set[str]:
        number = chance.choice(_calls(lines))
        del lines[number]
        return {_sample(lines[number - 1])} if "call" in lines[number - 1][0] else set()

    return _recorded(source, folder, chance, change)


def recorded_prompt(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    def change(lines: list[Line]) -> set[str]:
        number = chance.choice(_calls(lines))
        line, text = lines[number]
        begin = text.index(b'"content":"') + 11
        place = next(at for at in range(begin, len(text)) if text[at : at + 1].isalpha())
        lines[number] = (line, text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
        return {_sample(lines[number])}

    return _recorded(source, folder, chance, change)


def recorded_byte(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    """Change one random byte of the compressed file."""
    if source.cassette is None:
        return digit(source, folder, chance)
    content = source.cassette.read_bytes()
    place = chance.randrange(len(content))
    copy = folder / "c.cassette"
    copy.write_bytes(
        content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]
    )
    return _copied(source, folder), Materials(replay=copy), {"c.cassette"}


def said_by_judge(source: Source, folder: Path, chance: random.Random) -> tuple[Path, Materials, set[str]]:
    """Change a judge's reply, prompt or score in a result without provenance."""
    if source.name != "judged":
        return digit(source, folder, chance)
    result = folder / source.result.name
    content = orjson.loads(source.result.read_bytes())
    sample = chance.choice(content["evidence"]["samples"])
    score = chance.choice(sample["trials"])["scores"][0]
    call = score["metadata"]["judge_calls"][0]
    kind = chance.choice(["verdict", "reasoning", "confidence", "question", "score", "label"])
    if kind == "verdict":
        verdicts = ('"correct"', '"incorrect"')
        old, new = verdicts if verdicts[0] in call["reply"] else verdicts[::-1]
        call["reply"] = call["reply"].replace(old, new)
    elif kind == "reasoning":
        score["metadata"]["reasoning"] += "."
    elif kind == "confidence":
        call["reply"] = call["reply"].replace("0.9", "0.8").replace("0.7", "0.6")
        assert '"confidence"' in call["reply"]
    elif kind == "question":
        call["messages"][-1]["content"] += " "
    elif kind == "score":
        score["values"]["is_correct"] = 1.0 - score["values"]["is_correct"]
    else:
        score["metadata"]["prediction"] += "?"
    result.write_bytes(orjson.dumps(content))
    assert source.cassette is not None
    replay = source.cassette if chance.random() < 0.5 else None
    materials = Materials(str(source.task), rerun_scorers=True, replay=replay)
    where = f"sample {orjson.dumps(sample['sample_id']).decode()}, scorer 'model_as_a_judge_classifier'"
    return result, materials, {where}


KINDS: list[Change] = [
    digit,
    digit,
    digit,
    swapped,
    removed,
    removed_failure,
    prompt,
    own_task,
    provenance,
    attestation,
    another_key,
    native_log,
    bundle,
    bundle_written_anew,
    recorded_digit,
    recorded_swap,
    recorded_removal,
    recorded_prompt,
    recorded_byte,
    said_by_judge,
]


def told(verification: Verification) -> str:
    return "\n".join(str(finding) for item in verification.levels for finding in item.findings)


def test_unmodified_results_have_no_findings(sources: list[Source]) -> None:
    for source in sources:
        repeated = source.name == "twice"
        log = None if repeated else str(source.log)  # of two runs, one log says half
        verification = verify(source.result, Materials(log=log, key=source.key))
        verdicts = {item.name: item.verdict for item in verification.levels}
        assert told(verification) == "", source.name
        assert verdicts["log"] == verdicts["digests"] == verdicts["signature"] == "proved"
        assert repeated or verdicts["native"] == "proved"
        bundled = verify_any(source.bundle, Materials(key=source.key, log=log))
        assert repeated or told(bundled) == "", source.name
        if source.task is not None:
            again = Materials(str(source.task), rerun_scorers=True, replay=source.cassette, log=log)
            verification = verify(source.result, again)
            assert told(verification) == "", source.name
            verdicts = {item.name: item.verdict for item in verification.levels}
            assert verdicts["scores"] == verdicts["digests"] == "proved", source.name


def test_bundle_contains_only_the_judge_cassette(sources: list[Source], tmp_path: Path) -> None:
    run, judged = (source for source in sources if source.cassette is not None)
    verification = verify_any(judged.bundle, Materials(str(judged.task), rerun_scorers=True))
    scores = next(item for item in verification.levels if item.name == "scores")
    assert scores.verdict == "proved"
    assert f"replies of models were taken from {judged.name}.cassette" in "\n".join(scores.notes)
    with pytest.raises(EvidenceError, match=r"of 1\d lines were removed"):
        write_bundle(Contents(judged.result, Materials(), cassette=run.cassette), tmp_path / "b.zip")
    with pytest.raises(UsageError, match=r"cassette .* does not exist"):
        write_bundle(Contents(judged.result, Materials(), cassette=tmp_path / "c"), tmp_path / "b.zip")
    assert judged.cassette is not None
    unfinished = tmp_path / judged.cassette.name
    content = zstandard.ZstdDecompressor().stream_reader(
        judged.cassette.read_bytes(), read_across_frames=True
    )
    *lines, last = content.read().splitlines(keepends=True)
    unfinished.write_bytes(zstandard.compress(b"".join(lines)))
    tail = TailWriter(unfinished)
    tail.begin(lines[0][:8].decode(), len(lines))
    tail.put(last)
    tail.close(remove=False)
    with pytest.raises(EvidenceError, match=r"its last lines are in .*\.tail: the recording is incomplete"):
        write_bundle(Contents(judged.result, Materials(), cassette=unfinished), tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


def test_respelled_equal_number_is_located(sources: list[Source], tmp_path: Path) -> None:
    source = next(source for source in sources if source.name == "run")
    result = _copied(source, tmp_path)
    content = result.read_bytes()
    place = content.index(b'"Accuracy":') + len(b'"Accuracy":')
    number = content[place : place + 4]
    assert number == b"0.75"
    result.write_bytes(content.replace(b'"Accuracy":0.75', b'"Accuracy":0.75000000000000000001'))

    verification = verify_any(result, Materials())

    assert verification.exit_code == 1
    assert f"byte {place}: 0.75000000000000000001 is 0.75" in told(verification)


@pytest.mark.parametrize("part", range(4))
def test_every_change_is_detected_and_located(part: int, sources: list[Source], tmp_path: Path) -> None:
    chance = random.Random(part)
    for number in range(CHANGES // 4):
        source = sources[number % len(sources)]
        change = (
            KINDS[number // len(sources) % len(KINDS)]
            if number < len(sources) * len(KINDS)
            else chance.choice(KINDS)
        )
        folder = tmp_path / str(number)
        folder.mkdir()
        path, materials, named = change(source, folder, chance)
        verification = verify_any(path, materials)
        where = f"{change.__name__} of {source.name}, change {number} of part {part}"
        assert verification.exit_code == 1, where
        assert any(text in told(verification) for text in named), f"{where}: {named}\n{told(verification)}"
        shutil.rmtree(folder)
