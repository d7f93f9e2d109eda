"""Sign-in with a real LDAP directory: who gets in, as whom, with which groups, and what is said when it fails."""

from __future__ import annotations

import importlib.util
import os

import pytest
from django.core.cache import cache
from django.test import Client
from pydantic import ValidationError

from cato_web.accounts import roles
from cato_web.accounts.models import AuditEntry, Identity, User
from cato_web.config.sign_in import Ldap
from memory.spaces import access
from tests import slapd
from tests.factories import AdministratorFactory, PersonFactory, group, signed_in
from tests.server import PASSWORD

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        os.environ.get("CI") != "true"
        and (slapd.SLAPD is None or importlib.util.find_spec("django_auth_ldap") is None),
        reason="needs slapd and the packages of requirements-ldap.lock",
    ),
]
WRONG = "Wrong user name or password."


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    yield from slapd.start(tmp_path_factory.mktemp("slapd"))


@pytest.fixture
def configure(settings, directory):
    """Return a function that changes keys of the section `ldap`."""

    def change(**keys) -> None:
        section = settings.CATO.ldap.model_copy(update=keys)
        settings.CATO = settings.CATO.model_copy(update={"ldap": section})

    return change


@pytest.fixture(autouse=True)
def configured(configure, directory):
    cache.clear()
    keys = Ldap.model_validate(
        settings_of(directory) | {"bind_dn": slapd.READER, "bind_password": slapd.READER_PASSWORD}
    )
    configure(**{name: getattr(keys, name) for name in Ldap.model_fields})


def settings_of(directory, **keys):
    return {
        "url": directory.url,
        "name": "the directory of Halden",
        "start_tls": False,
        "ca_file": None,
        "bind_dn": None,
        "bind_password": None,
        "users_base": slapd.PEOPLE,
        "users_filter": "(|(uid=%(user)s)(mail=%(user)s))",
        "email_attribute": "mail",
        "name_attribute": "cn",
        "joins": True,
        "groups_base": slapd.GROUPS,
        "groups_filter": "(objectClass=groupOfNames)",
        "groups": {"eng": "Engineering"},
        "administrators": ["it"],
    } | keys


@pytest.fixture
def ada(db):
    return AdministratorFactory(name="Ada")


def sign_in(login, password=slapd.PASSWORD):
    client = Client()
    return client, client.post("/sign-in", {"email": login, "password": password})


def signs_in(login, password=slapd.PASSWORD) -> bool:
    return sign_in(login, password)[1].status_code == 302


@pytest.mark.parametrize("login", ["alice", "ALICE", "alice@halden.example"])
def test_a_person_joins_with_name_or_email_and_password_of_the_directory(ada, login):
    client, response = sign_in(login)

    assert (response.status_code, response.url) == (302, "/")
    alice = User.objects.get(email="alice@halden.example")
    assert (alice.name, alice.role, alice.has_usable_password()) == ("Alice Owner", "member", False)
    assert "the directory of Halden" in client.get("/settings").content.decode()
    assert AuditEntry.objects.filter(actor=alice, action="session.started_by_ldap").exists()
    assert signs_in("alice@halden.example")
    assert Identity.objects.get().person == alice
    assert User.objects.count() == 2


@pytest.mark.parametrize(
    ("login", "password"),
    [
        ("alice", "wrong"),
        ("alice", " "),
        ("nobody", slapd.PASSWORD),
        # Neither a pattern nor a condition of its own.
        ("ali*", slapd.PASSWORD),
        ("alice)(uid=*", slapd.PASSWORD),
        ("*", slapd.PASSWORD),
    ],
)
def test_a_wrong_name_or_password_says_neither_which(ada, login, password):
    _client, response = sign_in(login, password)

    assert response.status_code == 422
    assert WRONG in response.content.decode()
    assert User.objects.count() == 1


def test_a_local_password_still_works(ada):
    assert signs_in(ada.email, PASSWORD)


def test_an_existing_account_is_linked_by_its_email(ada):
    alice = PersonFactory(name="Alice", email="Alice@halden.example")

    assert signs_in("alice")
    assert Identity.objects.get().person == alice


