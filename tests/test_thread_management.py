"""Managing threads: titles, pins, archive and deletion."""

from __future__ import annotations

import uuid

import pytest
from django.urls import reverse
from django.utils import timezone

from chat import services
from chat.errors import InvalidMessageError, ThreadBusyError
from chat.models import ReaderMarks, Thread, ThreadSession, Turn
from chat.rows.sidebar import thread_list
from chat.threads import lifecycle
from chat.threads.reader_marks import ensure_marker
from chat.threads.titles import apply_model_title
from memory.models import Exchange, RecallLogEntry
from memory.retrieval.search import search
from memory.spaces import access
from memory.spaces.groups import remove_from_group
from tests.factories import PersonFactory, ago, exchange, group, signed_in, thread, turn

pytestmark = pytest.mark.django_db


def remembered_thread(person, title: str, *words: str) -> Thread:
    """Return a thread with a remembered turn for each word, each the child of the previous one."""
    of_person, parent = thread(person, title=title), None
    for word in words:
        one = turn(of_person, f"What of the {word}?", f"The {word} is in the shed.", parent=parent)
        stored = exchange(person, one.message, one.answer, thread_id=of_person.id, turn_id=one.id)
        one.exchange_id = stored.id
        one.save()
        parent = one
    Thread.objects.filter(id=of_person.id).update(head=parent)
    of_person.refresh_from_db()
    return of_person


def sidebar(person) -> str:
    page = signed_in(person).get(reverse("stats")).content.decode()
    return page[page.index('id="threads"') : page.index("</nav>")]


def address_of_marks(one: Thread) -> str:
    return reverse("set_thread_mark", args=[one.id])


def test_pinned_threads_are_listed_first_and_archived_ones_are_hidden(memory, person):
    ladder, saw = remembered_thread(person, "The ladder", "ladder"), remembered_thread(person, "The saw", "saw")
    Thread.objects.filter(id=ladder.id).update(last_message_at=timezone.now() - timezone.timedelta(days=3))
    client = signed_in(person)

    client.post(reverse("set_thread_mark", args=[ladder.id]), {"mark": "pin"})
    listed = sidebar(person)
    assert listed.index("Pinned") < listed.index("The ladder") < listed.index("The saw")

    client.post(reverse("set_thread_mark", args=[saw.id]), {"mark": "archive"})
    assert "The saw" not in sidebar(person)
    assert "The saw" in client.get(reverse("threads"), {"archived": "yes"}).content.decode()
    client.post(reverse("set_thread_mark", args=[saw.id]), {"mark": "unarchive"})
    assert "The saw" in sidebar(person)


def test_a_title_is_saved_and_an_empty_one_refused(person):
    one = thread(person, title="Where is the key?")
    signed_in(person).post(reverse("rename_thread", args=[one.id]), {"title": "  Keys \n and locks "})
    one.refresh_from_db()
    assert one.title == "Keys and locks"
    with pytest.raises(InvalidMessageError, match="empty"):
        services.rename_thread(one, "  ")


def test_a_deleted_thread_disappears_from_every_read_at_once_and_can_be_restored(memory, person):
    one = remembered_thread(person, "The saw", "saw")
    memory.index_pending()
    readable = access.readable_space_ids(person.id)
    assert search("saw", spaces=readable).results
    client = signed_in(person)

    page = client.post(reverse("delete_thread", args=[one.id]), follow=True).content.decode()
    assert reverse("restore_thread", args=[one.id]) in page
    assert search("saw", spaces=readable).results == ()
    assert client.get(reverse("thread", args=[one.id])).status_code == 404
    assert "The saw" not in client.get(reverse("threads")).content.decode()

    client.post(reverse("restore_thread", args=[one.id]))
    assert search("saw", spaces=readable).results
    assert client.get(reverse("thread", args=[one.id])).status_code == 200


