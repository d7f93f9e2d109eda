"""The model picker of a thread and of a new one, and the command /model."""

from __future__ import annotations

import html
import json
import re
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from cato_web.accounts.models import User
from chat import commands
from chat.errors import InvalidMessageError
from chat.llm import endpoint as model_endpoint
from chat.llm import model_list
from chat.llm.endpoint import ModelEndpoint
from chat.models import Thread
from chat.rows.model_picker import MAX_SHOWN
from chat.views import model_picker
from memory.models import Membership
from tests.factories import PersonFactory, group, signed_in, thread
from tests.topology import free_port

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def person() -> User:
    return PersonFactory(name="Paula")


@pytest.fixture
def key() -> str:
    """Return a new API key, because the models of an endpoint are cached per key."""
    return f"models-{uuid.uuid4()}"


@pytest.fixture
def connect(endpoint, key, monkeypatch) -> Callable[..., ModelEndpoint]:
    """Return a function that connects Cato with the fake endpoint, or with another address."""

    def connect(model: str = "fake", *, url: str = "", **script) -> ModelEndpoint:
        endpoint.script(key, **script)
        connected = ModelEndpoint(url or endpoint.openai_url, key, model)
        monkeypatch.setattr(model_endpoint, "current", lambda: connected)
        return connected

    return connect


def list_url(of: Thread | None) -> str:
    return reverse("thread_model", args=[of.id]) if of else reverse("new_thread_model")


def opened(client: Client, of: Thread | None = None, **query: str) -> str:
    """Return the text of the popover, with single spaces."""
    answer = client.get(list_url(of), query, headers=HTMX)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def options(text: str) -> list[tuple[str, str]]:
    """Return the name of each option and what is said about it."""
    found = re.findall(r"<b>(.*?)</b>\s*(?:<span>(.*?)</span>)?", text)
    return [(html.unescape(name), note) for name, note in found]


def current(text: str) -> list[str]:
    return re.findall(r'aria-checked="true".*?<b>(.*?)</b>', text)


def choose(client: Client, of: Thread | None, name: str):
    return client.post(list_url(of), {"model": name}, headers=HTMX)


def start_thread(client: Client, **fields: str):
    return client.post(reverse("new_thread"), {"message": "Hello", "client_key": str(uuid.uuid4()), **fields})


def saved_model(of: Thread) -> str:
    return Thread.objects.get(id=of.id).model


def test_the_popover_lists_the_models_of_the_endpoint(connect, person):
    connect(models=["fake", "fake-large", "text-embedding-3"])
    text = opened(signed_in(person), thread(person, model="fake-large"))

    assert options(text) == [("fake", "default"), ("fake-large", "")]
    assert current(text) == ["fake-large"]
    assert "On this server; no data leaves it" in text
    assert "Applies to this thread. Default for new threads:" in text
    assert f'href="{reverse("settings")}#answers"' in text


def test_the_page_of_a_thread_names_its_model_and_does_not_call_the_endpoint(connect, person, endpoint, key):
    connect()
    page = signed_in(person).get(reverse("thread", args=[thread(person, model="fake-large").id])).content.decode()

    assert re.search(r'Chat model:</span>\s*<span class="composer__model-name" id="model-name">fake-large<', page)
    assert endpoint.requests(key, "/v1/models") == []


def test_without_script_a_page_has_radio_buttons_that_save(connect, person):
    connect()
    of_person = thread(person)
    client = signed_in(person)
    page = client.get(list_url(of_person)).content.decode()
    assert re.findall(r'type="radio" name="model" value="([\w-]+)"( checked)?', page) == [
        ("fake", " checked"),
        ("fake-large", ""),
    ]

    assert client.post(list_url(of_person), {"model": "fake-large"}).url == reverse("thread", args=[of_person.id])
    assert saved_model(of_person) == "fake-large"
    assert client.post(list_url(of_person), {}, follow=True).redirect_chain == [(list_url(of_person), 302)]
    assert saved_model(of_person) == "fake-large"


