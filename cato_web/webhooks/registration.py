"""The webhooks of a person: created for an allowed address, listed, enabled again and deleted."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.models import AuditEntry, User
from cato_web.accounts.services import record_audit
from cato_web.webhooks.models import Webhook
from cato_web.webhooks.signing import new_secret
from chat.encryption import encrypt
from memory import api as memory
from memory.api import NOT_FOUND, InvalidInputError, Job, NotFoundError, jobs

MAX_WEBHOOKS = 5
MAX_ADDRESS_LENGTH = 2000
_ADDRESS = re.compile(r"(https?://[^/?#\\]+)(?:[/?][!-~]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """The state of a webhook, active, failing (attempts go on) or disabled, and the reason for it."""

    state: Literal["active", "failing", "disabled"]
    reason: str


def list_webhooks(person: User) -> QuerySet[Webhook]:
    """Return the person's webhooks, oldest first."""
    return Webhook.objects.filter(api_token__person=person).select_related("api_token")


def get_webhook(person: User, webhook_id: uuid.UUID) -> Webhook:
    """Return one of the person's webhooks. Raises NotFoundError."""
    found = list_webhooks(person).filter(pk=webhook_id).first()
    if found is None:
        raise NotFoundError(_(NOT_FOUND))
    return found


@transaction.atomic
def create_webhook(person: User, token_id: uuid.UUID, *, address: str, kinds: Collection[str]) -> tuple[Webhook, str]:
    """Create a webhook for the events from now on; return it with its signing secret, which is not shown again.

    Raises InvalidInputError if the address is not allowed, and if the person has the maximum number of webhooks.
    """
    check_address(address)
    # Locked, so that two requests at once do not exceed the maximum.
    User.objects.select_for_update().get(pk=person.pk)
    if list_webhooks(person).count() >= MAX_WEBHOOKS:
        sentence = _("You have %(count)s webhooks. Delete one that is no longer used first.")
        raise InvalidInputError(sentence % {"count": MAX_WEBHOOKS})
    secret = new_secret()
    _start, end = memory.feed_range()
    created = Webhook.objects.create(
        api_token_id=token_id,
        address=address,
        encrypted_secret=encrypt(secret),
        kinds=sorted(set(kinds)),
        position=end,
        state=Job.State.DONE,
        due_at=timezone.now(),
    )
    record_audit(person, AuditEntry.Action.WEBHOOK_CREATED, _origin_of(address))
    return created, secret


@transaction.atomic
def delete_webhook(person: User, webhook_id: uuid.UUID) -> None:
    """Delete one of the person's webhooks. Raises NotFoundError."""
    webhook = get_webhook(person, webhook_id)
    webhook.delete()
    record_audit(person, AuditEntry.Action.WEBHOOK_DELETED, _origin_of(webhook.address))


@transaction.atomic
def enable_webhook(person: User, webhook_id: uuid.UUID) -> Webhook:
    """Send to a webhook again now, from the place that it has reached; return it.

    Raises NotFoundError, and InvalidInputError if its address is no longer allowed.
    """
    webhook = get_webhook(person, webhook_id)
    check_address(webhook.address)
    rows = Webhook.objects.filter(pk=webhook.pk)
    rows.update(failing_since=None)
    jobs.requeue(rows)
    record_audit(person, AuditEntry.Action.WEBHOOK_ENABLED, _origin_of(webhook.address))
    return get_webhook(person, webhook_id)


def check_address(address: str) -> None:
    """Raise InvalidInputError unless the configuration allows the origin of this address."""
    allowed = settings.CATO.api.webhook_origins
    if not allowed:
        raise InvalidInputError(
            _("Webhooks are not allowed here. An administrator can name origins in api.webhook_origins.")
        )
    if _origin_of(address) not in allowed:
        sentence = _(
            "Webhooks are only sent to addresses that begin with %(origins)s. An administrator can name more origins in "
            "api.webhook_origins."
        )
        raise InvalidInputError(sentence % {"origins": memory.format_list(allowed, last=_("or"))})


def status_of(webhook: Webhook) -> WebhookStatus:
    """Return the state of a webhook and the reason for it, "" if it is active."""
    if webhook.state == Job.State.FAILED:
        return WebhookStatus("disabled", webhook.error)
    expires_at = webhook.api_token.expires_at
    if expires_at is not None and expires_at <= timezone.now():
        return WebhookStatus("disabled", _("The API token that created it has expired."))
    return WebhookStatus("failing" if webhook.failing_since else "active", webhook.error)


def _origin_of(address: str) -> str:
    """Return scheme, host and port as they are written; "" for anything that programs could read in different ways."""
    found = _ADDRESS.fullmatch(address)
    return found[1] if found else ""
