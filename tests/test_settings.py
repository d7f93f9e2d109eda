"""Personal settings and login sessions."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from cato_web.accounts import deletion, login_sessions, model_choices, roles
from cato_web.accounts import services as accounts
from cato_web.accounts.model_choices import ModelChoices
from cato_web.accounts.models import AuditEntry, LoginSession, User
from chat import access, services
from chat.llm import endpoint
from chat.llm.endpoint import ModelEndpoint
from chat.models import Thread
from tests.factories import AdministratorFactory, PersonFactory, thread
from tests.server import PASSWORD
from tests.socket import open_socket

pytestmark = pytest.mark.django_db

FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
CHROME = "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36"


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


@pytest.fixture(autouse=True)
def offer(monkeypatch):
    """Return a dictionary whose entry "now" is what the endpoint offers."""
    offered = {"now": ModelChoices(("fake", "fake-large"), "", "models.example", "fake")}
    monkeypatch.setattr(model_choices, "available_models", lambda: offered["now"])
    return offered


def signed_in(person: User, user_agent: str = FIREFOX) -> Client:
    client = Client(headers={"User-Agent": user_agent})
    answer = client.post("/sign-in", {"email": person.email, "password": PASSWORD})
    assert answer.status_code == 302
    return client


def choices(person: User, **changes: str) -> dict[str, str]:
    form = {"name": person.name, "theme": "", "density": "", "context_mode": "", "default_model": ""}
    return form | changes


def test_density_is_chosen_like_the_theme_and_applies_to_every_page(alice):
    page = signed_in(alice)
    assert "data-density" not in page.get("/stats").content.decode()

    assert page.post("/settings", choices(alice, density="compact")).status_code == 302

    assert 'data-density="compact"' in page.get("/stats").content.decode()
    assert page.post("/settings", choices(alice, density="tiny")).status_code == 422


def test_the_choice_of_the_servers_default_names_it_as_the_other_choices_are_named(alice):
    shown = signed_in(alice).get("/settings").content.decode()
    assert "Server default (Collapsed)" in shown


def test_saving_preferences_changes_nothing_else_of_an_account_that_changes_meanwhile(alice, monkeypatch):
    alice.role = User.Role.ADMINISTRATOR
    alice.save()
    root, page = AdministratorFactory(), signed_in(alice)

    def change_meanwhile() -> ModelChoices:
        roles.set_role(alice, User.Role.MEMBER, by=root)
        accounts.change_password(alice, "another long password")
        return ModelChoices(("fake",), "", "models.example", "fake")

    monkeypatch.setattr(model_choices, "available_models", change_meanwhile)
    page.post("/settings", choices(alice, density="compact"))

    now = User.objects.get(pk=alice.pk)
    assert (now.density, now.role, now.epoch) == ("compact", "member", alice.epoch)
    assert now.check_password("another long password")


def test_an_account_that_is_deleted_while_its_preferences_are_saved_gets_no_name_again(alice, monkeypatch):
    AdministratorFactory()
    page = signed_in(alice)

    def delete_meanwhile() -> ModelChoices:
        deletion.delete_account(alice)
        return ModelChoices(("fake",), "", "models.example", "fake")

    monkeypatch.setattr(model_choices, "available_models", delete_meanwhile)
    page.post("/settings", choices(alice, name="Alice Owner"))

    now = User.objects.get(pk=alice.pk)
    assert (now.name, now.is_active) == ("Former member", False)


def test_preferences_are_saved_from_the_page_that_shows_an_invalid_token(alice):
    page = signed_in(alice)
    shown = page.post("/settings/tokens", {"name": "", "scopes": ["read"], "lifetime": "30"})
    assert 'action="/settings"' in re.search(r"<form[^>]*settings-form[^>]*>", shown.content.decode())[0]


def test_new_threads_use_the_default_model_and_existing_ones_keep_theirs(alice):
    before = thread(alice)
    page = signed_in(alice)
    page.post("/settings", choices(alice, default_model="fake-large"))

    switched = services.create_thread_with_message(alice.pk, message="Which model are you?", client_key=uuid.uuid4())

    assert switched.turn.thread.model == "fake-large"
    assert Thread.objects.get(id=before.id).model == ""


def test_a_model_that_is_not_offered_is_refused_and_the_form_kept(alice):
    answer = signed_in(alice).post("/settings", choices(alice, name="Alice Anew", default_model="nowhere-7b"))

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "models.example does not offer nowhere-7b." in page
    assert 'value="Alice Anew"' in page
    alice.refresh_from_db()
    assert (alice.default_model, alice.name) == ("", "Alice Owner")


def test_a_model_no_longer_offered_is_marked_and_kept_until_changed(alice, offer):
    page = signed_in(alice)
    page.post("/settings", choices(alice, default_model="fake-large"))
    offer["now"] = ModelChoices(("fake",), "", "models.example", "fake")

    html = page.get("/settings").content.decode()
    assert "models.example no longer offers fake-large." in html
    assert '<option value="fake-large" selected>' in html

    # Other settings can still be saved.
    assert page.post("/settings", choices(alice, theme="dark", default_model="fake-large")).status_code == 302
    alice.refresh_from_db()
    assert (alice.theme, alice.default_model) == ("dark", "fake-large")


def test_a_model_name_can_be_typed_if_models_cannot_be_listed(alice, offer):
    offer["now"] = ModelChoices((), "Could not load the model list from models.example.", "models.example")
    page = signed_in(alice)

    assert "Could not load the model list from models.example." in page.get("/settings").content.decode()
    assert page.post("/settings", choices(alice, default_model=" some-model ")).status_code == 302
    alice.refresh_from_db()
    assert alice.default_model == "some-model"


def test_an_unavailable_endpoint_is_reported_without_a_delay(monkeypatch):
    monkeypatch.undo()  # read the real list
    unavailable = ModelEndpoint("http://127.0.0.1:9/v1", "", "some-model")
    monkeypatch.setattr(endpoint, "current", lambda: unavailable)

    loaded = model_choices.available_models()

    assert loaded == ModelChoices((), "Could not load the model list from 127.0.0.1:9.", "127.0.0.1:9", "some-model")


def test_notifications_are_off_by_default(alice):
    page = signed_in(alice)
    assert "data-notifications>" not in page.get("/stats").content.decode()

    page.post("/settings/notify", {"notify": "yes"})
    assert "data-notifications>" in page.get("/stats").content.decode()

    page.post("/settings/notify", {"notify": "no"})
    assert "data-notifications>" not in page.get("/stats").content.decode()


def test_login_sessions_are_listed_and_the_current_one_marked(alice):
    signed_in(alice, CHROME)
    page = signed_in(alice, FIREFOX).get("/settings").content.decode()

    assert page.index("Firefox on Windows") < page.index("this one") < page.index("Chrome on Android")
    assert page.count(">Sign out</button>") == 2, "the one of the account, and that of the other sign-in"
    assert not any(key in page for key in Session.objects.values_list("session_key", flat=True))


def test_browsers_are_identified_correctly():
    edge = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/142.0 Safari/537.36 Edg/142.0"
    safari = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile Safari/604.1"
    assert login_sessions.describe_user_agent(edge) == "Edge on Windows"
    assert login_sessions.describe_user_agent(safari) == "Safari on an iPhone"
    assert (
        login_sessions.describe_user_agent("curl/8.5.0") == login_sessions.describe_user_agent("") == "Another program"
    )


def test_one_login_session_can_be_ended(alice):
    phone, desk = signed_in(alice, CHROME), signed_in(alice)
    on_the_phone = LoginSession.objects.get(browser="Chrome on Android")

    desk.post("/settings/sessions", {"login_session": str(on_the_phone.id)})

    assert phone.get("/settings").status_code == 302
    assert desk.get("/settings").status_code == 200
    assert not LoginSession.objects.filter(id=on_the_phone.id).exists()


def test_a_login_session_of_another_person_cannot_be_ended(alice):
    desk_page = signed_in(alice)
    of_alice = LoginSession.objects.get(person=alice)

    for which in (str(of_alice.id), "no id"):
        answer = signed_in(PersonFactory()).post("/settings/sessions", {"login_session": which}, follow=True)
        assert "Already signed out." in answer.content.decode()
    assert desk_page.get("/settings").status_code == 200


def test_ending_all_other_sessions_rotates_the_key_of_this_one(alice):
    phone, desk = signed_in(alice, CHROME), signed_in(alice)
    forgotten_by_the_list = signed_in(alice)
    LoginSession.objects.exclude(browser="Chrome on Android").exclude(session_id=desk.session.session_key).delete()
    since, key = LoginSession.objects.get(session_id=desk.session.session_key).since, desk.session.session_key
    seat = access.SocketIdentity(alice.pk, key, alice.epoch, thread(alice).id)
    assert access.is_socket_authorized(seat)

    desk.post("/settings/sessions", {"login_session": "others"})

    assert desk.get("/settings").status_code == 200
    assert desk.session.session_key != key
    assert [c.get("/settings").status_code for c in (phone, forgotten_by_the_list)] == [302, 302]
    (remaining,) = LoginSession.objects.filter(person=alice)
    assert (remaining.session_id, remaining.since) == (desk.session.session_key, since)
    assert not access.is_socket_authorized(seat), "pages that are open are let go"
    assert AuditEntry.objects.filter(actor=alice, action="session.others_ended").exists()


def test_a_new_password_ends_other_login_sessions(alice):
    phone, desk = signed_in(alice, CHROME), signed_in(alice)

    desk.post("/settings/password", {"old": PASSWORD, "new": "five other words are fine"})

    assert desk.get("/settings").status_code == 200
    assert phone.get("/settings").status_code == 302
    assert LoginSession.objects.filter(person=alice).count() == 1


def test_a_reactivated_person_must_sign_in_again(alice):
    page = signed_in(alice)
    administrator = PersonFactory(role=User.Role.ADMINISTRATOR)
    roles.set_active(alice.pk, False, by=administrator)
    roles.set_active(alice.pk, True, by=administrator)

    assert page.get("/settings").status_code == 302


def test_a_login_session_is_deleted_with_its_session(alice):
    page = signed_in(alice)
    assert LoginSession.objects.count() == 1

    page.post("/sign-out")

    assert LoginSession.objects.count() == 0


def test_the_last_activity_is_updated_occasionally(alice):
    page = signed_in(alice)
    long_ago = timezone.now() - timedelta(days=2)
    LoginSession.objects.update(last_seen_at=long_ago)
    page.get("/stats")
    seen_at = LoginSession.objects.get().last_seen_at
    assert seen_at > long_ago

    page.get("/stats")
    assert LoginSession.objects.get().last_seen_at == seen_at


def test_a_session_of_an_earlier_version_is_listed_once_it_is_used(alice):
    page = signed_in(alice)
    LoginSession.objects.all().delete()

    assert "Firefox on Windows" in page.get("/settings").content.decode()
    assert LoginSession.objects.get().session_id == page.session.session_key


def test_ending_other_sessions_closes_their_pages_within_seconds(alice_at_home, cato):
    talk = alice_at_home.send_message("Listening")
    elsewhere = cato.sign_in(alice_at_home)
    with open_socket(elsewhere, talk) as open_page:
        open_page.hello()
        open_page.until("Listening")
        alice_at_home.post("/settings/sessions", {"login_session": "others"})
        assert open_page.close_code(15) in (1013, 4404)
    with open_socket(elsewhere, talk) as second_page:
        assert second_page.close_code() == 4401
    assert alice_at_home.get("/settings").status_code == 200


@pytest.fixture
def alice_at_home(cato, administrator):
    return cato.join(administrator, "Alice Owner")