def test_a_deleted_thread_that_is_not_restored_is_erased_with_its_exchanges(memory, person):
    one = remembered_thread(person, "The saw", "saw", "ladder")
    memory.index_pending()
    memory.log_recall(one.turns.first().id, search("saw", spaces=access.readable_space_ids(person.id)).results)
    services.delete_thread(one)
    assert services.purge_deleted() == 0
    Thread.objects.update(deleted_at=timezone.now() - timezone.timedelta(minutes=1))

    assert services.purge_deleted() == 1
    memory.erase_forgotten()

    assert not Thread.objects.exists()
    assert not Turn.objects.exists()
    assert not RecallLogEntry.objects.exists()
    assert not Exchange.objects.exclude(user_message="").exists()
    assert signed_in(person).post(reverse("restore_thread", args=[one.id])).status_code == 404


def test_a_thread_restored_while_others_are_removed_stays(person, monkeypatch):
    kept, _removed = sorted((thread(person) for _number in range(2)), key=lambda one: one.id, reverse=True)
    Thread.objects.update(deleted_at=ago(minutes=1))
    monkeypatch.setattr(Thread._meta, "ordering", ["id"])

    def restore(*args: object) -> None:
        Thread.objects.filter(id=kept.id).update(deleted_at=None)

    monkeypatch.setattr(lifecycle, "count_before_deletion", restore)

    assert services.purge_deleted() == 1
    assert [*Thread.objects.all()] == [kept]


def test_deleting_the_last_turns_includes_their_other_versions_and_forgets_them(memory, person):
    one = remembered_thread(person, "Tools", "saw", "ladder", "axe")
    turns = list(one.turns.active_branch())
    another = services.edit_message(turns[1], person_id=person.id, message="What of the rope?", client_key=uuid.uuid4())
    Turn.objects.filter(id=another.posted.turn.id).update(state="complete", answer="Coiled.")
    services.switch_branch(turns[1], person_id=person.id)

    deleted = services.delete_last_turns(one, 2, by=person.id)

    assert set(deleted.ids) == {turns[1].id, turns[2].id}
    assert [t.message for t in one.turns.all()] == ["What of the saw?"]
    one.refresh_from_db()
    assert one.head_id == turns[0].id
    assert memory.memory_states([turns[2].exchange_id]) == {turns[2].exchange_id: "forgotten"}


def test_nothing_is_deleted_while_an_answer_is_running(memory, person):
    one = remembered_thread(person, "Tools", "saw")
    turn(one, "And the axe?", "", state="answering")
    for act in (lambda: services.delete_thread(one), lambda: services.delete_last_turns(one, 1, by=person.id)):
        with pytest.raises(ThreadBusyError, match="in progress"):
            act()


def test_another_reader_may_export_and_continue_but_not_change(memory, person):
    one = thread(person, space=access.team_space(), title="For all")
    another = signed_in(PersonFactory())

    assert another.get(reverse("export_thread", args=[one.id, "md"])).status_code == 200
    assert another.post(reverse("continue_thread", args=[one.id])).status_code == 302
    for name in ("rename_thread", "delete_thread", "delete_turns"):
        assert another.get(reverse(name, args=[one.id])).status_code == 404


def test_marks_are_for_the_person_who_sets_them(person):
    another = PersonFactory()
    one = thread(person, space=access.team_space(), title="For all", changed_at=ago(days=-1))
    other_page = signed_in(another)

    assert (
        "Archived for you" in other_page.post(address_of_marks(one), {"mark": "archive"}, follow=True).content.decode()
    )
    assert "For all" not in sidebar(another)
    assert "For all" in other_page.get(reverse("threads"), {"archived": "yes"}).content.decode()
    assert "For all" in sidebar(person)

    other_page.post(address_of_marks(one), {"mark": "unarchive"})
    assert 'aria-label="new"' in sidebar(another)
    other_page.post(address_of_marks(one), {"mark": "mute"})
    assert 'aria-label="new"' not in sidebar(another), "a muted thread is never unread"
    assert "sidebar__muted" in sidebar(another)
    assert "sidebar__muted" not in sidebar(person).replace("sidebar__muted-mark", "")


