"""Slash commands."""

from __future__ import annotations

import pytest
from django.urls import reverse

from chat import commands
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.llm import endpoint
from chat.models import Thread
from memory.errors import CatoError, NotFoundError, VectorStoreDisabledError
from memory.models import Exchange
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, exchange, group, signed_in, thread, turn

pytestmark = pytest.mark.django_db


def context(person, of_thread=None, *, is_administrator=False, modes=None) -> commands.CommandContext:
    return commands.CommandContext(
        person_id=person.id,
        is_administrator=is_administrator,
        context_mode="summary",
        set_context_mode=(modes if modes is not None else []).append,
        thread=of_thread,
    )


@pytest.fixture
def commands_thread(memory, person):
    """Return a thread with two remembered turns."""
    of_person = thread(person, title="Keys")
    for message, answer in (("Where is the key?", "Behind the clock."), ("And the spare?", "With Ingrid.")):
        one = turn(of_person, message, answer)
        stored = exchange(person, message, answer, thread_id=of_person.id, session_id=one.session_id, turn_id=one.id)
        one.exchange_id = stored.id
        one.save()
    return of_person


def test_help_lists_every_command_and_explains_one(person):
    card = commands.run("/help", context(person))
    assert [line.label.split()[0] for line in card.lines] == [f"/{command.name}" for command in commands.COMMANDS]
    assert "Delete and forget" in commands.run("/help delete", context(person)).text


@pytest.mark.parametrize(
    ("message", "expected", "suggests"),
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
        ("/vadd \u200b", "Usage: /vadd TEXT", "/vadd "),
        ("/vadd --space Team", "Usage: /vadd TEXT", "/vadd "),
        (f"/history {'9' * 5000}", "Give a number from 1 to 50", "/history "),
        ("/continue xyzxyz", "not a thread ID", "/continue "),
        ("/continue ------", "Usage: /continue ID", "/continue "),
        ("/continue 123456", "Thread 123456 not found", "/continue "),
        ("/showcontext maybe", "on, off or summary", "/showcontext summary"),
        ("/config", "Only administrators", ""),
        ("/vadd text --space Nowhere", "no space Nowhere", ""),
    ],
)
def test_an_invalid_command_shows_its_usage(memory, person, message, expected, suggests):
    with pytest.raises(CatoError, match=expected) as refused:
        commands.run(message, context(person))
    assert getattr(refused.value, "suggestion", "") == suggests


def test_vget_shows_an_exchange_a_session_or_a_thread(memory, person, commands_thread):
    first = commands_thread.turns.first()
    caller = context(person, commands_thread)
    assert [item.excerpt for item in commands.run(f"/vget {first.exchange_id}", caller).results] == [
        "Where is the key? Behind the clock."
    ]
    (item,) = commands.run(f"/vget {first.exchange_id}", caller).results
    assert (item.message_excerpt, item.answer_excerpt) == ("Where is the key?", "Behind the clock.")
    assert (item.similarity_text, item.is_keyword_match) == ("", False), "nothing was searched"
    assert len(commands.run("/vget thread", caller).results) == 2
    assert len(commands.run("/vget session", caller).results) == 2
    commands.run(f"/continue {commands_thread.id}", caller)
    assert len(commands.run("/vget session", caller).results) == 0
    assert len(commands.run("/vget thread", caller).results) == 2


def test_vget_and_vdelete_reveal_nothing_of_other_people(memory, person, commands_thread):
    stranger = PersonFactory()
    for command in ("/vget", "/vdelete"):
        with pytest.raises(InvalidMessageError, match="no such exchange"):
            commands.run(f"{command} {commands_thread.turns.first().exchange_id}", context(stranger))


def test_vdelete_leads_to_a_confirmation(memory, person, commands_thread):
    first = commands_thread.turns.first()
    card = commands.run(f"/vdelete {first.exchange_id}", context(person, commands_thread))
    assert card.confirm[0].startswith(reverse("forget_exchange", args=[first.exchange_id]))
    assert memory.memory_states([first.exchange_id])[first.exchange_id] != "forgotten"


