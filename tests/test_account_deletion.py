"""Account deletion: personal data is erased, shared messages stay without a name, and a crash is recovered from."""

from __future__ import annotations

import re
import sys
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from cato_web.accounts import deletion as account_deletion
from cato_web.accounts import services
from cato_web.accounts.models import AccountDeletion, AuditEntry, LoginSession, OneTimeLink, User
from cato_web.celery import sweep
from chat.models import Attachment, Thread, Turn
from chat.tools.uses import ToolUse, tool_uses
from chat.tools.uses import decide as decide_about_tool
from memory.exchanges.feedback import set_feedback
from memory.exchanges.supersessions import decide
from memory.index import store
from memory.index.vectors import all_vector_ids
from memory.models import (
    CachedEmbedding,
    Document,
    EmbeddingJob,
    ErasureJob,
    Exchange,
    Feedback,
    Job,
    LexicalEntry,
    Membership,
    Supersession,
)
from memory.spaces import access, deletion
from tests.crashes import crashes_at
from tests.factories import (
    AdministratorFactory,
    PersonFactory,
    document,
    exchange,
    group,
    image_of,
    signed_in,
    thread,
    turn,
)
from tests.server import PASSWORD
from tests.topology import IS_LONG

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def administrator(memory):
    return AdministratorFactory(name="Ada Admin")


@pytest.fixture
def alice(administrator):
    return PersonFactory(name="Alice Owner", email="alice@halden.example")


def remember_message(person, in_thread, message: str) -> Turn:
    one = turn(in_thread, message, "Noted.", author=person)
    stored = exchange(person, message, "Noted.", space=in_thread.space, thread_id=in_thread.id, turn_id=one.id)
    one.exchange_id = stored.id
    one.save()
    return one


def delete_account(person) -> str:
    """Delete the account on its page; return the receipt's address."""
    answer = signed_in(person).post("/settings/delete-account", {"email": person.email, "password": PASSWORD})
    assert answer.status_code == 302, answer.content.decode()
    return str(answer.headers["location"])


def receipt_figures(address: str) -> dict[str, str]:
    """Return the lines of a receipt, as seen by anybody with its address."""
    page = Client().get(address).content.decode()
    return dict(re.findall(r"(?s)<dt>(.*?)</dt>.*?<dd>\s*(.*?)\s*</dd>", page))


def test_the_personal_space_is_erased_and_verified(memory, alice):
    talk = thread(alice)
    secret = remember_message(alice, talk, "The safe combination is 12-34-56.")
    note = exchange(alice, "The key hangs behind the clock.", source="vadd_command", manual_entry=True)
    stored = document(alice, "plans.txt", "The house has three floors. " * 60)
    memory.index_pending()
    file = stored.versions.get().original.name
    collection = EmbeddingJob.objects.filter(exchange=note).get().collection.name
    vectors = [i for e in Exchange.objects.all() for i in all_vector_ids(e.id, e.version)]
    assert store.existing_ids(collection, vectors)
    assert default_storage.exists(file)

    delete_account(alice)
    sweep()

    assert not Thread.objects.filter(id=talk.id).exists()
    assert not Turn.objects.filter(id=secret.id).exists()
    assert set(Exchange.objects.values_list("user_message", "assistant_message", "content_hash")) == {("", "", "")}
    assert not Exchange.objects.filter(erased_at=None).exists()
    assert store.existing_ids(collection, vectors) == set()
    assert (CachedEmbedding.objects.count(), LexicalEntry.objects.count()) == (0, 0)
    assert set(Document.objects.values_list("name", flat=True)) == {""}
    assert not default_storage.exists(file)


def test_the_account_is_closed_at_once_and_its_row_anonymised(memory, alice):
    page = signed_in(alice)
    delete_account(alice)

    assert page.get("/").status_code == 302
    assert Client().post("/sign-in", {"email": "alice@halden.example", "password": PASSWORD}).status_code == 422
    alice.refresh_from_db()
    assert (alice.name, alice.is_active, alice.has_usable_password()) == ("Former member", False, False)
    assert "alice" not in alice.email
    assert not LoginSession.objects.filter(person=alice).exists()
    assert not [s for s in Session.objects.all() if str(alice.pk) in str(s.get_decoded())]
    # The email address can be used again.
    PersonFactory(email="alice@halden.example")