def test_the_number_of_archived_threads_covers_what_can_be_read(person):
    another = PersonFactory()
    crew = group("Crew", person, another)
    for title in ("The saw", "The oar"):
        services.set_archived(thread(person, space=crew, title=title), another.id, True)
    assert thread_list(another.id, None).archived_count == 2

    services.delete_thread(Thread.objects.get(title="The oar"))
    assert thread_list(another.id, None).archived_count == 1
    remove_from_group(crew, another.id, by=person.id)
    assert thread_list(another.id, None).archived_count == 0


def test_a_mark_leads_back_to_the_page_on_which_it_was_set(person):
    one, client = thread(person), signed_in(person)
    here = client.post(address_of_marks(one), {"mark": "pin"}, headers={"Referer": "http://testserver/search?q=key"})
    assert here.url == "http://testserver/search?q=key"
    for referrer in ("https://elsewhere.example/", "", "javascript:alert(1)"):
        there = client.post(address_of_marks(one), {"mark": "pin"}, headers={"Referer": referrer})
        assert there.url == reverse("thread", args=[one.id])
    assert client.post(address_of_marks(one), {"mark": "seal"}).status_code == 404


def test_the_menu_of_a_thread_offers_each_reader_what_they_may_do(person):
    another, one = PersonFactory(), thread(person, space=access.team_space())
    of_owner, of_reader = (
        signed_in(p).get(reverse("thread_menu", args=[one.id])).content.decode() for p in (person, another)
    )
    assert all(word in of_owner for word in ("Pin", "Mute", "Archive", "Rename…", "Delete…"))
    assert "Rename…" not in of_reader
    assert "Mute" in of_reader
    assert signed_in(another).get(reverse("thread_menu", args=[thread(person).id])).status_code == 404


@pytest.mark.parametrize(("kind", "beginning"), [("md", "# Tools"), ("json", "{"), ("html", "<!doctype html>")])
def test_a_thread_is_exported_as_a_file(memory, person, kind, beginning):
    one = remembered_thread(person, "Tools", "saw")
    answer = signed_in(person).get(reverse("export_thread", args=[one.id, kind]))

    assert answer.headers["content-disposition"] == f'attachment; filename="tools.{kind}"'
    assert answer.content.decode().strip().lower().startswith(beginning.lower())
    assert "in the shed" in answer.content.decode()


def test_threads_are_found_by_words_of_their_titles(memory, person):
    remembered_thread(person, "Where the saw is", "saw")
    remembered_thread(person, "Greenhouse", "key")
    page = signed_in(person).get(reverse("threads"), {"q": "SAW where"}).content.decode()
    assert page.count("Where the saw is") >= 1
    assert "Greenhouse</a>" not in page[page.index("thread-list") :]


def test_a_new_thread_is_created_in_the_given_space_with_the_default_model(person):
    person.default_model = "large"
    person.save()
    crew = group("Crew", person)

    titled = services.create_thread(person.id, title=" Keys \n and locks ", space=crew, is_remembered=False)
    untitled = services.create_thread(person.id)

    assert (titled.title, titled.title_source) == ("Keys and locks", Thread.TitleSource.USER)
    assert (titled.space, titled.is_remembered) == (crew, False)
    assert (untitled.title, untitled.title_source) == ("New thread", Thread.TitleSource.FIRST_MESSAGE)
    assert (untitled.space, untitled.is_remembered) == (access.personal_space(person.id), True)
    assert {titled.model, untitled.model} == {"large"}


def test_an_archived_thread_is_listed_again_as_it_was(person):
    one, other = thread(person), thread(person)
    services.set_pinned(one, person.id, True)

    def listed() -> list[tuple[str, uuid.UUID]]:
        return [(part.key, link.id) for part in thread_list(person.id, None).groups for link in part.threads]

    before = listed()
    assert ("pinned", one.id) in before
    services.set_archived(one, person.id, True)
    assert [id for _key, id in listed()] == [other.id]
    services.set_archived(one, person.id, False)
    assert listed() == before


