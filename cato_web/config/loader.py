"""Load the configuration into one typed object, from command line, environment, file and defaults in this order."""

from __future__ import annotations

import difflib
import fcntl
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from pydantic import SecretStr, ValidationError

from cato_web.config.fields import plain_types
from cato_web.config.schema import KEYS, SECTIONS, Config, Origin

_KEY_FILE = "secret_key"
DEFAULTS_FILE = Path(__file__).parents[1] / "defaults.yaml"

# Common or short names, in addition to CATO_<SECTION>_<KEY>; the first one that is set wins.
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
    """The configuration is invalid."""


def load(
    *,
    path: Path | None = None,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the configuration.

    `path` is the user's file (default: CATO_CONFIG_FILE, or ~/.config/cato/config.yaml if it exists). `overrides` are
    command line values by dotted key (None: not given). `environ` defaults to the process's environment. Raises
    ConfigError with key, value, origin and the allowed values.
    """
    environ = os.environ if environ is None else environ
    values = dict(_flatten(_read_yaml(DEFAULTS_FILE)))
    origins: dict[str, Origin] = {}
    warnings: list[str] = []
    file = _user_file(path, environ)
    layers: list[tuple[Origin, dict[str, object]]] = [
        ("file", dict(_flatten(_read_yaml(file))) if file else {}),
        ("environment", _from_environment(environ)),
        ("command line", {key: value for key, value in (overrides or {}).items() if value is not None}),
    ]
    for origin, layer in layers:
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


def redact(config: Config) -> dict[str, Any]:
    """Return the settings as plain values, without secrets and without passwords in URLs."""
    return {key: _mask(key, value) for key, value in config.model_dump(mode="python").items()}


def ensure_data_dir(config: Config) -> None:
    """Create the data directory with mode 700. Raises ConfigError if it cannot be written."""
    directory = config.server.data_dir
    label = f"server.data_dir: {directory} (from the {config.origin('server.data_dir')})"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # New, or a volume just mounted. A directory in use keeps its mode.
        if not any(directory.iterdir()):
            directory.chmod(0o700)
    except OSError as error:
        raise ConfigError(f"{label} cannot be used: {error.strerror}. Name one you may write to.") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ConfigError(f"{label} cannot be written to. Name one you may write to.")


def secret_key(config: Config) -> str:
    """Return the key that signs cookies: the configured one, or one generated once in data_dir (mode 600)."""
    if config.secret_key is not None:
        return config.secret_key.get_secret_value()
    path = config.server.data_dir / _KEY_FILE
    with suppress(FileNotFoundError):
        if key := path.read_text().strip():
            return key
    # Locked, not linked into place: some file systems have no hard links. A process that was killed leaves it empty.
    with open(path, "a+", opener=partial(os.open, mode=0o600)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        key = file.read().strip()
        if not key:
            key = secrets.token_urlsafe(48)
            file.write(key)
        return key


def keep_secret_key(config: Config, key: str) -> bool:
    """Replace the generated key by a restored one; return False if a key is configured, which stays."""
    if config.secret_key is not None:
        return False
    path = config.server.data_dir / _KEY_FILE
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    temporary.touch(mode=0o600)
    temporary.write_text(key)
    temporary.replace(path)
    return True


def _user_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    name = path or environ.get("CATO_CONFIG_FILE")
    if name:
        file = Path(name).expanduser().absolute()
        if not _is_file(file):
            raise ConfigError(f"There is no configuration file {file}.")
        return file
    home = Path(environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    file = home / "cato" / "config.yaml"
    return file if _is_file(file) else None


def _is_file(path: Path) -> bool:
    """Return whether there is such a file in a folder that can be entered: HOME can be that of another account."""
    try:
        return path.is_file()
    except PermissionError:
        return False


def _read_yaml(file: Path) -> dict[str, object]:
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:  # its message quotes the line, which may contain a secret
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
        elif value is not None or key not in SECTIONS:  # ignore empty sections
            yield key, value


def _nest(values: Mapping[str, object]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        section_values = nested
        for section in sections:
            section_values = section_values.setdefault(section, {})
        section_values[name] = value
    return nested


def _variables(key: str) -> tuple[str, ...]:
    """Return the environment variables of a key; the first one that is set wins."""
    return ("CATO_" + key.replace(".", "_").upper(), *ENVIRONMENT_ALIASES.get(key, ()))


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for key in KEYS:
        value = next((environ[name] for name in _variables(key) if environ.get(name)), None)
        if value is not None:
            values[key] = value
    return values


def _unknown_variables(environ: Mapping[str, str]) -> list[str]:
    known = {name for key in KEYS for name in _variables(key)}
    sections = tuple(f"CATO_{name.upper()}_" for name in SECTIONS if "." not in name)
    return [
        f"Unknown environment variable {name} is ignored."
        for name in sorted(environ)
        if name.startswith(sections) and name not in known
    ]


def _suggestion(key: str) -> str:
    matches = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.75)
    return f" Did you mean {matches[0]}?" if matches else ""


def _fill_in(value: object, data_dir: str) -> object:
    return value.replace("{data_dir}", data_dir) if isinstance(value, str) else value


def _format_errors(
    error: ValidationError, values: Mapping[str, object], origins: Mapping[str, Origin], file: Path | None
) -> str:
    """Return one line per invalid value."""
    lines = []
    for item in error.errors(include_url=False, include_context=False):
        location = [str(part) for part in item["loc"]]
        key = next(
            (k for n in range(len(location), 0, -1) if (k := ".".join(location[:n])) in KEYS), ".".join(location)
        )
        rule = item["msg"].removeprefix("Value error, ").replace("Input should", "it should").rstrip(".")
        if key not in KEYS:  # raised by a validator of the whole section
            lines.append(f"{key}: {rule}.")
            continue
        origin = origins.get(key, "default")
        detail = {"file": f" {file}", "environment": f", {' or '.join(_variables(key))}"}.get(origin, "")
        display = "***" if SecretStr in plain_types(KEYS[key]) else repr(_mask(key, values.get(key)))
        lines.append(f"{key}: {display} (from the {origin}{detail}) is not allowed: {rule}.")
    return "\n".join(dict.fromkeys(lines))


def _mask(key: str, value: object) -> Any:
    if isinstance(value, dict):
        return {name: _mask(name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_mask(key, item) for item in value]
    if isinstance(value, SecretStr):
        return "***"
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and key.endswith(("_url", "issuer")):
        return re.sub(r"^(\w+://)?.*@", r"\1***@", value)
    return value