def test_without_joins_only_accounts_sign_in(ada, configure):
    configure(joins=False)
    _client, response = sign_in("alice")
    assert "You do not have an account here." in response.content.decode()

    PersonFactory(email="alice@halden.example")
    assert signs_in("alice")


def test_nobody_joins_before_the_first_account_exists():
    _client, response = sign_in("alice")
    assert "You do not have an account here." in response.content.decode()
    assert not User.objects.exists()


def test_a_person_without_email_is_told_what_is_missing(ada):
    _client, response = sign_in("carol")
    assert "does not tell Cato your email" in response.content.decode()


def test_a_deactivated_person_stays_out(ada):
    assert signs_in("alice")
    roles.set_active(User.objects.get(email="alice@halden.example").pk, False, by=ada)

    assert not signs_in("alice")


def test_groups_of_the_directory_give_groups_and_the_role(ada, configure):
    engineering = group("Engineering")
    assert signs_in("alice")
    assert signs_in("bob")

    alice, bob = (User.objects.get(email=f"{name}@halden.example") for name in ("alice", "bob"))
    assert engineering.id in access.readable_space_ids(alice.id)
    assert not alice.is_administrator
    assert bob.is_administrator
    configure(groups={"it": "Engineering"}, administrators=["eng"])
    assert signs_in("alice")
    assert engineering.id not in access.readable_space_ids(alice.id)
    assert User.objects.get(pk=alice.pk).is_administrator


def test_what_asks_for_a_confirmation_takes_the_password_of_the_directory(ada):
    client, _response = sign_in("bob")

    assert client.post("/confirm", {"password": "wrong"}).status_code == 422
    # That of another person confirms nothing.
    assert client.post("/confirm", {"password": PASSWORD}).status_code == 422
    assert client.post("/confirm", {"password": slapd.PASSWORD}).status_code == 302


def test_a_directory_that_does_not_answer_is_no_wrong_password(ada, configure, caplog):
    configure(url="ldap://127.0.0.1:9")
    _client, response = sign_in("alice")

    assert "the directory of Halden does not answer" in response.content.decode()
    assert "SERVER_DOWN" in caplog.text
    assert signs_in(ada.email, PASSWORD)


def test_a_wrong_account_for_searching_is_reported_as_such(ada, configure, caplog):
    configure(bind_dn="cn=nobody,dc=halden,dc=example")
    _client, response = sign_in("alice")

    assert WRONG not in response.content.decode()
    assert "INVALID_CREDENTIALS" in caplog.text


def test_the_certificate_of_the_directory_is_checked(ada, configure, directory):
    configure(url=directory.tls_url)
    assert "does not answer" in sign_in("alice")[1].content.decode()

    configure(ca_file=directory.certificate)
    assert signs_in("alice")
    configure(url=directory.url, start_tls=True)
    assert signs_in("bob")


def test_without_a_directory_the_form_asks_for_an_email(ada, configure):
    configure(url=None)
    page = Client().get("/sign-in").content.decode()

    assert 'type="email"' in page
    assert not signs_in("alice@halden.example")
    assert signed_in(ada).get("/settings").status_code == 200


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"url": "ldap://ldap.halden.example"}, "would not be encrypted"),
        ({"url": "https://ldap.halden.example"}, "begins with ldap:// or ldaps://"),
        ({"users_base": ""}, "users_base"),
        ({"users_filter": "(uid=*)"}, "pattern"),
    ],
)
def test_a_configuration_that_would_reveal_passwords_or_find_anybody_is_refused(directory, keys, reason):
    with pytest.raises(ValidationError, match=reason):
        Ldap.model_validate(settings_of(directory, **keys))


def test_a_missing_package_is_named(directory, monkeypatch):
    monkeypatch.setattr("cato_web.config.sign_in.find_spec", lambda name: None)
    with pytest.raises(ValidationError, match="make ldap"):
        Ldap.model_validate(settings_of(directory))
