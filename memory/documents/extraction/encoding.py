"""Decode bytes of any encoding: the declared one, UTF-8, or the most plausible one."""

from __future__ import annotations

import codecs
import re

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # UTF-32 first, since its mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Encodings before UTF-8, common ones first, since the first of equally plausible ones is taken. Rare ones are left
# out, because short texts are mistaken for them.
_LEGACY = [
    "cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257",
    "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp874", "mac_roman",
]  # fmt: skip
# Names under which browsers read a larger encoding, because texts use its additional characters, such as quotation marks.
_SUPERSETS = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949",
}  # fmt: skip
_SAMPLE_BYTES = 65_536
_CONTROL_BYTES = bytes(sorted(set(range(32)) - set(b"\t\n\v\f\r\x1b"))) + b"\x7f"
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w-]{2,40})""", re.IGNORECASE)


def looks_like_text(head: bytes) -> bool:
    """Return True if `head`, the first bytes of a file, is text in some encoding, with almost no control characters."""
    if head.startswith(tuple(bom for bom, _ in _BOMS)) or _utf16_without_bom(head):
        return True
    controls = len(head) - len(head.translate(None, _CONTROL_BYTES))
    return b"\0" not in head and controls * 200 <= len(head)


def decode(data: bytes, *, declared: str = "") -> str:
    """Return the text of `data`. `declared` is used if it is a known encoding and `data` is not UTF-8."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data.decode(encoding, "replace")
    sample = data[:_SAMPLE_BYTES]
    # ISO-2022-JP is all ASCII, so it would be accepted as UTF-8.
    if b"\x1b$" in sample or b"\x1b(J" in sample:
        return data.decode("iso2022_jp", "replace")
    if wide := _utf16_without_bom(sample):
        return data.decode(wide, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        error_at = error.start
    if encoding := legacy_encoding(declared):
        return data.decode(encoding, "replace")
    # A single invalid byte does not mean another encoding.
    text = data.decode("utf-8", "replace")
    if text.count("\ufffd") * 20 < len(text) - len(text.encode("ascii", "ignore")):
        return text
    return data.decode(_most_plausible(data, error_at), "replace")


def declared_in(data: bytes) -> str:
    """Return the encoding that HTML or XML declares in its first bytes, or ""."""
    found = _DECLARED.search(data[:2048])
    return found[1].decode("ascii") if found else ""


def legacy_encoding(name: str) -> str:
    """Return the encoding from before UTF-8 that browsers read under a name; "" if it names none."""
    try:
        found = codecs.lookup(name)
    except LookupError:
        return ""
    # Python's list also has "hex" and "zip", and some for the names of hosts, which cannot replace invalid bytes.
    if not found._is_text_encoding or found.name in ("utf-8", "idna", "punycode", "undefined"):
        return ""
    return _SUPERSETS.get(found.name, found.name)


def _utf16_without_bom(head: bytes) -> str:
    """Return the UTF-16 variant of mostly ASCII letters, recognised by a zero in every other byte, or ""."""
    zeros_first, zeros_second = head[0::2].count(0), head[1::2].count(0)
    pairs = len(head) // 2
    if pairs and zeros_second * 10 > pairs * 7 and zeros_first * 50 < pairs:
        return "utf-16-le"
    if pairs and zeros_first * 10 > pairs * 7 and zeros_second * 50 < pairs:
        return "utf-16-be"
    return ""


def _most_plausible(data: bytes, error_at: int) -> str:
    """Return the legacy encoding in which the lines from `error_at` on look most like a language."""
    from charset_normalizer import from_bytes

    start = max(data.rfind(b"\n", 0, error_at), error_at - _SAMPLE_BYTES, -1) + 1
    sample = data[start : start + _SAMPLE_BYTES]
    # A cut character would count against the right encoding.
    sample = sample[: sample.rfind(b"\n") + 1] or sample
    matches = from_bytes(sample, cp_isolation=_LEGACY, enable_fallback=False)
    scores = [(round(m.chaos - m.coherence / 10, 2), _LEGACY.index(m.encoding), m.encoding) for m in matches]
    return min(scores)[2] if scores else _LEGACY[0]
