"""Configuration: precedence, validation messages and secrets."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from cato_web.config import loader
from cato_web.config.loader import ConfigError, load
from cato_web.config.schema import KEYS
from cato_web.supervisor import plan

SECRET = "sk-hush"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_command_line_overrides_environment_overrides_file_overrides_defaults(file: Path) -> None:
    file.write_text("server: {port: 8001, host: 127.0.0.2}\nllm: {model: from-file, max_tokens: 10}\n")
    environ = {"CATO_PORT": "8002", "CATO_LLM_MODEL": "from-environment"}

    conf = load(path=file, environ=environ, overrides={"server.port": 8003, "server.host": None})

    assert (conf.server.port, conf.origin("server.port")) == (8003, "command line")
    assert (conf.llm.model, conf.origin("llm.model")) == ("from-environment", "environment")
    assert (conf.server.host, conf.origin("server.host")) == ("127.0.0.2", "file")
    assert (conf.llm.temperature, conf.origin("llm.temperature")) == (1.0, "default")


def test_the_file_named_by_the_environment_replaces_the_default_file(file: Path, tmp_path: Path) -> None:
    file.write_text("llm: {model: named}")
    home = tmp_path / "cato" / "config.yaml"
    home.parent.mkdir()
    home.write_text("llm: {model: at-home}")

    assert load(environ={"CATO_CONFIG_FILE": str(file), "XDG_CONFIG_HOME": str(tmp_path)}).llm.model == "named"
    assert load(environ={"XDG_CONFIG_HOME": str(tmp_path)}).llm.model == "at-home"
    with pytest.raises(ConfigError, match="There is no configuration file"):
        load(path=tmp_path / "missing.yaml", environ={})


def test_a_home_that_cannot_be_entered_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if started with the HOME of another account."""

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    assert load(environ={"XDG_CONFIG_HOME": str(tmp_path)}).origin("llm.model") == "default"


def test_every_key_has_a_default_and_an_environment_variable() -> None:
    defaults = dict(loader._flatten(yaml.safe_load(loader.DEFAULTS_FILE.read_text())))
    assert set(defaults) == set(KEYS)
    assert load(environ={"CATO_VECTOR_STORE_HNSW_EF_SEARCH": "400"}).vector_store.hnsw.ef_search == 400


def test_common_names_of_environment_variables_are_accepted(tmp_path: Path) -> None:
    conf = load(
        environ={
            "OPENAI_API_KEY": SECRET,
            "OPENAI_BASE_URL": "https://models.example/v1",
            "DATABASE_URL": "postgresql://db/cato",
            "REDIS_URL": "unix:///run/valkey.sock",
            "CHROMA_URL": "https://chroma.example",
            "SECRET_KEY": "cookies",
            "CATO_DATA_DIR": str(tmp_path),
            "CATO_DUMMY_MODE": "true",
        }
    )
    assert conf.llm.api_key is not None
    assert conf.llm.api_key.get_secret_value() == SECRET
    assert conf.llm.base_url == "https://models.example/v1"
    assert (conf.database_url, conf.redis_url) == ("postgresql://db/cato", "unix:///run/valkey.sock")
    assert conf.chroma_url == "https://chroma.example"
    assert loader.secret_key(conf) == "cookies"
    assert conf.vector_store.path == tmp_path / "vectordb"
    assert conf.dummy_mode


def test_an_empty_variable_is_ignored() -> None:
    assert load(environ={"OPENAI_API_KEY": "", "CATO_PORT": ""}).llm.api_key is None


def test_on_and_off_survive_yaml(file: Path) -> None:
    file.write_text("vector_store: {context_mode: off}")
    assert load(path=file, environ={}).vector_store.context_mode == "off"
    assert load(environ={"CATO_VECTOR_STORE_CONTEXT_MODE": "on"}).vector_store.context_mode == "on"


