"""Password links by an administrator, and roles."""

from __future__ import annotations

import re

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse

from cato_web.accounts import deletion, roles, services
from cato_web.accounts.models import AuditEntry, OneTimeLink, User
from tests.factories import AdministratorFactory, PersonFactory, ago, signed_in

pytestmark = pytest.mark.django_db
NEW = "another four plain words"


@pytest.fixture
def ada(db):
    return AdministratorFactory(name="Ada Admin")


def link_for(ada, person) -> str:
    page = signed_in(ada).post(reverse("create_reset_link", args=[person.pk]), follow=True).content.decode()
    return re.search(r'id="reset" value="http://testserver(/reset/[^"]+)"', page)[1]


@pytest.mark.parametrize("is_invitation", [True, False])
def test_the_page_with_a_link_shows_it_once_and_can_be_loaded_again(ada, person, is_invitation):
    page = signed_in(ada)
    address = reverse("admin_people") if is_invitation else reverse("create_reset_link", args=[person.pk])
    answer = page.post(address, {"role": "member"})
    kept = page.session["invitation" if is_invitation else "reset"]
    assert "/" not in kept, "it is encrypted"
    link = r'value="http://testserver/(join|reset)/'

    assert re.search(link, page.get(answer.url).content.decode())
    assert not re.search(link, page.get(answer.url).content.decode())
    assert OneTimeLink.objects.count() == 1


def test_a_link_sets_a_new_password_once_signs_in_and_ends_other_login_sessions(ada, person):
    elsewhere, current = signed_in(person), Client()
    link = link_for(ada, person)
    assert current.get(link).status_code == 200
    assert current.post(link, {"password": NEW}).status_code == 302

    person.refresh_from_db()
    assert person.check_password(NEW)
    assert current.get("/settings").status_code == 200
    assert elsewhere.get("/settings").status_code == 302
    assert Client().post(link, {"password": "yet another four words"}).status_code == 404


def test_an_invalid_password_keeps_the_link_valid(ada, person):
    link = link_for(ada, person)
    answer = Client().post(link, {"password": "short"})

    assert answer.status_code == 422
    assert "at least 10 characters" in answer.content.decode()
    assert Client().get(link).status_code == 200


def test_a_new_link_replaces_the_previous_one_and_expires_after_a_day(ada, person):
    first, second = link_for(ada, person), link_for(ada, person)
    assert Client().get(first).status_code == 404
    OneTimeLink.objects.filter(kind=OneTimeLink.Kind.RESET).update(expires_at=ago(seconds=1))
    assert Client().get(second).status_code == 404


def test_a_closed_account_gets_no_new_password(ada, person):
    link = link_for(ada, person)
    roles.set_active(person.pk, False, by=ada)

    assert Client().post(link, {"password": NEW}).status_code == 404
    assert signed_in(ada).post(reverse("create_reset_link", args=[person.pk])).status_code == 404


def test_the_log_records_who_created_the_link_and_its_use(ada, person):
    Client().post(link_for(ada, person), {"password": NEW})

    assert list(AuditEntry.objects.order_by("id").values_list("actor__name", "action")) == [
        ("Ada Admin", "password_link.created"),
        (person.name, "password.changed"),
    ]


def test_roles_are_granted_and_revoked_but_not_for_oneself(ada, person):
    page = signed_in(ada)
    page.post(reverse("set_role", args=[person.pk]), {"role": "administrator"})
    page.post(reverse("set_role", args=[ada.pk]), {"role": "member"})
    page.post(reverse("set_role", args=[PersonFactory(name="Charlie").pk]), {"role": "emperor"})

    assert dict(User.objects.values_list("name", "role")) == {
        "Ada Admin": "administrator",
        person.name: "administrator",
        "Charlie": "member",
    }


# Links expire with the rights of their author


def invitation_by(ada) -> str:
    page = signed_in(ada).post(reverse("admin_people"), {"role": "administrator"}, follow=True).content.decode()
    return re.search(r'id="invitation" value="http://testserver(/join/[^"]+)"', page)[1]


def demote(other, by) -> None:
    roles.set_role(other, User.Role.MEMBER, by=by)


def deactivate(other, by) -> None:
    roles.set_active(other.pk, False, by=by)


def delete_account(other, by) -> None:
    deletion.delete_account(other)


@pytest.mark.parametrize("lose_it", [demote, deactivate, delete_account])
def test_links_expire_when_their_author_loses_the_role_or_the_account(ada, person, lose_it):
    other = AdministratorFactory(name="Eve Admin")
    links = [invitation_by(other), link_for(other, person)]
    assert [Client().get(link).status_code for link in links] == [200, 200]
    lose_it(other, ada)

    assert [Client().get(link).status_code for link in links] == [404, 404]
    assert not OneTimeLink.objects.filter(used_at=None).exists()
    assert Client().post(links[1], {"password": NEW}).status_code == 404
    User.objects.filter(pk=other.pk).update(role=User.Role.ADMINISTRATOR, is_active=True)
    assert [Client().get(link).status_code for link in links] == [404, 404]


def test_a_link_of_a_former_administrator_is_invalid_even_if_it_still_exists(ada, person):
    links = [invitation_by(ada), link_for(ada, person)]
    User.objects.filter(pk=ada.pk).update(role=User.Role.MEMBER)
    assert [Client().get(link).status_code for link in links] == [404, 404]


def test_a_password_link_expires_when_the_password_changes(ada, person):
    link = link_for(ada, person)
    services.change_password(person, NEW)
    assert Client().get(link).status_code == 404


def test_open_links_are_listed_and_revoked(ada, person):
    invitation, reset = invitation_by(ada), link_for(ada, person)
    page = signed_in(ada)
    listed = page.get(reverse("admin_people")).content.decode()
    assert "Invitation as Administrator" in listed
    assert f"Password link for {person.name}" in listed
    assert len(re.findall(r"<td>\s*<bdi>Ada Admin</bdi>\s*</td>", listed)) == 2

    for link in OneTimeLink.objects.all():
        page.post(reverse("revoke_link", args=[link.pk]))
    assert [Client().get(link).status_code for link in (invitation, reset)] == [404, 404]
    assert "Open links" not in page.get(reverse("admin_people")).content.decode()
    targets = AuditEntry.objects.filter(action="link.revoked").order_by("id").values_list("target", flat=True)
    assert list(targets) == ["invitation administrator", f"reset {person.pk}"]


def test_a_former_administrator_cannot_revoke_roles(ada):
    eve = AdministratorFactory(name="Eve Admin")
    User.objects.filter(pk=eve.pk).update(role=User.Role.MEMBER)
    for change in (demote, deactivate):
        with pytest.raises(PermissionDenied):
            change(ada, eve)


@pytest.mark.parametrize("change", [demote, deactivate])
def test_the_last_administrator_keeps_role_and_account(ada, change):
    with pytest.raises(roles.LastAdministratorError):
        change(ada, ada)
