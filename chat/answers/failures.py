"""What a model endpoint did wrong, as a failure with its code and a sentence for the person who asked."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.errors import ModelError

# What servers answer to a request that they understand and will not do; 404 is said for models and for abilities.
_REJECTIONS = (400, 413, 415, 422)
_MAX_WAIT = 24 * 60 * 60  # seconds; no sentence asks anybody to come back later than in a day


def unreachable(host: str) -> ModelError:
    sentence = _("%(host)s cannot be reached. Your message is kept; try again.") % {"host": host}
    return ModelError(sentence, "unreachable")


def timed_out() -> ModelError:
    sentence = _("The model sent nothing for %(seconds)g seconds. Try again.")
    return ModelError(sentence % {"seconds": settings.CATO.llm.timeout_seconds}, "timeout")


def connection_lost(has_begun: bool) -> ModelError:
    if has_begun:
        return ModelError(_("The answer was cut off."), "cut")
    return ModelError(_("The model's server sent no answer. Try again."), "cut")


def failed_midway() -> ModelError:
    return ModelError(_("The model's server failed in the middle of the answer."), "broken")


def unreadable() -> ModelError:
    return ModelError(_("The model's answer could not be read. Try again."), "broken")


def too_long(host: str) -> ModelError:
    return ModelError(_("%(host)s sent more data than an answer may have.") % {"host": host}, "broken")


def compressed(host: str) -> ModelError:
    return ModelError(_("%(host)s sends compressed answers, which Cato does not read.") % {"host": host}, "broken")


def no_models(host: str) -> ModelError:
    return ModelError(_("%(host)s sent no list of models.") % {"host": host}, "broken")


def empty_answer(finish_reason: str) -> ModelError:
    """The model came to its end without a word of an answer."""
    if finish_reason == "length":
        sentence = _(
            "The model reached its limit before it answered. "
            "Ask for less, or ask an administrator to raise llm.max_tokens."
        )
    elif finish_reason == "content_filter":
        sentence = _("The content filter of the model's provider withheld the answer.")
    else:
        sentence = _("The model returned an empty answer.")
    return ModelError(sentence, "empty")


def failure_text(error: ModelError, *, has_text: bool) -> str:
    """Return what the person is told, also of what was received before it failed."""
    saved = _("The partial answer was saved.")
    return f"{error} {saved}" if has_text else str(error)


def cut_off_note(finish_reason: str) -> str:
    """Return why a complete answer does not say all; empty where it does."""
    if finish_reason == "length":
        return _("Cut off at the model's limit.")
    if finish_reason == "content_filter":
        return _("Cut off by the content filter of the model's provider.")
    return ""


def status_error(status: int, retry_after: str, *, host: str, model: str) -> ModelError:
    """For an HTTP status that is not 2xx; `retry_after` is the header of that name, or empty."""
    facts = {"host": host, "model": model, "status": status}
    if status == 429:
        sentence = _("Rate limited by the model endpoint.")
        return ModelError(f"{sentence} {_when(retry_after)}", "rate_limited")
    if status in (401, 403):
        return ModelError(_("%(host)s refuses the API key. An administrator can change it.") % facts, "refused")
    if status == 404:
        return ModelError(_("%(host)s does not know the model %(model)s.") % facts, "rejected")
    if status in _REJECTIONS:
        return ModelError(_("The model endpoint rejected the request (HTTP %(status)s).") % facts, "rejected")
    if 300 <= status < 400:
        sentence = _(
            "%(host)s redirects to another address (HTTP %(status)s), and Cato sends no prompt there. "
            "An administrator can enter that address in the settings."
        )
        return ModelError(sentence % facts, "refused")
    sentence = _("The model's server failed (HTTP %(status)s).") % facts
    return ModelError(f"{sentence} {_when(retry_after)}", "broken")


def _when(retry_after: str) -> str:
    """Return when to try again: the header gives seconds or a date."""
    said = retry_after.strip()
    try:
        seconds = float(said) if said[:1].isdigit() else parsedate_to_datetime(said).timestamp() - time.time()
    except (ValueError, OverflowError):
        return _("Try again.")
    if not 0 < seconds <= _MAX_WAIT:
        return _("Try again.")
    if seconds <= 120:
        count = max(1, round(seconds))
        return ngettext("Try again in %(count)d second.", "Try again in %(count)d seconds.", count) % {"count": count}
    count = round(seconds / 60)
    return ngettext("Try again in %(count)d minute.", "Try again in %(count)d minutes.", count) % {"count": count}