def test_vadd_stores_in_the_named_space(memory, person):
    crew = group("Crew", person)
    commands.run('/vadd "The winch is greased in May." --space Crew', context(person))
    memory.index_pending()

    (found,) = memory.search("winch", spaces=frozenset({crew.id})).results
    assert found.exchange.user_message == "The winch is greased in May."
    with pytest.raises(NotFoundError, match="no space Crew"):
        commands.run('/vadd "x" --space Crew', context(PersonFactory()))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Boat crew", '--space "Boat crew" The winch is greased.'),
        ("Boat crew", '--space="Boat crew"\nThe winch is greased.'),
        ("Boat crew", "The winch is greased. --space='Boat crew'"),
        ("Crew", "--space Crew The winch is greased."),
        ("Crew", "--space=Crew The winch is greased."),
        ("Crew", "The winch is greased. --space=Crew"),
    ],
)
def test_the_space_of_a_note_is_named_before_or_after_its_text(memory, person, name, arguments):
    space = group(name, person)
    commands.run(f"/vadd {arguments}", context(person))
    note = Exchange.objects.get()
    assert (note.user_message, note.space) == ("The winch is greased.", space)


def test_continue_starts_one_new_session_and_accepts_an_id_prefix(person, commands_thread):
    card = commands.run(f"/cont {str(commands_thread.id)[:8]}", context(person))
    assert card.redirect_url == reverse("thread", args=[commands_thread.id])
    commands.run(f"/continue {commands_thread.id}", context(person))
    assert list(commands_thread.sessions.order_by("seq").values_list("seq", flat=True)) == [0, 1]
    with pytest.raises(InvalidMessageError, match="not found"):
        commands.run(f"/continue {commands_thread.id}", context(PersonFactory()))


def test_messages_after_continue_belong_to_the_new_session(person, commands_thread):
    from django.utils import timezone

    from chat import services

    Thread.objects.update(last_message_at=timezone.now() - timezone.timedelta(days=30))
    commands_thread.refresh_from_db()
    session = services.continue_thread(commands_thread, person_id=person.id)
    import uuid

    commands_thread.refresh_from_db()
    queued = services.post_message(
        commands_thread.id, author_id=person.id, message="Once more", client_key=uuid.uuid4()
    )
    assert queued.turn.session_id == session.id


def test_model_changes_the_model_of_the_thread(person, commands_thread):
    commands.run("/model qwen3:32b", context(person, commands_thread))
    commands_thread.refresh_from_db()
    assert commands_thread.model == "qwen3:32b"
    assert commands.run("/model", context(person, commands_thread)).title == "qwen3:32b"
    commands.run("/model default", context(person, commands_thread))
    commands_thread.refresh_from_db()
    assert commands_thread.model == ""


def test_history_copy_and_exports_use_the_current_thread(person, commands_thread):
    caller = context(person, commands_thread)
    assert [line.label for line in commands.run("/history 1", caller).lines] == [f"{person.name}: And the spare?"]
    assert commands.run("/copy", caller).text == "With Ingrid."
    assert commands.run("/writemd", caller).redirect_url == reverse("export_thread", args=[commands_thread.id, "md"])
    assert commands.run("/writejson", caller).redirect_url.endswith("/export/json")


def test_delete_asks_for_confirmation_and_requires_the_owner(person, commands_thread):
    card = commands.run("/delete 2", context(person, commands_thread))
    assert [line.label for line in card.lines] == ["Where is the key?", "And the spare?"]
    assert card.confirm[0] == f"{reverse('delete_turns', args=[commands_thread.id])}?n=2"
    with pytest.raises(PermissionDeniedError, match="Only the owner"):
        commands.run("/delete", context(PersonFactory(), commands_thread))


def test_config_shows_administrators_the_settings_without_secrets(settings):
    ada = AdministratorFactory()
    card = commands.run("/config vector_store.chunk", context(ada, is_administrator=True))
    assert ("vector_store.chunk_size", "600") in [(line.label, line.figure) for line in card.lines]
    lines = commands.run("/config", context(ada, is_administrator=True)).lines
    assert settings.SECRET_KEY not in "".join(line.figure for line in lines)


