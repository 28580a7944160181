"""Dataset sources: local files, folders, URLs, the hub, traces."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.access.grants import Grants, granting
from aigo_bridge.codes import Code
from aigo_bridge.datasets.rows import Rows, Selection
from aigo_bridge.datasets.sources import DatasetTools, default_cache, fetched, load_dataset
from aigo_bridge.errors import DatasetError
from aigo_bridge.spec.datasets import DatasetSpec


def load(source: dict[str, Any] | None, base: Path, **options: Any) -> Rows:
    spec = DatasetSpec.model_validate({"key": "d", "display_name": "D", "source": source})
    return load_dataset(spec, base=base, **options)


def test_local_path_is_relative_to_the_yaml_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("a\n1\n2\n")
    source = {
        "type": "local",
        "file_path": "./data/x.csv",
        "filters": [{"op": "equals", "expression": "{{ a }}", "value": 2}],
    }
    assert [row.data for row in load(source, tmp_path, root=tmp_path).rows] == [{"a": 2}]
    assert len(load({"type": "local", "file_path": "data/x.csv"}, tmp_path, selection=Selection(1))) == 1


@pytest.mark.parametrize("way", ["..", "absolute", "link"])
def test_path_outside_the_root_is_refused(tmp_path: Path, way: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    (inside / "link.csv").symlink_to(secret)
    path = {"..": "../secret.csv", "absolute": str(secret), "link": "link.csv"}[way]
    with pytest.raises(DatasetError, match="is outside"):
        load({"type": "local", "file_path": path}, inside, root=inside)
    with pytest.raises(DatasetError, match="is outside"):
        load({"type": "folder", "directory_path": ".."}, inside, root=inside)
    assert len(load({"type": "local", "file_path": path}, inside)) == 1


def test_dataset_without_source_or_generator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="neither a source nor a generator"):
        load(None, tmp_path)


# --- folders


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.md").write_bytes(
        b"---\ntitle: B\nwhen: 2024-01-02\ntags: [x, y]\ncontent: mine\n---\nText\r\n"
    )
    (folder / "a.txt").write_text("plain é")
    (folder / ".hidden.TXT").write_text("hidden")
    (folder / "sub" / "c.txt").write_text("plain é")
    (folder / "paper.PDF").write_bytes(b"%PDF\xff")
    return folder


def test_a_folder_gives_one_row_per_text_file(notes: Path) -> None:
    rows = load({"type": "folder", "directory_path": "notes"}, notes.parent, missing="absent")
    assert [row.data["file_name"] for row in rows.rows] == [".hidden.TXT", "a.txt", "b.md", "sub/c.txt"]
    front = rows.rows[2].data
    assert front == {
        "sample_id": hashlib.sha256((notes / "b.md").read_bytes()).hexdigest(),
        "file_name": "b.md",
        "content": "\nText\r\n",
        "title": "B",
        "when": "2024-01-02",
        "tags": ["x", "y"],
    }
    assert rows.columns == ("sample_id", "file_name", "content", "title", "when", "tags")
    # Equal files have equal hashes, so rows are numbered.
    assert [row.sample_id for row in rows.rows] == [0, 1, 2, 3]
    assert rows.warnings == ()


@pytest.mark.parametrize("extension", ["txt", ".txt", "TXT", ".Txt"])
def test_extension_selects_files_of_a_folder(notes: Path, extension: str) -> None:
    rows = load({"type": "folder", "directory_path": "notes", "extension": extension}, notes.parent)
    assert [row.data["file_name"] for row in rows.rows] == [".hidden.TXT", "a.txt", "sub/c.txt"]


def test_pdf_files_are_ignored(notes: Path) -> None:
    assert len(load({"type": "folder", "directory_path": "notes", "extension": "pdf"}, notes.parent)) == 0


@pytest.mark.parametrize(
    "matter", ["- a list", "just text", "a: [unclosed", "a: &x [1]\nb: *x", "x: !!python/object:os.system {}"]
)
def test_invalid_front_matter_is_kept_as_text_with_a_warning(tmp_path: Path, matter: str) -> None:
    text = f"---\n{matter}\n---\nBody"
    (tmp_path / "a.md").write_text(text)
    rows = load({"type": "folder", "directory_path": "."}, tmp_path)
    assert rows.rows[0].data["content"] == text
    (warning,) = rows.warnings
    assert warning.severity == "warning"
    assert warning.file == str(tmp_path / "a.md")


def test_unclosed_front_matter_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: x\nBody")
    rows = load({"type": "folder", "directory_path": "."}, tmp_path)
    assert rows.rows[0].data["content"] == "---\ntitle: x\nBody"
    assert rows.warnings == ()


def test_folder_with_a_non_utf8_file_or_a_missing_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ok\xff")
    with pytest.raises(DatasetError, match=r"a\.txt: byte 3 is not UTF-8"):
        load({"type": "folder", "directory_path": "."}, tmp_path)
    with pytest.raises(DatasetError, match="the folder does not exist"):
        load({"type": "folder", "directory_path": "nope"}, tmp_path)


def test_symlink_in_a_folder_cannot_leave_the_root(notes: Path) -> None:
    outside = notes.parent / "outside.txt"
    outside.write_text("secret")
    (notes / "link.txt").symlink_to(outside)
    with pytest.raises(DatasetError, match=r"link\.txt: the link is outside"):
        load({"type": "folder", "directory_path": "."}, notes, root=notes)


# --- the web


class _Handler(BaseHTTPRequestHandler):
    served: list[str]

    def do_GET(self) -> None:
        self.served.append(self.path)
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/d.csv")
            self.end_headers()
        elif self.path.startswith("/gone"):
            self.send_error(404)
        elif self.path.startswith("/cut"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"a\n1\n")
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"a,b\n1,x\n2,y\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it so
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    _Handler.served = []
    web = HTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{web.server_port}"
    try:
        with granting(Grants(network=True, addresses=(address,))):
            yield address, _Handler.served
    finally:
        web.shutdown()
        thread.join()
        web.server_close()


def test_url_is_downloaded_once_and_cached(server: tuple[str, list[str]], tmp_path: Path) -> None:
    address, served = server
    for _ in range(2):
        rows = load(
            {"type": "url", "url": f"{address}/d.csv?v=1"}, tmp_path, tools=DatasetTools(cache=tmp_path / "c")
        )
        assert [row.data for row in rows.rows] == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert served == ["/d.csv?v=1"]


def test_redirects_are_followed(server: tuple[str, list[str]], tmp_path: Path) -> None:
    assert fetched(f"{server[0]}/moved.csv", tmp_path).read_bytes().startswith(b"a,b")


@pytest.mark.parametrize(
    ("path", "words"),
    [("/gone.csv", "status 404"), ("/cut.csv", "cannot be downloaded"), ("/d.csv", "more than 5 bytes")],
)
def test_failed_download_is_an_error_and_leaves_no_files(
    server: tuple[str, list[str]], tmp_path: Path, path: str, words: str
) -> None:
    with pytest.raises(DatasetError, match=words):
        fetched(server[0] + path, tmp_path, largest=5 if path == "/d.csv" else 1_000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file:///etc/hosts.csv", "expected http"),
        ("ftp://x/y.csv", "expected http"),
        ("http:///y.csv", "expected http"),
        ("https://example.invalid/page.html", "unknown kind of data file"),
        ("http://127.0.0.1:9/d.csv", "cannot be downloaded"),
    ],
)
def test_urls_that_cannot_be_a_data_file_are_refused(tmp_path: Path, url: str, words: str) -> None:
    allowed = Grants(network=True, addresses=("http://127.0.0.1:9",))
    with granting(allowed), pytest.raises(DatasetError, match=words):
        fetched(url, tmp_path)


def test_cache_is_in_the_user_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "aigo-bridge" / "datasets"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache().is_relative_to(Path.home())


# --- the hub, through its library, offline


def hub(base: Path, **changes: Any) -> dict[str, Any]:
    (base / "rows.jsonl").write_text(
        "".join(json.dumps({"q": f"q{n}", "n": n, "o": None}) + "\n" for n in range(5))
    )
    arguments = {"data_files": str(base / "rows.jsonl"), "cache_dir": str(base / "cache")}
    return {
        "type": "huggingface",
        "path": "json",
        "split": "train",
        "load_dataset_kwargs": arguments,
        **changes,
    }


def test_hub_dataset_returns_the_rows_of_the_library(tmp_path: Path) -> None:
    filters = [{"op": "greater_than", "expression": "{{ sample.n }}", "value": 1}]
    rows = load(hub(tmp_path, filters=filters), tmp_path, root=tmp_path)
    assert [row.data for row in rows.rows] == [{"q": f"q{n}", "n": n, "o": None} for n in (2, 3, 4)]


def test_hub_dataset_that_cannot_be_loaded_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be loaded") as caught:
        load(hub(tmp_path, split="nope"), tmp_path)
    assert caught.value.code == Code.FAILED_HUB_LOAD


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"split": "x"}, "put `split` next to"),
        ({"path": "x"}, "put `path` next to"),
        ({"trust_remote_code": True}, "would run code"),
        ({"data_files": {"train": ["../x.jsonl"]}}, "is outside"),
        ({"data_dir": "/etc"}, "is outside"),
    ],
)
def test_unsafe_hub_arguments_are_refused(tmp_path: Path, argument: dict[str, Any], words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        load(hub(tmp_path, load_dataset_kwargs=argument), tmp_path, root=tmp_path)


# --- traces


def test_traces_are_read_by_the_given_reader(tmp_path: Path) -> None:
    source = {"type": "inspect_ai", "path": "logs"}
    with pytest.raises(DatasetError, match="uses traces from 'inspect_ai', which are not supported here"):
        load(source, tmp_path)
    tools = DatasetTools(
        read_traces=lambda spec, base: [{"trace": {"items": []}, "sample_id": f"{spec.type}-{base.name}"}]
    )
    rows = load(source, tmp_path, tools=tools)
    assert rows.rows[0].sample_id == f"inspect_ai-{tmp_path.name}"