def test_continuing_a_thread_starts_its_next_session_unless_the_last_one_is_empty(person):
    reader = PersonFactory()
    one = turn(thread(person)).thread

    started = services.continue_thread(one, person_id=reader.id)
    assert (started.seq, started.started_by_id) == (1, reader.id)
    ThreadSession.objects.update(started_at=ago(hours=1))
    again = services.continue_thread(one, person_id=person.id)

    assert again == started
    again.refresh_from_db()
    assert (again.seq, again.started_by_id) == (1, reader.id)
    assert again.started_at > ago(minutes=1)
    assert one.sessions.get(seq=0).started_at < ago(minutes=1)
    assert services.continue_thread(thread(person), person_id=person.id).seq == 0


def test_only_the_chosen_thread_is_restored_and_only_in_time(person):
    in_time, too_late, other = (thread(person, deleted_at=ago(seconds=seconds)) for seconds in (14, 16, 1))
    assert services.restore_thread(in_time)
    assert not services.restore_thread(too_late)
    assert set(Thread.objects.exclude(deleted_at=None)) == {too_late, other}


def test_only_the_chosen_thread_is_moved_and_read_markers_of_those_who_lose_it_are_removed(person):
    stays, leaves = PersonFactory(), PersonFactory()
    one, other = (thread(person, space=access.team_space()) for _ in range(2))
    for in_thread in (one, other):
        for reader in (person, stays, leaves):
            ensure_marker(in_thread, reader.id)
    crew = group("Crew", person, stays)

    services.move_thread(one, to=crew, by=person.id)

    assert dict(Thread.objects.values_list("id", "space_id")) == {one.id: crew.id, other.id: access.team_space().id}
    marked = set(ReaderMarks.objects.values_list("thread_id", "person_id"))
    assert (one.id, leaves.id) not in marked
    assert marked >= {(one.id, person.id), (one.id, stays.id), (other.id, leaves.id)}


def test_both_the_previous_and_the_new_readers_are_notified_of_a_move(person, notified_people):
    before, after = PersonFactory(), PersonFactory()
    one = thread(person, space=group("Crew", person, before))
    to = group("Choir", person, after)
    assert notified_people(lambda: services.move_thread(one, to=to, by=person.id)) == {person.id, before.id, after.id}


NOTIFYING = {
    "create": lambda one: services.create_thread(one.owner_id, space=one.space),
    "rename": lambda one: services.rename_thread(one, "Keys"),
    "delete": services.delete_thread,
    "restore": lambda one: (
        Thread.objects.filter(id=one.id).update(deleted_at=ago(seconds=1)) and services.restore_thread(one)
    ),
}


@pytest.mark.parametrize("change", NOTIFYING)
def test_the_readers_of_the_thread_are_notified_to(person, notified_people, change):
    reader = PersonFactory()
    one = thread(person, space=group("Crew", person, reader))
    assert notified_people(lambda: NOTIFYING[change](one)) == {person.id, reader.id}


def test_deleting_the_last_turns_changes_no_other_thread(person):
    first = turn(thread(person))
    last, other = turn(first.thread, parent=first), turn(thread(person))
    for one in (last, other):
        Thread.objects.filter(id=one.thread_id).update(head=one)
    services.delete_last_turns(last.thread, 1, by=person.id)
    heads = dict(Thread.objects.values_list("id", "head_id"))
    assert heads == {first.thread_id: first.id, other.thread_id: other.id}


def test_deleting_the_threads_of_a_space_stops_running_answers_and_their_queue_first(person):
    crew = group("Crew", person)
    running = turn(thread(person, space=crew), answer="Half", state=Turn.State.ANSWERING)
    queued = turn(running.thread, answer="", state=Turn.State.QUEUED)
    first_by_id = thread(person, id=uuid.UUID(int=1))
    idle, other = turn(thread(person, space=crew)), turn(first_by_id, answer="", state=Turn.State.QUEUED)
    Thread.objects.filter(id=other.thread_id).update(head=other)

    assert services.delete_threads_in_space(crew.id, by=person.id) == 1

    assert set(Turn.objects.all()) == {running, queued, other}
    assert not Thread.objects.filter(id=idle.thread_id).exists()
    for one in (running, queued, other):
        one.refresh_from_db()
    assert (running.state, running.stop_requested) == (Turn.State.ANSWERING, True)
    assert (queued.state, other.state) == (Turn.State.STOPPED, Turn.State.QUEUED)

    Turn.objects.filter(id=running.id).update(state=Turn.State.STOPPED)
    assert services.delete_threads_in_space(crew.id, by=person.id) == 1
    assert list(Turn.objects.all()) == [other]
    assert Thread.objects.get().head_id == other.id


