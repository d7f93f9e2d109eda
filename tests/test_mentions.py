"""Mentions: who is mentioned, notified and shown what, and what is left when access or text is gone."""

from __future__ import annotations

import json
import uuid

import pytest
from django.urls import reverse

from chat import services
from chat.access import get_marked_thread
from chat.mentions import candidates, count_unseen, create_mentions, find_mentions, mentioned_names, mentions_of
from chat.models import Mention, Thread, Turn
from chat.realtime import frames
from chat.realtime.messages import ListChange, ListChanges, decode_list_change, encode_thread_list_change
from chat.rows.sidebar import thread_list
from chat.rows.turns import message_parts, turn_rows
from chat.threads import reader_marks
from chat.threads.reader_marks import ensure_marker
from memory.spaces import access
from memory.spaces.groups import remove_from_group
from tests.factories import PersonFactory, document, exchange, group, signed_in, thread, turn, upload

pytestmark = pytest.mark.django_db


def post(in_thread: Thread, author, message: str) -> Turn:
    posted = services.post_message(in_thread.id, author_id=author.id, message=message, client_key=uuid.uuid4())
    Turn.objects.filter(id=posted.turn.id).update(state=Turn.State.COMPLETE)
    return posted.turn


def mentioned(one: Turn) -> set[str]:
    return set(Mention.objects.filter(turn=one).values_list("person__name", flat=True))


@pytest.fixture
def crew(person):
    """Return a group's thread, and its readers Ada, Ada Lovelace and 林美 with an outsider by name."""
    people = {name: PersonFactory(name=name) for name in ("Ada", "Ada Lovelace", "林美", "Tomás Ferreira")}
    space = group("Crew", person, *(p for name, p in people.items() if name != "Tomás Ferreira"))
    return thread(person, space=space, title="Winter power"), people


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@Ada, look", ["@Ada"]),
        ("Ask @ada lovelace and @Ada", ["@ada lovelace", "@Ada"]),
        ("问＠林美 一下", ["＠林美"]),
        ("(@Ada)", ["@Ada"]),
        ("@Adam", []),
        ("mail@Ada", []),
        ("Ada", []),
        ("@ Ada", []),
        ("@Ada@Ada", ["@Ada"]),
        ("@林美看一下", ["@林美"]),
    ],
)
def test_a_mention_is_an_at_sign_and_a_whole_name(text, found):
    assert [text[start:end] for start, end in find_mentions(text, ["Ada", "Ada Lovelace", "林美"])] == found


def test_names_are_text_and_no_pattern():
    assert find_mentions("@A.a @Aba", ["A.a"]) == [(0, 4)]
    assert find_mentions("@anything", ["", ".*"]) == []


def test_a_message_full_of_signs_is_searched_up_to_a_limit():
    assert find_mentions("@" * 199 + " @Ada", ["Ada"]) == [(200, 204)]
    assert find_mentions("@" * 100_000 + " @Ada", ["Ada", *(f"Person {n}" for n in range(300))]) == []


@pytest.mark.parametrize("name", ["İpek Demir", "Ιωάννης", "Weiß"])
def test_a_name_is_found_as_it_is_written_whatever_its_lower_case(person, name):
    in_thread = thread(person, space=group("Crew", person, PersonFactory(name=name)))
    assert mentioned(post(in_thread, person, f"Look, @{name}!")) == {name}


def test_readers_are_mentioned_and_nobody_else(person, crew):
    in_thread, people = crew
    assert mentioned(post(in_thread, person, "@Ada Lovelace and @Tomás Ferreira, look")) == {"Ada Lovelace"}
    assert mentioned(post(in_thread, people["Ada"], "I am @Ada")) == set(), "nobody mentions themselves"
    assert mentioned(post(thread(person), person, "@Ada")) == set(), "nobody else reads a personal thread"


def test_mentioned_people_are_notified_unless_they_muted_the_thread(person, crew, notified_people):
    in_thread, people = crew
    services.set_muted(in_thread, people["Ada"].id, True)
    turn_of = turn(in_thread, "@Ada and @林美")

    assert notified_people(lambda: create_mentions(turn_of, is_news=True)) == {people["林美"].id}
    assert mentioned(turn_of) == {"Ada", "林美"}