def test_messages_in_shared_spaces_stay_with_a_former_member_as_author(memory, alice, administrator):
    talk = thread(administrator, space=access.team_space(), title="The party")
    remember_message(alice, talk, "I bake a cake.")
    memory.index_pending()

    delete_account(alice)
    sweep()

    page = signed_in(administrator).get(f"/t/{talk.id}").content.decode()
    assert "I bake a cake." in page
    assert "Former member" in page
    assert "Alice" not in page
    (hit,) = memory.search("who bakes a cake", spaces=access.readable_space_ids(administrator.pk)).results
    assert hit.exchange.user_message == "I bake a cake."


def test_memberships_feedback_and_open_invitations_are_deleted(memory, administrator):
    other = AdministratorFactory()
    choir = group("Choir", administrator, other)
    earlier, later = (exchange(administrator, f"We sing on {day}.", space=choir) for day in ("Fridays", "Mondays"))
    set_feedback(other.pk, earlier, "pinned")
    decide(other.pk, later=later, earlier=earlier, decision="confirmed")
    services.create_invitation(by=other)

    delete_account(other)

    assert list(Membership.objects.values_list("person_id", flat=True)) == [administrator.pk]
    assert Feedback.objects.count() == 0
    assert Supersession.objects.count() == 0
    assert not OneTimeLink.objects.filter(kind=OneTimeLink.Kind.INVITATION).exists()


def test_the_page_counts_what_is_deleted_and_what_stays(memory, alice):
    remember_message(alice, thread(alice), "One")
    remember_message(alice, thread(alice), "Two")
    remember_message(alice, thread(alice, space=access.team_space()), "Three")
    document(alice, "plans.txt", "The house has three floors.")

    page = signed_in(alice).get("/settings/delete-account").content.decode()

    assert "2 threads in your own space" in page
    assert "3 exchanges that are remembered" in page
    assert "1 document there" in page
    assert "shared spaces: 1 message with its answer, and 0 documents" in page
    assert "“Former member” replaces your name" in page


@pytest.mark.parametrize(
    ("email", "password", "expected"),
    [
        ("alice@halden.example", "something else", "This is not your password."),
        ("bob@halden.example", PASSWORD, "This is not the email of your account."),
        ("", "", "This field is required."),
    ],
)
def test_deletion_requires_the_email_and_the_password(alice, email, password, expected):
    answer = signed_in(alice).post("/settings/delete-account", {"email": email, "password": password})

    assert answer.status_code == 422
    assert expected in answer.content.decode()
    alice.refresh_from_db()
    assert (alice.is_active, alice.name) == (True, "Alice Owner")


def test_password_attempts_are_limited(alice):
    page = signed_in(alice)
    wrong = {"email": alice.email, "password": "not the right one"}
    answers = {page.post("/settings/delete-account", wrong).status_code for _ in range(11)}

    assert answers == {422, 429}
    assert page.post("/settings/delete-account", {"email": alice.email, "password": PASSWORD}).status_code == 429


def test_the_last_administrator_cannot_leave_while_others_remain(alice, administrator):
    page = signed_in(administrator)
    answer = page.post("/settings/delete-account", {"email": administrator.email, "password": PASSWORD})

    assert answer.status_code == 409
    assert "You are the only active administrator, and 1 other person has an account." in answer.content.decode()
    assert "Invite another administrator" in answer.content.decode()
    with pytest.raises(account_deletion.AccountDeletionError):
        account_deletion.delete_account(administrator)
    administrator.refresh_from_db()
    assert administrator.is_active

    AdministratorFactory()
    delete_account(administrator)