def test_the_model_does_not_replace_a_title_of_a_person(person):
    one, other = thread(person), thread(person)
    services.rename_thread(one, "Keys")
    for in_thread in (one, other):
        apply_model_title(in_thread, "Locks")
    assert dict(Thread.objects.values_list("id", "title")) == {one.id: "Keys", other.id: "Locks"}


def test_only_the_chosen_thread_gets_another_model(person):
    one, other = thread(person, model="large"), thread(person, model="large")
    services.set_model(one, " small ")
    assert dict(Thread.objects.values_list("id", "model")) == {one.id: "small", other.id: "large"}


def test_deleting_the_last_turns_deletes_whole_branches_that_start_at_them(person):
    first = turn(thread(person))
    deleted = turn(first.thread, parent=first)
    branch = turn(first.thread, parent=deleted, is_on_active_branch=False)
    turn(first.thread, parent=branch, is_on_active_branch=False)
    turn(first.thread, parent=first, is_on_active_branch=False)

    assert services.delete_last_turns(first.thread, 1, by=person.id).ids == [deleted.id]

    assert set(Turn.objects.all()) == {first}
    assert services.delete_last_turns(thread(person), 1, by=person.id).ids == []


def test_a_title_from_the_first_message_is_deleted_with_its_turn(person):
    first = turn(thread(person, title="The winch is broken", opening_hash="3f"), "The winch is broken")
    turn(first.thread, "Who repairs it?", parent=first)
    before = Thread.objects.select_related("space").get(id=first.thread_id)
    services.delete_last_turns(first.thread, 1, by=person.id)
    assert Thread.objects.get().title == "The winch is broken"

    services.delete_last_turns(first.thread, 1, by=person.id)

    empty = Thread.objects.get()
    assert (empty.title, empty.opening_hash) == ("New thread", "")
    # The model can have been asked for a title before.
    assert not apply_model_title(before, "Broken winch")


@pytest.mark.parametrize(("source", "title"), [("model", "New thread"), ("own", "Broken winch")])
def test_a_title_of_the_model_is_deleted_with_the_first_turn_and_that_of_a_person_stays(person, source, title):
    first = turn(thread(person, title="Broken winch", title_source=source))
    services.delete_last_turns(first.thread, 1, by=person.id)
    assert Thread.objects.get().title == title


def test_the_dialog_says_how_many_turns_of_other_versions_are_deleted_too(person):
    first = turn(thread(person))
    last = turn(first.thread, parent=first)
    page, address = signed_in(person), f"{reverse('delete_turns', args=[first.thread_id])}?n=1"
    assert "of other versions" not in page.get(address).content.decode()

    branch = turn(first.thread, parent=first, is_on_active_branch=False)
    turn(first.thread, parent=branch, is_on_active_branch=False)
    assert "2 turns of other versions are among them" in page.get(address).content.decode()

    answer = page.post(address, {"n": "1"}, follow=True).content.decode()
    assert "1 turn deleted and forgotten." in answer
    assert set(Turn.objects.all()) == {first}
    assert not Turn.objects.filter(id=last.id).exists()


def test_a_title_that_the_model_writes_has_no_numbers_of_sources(person):
    one = thread(person)
    assert apply_model_title(one, "**Keys behind the clock [1].**\nMore")
    one.refresh_from_db()
    assert (one.title, one.title_source) == ("Keys behind the clock", Thread.TitleSource.MODEL)
