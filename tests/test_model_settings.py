"""Model settings: a stored API key is only used with the address for which it was stored."""

from __future__ import annotations

import pytest
from django.test import Client

from chat.llm import endpoint
from tests.factories import AdministratorFactory, signed_in

pytestmark = pytest.mark.django_db
MASK = "••••••••"


@pytest.fixture
def administrator() -> Client:
    return signed_in(AdministratorFactory())


@pytest.fixture(autouse=True)
def stored() -> None:
    endpoint.save(base_url="http://127.0.0.1:9/v1", api_key="sk-stored", model="small")


def save(client: Client, **fields: str):
    form = {"base_url": "http://127.0.0.1:9/v1", "api_key": MASK, "model": "small"} | fields
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
    assert endpoint.stored_fields() == ("http://127.0.0.1:9/v1", "small", True)


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
