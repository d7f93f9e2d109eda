"""Extract email: sender, recipients, date, subject, message, and the names of attachments."""

from __future__ import annotations

import re
from email import message_from_bytes, policy
from email.message import MIMEPart
from typing import BinaryIO

from memory.documents.extraction.builder import TextBuilder, collapse_whitespace
from memory.documents.extraction.encoding import decode
from memory.documents.extraction.html import add_page
from memory.documents.extraction.result import ExtractionLimits
from memory.errors import ExtractionError, gettext_noop

# The parser checks all open parts for each line, so its time grows quadratically with their number.
_MAX_MULTIPARTS = 500
_MULTIPART = re.compile(rb"^content-type:\s{0,20}multipart/", re.IGNORECASE | re.MULTILINE)
_HEADERS = ("From", "To", "Cc", "Date", "Subject")


def read(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add the message in `file`, from its plain text if it has both plain text and HTML."""
    data = file.read()
    if len(_MULTIPART.findall(data)) > _MAX_MULTIPARTS:
        sentence = gettext_noop("This email has more than %(most)s parts within parts. Save its text and upload that.")
        raise ExtractionError(sentence, most=_MAX_MULTIPARTS)
    message = message_from_bytes(data, policy=policy.default)
    for name in _HEADERS:
        if value := collapse_whitespace(str(message.get(name, ""))):
            builder.line(f"{name}: {value}")
    for preferred in ("plain", "html"):
        part = message.get_body((preferred,))
        if part is not None and (body := _text_of(part)).strip():
            if preferred == "html":
                add_page(body, builder)
            else:
                builder.block(body)
            break
    for attached in message.iter_attachments():
        builder.block(f"Attachment: {_name_of(attached)}")
    builder.title = collapse_whitespace(str(message.get("Subject", "")))


def _text_of(part: MIMEPart) -> str:
    data = part.get_payload(decode=True)
    return decode(data, declared=part.get_content_charset("")) if isinstance(data, bytes) else ""


def _name_of(part: MIMEPart) -> str:
    return collapse_whitespace(part.get_filename() or "") or f"without a name ({part.get_content_type()})"