def test_the_last_administrator_cannot_leave_deactivated_accounts_behind(alice, administrator):
    User.objects.filter(pk=alice.pk).update(is_active=False)
    answer = signed_in(administrator).get("/settings/delete-account")
    assert answer.status_code == 409
    assert "1 other person has an account." in answer.content.decode()
    with pytest.raises(account_deletion.AccountDeletionError):
        account_deletion.delete_account(administrator)


def test_submitting_twice_deletes_once(alice):
    same = User.objects.get(pk=alice.pk)
    account_deletion.delete_account(alice)
    with pytest.raises(account_deletion.AccountDeletionError):
        account_deletion.delete_account(same)
    assert AccountDeletion.objects.count() == 1


def test_the_only_person_may_leave_and_the_next_start_prints_a_set_up_link(administrator):
    assert services.setup_token() is None
    delete_account(administrator)
    assert services.setup_token()


def test_an_administrator_cannot_see_or_reactivate_a_deleted_account(alice, administrator):
    delete_account(alice)

    page = signed_in(administrator)
    assert "Former member" not in page.get("/admin/people").content.decode()
    page.post(f"/admin/people/{alice.pk}/active", {"active": "yes"})
    alice.refresh_from_db()
    assert not alice.is_active


def test_the_receipt_counts_what_was_deleted_and_when_the_index_confirmed_it(memory, alice):
    remember_message(alice, thread(alice), "The safe combination is 12-34-56.")
    exchange(alice, "The key hangs behind the clock.", manual_entry=True)
    memory.index_pending()
    vectors = sum(EmbeddingJob.objects.values_list("parts", flat=True))

    address = delete_account(alice)
    now = receipt_figures(address)
    assert (now["Threads removed"], now["Exchanges forgotten"]) == ("0 of 1 so far", "0, in progress")
    assert "in progress" in now["Vectors removed"]
    assert "In progress" in Client().get(address).content.decode()

    sweep()
    then = receipt_figures(address)
    assert (then["Threads removed"], then["Exchanges forgotten"]) == ("1", "2")
    assert then["Vectors removed"] == f"{vectors}, confirmed by the index"
    assert then["Original files removed"] == "all"
    assert then["Purged from disk"].startswith("by ")
    assert "Complete" in Client().get(address).content.decode()


def test_files_that_were_not_sent_are_removed_with_the_account(memory, alice, person):
    for owner in (alice, person):
        image_of(owner)
    delete_account(alice)
    sweep()
    assert [row.owner_id for row in Attachment.objects.all()] == [person.pk]


def test_a_receipt_is_not_complete_while_it_reports_pending_work(memory, alice, monkeypatch):
    exchange(alice, "The key hangs behind the clock.", manual_entry=True)
    memory.index_pending()
    address = delete_account(alice)

    def finish_everything(*args: Any, original: Any = deletion.space_receipt, **fields: Any) -> Any:
        receipt = original(*args, **fields)
        sweep()
        return receipt

    monkeypatch.setattr(account_deletion.memory, "space_receipt", finish_everything)
    page = Client().get(address).content.decode()
    assert "0, in progress" in page
    assert "Complete" not in page


def test_earlier_forgotten_exchanges_are_not_counted_again(memory, alice):
    memory.forget([exchange(alice, "An old secret.").id], by=alice.pk)
    address = delete_account(alice)
    sweep()
    assert receipt_figures(address)["Exchanges forgotten"] == "0"


def test_a_receipt_names_nobody_and_needs_its_address(alice):
    address = delete_account(alice)
    page = Client().get(address).content.decode()
    assert "Alice" not in page
    assert "alice" not in page
    assert AccountDeletion.objects.get().token_hash not in address
    assert Client().get("/receipt/guessed").status_code == 404


def test_the_audit_log_records_an_account_deletion(alice):
    delete_account(alice)
    assert AuditEntry.objects.filter(actor=alice, action="account.deleted").exists()


