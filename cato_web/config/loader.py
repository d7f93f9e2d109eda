"""Reads the configuration into one typed object: command line, environment, file, defaults, in this order."""

from __future__ import annotations

import difflib
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import SecretStr, ValidationError

from cato_web.config.schema import KEYS, SECTIONS, Config, Origin, plain_types

_KEY_FILE = "secret_key"
DEFAULTS_FILE = Path(__file__).parents[1] / "defaults.yaml"

# Names that are usual elsewhere or short, beside the systematic CATO_<SECTION>_<KEY>; the first one set wins.
ENVIRONMENT_ALIASES: dict[str, tuple[str, ...]] = {
    "server.data_dir": ("CATO_DATA_DIR",),
    "server.host": ("CATO_HOST",),
    "server.port": ("CATO_PORT",),
    "server.public_url": ("CATO_PUBLIC_URL",),
    "llm.api_key": ("OPENAI_API_KEY",),
    "llm.base_url": ("OPENAI_BASE_URL",),
    "database_url": ("DATABASE_URL",),
    "redis_url": ("REDIS_URL",),
    "chroma_url": ("CHROMA_URL",),
    "secret_key": ("SECRET_KEY",),
}


class ConfigError(Exception):
    """A value of the configuration that cannot be worked with; the message is for the person who set it."""


