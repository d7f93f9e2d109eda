"""What is refused, in the shape in which OpenAI's clients read it."""

from __future__ import annotations

from typing import Any

from django.http import JsonResponse
from django.utils.translation import gettext as _

from chat.errors import ChatError, ModelFailed, PermissionDeniedError, ThreadBusyError
from chat.errors import NotFound as NothingInChat
from memory.errors import BadQuery, CatoMemoryError, EmbeddingFailed
from memory.errors import NotFound as NothingInMemory

INVALID, PERMISSION, RATE, SERVER = "invalid_request_error", "permission_error", "rate_limit_error", "server_error"
# By what the model's endpoint did; clients try again after 429 and 5xx.
_MODEL_FAILURES = {"rate_limited": (429, RATE), "rejected": (400, INVALID), "timeout": (504, SERVER)}


class Refusal(Exception):
    """An answer that is none: a status and a sentence, with the names by which programs tell why."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = INVALID, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.code, self.param = status, kind, code, param

    @property
    def body(self) -> dict[str, Any]:
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}}

    @property
    def response(self) -> JsonResponse:
        response = JsonResponse(self.body, status=self.status)
        if self.status == 401:
            response["WWW-Authenticate"] = "Bearer"
        return response


def refusal_of(error: ChatError | CatoMemoryError) -> Refusal:
    """The same as what the layers below say of it."""
    match error:
        case NothingInChat() | NothingInMemory():
            return Refusal(str(error), status=404, code="not_found")
        case ThreadBusyError():
            return Refusal(str(error), status=409, code="still_answering")
        case PermissionDeniedError():
            return Refusal(str(error), status=403, kind=PERMISSION)
        case ModelFailed():
            return model_failure(error.code, str(error))
        case ChatError() | BadQuery():
            return Refusal(str(error))
        case EmbeddingFailed() if error.permanent:
            return Refusal(str(error), status=500, kind=SERVER)
    return Refusal(str(error), status=503, kind=SERVER)


def model_failure(code: str, message: str) -> Refusal:
    """What a failed answer is to the program that asked for it."""
    status, kind = _MODEL_FAILURES.get(code, (502, SERVER))
    return Refusal(message or _("The answer was interrupted."), status=status, kind=kind, code=code or "interrupted")


def no_such_model(name: str) -> Refusal:
    """`name` is none of the models listed."""
    sentence = _("There is no model %(name)s here; /v1/models lists what there is.") % {"name": name}
    return Refusal(sentence, status=404, code="model_not_found", param="model")
