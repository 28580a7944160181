"""Hostile task files: a clear error within two seconds and bounded memory, never a crash."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest
from pydantic import BaseModel

from aigo_bridge.access.grants import Grants, granting
from aigo_bridge.cli.error_handling import render_issues
from aigo_bridge.errors import SpecError
from aigo_bridge.reading import read
from aigo_bridge.spec.task import TaskSpec

pytestmark = pytest.mark.usefixtures("own_heap")

HEAD = 'key: a\ndisplay_name: A\ndescription: ""\n'
TAIL = "definition: {scorers: []}\n"


def message_of(path: Path, root: Path | None = None) -> str:
    """Return all messages and check that they take at most two seconds."""
    start = time.process_time()
    with pytest.raises(SpecError) as caught:
        read(TaskSpec, path, root=root, env={})
    assert time.process_time() - start < 2
    assert len(str(caught.value)) < 20_000
    return "\n".join(issue.message for issue in caught.value.issues)


def written(folder: Path, text: str) -> Path:
    path = folder / "task.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_billion_laughs_file_is_refused(tmp_path: Path) -> None:
    laughs = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n"
    laughs += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert "expands to more than 200,000 values" in message_of(written(tmp_path, laughs + HEAD + TAIL))


def test_quadratic_text_through_aliases_is_refused(tmp_path: Path) -> None:
    text = f"{HEAD}a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 1000)}]\n{TAIL}"
    assert "expands to more than 67,108,864 characters" in message_of(written(tmp_path, text))


def test_recursive_anchor_is_refused(tmp_path: Path) -> None:
    assert "contains itself" in message_of(written(tmp_path, f"{HEAD}tags: &t [*t]\n{TAIL}"))
    assert "contains itself" in message_of(written(tmp_path, f"{HEAD}tags: &t {{a: *t}}\n{TAIL}"))


def test_recursive_merge_key_is_refused(tmp_path: Path) -> None:
    assert "contains itself" in message_of(written(tmp_path, f"{HEAD}x: &t {{<<: *t}}\n{TAIL}"))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_nesting_deeper_than_the_parser_stack_is_refused(opening: str, tmp_path: Path) -> None:
    assert "nested more than 100 levels deep" in message_of(written(tmp_path, opening * 100_000))


def test_deep_nesting_through_aliases_is_refused(tmp_path: Path) -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 3000))
    assert "nested more than 100 levels deep" in message_of(written(tmp_path, text + HEAD + TAIL))


def test_scalar_of_a_hundred_megabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD + "long_description: ")
        for _ in range(100):
            file.write("x" * 2**20)
    assert "is larger than 16 MiB" in message_of(path)


def test_included_text_of_a_hundred_megabytes_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "x.md").open("wb") as file:
        file.truncate(100 * 2**20)
    assert "is larger than 16 MiB" in message_of(
        written(tmp_path, f"{HEAD}long_description: !include x.md\n{TAIL}")
    )


def test_millions_of_values_are_refused(tmp_path: Path) -> None:
    assert "contains more than 200,000 values" in message_of(
        written(tmp_path, f"tags: [{'a,' * 4_000_000}]\n")
    )


def test_millions_of_keys_are_refused(tmp_path: Path) -> None:
    text = HEAD + "".join(f"k{n}: 1\n" for n in range(150_000)) + TAIL
    assert "contains more than 200,000 values" in message_of(written(tmp_path, text))


def test_message_for_a_hundred_thousand_issues_is_bounded(tmp_path: Path) -> None:
    start = time.process_time()
    with pytest.raises(SpecError) as caught:
        read(TaskSpec, written(tmp_path, f"{HEAD}tags: [{'1,' * 90_000}]\n{TAIL}"), env={})
    assert time.process_time() - start < 4
    assert len(caught.value.issues) <= 1001
    assert "more" in caught.value.issues[-1].message


@pytest.mark.parametrize(
    "inside",
    [
        "../secret.txt",
        "../../secret.txt",
        "/etc/passwd",
        "sub/../../secret.txt",
        "link.txt",
        "linked/secret.txt",
    ],
)
@pytest.mark.parametrize("verb", ["long_description: !include {}", "tags: {{$ref: {}}}"])
def test_nothing_outside_the_root_folder_is_read(inside: str, verb: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("TOP SECRET", encoding="utf-8")
    folder = tmp_path / "task"
    (folder / "sub").mkdir(parents=True)
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").symlink_to(tmp_path)
    path = written(folder, HEAD + verb.format(inside) + "\n" + TAIL)
    with pytest.raises(SpecError) as caught:
        read(TaskSpec, path, env={})
    text = render_issues(caught.value.issues)
    assert "is outside the root folder" in text
    assert "--root" in text
    assert "TOP SECRET" not in text


def test_wider_root_allows_the_include(tmp_path: Path) -> None:
    (tmp_path / "shared.md").write_text("shared", encoding="utf-8")
    (tmp_path / "task").mkdir()
    path = written(tmp_path / "task", f"{HEAD}long_description: !include ../shared.md\n{TAIL}")
    assert read(TaskSpec, path, root=tmp_path, env={}).spec.long_description == "shared"


def test_variable_in_a_path_cannot_leave_the_root(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEAD}tags: {{$ref: $OUT}}\n{TAIL}")
    with (
        granting(Grants(variables=frozenset({"OUT"}))),
        pytest.raises(SpecError, match="is outside the root"),
    ):
        read(TaskSpec, path, env={"OUT": "/etc/passwd"})


def test_circular_references_are_refused(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("{$ref: c.yaml}", encoding="utf-8")
    (tmp_path / "c.yaml").write_text("[{$ref: b.yaml}]", encoding="utf-8")
    message = message_of(written(tmp_path, f"{HEAD}tags: {{$ref: b.yaml}}\n{TAIL}"))
    assert message == "files refer to each other in a circle: b.yaml → c.yaml → b.yaml"


def test_exponential_references_are_refused(tmp_path: Path) -> None:
    for level in range(12):
        (tmp_path / f"{level}.yaml").write_text(f"[{f'{{$ref: {level + 1}.yaml}},' * 10}]", encoding="utf-8")
    (tmp_path / "12.yaml").write_text("[x]", encoding="utf-8")
    assert "expands to more than 200,000 values" in message_of(
        written(tmp_path, f"{HEAD}tags: {{$ref: 0.yaml}}\n{TAIL}")
    )


def test_long_chain_of_references_is_refused(tmp_path: Path) -> None:
    for level in range(500):
        (tmp_path / f"{level}.yaml").write_text(f"[{{$ref: {level + 1}.yaml}}]", encoding="utf-8")
    (tmp_path / "500.yaml").write_text("[x]", encoding="utf-8")
    assert "nested more than 100 levels deep" in message_of(
        written(tmp_path, f"{HEAD}tags: {{$ref: 0.yaml}}\n{TAIL}")
    )


def test_exponential_includes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("x" * 1_000_000, encoding="utf-8")
    includes = ", ".join(["!include x.md"] * 100)
    assert "characters" in message_of(written(tmp_path, f"{HEAD}tags: [{includes}]\n{TAIL}"))


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system [touch owned]",
        "!!python/object:os.system {}",
        "!!python/name:os.system x",
        "!!python/module:os x",
        "!<tag:yaml.org,2002:python/object/apply:os.system> [touch owned]",
        "!secret x",
    ],
)
def test_yaml_tags_create_no_objects(tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "unknown tag" in message_of(written(tmp_path, f"{HEAD}tags: {tag}\n{TAIL}"))
    assert not (tmp_path / "owned").exists()


def test_pipe_or_device_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in message_of(
        written(tmp_path, f"{HEAD}long_description: !include pipe\n{TAIL}")
    )
    assert "is not a regular file" in message_of(tmp_path / "pipe")


@pytest.mark.parametrize("path", ['"a\\0b"', "''", "' '", "x" * 5000, "."])
def test_invalid_paths_are_refused(path: str, tmp_path: Path) -> None:
    message_of(written(tmp_path, f"{HEAD}long_description: !include {path}\n{TAIL}"))


@pytest.mark.parametrize(
    "value", ["9" * 100_000, "0x" + "f" * 100_000, "1" * 4000 + ":30", "1" * 5000 + ".0", "0b" + "1" * 20_000]
)
def test_absurd_numbers_are_a_quick_error(value: str, tmp_path: Path) -> None:
    message_of(written(tmp_path, f"{HEAD}tags: [{value}]\n{TAIL}"))
    message_of(
        written(
            tmp_path,
            f"{HEAD}config_spec: [{{type: int, key: a, display_name: A, max: {value}, min: x}}]\n{TAIL}",
        )
    )


@pytest.mark.parametrize(
    "template",
    [
        "{{ " * 20_000,
        "{% for a in b %}" * 5_000,
        "{{ " + "(" * 50_000,
        "{{ a" + ".b" * 100_000 + " }}",
        "{{ " + "-" * 100_000 + "1 }}",
    ],
)
def test_absurd_templates_are_a_quick_error(template: str, tmp_path: Path) -> None:
    scorer = f"definition: {{scorers: [{{type: string_equals, value: a, ground_truth: {template!r}}}]}}\n"
    message_of(written(tmp_path, HEAD + scorer))


@pytest.mark.parametrize(
    "snippet", ["(" * 100_000, "-" * 100_000 + "1", "x = " + "[" * 90 + "]" * 90, "a" + ".b" * 100_000, "\\0"]
)
def test_absurd_snippets_are_a_quick_error(snippet: str, tmp_path: Path) -> None:
    scorer = (
        f'definition: {{scorers: [{{type: python, metrics: [], compute_scores_snippet: "{snippet}"}}]}}\n'
    )
    message_of(written(tmp_path, HEAD + scorer))


def test_terminal_control_characters_are_escaped(tmp_path: Path) -> None:
    text = HEAD.replace("key: a", 'key: "\\e[2J\\x07\\u202eabc"') + "\u202e: 1\n" + TAIL
    with pytest.raises(SpecError) as caught:
        read(TaskSpec, written(tmp_path, text), env={})
    for format_ in ("rich", "github"):
        shown = render_issues(caught.value.issues, format_)
        assert not any(letter in shown for letter in "\x1b\x07\u202e")


def test_a_secret_from_the_environment_is_never_shown(tmp_path: Path) -> None:
    text = "key: $KEY\ndisplay_name: [$KEY]\nconfig: {url: u, api_key: $KEY, timeout: $KEY, connection_type: $KEY}\n"
    path = tmp_path / "model.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read(BaseModel, path, env={"KEY": "sk very secret"})
    for issue in caught.value.issues:
        assert "sk very secret" not in repr(issue)


def test_a_valid_secret_is_not_in_the_repr_of_the_specification(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text("key: m\ndisplay_name: M\nconfig: {url: u, api_key: $KEY}\n", encoding="utf-8")
    document = read(BaseModel, path, env={"KEY": "sk-very-secret"})
    assert "sk-very-secret" not in repr(document.spec)


def test_memory_is_bounded_for_expanding_files(tmp_path: Path) -> None:
    """The process has too little address space for the expanded file."""
    laughs = "a0: &a0 [" + ", ".join(["x" * 1000] * 10) + "]\n"
    laughs += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    path = written(tmp_path, laughs + HEAD + TAIL)
    program = dedent(
        f"""
        import resource, sys
        from pathlib import Path
        from aigo_bridge.errors import SpecError
        from aigo_bridge.reading import read
        from aigo_bridge.spec.task import TaskSpec
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            read(TaskSpec, Path({str(path)!r}), env={{}})
        except SpecError as error:
            print(error.issues[0].message)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        sys.exit(0 if grown < 100_000 else f"grew by {{grown}} KiB")
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "expands to more than" in done.stdout