def test_unknown_keys_cause_a_warning_with_a_suggestion(file: Path) -> None:
    file.write_text("vector_store: {context_result: 3}\nllm:\n")
    conf = load(path=file, environ={"CATO_LLM_MODELL": "x"})
    warnings = "\n".join(conf.warnings)
    assert (
        "vector_store.context_result (from the file) is ignored. Did you mean vector_store.context_results?" in warnings
    )
    assert "CATO_LLM_MODELL" in warnings


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"CATO_PORT": "99999"}, r"server\.port: '99999' \(from the environment, .*CATO_PORT\).*65535"),
        ({"CATO_DUMMY_MODE": "maybe"}, r"dummy_mode: 'maybe' .*boolean"),
        ({"CATO_LLM_TEMPERATURE": "nan"}, r"llm\.temperature: 'nan' .*finite"),
        ({"CATO_VECTOR_STORE_CHUNKING_STRATEGY": "lines"}, r"chunking_strategy: 'lines' .*'semantic' or 'hybrid'"),
        ({"CATO_VECTOR_STORE_CHUNK_SIZE": "2000"}, r"chunk_size \(2000\) .*max_chunk_size \(1250\)"),
        ({"CATO_VECTOR_STORE_COLLECTION_NAME": "!"}, r"collection_name: '!' .*3 to 100 letters"),
        ({"REDIS_URL": "http://me:pw@host"}, r"redis_url: 'http://\*\*\*@host' .*redis:// or rediss:// or unix://"),
        ({"DATABASE_URL": "me:pw@host/db"}, r"database_url: '\*\*\*@host/db' "),
        (
            {"CATO_OPENID_ISSUER": "https://login.example"},
            r"^openid: issuer is set \(https://login\.example\), so client_id",
        ),
        (
            {"CATO_OPENID_ISSUER": "http://login.example"},
            r"openid\.issuer: 'http://login\.example' .*https://.*this machine",
        ),
        ({"CATO_OPENID_ISSUER": "https://me:pw@login.example"}, r"openid\.issuer: .*without a name"),
        ({"CATO_OPENID_SCOPES": "email"}, r"openid\.scopes: 'email' .*the word openid"),
        (
            {"CATO_OPENID_ONLY_EMAILS_OF": "me@halden.example"},
            r"openid\.only_emails_of: .*domains such as example\.org",
        ),
        ({"CATO_LOCATIONS": "folder"}, r"locations: 'folder' .*name=value"),
    ],
)
def test_an_invalid_value_is_reported_with_its_source_and_the_allowed_values(
    environ: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(environ=environ)
    assert re.search(message, str(caught.value)), caught.value
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llm: {max_tokens: true}", r"llm\.max_tokens: True \(from the file .*config\.yaml\).*number"),
        (f"llm: {{api_key: [{SECRET}]}}", r"llm\.api_key: \*\*\* "),
        ("vector_store: 5", "vector_store .*keys of its own"),
        ("- a list", "should hold keys and values"),
        (f"llm: {{api_key: {SECRET}", "not YAML: .*line"),
    ],
)
def test_an_invalid_file_is_reported_without_its_secrets(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path=file, environ={})
    assert re.search(message, str(caught.value)), caught.value
    assert SECRET not in str(caught.value)


def test_secrets_are_always_redacted() -> None:
    conf = load(environ={"OPENAI_API_KEY": SECRET, "DATABASE_URL": f"postgresql://cato:{SECRET}@db/cato"})
    assert conf.database_url is not None
    assert SECRET in conf.database_url
    redacted = loader.redact(conf)
    assert redacted["llm"]["api_key"] == "***"
    assert redacted["database_url"] == "postgresql://***@db/cato"
    assert SECRET not in f"{conf!r}{conf}{redacted}"


