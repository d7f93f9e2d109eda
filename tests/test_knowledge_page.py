"""The page of statements: what it shows to whom, and what people decide there."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from chat import access as chat_access
from chat.llm import endpoint as model_endpoint
from chat.rows.explanations import statement_text
from memory.api import day_text
from memory.exchanges.lifecycle import deactivate
from memory.knowledge import decisions
from memory.knowledge.listing import StatementFilter
from memory.models import Exchange, RecallLogEntry, SpaceKnowledge, Statement
from memory.spaces import access
from tests.factories import (
    AdministratorFactory,
    PersonFactory,
    ago,
    exchange,
    group,
    signed_in,
    statement,
    thread,
    turn,
)
from tests.statements import counted_statements

pytestmark = pytest.mark.django_db

RETRIES = "A buoy makes at most 28 retries a day."
State = Statement.State


def said(person: Any, text: str, space: Any = None, **fields: Any) -> Exchange:
    return exchange(person, text, space=space or access.team_space(), **fields)


def page_of(client: Client, query: str = "") -> str:
    answer = client.get(f"/knowledge{query}")
    assert answer.status_code == 200
    without_choices = re.sub(r"<option.*?</option>", "", answer.content.decode(), flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", without_choices)))


def decide(client: Client, one: Statement, action: str, **fields: Any) -> str:
    """Post a decision about the revision that is stored, and return the page that follows."""
    revision = Statement.objects.filter(pk=one.pk).values_list("revision", flat=True).first() or 1
    answer = client.post(f"/knowledge/{one.pk}/{action}", {"revision": revision} | fields)
    assert answer.status_code == 302, answer.content
    return page_of(client)


def offers_to_confirm(client: Client) -> bool:
    return 'aria-keyshortcuts="k"' in client.get("/knowledge").content.decode()


def test_an_empty_page_says_where_statements_come_from(memory, person):
    assert "No statements yet. Cato extracts them" in page_of(signed_in(person))


def test_a_statement_is_shown_with_its_state_sources_and_place(memory, person):
    where = thread(person, title="Winter power review.", space=access.team_space())
    source = said(person, "From now on 28 retries.", thread_id=where.id)
    statement(source, said(PersonFactory(name="Jana Kohl"), "28 retries a day."), kind="decision")

    page = page_of(signed_in(person))

    assert RETRIES in page
    assert f"Decided by {person.name}" in page
    assert re.search(r"in Winter power review ?, 2 sources", page), page
    assert "2 sources" in page
    assert "From now on 28 retries." in page
    assert "Said by Jana Kohl" in page
    assert "1 statement" in page


def test_no_full_stop_follows_a_date_that_may_end_with_one(memory, person):
    """As "30. Nov." in German."""
    statement(said(person, "From now on 28 retries."))
    page = signed_in(person).get("/knowledge").content.decode()
    assert "</time>" in page
    assert not re.search(r"</time>\s*\.", page)


def test_a_reader_confirms_an_unconfirmed_statement(memory, person):
    one = statement(said(PersonFactory(), "From now on 28 retries."))
    client = signed_in(person)
    assert "Unconfirmed" in page_of(client)
    assert "1 to review" in page_of(client)

    page = decide(client, one, "confirm")

    assert "Confirmed by you." in page
    assert f"confirmed by {person.name}" in page
    assert "0 to review" in page


def test_a_revision_of_thousands_of_digits_is_not_the_one_that_was_shown(memory, person):
    one = statement(said(PersonFactory(), "From now on 28 retries."))
    client = signed_in(person)
    for page in ("confirm", "recalled"):
        sent = {"revision": "9" * 5000, "action": "confirm"}
        answer = client.post(f"/knowledge/{one.pk}/{page}", sent, follow=True)
        assert "Somebody changed this statement meanwhile." in answer.content.decode()
    one.refresh_from_db()
    assert one.confirmed_at is None


def test_it_is_offered_only_to_confirm_what_this_person_has_not_confirmed_and_what_is_not_contradicted(memory, person):
    one = statement(said(PersonFactory(), "From now on 28 retries."))
    client, others = signed_in(person), signed_in(PersonFactory())
    assert offers_to_confirm(client)

    decide(client, one, "confirm")
    assert not offers_to_confirm(client)
    assert offers_to_confirm(others)

    other = statement(said(person, "The limit is 40."), text="A buoy makes at most 40 retries a day.")
    decisions.contradict(Statement.objects.get(pk=one.pk), other)
    assert not offers_to_confirm(others)


@pytest.mark.parametrize(("kind", "days"), [("plan", 61), ("decision", 181), ("fact", 181), ("preference", 366)])
def test_a_statement_says_since_when_nobody_repeated_or_confirmed_it(memory, person, kind, days):
    said_at = ago(days=days)
    one = statement(
        said(person, "From now on 28 retries.", timestamp=said_at),
        said(PersonFactory(), "28 retries a day.", timestamp=said_at),
        kind=kind,
    )
    client = signed_in(person)
    stale = f"not confirmed since {day_text(said_at)}"
    assert stale in page_of(client)
    assert statement_text(memory.statement_facts([one.pk])[one.pk]).endswith(stale)

    assert "not confirmed since" not in decide(client, one, "confirm")
    assert not offers_to_confirm(client)
    Statement.objects.update(confirmed_at=ago(days=days))
    assert f"confirmed by {person.name}, {stale}" in page_of(client)
    assert offers_to_confirm(client)
    Statement.objects.update(last_said_at=ago(days=days - 2))
    assert "not confirmed since" not in page_of(client)


def test_statements_are_filtered_by_kind_and_a_space_links_to_its_decisions(memory, person):
    old = statement(said(person, "The limit is 40."), text="A buoy makes at most 40 retries a day.", kind="decision")
    new = statement(said(person, "From now on 28 retries."), kind="decision")
    decisions.supersede(old, by_statement=new, by=None)
    statement(said(person, "The lid is 3 mm."), text="The lid is 3 mm thick.", kind="fact")
    client = signed_in(person)

    space = html.unescape(client.get(f"/spaces/{access.team_space().pk}").content.decode())
    (query,) = re.findall(r'href="/knowledge(\?[^"]*kind=decision[^"]*)"', space)
    log = page_of(client, query)
    assert log.index("at most 28 retries") < log.index("at most 40 retries")
    assert "Superseded" in log
    assert "The lid" not in log
    assert "The lid" in page_of(client, "?kind=fact")
    assert "The lid" in page_of(client, "?kind=rumour")


def test_a_correction_supersedes_and_stands_above(memory, person):
    one = statement(said(PersonFactory(), "From now on 28 retries."))

    page = decide(signed_in(person), one, "correct", text="A buoy makes at most 30 retries a day.")

    assert "Superseded by your statement." in page
    assert page.index("at most 30 retries") < page.index(f"Superseded {day_text(timezone.now())}")
    assert "by the statement above" in page
    alone = page_of(signed_in(person), "?state=superseded")
    assert "by “A buoy makes at most 30 retries a day.”" in alone


def test_a_rejected_statement_leaves_the_page(memory, person):
    one = statement(said(PersonFactory(), "From now on 28 retries."))

    assert RETRIES not in decide(signed_in(person), one, "reject")


def test_of_two_conflicting_statements_one_is_kept(memory, person):
    one = statement(said(person, "From now on 28 retries."))
    other = statement(said(person, "The limit is 40."), text="A buoy makes at most 40 retries a day.")
    decisions.contradict(one, other)
    client = signed_in(person)
    assert "Conflicting" in page_of(client)

    page = decide(client, one, "keep", other=str(other.pk))

    assert "Resolved by you." in page
    assert "Superseded" in page
    assert "Conflicting" not in page


def test_the_other_of_two_conflicting_statements_is_kept_where_the_first_one_is(memory, person):
    one = statement(said(person, "From now on 28 retries."))
    other = statement(said(person, "The limit is 40."), text="A buoy makes at most 40 retries a day.")
    decisions.contradict(one, other)
    client = signed_in(person)
    form = re.search(
        rf'action="(/knowledge/{other.pk}/keep)">(.*?value="{one.pk}">Keep the other)',
        client.get("/knowledge").content.decode(),
        re.DOTALL,
    )
    assert form
    revision = re.search(r'name="revision" value="(\d+)"', form[2])
    assert revision

    client.post(form[1], {"revision": revision[1], "other": str(one.pk)})

    one.refresh_from_db()
    assert one.superseded_by_id == other.pk


def test_a_hidden_statement_is_quoted_nowhere(memory, person):
    one = statement(said(person, "From now on 28 retries."))
    source = said(person, "The limit is 40.")
    other = statement(source, text="A buoy makes at most 40 retries a day.")
    decisions.contradict(one, other)
    deactivate([source.pk])
    page = page_of(signed_in(person))
    assert RETRIES in page
    assert "40 retries" not in page
    assert "Conflicting" not in page

    decisions.supersede(one, by_statement=other, by=None)
    page = page_of(signed_in(person))
    assert "Superseded" in page
    assert "40 retries" not in page


def test_only_findable_sources_count_for_what_is_to_be_reviewed(memory, person):
    hidden = said(person, "From now on 28 retries.")
    statement(said(person, "28 retries a day."), hidden)
    wanted = StatementFilter(to_review=True)
    readable = access.readable_space_ids(person.id)
    assert not memory.statement_ids(readable, wanted)

    deactivate([hidden.pk])
    assert len(memory.statement_ids(readable, wanted)) == 1


def test_of_several_conflicting_statements_none_is_the_other(memory, person):
    one = statement(said(person, "From now on 28 retries."))
    for limit in (40, 50):
        text = f"A buoy makes at most {limit} retries a day."
        decisions.contradict(one, statement(said(person, f"The limit is {limit}."), text=text))

    page = page_of(signed_in(person), f"?q={RETRIES}")

    assert page.count("Keep this one") == 2
    assert "Keep all" in page
    assert "Keep the other" not in page


def test_a_decision_leads_back_to_the_statement_or_to_what_took_its_place(memory, person):
    buoy = statement(said(person, "From now on 28 retries."))
    lid = statement(said(person, "The lid is 3 mm."), text="The lid is 3 mm thick.")
    client = signed_in(person)

    def place_after(one: Statement, action: str, **fields: Any) -> str:
        sent = {"revision": 1, "query": "q=&review=yes&page=7&at=old"} | fields
        return client.post(f"/knowledge/{one.pk}/{action}", sent)["Location"]

    list_address = "/knowledge?q=&review=yes"
    assert place_after(lid, "confirm", revision=7) == f"{list_address}#statement-{lid.pk}"
    assert place_after(lid, "confirm") == f"{list_address}#statement-{buoy.pk}"
    assert place_after(buoy, "forget") == f"{list_address}#statements"

    new = client.post(f"/knowledge/{lid.pk}/correct", {"revision": 2, "text": "The lid is 5 mm thick."})["Location"]
    assert new == f"/knowledge#statement-{Statement.objects.latest('exchange__created_at').pk}"


def test_the_place_after_a_decision_is_on_its_page_of_the_list(memory, person, monkeypatch):
    monkeypatch.setattr("chat.views.knowledge._PAGE_SIZE", 1)
    first = statement(said(person, "The lid is 3 mm."), text="The lid is 3 mm.")
    statement(said(person, "The mast is 9 m."), text="The mast is 9 m.")
    client = signed_in(person)
    newest = f"/knowledge?order=newest&page=2#statement-{first.pk}"

    assert client.post(f"/knowledge/{first.pk}/confirm", {"revision": 1, "query": "order=newest"})["Location"] == newest
    assert "The lid" in page_of(client, f"?order=newest&at={first.pk}")
    assert "The mast" in page_of(client, f"?order=newest&at={first.pk}&page=1")


def test_a_change_of_what_somebody_changed_meanwhile_is_reported_and_changes_nothing(memory, person):
    one = statement(said(person, "From now on 28 retries."))
    decisions.confirm(PersonFactory().id, one.pk, revision=1)

    client = signed_in(person)
    client.post(f"/knowledge/{one.pk}/reject", {"revision": "1"})

    assert "Somebody changed this statement meanwhile." in (page := page_of(client))
    assert RETRIES in page


@pytest.mark.parametrize("with_sources", [False, True])
def test_its_first_author_forgets_a_statement_with_or_without_the_own_sources(memory, person, with_sources):
    own, others = said(person, "From now on 28 retries."), said(PersonFactory(), "28 retries a day.")
    one = statement(own, others)

    page = decide(signed_in(person), one, "forget", **({"sources": "yes"} if with_sources else {}))

    assert "Forgotten." in page
    assert RETRIES not in page
    forgotten = set(Exchange.objects.exclude(forgotten_at=None).values_list("pk", flat=True))
    assert forgotten == {one.pk, own.pk} if with_sources else {one.pk}


def test_sources_of_others_in_an_own_thread_stay_when_a_statement_is_forgotten(memory, person):
    shared = thread(person, space=access.team_space())
    own = said(person, "From now on 28 retries.", space=shared.space, thread_id=shared.pk)
    others = said(PersonFactory(), "28 retries a day.", space=shared.space, thread_id=shared.pk)
    one = statement(own, others)

    decide(signed_in(person), one, "forget", sources="yes")

    assert set(Exchange.objects.filter(forgotten_at=None)) == {others}


def test_a_failure_between_a_statement_and_its_sources_leaves_both(memory, person, monkeypatch):
    one = statement(own := said(person, "From now on 28 retries."))
    allowed = chat_access.exchange_to_forget

    def fail_at_the_source(person_id: Any, exchange_id: Any, **kwargs: Any) -> Exchange:
        if exchange_id == own.pk:
            raise OperationalError("disk I/O error")
        return allowed(person_id, exchange_id, **kwargs)

    monkeypatch.setattr(chat_access, "exchange_to_forget", fail_at_the_source)
    with pytest.raises(OperationalError):
        decide(signed_in(person), one, "forget", sources="yes")

    assert not Exchange.objects.exclude(forgotten_at=None).exists()


def test_who_did_not_say_it_is_not_offered_to_forget_it_and_cannot(memory, person):
    one = statement(said(PersonFactory(), "From now on 28 retries."))
    client = signed_in(person)

    assert "Forget…" not in page_of(client)
    assert client.post(f"/knowledge/{one.pk}/forget", {"revision": 1}).status_code == 404
    assert "Forget…" in page_of(signed_in(AdministratorFactory()))


def test_an_administrator_forgets_the_statement_but_not_what_others_said(memory, person):
    one = statement(said(person, "From now on 28 retries."))

    decide(signed_in(AdministratorFactory()), one, "forget", sources="yes")

    assert set(Exchange.objects.exclude(forgotten_at=None).values_list("pk", flat=True)) == {one.pk}


def test_outsiders_neither_see_nor_change_nor_export_it(memory, person):
    one = statement(said(person, "From now on 28 retries.", group("Hardware", person)))
    outsider = signed_in(PersonFactory())

    assert RETRIES not in page_of(outsider)
    assert RETRIES not in outsider.get("/knowledge/export").content.decode()
    for action in ("confirm", "correct", "reject", "keep", "forget"):
        assert outsider.post(f"/knowledge/{one.pk}/{action}", {"revision": 1, "text": "x"}).status_code == 404


def test_filters_leave_statements_out(memory, person):
    crew = group("Hardware", person)
    statement(said(person, "From now on 28 retries.", crew))
    statement(said(person, "The lid is 3 mm."), text="The lid is 3 mm thick.", topic="Housing")
    client = signed_in(person)

    assert "The lid" not in page_of(client, f"?space={crew.pk}")
    assert RETRIES not in page_of(client, "?q=lid")
    assert "No statements match these filters." in page_of(client, "?q=axolotl")
    assert "No statements match these filters." in page_of(client, "?since=2199-01-01")
    assert RETRIES in page_of(client, "?since=2023-02-30")
    page = page_of(client)
    assert page.index("Housing") < page.index("Uplink")


def test_statements_are_searched_in_upper_and_lower_case_of_every_script(memory, person):
    statement(said(person, "The lid is 3 mm."), text="Das Öl wird im März gewechselt.", topic="Ärger")
    client = signed_in(person)
    assert "Das Öl" in page_of(client, "?q=MÄRZ öl")
    assert "Das Öl" in page_of(client, "?q=ärger")
    assert "Das Öl" not in page_of(client, "?q=ö.l")


def test_statements_are_filtered_by_who_said_them_and_by_state(memory, person):
    other = PersonFactory(name="Jana Kohl")
    old = statement(said(other, "The limit is 40."), text="A buoy makes at most 40 retries a day.")
    new = statement(said(person, "From now on 28 retries."), said(other, "28 retries a day."))
    decisions.supersede(old, by_statement=new, by=None)
    statement(said(person, "The lid is 3 mm."), text="The lid is 3 mm thick.", topic="Housing")
    client = signed_in(person)

    of_jana = page_of(client, f"?who={other.id}")
    assert RETRIES in of_jana
    assert "at most 40 retries" in of_jana
    assert "The lid is" not in of_jana
    assert "Superseded" not in page_of(client, "?state=current")
    assert "The lid is" not in page_of(client, "?state=superseded")
    decisions.reject(person.id, new.pk, revision=Statement.objects.get(pk=new.pk).revision)
    assert RETRIES not in page_of(client, "?state=rejected")


def recalled_for(one: Statement, in_thread: Any, message: str, **fields: Any) -> None:
    answered = turn(in_thread, message, **fields)
    RecallLogEntry.objects.create(turn_id=answered.id, exchange_id=one.pk, rank=1, score=1, strategy="x", reason="")


def test_a_statement_shows_the_answers_for_which_it_was_recalled_that_the_reader_may_read(memory, person):
    colleague = PersonFactory()
    one = statement(said(person, "From now on 28 retries."))
    client, address = signed_in(person), f"/knowledge/{one.pk}/answers"
    assert not re.search(r"Show \d", page_of(client))
    shared = thread(colleague, title="Winter power review", space=access.team_space())
    recalled_for(one, shared, "How many retries?")
    recalled_for(one, shared, "How many retries then?", is_on_active_branch=False)
    recalled_for(one, thread(colleague), "How many retries did they say?")

    assert "Show 1 answer" in page_of(client)
    assert "Show 2 answers" in page_of(signed_in(colleague))
    for headers in ({}, {"HX-Request": "true"}):
        shown = client.get(address, headers=headers).content.decode()
        assert re.findall(r"How many retries[\w ]*\?", shown) == ["How many retries?"]
        assert "Winter power review" in shown
        assert ("<html" in shown) is (not headers)
    outsider = statement(said(colleague, "Ours.", group("Hardware", colleague)), text="It is ours.")
    assert client.get(f"/knowledge/{outsider.pk}/answers").status_code == 404


def test_a_correction_of_several_lines_is_one_item_of_the_exported_markdown(memory, person):
    one = statement(said(person, "From now on 28 retries."), text=RETRIES)
    decisions.correct(person.id, one.pk, "At most 30 retries.\n\n# Not a heading", revision=1)

    lines = signed_in(person).get("/knowledge/export").content.decode().splitlines()

    assert "- At most 30 retries. # Not a heading" in lines
    assert not [line for line in lines if line.startswith("# Not")]


def test_statements_are_exported_as_markdown_and_json(memory, person):
    statement(said(person, "From now on 28 retries."))
    client = signed_in(person)

    markdown = client.get("/knowledge/export").content.decode()
    assert "## Uplink" in markdown
    assert f"- {RETRIES}" in markdown
    (exported,) = json.loads(client.get("/knowledge/export?format=json").content)
    assert (exported["text"], exported["state"], exported["topic"]) == (RETRIES, "unconfirmed", "Uplink")
    assert [source["quote"] for source in exported["sources"]] == ["From now on 28 retries."]


def test_the_page_takes_the_same_statements_of_sql_for_one_statement_and_for_ten(memory, person):
    client = signed_in(person)
    statement(said(person, "From now on 28 retries."))
    with counted_statements() as for_one:
        page_of(client)
    for number in range(9):
        statement(said(person, f"The lid has {number} screws."), text=f"The lid has {number} screws.")

    with counted_statements() as for_ten:
        page_of(client)

    assert len(for_ten) <= len(for_one), for_ten.report()


def test_a_person_switches_extraction_on_in_the_personal_space_and_an_administrator_in_the_others(memory, person):
    client = signed_in(person)
    assert "Extraction is off in all spaces that you read." in page_of(client)
    assert "Everyone" not in page_of(client, "/extraction").split("Extraction of statements")[1]

    own, team = access.personal_space(person.id), access.team_space()
    assert client.post(f"/knowledge/extraction/{own.pk}", {"action": "on"}).status_code == 302
    assert client.post(f"/knowledge/extraction/{team.pk}", {"action": "on"}).status_code == 403
    assert "Only you: Waiting for a model: none is connected" in page_of(client)

    signed_in(AdministratorFactory()).post(f"/knowledge/extraction/{team.pk}", {"action": "on"})
    assert "Everyone: Waiting for a model" in page_of(client)


def test_extraction_is_paused_limited_and_switched_off(memory, person):
    own = access.personal_space(person.id)
    client = signed_in(person)
    change = f"/knowledge/extraction/{own.pk}"
    client.post(change, {"action": "on"})

    client.post(change, {"action": "save", "model": "small-model", "daily_tokens": "1000"})
    assert "0 of 1,000 tokens today" in page_of(client, "/extraction")
    client.post(change, {"action": "save", "model": "small-model", "daily_tokens": "many"})
    assert "Enter the tokens of a day as a whole number." in page_of(client, "/extraction")
    client.post(change, {"action": "pause"})
    assert "Paused" in page_of(client, "/extraction")
    client.post(change, {"action": "off"})
    assert "Extraction is off" in page_of(client)


def reading(memory: Any, person: Any, **fields: Any) -> SpaceKnowledge:
    """Let one of four exchanges of the person's space be left to read, with the model "fake"."""
    model_endpoint.save(base_url="http://127.0.0.1:1", api_key="x", model="fake")
    own = access.personal_space(person.id)
    said(person, "From now on 28 retries.", own)
    memory.index_pending()
    return SpaceKnowledge.objects.create(space=own, is_on=True, due_at=ago(), backlog=4, **fields)


