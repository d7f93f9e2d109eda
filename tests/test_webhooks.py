"""Webhooks: events are sent signed and in order to allowed addresses, only to those who can read them, without loss."""

from __future__ import annotations

import base64
import json
import uuid
from datetime import timedelta
from typing import Any, NoReturn

import pytest
from django.test import Client
from django.utils import timezone
from standardwebhooks.webhooks import Webhook as StandardWebhook
from standardwebhooks.webhooks import WebhookVerificationError

from cato_web.accounts.deletion import delete_account
from cato_web.accounts.models import ApiToken, AuditEntry, User
from cato_web.accounts.tokens import revoke_token
from cato_web.webhooks import delivery, registration
from cato_web.webhooks.models import Webhook
from cato_web.webhooks.queue import queue_deliveries
from memory import api as memory_api
from memory import jobs
from memory.models import Event, Membership, Space
from tests.factories import PersonFactory, ago, api_client, exchange, group, signed_in
from tests.server import wait_for
from tests.webhook_receiver import Receiver, running

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver():
    with running() as found:
        yield found


@pytest.fixture(autouse=True)
def allowed(settings, receiver: Receiver):
    """Allow the receiver's origin, and the connection to its host."""
    configure(settings, origins=[receiver.origin], hosts=[receiver.host])


def configure(settings: Any, *, origins: list[str], hosts: list[str]) -> None:
    settings.CATO = settings.CATO.model_copy(
        update={
            "api": settings.CATO.api.model_copy(update={"webhook_origins": origins}),
            "tools": settings.CATO.tools.model_copy(update={"internal_hosts": hosts}),
        }
    )


@pytest.fixture
def api(person: User) -> Client:
    return api_client(person, "read")


def post(client: Client, address: str, key: str = "", **body: Any):
    headers = {"Idempotency-Key": key} if key else {}
    content = json.dumps({"address": address} | body)
    return client.post("/api/webhooks", data=content, content_type="application/json", headers=headers)


@pytest.fixture
def hook(api: Client, receiver: Receiver) -> dict[str, Any]:
    """Create the person's webhook; return it as the API does, with its secret."""
    response = post(api, f"{receiver.origin}/hook")
    assert response.status_code == 201, response.content
    return response.json()


def state(client: Client) -> dict[str, Any]:
    """Return the only webhook of this client's user."""
    (found,) = client.get("/api/webhooks").json()["webhooks"]
    return found


def deliver(after: timedelta | None = None) -> None:
    """Do what the worker does next; `after`: when so much time has passed for what waits for another attempt."""
    if after is not None:
        Webhook.objects.update(due_at=Webhook.objects.values_list("due_at", flat=True)[0] - after)
    queue_deliveries()
    delivery.deliver_due()


def store(owner: User, count: int = 1, space: Space | None = None) -> list[str]:
    return [str(exchange(owner, f"The key hangs behind door {number}.", space=space).pk) for number in range(count)]


def test_events_are_sent_signed_and_as_the_feed_has_them(api, person, hook, receiver):
    stored = store(person)
    deliver()

    (one,) = receiver.deliveries
    library = StandardWebhook(hook["secret"])
    body = library.verify(one.body, dict(one.headers))
    with pytest.raises(WebhookVerificationError):
        library.verify(one.body.replace(b"exchange", b"document"), dict(one.headers))
    assert hook["secret"].startswith("whsec_")
    assert len(base64.b64decode(hook["secret"].removeprefix("whsec_"))) == 32
    feed = api.get(f"/api/events?after={hook['position']}").json()
    assert body["data"] == {"events": feed["events"], "next": feed["next"]}
    assert [event["object_id"] for event in feed["events"]] == stored
    assert "door" not in one.body.decode()
    found = state(api)
    assert (found["state"], found["position"], found["reason"]) == ("active", feed["next"], "")
    assert found["delivered_at"] is not None

    deliver()
    assert len(receiver.deliveries) == 1


def test_events_before_the_webhook_are_not_sent(api, person, receiver):
    store(person)
    post(api, f"{receiver.origin}/hook")
    later = store(person)
    deliver()

    assert receiver.received() == later


def test_only_the_chosen_kinds_are_sent(api, person, receiver):
    post(api, f"{receiver.origin}/hook", kinds=["exchange.forgotten"])
    forgotten = store(person, 2)[1]
    memory_api.forget([uuid.UUID(forgotten)], by=person.pk)
    deliver()

    assert receiver.received() == [forgotten]
    assert post(api, f"{receiver.origin}/hook", kinds=["exchange.eaten"]).status_code == 422


