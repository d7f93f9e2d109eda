"""The page of instructions, the offer on a turn, and the margin of an answer."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse
from django.utils.translation import override

from chat.instructions import editing
from chat.instructions.applying import count_answers
from chat.llm import endpoint as model_endpoint
from chat.models import Instruction, Thread, Turn
from chat.rows.instructions import space_section
from memory.models import Membership
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, api_client, group, signed_in, thread, turn
from tests.test_instructions import METRIC, say

pytestmark = pytest.mark.django_db
State = Instruction.State


@pytest.fixture(autouse=True)
def connected(db):
    model_endpoint.save(base_url="http://127.0.0.1:9/v1", api_key="", model="fake")


@pytest.fixture
def crew(person):
    space = group("Hardware", person)
    Membership.objects.filter(space=space, person=person).update(role=Membership.Role.MANAGER)
    return space


def page_of(person, path="/instructions"):
    return signed_in(person).get(path).content.decode()


def change(person, row, **data):
    return signed_in(person).post(reverse("change_instruction", args=[row.id]), data)


def offer_for(person, one):
    response = signed_in(person).get(reverse("instruction_offer", args=[one.id]), headers={"HX-Request": "true"})
    assert response.status_code == 200
    return response.content.decode()


def test_the_system_prompt_of_a_new_thread_has_the_instructions_of_its_space(person, crew):
    for text, space in (("Be brief.", access.personal_space(person.id)), (METRIC, crew)):
        editing.add(space, text, by=person.id)

    def shown(**form: str) -> str:
        sent = {"message": "/showsys", "client_key": str(uuid.uuid4()), **form}
        return signed_in(person).post(reverse("new_thread"), sent, headers={"HX-Request": "true"}).content.decode()

    assert ("Be brief." in shown(), METRIC in shown()) == (True, False)
    assert ("Be brief." in shown(space=str(crew.id)), METRIC in shown(space=str(crew.id))) == (False, True)


def test_a_person_adds_edits_switches_and_deletes_an_instruction(person):
    client = signed_in(person)
    client.post("/instructions", {"text": "Be brief."})
    row = Instruction.objects.get()
    assert row.space == access.personal_space(person.id)
    page = page_of(person)
    assert "Be brief." in page
    assert "Written by you" in page
    assert 'aria-checked="true"' in page

    client.post(reverse("edit_instruction", args=[row.id]), {"text": "Be very brief."})
    assert "Be very brief." in page_of(person)
    change(person, row, action="off")
    page = page_of(person)
    assert "Off since" in page
    assert 'aria-checked="false"' in page

    assert "Delete this instruction?" in page_of(person, reverse("delete_instruction", args=[row.id]))
    client.post(reverse("delete_instruction", args=[row.id]))
    assert "Be very brief." not in page_of(person)
    assert not Instruction.objects.exists()


@pytest.mark.parametrize("text", ["", "  ", "x" * 241])
def test_an_unusable_text_is_refused_and_stays_in_the_field(person, text):
    response = signed_in(person).post("/instructions", {"text": text})

    assert response.status_code == 422
    assert "instruction-error" in response.content.decode()
    assert not Instruction.objects.exists()


def test_the_thirteenth_is_refused_with_a_sentence(person):
    for number in range(12):
        editing.add(access.personal_space(person.id), f"Do {number}.", by=person.id)

    assert "Limit of 12 instructions reached" in signed_in(person).post("/instructions", {"text": "x"}).content.decode()


def test_a_suggestion_is_offered_to_its_author_only(person, crew):
    reader = PersonFactory()
    Membership.objects.create(space=crew, person=reader)
    talk = thread(person, space=crew, title="Release notes")
    _prepared, one = say(talk, certain=False)

    offer = offer_for(person, one)
    assert METRIC in offer
    assert "Keep for me" in offer
    assert "Keep for Hardware" in offer
    assert "Does not apply until you keep it" in offer
    assert offer_for(reader, one) == ""
    assert METRIC not in page_of(reader)
    page = page_of(person)
    assert "Suggested." in page
    assert "Release notes" in page
    assert "No instructions yet" not in page


def test_a_member_who_is_no_manager_keeps_for_themselves_only(person):
    crew = group("Hardware", person)
    _prepared, one = say(thread(person, space=crew))

    assert "Keep for me" in offer_for(person, one)
    assert "Keep for Hardware" not in offer_for(person, one)
    response = change(person, Instruction.objects.get(), action="keep", space=str(crew.id))
    assert response.status_code == 403
    assert Instruction.objects.get().state == State.RECOGNISED


def test_keeping_and_dismissing(person, crew):
    _prepared, one = say(thread(person))
    row = Instruction.objects.get()
    assert "Applies in your threads until you dismiss it" in offer_for(person, one)

    change(person, row, action="keep")
    row.refresh_from_db()
    assert (row.state, row.space) == (State.KEPT, access.personal_space(person.id))
    assert offer_for(person, one) == ""

    _prepared, other = say(thread(person, space=crew), "From now on always name the torque.")
    row = Instruction.objects.get(turn=other)
    change(person, row, action="keep", space=str(crew.id))
    row.refresh_from_db()
    assert (row.state, row.space) == (State.KEPT, crew)

    _prepared, third = say(thread(person), "Never use emojis again in your answers.")
    change(person, Instruction.objects.get(turn=third), action="dismiss")
    assert "emojis" not in page_of(person)
    assert offer_for(person, third) == ""


def test_readers_see_those_of_a_space_and_its_managers_change_them(person, crew):
    reader, stranger = PersonFactory(), PersonFactory()
    Membership.objects.create(space=crew, person=reader)
    row = editing.add(crew, "Name the torque.", by=person.id)

    assert "Name the torque." in page_of(person)
    assert "Name the torque." in page_of(reader)
    assert "Name the torque." in page_of(reader, f"/spaces/{crew.id}")
    assert reverse("change_instruction", args=[row.id]) in page_of(person, f"/spaces/{crew.id}")
    assert reverse("change_instruction", args=[row.id]) not in page_of(reader)
    assert "Name the torque." not in page_of(stranger)
    assert change(reader, row, action="off").status_code == 403
    assert change(stranger, row, action="off").status_code == 404
    assert signed_in(reader).post("/instructions", {"text": "x", "space": str(crew.id)}).status_code == 403
    assert signed_in(stranger).post("/instructions", {"text": "x", "space": str(crew.id)}).status_code == 404
    assert Instruction.objects.get().off_at is None


def test_you_alone_can_edit_with_a_verb_of_the_second_person_in_german(person, crew):
    editing.add(crew, "Answer in metric units.", by=person.id)
    with override("de"):
        section, _is_managed = space_section(person.id, crew)
    assert "du kann " not in section.editors_text
    assert not section.rows[0].author_text.endswith(" du")


def test_a_manager_whose_name_is_the_word_for_you_is_not_taken_for_the_reader(person, crew):
    reader = PersonFactory()
    Membership.objects.create(space=crew, person=reader)
    editing.add(crew, "Answer in metric units.", by=person.id)
    person.name = "du"
    person.save()

    with override("de"):
        assert "kannst" in space_section(person.id, crew)[0].editors_text
        assert "kannst" not in space_section(reader.id, crew)[0].editors_text


def test_administrators_change_those_of_the_team_but_not_of_a_person(person):
    administrator = AdministratorFactory()
    own = editing.add(access.personal_space(person.id), "Be brief.", by=person.id)
    team = editing.add(access.team_space(), "Write British English.", by=administrator.id)

    assert change(administrator, own, action="off").status_code == 404
    assert "Be brief." not in page_of(administrator)
    assert change(administrator, team, action="off").status_code == 302
    assert change(person, team, action="on").status_code == 403


def test_the_title_of_a_thread_that_is_not_readable_is_not_shown(person, crew):
    _prepared, one = say(thread(person, space=crew, title="Secret plan"))
    row = Instruction.objects.get()
    editing.keep(row, space=access.team_space())
    reader = PersonFactory()

    assert "Secret plan" in page_of(person)
    page = page_of(reader)
    assert METRIC in page
    assert "Secret plan" not in page
    assert str(one.id) not in page

    Membership.objects.filter(space=crew, person=person).delete()
    assert "Secret plan" not in page_of(person)


def margin(person, talk):
    return page_of(person, f"/t/{talk.id}")


def test_the_margin_states_which_instructions_applied(person):
    editing.add(access.personal_space(person.id), "Be brief.", by=person.id)
    editing.add(access.team_space(), "Write British English.", by=person.id)
    talk = thread(person)
    say(talk, "How far is Kiel?", detected=False)

    page = margin(person, talk)
    assert "2 instructions" in page
    assert page.index("Be brief.") < page.index("Write British English.")

    editing.edit(Instruction.objects.get(text="Be brief."), "Be very brief.")
    page = margin(person, talk)
    assert "Be very brief." in page
    assert "Edited since." in page
    editing.delete(Instruction.objects.get(text="Be very brief."))
    page = margin(person, talk)
    assert "1 instruction" in page
    assert "2 instructions" not in page
    assert "brief" not in page


def test_no_full_stop_follows_a_date_in_the_margin(person):
    """German dates may end with one: "30. Nov."."""
    row = editing.add(access.personal_space(person.id), "Be brief.", by=person.id)
    talk = thread(person)
    say(talk, "How far is Kiel?", detected=False)
    editing.edit(row, "Be very brief.")

    listed = margin(person, talk).partition('class="applied-instructions__list"')[2].partition("</ul>")[0]
    assert "</time>" in listed
    assert not re.search(r"</time>\s*\.", listed)
    assert re.search(r"</time>\s*</p>\s*<p[^>]*>Edited since\.</p>", listed)


def test_the_margin_of_a_moved_thread_does_not_show_those_of_a_person(memory, person, crew):
    from chat import services

    reader = PersonFactory()
    Membership.objects.create(space=crew, person=reader)
    editing.add(access.personal_space(person.id), "Be brief.", by=person.id)
    talk = thread(person)
    say(talk, "How far is Kiel?", detected=False)
    Turn.objects.update(state=Turn.State.COMPLETE)
    assert "Be brief." in margin(person, talk)

    services.move_thread(Thread.objects.get(id=talk.id), to=crew, by=person.id)

    for one in (person, reader):
        assert "Be brief." not in margin(one, talk)
        assert "1 instruction" not in margin(one, talk)


def test_an_instruction_is_switched_off_in_one_thread_by_its_owner(person, crew):
    reader = PersonFactory()
    Membership.objects.create(space=crew, person=reader)
    row = editing.add(crew, "Name the torque.", by=person.id)
    talk = thread(person, space=crew)
    say(talk, "How far is Kiel?", detected=False)
    url = reverse("set_thread_instruction", args=[talk.id, row.id])

    assert signed_in(reader).post(url, {"on": "no"}).status_code == 403
    assert "Turn off in this thread" in margin(person, talk)
    assert signed_in(person).post(url, {"on": "no"}).status_code == 302
    assert "Off in this thread." in margin(person, talk)
    assert Thread.objects.get(id=talk.id).disabled_instructions == [str(row.id)]
    signed_in(person).post(url, {"on": "yes"})
    assert Thread.objects.get(id=talk.id).disabled_instructions == []


def test_detection_is_switched_off_on_the_page(person):
    client = signed_in(person)
    client.post(reverse("set_instruction_detection"), {"detect": "no"})
    person.refresh_from_db()

    assert not person.detects_instructions
    assert "does not look for instructions" in page_of(person)
    assert "/instructions" in page_of(person, "/settings")


def test_a_page_without_instructions_says_so_and_offers_the_field(person):
    page = page_of(person)

    assert "No instructions yet" in page
    assert "Add an instruction" in page


def test_a_space_without_instructions_has_no_section_and_can_be_chosen_for_the_first(person, crew):
    editing.add(access.personal_space(person.id), "Be brief.", by=person.id)
    page = page_of(person)
    assert f'id="of-{access.personal_space(person.id).id}"' in page
    assert f'id="of-{crew.id}"' not in page
    assert "No instructions yet" not in page
    assert f'<option value="{crew.id}"' in page

    signed_in(person).post("/instructions", {"text": METRIC, "space": str(crew.id)})
    page = page_of(person)
    assert f'id="of-{crew.id}"' in page
    assert METRIC in page


def test_a_turn_without_instructions_has_no_panel(person):
    talk = thread(person)
    turn(talk)

    assert "applied-instructions" not in margin(person, talk)
    assert 'class="offer"' not in margin(person, talk)


def test_the_api_lists_instructions_and_those_of_a_turn(person, crew):
    editing.add(crew, "Name the torque.", by=person.id)
    stranger = PersonFactory()
    talk = thread(person, space=crew)
    _prepared, one = say(talk, "How far is Kiel?", detected=False)
    say(talk, certain=False)
    client = api_client(person)

    (kept, suggested) = client.get("/api/instructions").json()["instructions"]
    assert (kept["text"], kept["state"], kept["is_on"], kept["space_id"]) == (
        "Name the torque.",
        "kept",
        True,
        str(crew.id),
    )
    assert (suggested["text"], suggested["state"]) == (METRIC, "suggested")
    assert api_client(stranger).get("/api/instructions").json() == {"instructions": []}
    turn_row = client.get(f"/api/threads/{talk.id}/turns/{one.id}").json()
    assert [row["text"] for row in turn_row["instructions"]] == ["Name the torque."]


def test_the_page_says_how_many_answers_an_instruction_applied_to(person):
    own, team = access.personal_space(person.id), access.team_space()
    brief, metric, unused = (editing.add(own, text, by=person.id) for text in ("Be brief.", "Metric.", "Rhyme."))
    british = editing.add(team, "British English.", by=AdministratorFactory().id)
    in_thread = thread(person)
    turn(in_thread, applied_instructions=[str(brief.id), str(british.id)])
    turn(in_thread, applied_instructions=[str(brief.id), str(metric.id)])
    turn(in_thread, applied_instructions=[str(brief.id)], state=Turn.State.FAILED)
    turn(in_thread, applied_instructions=[])
    turn(thread(PersonFactory()), applied_instructions=[str(british.id)])

    found = page_of(person)

    assert re.findall(r"Applied to (\d+ answers?)<", found) == ["2 answers", "1 answer", "2 answers"]
    assert count_answers(own, [unused.id]) == {unused.id: 0}
