"""Passkeys (WebAuthn): options for the browser, and the check of what it returns.

The challenge stays in the session and is valid for one answer. Attestation is not asked for: any authenticator may be used.
"""

from __future__ import annotations

import ipaddress
import json
import struct
import time
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from fido2.server import Fido2Server
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from cato_web.accounts.models import Passkey, User
from cato_web.oauth.addresses import origin_of

SIGN_IN, SECOND_FACTOR, REGISTRATION = "sign_in", "second_factor", "registration"
MAX_PASSKEYS = 20
CHALLENGE_MAX_AGE = 600  # seconds
_CHALLENGE = "passkey_challenge"
# What parsing data of a browser can raise; the library has no class of its own.
_INVALID = (ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error, UnsupportedAlgorithm)


class PasskeyRejectedError(Exception):
    """The browser's answer does not prove that the person has the passkey."""

    def __init__(self) -> None:
        super().__init__(_("This passkey was not accepted. Try again, or use another way."))


def is_available(request: HttpRequest) -> bool:
    """Return whether browsers allow passkeys at this address: a name, over https or on this machine."""
    origin = urlsplit(origin_of(request))
    host = origin.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return origin.scheme == "https" or host == "localhost" or host.endswith(".localhost")
    return False


def registration_options(request: HttpRequest, person: User) -> dict[str, Any]:
    """Return the options with which the browser makes a passkey that is not registered yet."""
    user = PublicKeyCredentialUserEntity(id=person.pk.bytes, name=person.email, display_name=person.name)
    options, state = _server(request).register_begin(
        user,
        _credentials(person),
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    _save_challenge(request, REGISTRATION, person, state)
    return dict(options)


def register(request: HttpRequest, person: User, *, name: str, answer: str) -> Passkey:
    """Store the passkey that the browser made. Raises PasskeyRejectedError."""
    state = _take_challenge(request, REGISTRATION, person)
    try:
        response = RegistrationResponse.from_dict(json.loads(answer))
        credential = _server(request).register_complete(state, response).credential_data
        if credential is None:
            raise PasskeyRejectedError
        count = response.response.attestation_object.auth_data.counter
    except _INVALID as error:
        raise PasskeyRejectedError from error
    try:
        with transaction.atomic():
            return Passkey.objects.create(
                person=person,
                name=name,
                credential_id=credential.credential_id,
                credential=bytes(credential),
                sign_count=count,
            )
    except IntegrityError as error:
        raise PasskeyRejectedError from error


def authentication_options(request: HttpRequest, person: User | None) -> dict[str, Any]:
    """Return the options with which the browser uses a passkey.

    Without `person`, any passkey of this server that the authenticator finds, which then has to verify its owner: it
    replaces the password, too.
    """
    options, state = _server(request).authenticate_begin(
        _credentials(person) if person else None,
        user_verification=UserVerificationRequirement.PREFERRED if person else UserVerificationRequirement.REQUIRED,
    )
    _save_challenge(request, SECOND_FACTOR if person else SIGN_IN, person, state)
    return dict(options)


def authenticate(request: HttpRequest, person: User | None, *, answer: str) -> User:
    """Return the active owner of the passkey that the browser used. Raises PasskeyRejectedError."""
    state = _take_challenge(request, SECOND_FACTOR if person else SIGN_IN, person)
    try:
        response = AuthenticationResponse.from_dict(json.loads(answer))
        passkeys = Passkey.objects.filter(credential_id=response.raw_id, person__is_active=True).select_related(
            "person"
        )
        passkey = (passkeys.filter(person=person) if person else passkeys).first()
        if passkey is None:
            raise PasskeyRejectedError
        handle = response.response.user_handle
        if handle != passkey.person_id.bytes and (person is None or handle):
            raise PasskeyRejectedError
        _server(request).authenticate_complete(state, [AttestedCredentialData(bytes(passkey.credential))], response)
        count = response.response.authenticator_data.counter
    except _INVALID as error:
        raise PasskeyRejectedError from error
    _count_use(passkey, count)
    return passkey.person


def _count_use(passkey: Passkey, count: int) -> None:
    """Record a use; a counter that did not grow belongs to a copy of the passkey. Zero: the authenticator has none."""
    rows = Passkey.objects.filter(pk=passkey.pk)
    if count or passkey.sign_count:
        rows = rows.filter(sign_count__lt=count)
    if not rows.update(sign_count=count, used_at=timezone.now()):
        raise PasskeyRejectedError


def _credentials(person: User) -> list[AttestedCredentialData]:
    rows = Passkey.objects.filter(person=person).values_list("credential", flat=True)
    return [AttestedCredentialData(bytes(row)) for row in rows]


def _server(request: HttpRequest) -> Fido2Server:
    origin = origin_of(request)
    host = urlsplit(origin).hostname or ""
    return Fido2Server(PublicKeyCredentialRpEntity(name="Cato", id=host), verify_origin=lambda seen: seen == origin)


def _save_challenge(request: HttpRequest, purpose: str, person: User | None, state: dict[str, Any]) -> None:
    request.session[_CHALLENGE] = {
        "purpose": purpose,
        "person": str(person.pk) if person else "",
        "state": state,
        "at": time.time(),
    }


def _take_challenge(request: HttpRequest, purpose: str, person: User | None) -> dict[str, Any]:
    """Return the state of the challenge and forget it. Raises PasskeyRejectedError if there is none for this purpose."""
    saved = request.session.pop(_CHALLENGE, None)
    if (
        saved is None
        or saved["purpose"] != purpose
        or saved["person"] != (str(person.pk) if person else "")
        or time.time() - saved["at"] > CHALLENGE_MAX_AGE
    ):
        raise PasskeyRejectedError
    return dict(saved["state"])
