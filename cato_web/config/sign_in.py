"""Schema of the sections about signing in: second factors, OpenID Connect and directories."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from cato_web.config.fields import (
    Count,
    WebUrl,
    check_domain,
    check_issuer,
    check_scopes,
    is_loopback,
    split_list,
    split_pairs,
    url_with_scheme,
)
from cato_web.config.section import Section


class SignInPolicy(Section):
    """Signing in with a password or a passkey."""

    require_second_factor: Literal["nobody", "administrators", "everyone"]
    confirm_after_minutes: Count


class OpenId(Section):
    """Sign-in with an OpenID Connect provider; off without an issuer."""

    issuer: Annotated[WebUrl, Field(max_length=255), AfterValidator(check_issuer)] | None
    client_id: str | None
    client_secret: SecretStr | None
    name: Annotated[str, Field(min_length=1, max_length=40)]
    scopes: Annotated[str, AfterValidator(check_scopes)]
    joins: bool
    groups_claim: Annotated[str, Field(min_length=1)] | None
    groups: Annotated[dict[str, str], BeforeValidator(split_pairs)]
    administrators: Annotated[list[str], BeforeValidator(split_list)]
    only_emails_of: Annotated[list[Annotated[str, AfterValidator(check_domain)]], BeforeValidator(split_list)]

    @model_validator(mode="after")
    def _require_client_id(self) -> OpenId:
        if self.issuer and not self.client_id:
            raise ValueError(f"issuer is set ({self.issuer}), so client_id should be too: what the provider calls Cato")
        return self


class Ldap(Section):
    """Sign-in with the password of an LDAP directory; off without a URL."""

    url: Annotated[str, url_with_scheme("ldap", "ldaps"), Field(max_length=255)] | None
    name: Annotated[str, Field(min_length=1, max_length=40)]
    start_tls: bool
    ca_file: Path | None
    bind_dn: str | None
    bind_password: SecretStr | None
    users_base: str
    users_filter: Annotated[str, Field(pattern=r"%\(user\)s")]
    email_attribute: str
    name_attribute: str
    joins: bool
    groups_base: str | None
    groups_filter: str
    groups: Annotated[dict[str, str], BeforeValidator(split_pairs)]
    administrators: Annotated[list[str], BeforeValidator(split_list)]

    @model_validator(mode="after")
    def _check_use(self) -> Ldap:
        if not self.url:
            return self
        address = urlsplit(self.url)
        if address.scheme == "ldap" and not self.start_tls and not is_loopback(address.hostname or ""):
            raise ValueError("passwords would not be encrypted on their way: use ldaps://, or set start_tls to true")
        if not self.users_base:
            raise ValueError(f"url is set ({self.url}), so users_base should be too: where people are in the directory")
        if find_spec("django_auth_ldap") is None:
            raise ValueError("the package django-auth-ldap is missing: install requirements-ldap.lock (make ldap)")
        return self
