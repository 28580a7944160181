"""Connections from model files, and the errors of invalid files with their positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.errors import SpecError, UsageError
from aigo_bridge.models.connections import (
    Connection,
    ConnectionSettings,
    ProviderTarget,
    is_model_file,
    load_model,
    provider_key,
    split_name,
)

HEAD = "key: m\ndisplay_name: M\n"
HTTP = "config:\n  url: https://models.invalid/v1\n"
ADAPTER = """key: mine
display_name: Mine
process_input: {language: jinja, source_code: "{{ input | tojson }}"}
process_output: {language: jinja, source_code: "{{ body }}"}
"""


def loaded(folder: Path, text: str, name: str = "model.yaml", **options: Any) -> Connection:
    (folder / name.partition("#")[0]).write_text(text)
    found = load_model(str(folder / name), env=options.pop("env", {}), **options)
    assert isinstance(found, Connection)
    return found


def problems(folder: Path, text: str, **options: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        loaded(folder, text, **options)
    return [f"{issue.line}: {issue.message}" for issue in caught.value.issues if issue.severity == "error"]


def test_minimal_model_file_gets_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path, HEAD + HTTP)
    assert (found.key, found.task, found.adapter.key) == ("m", "chat_completion", "latticeflow$identity")
    assert (found.rate_limit, found.max_concurrent, found.info.model_key) == (None, None, None)


def test_complete_model_file_is_read(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        HEAD + "rate_limit: 60\nmax_concurrent_requests: 2\ntask: embeddings\nsecrets: {K: $KEY}\n" + HTTP
        + "  model_key: e-1\n  api_key: << secrets.K >>\n  adapter: {key: latticeflow$openai}\n"
        + "  custom_headers: {X-One: 1, X-Key: {name: K}, X-On: true}\n",
        env={"KEY": "a secret value"},
    )  # fmt: skip
    assert (found.rate_limit, found.max_concurrent, found.task) == (60, 2, "embeddings")
    assert found.info.model_key == "e-1"
    assert "a secret value" not in repr(found)


def test_secrets_do_not_change_the_digest(tmp_path: Path) -> None:
    text = HEAD + "secrets: {K: $KEY}\n" + HTTP + "  api_key: << secrets.K >>\n"
    one, other = (loaded(tmp_path, text, env={"KEY": key}) for key in ("one-secret-value", "another-secret"))
    assert one.digest == other.digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("models.invalid/v1", "models.invalid/v2"),
        ("model_key: a", "model_key: b"),
        ("X-Version: one", "X-Version: two"),
        ("latticeflow$openai", "latticeflow$identity"),
    ],
)
def test_every_setting_that_affects_answers_changes_the_digest(tmp_path: Path, old: str, new: str) -> None:
    text = (
        HEAD
        + HTTP
        + "  model_key: a\n  adapter: {key: latticeflow$openai}\n  custom_headers: {X-Version: one}\n"
    )
    assert loaded(tmp_path, text).digest != loaded(tmp_path, text.replace(old, new)).digest


def test_limits_do_not_change_the_digest(tmp_path: Path) -> None:
    assert loaded(tmp_path, HEAD + HTTP).digest == loaded(tmp_path, HEAD + "rate_limit: 5\n" + HTTP).digest


def test_every_problem_is_reported_with_its_line(tmp_path: Path) -> None:
    text = HEAD + (
        "config:\n"
        "  url: ftp://models.invalid\n"
        "  api_key: << secrets.NOT_THERE >>\n"
        "  adapter: {key: nobodys}\n"
        '  custom_headers:\n    "bad name": x\n    X-Lines: "a\\nb"\n    X-Unset: $NOT_SET_AT_ALL\n'
    )
    found = problems(tmp_path, text)
    assert "4: 'url': expected an address that begins with http:// or https://" in found
    assert "5: 'api_key': unknown secret 'NOT_THERE' (declared: none)" in found
    assert any(line.startswith("6: no model adapter 'nobodys'") for line in found)
    assert "8: 'bad name' is not a valid header name" in found
    assert any(line.startswith("9: 'X-Lines' contains a line break") for line in found)
    assert "10: 'X-Unset': environment variable 'NOT_SET_AT_ALL' is not set" in found


def test_secret_with_line_break_is_rejected_and_not_shown(tmp_path: Path) -> None:
    text = HEAD + HTTP + "  api_key: $KEY\n"
    with pytest.raises(SpecError) as caught:
        loaded(tmp_path, text, env={"KEY": "hidden-value\n"})
    assert "'api_key' contains a line break" in str(caught.value)
    assert "hidden-value" not in str(caught.value)


@pytest.mark.parametrize(
    ("env", "told"),
    [({"KEY": ""}, "'api_key' is empty"), ({}, "'api_key': environment variable 'KEY' is not set")],
)
def test_an_empty_or_missing_key_is_reported_once(tmp_path: Path, env: dict[str, str], told: str) -> None:
    (problem,) = problems(tmp_path, HEAD + HTTP + "  api_key: $KEY\n", env=env)
    assert told in problem


@pytest.mark.parametrize(
    "authority",
    ["not base64!", "bm8gY2VydGlmaWNhdGU=", "-----BEGIN CERTIFICATE-----\\nx\\n-----END CERTIFICATE-----"],
)
def test_invalid_certificates_are_rejected(tmp_path: Path, authority: str) -> None:
    tls = f'  tls_context: {{validation_context: {{trusted_ca: "{authority}"}}}}\n'
    (problem,) = problems(tmp_path, HEAD + HTTP + tls)
    assert problem.startswith("5: 'trusted_ca'")


def test_missing_client_certificate_file_is_reported(tmp_path: Path) -> None:
    settings = ConnectionSettings(client_cert=str(tmp_path / "none.pem"))
    (problem,) = problems(tmp_path, HEAD + HTTP, settings=settings)
    assert "client certificate" in problem


@pytest.mark.parametrize(
    "connection",
    [
        "{connection_type: dify, url: 'https://x.invalid', api_key: k}",
        "{connection_type: placeholder}",
        "{connection_type: langsmith, deploy_url: 'https://x.invalid', assistant_id: a, api_key: k}",
    ],
)
def test_unsupported_connection_types_are_rejected(tmp_path: Path, connection: str) -> None:
    (problem,) = problems(tmp_path, HEAD + f"config: {connection}\n")
    assert problem.startswith("3: a model with connection_type ")
    assert problem.endswith("cannot be called from here")


@pytest.mark.parametrize("place", [".", "model_adapters", "adapters", "../model_adapters", "../adapters"])
def test_adapters_next_to_the_model_are_found_by_key(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "models"
    (folder / place).mkdir(parents=True, exist_ok=True)
    (folder / place / "any-name.yaml").write_text(ADAPTER)
    (folder / place / "other.yaml").write_text(ADAPTER.replace("key: mine", "key: other"))
    assert loaded(folder, HEAD + HTTP + "  adapter: {key: mine}\n").adapter.key == "mine"


def test_duplicate_adapter_keys_are_rejected(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(ADAPTER)
    assert (
        "declared by several files: a.yaml, b.yaml"
        in problems(tmp_path, HEAD + HTTP + "  adapter: {key: mine}\n")[0]
    )


def test_a_broken_adapter_is_reported_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ADAPTER.replace("{{ body }}", "{{ body"))
    with pytest.raises(SpecError, match=r"a\.yaml:4:"):
        loaded(tmp_path, HEAD + HTTP + "  adapter: {key: mine}\n")


RUN = """secrets: {K: $KEY}
model_adapters:
  - key: mine
    display_name: Mine
    process_input: {language: jinja, source_code: "{{ input | tojson }}"}
    process_output: {language: jinja, source_code: "{{ body }}"}
