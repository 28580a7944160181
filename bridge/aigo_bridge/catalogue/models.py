"""Errors of models: AB401 to AB431."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import CatalogueEntry, Example
from aigo_bridge.codes import Code

_MODEL = "key: mine\ndisplay_name: Mine\ntask: chat_completion\nconfig: {connection_type: "
_OWN = "run task.yaml --model model.yaml"

ENTRIES = (
    CatalogueEntry(
        Code.NO_MODEL,
        "No model was given",
        "The task evaluates a model, or uses one as a judge, generator or simulated user, and you did not choose it.",
        "Choose the model with `--model PROVIDER/MODEL`, and other models with `--model-map 'KEY=PROVIDER/MODEL'`.",
        Example("run task.yaml"),
    ),
    CatalogueEntry(
        Code.UNKNOWN_PROVIDER,
        "A model provider is not available",
        "The engine does not know the provider before the `/`, or a package that the provider needs is missing.",
        "Correct the name, or use the other engine. The models page lists the providers of both engines.",
        Example("run task.yaml --model opnai/gpt-4.1-nano"),
    ),
    CatalogueEntry(
        Code.UNKNOWN_MODEL_ENTITY,
        "A model file does not contain this key",
        "Name a model in a file as FILE, or as FILE#KEY if the file contains several models.",
        "Use one of the keys in the message.",
        Example(
            _OWN,
            files={
                "model.yaml": "models: [{$provider: openai/gpt-4.1}, {$provider: openai/gpt-4.1-nano}]\nevaluation: {key: e, display_name: E, description: ''}\n"
            },
        ),
    ),
    CatalogueEntry(
        Code.WRONG_CONNECTION,
        "A model connection is not valid",
        "A setting in the model file does not match the connection type, or the adapter does not exist.",
        "Correct the model file as the message says.",
        Example(
            _OWN,
            files={
                "model.yaml": _MODEL
                + "custom_connection, url: 'https://example.org', adapter: {key: nobody}}\n",
            },
        ),
    ),
    CatalogueEntry(
        Code.MISSING_SECRET,
        "An API key or address of a model is not set",
        "The model file refers to an environment variable that is not set.",
        "Set the environment variable. Never write the key into a file.",
        Example(
            _OWN,
            files={
                "model.yaml": _MODEL + "custom_connection, url: 'https://example.org/v1',"
                " api_key: << secrets.MY_MISSING_KEY >>, adapter: {key: openai}}\n"
            },
        ),
    ),
    CatalogueEntry(
        Code.WRONG_MODEL_ARGUMENT,
        "A model argument is unknown",
        "The arguments after the model name depend on the provider or backend.",
        "Remove or correct the argument.",
        Example("run task.yaml --engine lighteval --model openai/gpt-4.1,max_tokens=1,max_new_tokens=2"),
    ),
    CatalogueEntry(
        Code.WRONG_SCRIPTED_RULES,
        "The file of a scripted model is not valid",
        "The file after `scripted/` contains one JSON object per line with a `match` and a `reply`.",
        "Correct the path or the line.",
        Example("run task.yaml --model scripted/answer.jsonl"),
    ),
    CatalogueEntry(
        Code.UNFIT_MODEL,
        "A model lacks a feature that the task needs",
        "For example, an embedding model cannot answer a conversation, and many models do not return likelihoods.",
        "Choose a model with the required capability.",
        test="tests/adapters/inspect/models/test_provider.py::test_chat_with_an_embeddings_model_is_refused_before_it_starts",
    ),
    CatalogueEntry(
        Code.FAILED_MODEL_LOAD,
        "A local model could not be loaded",
        "The folder, the tokenizer or the available memory does not meet the needs of the backend.",
        "Check the error of the backend in the message.",
        test="tests/adapters/lighteval/models/test_backends.py::test_a_missing_model_is_reported_as_a_missing_folder_first",
    ),
    CatalogueEntry(
        Code.FAILED_MODEL,
        "A model call failed",
        "The endpoint refused the call, was unreachable after all retries, or returned an invalid reply. The sample failed.",
        "Check the endpoint error in the message, then run the failed samples again with `run --resume`.",
        test="tests/bridge/models/connections/test_endpoint.py::test_slow_stream_is_stopped_at_the_total_time_limit",
    ),
    CatalogueEntry(
        Code.LOST_OPTION,
        "A model option would be lost",
        "The adapter or backend does not send this option, so the model would run with other settings than you asked for.",
        "Remove the option, or send it in `process_input` of the adapter.",
        test="tests/adapters/lighteval/models/test_generation.py::test_task_requests_and_user_settings_must_not_conflict",
    ),
    CatalogueEntry(
        Code.UNSENDABLE_CONTENT,
        "A message part is not supported by this model",
        "Only some models accept images, audio or files.",
        "Use another model or engine, or exclude these samples.",
        test="tests/adapters/inspect/models/test_models.py::test_content_unsupported_by_inspect_fails_the_sample",
    ),
    CatalogueEntry(
        Code.NOT_RECORDED,
        "A model call is not in the cassette",
        "`--replay` does not call the model, and the recorded run did not make this call.",
        "Check the closest recorded call in the message for a changed template or option, or record the run again.",
        test="tests/extras/trust/recording/test_replay.py::test_a_changed_prompt_is_reported_with_the_difference",
    ),
    CatalogueEntry(
        Code.DAMAGED_CASSETTE,
        "A cassette is damaged or not a cassette",
        "Each line has a checksum. Truncated or modified lines are reported and skipped.",
        "Record the run again, or use an intact copy.",
        Example("run task.yaml --replay answers.jsonl"),
    ),
)