def test_a_regenerated_answer_mentions_again_without_a_notification(person, crew, notified_people):
    in_thread, people = crew
    one = post(in_thread, person, "@Ada")
    again = {}

    def act():
        again["turn"] = services.regenerate(one, person_id=person.id, client_key=uuid.uuid4()).posted.turn

    notified_people(act)
    assert mentioned(again["turn"]) == {"Ada"}
    assert mentions_of(people["Ada"].id).count() == 1, "the inactive version is not listed"


def test_a_mention_is_unseen_until_its_thread_is_read(person, crew):
    in_thread, people = crew
    post(in_thread, person, "@Ada")
    ada = people["Ada"]
    assert thread_list(ada.id, None).mention_count == 1
    page = signed_in(ada).get(reverse("mentions")).content.decode()
    assert "Winter power" in page
    assert "mention-list__new" in page

    signed_in(ada).get(reverse("thread", args=[in_thread.id]))
    assert thread_list(ada.id, None).mention_count == 0
    assert "mention-list__new" not in signed_in(ada).get(reverse("mentions")).content.decode()


def test_a_mention_that_was_seen_stays_seen_when_the_answer_is_regenerated(person, crew):
    in_thread, people = crew
    one, ada = post(in_thread, person, "@Ada"), people["Ada"]
    assert count_unseen(ada.id) == 1
    signed_in(ada).get(reverse("thread", args=[in_thread.id]))
    again = services.regenerate(one, person_id=person.id, client_key=uuid.uuid4()).posted.turn

    assert mentions_of(ada.id).get().turn == again
    assert count_unseen(ada.id) == 0


def test_who_loses_the_thread_loses_its_mentions(person, crew):
    in_thread, people = crew
    post(in_thread, person, "@Ada look at the secret")
    remove_from_group(in_thread.space, people["Ada"].id, by=person.id)

    assert thread_list(people["Ada"].id, None).mention_count == 0
    assert "secret" not in signed_in(people["Ada"]).get(reverse("mentions")).content.decode()
    assert frames.mention_notice(people["Ada"].id, in_thread.id) == ""


def test_the_pages_of_a_mentioned_person_say_so_once(person, crew):
    in_thread, people = crew
    one = post(in_thread, person, "@Ada <b>look</b>")
    changes = ListChanges()
    for change in (ListChange(in_thread.id, is_latest=True), ListChange(in_thread.id, is_mention=True)):
        changes.add(decode_list_change({"link": _sent(change)}))
    html = frames.thread_list_update(people["Ada"].id, None, changes)

    assert html.count("data-mention") == 1
    assert f'href="{reverse("turn", args=[one.id])}"' in html
    assert 'class="sidebar__count">1<' in html
    ensure_marker(in_thread, people["Ada"].id)
    assert "data-mention" not in frames.thread_list_update(people["Ada"].id, None, changes)


def test_open_pages_learn_that_mentions_were_seen(person, crew, notified_people):
    in_thread, people = crew
    ada = people["Ada"]
    post(in_thread, person, "@Ada look")
    assert _mark_read(in_thread, ada).is_mention_seen
    changes = ListChanges()
    changes.add(decode_list_change({"link": _sent(ListChange(in_thread.id, is_mention_seen=True))}))
    html = frames.thread_list_update(ada.id, None, changes)
    assert 'id="mentions-link"' in html
    assert "sidebar__count" not in html

    # Nothing else is read or sent for a thread without an unseen mention.
    post(in_thread, person, "Look, everybody")
    change = _mark_read(in_thread, ada)
    assert not change.is_mention_seen
    changes = ListChanges()
    changes.add(change)
    assert "mentions-link" not in frames.thread_list_update(ada.id, None, changes)


