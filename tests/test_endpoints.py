"""Several model endpoints: their administration, the model picker, and what the name of a model means."""

from __future__ import annotations

import html
import re
import uuid
from typing import Any

import pytest
from django.core.cache import cache
from django.urls import reverse

from cato_web.openai_api import models
from chat import commands
from chat.errors import InvalidMessageError
from chat.llm import endpoint as model_endpoint
from chat.llm.choices import set_space_model, validate_choice
from chat.llm.further_endpoints import validate_name
from chat.models import Endpoint, SpaceModel, Thread
from memory.models import Membership
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, api_client, group, signed_in, thread
from tests.usage import KEY, connect

pytestmark = pytest.mark.django_db

ENTERED = {"name": "cloud", "api_key": "cloud-key", "location": "United States", "policy": "all", "fallback": ""}


@pytest.fixture(autouse=True)
def connected(endpoint, monkeypatch) -> None:
    """Connect the first endpoint, and script what a further one lists; other tests list other models of both."""
    cache.clear()
    monkeypatch.setattr(models, "_cache", {})
    connect(endpoint, models=["fake", "org/large"])
    endpoint.script("cloud-key", models=["big", "small"], answer="Hello there you.")


@pytest.fixture
def administrator():
    return signed_in(AdministratorFactory())


@pytest.fixture
def cloud(endpoint, administrator) -> Endpoint:
    """Add a further endpoint on the page."""
    added = administrator.post(reverse("model_endpoints"), ENTERED | {"base_url": endpoint.openai_url})
    assert added.status_code == 302, added.content.decode()
    return Endpoint.objects.get(name="cloud")


def picker(client: Any, of: Thread) -> str:
    page = client.get(reverse("thread_model", args=[of.id]), headers={"HX-Request": "true"}).content.decode()
    return html.unescape(" ".join(page.split()))


def test_an_endpoint_is_added_with_an_encrypted_key(cloud, administrator):
    page = administrator.get(reverse("model_endpoints")).content.decode()
    assert "United States" in page
    assert "May receive text of all spaces." in page
    assert "cloud-key" not in page
    assert b"cloud-key" not in bytes(cloud.encrypted_key)
    assert [one.name for one in model_endpoint.list_endpoints()] == ["", "cloud"]


def test_an_endpoint_that_does_not_answer_is_not_added(administrator):
    refused = administrator.post(reverse("model_endpoints"), ENTERED | {"base_url": "http://127.0.0.1:9/v1"})
    assert refused.status_code == 422
    assert "does not respond" in refused.content.decode()
    assert not Endpoint.objects.filter(name="cloud").exists()


def test_a_stored_key_is_not_sent_to_another_address(cloud, administrator, endpoint):
    url = reverse("change_model_endpoint", args=["cloud"])
    changed = ENTERED | {"api_key": "••••••••", "base_url": endpoint.openai_url.replace("127.0.0.1", "localhost")}
    endpoint.clear("cloud-key")
    refused = administrator.post(url, changed)
    assert "The stored API key belongs to another address." in refused.content.decode()
    assert endpoint.requests("cloud-key") == []


def test_the_policy_lists_spaces_and_keeps_the_key(cloud, administrator, endpoint, person):
    crew = group("Crew", person)
    url = reverse("change_model_endpoint", args=["cloud"])
    fields = {"api_key": "••••••••", "base_url": endpoint.openai_url, "policy": "listed", "allowed_in": [str(crew.id)]}
    assert administrator.post(url, ENTERED | fields).status_code == 302
    (further,) = model_endpoint.list_further()
    assert further.api_key == "cloud-key"
    assert further.policy.places == {str(crew.id)}
    page = administrator.get(reverse("model_endpoints")).content.decode()
    assert "May receive text of: Crew." in page


def test_the_first_endpoint_gets_a_policy_and_keeps_its_address(administrator):
    fields = {"policy": "listed", "allowed_in": ["personal"], "location": "this network", "fallback": ""}
    assert administrator.post(reverse("first_model_endpoint"), fields).status_code == 302
    first = model_endpoint.current()
    assert first is not None
    assert (first.api_key, first.location, first.policy.places) == (KEY, "this network", {"personal"})


def test_the_pages_of_endpoints_have_titles_of_their_own(cloud, administrator):
    addresses = [reverse("model_endpoints"), reverse("first_model_endpoint")]
    addresses.append(reverse("change_model_endpoint", args=["cloud"]))
    titles = {administrator.get(address).content.decode().partition("</title>")[0] for address in addresses}
    assert len(titles) == len(addresses)


def test_members_see_and_change_nothing(cloud, person):
    for name, args in (("model_endpoints", []), ("first_model_endpoint", []), ("change_model_endpoint", ["cloud"])):
        assert signed_in(person).get(reverse(name, args=args)).status_code == 403
        assert signed_in(person).post(reverse(name, args=args), {"action": "remove"}).status_code == 403


@pytest.mark.parametrize("name", ["", "with/slash", "cato", "default", "Ümlaut", "x" * 31, "-x", "cloud"])
def test_a_name_is_short_simple_and_new(cloud, name):
    with pytest.raises(InvalidMessageError):
        validate_name(name)


def test_a_name_is_refused_if_models_of_the_first_endpoint_begin_with_it(person):
    """Otherwise a thread would be sent to another endpoint than the one that was chosen."""
    assert validate_name("org") == "org"
    thread(person, model="org/large")
    with pytest.raises(InvalidMessageError, match="org/ are in use at the first endpoint"):
        validate_name("org")


