"""Sign-in with the password of an LDAP directory, through django-auth-ldap, an optional package.

People keep one account: it is found by the directory's id, or linked by email at the first sign-in.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _

from cato_web.accounts import group_mapping, identities
from cato_web.accounts.identities import Provider, VerifiedIdentity
from cato_web.accounts.models import AuditEntry, User
from memory.api import clean_name

if TYPE_CHECKING:
    from django_auth_ldap.backend import LDAPBackend

log = logging.getLogger(__name__)

_TIMEOUT = 5  # seconds for a connection, and for each answer
# Every entry of OpenLDAP, 389 Directory Server and FreeIPA has one of these, which no renaming changes. Elsewhere the
# distinguished name identifies a person.
_IDS = ("entryUUID", "nsUniqueId", "ipaUniqueID")


class DirectoryUnavailableError(Exception):
    """The directory did not answer, or not as it is configured."""

    def __init__(self) -> None:
        sentence = _("%(name)s does not answer at the moment. Try again in a while; details are in the server log.")
        super().__init__(sentence % {"name": settings.CATO.ldap.name})


def is_configured() -> bool:
    """Return whether people sign in with a directory."""
    return bool(settings.CATO.ldap.url)


def is_linked(person: User) -> bool:
    """Return whether this person signs in with the directory."""
    return is_configured() and person.identities.filter(issuer=settings.CATO.ldap.url).exists()


def authenticate(login: str, password: str) -> User | None:
    """Return the account of the person with this name or email and password in the directory; None if nobody has them.

    Raises SignInRejectedError if they may not sign in here, and DirectoryUnavailableError.
    """
    if not is_configured() or not password:
        return None
    person: User | None = _backend().authenticate(None, username=login, password=password)
    return person


def _sign_in(entry: Any) -> User:
    """Return the account of an entry (`_LDAPUser`) whose password was right, with the groups and role that it gives."""
    conf = settings.CATO.ldap
    email = identities.valid_email(_first(entry, conf.email_attribute))
    identity = VerifiedIdentity(
        issuer=str(conf.url),
        subject=next((id for name in _IDS if (id := _first(entry, name))), entry.dn.lower())[:255],
        email=email,
        is_verified=True,
        name=clean_name(_first(entry, conf.name_attribute))[:80] or email.partition("@")[0],
    )
    provider = Provider(conf.name, conf.joins, (), AuditEntry.Action.SESSION_STARTED_BY_LDAP)
    person, _greeting = identities.sign_in(identity, provider)
    if conf.groups_base:
        names = entry.group_names
        group_mapping.apply_mapping(person, names, groups=conf.groups, administrators=conf.administrators)
    return person


def _first(entry: Any, attribute: str) -> str:
    values = entry.attrs.get(attribute) or [""]
    return str(values[0])


def _backend() -> LDAPBackend:
    """Return a backend with the configured directory; the package is imported only where one is configured."""
    import ldap
    from django_auth_ldap.backend import LDAPBackend, ldap_error
    from django_auth_ldap.config import GroupOfNamesType, LDAPSearch

    conf = settings.CATO.ldap

    class DirectoryBackend(LDAPBackend):  # type: ignore[misc]
        """Finds accounts as `identities` does, and changes none of their columns."""

        default_settings = {
            "SERVER_URI": conf.url,
            "START_TLS": conf.start_tls,
            "BIND_DN": conf.bind_dn or "",
            "BIND_PASSWORD": conf.bind_password.get_secret_value() if conf.bind_password else "",
            "CONNECTION_OPTIONS": _connection_options(ldap),
            "USER_SEARCH": LDAPSearch(conf.users_base, ldap.SCOPE_SUBTREE, conf.users_filter, ["*", *_IDS]),
            "ALWAYS_UPDATE_USER": False,
            "GROUP_SEARCH": LDAPSearch(conf.groups_base or "", ldap.SCOPE_SUBTREE, conf.groups_filter),
            "GROUP_TYPE": GroupOfNamesType(),
        }

        def get_or_build_user(self, username: str, ldap_user: Any) -> tuple[User, bool]:
            return _sign_in(ldap_user), False

    ldap_error.connect(_raise_unavailable, dispatch_uid="cato")
    return DirectoryBackend()


def _connection_options(ldap: Any) -> dict[int, Any]:
    options = {
        ldap.OPT_NETWORK_TIMEOUT: _TIMEOUT,
        ldap.OPT_TIMEOUT: _TIMEOUT,
        # Active Directory refers to addresses that nobody configured.
        ldap.OPT_REFERRALS: 0,
    }
    if settings.CATO.ldap.ca_file:
        # The last option makes the library read the first one.
        options |= {ldap.OPT_X_TLS_CACERTFILE: str(settings.CATO.ldap.ca_file), ldap.OPT_X_TLS_NEWCTX: 0}
    return options


def _raise_unavailable(sender: Any, *, exception: Exception, **_fields: Any) -> None:
    """Turn what the package only logs into an error: otherwise a directory that is down says "wrong password"."""
    log.error("directory: %s: %.300r", type(exception).__name__, str(exception))
    raise DirectoryUnavailableError from exception
