"""Failures of a model endpoint as ModelErrors, each with a code and a message for the user."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.errors import NO_REASON, EndpointReason, KeyRefusedError, ModelError, UnknownModelError

# The codes of failures of an endpoint that does not respond.
NOT_RESPONDING = ("unreachable", "timeout")
# Those of a request to which an endpoint sent no answer, so that another one may be asked.
WITHOUT_ANSWER = ("unreachable", "timeout", "rate_limited", "refused", "broken", "cut")
# A request with more tokens than the model's context: OpenAI's code, and the texts of vLLM, llama.cpp, Mistral and Anthropic.
_TOO_LONG = "context_length_exceeded"
_TOO_LONG_TEXT = re.compile(r"maximum context length|available context size|prompt is too long", re.IGNORECASE)
# OpenAI's code with the status 429; others answer 402.
_NO_CREDIT = "insufficient_quota"
# Statuses of a request that the server rejects; 404 means an unknown model if the request names one.
_REJECTIONS = (400, 404, 413, 415, 422)
# Codes and types of error events of OpenAI and Anthropic, with the HTTP status that they correspond to.
_NAMED_STATUSES = {"rate_limit_exceeded": 429, "rate_limit_error": 429, "invalid_request_error": 400}
# What llama.cpp says with the status 500 about tools (without --jinja) and images, so that they are left out.
_UNSUPPORTED_TEXT = re.compile(r"^tools param|^unsupported param: tools|^image input is not supported", re.IGNORECASE)
_MAX_WAIT = 24 * 60 * 60  # seconds; a longer Retry-After is ignored
_MAX_CLIENT_WAIT = 60 * 60  # seconds; clients are told to try again after an hour at the latest


def unreachable(host: str) -> ModelError:
    """Return the error for a host without a connection."""
    sentence = _("%(host)s cannot be reached. Your message is kept; try again.") % {"host": host}
    return ModelError(sentence, "unreachable")


def timed_out() -> ModelError:
    """Return the error for a model that sent nothing within `llm.timeout_seconds`."""
    sentence = _("The model sent nothing for %(seconds)g seconds. Try again.")
    return ModelError(sentence % {"seconds": settings.CATO.llm.timeout_seconds}, "timeout")


def connection_lost(has_begun: bool) -> ModelError:
    """Return the error for a connection that ended before, or during, the answer."""
    if has_begun:
        return ModelError(_("The answer was cut off."), "cut")
    return ModelError(_("The model's server sent no answer. Try again."), "cut")


def unreadable() -> ModelError:
    """Return the error for a response that cannot be parsed."""
    return ModelError(_("The model's answer could not be read. Try again."), "broken")


def too_long(host: str) -> ModelError:
    """Return the error for a response over the size limit."""
    return ModelError(_("%(host)s sent more data than an answer may have.") % {"host": host}, "broken")


def compressed(host: str) -> ModelError:
    """Return the error for a compressed response."""
    return ModelError(_("%(host)s sends compressed answers, which Cato does not read.") % {"host": host}, "broken")


def no_models(host: str) -> ModelError:
    """Return the error for an invalid list of models."""
    return ModelError(_("%(host)s sent no list of models.") % {"host": host}, "broken")


def empty_answer(finish_reason: str) -> ModelError:
    """Return the error for an answer without text."""
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
    """Return the message for the user, which mentions a saved partial answer."""
    saved = _("The partial answer was saved.")
    return f"{error} {saved}" if has_text else str(error)


def with_reason(message: str, reason: EndpointReason) -> str:
    """Return a message about a failure, followed by the endpoint's own reason if it said one."""
    if not reason.message:
        return message
    said = _("The endpoint's reason: %(reason)s") % {"reason": reason.message}
    return f"{message} {said}"


def cut_off_note(finish_reason: str) -> str:
    """Return why a complete answer was cut off, or ""."""
    if finish_reason == "length":
        return _("Cut off at the model's limit.")
    if finish_reason == "content_filter":
        return _("Cut off by the content filter of the model's provider.")
    return ""


