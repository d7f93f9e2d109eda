"""Types of settings, with the checks and conversions of what a user has written."""

from __future__ import annotations

import ipaddress
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field


def url_with_scheme(*schemes: str) -> AfterValidator:
    """Return the check that an address begins with one of these schemes."""
    prefixes = " or ".join(f"{scheme}://" for scheme in schemes)

    def check(url: str) -> str:
        if urlsplit(url).scheme not in schemes:
            raise ValueError(f"it should be an address that begins with {prefixes}")
        return url

    return AfterValidator(check)


def split_list(value: object) -> object:
    """Return the parts of a text between commas, as environment variables have them, without empty ones."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _check_origin(origin: str) -> str:
    """Check an origin as browsers send it: scheme and host in lower case, with a port unless it is the usual one."""
    if not re.fullmatch(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?", origin):
        raise ValueError("it should be an origin without a path, such as https://chat.example.org")
    return origin


def split_pairs(value: object) -> object:
    """Return the pairs in a text, as environment variables have them: names with folders or other names."""
    if not isinstance(value, str):
        return value
    parts = [part for part in value.split(",") if part.strip()]
    if any("=" not in part for part in parts):
        raise ValueError("it should be name=value, several separated by commas")
    pairs = (part.split("=", 1) for part in parts)
    return {alias.strip(): folder.strip() for alias, folder in pairs}


def check_collection_prefix(name: str) -> str:
    """Check the prefix of collection names, to which ids are appended.

    Chroma accepts 3 to 512 of these characters.
    """
    if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9._-]{2,99}", name):
        raise ValueError("it should be 3 to 100 letters, digits, dots, dashes or underscores, a letter or digit first")
    return name


def check_issuer(url: str) -> str:
    """Check the issuer, which identity tokens name; it must use HTTPS unless it is on this machine."""
    parts = urlsplit(url)
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("it should be the provider's address alone, without a name, ? or #")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("it should begin with https://; http:// is for a provider on this machine (127.0.0.1)")
    return url


def is_loopback(host: str) -> bool:
    """Return whether the address or name is that of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_scopes(text: str) -> str:
    """Check the scopes of OpenID Connect, of which one is required."""
    if "openid" not in text.split():
        raise ValueError("it should hold the word openid, others after a space")
    return text


def check_domain(name: str) -> str:
    """Check the name of a domain, and return it in lower case."""
    if not re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z0-9-]+", name.lower()):
        raise ValueError("it should be domains such as example.org, several separated by commas")
    return name.lower()


def mode_from_bool(value: object) -> object:
    """Undo YAML's conversion of on and off to booleans."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


Origins = Annotated[list[Annotated[str, AfterValidator(_check_origin)]], BeforeValidator(split_list)]
# For URLs that may contain a password.
NO_REPR = Field(repr=False)
WebUrl = Annotated[str, url_with_scheme("http", "https")]
FilePath = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
Fraction = Annotated[float, Field(ge=0, le=1)]
Similarity = Annotated[float, Field(ge=-1, le=1)]
Count = Annotated[int, Field(ge=1)]


def plain_types(annotation: Any) -> Iterator[Any]:
    """Yield the types that a field accepts, without Annotated and without types of members."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from plain_types(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from plain_types(part)
    else:
        yield annotation