def test_config_says_where_each_value_comes_from(settings):
    ada = AdministratorFactory()
    endpoint.save(base_url="http://ada:swordfish@127.0.0.1:9/v1", api_key="sk-stored", model="small")
    settings.CATO = settings.CATO.model_copy()
    settings.CATO._origins = {"llm.temperature": "file", "chat.titles": "environment"}

    card = commands.run("/config", context(ada, is_administrator=True))

    lines = {line.label: (line.figure, line.note) for line in card.lines}
    assert lines["llm.temperature"][1] == "from the file"
    assert lines["chat.titles"][1] == "from the environment"
    assert lines["vector_store.chunk_size"] == ("600", "default")
    assert lines["llm.model"] == ('"small"', "from the page Model settings")
    assert lines["llm.base_url"] == ('"http://***@127.0.0.1:9/v1"', "from the page Model settings")
    assert lines["llm.api_key"][0] == '"***"'
    assert "sk-stored" not in str(lines)
    assert "swordfish" not in str(lines)


def test_showsys_shows_the_system_prompt(person):
    assert "Cato" in commands.run("/showsys", context(person)).text


def test_memory_commands_report_that_memory_is_disabled(memory, person, commands_thread, settings):
    conf = settings.CATO.vector_store.model_copy(update={"enabled": False})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})
    for message in ("/vadd x", "/vquery x", f"/continue {commands_thread.id}", "/vget thread", "/vdelete x", "/vstats"):
        with pytest.raises(VectorStoreDisabledError, match="disabled"):
            commands.run(message, context(person, commands_thread))


def test_a_card_is_shown_only_to_its_author_and_not_stored(memory, person, commands_thread):
    client = signed_in(person)
    before = commands_thread.turns.count()
    page = client.post(
        reverse("post_message", args=[commands_thread.id]),
        {"message": "/vget thread", "client_key": "6a1f2f54-65f5-4d4c-9f66-0f3f3b3f6a10"},
        headers={"HX-Request": "true"},
    ).content.decode()

    assert "Only you see this" in page
    assert commands_thread.turns.count() == before
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
def test_vadd_stores_the_exact_text(memory, person, text):
    commands.run(f"/vadd {text}", context(person))
    (stored,) = Exchange.objects.all()
    assert stored.user_message == text


@pytest.mark.parametrize("quote", ['"', "'"])
def test_quotes_around_the_whole_text_are_removed(memory, person, quote):
    commands.run(f"/vadd {quote}The winch is greased.{quote}", context(person))
    assert Exchange.objects.get().user_message == "The winch is greased."


def test_a_long_text_is_split_at_paragraphs_and_each_part_is_listed(memory, person):
    text = "\n\n".join(f"Paragraph {n}. " + "The harbour is wide. " * 25 for n in range(4)).strip()
    card = commands.run(f"/vadd {text}", context(person))
    stored = list(Exchange.objects.order_by("chunk_index"))
    assert len(stored) > 1
    assert [line.figure for line in card.lines] == [str(row.id) for row in stored]
    assert [line.url for line in card.lines] == [row.get_absolute_url() for row in stored]


def test_vquery_accepts_an_apostrophe_and_a_count(memory, person):
    for n in range(3):
        exchange(person, f"Where is Anna's key {n}?", "Behind the clock.")
    memory.index_pending()
    assert len(commands.run("/vquery where's Anna's key 2", context(person)).results) == 2
    assert len(commands.run('/vquery "Anna\'s key" 1', context(person)).results) == 1


@pytest.mark.parametrize("text", ["error 404", "flight 0", "year 2026"])
def test_a_number_that_can_be_no_count_is_a_part_of_what_vquery_searches_for(memory, person, text):
    assert commands.run(f"/vquery {text}", context(person)).title == f"No matches for “{text}”"


def test_vstats_shows_administrators_location_and_size_of_the_index(memory):
    ada = AdministratorFactory()
    lines = {line.label: line.figure for line in commands.run("/vstats", context(ada, is_administrator=True)).lines}
    assert lines["Search index"]
    assert lines["Size on disk"]
    assert "Search index" not in [line.label for line in commands.run("/vstats", context(ada)).lines]


def test_a_full_width_slash_starts_a_command(person):
    assert commands.is_command("\uff0fhelp")
    assert commands.run("\uff0fhelp", context(person)).title == "Commands"