def test_a_local_provider_may_use_http_and_its_secret_is_redacted() -> None:
    environ = {"CATO_OPENID_CLIENT_ID": "cato", "CATO_OPENID_CLIENT_SECRET": SECRET}
    for host in ("127.0.0.1:9400", "localhost", "[::1]:9400"):
        conf = load(environ=environ | {"CATO_OPENID_ISSUER": f"http://{host}"})
        assert conf.openid.issuer == f"http://{host}"
        assert loader.redact(conf)["openid"]["client_secret"] == "***"
        assert SECRET not in f"{conf!r}"
    domains = load(environ={"CATO_OPENID_ONLY_EMAILS_OF": "Halden.example, b.example"}).openid.only_emails_of
    assert domains == ["halden.example", "b.example"]


def test_a_comma_at_the_end_of_a_list_adds_nothing_to_it(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.md"
    conf = load(
        environ={
            "CATO_LLM_SYSTEM_PROMPT_FILES": f"{prompt},",
            "CATO_LOCATIONS": f"handbook={tmp_path}, ",
            "CATO_OPENID_ADMINISTRATORS": " it,,ops, ",
            "CATO_OPENID_ONLY_EMAILS_OF": "halden.example,",
        }
    )
    assert conf.llm.system_prompt_files == [prompt]
    assert conf.locations == {"handbook": tmp_path}
    assert conf.openid.administrators == ["it", "ops"]
    assert conf.openid.only_emails_of == ["halden.example"]


def test_a_directory_on_this_machine_needs_no_encryption() -> None:
    """Without `users_base`, which is checked next, no address is accepted."""
    for host in ("127.0.0.1", "127.0.0.2:1389", "[::1]", "localhost"):
        with pytest.raises(ConfigError, match="users_base"):
            load(environ={"CATO_LDAP_URL": f"ldap://{host}"})
    for host in ("10.0.0.7", "localhost.example.org"):
        with pytest.raises(ConfigError, match="not be encrypted"):
            load(environ={"CATO_LDAP_URL": f"ldap://{host}"})


def test_the_configuration_is_immutable() -> None:
    conf = load(environ={})
    with pytest.raises(ValueError, match="frozen"):
        conf.llm.model = "other"


def test_the_data_directory_is_private(tmp_path: Path) -> None:
    conf = load(environ={"CATO_DATA_DIR": str(tmp_path / "a" / "b")})
    loader.ensure_data_dir(conf)
    assert conf.server.data_dir.stat().st_mode & 0o777 == 0o700


def test_an_impossible_data_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    conf = load(environ={"CATO_DATA_DIR": str(tmp_path / "file")})
    with pytest.raises(ConfigError, match=r"server\.data_dir: .*file \(from the environment\) cannot be used"):
        loader.ensure_data_dir(conf)


def test_processes_that_start_together_share_one_secret_key(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        keys = set(pool.map(_key_of, [str(tmp_path)] * 8))
    assert len(keys) == 1
    assert len(keys.pop()) > 40
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600


def test_a_secret_key_needs_no_hard_links(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", fail)

    assert len(_key_of(str(tmp_path))) > 40
    assert (tmp_path / "secret_key").read_text() == _key_of(str(tmp_path))


def test_a_file_without_a_key_left_by_a_process_that_was_killed_gets_one(tmp_path):
    (tmp_path / "secret_key").touch()
    assert len(_key_of(str(tmp_path))) > 40
    assert (tmp_path / "secret_key").read_text() == _key_of(str(tmp_path))


def _key_of(data_dir: str) -> str:
    return loader.secret_key(load(environ={"CATO_DATA_DIR": data_dir}))


def test_serve_always_uses_djangos_password_hasher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")

    planned = plan.build_plan(loader.load(environ={"CATO_DATA_DIR": str(tmp_path)}), tmp_path)

    assert {child.env["DJANGO_SETTINGS_MODULE"] for child in planned.children} == {"cato_web.settings"}
    assert not hasattr(import_module("cato_web.settings"), "PASSWORD_HASHERS")