def _mark_read(in_thread: Thread, reader) -> ListChange:
    """Mark the thread as read, and return what pages of the reader are notified of."""
    changes: list[ListChange] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_marks, "notify_after_commit", lambda people, change: changes.append(change))
        reader_marks.mark_read(get_marked_thread(reader.id, in_thread.id), reader.id)
    (change,) = changes
    return change


def _sent(change: ListChange) -> object:
    return json.loads(encode_thread_list_change("process", [], change))["link"]


def test_mentions_are_marked_in_the_message_and_the_rest_is_escaped(person, crew):
    in_thread, _people = crew
    one = post(in_thread, person, "Ask @Ada Lovelace, not <b>@Tomás Ferreira</b>")
    parts = [(part.text, part.is_mention) for part in turn_rows(in_thread, [one])[0].message_parts]

    assert parts == [("Ask ", False), ("@Ada Lovelace", True), (", not <b>@Tomás Ferreira</b>", False)]
    page = signed_in(person).get(reverse("thread", args=[in_thread.id])).content.decode()
    assert 'class="mention">@Ada Lovelace</bdi>, not &lt;b&gt;@Tomás' in page
    assert (
        message_parts("No mention", [])
        == turn_rows(thread(person), [turn(thread(person), "No mention")])[0].message_parts
    )


def test_a_page_without_an_at_sign_costs_no_query(person, crew, django_assert_num_queries):
    in_thread, _people = crew
    turns = [turn(in_thread, "Nothing"), turn(in_thread, "Mail to me")]
    with django_assert_num_queries(0):
        assert mentioned_names(turns) == {}


def test_forgetting_everywhere_deletes_the_mentions(memory, person, crew):
    in_thread, people = crew
    stored = exchange(person, "@Ada look", "Yes.", thread_id=in_thread.id, space=in_thread.space)
    one = turn(in_thread, "@Ada look", "Yes.", exchange_id=stored.id)
    create_mentions(one, is_news=False)
    services.forget_everywhere(person.id, stored.id, is_administrator=False, with_answers=False)

    assert mentions_of(people["Ada"].id).count() == 0


def test_the_list_offers_colleagues_and_says_who_has_access(person, crew):
    in_thread, people = crew
    offered = dict(candidates(person.id, in_thread, None))
    assert offered == {"Ada": True, "Ada Lovelace": True, "林美": True, "Tomás Ferreira": False} | {
        name: False for name in offered if name not in people
    }
    assert person.name not in offered
    page = signed_in(person).get(reverse("people_to_mention"), {"thread": str(in_thread.id)}).content.decode()
    assert page.count("data-no-access") == len(offered) - 3
    of_new = (
        signed_in(person).get(reverse("people_to_mention"), {"space": str(access.team_space().id)}).content.decode()
    )
    assert "data-no-access" not in of_new
    stranger = signed_in(people["Tomás Ferreira"])
    assert stranger.get(reverse("people_to_mention"), {"thread": str(in_thread.id)}).status_code == 404
    assert stranger.get(reverse("people_to_mention"), {"space": str(in_thread.space_id)}).status_code == 404


def test_the_list_offers_documents_that_the_thread_can_recall(person, crew):
    in_thread, people = crew
    document(person, "Winter checklist.txt", "Check the radio.", space=in_thread.space)
    document(person, "My diary.txt", "Nobody reads this.")
    upload(person, "Unread.txt", "Still in progress.", space=in_thread.space)

    def offered(reader, **place: str) -> str:
        return signed_in(reader).get(reverse("people_to_mention"), place).content.decode()

    of_thread = offered(person, thread=str(in_thread.id))
    assert "Winter checklist.txt" in of_thread
    assert "My diary.txt" not in of_thread
    assert "Unread.txt" not in of_thread
    # Only people who may limit the recall of the thread choose documents.
    assert "Winter checklist.txt" not in offered(people["Ada"], thread=str(in_thread.id))
    assert "Winter checklist.txt" in offered(people["Ada"], space=str(in_thread.space_id))
    own = offered(person)
    assert "Winter checklist.txt" in own
    assert "My diary.txt" in own
    assert "Winter checklist.txt" not in offered(people["Tomás Ferreira"])
