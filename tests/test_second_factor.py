"""The second factor at sign-in: codes of an app, passkeys, recovery codes, and who must have one."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any

import pyotp
import pytest
from django.conf import settings as conf
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from cato_web.accounts import deletion, roles, services
from cato_web.accounts.models import AuditEntry, AuthenticatorApp, LoginSession, Passkey, RecoveryCode
from cato_web.accounts.second_factor import codes, passkeys, sign_in
from cato_web.accounts.views import auth
from tests.authenticator import SoftwareAuthenticator
from tests.factories import AdministratorFactory, PersonFactory, signed_in

pytestmark = pytest.mark.django_db
PASSWORD = PersonFactory.password
HOST = {"HTTP_HOST": "localhost"}  # browsers allow passkeys here
NEW = "another four plain words"


@pytest.fixture(autouse=True)
def _no_earlier_attempts() -> None:
    cache.clear()


@pytest.fixture
def require(monkeypatch):
    """Require a second factor of a role."""

    def require(of: str) -> None:
        section = conf.CATO.sign_in.model_copy(update={"require_second_factor": of})
        monkeypatch.setattr(conf, "CATO", conf.CATO.model_copy(update={"sign_in": section}))

    return require


def add_app(person) -> str:
    """Give the person an app whose current code was not used; return its secret."""
    secret = codes.new_secret()
    assert codes.save_app(person, secret, code_of(secret))
    AuthenticatorApp.objects.filter(person=person).update(last_step=0)
    return secret


def code_of(secret: str, steps: int = 0) -> str:
    return pyotp.TOTP(secret).at(int(time.time()) + 30 * steps)


def enter_password(person, client: Client | None = None, next: str = "/stats") -> tuple[Client, Any]:
    client = client or Client(**HOST)
    return client, client.post(f"/sign-in?next={next}", {"email": person.email, "password": PASSWORD})


def add_passkey(person, **options: Any) -> SoftwareAuthenticator:
    client, authenticator = Client(**HOST), SoftwareAuthenticator(**options)
    client.force_login(person)
    answer = authenticator.make(client.post(reverse("registration_options")).json())
    response = client.post(reverse("add_passkey"), {"credential": answer, "name": "Key"})
    assert response.status_code in (200, 302), response.content.decode()
    return authenticator


def options_for(client: Client, purpose: str = "second_factor") -> dict[str, Any]:
    return client.post(reverse("passkey_options"), {"purpose": purpose}).json()


def shown_codes(page: str) -> list[str]:
    return re.search(r'<textarea id="codes"[^>]*>([^<]+)<', page)[1].split()


def is_signed_in(client: Client) -> bool:
    return client.get("/settings").status_code == 200


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("id").values_list("action", flat=True))


def test_without_a_second_factor_the_password_is_enough(person):
    client, answer = enter_password(person)
    assert answer.url == "/stats"
    assert is_signed_in(client)


def test_after_the_password_a_code_begins_the_login_session_under_a_new_key(person):
    secret = add_app(person)
    client, answer = enter_password(person)
    assert answer.url == reverse("second_factor")
    key = client.session.session_key
    assert not is_signed_in(client)

    assert client.get(answer.url).status_code == 200
    assert client.post(answer.url, {"code": code_of(secret)}).url == "/stats"
    assert is_signed_in(client)
    assert client.session.session_key != key


@pytest.mark.parametrize("name", ["settings", "stats", "threads", "download_export", "confirm", "new_thread"])
def test_before_the_second_factor_nothing_opens(person, name):
    add_app(person)
    client, _ = enter_password(person)

    assert client.get(reverse(name)).url.startswith("/sign-in?next=")
    assert not LoginSession.objects.filter(person=person).exists()
    assert "_auth_user_id" not in client.session  # what sockets, pages and downloads read
    assert client.get(reverse("v1_models")).status_code == 401
    assert signed_in(person).get("/stats").status_code == 200


def test_before_the_second_factor_nobody_can_change_it(person):
    add_app(person)
    client, _ = enter_password(person)
    for name in ("security", "authenticator_app"):
        assert client.get(reverse(name)).url == "/sign-in"
    for name in ("add_passkey", "registration_options"):
        assert client.post(reverse(name)).url == "/sign-in"


def test_a_code_is_accepted_once(person):
    secret = add_app(person)
    code = code_of(secret)
    first, second = enter_password(person)[0], enter_password(person)[0]
    assert first.post(reverse("second_factor"), {"code": code}).status_code == 302

    answer = second.post(reverse("second_factor"), {"code": code})
    assert answer.status_code == 422
    assert "used already" in answer.content.decode()
    assert not is_signed_in(second)


def test_of_two_requests_at_the_same_time_one_code_signs_in_one(person, monkeypatch):
    secret = add_app(person)
    step, accepted = codes.matching_step, []

    def match(*arguments: Any) -> int | None:
        """Let another request be accepted after this one has compared its code."""
        found = step(*arguments)
        monkeypatch.setattr(codes, "matching_step", step)
        accepted.append(codes.accept_app_code(person, code_of(secret)))
        return found

    monkeypatch.setattr(codes, "matching_step", match)
    accepted.append(codes.accept_app_code(person, code_of(secret)))

    assert accepted == [True, False]


@pytest.mark.parametrize(("steps", "is_accepted"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_code_of_the_step_before_or_after_is_accepted(person, steps, is_accepted, monkeypatch):
    secret = add_app(person)
    now = time.time()
    monkeypatch.setattr(codes.time, "time", lambda: now)
    code = pyotp.TOTP(secret).at(int(now) + 30 * steps)

    assert codes.accept_app_code(person, code) is is_accepted


def test_a_secret_that_cannot_be_decrypted_accepts_no_code(person):
    add_app(person)
    AuthenticatorApp.objects.update(secret=b"encrypted with another key")

    assert not codes.accept_app_code(person, "000000")


def test_the_secret_is_stored_encrypted(person):
    secret = add_app(person)
    assert secret.encode() not in bytes(AuthenticatorApp.objects.get().secret)


def test_attempts_with_codes_are_limited_and_a_passkey_still_signs_in(person):
    secret, authenticator = add_app(person), add_passkey(person)
    client, _ = enter_password(person)
    for _attempt in range(10):
        assert client.post(reverse("second_factor"), {"code": "000000"}).status_code == 422
    assert client.post(reverse("second_factor"), {"code": code_of(secret)}).status_code == 429

    answer = authenticator.use(options_for(client))
    assert client.post(reverse("second_factor"), {"credential": answer}).status_code == 302
    assert is_signed_in(client)


def test_attempts_to_add_an_app_are_limited(person):
    client = signed_in(person)
    for _attempt in range(10):
        client.get(reverse("authenticator_app"))
        assert client.post(reverse("authenticator_app"), {"code": "000000"}).status_code == 422
    page = client.get(reverse("authenticator_app")).content.decode()
    secret = re.search(r"<code>([A-Z2-7 ]+)</code>", page)[1].replace(" ", "")
    assert client.post(reverse("authenticator_app"), {"code": code_of(secret)}).status_code == 429
    assert not AuthenticatorApp.objects.exists()


def test_attempts_with_passkeys_instead_of_passwords_are_limited_by_address(person, monkeypatch):
    monkeypatch.setattr(auth, "_MAX_ATTEMPTS", 1)
    authenticator, client = add_passkey(person), Client(**HOST)
    for _attempt in range(4):
        assert client.post(reverse("passkey_sign_in")).status_code == 422
    credential = authenticator.use(options_for(client, "sign_in"))

    assert client.post(reverse("passkey_sign_in"), {"credential": credential}).status_code == 429
    assert client.post(reverse("passkey_options"), {"purpose": "sign_in"}).status_code == 429
    assert not is_signed_in(client)


def test_a_pending_sign_in_expires_and_ends_with_the_password(person, monkeypatch):
    secret = add_app(person)
    late, changed = enter_password(person)[0], enter_password(person)[0]
    services.change_password(person, NEW)
    assert changed.post(reverse("second_factor"), {"code": code_of(secret)}).url == "/sign-in"

    now = time.time()
    monkeypatch.setattr(sign_in.time, "time", lambda: now + sign_in.MAX_AGE + 1)
    assert late.post(reverse("second_factor"), {"code": code_of(secret)}).url == "/sign-in"
    assert not is_signed_in(late)


def test_a_deactivated_person_does_not_sign_in_with_the_second_factor(person):
    secret, authenticator = add_app(person), add_passkey(person)
    client, _ = enter_password(person)
    roles.set_active(person.pk, False, by=AdministratorFactory())

    assert client.post(reverse("second_factor"), {"code": code_of(secret)}).url == "/sign-in"
    answer = authenticator.use(options_for(client, "sign_in"))
    assert client.post(reverse("passkey_sign_in"), {"credential": answer}).status_code == 422


def test_a_link_for_a_new_password_still_asks_for_the_second_factor(person):
    secret = add_app(person)
    token = services.reset_link(person, by=None)
    client = Client()
    answer = client.post(reverse("password_reset", args=[token]), {"password": NEW})
    assert answer.url == reverse("second_factor")
    assert not is_signed_in(client)

    client.post(answer.url, {"code": code_of(secret)})
    assert is_signed_in(client)


def test_an_app_is_added_with_its_code_and_recovery_codes_are_shown_once(person):
    client, other = signed_in(person), signed_in(person)
    page = client.get(reverse("authenticator_app")).content.decode()
    secret = re.search(r"<code>([A-Z2-7 ]+)</code>", page)[1].replace(" ", "")
    assert "<svg" in page
    assert "style=" not in re.search(r"<svg.*?</svg>", page, re.DOTALL)[0]
    assert client.post(reverse("authenticator_app"), {"code": "000000"}).status_code == 422

    page = client.post(reverse("authenticator_app"), {"code": code_of(secret)}, follow=True).content.decode()
    shown = shown_codes(page)
    assert len(shown) == codes.RECOVERY_CODES
    assert is_signed_in(client)
    assert not is_signed_in(other)
    assert not RecoveryCode.objects.filter(code_hash__in=shown).exists()
    assert shown[0] not in client.get(reverse("security")).content.decode()
    assert {"authenticator_app.added", "recovery_codes.created"} <= set(actions())


def test_a_recovery_code_signs_in_once_and_says_how_many_are_left(person):
    add_app(person)
    shown = codes.replace_recovery_codes(person)
    client, _ = enter_password(person)
    client.post(reverse("second_factor"), {"code": shown[0].upper().replace("-", " ")})
    assert "9 are left" in client.get("/settings").content.decode()

    again, _ = enter_password(person)
    assert again.post(reverse("second_factor"), {"code": shown[0]}).status_code == 422
    assert "recovery_code.used" in actions()


def test_new_recovery_codes_replace_the_earlier_ones(person):
    add_app(person)
    (old, *_), client = codes.replace_recovery_codes(person), signed_in(person)
    page = client.post(reverse("recovery_codes"), follow=True).content.decode()

    assert codes.redeem_recovery_code(person, shown_codes(page)[0])
    assert not codes.redeem_recovery_code(person, old)
    assert codes.count_recovery_codes(person) == 9


def test_the_page_with_new_recovery_codes_can_be_loaded_again(person):
    add_app(person)
    client = signed_in(person)
    answer = client.post(reverse("recovery_codes"))
    (code,) = RecoveryCode.objects.all()[:1]
    assert "text" not in client.session["recovery_codes"], "it is encrypted"

    assert client.get(answer.url).status_code == 200
    assert client.get(answer.url).url == reverse("security")
    assert list(RecoveryCode.objects.all()[:1]) == [code]


def test_without_a_second_factor_there_are_no_recovery_codes(person):
    assert signed_in(person).post(reverse("recovery_codes")).url == reverse("security")
    assert not RecoveryCode.objects.exists()


def test_a_recovery_code_of_somebody_else_is_wrong(person):
    add_app(person)
    other = PersonFactory()
    (code, *_) = codes.replace_recovery_codes(other)
    assert not codes.redeem_recovery_code(person, code)
    assert codes.redeem_recovery_code(other, code)


def test_a_passkey_is_the_second_factor(person):
    authenticator = add_passkey(person, is_verified=False)
    client, answer = enter_password(person)
    assert answer.url == reverse("second_factor")
    credential = authenticator.use(options_for(client))

    assert client.post(answer.url, {"credential": credential}).url == "/stats"
    assert is_signed_in(client)
    assert Passkey.objects.get().used_at is not None


def test_a_passkey_signs_in_without_a_password(person):
    authenticator, client = add_passkey(person), Client(**HOST)
    credential = authenticator.use(options_for(client, "sign_in"))

    assert client.post(reverse("passkey_sign_in"), {"credential": credential, "next": "/stats"}).url == "/stats"
    assert is_signed_in(client)


def test_without_a_password_the_authenticator_must_verify_its_owner(person):
    authenticator, client = add_passkey(person), Client(**HOST)
    authenticator.is_verified = False
    credential = authenticator.use(options_for(client, "sign_in"))
    assert client.post(reverse("passkey_sign_in"), {"credential": credential}).status_code == 422

    # The challenge of the second factor, which does not ask for it, is no way around.
    pending, _ = enter_password(person)
    credential = authenticator.use(options_for(pending))
    assert pending.post(reverse("passkey_sign_in"), {"credential": credential}).status_code == 422
    assert not is_signed_in(pending)


def test_a_challenge_is_valid_for_one_answer_in_its_own_session(person):
    authenticator, first, second = add_passkey(person), Client(**HOST), Client(**HOST)
    credential = authenticator.use(options_for(first, "sign_in"))
    options_for(second, "sign_in")
    assert second.post(reverse("passkey_sign_in"), {"credential": credential}).status_code == 422
    assert first.post(reverse("passkey_sign_in"), {"credential": credential}).status_code == 302


def test_a_challenge_is_used_up_by_a_refused_answer(person):
    authenticator, client = add_passkey(person), Client(**HOST)
    options = options_for(client, "sign_in")
    wrong = replace(authenticator, origin="https://evil.example").use(options)
    for credential in (wrong, authenticator.use(options)):
        assert client.post(reverse("passkey_sign_in"), {"credential": credential}).status_code == 422


def test_a_challenge_expires(person, monkeypatch):
    authenticator = add_passkey(person)
    client, answer = enter_password(person)
    credential, now = authenticator.use(options_for(client)), time.time()
    monkeypatch.setattr(passkeys.time, "time", lambda: now + passkeys.CHALLENGE_MAX_AGE + 1)
    assert client.post(answer.url, {"credential": credential}).status_code == 422

    credential = authenticator.use(options_for(client))
    assert client.post(answer.url, {"credential": credential}).status_code == 302


def test_a_challenge_is_valid_for_its_person_alone(person):
    other = PersonFactory()
    add_passkey(person)
    of_other = add_passkey(other)
    client, _ = enter_password(person)
    credential = of_other.use(options_for(client))
    enter_password(other, client)

    assert client.post(reverse("second_factor"), {"credential": credential}).status_code == 422


def test_a_challenge_for_a_new_passkey_confirms_nothing(person):
    authenticator, client = add_passkey(person), Client(**HOST)
    person.refresh_from_db()
    client.force_login(person)
    public = client.post(reverse("registration_options")).json()["publicKey"]
    credential = authenticator.use({"publicKey": public | {"rpId": public["rp"]["id"]}})
    assert client.post(reverse("confirm"), {"credential": credential}).status_code == 422

    assert client.post(reverse("confirm"), {"credential": authenticator.use(options_for(client))}).status_code == 302


def test_the_number_of_passkeys_of_a_person_is_limited(person, monkeypatch):
    monkeypatch.setattr(passkeys, "MAX_PASSKEYS", 1)
    add_passkey(person)
    client, authenticator = Client(**HOST), SoftwareAuthenticator()
    person.refresh_from_db()
    client.force_login(person)
    credential = authenticator.make(client.post(reverse("registration_options")).json())
    assert client.post(reverse("add_passkey"), {"credential": credential}).status_code == 422
    assert Passkey.objects.count() == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"origin": "https://evil.example"},
        {"key": SoftwareAuthenticator().key},
        {"user_handle": b"somebody else's"},
        {"user_handle": b""},
        {"id": b"unknown" * 4},
    ],
)
def test_a_wrong_answer_is_refused(person, changed):
    authenticator, client = add_passkey(person), Client(**HOST)
    credential = replace(authenticator, **changed).use(options_for(client, "sign_in"))
    assert client.post(reverse("passkey_sign_in"), {"credential": credential}).status_code == 422

    credential = authenticator.use(options_for(client, "sign_in"))
    assert client.post(reverse("passkey_sign_in"), {"credential": credential}).status_code == 302


@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"id": 1}', '{"rawId": "eA", "id": "eA", "response": {}}'])
def test_an_answer_that_cannot_be_read_is_refused(person, answer):
    client = Client(**HOST)
    options_for(client, "sign_in")
    assert client.post(reverse("passkey_sign_in"), {"credential": answer}).status_code == 422
    signed = Client(**HOST)
    signed.force_login(person)
    signed.post(reverse("registration_options"))
    assert signed.post(reverse("add_passkey"), {"credential": answer}).status_code == 422
    assert not Passkey.objects.exists()


def test_a_counter_that_does_not_grow_reveals_a_copied_passkey(person):
    authenticator, client = add_passkey(person, counter=5), Client(**HOST)
    for counter, status in ((5, 422), (6, 302)):
        authenticator.counter = counter
        credential = authenticator.use(options_for(client, "sign_in"))
        assert client.post(reverse("passkey_sign_in"), {"credential": credential}).status_code == status


def test_a_passkey_of_somebody_else_is_no_second_factor(person):
    add_app(person)
    of_other = add_passkey(PersonFactory())
    client, _ = enter_password(person)
    credential = of_other.use(options_for(client))
    assert client.post(reverse("second_factor"), {"credential": credential}).status_code == 422


def test_a_passkey_is_renamed_and_deleted_by_its_owner_only(person):
    add_passkey(person)
    passkey = Passkey.objects.get()
    other, own = signed_in(PersonFactory()), signed_in(Passkey.objects.get().person)
    for client in (other, own):
        client.post(reverse("rename_passkey"), {"passkey": passkey.pk, "name": "Desk"})
        passkey.refresh_from_db()
        assert (passkey.name == "Desk") is (client is own)
    for client in (other, own):
        client.post(reverse("delete_passkey"), {"passkey": passkey.pk})
        assert Passkey.objects.exists() is (client is other)
    assert not RecoveryCode.objects.exists()
    assert "passkey.deleted" in actions()


@pytest.mark.parametrize(("of", "asked"), [("nobody", set()), ("administrators", {"a"}), ("everyone", {"a", "m"})])
def test_who_must_have_a_second_factor_sets_it_up_before_anything_else(require, of, asked):
    require(of)
    for letter, factory in (("a", AdministratorFactory), ("m", PersonFactory)):
        person = factory()
        client, answer = enter_password(person)
        assert is_signed_in(client) is (letter not in asked)
        if letter not in asked:
            continue
        assert client.get(answer.url).url == reverse("security")
        assert "needs a second factor" in client.get(reverse("security")).content.decode()
        page = client.get(reverse("authenticator_app")).content.decode()
        secret = re.search(r"<code>([A-Z2-7 ]+)</code>", page)[1].replace(" ", "")
        page = client.post(reverse("authenticator_app"), {"code": code_of(secret)}, follow=True).content.decode()
        assert 'href="/stats"' in page
        assert is_signed_in(client)


def test_a_new_requirement_ends_login_sessions_from_before(person, require):
    client = signed_in(person)
    assert is_signed_in(client)
    require("administrators")
    assert is_signed_in(client)
    require("everyone")
    assert not is_signed_in(client)


def test_who_becomes_an_administrator_needs_one_at_once(person, require):
    require("administrators")
    client = signed_in(person)
    assert is_signed_in(client)
    roles.set_role(person, "administrator", by=AdministratorFactory())
    assert not is_signed_in(client)


def test_the_last_second_factor_stays_where_it_is_required(person, require):
    require("everyone")
    add_app(person)
    client = signed_in(person)
    client.post(reverse("remove_authenticator_app"))
    assert AuthenticatorApp.objects.exists()
    add_passkey(person)
    person.refresh_from_db()
    signed_in(person).post(reverse("remove_authenticator_app"))
    assert not AuthenticatorApp.objects.exists()


def test_an_administrator_removes_what_a_person_has_lost(person):
    add_app(person)
    codes.replace_recovery_codes(person)
    client, ada = signed_in(person), signed_in(AdministratorFactory())
    assert "Remove the second factor" in ada.get(reverse("admin_people")).content.decode()
    ada.post(reverse("remove_second_factor", args=[person.pk]))

    assert not is_signed_in(client)
    assert enter_password(person)[1].url == "/stats"
    assert not RecoveryCode.objects.exists()
    assert "second_factor.removed" in actions()
    assert "Remove the second factor" not in ada.get(reverse("admin_people")).content.decode()


def test_the_command_removes_the_second_factor_of_the_last_administrator(capsys):
    ada = AdministratorFactory()
    add_app(ada)
    call_command("remove_second_factor", ada.email.upper())
    assert "no second factor any more" in capsys.readouterr().out
    assert enter_password(ada)[1].url == "/stats"
    with pytest.raises(CommandError, match="has no second factor"):
        call_command("remove_second_factor", ada.email)


def test_a_deleted_account_keeps_no_second_factor(person):
    add_app(person)
    add_passkey(person)
    deletion.delete_account(person)
    for model in (AuthenticatorApp, Passkey, RecoveryCode):
        assert not model.objects.exists()


@pytest.mark.parametrize(("host", "is_offered"), [("localhost", True), ("127.0.0.1", False)])
def test_passkeys_are_offered_where_browsers_allow_them(person, host, is_offered):
    add_passkey(person)
    client = Client(HTTP_HOST=host)
    assert ("Sign in with a passkey" in client.get("/sign-in").content.decode()) is is_offered


def test_the_sign_in_page_offers_no_passkey_while_nobody_has_one(person):
    assert "passkey" not in Client(**HOST).get("/sign-in").content.decode()