def test_the_page_shows_how_far_extraction_is(memory, person, monkeypatch):
    reading(memory, person)
    monkeypatch.setattr("chat.rows.extraction.estimate_remaining", lambda queue, waiting: waiting * 150)
    client = signed_in(person)

    for address in ("/knowledge", "/knowledge/extraction/progress"):
        page = client.get(address).content.decode()
        assert "Only you: Extracting from 1 exchange, about 3 minutes left" in page
        assert 'class="progress-bar__value" width="15"' in page
        assert 'hx-trigger="every 5s"' in page
        assert "fake · 0 of 200,000 tokens today" in page

    client.post(f"/knowledge/extraction/{access.personal_space(person.id).pk}?from=knowledge", {"action": "pause"})
    page = page_of(client)
    assert "Only you: Paused" in page
    assert "Resume" in page


def test_a_failed_extraction_says_when_and_with_which_model_and_is_tried_again_at_once(memory, person):
    row = reading(memory, person, error="The model endpoint does not respond.", failed_at=ago(), failures=3)
    client = signed_in(person)
    page = page_of(client)
    assert "1 exchange is not read yet" in page
    assert re.search(r"Failed: fake, .* UTC\s*. The model endpoint does not respond. Retry", page)

    answer = client.post(f"/knowledge/extraction/{row.space_id}?from=knowledge", {"action": "retry"})

    assert answer["Location"] == "/knowledge"
    row.refresh_from_db()
    assert (row.error, row.failures, row.is_on, row.is_paused) == ("", 0, True, False)
    page = page_of(client)
    assert "It is tried again now." in page
    assert "Failed" not in page


def test_only_who_may_set_extraction_sees_its_model_and_tokens(memory, person):
    model_endpoint.save(base_url="http://127.0.0.1:1", api_key="x", model="fake")
    said(person, "From now on 28 retries.")
    memory.index_pending()
    SpaceKnowledge.objects.create(space=access.team_space(), is_on=True, due_at=ago(), error="No.", failed_at=ago())

    page = page_of(signed_in(person))

    assert "Failed: fake" in page
    assert "tokens today" not in page
    assert "Retry" not in page
    assert "Retry" in page_of(signed_in(AdministratorFactory()))
