"""The search page finds exchanges by meaning and term, limited by the chosen filters."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.urls import reverse
from django.utils import timezone

from memory.exchanges.forgetting import forget
from memory.spaces import access
from tests.factories import PersonFactory, ago, document, exchange, group, signed_in, thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def crew(memory, person):
    """Return a group of two people, with an exchange of each in it and one elsewhere, indexed."""
    ines = PersonFactory(name="Ines Dvorak")
    space = group("Boat crew", person, ines)
    march, may = datetime(2026, 3, 2, 12, tzinfo=UTC), datetime(2026, 5, 4, 12, tzinfo=UTC)
    exchange(person, "Where is the boat moored in winter?", "At the north quay.", space=space, timestamp=march)
    exchange(ines, "Who painted the boat?", "Two painters from Halden.", space=space, timestamp=may)
    exchange(person, "The boat licence is in the drawer.", "", source="vadd_command", timestamp=may, manual_entry=True)
    memory.index_pending()
    return space, ines


def found(person, **filters) -> set[str]:
    """Return which of the three exchanges the page shows for the query `boat`."""
    html = signed_in(person).get(reverse("search"), {"q": "boat"} | filters).content.decode()
    texts = {"winter": "moored in winter", "paint": "Who painted", "licence": "licence is in"}
    html = re.sub("</?mark>", "", html)
    return {name for name, text in texts.items() if text in html}


def test_without_filters_everything_readable_is_found(crew, person):
    assert found(person) == {"winter", "paint", "licence"}


def test_filters_limit_author_source_space_and_dates(crew, person):
    space, ines = crew
    assert found(person, who=ines.pk) == {"paint"}
    assert found(person, type="noted") == {"licence"}
    assert found(person, space=space.pk) == {"winter", "paint"}
    assert found(person, since="2026-04-01") == {"paint", "licence"}
    assert found(person, until="2026-03-02") == {"winter"}, "the last day is included"
    assert found(person, until="9999-12-31") == found(person), "the last day that there is"
    assert found(person, who=person.pk, space=space.pk, until="2026-12-31") == {"winter"}


@pytest.mark.parametrize("filters", [{"q": "boat"}, {"since": "2026-01-01"}])
def test_a_search_with_too_many_excluded_words_is_refused_with_a_reason(crew, person, filters):
    words = " ".join(f"-word{number}" for number in range(1_000))
    answer = signed_in(person).get(reverse("search"), filters | {"q": f"{filters.get('q', '')} {words}"})
    assert "at most 20 phrases in quotes and excluded words" in answer.content.decode()
    assert "winter" in found(person, q=f"boat {words.partition(' -word20')[0]}")


def test_labels_of_menus_are_for_screen_readers_only(crew, person):
    html = signed_in(person).get(reverse("search")).content.decode()
    hidden = re.findall(r'<label class="visually-hidden"\s+for="id_(\w+)"', html)
    assert hidden == ["space", "who", "type", "thread", "document", "similarity"]


def test_many_memories_are_not_all_counted_for_a_search_without_results(crew, person, monkeypatch):
    for module in ("chat.search.rows", "chat.views.search"):
        monkeypatch.setattr(f"{module}.MOST_COUNTED", 2)
    html = signed_in(person).get(reverse("search"), {"q": "zeppelin", "type": "noted"}).content.decode()
    assert "1 of more than 2 memories you can read" in html


def test_an_invalid_filter_is_reported_and_nothing_is_searched(crew, person):
    answer = signed_in(person).get(reverse("search"), {"q": "boat", "since": "yesterday"})
    assert "Enter a valid date." in answer.content.decode()
    assert "moored in winter" not in answer.content.decode()


def test_a_space_that_the_person_cannot_read_is_no_filter(crew, person):
    stranger = PersonFactory()
    html = signed_in(stranger).get(reverse("search"), {"q": "boat", "space": crew[0].pk}).content.decode()
    assert "Select a valid choice." in html
    assert found(stranger, space=access.personal_space(person.pk).pk) == set()


def test_all_filters_can_be_cleared(crew, person):
    html = signed_in(person).get(reverse("search"), {"q": "boat", "type": "said"}).content.decode()
    assert 'href="/search?q=boat">Clear filters' in html


def test_only_authors_of_readable_exchanges_can_be_chosen(crew, person):
    PersonFactory(name="Somebody Else")
    html = signed_in(person).get(reverse("search")).content.decode()
    assert "Ines Dvorak" in html
    assert "Somebody Else" not in html


def test_a_name_is_text_in_the_menu_of_authors(memory, person):
    author = PersonFactory(name='<b>Bo</b> "B"')
    exchange(author, "The boat is red.", space=group("Rowers", person, author))
    html = signed_in(person).get(reverse("search"), {"who": author.pk}).content.decode()
    assert f'<option value="{author.pk}" selected>&lt;b&gt;Bo&lt;/b&gt; &quot;B&quot;</option>' in html


def page(person, typed: str, **parameters) -> str:
    return signed_in(person).get(reverse("search"), {"q": typed} | parameters).content.decode()


def shown(html: str) -> list[str]:
    """Return the titles of the hits of a page, in order."""
    titles = re.findall(r'id="hit-[^>]+>(.+?)</a>', html, re.DOTALL)
    return [re.sub("</?mark>", "", title).strip() for title in titles]


def test_operators_are_filters_and_leave_the_query(crew, person):
    html = page(person, 'from:dvorak in:boat since:april before:june "painted the boat" boat')
    assert shown(html) == ["Who painted the boat?"]
    assert 'value="&quot;painted the boat&quot; boat"' in html
    assert re.search(r"<option value=\"[^\"]+\" selected>Ines Dvorak", html)
    assert 'name="since" value="2026-04-01"' in html
    assert 'name="until" value="2026-05-31"' in html


@pytest.mark.parametrize(
    ("operators", "titles"),
    [
        ("from:INES", {"paint"}),
        ("from:me type:said", {"winter"}),
        ("type:noted", {"licence"}),
        ('in:"only you"', {"licence"}),
        ("before:2026-04", {"winter"}),
        ("since:2026-05-04 type:said", {"paint"}),
        ("-painted", {"winter", "licence"}),
        ('-"North Quay" -licence', {"paint"}),
        ('"moored in"', {"winter"}),
        ('"MOORED in"', {"winter"}),
        ('"moored i"', set()),
        ("-moor -paint", {"winter", "paint", "licence"}),
    ],
)
def test_an_operator_limits_what_is_found(crew, person, operators, titles):
    assert found(person, q=f"boat {operators}") == titles


@pytest.mark.parametrize(
    ("phrase", "is_found"),
    [("übersicht DER", True), ("моторная лодка", True), ("bersicht", False), ("在车库", True), ("50% off_(new)", True)],
)
def test_a_phrase_is_found_in_upper_and_lower_case_of_every_script(memory, person, phrase, is_found):
    exchange(person, "ÜBERSICHT der Boote. Моторная Лодка. 船在车库里。 50% off_(new)")
    memory.index_pending()
    assert bool(shown(page(person, f'boote "{phrase}"'))) is is_found


@pytest.mark.parametrize("phrase", ["wet lid", "wet  lid", "wet\u00a0lid", "lid of the"])
def test_a_phrase_is_found_however_its_words_are_spaced(memory, person, phrase):
    exchange(person, "The boat has a wet\nlid  of\u00a0the mast.")
    exchange(person, "The boat has a wetlid, of the mast.")
    memory.index_pending()
    assert len(shown(page(person, f'boat "{phrase}"'))) == 1


def test_filters_without_words_list_what_they_cover_the_newest_first(crew, person):
    space, ines = crew
    everything = shown(page(person, "since:2026-01-01"))
    assert sorted(everything[:2]) == ["Note", "Who painted the boat?"]
    assert everything[2:] == ["Where is the boat moored in winter?"]
    assert shown(page(person, "before:2026-04-01")) == ["Where is the boat moored in winter?"]
    assert shown(page(person, "since:2026-04-01 -painters")) == ["Note"]
    assert shown(page(ines, "since:2026-01-01")) == ["Who painted the boat?", "Where is the boat moored in winter?"]
    listed = page(person, "since:2026-01-01")
    assert "3 results, newest first" in listed
    assert "Keyword match" not in listed
    assert "Nothing matches these filters." in page(person, "since:2027-01-01")
    forget([exchange(person, "A new boat", space=space).pk], by=person.pk)
    assert "A new boat" not in page(person, "in:crew since:2026-04-01")


def test_since_yesterday_begins_with_the_first_minute_of_yesterday(memory, person):
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    for name, minutes in {"Today": 0, "Yesterday": -1440, "Before": -1441}.items():
        exchange(person, name, "Noted.", timestamp=midnight + timedelta(minutes=minutes))
    assert shown(page(person, "since:yesterday")) == ["Today", "Yesterday"]
    assert shown(page(person, "since:heute")) == ["Today"]
    assert shown(page(person, "before:yesterday")) == ["Before"]


def test_a_long_list_has_pages(memory, person):
    for number in range(21):
        exchange(person, f"Note {number}", "Noted.", timestamp=ago(minutes=number))
    first, second = (
        page(person, "type:said"),
        unescape(signed_in(person).get(reverse("search"), {"q": "type:said", "page": 2}).content.decode()),
    )
    assert len(shown(first)) == 20
    assert shown(second) == ["Note 20"]
    assert "21 results, newest first" in second


def test_more_results_are_shown_on_request_and_the_page_goes_on_at_the_first_new_one(memory, person):
    for number in range(23):
        exchange(person, f"Mooring rope number {number}", "Noted.")
    exchange(person, "Lunch was nice.", "Good.")
    memory.index_pending()
    client = signed_in(person)
    first = unescape(client.get(reverse("search"), {"q": "mooring rope"}).content.decode())
    assert len(shown(first)) == 20
    assert "The 20 best results" in first
    assert "Less similar" not in first, "more similar ones are not shown yet"
    (url, next_hit) = re.findall(r'href="([^"]*)#(hit-[^"]*)">Show more results', first)[0]
    assert f'id="{next_hit}"' not in first

    more = unescape(client.get(url).content.decode())
    assert len(shown(more)) == 24
    assert "23 results" in more
    assert "Less similar" in more
    assert f'id="{next_hit}"' in more
    assert "Show more results" not in more
    # Another order of the same results shows as many.
    assert re.search(r'href="[^"]*more=yes"\s*>Newest', more)


def test_texts_that_differ_in_a_number_alone_are_all_found_and_copies_once(memory, person):
    invoices = [f"The invoice number {number} of the boatyard for the winter storage was paid." for number in range(12)]
    for text in [*invoices, invoices[0]]:
        exchange(person, text, "Noted.")
    memory.index_pending()
    assert sorted(shown(page(person, "invoice boatyard"))) == sorted(invoices)


def test_an_empty_search_links_to_what_was_remembered_lately(crew, person):
    exchange(person, "The boat was sold.", "Noted.")
    client = signed_in(person)
    links = dict(re.findall(r'href="(/search\?since=[^"]*)">([^<]*)<', client.get(reverse("search")).content.decode()))
    assert list(links.values()) == ["today", "since yesterday", "in the last 7 days", "in the last 30 days"]
    for url in links:
        assert shown(client.get(url).content.decode()) == ["The boat was sold."]


def test_a_similarity_alone_lists_nothing(crew, person):
    html = signed_in(person).get(reverse("search"), {"similarity": "0.8"}).content.decode()
    assert shown(html) == []
    assert "Searches your conversations" in html


def test_me_is_nobody_before_anything_was_said(person):
    assert "from:me matches nothing that you can search." in page(person, "boat from:me")


def test_an_operator_that_names_nothing_readable_is_reported_and_nothing_is_searched(crew, person):
    stranger = PersonFactory(name="Quentin Oyelaran")
    exchange(stranger, "The boat is mine.")
    for name in ("quentin", "nobody"):
        html = page(person, f"boat from:{name}")
        assert f"from:{name} matches nothing that you can search." in html, "unreadable people look like unknown ones"
        assert shown(html) == []
        assert f'value="boat from:{name}"' in html, "what was typed is not lost"
    assert "since:soon is not a date" in page(person, "boat since:soon")


@pytest.mark.parametrize("typed", ["2026-13", "2026-02-30", "2026/06/14", "2026-06-14T10:00"])
def test_a_text_that_only_begins_like_a_date_is_not_taken_for_its_year(crew, person, typed):
    assert f"since:{typed} is not a date." in page(person, f"boat since:{typed}")


@pytest.mark.parametrize(
    ("typed", "day"),
    [("2026", "2026-01-01"), ("2026-6", "2026-06-01"), ("2026-6-4", "2026-06-04"), ("2026-06-14", "2026-06-14")],
)
def test_a_date_is_a_year_a_month_or_a_day(crew, person, typed, day):
    assert f'name="since" value="{day}"' in page(person, f"boat since:{typed}")


def test_an_operator_that_fits_several_people_names_them(crew, person, memory):
    space = group("Rowers", person, inez := PersonFactory(name="Inez Okafor"))
    exchange(inez, "The boat has two oars.", space=space)
    assert "from:in matches Ines Dvorak and Inez Okafor." in page(person, "boat from:in")


def test_a_thread_and_a_document_limit_what_is_found(memory, person):
    boats = thread(person, title="Boats in winter")
    exchange(person, "The boat lies at the quay.", thread_id=boats.id)
    exchange(person, "The boat lies in the shed.")
    hidden = thread(PersonFactory(), title="Boats of others")
    chart = document(person, "charts.txt", "The boat follows the chart to the north.")
    memory.index_pending()
    for parameters in ({"q": "boat lies thread:boats"}, {"q": "boat lies", "thread": boats.id}):
        html = page(person, parameters.pop("q"), **parameters)
        assert shown(html) == ["The boat lies at the quay."]
        assert ">Boats in winter</cite>" in html
    assert "Select a valid choice" in page(person, "boat", thread=hidden.id)
    assert "Boats of others" not in page(person, "boat thread:boats")
    assert shown(page(person, "boat", document=chart.id)) == ["charts.txt"]


def test_a_thread_is_named_without_accents_or_by_its_id(memory, person):
    lists = thread(person, title="Jürgens Liste")
    exchange(person, "The boat lies at the quay.", thread_id=lists.id)
    exchange(person, "The boat lies in the shed.")
    memory.index_pending()
    for typed in ("jurgens", "JÜRGENS", lists.id):
        assert shown(page(person, f"boat thread:{typed}")) == ["The boat lies at the quay."]
    hidden = thread(PersonFactory(), title="Jürgens Boot")
    assert "matches nothing that you can search" in page(person, f"boat thread:{hidden.id}")


def test_an_operator_after_a_minus_is_refused(crew, person):
    html = page(person, "boat -from:ines")
    assert "-from: is not supported." in html
    assert shown(html) == []
    assert 'value="boat -from:ines"' in html, "what was typed is not lost"


def test_hits_are_ordered_by_date_and_the_line_says_so(crew, person):
    assert shown(page(person, "boat", type="said", order="newest")) == [
        "Who painted the boat?",
        "Where is the boat moored in winter?",
    ]
    html = page(person, "boat", type="said", order="oldest")
    assert shown(html)[0] == "Where is the boat moored in winter?"
    assert "2 results, oldest first" in html


def test_words_of_the_query_are_marked(crew, person):
    html = page(person, "painters from Halden")
    assert "Two <mark>painters</mark> from <mark>Halden</mark>." in html


def test_without_hits_the_page_names_the_filters_and_offers_those_that_would_find_something(crew, person):
    html = page(person, "licence", who=crew[1].pk, until="2026-01-01", type="noted")
    assert "Nothing from Ines Dvorak until 1 Jan 2026 of the type Noted matches “licence”." in html
    assert "No results" in html
    assert "Any date" not in html, "without it, nothing would be found either"
    html = page(person, "licence", who=crew[1].pk)
    assert re.search(r'<a class="button" href="/search\?q=licence">From anyone \(\d\)</a>', html)


def facts(html: str) -> dict[str, str]:
    """Return the figures of a page without hits, by label."""
    pairs = re.findall(r"<dt>(.*?)</dt>.*?<dd>(.*?)</dd>", html, re.DOTALL)
    return {label: " ".join(figure.split()) for label, figure in pairs}


def test_without_hits_the_page_says_what_was_searched_and_how_near_it_came(crew, person):
    html = page(person, "licence", until="2026-03-31", similarity="0.9")
    figures = facts(html)
    assert figures["Searched"] == "1 of 3 memories you can read"
    assert figures["Minimum similarity"] == ".90"
    assert re.fullmatch(r"\.[0-8]\d", figures["Best match, below the minimum"])
    assert figures["Search index"] == "up to date"
    assert "Best match, below the relevance threshold" in facts(page(person, "licence", until="2026-03-31"))
    exchange(person, "The quay is closed.")
    exchange(PersonFactory(), "The quay of others is closed.")
    assert facts(page(person, "licence", until="2026-03-31"))["Search index"] == "1 memory not indexed yet"


def test_any_date_removes_both_days(crew, person):
    html = page(person, "licence", since="2026-02-01", until="2026-03-31")
    assert re.search(r'<a class="button" href="/search\?q=licence">Any date \(\d\)</a>', html)


def suggested(html: str) -> str:
    """Return the query that a page without hits offers, "" without one."""
    found = re.search(r'Did you mean <a class="link" href="([^"]+)">(.*?)</a>\?', html)
    return unescape(found[2]) if found else ""


def test_a_misspelt_word_is_suggested_as_readable_texts_spell_it(crew, person):
    html = page(person, "paintrs licence", type="documents")
    assert suggested(html) == "painters licence"
    assert "/search?q=painters+licence&amp;type=documents" in html
    assert suggested(page(person, '"north qua" license', type="documents")) == '"north qua" licence', "c and s"
    assert suggested(page(person, "mored", type="documents")) == "moored"
    assert suggested(page(person, "painters", type="documents")) == "", "a known word"
    assert suggested(page(person, "moon", type="documents")) == "", "nothing is within one edit"


def test_a_word_of_texts_that_the_reader_cannot_read_is_never_suggested(crew, person):
    secret = exchange(PersonFactory(), "The spinnaker is hidden.")
    assert suggested(page(person, "spinaker", type="documents")) == ""
    assert suggested(page(secret.owner, "spinaker", type="documents")) == "spinnaker"
    own = exchange(person, "The mainsail is torn.", source="vadd_command", manual_entry=True)
    assert suggested(page(person, "mainsial", type="documents")) == "mainsail"
    forget([own.id], by=person.id)
    assert suggested(page(person, "mainsial", type="documents")) == "", "nor is a word of a forgotten one"


def test_hits_cost_no_suggestion(crew, person, monkeypatch):
    monkeypatch.setattr("memory.api.suggest_query", lambda *_: pytest.fail("computed with hits"))
    assert shown(page(person, "boat"))


def test_a_filter_is_removed_by_its_link(crew, person):
    html = page(person, "boat", who=person.pk, type="said", order="newest")
    link = re.search(r'search-filters__remove" href="([^"]+)">(?:(?!</a>).)+Remove the filter Type', html, re.DOTALL)
    assert link
    assert link[1].replace("&amp;", "&") == f"/search?q=boat&who={person.pk}&order=newest"


def test_passages_of_one_document_in_a_row_are_one_result(memory, person):
    text = "\n\n".join(
        f"# Part {n}\n\nThe boat is described in part {n}. " + f"Sentence {n} of the plan. " * 20 for n in range(4)
    )
    document(person, "boat.md", text)

    html = page(person, "boat")

    results = re.findall(r'<li class="search-hit">(.*?)</details>', html, re.S)
    passages = results[0].count('id="hit-')
    assert passages > 1
    assert f">{passages} passages</span></summary>" in results[0]
    assert re.search(r'role="status">1 result<', html)
