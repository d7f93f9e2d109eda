"""Errors in OpenAI's format."""

from __future__ import annotations

from typing import Any

from django.http import JsonResponse
from django.utils.translation import gettext as _

from cato_web.errors import INTERNAL_ERROR, status_of
from chat.errors import NO_REASON, EndpointReason, ModelError, ThreadBusyError
from chat.llm.failures import with_reason
from chat.models import Turn
from memory.api import CatoError, EmbeddingError

INVALID, PERMISSION, RATE, SERVER = "invalid_request_error", "permission_error", "rate_limit_error", "server_error"
# By error code of the model endpoint; clients retry after 429 and 5xx.
_MODEL_FAILURES = {
    "rate_limited": (429, RATE),
    "limit_reached": (429, RATE),
    "rejected": (400, INVALID),
    "timeout": (504, SERVER),
}
_KINDS = {403: PERMISSION, 429: RATE}
# OpenAI's codes, the only ones that its clients know.
_CODES = {
    "no_token": "invalid_api_key",
    "scope_missing": "missing_scope",
    "not_found": "not_found",
    "too_fast": "rate_limit_exceeded",
    "limit_reached": "insufficient_quota",
}


class OpenAIError(Exception):
    """An error response: status, message, OpenAI's type, code and parameter, and seconds until the next try."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = INVALID,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.code, self.param, self.retry_after = status, kind, code, param, retry_after

    @property
    def body(self) -> dict[str, Any]:
        """Return the JSON body."""
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}}

    @property
    def response(self) -> JsonResponse:
        """Return the HTTP response."""
        response = JsonResponse(self.body, status=self.status)
        if self.status == 401:
            response["WWW-Authenticate"] = "Bearer"
        if self.retry_after is not None:
            response["Retry-After"] = str(self.retry_after)
        return response


def openai_error_of(error: CatoError) -> OpenAIError:
    """Convert an error, with the status of ERROR_TABLE."""
    if isinstance(error, ModelError):
        return model_failure(error.code, str(error), error.reason)
    status, code = status_of(error)
    if isinstance(error, EmbeddingError) and error.permanent:
        status = 500
    elif status == 422:
        status = 400
    kind = SERVER if status >= 500 else _KINDS.get(status, INVALID)
    name = "still_answering" if isinstance(error, ThreadBusyError) else _CODES.get(code)
    return OpenAIError(str(error), status=status, kind=kind, code=name)


def internal_error() -> OpenAIError:
    """Return the error for an unexpected exception, whose details clients do not get."""
    return OpenAIError(_(INTERNAL_ERROR), status=500, kind=SERVER)


def model_failure(code: str, message: str, reason: EndpointReason = NO_REASON) -> OpenAIError:
    """Return the error for a failed answer, with the endpoint's own reason, code and type, which clients know."""
    status, kind = _MODEL_FAILURES.get(code, (502, SERVER))
    if status == 502 and reason.retry_after is not None:
        status = 503
    return OpenAIError(
        with_reason(message or _("The answer was interrupted."), reason),
        status=status,
        kind=reason.kind or kind,
        code=reason.code or code or "interrupted",
        retry_after=reason.retry_after,
    )


def answer_failure(turn: Turn) -> OpenAIError:
    """Return the error for the failed answer of a turn."""
    return model_failure(turn.error_code, turn.error, EndpointReason.from_json(turn.endpoint_reason))


def unsupported(sentence: str, param: str) -> OpenAIError:
    """Return the error for a parameter that Cato does not support, or not with this value."""
    return OpenAIError(sentence, code="unsupported_parameter", param=param)


def no_chat_model(name: str) -> OpenAIError:
    """Return the error for a model that embeds texts."""
    sentence = _("%(name)s embeds texts and does not chat; choose a model of the type chat.") % {"name": name}
    return OpenAIError(sentence, param="model")


def no_such_model(name: str) -> OpenAIError:
    """Return the error for an unknown model."""
    sentence = _("There is no model %(name)s here; /v1/models lists what there is.") % {"name": name}
    return OpenAIError(sentence, status=404, code="model_not_found", param="model")