def load(
    *,
    path: Path | None = None,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the configuration.

    `path` is the user's file (else CATO_CONFIG_FILE, else ~/.config/cato/config.yaml where it exists);
    `overrides` are the command line's values by dotted key (None: not given); `environ` is the process's own
    unless given. Raises ConfigError, with a sentence that names key, value, origin and what is allowed.
    """
    environ = os.environ if environ is None else environ
    values = dict(_flatten(_read_yaml(DEFAULTS_FILE)))
    origins: dict[str, Origin] = {}
    warnings: list[str] = []
    file = _user_file(path, environ)
    given: list[tuple[Origin, dict[str, object]]] = [
        ("file", dict(_flatten(_read_yaml(file))) if file else {}),
        ("environment", _from_environment(environ)),
        ("command line", {key: value for key, value in (overrides or {}).items() if value is not None}),
    ]
    for origin, layer in given:
        for key, value in layer.items():
            if key not in KEYS:
                if key in SECTIONS:
                    raise ConfigError(f"{key} (from the {origin}) should hold keys of its own, not a value.")
                warnings.append(f"Unknown key {key} (from the {origin}) is ignored.{_suggestion(key)}")
                continue
            values[key] = value
            origins[key] = origin
    warnings += _unknown_variables(environ)
    data_dir = os.path.expanduser(str(values["server.data_dir"]))
    values = {key: _fill_in(value, data_dir) for key, value in values.items()}
    try:
        config = Config.model_validate(_nest(values))
    except ValidationError as error:
        raise ConfigError(_format_errors(error, values, origins, file)) from None
    config._origins, config._warnings, config._file = origins, tuple(warnings), file
    return config


def redacted(config: Config) -> dict[str, Any]:
    """The settings in force as plain values for people to read: secrets as ***, no passwords in addresses."""
    return {key: _masked(key, value) for key, value in config.model_dump(mode="python").items()}


def ensure_data_dir(config: Config) -> None:
    """Make the data directory, closed to others (mode 700). Raises ConfigError where it cannot be written."""
    folder = config.server.data_dir
    said = f"server.data_dir: {folder} (from the {config.origin('server.data_dir')})"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # New, or a volume just mounted. A folder in use keeps the mode its owner gave it.
        if not any(folder.iterdir()):
            folder.chmod(0o700)
    except OSError as error:
        raise ConfigError(f"{said} cannot be used: {error.strerror}. Name one you may write to.") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{said} cannot be written to. Name one you may write to.")


def secret_key(config: Config) -> str:
    """The key that signs cookies: the configured one, else one made once and kept in data_dir (mode 600)."""
    if config.secret_key is not None:
        return config.secret_key.get_secret_value()
    kept = config.server.data_dir / _KEY_FILE
    if not kept.exists():
        draft = _draft_of(kept, secrets.token_urlsafe(48))
        try:
            os.link(draft, kept)  # fails where another process was first, and never shows half a key
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return kept.read_text().strip()


def keep_secret_key(config: Config, key: str) -> bool:
    """Let this key of before take the place of the one made here; False where a key is configured, which stays."""
    if config.secret_key is not None:
        return False
    kept = config.server.data_dir / _KEY_FILE
    _draft_of(kept, key).replace(kept)
    return True


def _draft_of(kept: Path, key: str) -> Path:
    draft = kept.with_name(f"{kept.name}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600)
    draft.write_text(key)
    return draft


def _user_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    named = path or environ.get("CATO_CONFIG_FILE")
    if named:
        file = Path(named).expanduser().absolute()
        if not file.is_file():
            raise ConfigError(f"There is no configuration file {file}.")
        return file
    home = Path(environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    file = home / "cato" / "config.yaml"
    return file if file.is_file() else None


def _read_yaml(file: Path) -> dict[str, object]:
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:  # its own text would quote the line, which may hold a secret
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        message = f"The configuration file {file} is not YAML: {error.problem}, line {line}."
        raise ConfigError(message) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"The configuration file {file} cannot be read: {error}.") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"The configuration file {file} should hold keys and values.")
    return data


def _flatten(data: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in data.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in KEYS:
            yield from _flatten(value, f"{key}.")
        elif value is not None or key not in SECTIONS:  # a section left empty in a file says nothing
            yield key, value


def _nest(values: Mapping[str, object]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    return nested


def _variables(key: str) -> tuple[str, ...]:
    """Names of the environment variables that set a key, the first one set wins."""
    return ("CATO_" + key.replace(".", "_").upper(), *ENVIRONMENT_ALIASES.get(key, ()))


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key in KEYS:
        value = next((environ[name] for name in _variables(key) if environ.get(name)), None)
        if value is not None:
            found[key] = value
    return found


def _unknown_variables(environ: Mapping[str, str]) -> list[str]:
    known = {name for key in KEYS for name in _variables(key)}
    sections = tuple(f"CATO_{name.upper()}_" for name in SECTIONS if "." not in name)
    return [
        f"Unknown environment variable {name} is ignored."
        for name in sorted(environ)
        if name.startswith(sections) and name not in known
    ]


def _suggestion(key: str) -> str:
    near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.75)
    return f" Did you mean {near[0]}?" if near else ""


def _fill_in(value: object, data_dir: str) -> object:
    return value.replace("{data_dir}", data_dir) if isinstance(value, str) else value


def _format_errors(
    error: ValidationError, values: Mapping[str, object], origins: Mapping[str, Origin], file: Path | None
) -> str:
    """One line for each wrong value."""
    lines = []
    for item in error.errors(include_url=False, include_context=False):
        spot = [str(part) for part in item["loc"]]
        key = next((k for n in range(len(spot), 0, -1) if (k := ".".join(spot[:n])) in KEYS), ".".join(spot))
        rule = item["msg"].removeprefix("Value error, ").replace("Input should", "it should").rstrip(".")
        if key not in KEYS:  # two values that do not agree
            lines.append(f"{key}: {rule}.")
            continue
        origin = origins.get(key, "default")
        detail = {"file": f" {file}", "environment": f", {' or '.join(_variables(key))}"}.get(origin, "")
        shown = "***" if SecretStr in plain_types(KEYS[key]) else repr(_masked(key, values.get(key)))
        lines.append(f"{key}: {shown} (from the {origin}{detail}) is not allowed: {rule}.")
    return "\n".join(dict.fromkeys(lines))


def _masked(key: str, value: object) -> Any:
    if isinstance(value, dict):
        return {name: _masked(name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(key, item) for item in value]
    if isinstance(value, SecretStr):
        return "***"
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and key.endswith(("_url", "issuer")):
        return re.sub(r"^(\w+://)?.*@", r"\1***@", value)
    return value
