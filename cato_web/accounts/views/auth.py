"""Views without login: set-up, registration, password reset, sign-in and sign-out."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.accounts import openid, services
from cato_web.accounts.forms.sign_in import PasswordResetForm, RegistrationForm, SetupForm, SignInForm
from cato_web.accounts.models import OneTimeLink, Passkey, User
from cato_web.accounts.second_factor import passkeys
from cato_web.accounts.second_factor import sign_in as pending
from cato_web.config.fields import is_loopback
from chat.llm import endpoint
from memory.api import format_list, is_within_limit, remote_host

_MAX_ATTEMPTS, _WINDOW = 10, 300
TOO_MANY = gettext_noop("Too many attempts. Try again in five minutes.")


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def set_up(request: HttpRequest, token: str) -> HttpResponse:
    """Create the first account, an administrator."""
    return _register(request, token, OneTimeLink.Kind.SETUP, SetupForm(request.POST or None), "people/setup.html")


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Create an account with an invitation."""
    return _register(
        request, token, OneTimeLink.Kind.INVITATION, RegistrationForm(request.POST or None), "people/join.html"
    )


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def reset(request: HttpRequest, token: str) -> HttpResponse:
    """Set a new password with a one-time link."""
    try:
        person = services.validate_link(token, OneTimeLink.Kind.RESET).person
        if person is None:
            raise services.InvalidLinkError
        form = PasswordResetForm(person, request.POST or None)
        if request.method == "POST" and form.is_valid():
            person = services.reset_password(token, form.cleaned_data["password"])
            target = pending.begin(request, person, reverse("new_thread"))
            greeting = _("Welcome back, %(name)s. You are signed out everywhere else.") % {"name": person.name}
            messages.success(request, greeting)
            return redirect(target)
    except services.InvalidLinkError as error:
        return render(request, "404.html", {"error": str(error)}, status=404)
    context = {"form": form, "name": person.name}
    return render(request, "people/reset.html", context, status=422 if form.errors else 200)


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in with email and password, with rate limits for the account and the address."""
    target = safe_redirect_target(request.GET.get("next", ""))
    if request.user.is_authenticated:
        return redirect(target)
    form = SignInForm(request.POST or None)
    if request.method == "POST":
        # Only a valid form names an account to count for.
        if not check_login_rate(request) or (
            form.is_valid() and not _check_account_rate(request, form.cleaned_data["email"])
        ):
            return render_sign_in(request, target=target, status=429, error=_(TOO_MANY))
        if form.is_valid() and (person := form.authenticate()) is not None:
            return redirect(pending.begin(request, person, target))
    return render_sign_in(request, form, target=target, status=422 if form.errors else 200)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Sign out."""
    logout(request)
    return redirect("sign_in")


def _register(request: HttpRequest, token: str, kind: str, form: RegistrationForm, template: str) -> HttpResponse:
    try:
        services.validate_link(token, kind)
        if request.method == "POST" and form.is_valid():
            fields = {name: form.cleaned_data[name] for name in ("name", "email", "password")}
            person = services.register(token, kind, **fields)
            if form.cleaned_data.get("model_from") == "endpoint":
                endpoint.save(
                    base_url=form.cleaned_data["base_url"],
                    api_key=form.cleaned_data["api_key"],
                    model=form.cleaned_data["model"],
                )
            target = pending.begin(request, person, reverse("new_thread"))
            messages.success(request, _("Welcome, %(name)s.") % {"name": person.name})
            return redirect(target)
    except services.InvalidLinkError as error:
        return render(request, "404.html", {"error": str(error)}, status=404)
    status = 422 if form.errors else 200
    if kind == OneTimeLink.Kind.INVITATION:
        return render_join(request, form, token=token, status=status)
    return render(request, template, {"form": form, "facts": data_locations()}, status=status)


def render_sign_in(
    request: HttpRequest,
    form: SignInForm | None = None,
    *,
    target: str = "/",
    status: int = 200,
    error: str = "",
    provider_url: str = "",
) -> HttpResponse:
    """Render the sign-in page, with an error or with the URL of the identity provider."""
    context = {
        "form": form or SignInForm(),
        "target": target,
        "error": error,
        "provider_url": provider_url,
        "is_set_up": services.is_set_up(),
        "openid": openid.name(),
        "passkeys": passkeys.is_available(request) and Passkey.objects.exists(),
    }
    return render_attempt(request, "people/sign_in.html", context, status)


def render_join(
    request: HttpRequest, form: RegistrationForm, *, token: str, status: int, error: str = ""
) -> HttpResponse:
    """Render the page of an invitation."""
    context = {"form": form, "facts": data_locations(), "token": token, "error": error, "openid": openid.name()}
    return render_attempt(request, "people/join.html", context, status)


def render_attempt(request: HttpRequest, template: str, context: dict[str, object], status: int) -> HttpResponse:
    """Render a page on which attempts are limited; a response with status 429 says when to try again."""
    response = render(request, template, context, status=status)
    if status == 429:
        response["Retry-After"] = str(_WINDOW)
    return response


def safe_redirect_target(target: str) -> str:
    """Return `target` if it is a path on this host, otherwise "/"."""
    # Without a leading slash, `redirect` would look up a view of that name.
    is_path = target.startswith("/") and url_has_allowed_host_and_scheme(target, allowed_hosts=None)
    return target if is_path else "/"


def check_login_rate(request: HttpRequest) -> bool:
    """Count an attempt from the client's address; return False after 50 in five minutes."""
    return is_within_limit(f"in:{_address(request)}", 5 * _MAX_ATTEMPTS, _WINDOW)


def _check_account_rate(request: HttpRequest, email: str) -> bool:
    """Count an attempt for the account: at most 10 from one address and 100 from all addresses.

    The limit per address prevents that one attacker locks out the account's owner elsewhere.
    """
    local = is_within_limit(f"in:{email}:{_address(request)}", _MAX_ATTEMPTS, _WINDOW)
    return local and is_within_limit(f"in:{email}", 10 * _MAX_ATTEMPTS, _WINDOW)


def check_code_rate(request: HttpRequest, person: User) -> bool:
    """Count an attempt with a code or, to confirm, with a password; return False if there were too many.

    At most 10 in five minutes from one address and 30 in an hour from all, which only who knows the password or is signed
    in can use up; passkeys are not counted.
    """
    local = is_within_limit(f"code:{person.pk}:{_address(request)}", _MAX_ATTEMPTS, _WINDOW)
    return local and is_within_limit(f"code:{person.pk}", 3 * _MAX_ATTEMPTS, 3600)


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


def data_locations() -> list[dict[str, str]]:
    """Describe where data is stored and which hosts receive it, from the configuration."""
    conf = settings.CATO
    host = remote_host()
    hosts = dict.fromkeys(filter(None, [host, *(one.host for one in endpoint.list_endpoints())]))
    others = [name for name in hosts if not is_loopback(urlsplit(f"//{name}").hostname or "")]
    local = _("on this machine")
    return [
        {"label": _("Memory"), "figure": local if conf.database_url is None else _("in your database")},
        {"label": _("Embeddings"), "figure": host or local},
        {
            "label": _("Sent to third parties"),
            "figure": _("to %(hosts)s") % {"hosts": format_list(others)} if others else _("nothing"),
        },
    ]