def test_opening_the_list_again_does_not_call_the_endpoint_again(connect, person, endpoint, key, monkeypatch):
    connect()
    client, of_person = signed_in(person), thread(person)
    for _ in range(3):
        opened(client, of_person)
    client.get(reverse("settings"))
    assert len(endpoint.requests(key, "/v1/models")) == 1

    monkeypatch.setattr(model_list, "_FRESH", timedelta(0))
    opened(client, of_person)
    assert len(endpoint.requests(key, "/v1/models")) == 2


def test_a_choice_is_saved_and_published_to_the_pages_of_the_thread(connect, person, monkeypatch):
    connect()
    frames = []
    monkeypatch.setattr(model_picker, "publish", frames.append)
    client, of_person = signed_in(person), thread(person)

    answer = choose(client, of_person, "fake-large").content.decode()

    assert saved_model(of_person) == "fake-large"
    assert ('id="model-name" hx-swap-oob="true">fake-large<') in answer
    assert [(frame.thread_id, frame.html) for frame in frames] == [(of_person.id, answer)]
    assert 'hx-swap-oob="true">fake<' in choose(client, of_person, "fake").content.decode()
    assert saved_model(of_person) == ""


def test_a_model_that_is_not_listed_is_refused(connect, person):
    connect()
    of_person = thread(person, model="fake-large")
    answer = choose(signed_in(person), of_person, "fake-larg")

    assert answer.status_code == 422
    assert "does not offer fake-larg. Did you mean fake-large?" in answer.content.decode()
    assert choose(signed_in(person), of_person, "f" * 121).status_code == 422
    assert saved_model(of_person) == "fake-large"


def test_only_the_owner_and_managers_of_the_space_change_the_model(connect, person):
    connect()
    reader, manager, stranger = (PersonFactory(name=name) for name in ("Rita", "Max", "Sven"))
    crew = group("Crew", person, reader, manager)
    managers = Membership.objects.filter(person=manager)
    managers.update(role=Membership.Role.MANAGER)
    talk = thread(person, space=crew)

    for other, status in ((reader, 403), (stranger, 404)):
        assert signed_in(other).get(list_url(talk), headers=HTMX).status_code == status
        assert choose(signed_in(other), talk, "fake-large").status_code == status
    assert saved_model(talk) == ""
    assert choose(signed_in(manager), talk, "fake-large").status_code == 200
    assert saved_model(talk) == "fake-large"

    def has_button(user: User) -> bool:
        page = signed_in(user).get(reverse("thread", args=[talk.id])).content.decode()
        assert ">fake-large<" in page
        return list_url(talk) in page

    assert [has_button(user) for user in (person, manager, reader)] == [True, True, False]
    # The right is checked when it is used.
    managers.update(role=Membership.Role.MEMBER)
    assert choose(signed_in(manager), talk, "fake").status_code == 403
    assert saved_model(talk) == "fake-large"


def test_a_long_list_is_cut_and_can_be_filtered(connect, person):
    names = [f"model-{number:03}" for number in range(250)]
    connect("model-240", models=names)
    client, of_person = signed_in(person), thread(person, model="model-230")
    text = opened(client, of_person)

    assert len(options(text)) == MAX_SHOWN
    assert options(text)[:3] == [("model-240", "default"), ("model-230", ""), ("model-000", "")]
    assert f"Only {MAX_SHOWN} models are listed here." in text
    assert 'role="combobox"' in text
    assert options(opened(client, of_person, q="L-249")) == [("model-249", "")]
    none = opened(client, of_person, q="<xq>")
    assert options(none) == []
    assert "No matches for “&lt;xq&gt;”" in none


def test_a_short_list_has_no_filter(connect, person):
    connect(models=[f"model-{number}" for number in range(11)])
    text = opened(signed_in(person), thread(person))

    assert len(options(text)) == 12
    assert 'role="combobox"' not in text
    assert "are listed here" not in text


