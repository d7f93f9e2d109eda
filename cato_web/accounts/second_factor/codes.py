"""Codes of authenticator apps and recovery codes: made, checked, and each accepted once."""

from __future__ import annotations

import secrets
import time
from urllib.parse import urlsplit

import pyotp
import segno
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from cato_web.accounts.models import AuthenticatorApp, RecoveryCode, User
from chat.encryption import decrypt, encrypt

RECOVERY_CODES = 10
_STEP = 30  # seconds that an app shows a code (RFC 6238)
_WINDOW = 1  # steps before and after the current one, for clocks that differ
_GROUPS, _GROUP_LENGTH = 3, 4
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without characters that look alike: 59 bits in a code


def new_secret() -> str:
    """Return a secret of 160 bits in Base32, which an app and the server share."""
    return pyotp.random_base32()


def provisioning_uri(secret: str, person: User) -> str:
    """Return the otpauth: address from which an app reads the secret."""
    host = urlsplit(settings.CATO.server.public_url or "").hostname
    return str(pyotp.TOTP(secret).provisioning_uri(name=person.email, issuer_name=f"Cato ({host})" if host else "Cato"))


def qr_code(text: str) -> str:
    """Return a QR code as an SVG element, dark on white in every theme, because cameras need that."""
    return str(segno.make(text, micro=False).svg_inline(scale=5, border=4, light="white", omitsize=False))


def matching_step(secret: str, code: str, after: int = 0) -> int | None:
    """Return the time step to which a code belongs, if it is later than `after` and close to now."""
    if not secret:  # the secret key of the installation has changed
        return None
    totp, now = pyotp.TOTP(secret), int(time.time()) // _STEP
    steps = range(max(after + 1, now - _WINDOW), now + _WINDOW + 1)
    return next((step for step in steps if pyotp.utils.strings_equal(totp.generate_otp(step), code)), None)


def accept_app_code(person: User, code: str) -> bool:
    """Return whether the person's app shows this code; it is accepted once, in concurrent requests too."""
    app = AuthenticatorApp.objects.filter(person=person).first()
    if app is None or (step := matching_step(decrypt(app.secret), code, app.last_step)) is None:
        return False
    unused = AuthenticatorApp.objects.filter(person=person, last_step__lt=step)
    return bool(unused.update(last_step=step, used_at=timezone.now()))


def save_app(person: User, secret: str, code: str) -> bool:
    """Store the app that shows `code` now, instead of an earlier one; return False if the code is wrong."""
    step = matching_step(secret, code)
    if step is None:
        return False
    AuthenticatorApp.objects.filter(person=person).delete()
    AuthenticatorApp.objects.create(person=person, secret=encrypt(secret), last_step=step)
    return True


@transaction.atomic
def replace_recovery_codes(person: User) -> list[str]:
    """Return ten new recovery codes; earlier ones are no longer valid."""
    RecoveryCode.objects.filter(person=person).delete()
    made = [_new_recovery_code() for _number in range(RECOVERY_CODES)]
    RecoveryCode.objects.bulk_create([RecoveryCode(person=person, code_hash=_hash(code)) for code in made])
    return made


def redeem_recovery_code(person: User, code: str) -> bool:
    """Return whether this is an unused recovery code of the person, and mark it as used."""
    unused = RecoveryCode.objects.filter(person=person, code_hash=_hash(code), used_at=None)
    return bool(unused.update(used_at=timezone.now()))


def count_recovery_codes(person: User) -> int:
    """Return how many recovery codes are unused."""
    return RecoveryCode.objects.filter(person=person, used_at=None).count()


def _new_recovery_code() -> str:
    return "-".join(
        "".join(secrets.choice(_ALPHABET) for _character in range(_GROUP_LENGTH)) for _group in range(_GROUPS)
    )


def _hash(code: str) -> str:
    """Return the keyed hash of a code: without the secret key, a copy of the database does not allow guessing."""
    letters = "".join(code.split()).replace("-", "").lower()
    return str(salted_hmac("cato.recovery-code", letters, algorithm="sha256").hexdigest())
