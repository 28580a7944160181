"""Rows of a generated dataset. Generation is a separate step, so that the rows of a run are in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from aigo_bridge.access.opening import YAML_SUFFIXES
from aigo_bridge.codes import Code
from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.generating import GeneratorTools, StartRows
from aigo_bridge.datasets.rows import Rows, Selection
from aigo_bridge.datasets.sources import DatasetTools, load_dataset
from aigo_bridge.datasets.synthesis import SynthesisCall
from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionJSONSchema,
    ChatCompletionResponseFormatJSONSchema,
)
from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.registry import required
from aigo_bridge.errors import DatasetError, SampleError, UsageError
from aigo_bridge.evaluation.models import surplus_models
from aigo_bridge.evaluation.planning import trace_reader
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.planning.results import find_result, result_rows
from aigo_bridge.reading import Document, read, snippet_place
from aigo_bridge.reading.locating import find_dataset, find_generator
from aigo_bridge.snippets import Snippet, SnippetHost
from aigo_bridge.spec.base import has_marker
from aigo_bridge.spec.datasets import DatasetGeneratorSpec, DatasetSpec, PythonSynthesizer


@dataclass(frozen=True)
class GenerationInputs:
    """Inputs that a generated dataset may need."""

    engine: Engine
    """Engine that calls the models of synthesizers."""
    model_map: Mapping[str, str]
    """AI GO model key → model name for the engine."""
    datasets: Mapping[str, str]
    """Key → file, for datasets and task results that are not in the folder of the dataset file."""
    root: Path | None = None
    """Folder that includes and files may be read from."""


def generate_rows(path: Path, sources: GenerationInputs) -> Rows:
    """Generate all rows of a dataset whose file names a generator.

    Raises:
        UsageError: the file does not describe a generated dataset, or a model is missing.
        SpecError: a file is invalid, or the generator is not found.
        DatasetError: a start row, a model answer or a snippet result cannot be used.
        EvidenceError: a task result that provides rows cannot be read.
    """
    document = read(DatasetSpec, path, root=sources.root)
    request = document.spec.generator_specification
    if request is None:
        raise UsageError(
            f"{document.file.name}: dataset {document.spec.key!r} does not contain a "
            "generator_specification, so its rows cannot be generated (`aigo-bridge run` "
            "reads its rows)",
            code=Code.OTHER_KIND,
        )
    generator = read(
        DatasetGeneratorSpec,
        find_generator(request.dataset_generator_key, path, root=sources.root),
        root=sources.root,
    )
    _check_models(generator.spec, sources)
    host = SnippetHost()
    try:
        with start_blocking_portal() as portal:
            tools = DatasetTools(
                generators={request.dataset_generator_key: generator.spec},
                start=StartRows(
                    dataset=lambda key: _dataset_rows(key, path, sources),
                    result=lambda key: _result_rows(key, path, sources),
                ),
                generation=GeneratorTools(
                    ask=_asker(portal, sources), run_snippet=_snippets(host, generator)
                ),
            )
            return load_dataset(
                document.spec, base=path.parent, root=sources.root or document.root, tools=tools
            )
    finally:
        host.close()


def _check_models(generator: DatasetGeneratorSpec, sources: GenerationInputs) -> None:
    """Refuse models that the generator does not use, as far as keys are known without its config."""
    keys = [getattr(part, "model_key", None) for part in generator.definition.synthesizers]
    named = [key for key in keys if key is not None]
    surplus = surplus_models(sources.model_map, named, "the generator")
    if surplus is not None and not any(map(has_marker, named)):
        raise UsageError(surplus, code=Code.SURPLUS_ARGUMENT)


def _dataset_rows(key: str, path: Path, sources: GenerationInputs) -> Rows:
    """Return the rows of a dataset in the folder of the generated dataset, or of the file for its key."""
    file = find_dataset(key, sources.datasets, path, root=sources.root)
    if file.suffix.lower() not in YAML_SUFFIXES:
        return load_file(file)
    entity = read(DatasetSpec, file, root=sources.root)
    if entity.spec.source is None:
        message = f"dataset {key!r} is also generated; generate it first and pass its rows"
        raise DatasetError(
            message, file=str(file), hint=f"--dataset {key}=ROWS.jsonl", code=Code.ROWS_NOT_GENERATED
        )
    root = sources.root or entity.root
    tools = DatasetTools(read_traces=trace_reader(root))
    return load_dataset(entity.spec, base=entity.folder(("source",)), root=root, tools=tools)


def _result_rows(key: str, path: Path, sources: GenerationInputs) -> Rows:
    """Return the rows of a result log in the folder of the generated dataset, or of the file for its key."""
    files = {name: Path(file) for name, file in sources.datasets.items()}
    return result_rows(find_result(key, files, [path.parent]), Selection())


def _asker(portal: BlockingPortal, sources: GenerationInputs) -> Callable[[SynthesisCall], str]:
    """Return a function that calls models from the generator's threads on one event loop."""
    models: dict[str, Model] = {}

    def ask(question: SynthesisCall) -> str:
        key = question.model_key
        if key not in sources.model_map:
            raise UsageError(
                f"the generator uses {key!r}; choose a model with --model-map '{key}=PROVIDER/MODEL'",
                code=Code.NO_MODEL,
            )
        if key not in models:
            engine = sources.engine
            model = required(
                engine.capabilities.model, f"engine {engine.name!r} cannot call models for generators"
            )
            models[key] = model(sources.model_map[key])
        try:
            return portal.call(models[key].predict, _request(question)).text
        except SampleError as error:
            raise DatasetError(f"model {key!r}: {error.message}", code=Code.FAILED_GENERATOR) from error

    return ask


def _request(question: SynthesisCall) -> ModelRequest:
    chat = ChatCompletionInput(
        messages=[
            ChatCompletionInputMessage(role="system", content=question.system),
            ChatCompletionInputMessage(role="user", content=question.user),
        ]
    )
    if question.schema is not None:
        schema = ChatCompletionJSONSchema(name="rows", schema=dict(question.schema), strict=True)
        chat.response_format = ChatCompletionResponseFormatJSONSchema(type="json_schema", json_schema=schema)
    return ModelRequest(chat)


def _snippets(host: SnippetHost, generator: Document[DatasetGeneratorSpec]) -> Callable[[str, Any], Any]:
    places: dict[str, tuple[str, int] | None] = {}
    for number, step in enumerate(generator.spec.definition.synthesizers):
        if isinstance(step, PythonSynthesizer):
            path = ("definition", "synthesizers", number, "synthesize_snippet")
            code = step.synthesize_snippet
            places.setdefault(code, snippet_place(generator, path, code))

    def run(source: str, row: Any) -> Any:
        # Code that contains config values is not found, so its position is unknown.
        snippet = Snippet(source, "synthesize", "synthesize_snippet").at(places.get(source))
        return host.call_blocking(snippet, (row,), {})

    return run