def test_a_running_answer_is_stopped_first(memory, alice):
    talk = thread(alice)
    busy = turn(talk, "Tell me a long story", "Once", state="answering", heartbeat_at=timezone.now())
    delete_account(alice)

    account_deletion.run_account_deletions()
    busy.refresh_from_db()
    assert busy.stop_requested
    assert AccountDeletion.objects.get().emptied_at is None

    Turn.objects.filter(id=busy.id).update(state="stopped")
    AccountDeletion.objects.update(due_at=timezone.now())
    account_deletion.run_account_deletions()
    assert not Thread.objects.filter(id=talk.id).exists()
    assert AccountDeletion.objects.get().emptied_at is not None


def test_a_decision_about_a_tool_no_longer_names_who_made_it(memory, alice, administrator):
    use = ToolUse("weather", "set_alarm", "Set an alarm", "{}", "waiting", asked_at=timezone.now().isoformat())
    talk = thread(administrator, space=access.team_space())
    asked = turn(talk, "Wake us", "", state=Turn.State.WAITING, tool_uses=[use.as_json()])
    decide_about_tool(asked, uuid.UUID(use.id), by=alice, is_allowed=True)
    assert "Alice Owner" in str(Turn.objects.get(id=asked.id).tool_uses)

    delete_account(alice)
    sweep()

    (left,) = tool_uses(Turn.objects.get(id=asked.id))
    assert (left.state, left.decided_by) == ("allowed", "Former member")


def test_data_that_arrives_late_is_deleted_by_the_next_sweep(memory, alice):
    delete_account(alice)
    sweep()
    late = exchange(alice, "An upload that was under way.")
    sweep()
    assert Exchange.objects.get(id=late.id).forgotten_at is None, "there is nothing to look for all the time"

    AccountDeletion.objects.update(created_at=timezone.now() - timedelta(minutes=11), due_at=timezone.now())
    sweep()
    assert Exchange.objects.get(id=late.id).forgotten_at is not None
    assert AccountDeletion.objects.get().state == Job.State.DONE


def test_a_crash_at_any_line_of_the_deletion_is_recovered_by_the_sweep(memory, administrator):
    step, crashed, stride = -1, True, 1 if IS_LONG else 3
    files = {deletion.__file__, account_deletion.__file__, sys.modules["chat.threads.lifecycle"].__file__}
    while crashed:
        step += stride
        person = PersonFactory()
        remember_message(person, thread(person), f"The safe combination is {step}.")
        exchange(person, f"The key of {step} hangs behind the clock.", manual_entry=True)
        address = delete_account(person)
        crashed = crashes_at(step, account_deletion.run_account_deletions, files)

        # The dead worker's lease expires.
        AccountDeletion.objects.filter(person=person).update(locked_until=None)
        account_deletion.run_account_deletions()
        memory.erase_forgotten()

        own = Exchange.objects.filter(space=access.personal_space(person.pk))
        assert set(own.values_list("user_message", flat=True)) == {""}, step
        assert not Thread.objects.filter(owner=person).exists(), step
        lines = receipt_figures(address)
        assert (lines["Threads removed"], lines["Exchanges forgotten"]) == ("1", "2"), step
    assert step > 25
    assert not ErasureJob.objects.exclude(state=Job.State.DONE).exists()


def test_more_than_one_batch_is_deleted_by_several_sweeps(memory, alice, monkeypatch):
    monkeypatch.setattr(deletion, "_BATCH_SIZE", 2)
    monkeypatch.setattr(account_deletion, "_BATCHES_PER_RUN", 1)
    for number in range(5):
        exchange(alice, f"Note {number}", manual_entry=True)
    delete_account(alice)

    account_deletion.run_account_deletions()
    assert Exchange.objects.filter(forgotten_at=None).count() == 3

    for _ in range(3):
        AccountDeletion.objects.update(due_at=timezone.now())
        account_deletion.run_account_deletions()
    assert Exchange.objects.filter(forgotten_at=None).count() == 0
    assert AccountDeletion.objects.get().emptied_at is not None
    assert User.objects.get(pk=alice.pk).left_at is not None
