"""Saved prompts: who reads, adds, edits and deletes them, their names, and how they come into the composer."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse
from django.utils.translation import override

from cato_web.accounts import deletion as account_deletion
from chat import commands, prompt_library
from chat.errors import ConflictError, InvalidMessageError, InvalidNameError
from chat.models import SavedPrompt, Turn
from chat.rows.saved_prompts import sections
from memory.models import Membership
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, group, signed_in, thread, turn

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def manager(db):
    return PersonFactory(name="Manager")


@pytest.fixture
def author(db):
    return PersonFactory(name="Author")


@pytest.fixture
def reader(db):
    return PersonFactory(name="Reader")


@pytest.fixture
def crew(manager, author, reader):
    space = group("Hardware", manager, author, reader)
    Membership.objects.filter(space=space, person=manager).update(role=Membership.Role.MANAGER)
    return space


def personal(person):
    return access.personal_space(person.id)


def save(space, name="report", text="Write the weekly report.", *, by):
    return prompt_library.add(space, name=name, text=text, by=by.id)


def page_of(person, path="/prompts"):
    return signed_in(person).get(path).content.decode()


def offered_to(person, begins=""):
    html = signed_in(person).get("/prompts/offered", {"message": f"/{begins}"}, headers=HTMX).content.decode()
    return re.findall(r'data-command="([^"]+)"', html)


def edit(person, prompt, name="report", text="Write no report."):
    return signed_in(person).post(reverse("edit_saved_prompt", args=[prompt.id]), {"name": name, "text": text})


def delete(person, prompt):
    return signed_in(person).post(reverse("delete_saved_prompt", args=[prompt.id]))


def text_for(person, prompt):
    return signed_in(person).get(reverse("saved_prompt_text", args=[prompt.id]), headers=HTMX)


def send(person, message, path="/", **headers):
    return signed_in(person).post(path, {"message": message, "client_key": str(uuid.uuid4())}, headers=headers)


def box(html):
    """Return the text in the composer."""
    return re.search(r'<textarea id="message"[^>]*>\s*(.*?)</textarea>', html, re.DOTALL)[1]


def test_a_person_adds_edits_and_deletes_a_prompt(person):
    assert "No prompts yet" in page_of(person)
    client = signed_in(person)

    client.post("/prompts", {"name": "/Weekly Report", "text": "Write the\r\nweekly report. "})
    prompt = SavedPrompt.objects.get()
    assert (prompt.name, prompt.text, prompt.author) == ("weekly-report", "Write the\nweekly report.", person)
    assert prompt.space == personal(person)
    page = page_of(person)
    assert "/weekly-report" in page
    assert "Written by you" in page

    assert edit(person, prompt, "report", "Write the report.").status_code == 302
    prompt.refresh_from_db()
    assert (prompt.name, prompt.text) == ("report", "Write the report.")
    assert prompt.edited_at is not None

    assert "Delete the prompt /report?" in page_of(person, reverse("delete_saved_prompt", args=[prompt.id]))
    delete(person, prompt)
    assert not SavedPrompt.objects.exists()
    assert "No prompts yet" in page_of(person)


def test_a_prompt_of_ones_own_is_not_written_by_a_nominative_in_german(person):
    save(personal(person), by=person)
    with override("de"):
        (section,) = sections(person.id, prompt_library.list_readable(person.id))
    assert not section.rows[0].author_text.endswith(" du")


def test_every_reader_of_a_group_uses_and_adds_its_prompts(crew, manager, author, reader):
    prompt = save(crew, by=author)

    for person in (manager, author, reader):
        assert "Write the weekly report." in page_of(person)
        assert offered_to(person) == ["report"]
        assert box(text_for(person, prompt).content.decode()) == "Write the weekly report."
    signed_in(reader).post("/prompts", {"name": "minutes", "text": "Write the minutes.", "space": str(crew.id)})
    assert SavedPrompt.objects.get(name="minutes").space == crew


def test_a_stranger_neither_sees_nor_uses_nor_changes_it(crew, author):
    prompt = save(crew, by=author)
    own = save(personal(author), "diary", by=author)
    stranger, administrator = PersonFactory(), AdministratorFactory()

    for person in (stranger, administrator):
        assert "report" not in page_of(person).partition("</form>")[2]
        assert offered_to(person) == []
        for one in (prompt, own):
            assert text_for(person, one).status_code == 404
            assert edit(person, one).status_code == 404
            assert delete(person, one).status_code == 404
        answer = signed_in(person).post("/prompts", {"name": "x", "text": "y", "space": str(crew.id)})
        assert answer.status_code == 422
        assert prompt_library.find_text(person.id, "/report") == ""
    assert SavedPrompt.objects.count() == 2


def test_a_wrong_name_and_a_wrong_text_are_reported_together(person):
    wrong = {"name": "a b!", "text": "/vstats"}
    page, prompt = signed_in(person), save(personal(person), "report", by=person)
    for address in ("/prompts", f"/prompts/{prompt.id}/edit"):
        shown = page.post(address, wrong).content.decode()
        assert "A name consists of letters, digits and hyphens" in shown
        assert "A prompt cannot begin with a slash" in shown


def test_the_author_and_the_managers_change_those_of_a_group(crew, manager, author, reader):
    prompt = save(crew, by=author)

    assert reverse("edit_saved_prompt", args=[prompt.id]) not in page_of(reader)
    assert edit(reader, prompt).status_code == 403
    assert delete(reader, prompt).status_code == 403
    prompt.refresh_from_db()
    assert prompt.text == "Write the weekly report."

    for person in (author, manager):
        assert reverse("edit_saved_prompt", args=[prompt.id]) in page_of(person)
        assert edit(person, prompt, text=f"By {person.name}.").status_code == 302
        prompt.refresh_from_db()
        assert prompt.text == f"By {person.name}."
    assert delete(manager, prompt).status_code == 302
    assert not SavedPrompt.objects.exists()


def test_administrators_change_those_of_the_team(author, reader):
    prompt = save(access.team_space(), by=author)

    assert offered_to(reader) == ["report"]
    assert edit(reader, prompt).status_code == 403
    assert edit(AdministratorFactory(), prompt).status_code == 302


def test_whoever_leaves_a_group_loses_its_prompts_and_their_own_there(crew, author):
    prompt = save(crew, by=author)
    assert text_for(author, prompt).status_code == 200

    Membership.objects.filter(space=crew, person=author).delete()

    assert text_for(author, prompt).status_code == 404
    assert edit(author, prompt).status_code == 404
    assert offered_to(author) == []
    assert SavedPrompt.objects.exists()


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Überblick", "überblick"),
        ("/Отчёт 2026", "отчёт-2026"),
        ("週報", "週報"),
        ("हिन्दी", "हिन्दी"),
        ("تقرير", "تقرير"),
        ("\uff0f\uff30\uff4c\uff41\uff4e", "plan"),  # a full-width slash and letters
        ("u\u0308ber", "über"),
    ],
)
def test_names_are_of_any_script_and_found_however_they_are_typed(person, typed, name):
    assert save(personal(person), typed, "The text.", by=person).name == name
    assert prompt_library.find_text(person.id, f"/{typed.removeprefix('/').replace(' ', '-')}") == "The text."
    assert prompt_library.find_text(person.id, f"\uff0f{name.upper()}") == "The text."
    assert offered_to(person, name[:2].upper()) == [name]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "Give the prompt a name"),
        (" / ", "Give the prompt a name"),
        ("a_b", "letters, digits and hyphens"),
        ("a/b", "letters, digits and hyphens"),
        ("a\u202eb", "letters, digits and hyphens"),
        ("---", "letters, digits and hyphens"),
        ("x" * 61, "61 of at most 60"),
    ],
)
def test_an_unusable_name_is_refused_and_stays_in_the_field(person, name, sentence):
    with pytest.raises(InvalidNameError, match=sentence):
        save(personal(person), name, by=person)
    answer = signed_in(person).post("/prompts", {"name": name, "text": "Keep me."})
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert "Keep me." in answer.content.decode()
    assert not SavedPrompt.objects.exists()


@pytest.mark.parametrize("name", [name for c in commands.COMMANDS for name in (c.name, *c.aliases)])
def test_a_prompt_cannot_have_the_name_of_a_command(person, name):
    with pytest.raises(InvalidNameError, match=f"/{name} is a command"):
        save(personal(person), name.upper(), by=person)


def test_a_name_is_unique_in_its_space(crew, author, reader):
    prompt = save(crew, by=author)
    other = save(crew, "minutes", by=author)
    save(personal(author), by=author)

    with pytest.raises(InvalidNameError, match="already has a prompt /report"):
        save(crew, "Report", by=reader)
    with pytest.raises(InvalidNameError, match="already has a prompt /report"):
        prompt_library.edit(other, name="report", text="x")
    prompt_library.edit(prompt, name="report", text="The same name.")
    assert SavedPrompt.objects.filter(name="report").count() == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" \n", "it is empty"),
        ("x" * 8001, "8,001 of at most 8,000"),
        ("/delete 3", "cannot begin with a slash"),
        (" \uff0fdelete 3", "cannot begin with a slash"),
    ],
)
def test_an_unusable_text_is_refused(person, text, sentence):
    with pytest.raises(InvalidMessageError, match=sentence):
        save(personal(person), text=text, by=person)
    prompt = save(personal(person), text="x" * 8000, by=person)
    answer = edit(person, prompt, text=text)
    assert answer.status_code == 422
    assert sentence in answer.content.decode()


def test_a_space_has_at_most_200_prompts(person):
    space = personal(person)
    SavedPrompt.objects.bulk_create(
        SavedPrompt(space=space, author=person, name=f"n{number}", text="x") for number in range(199)
    )
    save(space, "last", by=person)

    with pytest.raises(ConflictError, match="Limit of 200 prompts"):
        save(space, "one-more", by=person)
    assert signed_in(person).post("/prompts", {"name": "one-more", "text": "x"}).status_code == 422
    assert SavedPrompt.objects.count() == 200


def test_at_most_50_are_offered_by_name_and_more_by_their_beginning(person, crew, author):
    SavedPrompt.objects.bulk_create(
        SavedPrompt(space=crew, author=author, name=f"n{number:02}", text="x") for number in range(60)
    )
    assert offered_to(author) == [f"n{number:02}" for number in range(50)]
    assert offered_to(author, "n5") == [f"n{number}" for number in range(50, 60)]
    assert offered_to(author, "zz") == []


def test_a_list_entry_names_the_space_unless_it_is_personal(crew, author):
    save(crew, text="Text " * 60, by=author)
    save(personal(author), "diary", by=author)

    html = signed_in(author).get("/prompts/offered", headers=HTMX).content.decode()
    diary, report = html.split("<li ")[1:]
    assert "Hardware" in report
    assert "Text Text" in report
    assert len(report) < 700
    assert "Only you" not in diary


def test_the_page_of_a_thread_reads_no_prompts(person):
    save(personal(person), by=person)
    talk = thread(person)

    page = page_of(person, f"/t/{talk.id}")
    assert reverse("offered_prompts") in page
    assert "weekly report" not in page


@pytest.mark.parametrize("message", ["/report", " /REPORT "])
def test_the_sent_name_of_a_prompt_fills_the_composer(person, message):
    save(personal(person), text="Write\nthe <report>.", by=person)
    talk = thread(person)

    for path in ("/", f"/t/{talk.id}/messages"):
        answer = send(person, message, path)
        assert answer.status_code == 200
        assert box(answer.content.decode()) == "Write\nthe &lt;report&gt;."
        html = send(person, message, path, **HTMX).content.decode()
        assert box(html) == "Write\nthe &lt;report&gt;."
        assert 'hx-swap-oob="true"' in html
    assert not Turn.objects.exists()


def test_what_follows_the_name_is_kept(person):
    save(personal(person), by=person)

    filled = box(send(person, "/report of week 12").content.decode())
    assert filled == "Write the weekly report.\n\nof week 12"


def test_an_unknown_name_is_an_error_and_a_command_is_run(person, crew, author):
    save(crew, by=author)

    answer = send(person, "/report")
    assert answer.status_code == 422
    assert "Unknown command /report." in answer.content.decode()
    # A name that a later version gave to a command.
    SavedPrompt.objects.create(space=personal(person), author=person, name="help", text="Help me.")
    html = send(person, "/help").content.decode()
    assert "/vquery" in html
    assert box(html) == ""


def test_the_personal_prompt_comes_before_that_of_a_group_and_the_team(crew, author):
    save(access.team_space(), text="team", by=author)
    assert prompt_library.find_text(author.id, "/report") == "team"
    save(crew, text="group", by=author)
    assert prompt_library.find_text(author.id, "/report") == "group"
    save(personal(author), text="personal", by=author)
    assert prompt_library.find_text(author.id, "/report") == "personal"
    assert offered_to(author) == ["report"] * 3


def test_an_own_message_is_saved_as_a_prompt(crew, author, reader):
    one = turn(thread(author, space=crew), "Write the <weekly> report.")
    url = f"/prompts?from={one.id}"

    assert url in page_of(author, f"/t/{one.thread_id}")
    assert "Write the &lt;weekly&gt; report.</textarea>" in page_of(author, url)
    assert url not in page_of(reader, f"/t/{one.thread_id}")
    assert signed_in(reader).get(url).status_code == 404
    assert signed_in(author).get("/prompts?from=nonsense").status_code == 404
    Membership.objects.filter(space=crew, person=author).delete()
    assert signed_in(author).get(url).status_code == 404


def test_the_settings_and_the_page_of_a_space_link_to_the_page(crew, author):
    assert 'href="/prompts"' in page_of(author, "/settings")
    url = f"/prompts?space={crew.id}"
    assert url in page_of(author, f"/spaces/{crew.id}")
    assert re.search(rf'value="{crew.id}"\s+selected', page_of(author, url))


def test_a_deleted_group_leaves_no_prompts(crew, author):
    save(crew, by=author)
    own = save(personal(author), by=author)

    crew.delete()

    assert list(SavedPrompt.objects.all()) == [own]


def test_a_deleted_account_leaves_only_what_it_added_to_shared_spaces(memory, crew, author, reader):
    save(personal(author), "diary", by=author)
    shared = save(crew, by=author)
    of_reader = save(personal(reader), by=reader)

    account_deletion.delete_account(author)

    assert set(SavedPrompt.objects.all()) == {shared, of_reader}
    page = page_of(reader)
    assert "Former member" in page
    assert "Author" not in page
