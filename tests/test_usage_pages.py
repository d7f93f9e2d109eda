"""The pages of usage, limits and prices, the same over the API, and the metrics."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client

from cato_web.metrics import exposition
from chat.usage.limits import limit_states
from memory.models import Membership
from memory.spaces import access
from memory.spaces.groups import remove_from_group, rename_group
from tests.factories import AdministratorFactory, PersonFactory, api_client, group, signed_in
from tests.usage import last_month, limit, used

pytestmark = pytest.mark.django_db


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_administrators_set_limits_and_prices_on_their_page(memory, person):
    client = signed_in(AdministratorFactory())
    target = f"person:{person.pk}"

    refused = client.post("/admin/usage/limits", {"target": target, "unit": "tokens"})
    assert refused.status_code == 422
    client.post("/admin/usage/limits", {"target": target, "unit": "money", "soft": "1.5", "hard": "2"})
    client.post("/admin/usage/prices", {"model": "fake", "input_price": "2", "output_price": "10.25"})
    client.post("/admin/usage/currency", {"currency": "EUR"})
    shown = page(client, "/admin/usage/limits")
    assert all(text in shown for text in (person.name, "1.50 EUR", "2.00 EUR", "10.25 EUR"))
    assert 'value="2"' in page(client, f"/admin/usage/limits?target={target}")

    client.post("/admin/usage/limits/remove", {"target": target})
    client.post("/admin/usage/prices", {"model": "fake", "remove": "yes"})
    shown = page(client, "/admin/usage/limits")
    assert "2.00 EUR" not in shown
    assert "10.25" not in shown
    audit = page(client, "/admin/audit")
    assert "the price of fake: input 2, output 10.25" in audit

    client.post("/admin/usage/limits", {"target": "everyone", "unit": "tokens", "hard": "9000"})
    assert "the usage limit of everyone: limit 9000 tokens" in page(client, "/admin/audit")


def test_prices_are_shown_as_they_were_entered(memory, person):
    client = signed_in(AdministratorFactory())
    form = {"model": "fake", "input_price": "0.075", "cached_price": "0.0125", "output_price": "1"}
    client.post("/admin/usage/prices", form)
    client.post("/admin/usage/currency", {"currency": "EUR"})

    shown = page(client, "/admin/usage/limits")

    assert all(text in shown for text in ("0.075 EUR", "0.0125 EUR", "1.00 EUR"))


def test_a_model_in_the_address_is_cleaned_like_its_stored_name(memory, person):
    client = signed_in(AdministratorFactory())
    client.post("/admin/usage/prices", {"model": "fake", "input_price": "0.075", "output_price": "1"})
    assert 'value="0.075"' not in page(client, "/admin/usage/limits")

    assert 'value="0.075"' in page(client, "/admin/usage/limits?model=fa%00ke")


def test_limits_in_money_are_shown_as_they_were_entered(memory, person):
    client = signed_in(AdministratorFactory())
    client.post("/admin/usage/currency", {"currency": "EUR"})
    client.post("/admin/usage/limits", {"target": f"person:{person.pk}", "unit": "money", "soft": "1", "hard": "2.005"})

    shown = page(client, "/admin/usage/limits")

    assert all(text in shown for text in ("1.00 EUR", "2.005 EUR"))


def test_administrators_see_everybody_and_others_themselves(memory, person):
    other = PersonFactory(name="Olga Other")
    used(person, 1234)
    used(other, 5678)
    administrator = signed_in(AdministratorFactory())

    for by, name in (("person", "Olga Other"), ("model", "fake"), ("purpose", "Answers"), ("space", "No space")):
        shown = page(administrator, f"/admin/usage?by={by}")
        assert name in shown
        assert "6,912" in shown or "5,678" in shown
    own = page(signed_in(person), "/settings/usage")
    assert "1,234" in own
    assert "5,678" not in own
    assert "6,912" not in own


def test_the_usage_of_a_month_can_be_downloaded(memory, person):
    person.name = "=cmd()"
    person.save()
    used(person, 12)
    used(person, 7000, on=last_month())
    lines = signed_in(AdministratorFactory()).get("/admin/usage.csv").content.decode().splitlines()

    assert len(lines) == 2
    assert lines[0].startswith("date,person,space,token,model,purpose,requests,prompt_tokens")
    assert ",'=cmd()," in lines[1], "a spreadsheet does not run it"


@pytest.mark.parametrize("month", ["9999-12", "0001-01", "2026-13", "x", "2026-1-1"])
def test_an_impossible_month_is_this_month(memory, person, month):
    used(person, 1234)
    administrator = signed_in(AdministratorFactory())

    assert "1,234" in page(administrator, f"/admin/usage?month={month}")
    assert "1,234" in page(signed_in(person), f"/settings/usage?month={month}")
    assert b"1234" in administrator.get(f"/admin/usage.csv?month={month}").content


def test_managers_see_the_usage_of_their_group(memory, person):
    member = PersonFactory()
    crew = group("Crew", person, member)
    Membership.objects.filter(person=person).update(role="manager")
    limit("space", crew.pk, hard=9000)
    used(member, 1234, space_id=crew.pk)

    assert "Crew: 1,234 of 9,000 tokens used this month." in page(signed_in(person), f"/spaces/{crew.pk}")
    assert "1,234" not in page(signed_in(member), f"/spaces/{crew.pk}")


def test_ones_own_usage_does_not_name_a_group_that_one_has_left(memory, person):
    crew, others = group("Crew", person), group("Others", person)
    used(person, 1234, space_id=crew.pk)
    used(person, 5678, space_id=others.pk)
    remove_from_group(crew, person.pk, by=person.pk)
    rename_group(crew, "Layoffs")

    shown = page(signed_in(person), "/settings/usage")
    over_api = api_client(person, "read").get("/api/usage?by=space").json()

    hidden = "A space that is deleted, or that you no longer read"
    assert all(text in shown for text in ("Others", hidden, "1,234"))
    assert "Layoffs" not in shown
    assert [row["name"] for row in over_api["rows"]] == ["Others", hidden]
    assert "Layoffs" in page(signed_in(AdministratorFactory()), "/admin/usage?by=space")


def test_the_limits_of_a_deleted_group_and_a_revoked_token_are_removed(memory, person):
    administrator = AdministratorFactory()
    crew, token = group("Crew"), person.api_tokens.create()
    limit("space", crew.pk, hard=1)
    limit("token", token.pk, hard=1)
    signed_in(administrator).post(f"/admin/groups/{crew.pk}", {"dissolve": "yes"})
    signed_in(person).post("/settings/tokens/revoke", {"token": str(token.pk)})

    assert "Crew" not in page(signed_in(administrator), "/admin/usage/limits")
    assert "–" not in page(signed_in(administrator), "/admin/usage/limits").partition("<tbody>")[2]


# The API.


def test_the_api_returns_ones_own_usage_and_limits(memory, person):
    client = api_client(person, "read")
    used(person, 1_000_000, completion_tokens=5)
    used(PersonFactory(), 999)
    limit("everyone", soft=10, hard=2_000_000)

    found = client.get("/api/usage?by=purpose").json()
    assert found["total"]["prompt_tokens"] == 1_000_000
    assert found["total"]["cost"] == 1
    assert [(row["key"], row["name"], row["completion_tokens"]) for row in found["rows"]] == [("answer", "Answers", 5)]
    (state,) = found["limits"]
    assert (state["target"], state["used"], state["hard"]) == ("everyone", 1_000_005, 2_000_000)
    assert client.get("/api/usage?month=2026-13").status_code == 422


def test_administrators_read_and_set_everything_over_the_api(memory, person):
    client = api_client(AdministratorFactory(), "read", "write")
    used(person, 12)
    used(PersonFactory(), 30)

    def put(path: str, body: dict):
        return client.put(f"/api/admin/{path}", body, content_type="application/json")

    assert client.get("/api/admin/usage").json()["total"]["prompt_tokens"] == 42
    assert client.get(f"/api/admin/usage?person_id={person.pk}").json()["total"]["prompt_tokens"] == 12
    body = {"target": "person", "target_id": str(person.pk), "hard": 7}
    assert put("limits", body).json()["limits"][0]["name"] == person.name
    assert client.get("/api/admin/limits").json()["limits"][0]["hard"] == 7
    assert put("limits", body | {"target_id": str(uuid.uuid4())}).status_code == 422
    personal = {"target": "space", "target_id": str(access.personal_space(person.pk).pk), "hard": 7}
    assert put("limits", personal).status_code == 422
    assert put("limits", body | {"hard": 0.00004}).status_code == 422, "it would be stored as 0"
    assert put("limits", body | {"hard": None}).json()["limits"] == []
    assert put("prices", {"model": "fake", "input": 0.25, "output": 2}).json()["prices"][0]["input"] == 0.25
    assert put("prices", {"model": "fake", "input": 0.00004, "output": 2}).status_code == 422, "it would be stored as 0"
    assert client.delete("/api/admin/prices?model=fa%00ke").json()["prices"] == [], "without the NUL"


def test_the_api_refuses_others_what_is_for_administrators(memory, person):
    client = api_client(person, "read", "write")
    for path in ("usage", "limits", "prices"):
        assert client.get(f"/api/admin/{path}").status_code == 403
    for path, body in (
        ("limits", {"target": "everyone", "hard": 1}),
        ("prices", {"model": "fake", "input": 1, "output": 1}),
    ):
        assert client.put(f"/api/admin/{path}", body, content_type="application/json").status_code == 403
    assert client.delete("/api/admin/prices?model=fake").status_code == 403
    assert limit_states(person_id=person.pk) == []


def test_metrics_have_the_usage_of_this_month(memory, person):
    used(person, 12, completion_tokens=3, purpose="title")
    used(person, 700, on=last_month())
    text = "\n".join(line for line in exposition().decode().splitlines() if line.startswith("cato_usage"))

    assert 'cato_usage_tokens{kind="prompt",purpose="title"} 12.0' in text
    assert 'cato_usage_tokens{kind="completion",purpose="title"} 3.0' in text
    assert 'cato_usage_cost{purpose="title"}' in text
    assert "700.0" not in text