models:
  - $provider: openai/gpt-4.1-nano
  - key: one
    display_name: One
    config: {url: "https://models.invalid", api_key: << secrets.K >>, adapter: {key: mine}}
"""


def test_model_in_a_run_file_uses_its_secrets_and_adapters(tmp_path: Path) -> None:
    found = loaded(tmp_path, RUN, "run.yaml#one", env={"KEY": "a secret value"})
    assert (found.key, found.adapter.key) == ("one", "mine")


def test_declared_provider_model_is_found_by_key_or_name(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(RUN)
    for key in ("openai$gpt-4-1-nano", "openai/gpt-4.1-nano"):
        found = load_model(f"{tmp_path / 'run.yaml'}#{key}", env={"KEY": "x"})
        assert found == ProviderTarget("openai$gpt-4-1-nano", "openai", "gpt-4.1-nano")


def test_a_provider_connection_keeps_its_limits(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(
        HEAD + "rate_limit: 9\nmax_concurrent_requests: 3\n"
        "config: {connection_type: provider_connection, provider_id: gemini, model_key: g-2}\n"
    )
    assert load_model(str(tmp_path / "model.yaml")) == ProviderTarget(
        "m", "gemini", "g-2", "chat_completion", 9, 3
    )


def test_model_in_a_nested_run_file_is_found(tmp_path: Path) -> None:
    text = "".join(f"    {line}\n" for line in RUN.splitlines())
    plan = f"key: p\ndisplay_name: P\nevaluations:\n  -{text[3:]}"
    assert loaded(tmp_path, plan, "plan.yaml#one", env={"KEY": "a secret value"}).adapter.key == "mine"
    twice = f"{plan}  -{text[3:]}"
    assert loaded(tmp_path, twice, "plan.yaml#one", env={"KEY": "a secret value"}).key == "one"
    other = f"{plan}  -{text[3:].replace('models.invalid', 'other.invalid')}"
    with pytest.raises(UsageError, match="several different models 'one'"):
        loaded(tmp_path, other, "plan.yaml#one", env={"KEY": "x"})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.yaml", "does not exist"),
        ("run.yaml", "contains 2 models; name one as .*#KEY .*one"),
        ("run.yaml#two", r"no model 'two' in .*run\.yaml.* \(keys: openai\$gpt-4-1-nano, one\)"),
        ("model.yaml#two", "contains the model 'm', not 'two'"),
    ],
)
def test_invalid_model_reference_is_rejected(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "run.yaml").write_text(RUN)
    (tmp_path / "model.yaml").write_text(HEAD + HTTP)
    with pytest.raises(UsageError, match=message):
        load_model(str(tmp_path / name), env={"KEY": "x"})


def test_file_of_another_kind_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ADAPTER)
    with pytest.raises(SpecError, match="expected a model or a run file"):
        load_model(str(tmp_path / "a.yaml"))


def test_model_references_are_split_into_file_and_key() -> None:
    assert split_name("a/run.yaml#openai$x") == ("a/run.yaml", "openai$x")
    assert split_name("model.yml") == ("model.yml", None)
    assert split_name("odd#name/model") == ("odd#name/model", None)
    assert is_model_file("a.yaml#k")
    assert not is_model_file("openai/gpt-4.1-nano")
    assert provider_key("openai/gpt-4.1-nano") == "openai$gpt-4-1-nano"
    assert provider_key("together/Meta Llama/3.1_8B!") == "together$meta-llama-3-1_8b"
    assert provider_key("my-model") == "my-model"
