"""A forgotten password: a link by an administrator, once, for a day; and the roles."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from cato_web.people import services
from cato_web.people.models import AuditEntry, Pass, User
from tests.factories import AdministratorFactory, PersonFactory, ago

pytestmark = pytest.mark.django_db
NEW = "another four plain words"


@pytest.fixture
def ada(db):
    return AdministratorFactory(name="Ada Admin")


def signed_in(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def link_for(ada, person) -> str:
    page = signed_in(ada).post(reverse("reset_link", args=[person.pk])).content.decode()
    return re.search(r'id="reset" value="http://testserver(/reset/[^"]+)"', page)[1]


def test_a_link_sets_a_new_password_once_signs_in_and_ends_all_other_sign_ins(ada, person):
    elsewhere, here = signed_in(person), Client()
    link = link_for(ada, person)
    assert here.get(link).status_code == 200
    assert here.post(link, {"password": NEW}).status_code == 302

    person.refresh_from_db()
    assert person.check_password(NEW)
    assert here.get("/settings").status_code == 200
    assert elsewhere.get("/settings").status_code == 302
    assert Client().post(link, {"password": "yet another four words"}).status_code == 404


def test_a_bad_password_keeps_the_link(ada, person):
    link = link_for(ada, person)
    answer = Client().post(link, {"password": "short"})

    assert answer.status_code == 422
    assert "at least 10 characters" in answer.content.decode()
    assert Client().get(link).status_code == 200


def test_a_new_link_takes_the_place_of_the_one_before_and_a_day_ends_it(ada, person):
    first, second = link_for(ada, person), link_for(ada, person)
    assert Client().get(first).status_code == 404
    Pass.objects.filter(kind=Pass.Kind.RESET).update(expires_at=ago(seconds=1))
    assert Client().get(second).status_code == 404


def test_a_closed_account_gets_no_new_password(ada, person):
    link = link_for(ada, person)
    services.set_active(person.pk, False, by=ada)

    assert Client().post(link, {"password": NEW}).status_code == 404
    assert signed_in(ada).post(reverse("reset_link", args=[person.pk])).status_code == 404


def test_the_log_says_who_made_the_link_and_that_it_was_used(ada, person):
    Client().post(link_for(ada, person), {"password": NEW})

    assert list(AuditEntry.objects.order_by("id").values_list("who__name", "action")) == [
        ("Ada Admin", "made a password link"),
        (person.name, "changed password"),
    ]


def test_roles_are_given_and_taken_but_not_from_oneself(ada, person):
    page = signed_in(ada)
    page.post(reverse("set_role", args=[person.pk]), {"role": "administrator"})
    page.post(reverse("set_role", args=[ada.pk]), {"role": "member"})
    page.post(reverse("set_role", args=[PersonFactory(name="Charlie").pk]), {"role": "emperor"})

    assert dict(User.objects.values_list("name", "role")) == {
        "Ada Admin": "administrator",
        person.name: "administrator",
        "Charlie": "member",
    }