def test_many_events_are_sent_in_batches_in_their_order(person, hook, receiver, monkeypatch):
    monkeypatch.setattr(delivery, "BATCH_SIZE", 2)
    stored = store(person, 5)
    deliver()

    assert receiver.received() == stored
    assert [len(one.events) for one in receiver.deliveries] == [2, 2, 1]
    assert len({one.id for one in receiver.deliveries}) == 3


def test_nobody_gets_what_they_can_no_longer_read_when_it_is_sent(person, hook, receiver):
    bob = PersonFactory()
    shared = group("Keys", person, bob)
    readable = group("Doors", person, bob)
    store(bob, space=shared)
    stored = store(bob, space=readable)
    store(bob)
    Membership.objects.filter(space=shared, person=person).delete()
    deliver()

    assert receiver.received() == stored


def test_a_failed_batch_is_repeated_with_its_id_before_later_events(api, person, hook, receiver):
    receiver.answers = [500, 503]
    first = store(person)
    deliver()
    failing = state(api)
    later = store(person)
    deliver()  # it is not due
    assert receiver.received() == first
    deliver(after=timedelta(minutes=1))
    deliver(after=timedelta(minutes=5))

    assert [[event["object_id"] for event in one.events] for one in receiver.deliveries] == [first, first, first, later]
    ids = [one.id for one in receiver.deliveries]
    assert len(set(ids[:3])) == 1
    assert ids[3] != ids[0]
    assert (failing["state"], failing["position"]) == ("failing", hook["position"])
    assert "500" in failing["reason"]
    assert failing["next_attempt_at"] > failing["failing_since"]
    found = state(api)
    assert (found["state"], found["failing_since"], found["next_attempt_at"]) == ("active", None, None)


def test_what_a_failed_batch_may_no_longer_contain_is_left_out_of_the_next_attempt(api, person, hook, receiver):
    shared = group("Keys", person)
    store(person, space=shared)
    stored = store(person)
    receiver.answers = [500]
    deliver()
    Membership.objects.filter(space=shared).delete()
    deliver(after=timedelta(minutes=1))

    first, second = receiver.deliveries
    assert (len(first.events), [event["object_id"] for event in second.events]) == (2, stored)
    assert first.id == second.id


def test_a_failing_webhook_with_nothing_left_to_send_is_no_longer_failing(api, person, hook, receiver):
    shared = group("Keys", person)
    store(person, space=shared)
    receiver.answers = [500]
    deliver()
    assert Webhook.objects.get().failing_since
    Membership.objects.filter(space=shared).delete()
    deliver(after=timedelta(minutes=1))

    webhook = Webhook.objects.get()
    assert (webhook.state, webhook.failures, webhook.failing_since, webhook.error) == ("done", 0, None, "")


def die(*args: object) -> NoReturn:
    raise SystemExit


def test_a_batch_has_the_same_id_if_the_worker_is_killed_after_sending_it(person, hook, receiver, monkeypatch):
    first = store(person)
    with monkeypatch.context() as patch:
        patch.setattr(delivery, "_save", die)
        with pytest.raises(SystemExit):
            deliver()
    later = store(person)
    Webhook.objects.update(locked_until=ago(seconds=1))
    deliver()

    assert receiver.received() == [*first, *first, *later]
    assert receiver.deliveries[0].id == receiver.deliveries[1].id
    assert receiver.deliveries[2].id != receiver.deliveries[1].id


def test_the_waits_grow_until_the_webhook_is_disabled_after_five_days(api, person, hook, receiver):
    receiver.status = 500
    store(person)
    waits = []
    for _attempt in range(6):
        deliver(after=timedelta(hours=6))
        waits.append(round((Webhook.objects.get().due_at - timezone.now()).total_seconds() / 60))
    assert waits == [1, 5, 30, 120, 360, 360]

    Webhook.objects.update(failing_since=ago(days=5))
    deliver(after=timedelta(hours=6))
    found = state(api)
    assert (found["state"], found["next_attempt_at"]) == ("disabled", None)
    assert "500" in found["reason"]
    attempts = len(receiver.deliveries)
    store(person)
    deliver(after=timedelta(days=1))
    assert len(receiver.deliveries) == attempts


