"""Models that cannot be asked, or give no answer: AB401 to AB431."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import Entry, Example
from aigo_bridge.codes import Code

_MODEL = "key: mine\ndisplay_name: Mine\ntask: chat_completion\nconfig: {connection_type: "
_OWN = "run task.yaml --model model.yaml"

ENTRIES = (
    Entry(
        Code.NO_MODEL,
        "Which model is meant was not said",
        "The task evaluates a model, or its judge, generator or simulated user is one, and nothing tells which.",
        "Name it: `--model PROVIDER/MODEL`, and others by `--model-map 'KEY=PROVIDER/MODEL'`.",
        Example("run task.yaml"),
    ),
    Entry(
        Code.UNKNOWN_PROVIDER,
        "A model's provider cannot be reached from here",
        "The name in front of the `/` is no provider of the engine, or what it needs is missing.",
        "Correct the name, or take the other engine: the page on models lists both.",
        Example("run task.yaml --model opnai/gpt-4.1-nano"),
    ),
    Entry(
        Code.UNKNOWN_MODEL_ENTITY,
        "A file of models has none by that key",
        "A model that stands in a file is named as FILE, or as FILE#KEY where the file has several.",
        "Take one of the keys in the message.",
        Example(
            _OWN,
            files={
                "model.yaml": "models: [{$provider: openai/gpt-4.1}, {$provider: openai/gpt-4.1-nano}]\nevaluation: {key: e, display_name: E, description: ''}\n"
            },
        ),
    ),
    Entry(
        Code.WRONG_CONNECTION,
        "A model's connection cannot be made as it is written",
        "A setting of its file does not fit its type of connection, or its adapter is not there.",
        "Mend the file as the message says.",
        Example(
            _OWN,
            files={
                "model.yaml": _MODEL
                + "custom_connection, url: 'https://example.org', adapter: {key: nobody}}\n",
            },
        ),
    ),
    Entry(
        Code.MISSING_SECRET,
        "A key or an address that a model needs is not set",
        "Files name secrets by the variables that hold them; one of these is not in the environment.",
        "Set the variable in the environment of the command; never write the key into a file.",
        Example(
            _OWN,
            files={
                "model.yaml": _MODEL + "custom_connection, url: 'https://example.org/v1',"
                " api_key: << secrets.MY_MISSING_KEY >>, adapter: {key: openai}}\n"
            },
        ),
    ),
    Entry(
        Code.WRONG_MODEL_ARGUMENT,
        "An argument behind a model's name is not known",
        "What may stand there depends on the provider or backend.",
        "Remove or correct it.",
        Example("run task.yaml --engine lighteval --model openai/gpt-4.1,max_tokens=1,max_new_tokens=2"),
    ),
    Entry(
        Code.WRONG_SCRIPTED_RULES,
        "The rules of a scripted model cannot be read",
        "The file after `scripted/` has one JSON object a line: what matches, and the reply.",
        "Correct the path or the line.",
        Example("run task.yaml --model scripted/answer.jsonl"),
    ),
    Entry(
        Code.UNFIT_MODEL,
        "A model is of a kind that cannot do this",
        "One that makes embeddings answers no conversation, and not every model tells likelihoods.",
        "Evaluate a model whose task fits.",
        test="tests/adapters/inspect/models/test_provider.py::test_a_conversation_with_an_embeddings_model_is_refused_before_it_begins",
    ),
    Entry(
        Code.FAILED_MODEL_LOAD,
        "A model could not be loaded into this process",
        "Its folder, tokenizer or memory is not what its backend needs.",
        "Look at the backend's own words in the message.",
        test="tests/adapters/lighteval/models/test_backends.py::test_a_model_that_is_nowhere_is_no_folder_first_of_all",
    ),
    Entry(
        Code.FAILED_MODEL,
        "A model was asked and gave no answer that can be used",
        "The endpoint refused, could not be reached after all retries, or sent what is no answer. The sample failed.",
        "`run --resume` asks again for the samples that failed; what the endpoint said stands in the message.",
        test="tests/bridge/models/connections/test_endpoint.py::test_an_answer_that_trickles_is_given_up",
    ),
    Entry(
        Code.LOST_OPTION,
        "An option of a call would not reach the model",
        "An adapter or backend does not pass it on, and an evaluation without it would be another one.",
        "Leave the option out, or let the adapter's `process_input` write it.",
        test="tests/adapters/lighteval/models/test_generation.py::test_a_request_of_a_task_and_the_users_settings_do_not_contradict_each_other",
    ),
    Entry(
        Code.UNSENDABLE_CONTENT,
        "A message has a part that cannot be sent to this model",
        "Images, audio and files reach some models only.",
        "Take a model or an engine that can, or leave these samples out.",
        test="tests/adapters/inspect/models/test_models.py::test_what_has_no_place_in_inspect_is_an_error_of_the_sample",
    ),
    Entry(
        Code.NOT_RECORDED,
        "A call is not in the cassette",
        "`--replay` asks no model, and this run asks something that the recorded one did not.",
        "Record it anew, or see which template or option has changed: the message names the nearest call.",
        test="tests/bridge/cassettes/test_playing.py::test_a_changed_prompt_is_told_with_the_difference",
    ),
    Entry(
        Code.DAMAGED_CASSETTE,
        "A cassette is damaged, or is none",
        "Every line has a checksum; lines that were cut off or altered are left out, and said.",
        "Record it anew, or take a copy that is whole.",
        Example("run task.yaml --replay answers.jsonl"),
    ),
)
