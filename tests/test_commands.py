"""Slash commands, as they are typed."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from chat import commands
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.models import Thread
from memory.errors import CatoError, NotFoundError, VectorStoreDisabledError
from memory.models import Exchange
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, exchange, group, thread, turn

pytestmark = pytest.mark.django_db


def called_by(person, of_thread=None, *, is_administrator=False, modes=None) -> commands.CommandContext:
    return commands.CommandContext(
        person_id=person.id,
        is_administrator=is_administrator,
        context_mode="summary",
        set_context_mode=(modes if modes is not None else []).append,
        thread=of_thread,
    )


@pytest.fixture
def told(memory, person):
    """A thread with two remembered turns."""
    of_person = thread(person, title="Keys")
    for message, answer in (("Where is the key?", "Behind the clock."), ("And the spare?", "With Ingrid.")):
        one = turn(of_person, message, answer)
        kept = exchange(person, message, answer, thread_id=of_person.id, session_id=one.session_id, turn_id=one.id)
        one.exchange_id = kept.id
        one.save()
    return of_person


def test_help_lists_every_command_with_its_usage_and_tells_of_one(person):
    card = commands.run("/help", called_by(person))
    assert [line.label.split()[0] for line in card.lines] == [f"/{command.name}" for command in commands.COMMANDS]
    assert "Delete and forget" in commands.run("/help delete", called_by(person)).text


@pytest.mark.parametrize(
    ("message", "says", "suggests"),
    [
        ("/vqery x", "Did you mean /vquery?", "/vquery"),
        ("/zzz", "See /help", "/help"),
        ("/", "See /help", "/help"),
        ('/vget "half', "closing quote", ""),
        ("/vadd  ", "Usage: /vadd TEXT", "/vadd "),
        ('/vquery ""', "Write /vquery TEXT", "/vquery "),
        ("/vget", "/vget session", "/vget "),
        ("/vget nonsense", "not an exchange ID", "/vget "),
        ("/vdelete 6a1f2f54-65f5-4d4c-9f66-0f3f3b3f6a10", "no such exchange", "/vdelete "),
        ("/history", "existing thread", ""),
        ("/continue xyzxyz", "not a thread ID", "/continue "),
        ("/continue 123456", "Thread 123456 not found", "/continue "),
        ("/showcontext maybe", "on, off or summary", "/showcontext summary"),
        ("/config", "Only administrators", ""),
        ("/vadd text --space Nowhere", "no space Nowhere", ""),
    ],
)
def test_a_command_that_cannot_be_run_says_what_to_write(memory, person, message, says, suggests):
    with pytest.raises(CatoError, match=says) as refused:
        commands.run(message, called_by(person))
    assert getattr(refused.value, "suggestion", "") == suggests


def test_vget_shows_an_exchange_a_session_or_a_thread(memory, person, told):
    first = told.turns.first()
    caller = called_by(person, told)
    assert [item.excerpt for item in commands.run(f"/vget {first.exchange_id}", caller).results] == [
        "Where is the key? Behind the clock."
    ]
    assert len(commands.run("/vget thread", caller).results) == 2
    assert len(commands.run("/vget session", caller).results) == 2
    commands.run(f"/continue {told.id}", caller)
    assert len(commands.run("/vget session", caller).results) == 0
    assert len(commands.run("/vget thread", caller).results) == 2


def test_vget_and_vdelete_know_nothing_of_what_is_anothers(memory, person, told):
    stranger = PersonFactory()
    for command in ("/vget", "/vdelete"):
        with pytest.raises(InvalidMessageError, match="no such exchange"):
            commands.run(f"{command} {told.turns.first().exchange_id}", called_by(stranger))


def test_vdelete_asks_and_leads_to_the_question(memory, person, told):
    first = told.turns.first()
    card = commands.run(f"/vdelete {first.exchange_id}", called_by(person, told))
    assert card.asks[0].startswith(reverse("forget", args=[first.exchange_id]))
    assert memory.memory_states([first.exchange_id])[first.exchange_id] != "forgotten"


def test_vadd_goes_where_it_is_told(memory, person):
    crew = group("Crew", person)
    commands.run('/vadd "The winch is greased in May." --space Crew', called_by(person))
    memory.index_pending()

    (found,) = memory.search("winch", spaces=frozenset({crew.id})).results
    assert found.exchange.user_message == "The winch is greased in May."
    with pytest.raises(NotFoundError, match="no space Crew"):
        commands.run('/vadd "x" --space Crew', called_by(PersonFactory()))


def test_continue_begins_the_next_session_once_and_takes_the_beginning_of_an_id(person, told):
    card = commands.run(f"/cont {str(told.id)[:8]}", called_by(person))
    assert card.goes_to == reverse("thread", args=[told.id])
    commands.run(f"/continue {told.id}", called_by(person))
    assert list(told.sessions.order_by("seq").values_list("seq", flat=True)) == [0, 1]
    with pytest.raises(InvalidMessageError, match="not found"):
        commands.run(f"/continue {told.id}", called_by(PersonFactory()))


def test_what_is_said_after_continuing_belongs_to_the_new_session(person, told):
    from django.utils import timezone

    from chat import services

    Thread.objects.update(last_message_at=timezone.now() - timezone.timedelta(days=30))
    told.refresh_from_db()
    session = services.continue_thread(told, person_id=person.id)
    import uuid

    told.refresh_from_db()
    asked = services.post_message(told, author_id=person.id, message="Once more", client_key=uuid.uuid4())
    assert asked.turn.session_id == session.id


def test_model_changes_the_model_of_the_thread(person, told):
    commands.run("/model qwen3:32b", called_by(person, told))
    told.refresh_from_db()
    assert told.model == "qwen3:32b"
    assert commands.run("/model", called_by(person, told)).title == "qwen3:32b"
    commands.run("/model default", called_by(person, told))
    told.refresh_from_db()
    assert told.model == ""


def test_history_copy_and_the_exports_speak_of_this_thread(person, told):
    caller = called_by(person, told)
    assert [line.label for line in commands.run("/history 1", caller).lines] == [f"{person.name}: And the spare?"]
    assert commands.run("/copy", caller).text == "With Ingrid."
    assert commands.run("/writemd", caller).goes_to == reverse("export", args=[told.id, "md"])
    assert commands.run("/writejson", caller).goes_to.endswith("/export/json")


def test_delete_asks_and_is_for_the_owner_of_the_thread(person, told):
    card = commands.run("/delete 2", called_by(person, told))
    assert [line.label for line in card.lines] == ["Where is the key?", "And the spare?"]
    assert card.asks[0] == f"{reverse('take_out', args=[told.id])}?n=2"
    with pytest.raises(PermissionDeniedError, match="Only the owner"):
        commands.run("/delete", called_by(PersonFactory(), told))


def test_config_shows_settings_without_secrets_to_administrators(settings):
    ada = AdministratorFactory()
    card = commands.run("/config vector_store.chunk", called_by(ada, is_administrator=True))
    assert ("vector_store.chunk_size", "600") in [(line.label, line.figure) for line in card.lines]
    shown = commands.run("/config", called_by(ada, is_administrator=True)).lines
    assert settings.SECRET_KEY not in "".join(line.figure for line in shown)


def test_showsys_shows_the_system_prompt(person):
    assert "Cato" in commands.run("/showsys", called_by(person)).text


def test_with_memory_switched_off_the_commands_on_it_say_so(memory, person, told, settings):
    conf = settings.CATO.vector_store.model_copy(update={"enabled": False})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})
    for message in ("/vadd x", "/vquery x", f"/continue {told.id}", "/vget thread", "/vdelete x", "/vstats"):
        with pytest.raises(VectorStoreDisabledError, match="disabled"):
            commands.run(message, called_by(person, told))


def test_a_card_is_for_who_typed_the_command_and_kept_nowhere(memory, person, told):
    client = Client()
    client.force_login(person)
    before = told.turns.count()
    page = client.post(
        reverse("say", args=[told.id]),
        {"message": "/vget thread", "client_key": "6a1f2f54-65f5-4d4c-9f66-0f3f3b3f6a10"},
        headers={"HX-Request": "true"},
    ).content.decode()

    assert "Only you see this" in page
    assert told.turns.count() == before
    assert not memory.search("vget thread", spaces=access.readable_space_ids(person.id)).results[2:]


@pytest.mark.parametrize(
    "text",
    [
        "It's Anna's key",
        "path C:\\temp\\new",
        "Don't forget the milk",
        'She said "yes", then "no"',
        "# Boats\n\n- Petrel\n- Ann\n\nBoth lie in the harbour.",
        "a  b\tc",
    ],
)
def test_vadd_stores_exactly_what_was_typed(memory, person, text):
    commands.run(f"/vadd {text}", called_by(person))
    (kept,) = Exchange.objects.all()
    assert kept.user_message == text


@pytest.mark.parametrize("quote", ['"', "'"])
def test_quotation_marks_around_the_whole_text_are_left_out(memory, person, quote):
    commands.run(f"/vadd {quote}The winch is greased.{quote}", called_by(person))
    assert Exchange.objects.get().user_message == "The winch is greased."


def test_a_long_text_is_split_at_its_paragraphs_and_every_part_is_named(memory, person):
    text = "\n\n".join(f"Paragraph {n}. " + "The harbour is wide. " * 25 for n in range(4)).strip()
    card = commands.run(f"/vadd {text}", called_by(person))
    kept = list(Exchange.objects.order_by("chunk_index"))
    assert len(kept) > 1
    assert [line.figure for line in card.lines] == [str(row.id) for row in kept]


def test_vquery_takes_a_question_with_an_apostrophe_and_a_count(memory, person):
    for n in range(3):
        exchange(person, f"Where is Anna's key {n}?", "Behind the clock.")
    memory.index_pending()
    assert len(commands.run("/vquery where's Anna's key 2", called_by(person)).results) == 2
    assert len(commands.run('/vquery "Anna\'s key" 1', called_by(person)).results) == 1


def test_vstats_tells_administrators_where_the_index_is_and_how_large(memory):
    ada = AdministratorFactory()
    lines = {line.label: line.figure for line in commands.run("/vstats", called_by(ada, is_administrator=True)).lines}
    assert lines["Search index"]
    assert lines["Size on disk"]
    assert "Search index" not in [line.label for line in commands.run("/vstats", called_by(ada)).lines]


def test_a_wide_slash_begins_a_command(person):
    assert commands.is_command("\uff0fhelp")
    assert commands.run("\uff0fhelp", called_by(person)).title == "Commands"
