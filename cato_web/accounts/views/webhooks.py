"""The webhooks of a person on the settings page: their rows, enabling one again and deleting one."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from cato_web.accounts.models import User
from cato_web.accounts.views import AuthenticatedRequest, posted_id
from cato_web.webhooks import registration
from cato_web.webhooks.models import Webhook
from memory.api import InvalidInputError, NotFoundError


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A webhook; `reason` says why it is failing or disabled, otherwise ""."""

    id: uuid.UUID
    address: str
    state: str
    reason: str
    is_disabled: bool
    created_at: datetime
    delivered_at: datetime | None
    skipped_at: datetime | None


def webhook_rows(person: User) -> list[WebhookRow]:
    """Return the person's webhooks, oldest first."""
    return [_row_of(webhook) for webhook in registration.list_webhooks(person)]


@require_POST
def delete(request: AuthenticatedRequest) -> HttpResponse:
    """Delete a webhook."""
    return _change(request, registration.delete_webhook, _("Webhook deleted."))


@require_POST
def enable(request: AuthenticatedRequest) -> HttpResponse:
    """Send to a disabled webhook again."""
    return _change(request, registration.enable_webhook, _("Events are sent to this webhook again."))


def _change(request: AuthenticatedRequest, act: Callable[[User, uuid.UUID], object], done: str) -> HttpResponse:
    try:
        act(request.user, posted_id(request, "webhook"))
        messages.success(request, done)
    except NotFoundError:
        messages.error(request, _("This webhook was already deleted."))
    except InvalidInputError as error:
        messages.error(request, str(error))
    return redirect("settings")


def _row_of(webhook: Webhook) -> WebhookRow:
    status = registration.status_of(webhook)
    labels = {"active": _("Active"), "failing": _("Failing, attempts go on"), "disabled": _("Disabled")}
    return WebhookRow(
        id=webhook.pk,
        address=webhook.address,
        state=labels[status.state],
        reason=status.reason,
        is_disabled=status.state == "disabled",
        created_at=webhook.created_at,
        delivered_at=webhook.delivered_at,
        skipped_at=webhook.skipped_at,
    )
