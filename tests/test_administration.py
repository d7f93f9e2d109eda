"""Administration of stored exchanges: filters, reveals, bulk forgetting, operations, retention and the audit log."""

from __future__ import annotations

import html
import json
import re
import uuid
from datetime import timedelta
from io import BytesIO
from zipfile import ZipFile

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from cato_web.accounts import roles
from cato_web.accounts.export import archive as archives
from cato_web.accounts.export import zip_stream
from cato_web.accounts.models import AuditEntry, ExportJob
from chat import signals as chat_signals
from chat.models import ImportJob
from memory.administration import operations, retention, reveals
from memory.api import add_note, log_recall
from memory.documents.deletion import forget_documents
from memory.embeddings import local
from memory.errors import EmbeddingError
from memory.index import generations
from memory.models import (
    Document,
    DocumentVersion,
    EmbeddingJob,
    Exchange,
    IndexGeneration,
    Job,
    Operation,
    RetentionRule,
    Reveal,
)
from memory.retrieval.types import ExchangeView, Hit
from memory.spaces import access
from memory.views.administration import exchanges as exchange_views
from tests.factories import (
    AdministratorFactory,
    PersonFactory,
    ago,
    document,
    exchange,
    exported_archive,
    group,
    image_of,
    signed_in,
    thread,
    turn,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada():
    return AdministratorFactory(name="Ada Admin")


@pytest.fixture
def bob():
    return PersonFactory(name="Bob Team")


@pytest.fixture
def page(ada) -> Client:
    return signed_in(ada)


def list_exchanges(page: Client, **filters: object) -> str:
    answer = page.get(reverse("admin_exchanges"), filters)
    assert answer.status_code == 200
    return answer.content.decode()


def ids_in(text: str, *rows: Exchange) -> set[uuid.UUID]:
    return {row.pk for row in rows if str(row.pk) in text}


def texts_of(action: str) -> list[str]:
    return list(AuditEntry.objects.filter(action=action).order_by("pk").values_list("target", flat=True))


def confirmed(page: Client, address: str, form: dict[str, object]) -> HttpResponse:
    """Ask for the action, and send what the question asks to confirm."""
    question = page.post(address, form).content.decode().partition('id="dialog-content"')[2].partition("</form>")[0]
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', question):
        fields.setdefault(name, []).append(html.unescape(value))
    return page.post(address, fields)


def receipt_of(answer, page: Client) -> str:
    """Return the receipt after a worker has run the operation."""
    assert answer.status_code == 302, answer.content.decode()[:2000]
    operations.run_operations()
    return page.get(answer.url).content.decode()


# Filters


def test_exchanges_are_filtered_by_person_source_date_space_and_size(memory, page, ada, bob):
    crew = group("Crew", bob)
    own = exchange(bob, "Mine", "x" * 500)
    shared = exchange(bob, "Ours", space=crew)
    old = exchange(ada, "Long ago", source="import", timestamp=ago(days=400))

    def matching(**filters: object) -> set[uuid.UUID]:
        return ids_in(list_exchanges(page, **filters), own, shared, old)

    assert matching() == {own.pk, shared.pk, old.pk}
    assert matching(person=bob.pk) == {own.pk, shared.pk}
    assert matching(source="import") == {old.pk}
    assert matching(until=ago(days=30).date()) == {old.pk}
    assert matching(since=ago(days=30).date()) == {own.pk, shared.pk}
    assert matching(space=crew.pk) == {shared.pk}
    assert matching(space="own") == {own.pk, old.pk}
    assert matching(least=400) == {own.pk}
    assert matching(most=400, person=bob.pk) == {shared.pk}


def test_exchanges_are_filtered_by_their_state_in_the_index(memory, page, bob):
    shared_exchange = exchange(bob, "There")
    memory.index_pending()
    waits, failed = exchange(bob, "Waits"), exchange(bob, "Failed")
    EmbeddingJob.objects.filter(exchange=failed).update(state=Job.State.FAILED)
    lost = exchange(bob, "Lost")
    EmbeddingJob.objects.filter(exchange=lost).delete()

    for state, row in {"remembered": shared_exchange, "waiting": waits, "failed": failed, "none": lost}.items():
        assert ids_in(list_exchanges(page, state=state), shared_exchange, waits, failed, lost) == {row.pk}, state


def test_a_text_filter_matches_only_texts_that_the_administrator_may_read(memory, page, ada, bob):
    hidden = exchange(bob, "The kayak lies behind the barn")
    team = exchange(bob, "The kayak is red", space=access.team_space())

    text = list_exchanges(page, q="kayak")
    assert ids_in(text, hidden, team) == {team.pk}
    assert "of 1<" in text
    assert "barn" not in list_exchanges(page)
    assert ids_in(list_exchanges(page, q="red kayak"), hidden, team) == {team.pk}
    assert ids_in(list_exchanges(page, q="green kayak"), hidden, team) == set()
    assert ids_in(list_exchanges(page, q=hidden.pk), hidden, team) == {hidden.pk}


@pytest.mark.parametrize("filters", [{"person": "nobody"}, {"since": "soon"}, {"space": "x"}, {"least": "many"}])
def test_an_invalid_filter_is_reported_and_hides_nothing(memory, page, bob, filters):
    row = exchange(bob, "Something")
    text = list_exchanges(page, **filters)
    assert 'class="error-message"' in text
    assert str(row.pk) in text


@pytest.mark.parametrize("view", ["admin_exchanges", "admin_documents"])
def test_with_an_invalid_filter_only_ticked_rows_can_be_chosen(memory, page, bob, view):
    document(bob, "menu.txt", "Soup on Monday. " * 40)
    valid = page.get(reverse(view), {"person": bob.pk}).text
    assert 'name="all"' in valid
    assert f'name="filters" value="person={bob.pk}"' in valid

    invalid = page.get(reverse(view), {"person": "nobody"}).text

    assert 'name="all"' not in invalid
    assert 'name="filters" value=""' in invalid


# Reveals


def test_a_reveal_is_temporary_has_a_reason_and_is_seen_by_the_owner_and_the_audit_log(memory, page, ada, bob):
    hidden = exchange(bob, "The kayak lies behind the barn")
    reveal_url = reverse("reveal", args=[hidden.space_id])
    assert "Access the personal space of Bob Team?" in page.get(reveal_url).content.decode()
    assert page.post(reveal_url, {"reason": "because"}).status_code == 422
    assert "barn" not in list_exchanges(page)

    page.post(reveal_url, {"reason": "The police asks for the kayak", "next": reverse("admin_exchanges")})
    text = list_exchanges(page, q="kayak")
    assert "behind the barn" in text
    assert "The police asks for the kayak" in text
    assert [row.by for row in reveals.list_reveals(access.personal_space(bob.pk))] == [ada]
    assert "The police asks for the kayak" in texts_of("space.revealed")[0]

    Reveal.objects.update(ends_at=timezone.now())
    assert "barn" not in list_exchanges(page, q="kayak")


@pytest.mark.parametrize("target", ["word", "admin_people", "https://evil.example/", "//evil.example"])
def test_a_reveal_redirects_only_within_this_site(memory, page, bob, target):
    reveal_url = reverse("reveal", args=[access.personal_space(bob.pk).pk])
    answer = page.post(reveal_url, {"reason": "The police asks for the kayak", "next": target})
    assert (answer.status_code, answer.url) == (302, reverse("admin_exchanges"))


def test_a_reveal_ends_by_its_button_and_counts_for_no_other_administrator(memory, page, ada, bob):
    hidden = exchange(bob, "The kayak lies behind the barn")
    row = reveals.reveal(hidden.space, by=ada.pk, reason="The police asks for it")
    other = signed_in(AdministratorFactory())
    assert "barn" not in list_exchanges(other)
    other.post(reverse("end_reveal", args=[row.pk]))
    assert "barn" in list_exchanges(page)

    page.post(reverse("end_reveal", args=[row.pk]))
    assert "barn" not in list_exchanges(page)
    assert len(texts_of("space.reveal_ended")) == 1


@pytest.mark.parametrize("change", ["role", "account"])
def test_a_reveal_ends_with_the_role_and_does_not_return_with_it(memory, ada, bob, change):
    eve = AdministratorFactory(name="Eve Admin")
    own = access.personal_space(bob.pk)
    reveals.reveal(own, by=eve.pk, reason="The police asks for the kayak")
    if change == "role":
        roles.set_role(eve, "member", by=ada)
        roles.set_role(eve, "administrator", by=ada)
    else:
        roles.set_active(eve.pk, False, by=ada)
        roles.set_active(eve.pk, True, by=ada)
    assert own.pk not in access.admin_visible_space_ids(eve.pk)


def test_a_reveal_opens_the_lists_of_the_administration_and_no_other_page(memory, page, ada, bob):
    hidden = exchange(bob, "The kayak lies behind the barn")
    memory.index_pending()
    reveals.reveal(hidden.space, by=ada.pk, reason="The police asks for it")

    assert "barn" not in page.get(reverse("search"), {"q": "kayak"}).content.decode()
    assert page.get(reverse("exchange", args=[hidden.pk])).status_code == 404
    assert hidden.space_id not in access.readable_space_ids(ada.pk)


def test_the_owner_of_a_revealed_space_sees_who_revealed_it_and_why(memory, ada, bob):
    reveals.reveal(access.personal_space(bob.pk), by=ada.pk, reason="The police asks for the kayak")
    own_client, other_client = signed_in(bob), signed_in(PersonFactory())
    text = own_client.get(reverse("settings")).content.decode()
    assert "The police asks for the kayak" in text
    assert "Ada Admin" in text
    assert "police" not in other_client.get(reverse("settings")).content.decode()


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_the_archive_of_a_person_requires_a_reveal_of_their_space(memory, page, ada, bob):
    exchange(bob, "The kayak lies behind the barn")
    archive_url = reverse("export_person", args=[bob.pk])
    refused = page.post(archive_url)
    assert refused.url.startswith(reverse("reveal", args=[access.personal_space(bob.pk).pk]))

    reveals.reveal(access.personal_space(bob.pk), by=ada.pk, reason="Bob asked for a copy of his data")
    with ZipFile(BytesIO(b"".join(page.post(archive_url)))) as archive:
        assert "behind the barn" in archive.read("exchanges.jsonl").decode()
    assert texts_of("person.exported") == [str(bob.pk)]


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_the_archive_for_an_administrator_omits_spaces_that_were_not_revealed(memory, page, ada, bob):
    gardeners, crew = group("Gardeners", bob), group("Crew", bob, ada)
    in_group = turn(thread(bob, space=gardeners, title="ZEBRA title"), "ZEBRA question", "ZEBRA answer")
    in_group.attachments.add(image_of(bob, "ZEBRA.png"))
    shared = exchange(bob, "ZEBRA exchange", space=gardeners, thread_id=in_group.thread_id, turn_id=in_group.id)
    add_note("ZEBRA note", space=gardeners, owner_id=bob.pk, source="vadd_command", manual_entry=True)
    document(bob, "ZEBRA.txt", "The ZEBRA lives in the garden. " * 20, space=gardeners)
    elsewhere = turn(thread(PersonFactory(), space=gardeners), "ZEBRA elsewhere", author=bob)
    own = turn(thread(bob, title="Own"), "What lives in the garden?", "I do not know.")
    matching = ExchangeView.from_row(shared, None)
    log_recall(own.id, [Hit(matching, 0.9, 0.9, strategy="default", explanation="ZEBRA reason", is_below_gate=False)])
    exchange(bob, "The kayak lies behind the barn")
    exchange(bob, "The oar is in the cellar", space=crew)
    for name, options in (
        ("ZEBRA chats", {"space": gardeners}),
        ("ZEBRA channels", {"has_channel_projects": True}),
        ("rowing chats", {}),
    ):
        ImportJob.objects.create(owner=bob, name=name, due_at=ago(), **options)
    reveals.reveal(access.personal_space(bob.pk), by=ada.pk, reason="Bob asked for a copy of his data")

    def text_of(archive: ZipFile) -> str:
        return "\n".join([*archive.namelist(), *(archive.read(n).decode(errors="replace") for n in archive.namelist())])

    def archive_text() -> str:
        return text_of(ZipFile(BytesIO(b"".join(page.post(archive_url)))))

    archive_url = reverse("export_person", args=[bob.pk])
    archive = archive_text()
    assert "ZEBRA" not in archive
    assert str(elsewhere.id) not in archive
    assert "behind the barn" in archive
    assert "in the cellar" in archive
    assert "rowing chats" in archive
    assert "- Gardeners" in archive
    assert "- Crew" not in archive

    own_archive = text_of(exported_archive(bob))
    assert own_archive.count("ZEBRA") > 8
    assert "- Gardeners" not in own_archive
    reveals.reveal(gardeners, by=ada.pk, reason="Bob asked for a copy of his data")
    assert archive_text().count("ZEBRA") > 8


def end_button(ada) -> None:
    reveals.end_reveal(Reveal.objects.get().pk, by=ada.pk)


def expire(ada) -> None:
    Reveal.objects.update(ends_at=ago())


def demote(ada) -> None:
    roles.set_role(ada, "member", by=AdministratorFactory())


def deactivate(ada) -> None:
    roles.set_active(ada.pk, False, by=AdministratorFactory())


async def read_with_a_change_after_the_beginning(response, change, *args) -> tuple[bytes, bool]:
    """Read a streamed response, of which a part is sent before `change`; return it, and whether it was complete."""
    parts = aiter(response)
    content = await anext(parts)
    await sync_to_async(change)(*args)
    try:
        async for part in parts:
            content += part
    except PermissionDenied:
        return content, False
    return content, True


@pytest.mark.parametrize("end_access", [None, end_button, expire, demote, deactivate])
def test_an_archive_ends_with_the_access_to_the_space(memory, page, ada, bob, monkeypatch, end_access):
    monkeypatch.setattr(zip_stream, "_CHUNK_SIZE", 1)
    monkeypatch.setattr(archives, "_CHECK_INTERVAL", 0)
    exchange(bob, "The kayak lies behind the barn")
    reveals.reveal(access.personal_space(bob.pk), by=ada.pk, reason="Bob asked for a copy of his data")
    response = page.post(reverse("export_person", args=[bob.pk]))

    change = end_access or (lambda ada: None)
    content, is_complete = async_to_sync(read_with_a_change_after_the_beginning)(response, change, ada)
    assert is_complete is (end_access is None)
    assert b"README.txt" in content
    assert (b"exchanges.jsonl" in content) is is_complete


# Bulk forgetting


def test_selected_exchanges_are_forgotten_after_confirmation_with_a_receipt(memory, page, ada, bob):
    removed, stays = [exchange(bob, f"Note {n}") for n in range(3)], exchange(bob, "Stays")
    memory.index_pending()
    form = {"exchange": [str(row.pk) for row in removed], "filters": ""}

    assert "Forget 3 exchanges?" in page.post(reverse("admin_forget"), form).content.decode()
    assert Exchange.objects.filter(forgotten_at=None).count() == 4

    receipt = receipt_of(confirmed(page, reverse("admin_forget"), form), page)
    assert Exchange.objects.get(forgotten_at=None) == stays
    assert "Exchanges" in receipt
    assert "3 in progress" in receipt
    memory.erase_forgotten()
    (operation,) = Operation.objects.all()
    receipt = page.get(reverse("admin_operation", args=[operation.pk])).content.decode()
    assert "in progress" not in receipt
    assert Exchange.objects.filter(forgotten_by=ada, forgotten_by_operation=operation).count() == 3
    assert texts_of("operation.started") == [f"forget {operation.pk}"]
    assert not texts_of("exchange.forgotten")


def test_all_filtered_exchanges_are_forgotten_but_none_stored_since(memory, page, bob):
    old = [exchange(bob, f"Note {n}", source="import") for n in range(5)]
    other = exchange(bob, "Another way", source="chat")
    form = {"filters": "source=import", "all": "yes"}
    assert "Forget 5 exchanges?" in page.post(reverse("admin_forget"), form).content.decode()

    answer = confirmed(page, reverse("admin_forget"), form)
    late = exchange(bob, "Came since", source="import")
    receipt_of(answer, page)
    assert set(Exchange.objects.filter(forgotten_at=None)) == {other, late}
    assert Exchange.objects.exclude(forgotten_at=None).count() == len(old)


def test_what_no_longer_matches_or_matches_since_changes_nothing_in_what_was_confirmed(memory, page, bob):
    waiting = exchange(bob, "Note")
    embedded = exchange(bob, "Another note")
    active = generations.active_generation()
    EmbeddingJob.objects.filter(exchange=embedded, generation=active).update(state=Job.State.DONE)
    answer = confirmed(page, reverse("admin_forget"), {"filters": "state=waiting", "all": "yes"})
    EmbeddingJob.objects.filter(exchange=waiting).update(state=Job.State.DONE)
    EmbeddingJob.objects.filter(exchange=embedded).update(state=Job.State.PENDING)
    receipt_of(answer, page)
    assert Exchange.objects.get(forgotten_at=None) == embedded


def test_a_question_is_asked_again_if_more_matches_than_it_said(memory, page, bob):
    exchange(bob, "Note")
    later = exchange(bob, "Another note")
    EmbeddingJob.objects.filter(exchange=later).update(state=Job.State.DONE)
    form = {"filters": "state=waiting", "all": "yes"}
    assert "Forget this exchange?" in page.post(reverse("admin_forget"), form).content.decode()
    EmbeddingJob.objects.filter(exchange=later).update(state=Job.State.PENDING)
    assert "Forget 2 exchanges?" in page.post(reverse("admin_forget"), form | {"confirmed": "1"}).content.decode()
    assert not Operation.objects.exists()


def test_what_is_stored_after_the_question_is_not_forgotten(memory, page, bob):
    asked = exchange(bob, "Note")
    question = page.post(reverse("admin_forget"), {"filters": "", "all": "yes"}).content.decode()
    at = re.search(r'name="asked_at" value="([^"]+)"', question)[1]
    late = exchange(bob, "Came since")
    receipt_of(page.post(reverse("admin_forget"), {"all": "yes", "confirmed": "1", "asked_at": at}), page)
    assert Exchange.objects.get(forgotten_at=None) == late
    asked.refresh_from_db()
    assert asked.forgotten_at


def test_more_than_the_limit_is_not_deleted_at_once(memory, page, bob, monkeypatch):
    monkeypatch.setattr(operations, "_MAX_DELETED", 1)
    for number in range(2):
        exchange(bob, f"Note {number}")
    answer = confirmed(page, reverse("admin_forget"), {"filters": "", "all": "yes"})
    assert answer.url == reverse("admin_exchanges")
    assert "At most 1 at once." in page.get(answer.url).content.decode()
    assert not Operation.objects.exists()


def test_the_confirmed_filter_decides_what_is_forgotten(memory, page, ada, bob):
    hidden = exchange(bob, "The kayak lies behind the barn")
    team = exchange(bob, "The kayak is red", space=access.team_space())
    answer = confirmed(page, reverse("admin_forget"), {"filters": "q=kayak", "all": "yes"})
    reveals.reveal(hidden.space, by=ada.pk, reason="Asked for after that")
    receipt_of(answer, page)
    hidden.refresh_from_db()
    team.refresh_from_db()
    assert hidden.forgotten_at is None
    assert team.forgotten_at is not None


def test_an_empty_selection_or_an_invalid_filter_forgets_nothing(memory, page, bob):
    exchange(bob, "Stays")
    unclear = {"filters": "person=nobody", "all": "yes"}
    for form in ({}, {"exchange": ["no id"]}, {"filters": "source=import", "all": "yes"}, unclear):
        assert page.post(reverse("admin_forget"), form | {"confirmed": "9"}).url == reverse("admin_exchanges")
    assert not Operation.objects.exists()


def test_an_operation_resumes_where_a_dead_worker_stopped(memory, page, bob, monkeypatch):
    for n in range(5):
        exchange(bob, f"Note {n}")
    monkeypatch.setattr(operations, "_BATCH_SIZE", 2)
    confirmed(page, reverse("admin_forget"), {"all": "yes", "filters": ""})
    (row,) = Operation.objects.all()

    real, calls = operations.forgetting.forget, []

    def die_at_second_batch(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(operations.forgetting, "forget", die_at_second_batch)
    with pytest.raises(KeyboardInterrupt):
        operations.run_operations()
    row.refresh_from_db()
    assert (row.state, row.processed) == (Job.State.PENDING, 2)
    assert operations.run_operations() == 0  # still leased

    Operation.objects.update(locked_until=ago(seconds=1))
    assert operations.run_operations() == 1
    row.refresh_from_db()
    assert (row.state, row.processed, row.counts) == (Job.State.DONE, 5, {"exchanges": 5})


@pytest.mark.parametrize("end_access", [demote, deactivate])
@pytest.mark.parametrize(
    ("name", "address", "module"),
    [("exchange", "admin_forget", operations.forgetting), ("document", "admin_forget_documents", operations)],
)
def test_an_operation_deletes_only_while_who_started_it_is_an_administrator(
    memory, page, ada, bob, monkeypatch, end_access, name, address, module
):
    make = {"exchange": lambda n: exchange(bob, f"Note {n}"), "document": lambda n: document(bob, f"{n}.txt", "Soup.")}
    rows = [make[name](number) for number in range(3)]
    monkeypatch.setattr(operations, "_BATCH_SIZE", 1)
    confirmed(page, reverse(address), {name: [row.pk for row in rows]})
    function = {"exchange": "forget", "document": "forget_documents"}[name]
    delete = getattr(module, function)

    def delete_one_and_end(*args, **options):
        deleted = delete(*args, **options)
        end_access(ada)
        return deleted

    monkeypatch.setattr(module, function, delete_one_and_end)
    operations.run_operations()

    (row,) = Operation.objects.all()
    assert (row.state, row.processed) == (Job.State.FAILED, 1)
    assert "Ada Admin" in row.error
    assert sum(bool(type(each).objects.get(pk=each.pk).forgotten_at) for each in rows) == 1
    operations.retry(row)
    assert operations.run_operations() == 0


def test_an_operation_names_who_started_it(memory, page, bob):
    exchange(bob, "A note")
    started = confirmed(page, reverse("admin_forget"), {"all": "yes", "filters": ""}).url
    (row,) = Operation.objects.all()

    for url in (started, reverse("admin_operations")):
        assert str(row.created_by) in page.get(url).content.decode().partition("<main")[2]


def test_a_cancelled_operation_stops(memory, page, bob, monkeypatch):
    for n in range(5):
        exchange(bob, f"Note {n}")
    monkeypatch.setattr(operations, "_BATCH_SIZE", 2)
    confirmed(page, reverse("admin_forget"), {"all": "yes", "filters": ""})
    (row,) = Operation.objects.all()
    real = operations.forgetting.forget

    def cancel_meanwhile(*args, **kwargs):
        transaction.on_commit(lambda: page.post(reverse("cancel_operation", args=[row.pk])))
        return real(*args, **kwargs)

    monkeypatch.setattr(operations.forgetting, "forget", cancel_meanwhile)
    operations.run_operations()
    assert Exchange.objects.filter(forgotten_at=None).count() == 3
    assert "Cancelled" in page.get(reverse("admin_operation", args=[row.pk])).content.decode()


def test_a_failed_operation_reports_the_error_and_can_be_retried(memory, page, bob, monkeypatch):
    exchange(bob, "Note")
    confirmed(page, reverse("admin_forget"), {"all": "yes", "filters": ""})
    (row,) = Operation.objects.all()
    real = operations.forgetting.forget

    def fail(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr(operations.forgetting, "forget", fail)
    for _ in range(5):
        Operation.objects.update(due_at=ago(seconds=1))
        operations.run_operations()
    text = page.get(reverse("admin_operation", args=[row.pk])).content.decode()
    assert "Something went wrong in Cato itself (ZeroDivisionError)" in text

    monkeypatch.setattr(operations.forgetting, "forget", real)
    receipt = receipt_of(page.post(reverse("retry_operation", args=[row.pk])), page)
    assert "Done" in receipt
    assert not Exchange.objects.filter(forgotten_at=None).exists()


def test_the_export_contains_only_readable_texts(memory, page, bob):
    exchange(bob, "The kayak lies behind the barn")
    exchange(bob, "The kayak is red", space=access.team_space())
    answer = page.post(reverse("admin_export"), {"all": "yes", "filters": ""})
    rows = [json.loads(line) for line in b"".join(answer).splitlines()]

    assert {row["is_shown"]: row.get("user_message") for row in rows} == {False: None, True: "The kayak is red"}
    assert texts_of("exchanges.exported") == ["2"]


@pytest.mark.parametrize("end_access", [None, end_button, expire, demote, deactivate])
def test_the_export_is_read_while_it_is_sent_and_ends_with_the_access(memory, page, ada, bob, monkeypatch, end_access):
    monkeypatch.setattr(exchange_views, "_EXPORT_BATCH_SIZE", 1)
    for number in range(3):
        exchange(bob, f"The kayak number {number}")
    reveals.reveal(access.personal_space(bob.pk), by=ada.pk, reason="Bob asked for a copy of his data")
    response = page.post(reverse("admin_export"), {"all": "yes", "filters": ""})

    change = end_access or (lambda ada: None)
    content, is_complete = async_to_sync(read_with_a_change_after_the_beginning)(response, change, ada)
    assert is_complete is (end_access is None)
    assert content.count(b"The kayak number") == (3 if is_complete else 1)


def test_the_export_needs_the_role_of_an_administrator_also_without_reveals(memory, page, ada, bob, monkeypatch):
    monkeypatch.setattr(exchange_views, "_EXPORT_BATCH_SIZE", 1)
    for number in range(3):
        exchange(bob, f"The kayak number {number}", space=access.team_space())
    response = page.post(reverse("admin_export"), {"all": "yes", "filters": ""})

    content, is_complete = async_to_sync(read_with_a_change_after_the_beginning)(response, demote, ada)
    assert (content.count(b"The kayak number"), is_complete) == (1, False)


# Documents


def test_documents_of_others_are_listed_without_names_and_deleted_with_a_receipt(memory, page, bob):
    hidden = document(bob, "barn-plan.txt", "The kayak lies behind the barn. " * 40)
    team = document(bob, "menu.txt", "Soup on Monday. " * 40, space=access.team_space())
    text = page.get(reverse("admin_documents")).content.decode()
    assert "menu.txt" in text
    assert "barn-plan" not in text
    assert "name not shown" in text
    assert str(hidden.pk) not in page.get(reverse("admin_documents"), {"q": "barn"}).content.decode()
    assert str(team.pk) in page.get(reverse("admin_documents"), {"q": "MENU"}).content.decode()
    assert str(hidden.pk) in page.get(reverse("admin_documents"), {"person": bob.pk, "space": "own"}).content.decode()

    form = {"document": [str(hidden.pk)], "filters": ""}
    assert "Delete this document?" in page.post(reverse("admin_forget_documents"), form).content.decode()
    receipt = receipt_of(confirmed(page, reverse("admin_forget_documents"), form), page)
    assert "in progress" in receipt
    assert list(Document.objects.filter(forgotten_at=None)) == [team]
    memory.cleanup_documents()
    memory.erase_forgotten()
    (operation,) = Operation.objects.all()
    assert "in progress" not in page.get(reverse("admin_operation", args=[operation.pk])).content.decode()


# Failed jobs


def test_failed_jobs_are_listed_without_text_and_can_be_retried(memory, page, bob):
    row = exchange(bob, "The kayak lies behind the barn")
    EmbeddingJob.objects.filter(exchange=row).update(state=Job.State.FAILED, error="No route to the model")
    read = document(bob, "barn-plan.txt", "The kayak lies behind the barn. " * 40)
    DocumentVersion.objects.filter(document=read).update(stage="failed", error="It cannot be opened")
    text = page.get(reverse("admin_jobs")).content.decode()
    assert "No route to the model" in text
    assert "It cannot be opened" in text
    assert "barn" not in text

    for bad in ("embedding:x", "document:7", "nothing:1"):
        page.post(reverse("admin_retry"), {"job": bad})
    assert EmbeddingJob.objects.get(exchange=row).state == Job.State.FAILED
    page.post(reverse("admin_retry"))
    assert EmbeddingJob.objects.get(exchange=row).state == Job.State.PENDING
    assert not DocumentVersion.objects.filter(stage="failed").exists()


def test_failed_imports_and_exports_are_listed_and_retried_if_that_can_help(page, bob):
    failed = {"state": Job.State.FAILED, "due_at": timezone.now(), "error": "The disk is full"}
    # The file of an import that cannot be read is deleted.
    kept, refused = (ImportJob.objects.create(owner=bob, name="barn.zip", file=file, **failed) for file in ("x", ""))
    export = ExportJob.objects.create(person=bob, requested_at=timezone.now(), **failed)

    text = page.get(reverse("admin_jobs")).text
    assert text.count("The disk is full") == 2
    assert "import of Bob Team" in text
    assert "export of Bob Team" in text
    assert "barn" not in text

    page.post(reverse("admin_retry"), {"job": f"import:{kept.pk}"})
    kept.refresh_from_db()
    export.refresh_from_db()
    assert (kept.state, export.state) == (Job.State.PENDING, Job.State.FAILED)

    page.post(reverse("admin_retry"))
    refused.refresh_from_db()
    export.refresh_from_db()
    assert (refused.state, export.state) == (Job.State.FAILED, Job.State.PENDING)


def test_failures_in_a_retired_index_are_neither_listed_nor_retried(memory, page, bob):
    row = exchange(bob, "The kayak lies behind the barn")
    EmbeddingJob.objects.filter(exchange=row).update(state=Job.State.FAILED, error="No route to the model")
    assert "No route to the model" in page.get(reverse("admin_jobs")).text

    IndexGeneration.objects.update(state=IndexGeneration.State.RETIRED)
    assert "No route to the model" not in page.get(reverse("admin_jobs")).text
    page.post(reverse("admin_retry"))
    assert EmbeddingJob.objects.get(exchange=row).state == Job.State.FAILED


# Maintenance


def test_drift_is_counted_first_and_then_repaired(memory, page, bob):
    row = exchange(bob, "Lost")
    EmbeddingJob.objects.filter(exchange=row).delete()
    counted = receipt_of(page.post(reverse("admin_operations"), {"kind": "count"}), page)
    assert "Queued to be embedded" in counted
    assert not EmbeddingJob.objects.filter(exchange=row).exists()

    receipt_of(page.post(reverse("admin_operations"), {"kind": "reconcile"}), page)
    assert EmbeddingJob.objects.filter(exchange=row).exists()

    receipt_of(page.post(reverse("admin_operations"), {"kind": "backfill"}), page)
    assert EmbeddingJob.objects.get(exchange=row).state == Job.State.DONE


def test_a_backfill_that_embeds_nothing_is_not_done_and_names_the_reason(memory, page, bob, monkeypatch):
    exchange(bob, "The kayak lies behind the barn")
    refused = EmbeddingError("The provider answered HTTP 401.", permanent=True)
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", lambda *a: (_ for _ in ()).throw(refused))

    text = receipt_of(page.post(reverse("admin_operations"), {"kind": "backfill"}), page)

    assert "Not embedded: 1 failed, 0 waiting. The provider answered HTTP 401." in text
    assert "Done" not in text


def test_purging_removes_forgotten_data_from_the_files(memory, page, bob):
    row = exchange(bob, "The kayak lies behind the barn")
    memory.index_pending()
    memory.forget([row.pk], by=bob.pk)
    text = receipt_of(page.post(reverse("admin_operations"), {"kind": "erase"}), page)
    assert "Done" in text
    row.refresh_from_db()
    assert row.erased_at is not None


def test_one_operation_of_a_kind_runs_at_a_time_and_unknown_kinds_are_refused(memory, page):
    page.post(reverse("admin_operations"), {"kind": "backfill"})
    answer = page.post(reverse("admin_operations"), {"kind": "backfill"}, follow=True)
    assert "is already running." in answer.content.decode()
    assert "Choose what is to be done" in page.post(reverse("admin_operations"), follow=True).content.decode()
    assert Operation.objects.count() == 1


# Retention


def previewed_in(text: str) -> dict[str, str]:
    """Return the field that the button of the preview sends."""
    (value,) = re.findall(r'name="previewed"\s+value="([^"]+)"', text)
    return {"previewed": html.unescape(value)}


def test_the_effect_of_a_retention_rule_is_counted_before_it_is_saved_and_applied(memory, page, ada, bob):
    old, young = exchange(bob, "Old", timestamp=ago(days=400)), exchange(bob, "Young")
    file = document(bob, "old.txt", "An old file. " * 40)
    DocumentVersion.objects.filter(document=file).update(created_at=ago(days=100))
    days = {"chat": "365", "upload": "90"}

    counted = page.post(reverse("admin_retention"), days).content.decode()
    assert "1 exchange<" in counted
    assert "1 document<" in counted
    assert not RetentionRule.objects.exists()

    receipt = receipt_of(page.post(reverse("admin_retention"), days | previewed_in(counted)), page)
    assert "Done" in receipt
    assert retention.get_rules() == {"chat": 365, "upload": 90}
    old.refresh_from_db()
    young.refresh_from_db()
    file.refresh_from_db()
    assert (old.forgotten_at is None, young.forgotten_at is None, file.forgotten_at is None) == (False, True, False)
    assert texts_of("retention.changed") == ["chat 365 days, upload 90 days"]


def test_days_that_were_changed_after_the_preview_are_previewed_again(memory, page, bob):
    old = exchange(bob, "Old", timestamp=ago(days=400))
    counted = page.post(reverse("admin_retention"), {"chat": "3650"}).text
    assert "0 exchanges<" in counted

    changed = page.post(reverse("admin_retention"), {"chat": "365"} | previewed_in(counted)).text
    assert "Check what they affect" in changed
    assert "1 exchange<" in changed
    assert not RetentionRule.objects.exists()

    receipt_of(page.post(reverse("admin_retention"), {"chat": "365"} | previewed_in(changed)), page)
    old.refresh_from_db()
    assert old.forgotten_at is not None


@pytest.mark.parametrize("days", ["0", "-1", "ten", "99999999", "1.5", "²", "9" * 5_000])
def test_invalid_retention_periods_are_refused_and_stay_in_the_form(memory, page, days):
    previewed = previewed_in(page.post(reverse("admin_retention"), {"chat": "30"}).text)
    answer = page.post(reverse("admin_retention"), {"chat": days} | previewed)
    assert answer.status_code == 422
    assert f'value="{days}"' in answer.content.decode()
    assert not RetentionRule.objects.exists()


def test_retention_rules_are_applied_once_a_day(memory, ada, bob):
    retention.save_rules({"chat": 365}, by=ada.pk)
    assert not operations.enqueue_retention_if_due()  # no exchange is old enough

    old = exchange(bob, "Old", timestamp=ago(days=400))
    assert operations.enqueue_retention_if_due()
    operations.run_operations()
    old.refresh_from_db()
    assert old.forgotten_by == ada

    exchange(bob, "Another old one", timestamp=ago(days=400))
    assert not operations.enqueue_retention_if_due()
    Operation.objects.update(created_at=timezone.now() - timedelta(days=2))
    assert operations.enqueue_retention_if_due()


def test_an_empty_retention_rule_keeps_everything(memory, page, ada, bob):
    retention.save_rules({"chat": 1}, by=ada.pk)
    page.post(reverse("admin_retention"), previewed_in(page.post(reverse("admin_retention")).text))
    exchange(bob, "Old", timestamp=ago(days=400))
    assert retention.get_rules() == {}
    assert not operations.enqueue_retention_if_due()


def test_passages_of_one_document_in_a_row_are_collapsed(memory, page, ada, bob):
    text = "\n\n".join(f"# Part {n}\n\n" + f"Sentence {n} of the plan. " * 25 for n in range(4))
    document(ada, "plan.md", text)
    document(bob, "secret.md", text)
    exchange(bob, "A single one")

    listed = list_exchanges(page)

    passages = Exchange.objects.filter(total_chunks__isnull=False, owner=ada).count()
    assert passages > 1
    assert listed.count(f">{passages} passages</span></summary>") == 2
    assert ">plan.md</span>" in listed
    assert "secret.md" not in listed


# The audit log


def test_the_audit_log_is_searchable_by_name_and_read_only(memory, page, ada, bob):
    crew = group("Crew", ada, bob)
    row = exchange(bob, "A note", space=crew)
    memory.forget([row.pk], by=bob.pk)
    file = document(ada, "plan.txt", "A plan. " * 40)
    memory.move_document(file, to=crew, by=ada.pk)

    text = page.get(reverse("admin_audit")).content.decode()
    assert "Forgot an exchange" in text
    assert re.search(r">plan.txt</bdi></a> to <a\s+href=\"/spaces/[-0-9a-f]+\" title=\"[-0-9a-f]+\"><bdi>Crew", text)
    only = page.get(reverse("admin_audit"), {"who": bob.pk}).content.decode()
    assert "<td>Bob Team</td>" in only
    assert "<td>Ada Admin</td>" not in only
    assert "<bdi>Crew" in page.get(reverse("admin_audit"), {"action": "document.moved"}).content.decode()

    entry = AuditEntry.objects.first()
    for change in (entry.save, entry.delete, AuditEntry.objects.all().delete):
        with pytest.raises(TypeError, match="only ever added to"):
            change()
    with pytest.raises(TypeError, match="only ever added to"):
        AuditEntry.objects.update(action="did nothing")


def test_the_audit_log_is_searched_in_any_case_of_any_letter(page, ada):
    for name in ("Übersetzung", "Wetter"):
        chat_signals.tool_server_changed.send(sender=None, by=ada.pk, name=name)
    found = page.get(reverse("admin_audit"), {"q": "übersetzung"}).content.decode()
    assert "the tool server Übersetzung" in found
    assert "the tool server Wetter" not in found


def audit_text(page: Client) -> str:
    """Return the words of the audit log without its tooltips."""
    text = page.get(reverse("admin_audit")).content.decode()
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_the_audit_log_names_people_and_things(memory, page, ada, bob):
    crew = group("Crew", ada, bob)
    own, shared = thread(bob, title="My secret plan"), thread(bob, space=crew, title="The shared plan")
    file, other = document(bob, "secret.txt", "A plan. " * 40), document(ada, "open.txt", "A plan. " * 40)
    actions = [("thread.exported", f"{own.pk} as json"), ("thread.exported", f"{shared.pk} as json")]
    actions += [("document.moved", f"{file.pk} to {crew.pk}"), ("document.moved", f"{other.pk} to {crew.pk}")]
    actions += [("person.exported", str(bob.pk)), ("thread.moved", f"{uuid.uuid4()} to {crew.pk}")]
    for action, target in actions:
        AuditEntry.objects.create(actor=bob, action=action, target=target)

    text = audit_text(page)

    assert "a thread in the personal space of Bob Team as json" in text
    assert "The shared plan as json" in text
    assert "a document in the personal space of Bob Team to Crew" in text
    assert "open.txt to Crew" in text
    assert "a deleted thread to Crew" in text
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", text)
    markup = page.get(reverse("admin_audit")).content.decode()
    assert "secret" not in markup
    assert reverse("thread", args=[own.pk]) not in markup
    assert f'href="{reverse("thread", args=[shared.pk])}"' in markup
    assert f'href="{reverse("admin_people", query={"q": bob.email})}"' in markup


def test_the_audit_log_says_what_was_deleted(memory, page, ada, bob):
    row = exchange(bob, "A secret")
    memory.forget([row.pk], by=bob.pk)
    deleted = thread(ada, title="Gone plan", deleted_at=timezone.now())
    AuditEntry.objects.create(actor=ada, action="thread.moved", target=f"{deleted.pk} to {row.space_id}")
    file = document(bob, "secret.txt", "A plan. " * 40)
    forget_documents([file.pk], by=bob.pk)

    text = audit_text(page)

    assert "a forgotten exchange in the personal space of Bob Team" in text
    assert "a deleted thread in the personal space of Ada Admin to the personal space of Bob Team" in text
    assert "a deleted document in the personal space of Bob Team" in text
    assert "secret" not in text
    assert "Gone plan" not in text


# The list of people


def listed_people(page, **query) -> list[str]:
    markup = page.get(reverse("admin_people"), query).content.decode()
    return re.findall(r'table__name"><bdi>([^<]*)', markup)


def test_people_are_filtered_by_name_address_role_and_state(memory, page, ada, bob):
    roles.set_active(PersonFactory(name="Çarla Gone").pk, False, by=ada)
    assert listed_people(page) == ["Ada Admin", "Bob Team", "Çarla Gone"]
    assert listed_people(page, q="bob") == listed_people(page, q=bob.email.upper()) == ["Bob Team"]
    assert listed_people(page, q="çARLA") == ["Çarla Gone"]
    assert listed_people(page, role="administrator") == ["Ada Admin"]
    assert listed_people(page, state="False") == ["Çarla Gone"]
    assert "Nobody matches." in page.get(reverse("admin_people"), {"q": "zeppelin"}).content.decode()


def test_a_long_list_of_people_has_pages_and_an_action_returns_to_its_page(memory, page, ada):
    people = [PersonFactory(name=f"Person {number:02}") for number in range(60)]
    markup = page.get(reverse("admin_people"), {"page": 2}).content.decode()
    assert len(listed_people(page)) == 50
    assert "Person 59" in markup
    action = html.unescape(re.search(rf'formaction="([^"]*{people[-1].pk}/active[^"]*)"', markup)[1])

    answer = page.post(action, {"active": "no"})

    assert answer.url == f"{reverse('admin_people')}?page=2"
    assert listed_people(page, state="False") == ["Person 59"]


def test_the_page_with_a_link_for_a_new_password_lists_the_same_people(memory, page, bob):
    markup = page.get(reverse("admin_people"), {"q": "Bob"}).content.decode()
    action = html.unescape(re.search(rf'formaction="([^"]*{bob.pk}/reset[^"]*)"', markup)[1])

    markup = page.post(action, follow=True).content.decode()

    assert re.findall(r'table__name"><bdi>([^<]*)', markup) == ["Bob Team"]
    assert "The link by which Bob Team sets a new password" in markup
