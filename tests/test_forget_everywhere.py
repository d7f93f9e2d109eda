"""Forget everywhere: what the dialog counts, what is deleted, for whom, and what the receipt says."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from cato_web.accounts.models import User
from chat import services
from chat.answers.persistence import store_exchange
from chat.errors import ConflictError, ThreadBusyError
from chat.models import Attachment, Instruction, Receipt, Thread, Turn
from chat.threads import fork
from chat.threads.locks import lock_thread
from chat.threads.titles import apply_model_title
from memory.exchanges.erasure import erase_forgotten
from memory.models import Collection, ErasureJob, Exchange, Job, RecallLogEntry
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, group, image_of, signed_in, statement, thread, turn

pytestmark = pytest.mark.django_db
SECRET = "Xian would do it for 31 euros."


def remembered(one: Turn) -> Turn:
    store_exchange(one)
    one.refresh_from_db()
    Thread.objects.filter(id=one.thread_id).update(head=one)
    return one


def recalled(source: Turn, by: Turn, number: int = 1) -> Turn:
    """Record that the exchange of `source` was recalled for `by`."""
    RecallLogEntry.objects.create(
        turn_id=by.id, exchange_id=source.exchange_id, rank=number, score=1.0, strategy="hybrid", reason="Similar"
    )
    return by


def url(one: Turn) -> str:
    return reverse("forget_everywhere", args=[one.exchange_id])


def dialog(client: Client, one: Turn) -> str:
    html = client.get(url(one)).content.decode()
    return re.sub(r"\s+", " ", html[html.index('id="dialog-content"') :].partition("</form>")[0])


def facts(html: str) -> dict[str, str]:
    """Return the lines of the dialog or receipt."""
    return {
        label: re.sub("<.*?>", "", text).strip() for label, text in re.findall(r"<dt>(.*?)</dt>.*?<dd>(.*?)</dd>", html)
    }


@pytest.fixture
def secret(memory, person) -> Turn:
    """Return the first turn of a thread, indexed."""
    one = remembered(turn(thread(person, title=SECRET), SECRET, "Noted: 31 euros."))
    memory.index_pending()
    return one


def test_the_dialog_counts_by_kind_and_leaves_out_zeros(secret, person, client):
    client.force_login(person)
    first = dialog(client, secret)
    assert list(facts(first)) == ["This exchange, including its text", "Its passages in the search index"]
    assert int(facts(first)["Its passages in the search index"]) >= 1
    assert 'name="answers"' not in first
    assert first.index("data-close autofocus") < first.index("button--danger")

    recalled(secret, remembered(turn(thread(person), "Who is cheaper?", "Xi'an [1], not Bergmann [2].")))
    recalled(secret, remembered(turn(thread(person), "And now?", "Nobody knows.")))
    client.get(reverse("export_thread", args=[secret.thread_id, "md"]))
    second = dialog(client, secret)
    assert facts(second)["Citations in later answers that will be empty"] == "1"
    assert facts(second)["Exports that contain it; Cato cannot erase them"].startswith("1, by you on ")
    assert "Also forget the 2 answers for which it was recalled" in second
    assert Exchange.objects.filter(forgotten_at=None).count() == 3


def test_statements_based_on_it_are_counted_before_and_after(secret, person, client):
    client.force_login(person)
    based = statement(Exchange.objects.get(pk=secret.exchange_id), text="Xi'an is cheaper.")
    assert facts(dialog(client, secret))["Statements based on it"] == "1"

    page = client.get(client.post(url(secret)).headers["location"]).content.decode()

    assert "Statements forgotten" in page
    assert Exchange.objects.get(pk=based.pk).forgotten_at is not None


def test_the_text_is_deleted_in_the_thread_its_copies_and_regenerated_versions(memory, secret, person, client):
    client.force_login(person)
    secret.attachments.add(image_of(person))
    again = services.regenerate(secret, person_id=person.id, client_key=secret.id).posted.turn
    Turn.objects.filter(id=again.id).update(
        state="complete",
        answer="Thirty-one, as I said.",
        reasoning="So it was thirty-one.",
        tool_messages=[{"role": "tool", "tool_call_id": "a", "content": "31 euros"}],
        generation_options={"stop": ["31 euros"], "response_format": {"type": "json_object"}},
    )
    again.refresh_from_db()
    remembered(again)
    fork = services.fork_thread(again, person_id=person.id)
    assert SECRET in client.get(f"/t/{fork.id}").content.decode()

    target = client.post(url(again)).headers["location"]

    assert set(Turn.objects.values_list("message", "answer", "reasoning")) == {("", "", "")}
    assert [*Turn.objects.exclude(tool_messages=[], generation_options={})] == []
    assert not Exchange.objects.filter(forgotten_at=None).exists()
    assert not Attachment.objects.exists()
    assert set(Thread.objects.values_list("title", flat=True)) == {"Untitled thread"}
    receipt = Receipt.objects.get()
    assert target == f"/t/{again.thread_id}?receipt={receipt.id}#receipt-{receipt.id}"
    page = client.get(target).content.decode()
    shown = page[page.index('id="turns"') :].partition("dock")[0].lower()
    assert "thirty-one" not in shown
    assert "31 euros" not in shown
    assert f"Receipt {receipt.id.hex[:4]}" in page
    assert "Forgotten everywhere" in page


def test_a_copy_of_an_answer_in_progress_is_forgotten_with_what_became_of_it(memory, person, client):
    client.force_login(person)
    one = turn(thread(person), SECRET, "", state="answering")
    copied = services.fork_thread(one, person_id=person.id)
    Turn.objects.filter(id=one.id).update(state="complete", answer="Noted: 31 euros.")
    one.refresh_from_db()

    client.post(url(remembered(one)))

    assert [*Turn.objects.values_list("message", "answer")] == [("", ""), ("", "")]
    assert "31 euros" not in client.get(f"/t/{copied.id}").content.decode()


def test_a_fork_waits_for_what_is_forgotten_at_the_same_time(memory, secret, person, monkeypatch):
    def lock_after_forgetting(thread_id: uuid.UUID) -> Thread:
        services.forget_everywhere(person.id, secret.exchange_id, is_administrator=False, with_answers=False)
        return lock_thread(thread_id)

    monkeypatch.setattr(fork, "lock_thread", lock_after_forgetting)
    copied = services.fork_thread(Turn.objects.select_related("thread").get(id=secret.id), person_id=person.id)

    assert copied.title == "Untitled thread"
    assert copied.turns.get().message == ""


@pytest.mark.parametrize("is_regenerated", [False, True])
def test_an_answer_to_a_copied_message_is_forgotten_with_the_original(memory, person, is_regenerated):
    one = remembered(turn(thread(person), SECRET, "Noted: 31", state="stopped"))
    (copy,) = services.fork_thread(one, person_id=person.id).turns.all()
    if is_regenerated:
        copy = services.regenerate(copy, person_id=person.id, client_key=one.id).posted.turn
    Turn.objects.filter(id=copy.id).update(state="complete", answer="Noted: 31 euros.")
    copy.refresh_from_db()
    remembered(copy)
    assert Exchange.objects.filter(forgotten_at=None).count() == 2

    receipt = services.forget_everywhere(person.id, one.exchange_id, is_administrator=False, with_answers=False)

    assert not Exchange.objects.filter(forgotten_at=None).exists()
    assert not Turn.objects.exclude(message="").exists()
    assert set(receipt.exchange_ids) == {str(id) for id in Exchange.objects.values_list("id", flat=True)}


def test_who_forgets_a_copy_in_place_of_its_author_does_not_forget_the_original(memory, person):
    author = PersonFactory()
    crew = group("Crew", person, author)
    one = turn(thread(author, space=crew), SECRET, "", state="failed")
    (copy,) = services.fork_thread(one, person_id=person.id).turns.all()
    Turn.objects.filter(id=copy.id).update(state="complete", answer="Noted: 31 euros.")
    copy.refresh_from_db()
    remembered(copy)
    second = services.fork_thread(one, person_id=person.id).turns.get()

    services.forget_everywhere(person.id, copy.exchange_id, is_administrator=False, with_answers=False)

    assert dict(Turn.objects.values_list("id", "message")) == {one.id: SECRET, copy.id: "", second.id: ""}


def test_an_instruction_from_a_version_that_was_not_answered_is_deleted(memory, person):
    failed = turn(thread(person), SECRET, "", state="failed", is_typed=True)
    Instruction.objects.create(
        space=failed.thread.space, author=person, turn=failed, text=SECRET, state=Instruction.State.KEPT
    )
    again = services.regenerate(failed, person_id=person.id, client_key=failed.id).posted.turn
    Turn.objects.filter(id=again.id).update(state="complete", answer="Noted.")
    again.refresh_from_db()

    services.forget_everywhere(person.id, remembered(again).exchange_id, is_administrator=False, with_answers=False)

    assert not Instruction.objects.exists()


def test_answers_are_forgotten_with_it_only_on_request_and_only_those_the_person_may_forget(memory, person):
    crew, other = group("Crew", person, friend := PersonFactory()), PersonFactory()
    first = remembered(turn(thread(friend, space=crew), SECRET, "Noted.", author=person))
    own = recalled(first, remembered(turn(thread(friend, space=crew), "Who?", "Xi'an [1].", author=person)))
    friends = recalled(first, remembered(turn(thread(friend, space=crew), "And?", "Xi'an [1].", author=friend)))
    elsewhere = recalled(first, remembered(turn(thread(other), "What?", "Xi'an [1].")))
    scope = services.find_scope(person.id, first.exchange_id, is_administrator=False)
    assert (scope.citations, list(scope.answer_ids)) == (2, [own.id])

    Turn.objects.update(endpoint_reason={"message": f"Cannot read {SECRET}"})
    services.forget_everywhere(person.id, first.exchange_id, is_administrator=False, with_answers=True)

    assert not any(SECRET in str(one.endpoint_reason) for one in Turn.objects.filter(id__in=[first.id, own.id]))
    texts = {one.id: one.message for one in Turn.objects.all()}
    assert texts == {first.id: "", own.id: "", friends.id: "And?", elsewhere.id: "What?"}


def test_answers_that_recalled_a_statement_from_it_have_used_it(secret, person):
    answer = remembered(turn(thread(person), "How much is it?", "31 euros [1]."))
    based = statement(Exchange.objects.get(pk=secret.exchange_id), text="Xi'an is cheaper.")
    RecallLogEntry.objects.create(
        turn_id=answer.id, exchange_id=based.pk, rank=1, score=1.0, strategy="hybrid", reason="Similar"
    )
    scope = services.find_scope(person.id, secret.exchange_id, is_administrator=False)
    assert (scope.citations, list(scope.answer_ids)) == (1, [answer.id])

    services.forget_everywhere(person.id, secret.exchange_id, is_administrator=False, with_answers=True)
    answer.refresh_from_db()
    assert answer.answer == ""


def test_answers_that_memory_does_not_have_are_forgotten_with_it(memory, secret, person, client):
    client.force_login(person)
    unsaved = recalled(secret, turn(thread(person, is_remembered=False), "Who is cheaper?", "Xi'an: 31 euros [1]."))
    services.fork_thread(unsaved, person_id=person.id)
    forgotten = recalled(secret, remembered(turn(thread(person), "How much?", "31 euros [1].")))
    memory.forget([forgotten.exchange_id], by=person.id)
    assert "Also forget the 2 answers for which it was recalled" in dialog(client, secret)

    client.post(url(secret), {"answers": "yes"})

    assert set(Turn.objects.values_list("message", "answer")) == {("", "")}


def test_it_waits_for_an_answer_in_progress_that_is_to_be_forgotten_too(memory, secret, person):
    running = recalled(secret, turn(thread(person), "Who is cheaper?", "Xi'an", state="answering"))
    with pytest.raises(ThreadBusyError):
        services.forget_everywhere(person.id, secret.exchange_id, is_administrator=False, with_answers=True)
    assert Turn.objects.get(id=secret.id).message == SECRET

    services.forget_everywhere(person.id, secret.exchange_id, is_administrator=False, with_answers=False)
    assert Turn.objects.get(id=running.id).message == "Who is cheaper?"


def test_an_answer_is_no_longer_based_on_what_was_forgotten(memory, secret, person, client):
    client.force_login(person)
    kept = remembered(turn(thread(person), "The other offer?", "38 euros."))
    both = recalled(secret, remembered(turn(thread(person), "Who?", "Xian [1], Bergmann [2].")))
    recalled(kept, both, 2)
    alone = recalled(secret, remembered(turn(thread(person), "Who else?", "Xian [1].")))

    def summary(one: Turn) -> str:
        html = client.get(f"/t/{one.thread_id}").content.decode()
        return re.sub(r"<.*?>|\s+", " ", html.partition(f'id="turn-{one.id}-summary"')[2].partition("</summary>")[0])

    assert "Based on 2 sources" in summary(both)
    services.forget_everywhere(person.id, secret.exchange_id, is_administrator=False, with_answers=False)
    assert "Based on 1 source " in summary(both)
    assert "Sources forgotten" in summary(alone)


def test_without_the_option_answers_keep_their_text(memory, secret, person):
    later = recalled(secret, remembered(turn(thread(person), "Who?", "Xi'an [1].")))
    services.forget_everywhere(person.id, secret.exchange_id, is_administrator=False, with_answers=False)
    later.refresh_from_db()
    assert later.answer == "Xi'an [1]."
    assert Receipt.objects.get().citations == 1


@pytest.mark.parametrize(
    ("role", "is_allowed"),
    [("author", True), ("owner", True), ("reader", False), ("administrator", True), ("stranger", False)],
)
def test_who_may(memory, role, is_allowed):
    people: dict[str, User] = {name: PersonFactory() for name in ("author", "owner", "reader", "stranger")}
    people["administrator"] = AdministratorFactory()
    crew = group("Crew", *(people[name] for name in ("author", "owner", "reader", "administrator")))
    one = remembered(turn(thread(people["owner"], space=crew), SECRET, "Noted.", author=people["author"]))
    client = signed_in(people[role])

    assert client.get(url(one)).status_code == (200 if is_allowed else 404)
    answer = client.post(url(one))
    assert answer.status_code == (302 if is_allowed else 404)
    one.refresh_from_db()
    assert (one.message == "") is is_allowed


def test_an_author_without_access_forgets_their_message_and_learns_nothing_of_the_thread(memory):
    owner, author = PersonFactory(), PersonFactory()
    one = remembered(turn(thread(owner), SECRET, "Noted.", author=author))
    signed_in(owner).get(reverse("export_thread", args=[one.thread_id, "md"]))
    recalled(one, remembered(turn(thread(owner), "Who?", "Xian [1].", author=author)))
    assert list(facts(dialog(signed_in(owner), one))) == [
        "This exchange, including its text",
        "Citations in later answers that will be empty",
        "Exports that contain it; Cato cannot erase them",
    ]

    question = dialog(signed_in(author), one)
    assert list(facts(question)) == ["This exchange, including its text"]
    assert str(one.thread_id) not in question
    target = signed_in(author).post(url(one)).headers["location"]
    assert target == reverse("receipt", args=[Receipt.objects.get().id])
    one.refresh_from_db()
    assert one.message == ""


def test_a_receipt_is_for_one_person_and_has_no_text(memory, secret, person, client):
    client.force_login(person)
    client.post(url(secret))
    receipt = Receipt.objects.get()
    page = client.get(reverse("receipt", args=[receipt.id])).content.decode()
    assert facts(re.sub(r"\s+", " ", page))["Forgotten"].startswith("1 exchange, ")
    assert SECRET not in page
    assert receipt.id.hex[:4] in client.get(reverse("receipts")).content.decode()

    stranger = signed_in(AdministratorFactory())
    assert stranger.get(reverse("receipt", args=[receipt.id])).status_code == 404
    assert receipt.id.hex[:4] not in stranger.get(reverse("receipts")).content.decode()


def test_the_receipt_stays_at_the_turn_until_all_is_erased_and_names_the_next_attempt(memory, secret, person, client):
    client.force_login(person)
    client.post(url(secret))
    page, receipt = f"/t/{secret.thread_id}", Receipt.objects.get()
    assert f"Receipt {receipt.id.hex[:4]}" in client.get(page).content.decode()
    assert "not yet erased" not in client.get(page).content.decode()

    ErasureJob.objects.update(error="The vector store is down.", due_at=timezone.now() + timedelta(minutes=5))
    assert "not yet erased from disk. Next attempt" in client.get(page).content.decode()
    ErasureJob.objects.update(state=Job.State.FAILED)
    assert "An administrator can retry it." in client.get(page).content.decode()

    ErasureJob.objects.update(state=Job.State.PENDING, error="", due_at=timezone.now())
    assert erase_forgotten() == 1
    Collection.objects.update(purge_needed_since=None)
    assert "Receipt" not in client.get(page).content.decode()
    assert "Erased from disk<" in client.get(f"{page}?receipt={receipt.id}").content.decode()


def test_a_turn_that_was_forgotten_everywhere_offers_nothing_and_refuses_everything(memory, secret, person, client):
    client.force_login(person)
    Turn.objects.filter(id=secret.id).update(state="stopped")
    client.post(url(secret))
    secret.refresh_from_db()
    footer = client.get(f"/t/{secret.thread_id}").content.decode().partition(f'id="turn-{secret.id}-footer"')[2]
    assert "<button" not in footer.partition("</article>")[0]

    for act in (
        lambda: services.regenerate(secret, person_id=person.id, client_key=secret.id),
        lambda: services.edit_message(secret, person_id=person.id, message="Who?", client_key=secret.id),
        lambda: services.retry_turn(secret),
        lambda: services.resume_turn(secret),
    ):
        with pytest.raises(ConflictError):
            act()
    assert Turn.objects.count() == 1


def test_what_was_only_forgotten_can_be_forgotten_everywhere_while_its_text_is_left(memory, secret, person, client):
    client.force_login(person)
    recalled(secret, remembered(turn(thread(person), "Who is cheaper?", "Xi'an [1].")))
    client.post(reverse("forget_exchange", args=[secret.exchange_id]))
    erase_forgotten()
    assert SECRET in client.get(f"/t/{secret.thread_id}").content.decode()
    assert url(secret) in client.get(f"/t/{secret.thread_id}").content.decode()
    assert facts(dialog(client, secret))["Citations in later answers that will be empty"] == "1"
    assert signed_in(PersonFactory()).get(url(secret)).status_code == 404

    client.post(url(secret))
    secret.refresh_from_db()
    assert (secret.message, secret.answer) == ("", "")
    page = client.get(f"/t/{secret.thread_id}").content.decode()
    assert url(secret) not in page
    assert client.get(url(secret)).status_code == 404
    assert client.post(url(secret)).status_code == 404


def test_the_dialog_opens_before_the_counts_and_nothing_can_be_forgotten_until_they_are_there(secret, person, client):
    client.force_login(person)
    html = client.get(url(secret), headers={"HX-Request": "true"}).content.decode()
    assert re.search(r'<button type="submit" class="button button--danger" disabled\s*>', html)
    assert f'hx-get="{url(secret)}?counted=yes" hx-trigger="load"' in html
    counted = client.get(f"{url(secret)}?counted=yes", headers={"HX-Request": "true"}).content.decode()
    assert "disabled" not in counted.partition("button--danger")[2].partition(">")[0]
    assert "This exchange, including its text" in re.sub(r"\s+", " ", counted)
    assert signed_in(PersonFactory()).get(url(secret), headers={"HX-Request": "true"}).status_code == 404


def test_it_waits_for_an_answer_in_progress(memory, secret, person, client):
    Turn.objects.filter(id=secret.id).update(state="answering")
    with pytest.raises(ThreadBusyError):
        services.forget_everywhere(person.id, secret.exchange_id, is_administrator=False, with_answers=False)
    client.force_login(person)
    assert client.post(url(secret)).headers["location"].endswith(f"#turn-{secret.id}")
    assert Turn.objects.get().message == SECRET


def test_notes_and_passages_have_no_turn_to_forget(memory, person, client):
    from memory.exchanges.notes import add_note

    (note,) = add_note("The winch.", space=access.personal_space(person.id), owner_id=person.id, source="vadd_command")
    client.force_login(person)
    assert client.get(reverse("forget_everywhere", args=[note.id])).status_code == 404


def test_a_title_that_the_model_writes_meanwhile_is_not_set(memory, secret, person):
    before = Thread.objects.select_related("space").get(id=secret.thread_id)
    services.forget_everywhere(person.id, secret.exchange_id, is_administrator=False, with_answers=False)

    assert not apply_model_title(before, "Xian at 31 euros")
    assert Thread.objects.get(id=secret.thread_id).title == "Untitled thread"


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_copied_title_of_the_model_is_replaced_when_the_original_has_another_one_or_is_gone(
    memory, secret, person, is_deleted
):
    apply_model_title(secret.thread, "Xian at 31 euros")
    (copy,) = services.fork_thread(secret, person_id=person.id).turns.all()
    if is_deleted:
        again = services.regenerate(copy, person_id=person.id, client_key=secret.id).posted.turn
        Turn.objects.filter(id=again.id).update(state="complete", answer="31 euros.")
        again.refresh_from_db()
        remembered(again)
        services.delete_last_turns(secret.thread, 1, by=person.id)
    else:
        services.rename_thread(secret.thread, "Suppliers")
        again = secret

    services.forget_everywhere(person.id, again.exchange_id, is_administrator=False, with_answers=False)

    assert Thread.objects.get(id=copy.thread_id).title == "Untitled thread"


def test_a_title_that_a_person_chose_stays(memory, secret, person):
    services.rename_thread(secret.thread, "Suppliers")
    services.forget_everywhere(person.id, secret.exchange_id, is_administrator=False, with_answers=False)
    assert Thread.objects.get().title == "Suppliers"