def is_too_long(reason: EndpointReason) -> bool:
    """Return whether the request has more tokens than the model's context."""
    return reason.code == _TOO_LONG or bool(_TOO_LONG_TEXT.search(reason.message))


def status_error(
    status: int, retry_after: str, *, host: str, model: str, reason: EndpointReason = NO_REASON
) -> ModelError:
    """Return the error for an HTTP status other than 2xx; `retry_after` is the header of that name, or "".

    `reason` is left out of errors that are not about the request: it is for administrators then.
    """
    facts = {"host": host, "model": model, "status": status}
    wait = _wait(retry_after)
    client_wait = None if wait is None else min(wait, _MAX_CLIENT_WAIT)
    if status == 402 or reason.code == _NO_CREDIT:
        return ModelError(
            _("The account at %(host)s has no credit left. An administrator can add some.") % facts, "refused"
        )
    if status == 429:
        sentence = _("Rate limited by the model endpoint.")
        return ModelError(f"{sentence} {_when(wait)}", "rate_limited", replace(reason, retry_after=client_wait))
    if status in (401, 403):
        return KeyRefusedError(_("%(host)s refuses the API key. An administrator can change it.") % facts)
    if status == 404 and model:
        sentence = _(
            "%(host)s does not know the model %(model)s. Choose another one below the message field, "
            "or ask an administrator to change it in the settings."
        )
        return UnknownModelError(sentence % facts)
    if status in _REJECTIONS and is_too_long(reason):
        return ModelError(
            _("This is more than the model can read. Send less, or choose another model."), "rejected", reason
        )
    if status in _REJECTIONS or _UNSUPPORTED_TEXT.search(reason.message):
        sentence = _("The model endpoint rejected the request (HTTP %(status)s).")
        return ModelError(sentence % facts, "rejected", reason)
    if 300 <= status < 400:
        sentence = _(
            "%(host)s redirects to another address (HTTP %(status)s), and Cato sends no prompt there. "
            "An administrator can enter that address in the settings."
        )
        return ModelError(sentence % facts, "refused")
    sentence = _("The model's server failed (HTTP %(status)s).") % facts
    return ModelError(f"{sentence} {_when(wait)}", "broken", EndpointReason(retry_after=client_wait))


def event_error(code: Any, *, host: str, model: str, reason: EndpointReason, has_begun: bool) -> ModelError:
    """Return the error for an error event in a stream, classified by the HTTP status in its `code` or by its names.

    `has_begun`: a part of the answer has arrived.
    """
    if isinstance(code, int | str) and re.fullmatch(r"[45]\d\d", str(code)):
        status = int(code)
    elif is_too_long(reason):
        status = 400
    else:
        status = next((_NAMED_STATUSES[name] for name in (reason.code, reason.kind) if name in _NAMED_STATUSES), 500)
    failure = status_error(status, "", host=host, model=model, reason=reason)
    if failure.code != "broken":
        return failure
    # The response itself had the status 200.
    if has_begun:
        return ModelError(_("The model's server failed in the middle of the answer."), "broken")
    return ModelError(_("The model's server sent no answer. Try again."), "broken")


def _wait(retry_after: str) -> int | None:
    """Return the seconds of the header, which contains seconds or a date; None if there are none, or too many."""
    value = retry_after.strip()
    try:
        seconds = float(value) if value[:1].isdigit() else parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return max(1, round(seconds)) if 0 < seconds <= _MAX_WAIT else None


def _when(seconds: int | None) -> str:
    """Return when to try again."""
    if seconds is None:
        return _("Try again.")
    if seconds <= 120:
        text = ngettext("Try again in %(count)d second.", "Try again in %(count)d seconds.", seconds)
        return text % {"count": seconds}
    count = round(seconds / 60)
    return ngettext("Try again in %(count)d minute.", "Try again in %(count)d minutes.", count) % {"count": count}
