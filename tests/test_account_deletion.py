"""Deleting one's own account: what goes is gone for good, what stays stays nameless, and a crash changes nothing of it."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from types import FrameType
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.files.storage import default_storage
from django.db import connection
from django.test import Client
from django.utils import timezone

from cato_web.accounts import deletion as departures
from cato_web.accounts import services
from cato_web.accounts.models import AccountDeletion, AuditEntry, LoginSession, OneTimeLink, User
from cato_web.celery import sweep
from chat.models import Thread, Turn
from memory.exchanges.feedback import set_feedback
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
)
from memory.spaces import access, deletion
from tests.factories import AdministratorFactory, PersonFactory, document, exchange, group, thread, turn
from tests.server import PASSWORD
from tests.topology import IS_LONG

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def administrator(memory):
    return AdministratorFactory(name="Ada Admin")


@pytest.fixture
def alice(administrator):
    return PersonFactory(name="Alice Owner", email="alice@halden.example")


def said(person, in_thread, message: str) -> Turn:
    one = turn(in_thread, message, "Noted.", author=person)
    kept = exchange(person, message, "Noted.", space=in_thread.space, thread_id=in_thread.id, turn_id=one.id)
    one.exchange_id = kept.id
    one.save()
    return one


def page_of(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def leaving(person) -> str:
    """Delete the account on its page; returns the address of the receipt."""
    answer = page_of(person).post("/settings/leave", {"email": person.email, "password": PASSWORD})
    assert answer.status_code == 302, answer.content.decode()
    return str(answer.headers["location"])


def figures(address: str) -> dict[str, str]:
    """The lines of a receipt, as anybody who has its address sees them."""
    page = Client().get(address).content.decode()
    return dict(re.findall(r"(?s)<dt>(.*?)</dt>.*?<dd>\s*(.*?)\s*</dd>", page))


def test_all_of_the_own_space_is_gone_and_verified(memory, alice):
    talk = thread(alice)
    secret = said(alice, talk, "The safe combination is 12-34-56.")
    note = exchange(alice, "The key hangs behind the clock.", source="vadd_command", manual_entry=True)
    kept = document(alice, "plans.txt", "The house has three floors. " * 60)
    memory.index_pending()
    file = kept.versions.get().original.name
    collection = EmbeddingJob.objects.filter(exchange=note).get().collection.name
    vectors = [i for e in Exchange.objects.all() for i in all_vector_ids(e.id, e.version)]
    assert store.existing_ids(collection, vectors)
    assert default_storage.exists(file)

    leaving(alice)
    sweep()

    assert not Thread.objects.filter(id=talk.id).exists()
    assert not Turn.objects.filter(id=secret.id).exists()
    assert set(Exchange.objects.values_list("user_message", "assistant_message", "content_hash")) == {("", "", "")}
    assert not Exchange.objects.filter(erased_at=None).exists()
    assert store.existing_ids(collection, vectors) == set()
    assert (CachedEmbedding.objects.count(), LexicalEntry.objects.count()) == (0, 0)
    assert set(Document.objects.values_list("name", flat=True)) == {""}
    assert not default_storage.exists(file)


def test_the_account_is_closed_at_once_and_its_row_stays_without_name(memory, alice):
    page = page_of(alice)
    leaving(alice)

    assert page.get("/").status_code == 302
    assert Client().post("/sign-in", {"email": "alice@halden.example", "password": PASSWORD}).status_code == 422
    alice.refresh_from_db()
    assert (alice.name, alice.is_active, alice.has_usable_password()) == ("Former member", False, False)
    assert "alice" not in alice.email
    assert not LoginSession.objects.filter(person=alice).exists()
    assert not [s for s in Session.objects.all() if str(alice.pk) in str(s.get_decoded())]
    # The e-mail is free again.
    PersonFactory(email="alice@halden.example")


def test_what_was_said_in_shared_spaces_stays_with_a_former_member_as_its_author(memory, alice, administrator):
    talk = thread(administrator, space=access.team_space(), title="The party")
    said(alice, talk, "I bake a cake.")
    memory.index_pending()

    leaving(alice)
    sweep()

    page = page_of(administrator).get(f"/t/{talk.id}").content.decode()
    assert "I bake a cake." in page
    assert "Former member" in page
    assert "Alice" not in page
    (hit,) = memory.search("who bakes a cake", spaces=access.readable_space_ids(administrator.pk)).results
    assert hit.exchange.user_message == "I bake a cake."


def test_groups_opinions_and_open_invitations_of_who_left_are_gone(memory, administrator):
    other = AdministratorFactory()
    choir = group("Choir", administrator, other)
    set_feedback(other.pk, exchange(administrator, "We sing on Fridays.", space=choir), "pinned")
    services.create_invitation(by=other)

    leaving(other)

    assert list(Membership.objects.values_list("person_id", flat=True)) == [administrator.pk]
    assert Feedback.objects.count() == 0
    assert not OneTimeLink.objects.filter(kind=OneTimeLink.Kind.INVITATION).exists()


def test_the_page_says_in_numbers_what_goes_and_what_stays(memory, alice):
    said(alice, thread(alice), "One")
    said(alice, thread(alice), "Two")
    said(alice, thread(alice, space=access.team_space()), "Three")
    document(alice, "plans.txt", "The house has three floors.")

    page = page_of(alice).get("/settings/leave").content.decode()

    assert "2 threads in your own space" in page
    assert "3 exchanges that are remembered" in page
    assert "1 document there" in page
    assert "shared spaces: 1 message with its answer, and 0 documents" in page
    assert "“Former member” stands there" in page


@pytest.mark.parametrize(
    ("email", "password", "says"),
    [
        ("alice@halden.example", "something else", "This is not your password."),
        ("bob@halden.example", PASSWORD, "This is not the e-mail of your account."),
        ("", "", "This field is required."),
    ],
)
def test_without_the_e_mail_and_the_password_nothing_happens(alice, email, password, says):
    answer = page_of(alice).post("/settings/leave", {"email": email, "password": password})

    assert answer.status_code == 422
    assert says in answer.content.decode()
    alice.refresh_from_db()
    assert (alice.is_active, alice.name) == (True, "Alice Owner")


def test_passwords_are_not_guessed_here(alice):
    page = page_of(alice)
    wrong = {"email": alice.email, "password": "not the right one"}
    answers = {page.post("/settings/leave", wrong).status_code for _ in range(11)}

    assert answers == {422, 429}
    assert page.post("/settings/leave", {"email": alice.email, "password": PASSWORD}).status_code == 429


def test_the_last_administrator_stays_while_others_are_here_and_is_told_what_to_do(alice, administrator):
    page = page_of(administrator)
    answer = page.post("/settings/leave", {"email": administrator.email, "password": PASSWORD})

    assert answer.status_code == 409
    assert "You are the only administrator, and 1 other person uses this Cato." in answer.content.decode()
    assert "Invite another administrator" in answer.content.decode()
    with pytest.raises(departures.AccountDeletionError):
        departures.delete_account(administrator)
    administrator.refresh_from_db()
    assert administrator.is_active

    AdministratorFactory()
    leaving(administrator)


def test_the_button_pressed_twice_deletes_once(alice):
    same = User.objects.get(pk=alice.pk)
    departures.delete_account(alice)
    with pytest.raises(departures.AccountDeletionError):
        departures.delete_account(same)
    assert AccountDeletion.objects.count() == 1


def test_whoever_is_alone_may_leave_and_the_next_start_shows_a_set_up_link(administrator):
    assert services.setup_token() is None
    leaving(administrator)
    assert services.setup_token()


def test_an_administrator_neither_sees_who_left_nor_lets_them_in_again(alice, administrator):
    leaving(alice)

    page = page_of(administrator)
    assert "Former member" not in page.get("/admin/people").content.decode()
    page.post(f"/admin/people/{alice.pk}/active", {"active": "yes"})
    alice.refresh_from_db()
    assert not alice.is_active


def test_the_receipt_counts_what_went_and_says_when_the_index_has_confirmed(memory, alice):
    said(alice, thread(alice), "The safe combination is 12-34-56.")
    exchange(alice, "The key hangs behind the clock.", manual_entry=True)
    memory.index_pending()
    vectors = sum(EmbeddingJob.objects.values_list("parts", flat=True))

    address = leaving(alice)
    now = figures(address)
    assert (now["Threads removed"], now["Exchanges forgotten"]) == ("0 of 1 so far", "0, under way")
    assert "under way" in now["Vectors removed"]
    assert "Under way" in Client().get(address).content.decode()

    sweep()
    then = figures(address)
    assert (then["Threads removed"], then["Exchanges forgotten"]) == ("1", "2")
    assert then["Vectors removed"] == f"{vectors}, confirmed by the index"
    assert then["Original files removed"] == "all"
    assert then["Purged from disk"].startswith("by ")
    assert "Complete" in Client().get(address).content.decode()


def test_a_receipt_is_not_called_complete_while_it_says_that_something_is_under_way(memory, alice, monkeypatch):
    exchange(alice, "The key hangs behind the clock.", manual_entry=True)
    memory.index_pending()
    address = leaving(alice)

    def and_then_all_is_done(*args: Any, ask: Any = deletion.space_receipt, **fields: Any) -> Any:
        seen = ask(*args, **fields)
        sweep()
        return seen

    monkeypatch.setattr(departures.memory, "space_receipt", and_then_all_is_done)
    page = Client().get(address).content.decode()
    assert "0, under way" in page
    assert "Complete" not in page


def test_what_was_forgotten_before_is_not_counted_again(memory, alice):
    memory.forget([exchange(alice, "An old secret.").id], by=alice.pk)
    address = leaving(alice)
    sweep()
    assert figures(address)["Exchanges forgotten"] == "0"


def test_a_receipt_names_nobody_and_nobody_finds_it_without_its_address(alice):
    address = leaving(alice)
    page = Client().get(address).content.decode()
    assert "Alice" not in page
    assert "alice" not in page
    assert AccountDeletion.objects.get().token_hash not in address
    assert Client().get("/receipt/guessed").status_code == 404


def test_the_audit_log_says_that_somebody_left(alice):
    leaving(alice)
    assert AuditEntry.objects.filter(actor=alice, action="account.deleted").exists()


def test_an_answer_that_is_being_written_is_stopped_first(memory, alice):
    talk = thread(alice)
    busy = turn(talk, "Tell me a long story", "Once", state="answering", heartbeat_at=timezone.now())
    leaving(alice)

    departures.run_account_deletions()
    busy.refresh_from_db()
    assert busy.stop_requested
    assert AccountDeletion.objects.get().emptied_at is None

    Turn.objects.filter(id=busy.id).update(state="stopped")
    AccountDeletion.objects.update(due_at=timezone.now())
    departures.run_account_deletions()
    assert not Thread.objects.filter(id=talk.id).exists()
    assert AccountDeletion.objects.get().emptied_at is not None


def test_what_came_too_late_is_found_when_it_is_looked_for_once_more(memory, alice):
    leaving(alice)
    sweep()
    late = exchange(alice, "An upload that was under way.")
    sweep()
    assert Exchange.objects.get(id=late.id).forgotten_at is None, "there is nothing to look for all the time"

    AccountDeletion.objects.update(created_at=timezone.now() - timedelta(minutes=11), due_at=timezone.now())
    sweep()
    assert Exchange.objects.get(id=late.id).forgotten_at is not None
    assert AccountDeletion.objects.get().state == Job.State.DONE


class Crash(BaseException):
    """The process dies here."""


def dying_at(step: int) -> Any:
    """A trace function that ends the process, as it were, before the line of that number of the emptying."""
    reached: set[tuple[str, int]] = set()
    watched = {deletion.__file__, departures.__file__, sys.modules["chat.threads.lifecycle"].__file__}

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename not in watched:
            return None
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
            if len(reached) > step:
                raise Crash
        return trace

    return trace


def test_a_crash_at_any_line_of_the_emptying_is_finished_by_the_sweep(memory, administrator):
    step, crashed, stride = -1, True, 1 if IS_LONG else 3
    while crashed:
        step += stride
        person = PersonFactory()
        said(person, thread(person), f"The safe combination is {step}.")
        exchange(person, f"The key of {step} hangs behind the clock.", manual_entry=True)
        address = leaving(person)
        before, crashed = sys.gettrace(), False
        sys.settrace(dying_at(step))
        try:
            departures.run_account_deletions()
        except Crash:
            crashed = True
            connection.close()
            connection.connect()
        finally:
            sys.settrace(before)

        # The lease of who died ends.
        AccountDeletion.objects.filter(person=person).update(locked_until=None)
        departures.run_account_deletions()
        memory.erase_forgotten()

        own = Exchange.objects.filter(space=access.personal_space(person.pk))
        assert set(own.values_list("user_message", flat=True)) == {""}, step
        assert not Thread.objects.filter(owner=person).exists(), step
        shown = figures(address)
        assert (shown["Threads removed"], shown["Exchanges forgotten"]) == ("1", "2"), step
    assert step > 25
    assert not ErasureJob.objects.exclude(state=Job.State.DONE).exists()


def test_more_than_one_slice_is_emptied_by_several_sweeps(memory, alice, monkeypatch):
    monkeypatch.setattr(deletion, "_TOGETHER", 2)
    monkeypatch.setattr(departures, "_BATCHES_PER_RUN", 1)
    for number in range(5):
        exchange(alice, f"Note {number}", manual_entry=True)
    leaving(alice)

    departures.run_account_deletions()
    assert Exchange.objects.filter(forgotten_at=None).count() == 3

    for _ in range(3):
        AccountDeletion.objects.update(due_at=timezone.now())
        departures.run_account_deletions()
    assert Exchange.objects.filter(forgotten_at=None).count() == 0
    assert AccountDeletion.objects.get().emptied_at is not None
    assert User.objects.get(pk=alice.pk).left_at is not None
