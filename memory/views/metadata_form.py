"""Metadata as people write it: a line for each key, values as in JSON, plain texts bare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from memory.errors import InvalidInputError
from memory.text import clean_text


def format_metadata(metadata: Mapping[str, object]) -> str:
    """The lines that `parse_metadata` reads as this metadata."""
    return "\n".join(f"{key}: {_shown(value)}" for key, value in metadata.items())


def parse_metadata(text: str) -> dict[str, Any]:
    """The metadata that such lines say, unchecked. Raises InvalidInputError for a line without a colon."""
    described: dict[str, Any] = {}
    for number, line in enumerate(clean_text(text).splitlines(), start=1):
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise InvalidInputError(_("Line %(number)s has no colon. Write it as key: value.") % {"number": number})
        try:
            described[key.strip()] = json.loads(value)
        except ValueError:
            described[key.strip()] = value.strip()
    return described


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        json.loads(value)
    except ValueError:
        return value
    return json.dumps(value, ensure_ascii=False)  # bare it would be read as a number or the like