def test_a_removed_endpoint_keeps_its_name_and_nothing_else(cloud, administrator, person):
    talk = thread(person, model="cloud/big")
    SpaceModel.objects.create(space=group("Crew", person), model="cloud/big")
    administrator.post(reverse("change_model_endpoint", args=["cloud"]), {"action": "remove"})

    row = Endpoint.objects.get(name="cloud")
    assert (row.base_url, bytes(row.encrypted_key), row.policy) == ("", b"", "none")
    assert not SpaceModel.objects.exists()
    found = model_endpoint.find(talk.model)
    assert found is not None
    assert found.endpoint.is_removed, "its models are not taken for those of the first endpoint"
    with pytest.raises(InvalidMessageError, match="cloud was removed"):
        validate_choice("cloud/big")
    assert re.search(
        r'aria-disabled="true" *> .*?<b>cloud/big</b> <span>not offered</span>', picker(signed_in(person), talk)
    )


def test_the_picker_groups_the_models_by_endpoint(cloud, person):
    talk = thread(person, model="cloud/small")
    text = picker(signed_in(person), talk)
    assert re.findall(r"<strong dir=\"auto\">(.*?)</strong>", text)[1] == "cloud"
    assert "United States" in text
    assert re.findall(r"<b>(.*?)</b>", text) == ["fake", "org/large", "big", "small"]
    assert re.findall(r'aria-checked="true".*?<b>(.*?)</b>', text) == ["small"]
    assert '{"model": "cloud/big"}' in text.replace("\\u002D", "-")


def test_with_one_endpoint_the_picker_has_no_groups(person):
    text = picker(signed_in(person), thread(person))
    assert 'role="group"' not in text
    assert "The models of all endpoints" not in text


def test_models_of_an_endpoint_that_may_not_receive_the_thread_are_disabled_with_the_reason(cloud, person):
    crew = group("Crew", person)
    Membership.objects.filter(person=person).update(role=Membership.Role.MANAGER)
    cloud.policy, cloud.allowed_in = "listed", ["personal"]
    cloud.save()
    shared, own = thread(person, space=crew), thread(person)
    client = signed_in(person)

    text = picker(client, shared)
    assert "may not receive text of Crew. Choose another model." in text
    assert re.findall(r'aria-disabled="true" *> *<b>(.*?)</b>', text) == ["big", "small"]
    refused = client.post(
        reverse("thread_model", args=[shared.id]), {"model": "cloud/big"}, headers={"HX-Request": "1"}
    )
    assert Thread.objects.get(id=shared.id).model == "", refused.content
    client.post(reverse("thread_model", args=[own.id]), {"model": "cloud/big"}, headers={"HX-Request": "true"})
    assert Thread.objects.get(id=own.id).model == "cloud/big"


def test_a_name_means_the_further_endpoint_before_a_model_of_the_first(cloud, person):
    assert validate_choice("cloud/big") == "cloud/big"
    assert validate_choice("org/large") == "org/large"
    assert validate_choice("fake") == ""
    with pytest.raises(InvalidMessageError, match="does not offer bigger"):
        validate_choice("cloud/bigger")
    (first, of_first), (further, of_further) = (
        (found.endpoint.name, found.model)
        for found in (model_endpoint.find("org/large"), model_endpoint.find("cloud/big"))
        if found
    )
    assert (first, of_first, further, of_further) == ("", "org/large", "cloud", "big")


def test_the_command_lists_and_sets_models_of_all_endpoints(cloud, person):
    talk = thread(person)
    context = commands.CommandContext(
        person_id=person.id, is_administrator=False, context_mode="", set_context_mode=print, thread=talk
    )
    card = commands.run("/model", context)
    assert [(line.label, line.figure) for line in card.lines][-1] == ("cloud/small", "United States")
    commands.run("/model cloud/small", context)
    assert Thread.objects.get(id=talk.id).model == "cloud/small"


@pytest.mark.django_db(transaction=True)
def test_v1_lists_the_models_of_all_endpoints(cloud, person):
    response = api_client(person).get("/v1/models")
    assert {"cato", "fake", "org/large", "cloud/big", "cloud/small"} <= {row["id"] for row in response.json()["data"]}


def test_new_threads_of_a_group_use_its_model(cloud, person):
    crew = group("Crew", person)
    person.default_model = "org/large"
    person.save()
    Membership.objects.filter(person=person).update(role=Membership.Role.MANAGER)
    client = signed_in(person)
    assert client.post(reverse("change_space_model", args=[crew.id]), {"model": "cloud/small"}).status_code == 302
    assert 'value="cloud/small"' in client.get(reverse("space", args=[crew.id])).content.decode()

    for space in (crew, access.personal_space(person.id)):
        fields = {"message": "Hello", "client_key": str(uuid.uuid4()), "space": str(space.id)}
        client.post(reverse("new_thread"), fields)
    models = dict(Thread.objects.values_list("space_id", "model"))
    assert models == {crew.id: "cloud/small", access.personal_space(person.id).id: "org/large"}
    assert "cloud/small" in client.get(reverse("new_thread"), {"space": str(crew.id)}).content.decode()


def test_only_managers_set_the_model_of_a_group_and_only_to_one_that_may_receive_it(cloud, person):
    crew = group("Crew", person)
    assert signed_in(person).post(reverse("change_space_model", args=[crew.id]), {"model": "fake"}).status_code == 403
    cloud.policy = "none"
    cloud.save()
    with pytest.raises(InvalidMessageError, match="may not receive text of Crew"):
        set_space_model(crew, "cloud/small")
    assert not SpaceModel.objects.exists()


def test_the_page_of_a_new_thread_does_not_tell_strangers_the_model_of_a_group(cloud, person):
    crew = group("Crew", person)
    set_space_model(crew, "cloud/small")
    page = signed_in(PersonFactory()).get(reverse("new_thread"), {"space": str(crew.id)}).content.decode()
    assert "cloud/small" not in page
