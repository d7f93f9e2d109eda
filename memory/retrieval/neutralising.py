"""Neutralise quoted text so that nothing in it can imitate the frame around a recalled passage or the result of a tool.

Nothing in it can imitate the borders of roles in the templates of chat models either, and nothing in it is invisible.
"""

from __future__ import annotations

import re
import unicodedata

# Opening brackets of tags and their look-alikes, also full-width and small variants and angle brackets.
_BRACKET = re.compile("[<\uff1c\ufe64\u02c2\u1438\u2329\u276e\u27e8\u3008]")
_BRACKET_REPLACEMENT = "‹"
# Letters of the Cyrillic alphabet that look like Latin ones.
_LOOK_ALIKES = str.maketrans("аеорсухіјѕԁһӏԛԝАВЕКМНОРСТХУІЈЅ", "aeopcyxijsdhlqwABEKMHOPCTXYIJS")
_WORD, _LATIN, _CYRILLIC = re.compile(r"\w+"), re.compile("[a-zA-Z]"), re.compile("[\u0400-\u052f]")
# The tokens by which the templates of common models separate roles: ChatML, Llama, Mistral, Gemma, DeepSeek, Qwen. Servers
# that read them in messages, too, would take what follows for a message of its own.
_CONTROL_TOKEN = re.compile(
    r"[<\uff1c](?=[|\uff5c][^|\uff5c<>\s]{1,40}[|\uff5c][>\uff1e])"
    r"|<(?=<?/?(?:s|sys|bos|eos|think|tool_call|tool_response|(?:start|end)_of_turn)>)"
    r"|\[(?=/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT)\])",
    re.IGNORECASE,
)
# Invisible characters that can spell a text that only the model reads: tags, the supplementary variation selectors, and
# longer runs of others. One or two of those are part of words and emoji in many languages.
_HIDDEN = re.compile(
    "[\U000e0000-\U000e01ef]+|[\u00ad\u180e\u200b-\u200f\u2060-\u2065\u206a-\u206f\ufeff]{4,}"
    # Each changes the order in which people read the text around it.
    "|[\u202a-\u202e\u2066-\u2069]"
)
# Ends of a line that only some readers know.
_LINE_ENDS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Number of characters inspected after a bracket, enough for the word with blanks and invisible characters between.
_MAX_TAG_CHARS = 80
_TAG_NAMES = ("passage", "tool_result")
# A line of three or more of these looks like the separator between the recalled passages and the message.
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d")
_RULE_REPLACEMENT = "· · ·"
_FRAME_SENTENCES = (
    "end of the recalled",
    "end of the attached",
    "end of the passages",
    "below are passages",
    "below are the files",
)
_NOT_A_WORD = re.compile(r"^\W*")
_ATTRIBUTE_REPLACEMENTS = str.maketrans({'"': "'", "<": "‹", ">": "›", "\uff1c": "‹", "\uff1e": "›", "\uff02": "'"})


def neutralise(text: str) -> str:
    """Return the text without hidden characters, and with imitations of a frame's tag, rule or sentence altered."""
    text = _LINE_ENDS.sub("\n", _HIDDEN.sub("", text))
    text = _CONTROL_TOKEN.sub(_BRACKET_REPLACEMENT, text)
    text = _BRACKET.sub(lambda found: _BRACKET_REPLACEMENT if _opens_frame_tag(text, found.end()) else found[0], text)
    return "\n".join(map(_neutralise_whole_line, text.split("\n")))


def as_it_looks(text: str) -> str:
    """Return the text without invisible characters, and words that mix Latin and Cyrillic letters in Latin ones."""
    return _WORD.sub(lambda found: _in_latin_letters(found[0]), _visible(text))


def _in_latin_letters(word: str) -> str:
    return word.translate(_LOOK_ALIKES) if _LATIN.search(word) and _CYRILLIC.search(word) else word


def neutralise_line(text: str) -> str:
    """Return the text as an attribute value or a name, on one line.

    Quotation marks and brackets are replaced; invisible characters are removed.
    """
    visible = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text if not _is_invisible(c))
    return " ".join(visible.translate(_ATTRIBUTE_REPLACEMENTS).split())


def _neutralise_whole_line(line: str) -> str:
    if _is_rule(line):
        return _RULE_REPLACEMENT
    words = _NOT_A_WORD.sub("", line)
    return f"{line.removesuffix(words)}“{words}" if _look(words[:_MAX_TAG_CHARS]).startswith(_FRAME_SENTENCES) else line


def _opens_frame_tag(text: str, start: int) -> bool:
    """Return True if the tag name of a frame follows at `start`.

    Matches any case, width and look-alike letters, with blanks or slashes before or inside the name.
    """
    following = _look(text[start : start + _MAX_TAG_CHARS])
    letters = "".join(c for c in following if not (c.isspace() or c in "/\\\u2044\u2215"))
    return letters.startswith(_TAG_NAMES)


def _look(text: str) -> str:
    """Return what a short text looks like: in lower case and usual width, with Latin letters for their look-alikes."""
    return _visible(text).translate(_LOOK_ALIKES).casefold()


def _visible(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text) if not _is_invisible(c))


def _is_rule(line: str) -> bool:
    bare = line.strip()
    if not bare or not (bare[0] in _DASHES or _is_invisible(bare[0])):
        return False
    dashes = [c for c in bare if not (c.isspace() or _is_invisible(c))]
    return len(dashes) >= 3 and _DASHES.issuperset(dashes)


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f"
