"""Model settings: an endpoint is checked before it is saved, and a stored API key is only used with its address."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from pydantic import SecretStr

from cato_web.accounts import services
from cato_web.accounts.models import User
from chat.llm import endpoint
from tests.factories import AdministratorFactory, signed_in
from tests.fake_endpoint import FakeEndpoint

pytestmark = pytest.mark.django_db
MASK = "••••••••"


@pytest.fixture
def administrator() -> Client:
    return signed_in(AdministratorFactory())


@pytest.fixture
def endpoint_server(request: pytest.FixtureRequest) -> FakeEndpoint:
    server: FakeEndpoint = request.getfixturevalue("endpoint")
    return server


@pytest.fixture(autouse=True)
def stored() -> None:
    endpoint.save(base_url="http://127.0.0.1:9/v1", api_key="sk-stored", model="small")


def save(client: Client, **fields: str):
    form = {"base_url": "http://127.0.0.1:9/v1", "api_key": MASK, "model": "small", "unchecked": "on"} | fields
    return client.post("/settings/model", form)


def stored_key() -> str:
    current = endpoint.current()
    return current.api_key if current else ""


@pytest.mark.parametrize("address", ["http://127.0.0.1:8/v1", "http://localhost:9/v1", ""])
def test_another_address_requires_the_key_again_and_keeps_the_form(administrator, address):
    answer = save(administrator, base_url=address, model="large")

    assert answer.status_code == 422
    page = answer.content.decode()
    assert "The stored API key belongs to another address. Enter the key for this address." in page
    assert f'value="{address}"' in page or not address
    assert 'value="large"' in page
    row = endpoint.first_row()
    assert (row.base_url, row.model) == ("http://127.0.0.1:9/v1", "small")
    assert stored_key() == "sk-stored"


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"model": "large"}, "sk-stored"),
        ({"base_url": "http://127.0.0.1:9/v1/"}, "sk-stored"),
        ({"base_url": "http://127.0.0.1:8/v1", "api_key": "sk-new"}, "sk-new"),
        ({"base_url": "http://127.0.0.1:8/v1", "api_key": ""}, ""),
    ],
)
def test_the_key_stays_with_its_address_and_can_be_replaced(administrator, fields, key):
    assert save(administrator, **fields).status_code == 302
    assert stored_key() == key


DEAD = "http://127.0.0.1:9/v1"


def test_an_endpoint_that_does_not_respond_is_refused_and_can_be_saved_anyway(administrator):
    fields = {"base_url": DEAD.replace("127.0.0.1", "localhost"), "api_key": "sk-typed", "model": "large"}

    answer = administrator.post("/settings/model", fields)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "localhost:9 does not respond. Check the address, and that the server is running." in page
    assert 'value="large"' in page
    assert 'name="unchecked"' in page
    assert "sk-typed" not in page
    assert stored_key() == "sk-stored"
    assert administrator.post("/settings/model", fields | {"unchecked": "on"}).status_code == 302
    assert stored_key() == "sk-typed"


def test_an_endpoint_that_refuses_the_key_is_refused(administrator, endpoint_server):
    endpoint_server.script("sk-wrong", mode="error-401")

    answer = administrator.post(
        "/settings/model", {"base_url": endpoint_server.openai_url, "api_key": "sk-wrong", "model": "fake"}
    )

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "refuses the API key. Check the key and enter it again." in page
    assert "sk-wrong" not in page


def test_a_model_that_the_endpoint_does_not_know_is_refused(administrator, endpoint_server):
    endpoint_server.script("sk-right", mode="error-404")

    answer = administrator.post(
        "/settings/model", {"base_url": endpoint_server.openai_url, "api_key": "sk-right", "model": "no-such"}
    )

    assert answer.status_code == 422
    reason = "does not know the model no-such. Check its name and the address, which often ends in /v1."
    assert reason in answer.content.decode()


def test_an_address_without_a_list_of_models_is_not_taken_for_an_unknown_model(administrator, endpoint_server):
    answer = administrator.post(
        "/settings/model/try", {"base_url": f"{endpoint_server.openai_url}/v2", "api_key": "sk-right", "model": ""}
    )

    assert "HTTP 404" in answer.content.decode()
    assert "does not know" not in answer.content.decode()


def test_the_administrator_is_told_why_the_endpoint_rejects_the_test(administrator, endpoint_server):
    endpoint_server.script("strict", mode="error-400", error={"error": {"message": "temperature must be 1."}})
    fields = {"base_url": endpoint_server.openai_url, "api_key": "strict", "model": "fake"}

    page = administrator.post("/settings/model/try", fields).content.decode()

    assert "(HTTP 400). The endpoint&#x27;s reason: temperature must be 1. Check the model" in page


def test_a_working_endpoint_is_saved_and_its_page_shows_no_error(administrator, endpoint_server):
    endpoint_server.script("sk-right", answer="Hello there.")

    fields = {"base_url": endpoint_server.openai_url, "api_key": "sk-right", "model": ""}
    assert administrator.post("/settings/model", fields).status_code == 302

    page = administrator.get("/settings/model").content.decode()
    assert stored_key() == "sk-right"
    assert "error-message" not in page
    assert "aria-invalid" not in page


def test_removing_the_endpoint_is_not_checked(administrator):
    assert administrator.post("/settings/model", {"base_url": "", "api_key": "", "model": ""}).status_code == 302
    assert endpoint.current() is None


def test_fields_from_the_environment_are_tried_with_their_values(administrator, endpoint_server, settings):
    endpoint_server.script("sk-environment", answer="Hello there.")
    llm = settings.CATO.llm.model_copy(
        update={"base_url": endpoint_server.openai_url, "api_key": SecretStr("sk-environment")}
    )
    settings.CATO = settings.CATO.model_copy(update={"llm": llm})
    settings.CATO._origins = {"llm.base_url": "environment", "llm.api_key": "environment"}

    answer = administrator.post("/settings/model/try", {"model": "fake"})

    assert "success-message" in answer.content.decode()
    page = administrator.get("/settings/model").content.decode()
    assert "error-message" not in page
    assert "aria-invalid" not in page
    assert ">Save<" in page


def test_a_form_whose_fields_are_all_configured_elsewhere_offers_no_save(administrator, settings):
    assert ">Save<" in administrator.get("/settings/model").content.decode()

    settings.CATO = settings.CATO.model_copy()
    settings.CATO._origins = {"llm.base_url": "environment", "llm.api_key": "file", "llm.model": "environment"}

    page = administrator.get("/settings/model").content.decode()
    assert ">Save<" not in page
    assert ">Try it<" in page


def set_up(client: Client, **fields: str):
    path = f"/setup/{services.setup_token()}"
    form = {"name": "Ada", "email": "ada@halden.example", "password": "four plain words are fine"}
    return client.post(path, form | {"model_from": "endpoint"} | fields)


def test_set_up_refuses_an_endpoint_that_does_not_respond_and_keeps_what_was_typed(client):
    answer = set_up(client, base_url=DEAD, api_key="sk-typed", model="large")

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "127.0.0.1:9 does not respond. Check the address, and that the server is running." in page
    assert "No account was created yet" in page
    for kept in ("Ada", "ada@halden.example", DEAD, "large"):
        assert f'value="{kept}"' in page
    assert "sk-typed" not in page
    assert "four plain words" not in page
    assert not User.objects.exists()


@pytest.mark.parametrize("fields", [{"unchecked": "on"}, {"model_from": "later"}])
def test_set_up_can_skip_the_check_or_the_model(client, fields):
    assert set_up(client, base_url=DEAD, api_key="sk-typed", model="large", **fields).status_code == 302
    assert User.objects.count() == 1
    assert stored_key() == ("sk-typed" if "unchecked" in fields else "sk-stored")


def test_set_up_asks_for_an_address_if_neither_address_nor_key_is_entered(client):
    answer = set_up(client)

    assert answer.status_code == 422
    assert "Enter the address of the endpoint" in answer.content.decode()


@pytest.mark.parametrize(
    ("base_url", "told"),
    [("http://127.0.0.1:9/v1", "nothing"), ("https://models.example.org/v1", "to models.example.org")],
)
def test_set_up_tells_which_hosts_other_than_this_machine_receive_text(client, base_url, told):
    endpoint.save(base_url=base_url, api_key="sk-stored", model="small")
    page = set_up(client, password="").content.decode()
    assert re.findall(r"Sent to third parties</dt>.*?<dd>\s*(.*?)\s*</dd>", page, re.DOTALL) == [told]


def test_a_typed_key_is_not_lost_silently_with_the_page_that_drops_it(administrator):
    fields = {"base_url": DEAD, "api_key": "sk-typed", "model": "large"}
    assert 'name="key_was_typed"' in administrator.post("/settings/model", fields).content.decode()

    again = administrator.post("/settings/model", fields | {"api_key": "", "key_was_typed": "on", "unchecked": "on"})

    assert again.status_code == 422
    assert "Enter the API key again" in again.content.decode()
    assert stored_key() == "sk-stored"