def test_a_receiver_that_is_gone_gets_nothing_more(api, person, hook, receiver):
    receiver.answers = [410]
    store(person)
    deliver()
    store(person)
    deliver(after=timedelta(days=1))

    assert len(receiver.deliveries) == 1
    assert state(api)["state"] == "disabled"
    assert "410" in state(api)["reason"]


def test_a_disabled_webhook_that_is_enabled_continues_where_it_was(api, person, hook, receiver):
    receiver.answers = [410]
    first = store(person)
    deliver()
    second = store(person)
    receiver.answers = []
    other = api_client(PersonFactory()).post(f"/api/webhooks/{hook['id']}/enable")
    assert (other.status_code, state(api)["state"]) == (404, "disabled")

    enabled = api.post(f"/api/webhooks/{hook['id']}/enable").json()
    deliver()

    assert (enabled["state"], enabled["reason"], enabled["failing_since"]) == ("active", "", None)
    assert receiver.received() == [*first, *first, *second]
    assert AuditEntry.objects.latest("at").action == "webhook.enabled"


def test_redirects_are_not_followed(api, person, hook, receiver):
    receiver.answers, receiver.headers = [307], {"Location": f"{receiver.origin}/elsewhere"}
    store(person)
    deliver()

    assert [one.path for one in receiver.deliveries] == ["/hook"]
    assert "307" in state(api)["reason"]


def test_the_body_of_a_response_is_not_read(api, person, hook, receiver):
    receiver.headers = {"Content-Length": "9999999999"}
    store(person)
    deliver()

    assert state(api)["state"] == "active"
    assert len(receiver.deliveries) == 1


def test_an_address_inside_the_network_must_be_allowed_for_connections_too(api, person, hook, receiver, settings):
    configure(settings, origins=[receiver.origin], hosts=[])
    store(person)
    deliver()

    assert receiver.deliveries == []
    assert "tools.internal_hosts" in state(api)["reason"]


def test_an_origin_that_is_no_longer_allowed_gets_nothing(api, person, hook, receiver, settings):
    configure(settings, origins=[], hosts=[receiver.host])
    store(person)
    deliver()

    assert receiver.deliveries == []
    assert "api.webhook_origins" in state(api)["reason"]


def deactivate(person: User) -> None:
    User.objects.filter(pk=person.pk).update(is_active=False)


def revoke_all(person: User) -> None:
    for token in person.api_tokens.all():
        revoke_token(person, token.pk)


def expire_all(person: User) -> None:
    ApiToken.objects.update(expires_at=ago(seconds=1))


@pytest.mark.parametrize("end", [deactivate, revoke_all, expire_all])
def test_nothing_is_sent_without_a_valid_token_and_nobody_is_told_that_it_waits(person, hook, receiver, end):
    def pending() -> int:
        return sum(queue.pending for queue in jobs.queue_stats() if queue.kind == "webhook")

    store(person)
    queue_deliveries()
    assert pending() == 1
    end(person)
    deliver()

    assert receiver.deliveries == []
    assert pending() == 0


def leave_groups(person: User) -> None:
    Membership.objects.filter(person=person).delete()


@pytest.mark.parametrize("end", [deactivate, revoke_all, expire_all, leave_groups])
def test_rights_that_end_while_other_webhooks_are_prepared_count(api, person, hook, receiver, monkeypatch, end):
    other = PersonFactory()
    post(api_client(other, "read"), f"{receiver.origin}/other")
    shared = group("Keys", person, other)
    queue_deliveries()
    Webhook.objects.filter(api_token__person=other).update(due_at=ago(minutes=1))
    prepare = delivery._prepare

    def prepare_and_end(lease: Any) -> Any:
        prepared = prepare(lease)
        if lease.job.address.endswith("/other"):
            end(person)
        return prepared

    monkeypatch.setattr(delivery, "_prepare", prepare_and_end)
    stored = store(other, space=shared)
    Webhook.objects.update(state=memory_api.Job.State.PENDING)
    delivery.deliver_due()

    assert receiver.received("/other") == stored
    assert receiver.received("/hook") == []


def test_a_webhook_says_that_its_token_has_expired(person, hook):
    expire_all(person)
    found = state(api_client(person, "read"))

    assert found["state"] == "disabled"
    assert "expired" in found["reason"]


def test_an_account_continues_where_it_was_when_it_is_activated_again(person, hook, receiver):
    deactivate(person)
    stored = store(person)
    deliver()
    User.objects.filter(pk=person.pk).update(is_active=True)
    deliver()

    assert receiver.received() == stored


