"""Operations: webhooks, which send the events of the feed."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Literal

from ninja import Router
from ninja.responses import Status
from pydantic import Field

from cato_web.api.auth import READ, ApiRequest, create_once, current_user
from cato_web.api.errors import FIND, responses
from cato_web.api.fields import Key, Text
from cato_web.api.schemas import RequestModel, ResponseModel
from cato_web.webhooks import models, registration
from memory.api import Event, Job

router = Router(tags=["events"])


class NewWebhook(RequestModel):
    """An address to which events are sent, in requests that are signed."""

    address: Annotated[
        Text,
        Field(
            min_length=1,
            max_length=registration.MAX_ADDRESS_LENGTH,
            description="Its origin must be one that the installation allows.",
            json_schema_extra={"format": "uri"},
        ),
    ]
    kinds: Annotated[list[Event.Kind], Field(max_length=len(Event.Kind))] = Field(
        default=[], description="Kinds of events; empty: all."
    )


class Webhook(ResponseModel):
    """A webhook and how its deliveries go."""

    id: uuid.UUID
    address: str
    kinds: list[str] = Field(description="Kinds of events; empty: all.")
    state: Literal["active", "failing", "disabled"] = Field(
        description="`failing`: attempts go on. `disabled`: nothing is sent any more until it is enabled."
    )
    reason: str = Field(description='Why it is failing or disabled, otherwise "".')
    position: int = Field(description="Events up to this position were sent.")
    created_at: datetime
    delivered_at: datetime | None = Field(description="When the receiver last accepted events.")
    failing_since: datetime | None
    next_attempt_at: datetime | None = Field(description="When a failed delivery is repeated.")
    skipped_at: datetime | None = Field(
        description="When events were left out because they were not kept any more. Read the lists again after it."
    )


class CreatedWebhook(Webhook):
    """A new webhook with its signing secret."""

    secret: str | None = Field(
        description="The signing secret. It is returned once: null if the request was repeated with its Idempotency-Key."
    )


class Webhooks(ResponseModel):
    """All webhooks of the user, oldest first."""

    webhooks: list[Webhook]


@router.post("/webhooks", auth=READ, response=responses(CreatedWebhook, *FIND, 409, status=201))
def create_webhook(request: ApiRequest, body: NewWebhook, idempotency_key: Key = None) -> Status[CreatedWebhook]:
    """Have the events that the user can read sent to an address, from now on, as long as this token is valid."""
    person, secrets = current_user(request), list[str]()

    def create() -> list[uuid.UUID]:
        created, secret = registration.create_webhook(
            person, request.auth.token_id, address=body.address, kinds=body.kinds
        )
        secrets.append(secret)
        return [created.pk]

    (id,) = create_once(request, idempotency_key, body.model_dump(mode="json"), create)
    webhook = _serialize(registration.get_webhook(person, id))
    return Status(201, CreatedWebhook(**webhook.model_dump(), secret=secrets[0] if secrets else None))


@router.get("/webhooks", auth=READ, response=responses(Webhooks))
def list_webhooks(request: ApiRequest) -> Webhooks:
    """List the user's webhooks, of all their tokens."""
    return Webhooks(webhooks=[_serialize(row) for row in registration.list_webhooks(current_user(request))])


@router.get("/webhooks/{uuid:webhook_id}", auth=READ, response=responses(Webhook, *FIND))
def get_webhook(request: ApiRequest, webhook_id: uuid.UUID) -> Webhook:
    """Return one of the user's webhooks."""
    return _serialize(registration.get_webhook(current_user(request), webhook_id))


@router.delete("/webhooks/{uuid:webhook_id}", auth=READ, response=responses(None, *FIND, status=204))
def delete_webhook(request: ApiRequest, webhook_id: uuid.UUID) -> Status[None]:
    """Delete one of the user's webhooks. Nothing is sent to its address any more."""
    registration.delete_webhook(current_user(request), webhook_id)
    return Status(204, None)


@router.post("/webhooks/{uuid:webhook_id}/enable", auth=READ, response=responses(Webhook, *FIND, 422))
def enable_webhook(request: ApiRequest, webhook_id: uuid.UUID) -> Webhook:
    """Have events sent to a disabled or failing webhook again at once, from the position that it has reached."""
    return _serialize(registration.enable_webhook(current_user(request), webhook_id))


def _serialize(row: models.Webhook) -> Webhook:
    status = registration.status_of(row)
    is_waiting = status.state == "failing" and row.state == Job.State.PENDING
    return Webhook(
        id=row.pk,
        address=row.address,
        kinds=row.kinds,
        state=status.state,
        reason=status.reason,
        position=row.position,
        created_at=row.created_at,
        delivered_at=row.delivered_at,
        failing_since=row.failing_since,
        next_attempt_at=row.due_at if is_waiting else None,
        skipped_at=row.skipped_at,
    )