def test_names_that_need_escaping_are_posted_as_they_are(connect, person):
    name = """a'b"c<d>&e/f:g"""
    connect(models=["fake", name])
    text = opened(signed_in(person), thread(person))

    values = [json.loads(html.unescape(value)) for value in re.findall(r"hx-vals='(.*?)'", text)]
    assert {"model": name} in values


def test_a_model_that_is_no_longer_offered_cannot_be_selected(connect, person):
    connect()
    text = opened(signed_in(person), thread(person, model="retired"))

    assert options(text) == [("retired", "not offered"), ("fake", "default"), ("fake-large", "")]
    assert text.count("hx-post") == 2


@pytest.mark.parametrize("mode", ["closed", "hang"])
def test_an_endpoint_that_does_not_respond_is_reported_and_nothing_can_be_selected(
    connect, person, key, monkeypatch, mode
):
    of_person, client = thread(person), signed_in(person)
    monkeypatch.setattr(model_list, "_TIMEOUT", 2.0)
    url = f"http://127.0.0.1:{free_port()}/v1" if mode == "closed" else ""
    connected = connect(url=url, mode="hang" if mode == "hang" else "ok")
    known = model_list.ModelList(("fake", "fake-large"), read_at=timezone.now() - timedelta(minutes=1))
    cache.set(model_list._cache_key(connected), known)
    before = timezone.now()

    text = opened(client, of_person)

    assert f"{connected.host}: not responding since" in text
    since = model_list.read_model_list(connected).failing_since
    assert since is not None
    assert before <= since <= timezone.now()
    assert options(text) == [("fake", "default"), ("fake-large", "")]
    assert text.count('aria-disabled="true"') == 2
    assert "hx-post" not in text
    assert client.get(list_url(of_person)).content.decode().count("disabled>") == 2

    # The next failure is the same outage, unless it is much later.
    monkeypatch.setattr(model_list, "_FRESH", timedelta(0))
    assert model_list.read_model_list(connected).failing_since == since
    monkeypatch.setattr(model_list, "_MAX_GAP", timedelta(0))
    later = model_list.read_model_list(connected).failing_since
    assert later is not None
    assert later > since


def test_an_endpoint_that_refuses_the_list_says_why_and_since_when_is_not_claimed(connect, person):
    connected = connect(mode="error-401")
    text = opened(signed_in(person), thread(person))

    assert f"{connected.host} refuses the API key. An administrator can change it." in text
    assert "not responding" not in text
    assert "hx-post" not in text


@pytest.mark.parametrize("script", [{"mode": "error-404"}, {"mode": "no-models"}, {"models": []}])
def test_an_endpoint_without_a_list_accepts_any_name(connect, person, script):
    connected = connect(**script)
    client, of_person = signed_in(person), thread(person, model="mine")
    text = opened(client, of_person)

    assert f"{connected.host} lists no models." in text
    assert options(text) == [("fake", "default"), ("mine", "")]
    assert choose(client, of_person, "another").status_code == 200
    assert saved_model(of_person) == "another"


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:8000/v1", True),
        ("https://models.example.org/v1", False),
        ("http://10.0.0.7:8000/v1", False),
        ("http://localhost.example.org/v1", False),
    ],
)
def test_the_endpoint_is_local_only_at_a_loopback_address(address, is_local):
    assert ModelEndpoint(address, "", "").is_local == is_local


def test_the_name_of_an_endpoint_is_shown_without_the_password_of_its_address():
    endpoint = ModelEndpoint("https://ada:secret@models.example:8443/v1", "", "")
    assert (endpoint.host, endpoint.label, endpoint.displayed_model("")) == ("models.example:8443",) * 3


def test_a_remote_endpoint_says_what_it_receives(connect, person):
    connected = connect(url="https://models.example.org/v1")
    cache.set(model_list._cache_key(connected), model_list.ModelList(("fake",), read_at=timezone.now()))

    assert "At models.example.org; receives prompts and recalled passages" in opened(signed_in(person), None)