def test_a_webhook_is_deleted_with_the_account(person, hook):
    delete_account(person)

    assert not Webhook.objects.exists()


def test_a_webhook_that_is_behind_the_kept_events_continues_with_the_oldest_and_says_so(api, person, hook, receiver):
    receiver.answers = [500]
    store(person, 2)
    deliver()
    Event.objects.update(created_at=ago(days=31))
    kept = store(person)
    assert memory_api.delete_old_events() == 2
    assert state(api)["skipped_at"] is None
    deliver(after=timedelta(minutes=1))

    assert [event["object_id"] for event in receiver.deliveries[-1].events] == kept
    assert receiver.deliveries[0].id != receiver.deliveries[1].id
    assert state(api)["skipped_at"] is not None


@pytest.mark.parametrize(
    "address",
    [
        "https://elsewhere.example/hook",
        "{origin}.elsewhere.example/hook",
        "{origin}@elsewhere.example/hook",
        "{origin}\\@elsewhere.example/hook",
        "{origin}#@elsewhere.example/hook",
        "{origin}/hook\nHost: elsewhere",
        "ftp{origin}/hook",
        "hook",
    ],
)
def test_other_addresses_are_refused(api, receiver, address):
    refused = post(api, address.format(origin=receiver.origin))

    assert refused.status_code == 422
    assert receiver.origin in refused.json()["error"]["message"]
    assert not Webhook.objects.exists()


def test_without_a_configured_origin_there_are_no_webhooks(api, receiver, settings):
    configure(settings, origins=[], hosts=[])
    refused = post(api, f"{receiver.origin}/hook")

    assert refused.status_code == 422
    assert "api.webhook_origins" in refused.json()["error"]["message"]


def test_a_person_has_at_most_five_webhooks(api, person, hook, receiver):
    for _number in range(4):
        assert post(api_client(person, "read"), receiver.origin).status_code == 201
    refused = post(api, receiver.origin)
    assert (refused.status_code, "5 webhooks" in refused.json()["error"]["message"]) == (422, True)

    assert api.delete(f"/api/webhooks/{hook['id']}").status_code == 204
    assert post(api, receiver.origin).status_code == 201


def test_the_secret_is_returned_once_and_stored_encrypted(api, hook, receiver):
    assert "secret" not in api.get(f"/api/webhooks/{hook['id']}").json()
    assert hook["secret"] not in api.get("/api/webhooks").content.decode()
    stored = bytes(Webhook.objects.get().encrypted_secret)
    assert hook["secret"].encode() not in stored
    first, again = (post(api, receiver.origin, key="monday").json() for _request in range(2))
    assert (first["id"], again["secret"]) == (again["id"], None)


def test_creation_and_deletion_are_in_the_audit_log_without_the_path(api, hook, receiver):
    api.delete(f"/api/webhooks/{hook['id']}")

    entries = list(
        AuditEntry.objects.filter(action__startswith="webhook").order_by("id").values_list("action", "target")
    )
    assert entries == [("webhook.created", receiver.origin), ("webhook.deleted", receiver.origin)]
    assert not Webhook.objects.exists()


def test_the_settings_page_lists_webhooks_and_deletes_them(person, hook, receiver):
    receiver.answers = [410]
    store(person)
    deliver()
    page = signed_in(person).get("/settings").content.decode()
    assert hook["address"] in page
    assert "The receiver answered with the status 410." in page

    signed_in(person).post("/settings/webhooks/enable", {"webhook": hook["id"]})
    assert registration.status_of(Webhook.objects.get()).state == "active"
    for client, is_deleted in ((signed_in(PersonFactory()), False), (signed_in(person), True)):
        client.post("/settings/webhooks/delete", {"webhook": hook["id"]})
        assert Webhook.objects.exists() != is_deleted
    assert "Webhooks" not in signed_in(person).get("/settings").content.decode()


def test_a_worker_sends_events_by_itself(cato, alice, cato_receiver):
    """The whole way, with the processes of an installation."""
    client = alice.api_client()
    created = client.post("/api/webhooks", json={"address": f"{cato_receiver.origin}/of-alice"})
    assert created.status_code == 201, created.text
    stored = client.post("/api/exchanges", json={"text": "The key hangs behind the door."}).json()

    wait_for(lambda: cato_receiver.received("/of-alice"), "the event")

    assert cato_receiver.received("/of-alice") == [stored["exchanges"][0]["id"]]
    assert client.delete(f"/api/webhooks/{created.json()['id']}").status_code == 204
