"""Pictures and words of a message as the parts that models take."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from chat.models import Image


def content_of(text: str, images: Iterable[Image]) -> str | list[dict[str, Any]]:
    """The content of a message to the model: its text, or a list of parts where there are pictures."""
    addresses = [address for image in images if (address := data_url(image))]
    if not addresses:
        return text
    return [{"type": "text", "text": text}, *({"type": "image_url", "image_url": {"url": url}} for url in addresses)]


def data_url(image: Image) -> str:
    """The picture as an address that carries it; empty where its file is gone."""
    try:
        with image.file.open() as file:
            return f"data:{image.media_type};base64,{base64.b64encode(file.read()).decode()}"
    except FileNotFoundError:
        return ""