def test_a_new_thread_gets_the_model_chosen_before_its_first_message(connect, person):
    connect()
    client = signed_in(person)
    answer = choose(client, None, "fake-large").content.decode()
    assert 'hx-swap-oob="true">fake-large<' in answer
    assert re.search(r'name="model" id="model-field" value="fake-large" form="composer"', answer)
    assert current(opened(client, None, model="fake-large")) == ["fake-large"]

    start_thread(client, model="fake-large")
    assert Thread.objects.get().model == "fake-large"


def test_without_script_the_choice_for_a_new_thread_is_in_its_address(connect, person):
    connect()
    client = signed_in(person)
    target = client.post(f"{list_url(None)}?say=Hi", {"model": "fake-large"}).url
    page = client.get(target).content.decode()

    assert 'id="model-field" value="fake-large"' in page
    assert ">fake-large<" in page
    assert re.search(r'aria-describedby="composer-error"[^>]*>\s*Hi</textarea>', page)


def test_a_new_thread_with_a_model_that_is_not_listed_is_refused_and_its_text_kept(connect, person):
    connect()
    answer = start_thread(signed_in(person), model="nowhere")

    assert answer.status_code == 422
    assert "does not offer nowhere." in answer.content.decode()
    assert "Hello</textarea>" in answer.content.decode()
    assert not Thread.objects.exists()


def test_the_default_of_a_person_applies_unless_another_model_is_chosen(connect, person):
    connect()
    person.default_model = "fake-large"
    person.save()
    client = signed_in(person)
    page = client.get(reverse("new_thread")).content.decode()
    assert ">fake-large<" in page
    assert current(opened(client, None)) == ["fake-large"]

    start_thread(client, model="")
    assert Thread.objects.get().model == "fake-large"
    start_thread(client, model="fake")
    assert Thread.objects.order_by("-created_at").first().model == ""


def test_without_an_endpoint_there_is_no_picker(person):
    client, of_person = signed_in(person), thread(person)
    for url in (reverse("new_thread"), reverse("thread", args=[of_person.id])):
        page = client.get(url).content.decode()
        assert "No model connected" in page
        assert 'id="model-picker"' not in page
    assert client.get(list_url(of_person)).status_code == 409
    assert choose(client, of_person, "fake").status_code == 409
    start_thread(client, model="fake")
    assert Thread.objects.exclude(id=of_person.id).get().model == ""


def run(message: str, of: Thread, person: User) -> commands.CommandResult:
    context = commands.CommandContext(
        person_id=person.id,
        is_administrator=False,
        context_mode="summary",
        set_context_mode=lambda mode: None,
        thread=Thread.objects.get(id=of.id),
    )
    return commands.run(message, context)


def test_the_command_lists_the_models_and_marks_the_current_one(connect, person):
    connect()
    card = run("/model", thread(person, model="fake-large"), person)

    assert card.title == "fake-large"
    assert [(line.label, line.figure) for line in card.lines] == [("fake", "default"), ("fake-large", "current")]
    assert "Write /model NAME to change it for this thread." in card.text


def test_the_command_sets_a_listed_model_and_suggests_one_for_another_name(connect, person):
    connect()
    of_person = thread(person)
    assert run("/model fake-large", of_person, person).title == "fake-large"
    with pytest.raises(InvalidMessageError, match=r"does not offer Fake-Larg\. Did you mean fake-large\?") as refusal:
        run("/model Fake-Larg", of_person, person)
    assert refusal.value.suggestion == "/model fake-large"
    with pytest.raises(InvalidMessageError, match=r"does not offer zzz\. /model lists its models\."):
        run("/model zzz", of_person, person)
    assert saved_model(of_person) == "fake-large"

    run("/model default", of_person, person)
    assert saved_model(of_person) == ""


def test_the_command_accepts_any_name_while_the_list_cannot_be_read(connect, person):
    of_person = thread(person)
    connected = connect(mode="error-500")

    card = run("/model", of_person, person)
    assert [line.label for line in card.lines] == ["fake"]
    assert "The model's server failed (HTTP 500)." in card.text
    assert run("/model anything", of_person, person).title == "anything"
    assert saved_model(of_person) == "anything"
    assert connected.model == "fake"
