"""The doors from outside: set-up, joining, signing in and out."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.accounts import openid, services
from cato_web.accounts.forms import PasswordResetForm, RegistrationForm, SetupForm, SignInForm
from cato_web.accounts.models import Pass
from chat.llm import endpoint
from memory.embeddings import remote_host
from memory.utils.formatting import format_list
from memory.utils.rate_limits import is_within_limit

_TRIES, WINDOW = 10, 300
TOO_MANY = gettext_noop("Too many attempts. Try again in five minutes.")


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def set_up(request: HttpRequest, token: str) -> HttpResponse:
    """The first account, which administers."""
    return _enter(request, token, Pass.Kind.SETUP, SetupForm(request.POST or None), "people/setup.html")


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """An account for whoever was invited."""
    return _enter(request, token, Pass.Kind.INVITATION, RegistrationForm(request.POST or None), "people/join.html")


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def reset(request: HttpRequest, token: str) -> HttpResponse:
    """A new password by the link that an administrator made."""
    try:
        person = services.validate_link(token, Pass.Kind.RESET).person
        if person is None:
            raise services.InvalidLinkError
        form = PasswordResetForm(person, request.POST or None)
        if request.method == "POST" and form.is_valid():
            person = services.reset_password(token, form.cleaned_data["password"])
            login(request, person, backend="django.contrib.auth.backends.ModelBackend")
            greeting = _("Welcome back, %(name)s. You are signed out everywhere else.") % {"name": person.name}
            messages.success(request, greeting)
            return redirect("new_thread")
    except services.InvalidLinkError as refused:
        return render(request, "404.html", {"error": str(refused)}, status=404)
    context = {"form": form, "name": person.name}
    return render(request, "people/reset.html", context, status=422 if form.errors else 200)


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in by e-mail and password, within the limits of tries for the account and from the address."""
    target = safe_redirect_target(request.GET.get("next", ""))
    if request.user.is_authenticated:
        return redirect(target)
    form = SignInForm(request.POST or None)
    if request.method == "POST":
        # Counted for the account only once the form is valid: whatever else was typed is no account.
        if not check_login_rate(request) or (
            form.is_valid() and not _may_try_account(request, form.cleaned_data["email"])
        ):
            return render_sign_in(request, target=target, status=429, error=_(TOO_MANY))
        if form.is_valid() and (person := form.authenticate()) is not None:
            login(request, person)
            return redirect(target)
    return render_sign_in(request, form, target=target, status=422 if form.errors else 200)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("sign_in")


def _enter(request: HttpRequest, token: str, kind: str, form: RegistrationForm, template: str) -> HttpResponse:
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
            login(request, person, backend="django.contrib.auth.backends.ModelBackend")
            messages.success(request, _("Welcome, %(name)s.") % {"name": person.name})
            return redirect("new_thread")
    except services.InvalidLinkError as refused:
        return render(request, "404.html", {"error": str(refused)}, status=404)
    status = 422 if form.errors else 200
    if kind == Pass.Kind.INVITATION:
        return render_join(request, form, token=token, status=status)
    return render(request, template, {"form": form, "facts": data_locations()}, status=status)


def render_sign_in(
    request: HttpRequest,
    form: SignInForm | None = None,
    *,
    target: str = "/",
    status: int = 200,
    error: str = "",
    onward: str = "",
) -> HttpResponse:
    """The page of signing in, with what went wrong, or with the way on to the provider of identities."""
    context = {
        "form": form or SignInForm(),
        "target": target,
        "error": error,
        "onward": onward,
        "is_set_up": services.is_set_up(),
        "openid": openid.name(),
    }
    response = render(request, "people/sign_in.html", context, status=status)
    if status == 429:
        response["Retry-After"] = str(WINDOW)
    return response


def render_join(
    request: HttpRequest, form: RegistrationForm, *, token: str, status: int, error: str = ""
) -> HttpResponse:
    """The page behind an invitation."""
    context = {"form": form, "facts": data_locations(), "token": token, "error": error, "openid": openid.name()}
    response = render(request, "people/join.html", context, status=status)
    if status == 429:
        response["Retry-After"] = str(WINDOW)
    return response


def safe_redirect_target(target: str) -> str:
    """Return the address to go to afterwards, if it is a path of this Cato."""
    # Without the slash it would be taken for the name of a view.
    is_path = target.startswith("/") and url_has_allowed_host_and_scheme(target, allowed_hosts=None)
    return target if is_path else "/"


def check_login_rate(request: HttpRequest) -> bool:
    """Count a try from the address of this request; fifty in five minutes are let through."""
    return is_within_limit(f"in:{_address(request)}", 5 * _TRIES, WINDOW)


def _may_try_account(request: HttpRequest, email: str) -> bool:
    """Count a try for the account: ten from one address, so that nobody locks an account for its person elsewhere, and
    a hundred from all addresses together."""
    here = is_within_limit(f"in:{email}:{_address(request)}", _TRIES, WINDOW)
    return here and is_within_limit(f"in:{email}", 10 * _TRIES, WINDOW)


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


def data_locations() -> list[dict[str, str]]:
    """Where things are kept and what is sent where, from the configuration."""
    conf = settings.CATO
    host = remote_host(conf.vector_store)
    sent = ([host] if host else []) + ([answering.host] if (answering := endpoint.current()) else [])
    here = _("on this machine")
    return [
        {"label": _("Memory"), "figure": here if conf.database_url is None else _("in your database")},
        {"label": _("Embeddings"), "figure": host or here},
        {
            "label": _("Sent to third parties"),
            "figure": _("to %(hosts)s") % {"hosts": format_list(sent)} if sent else _("nothing"),
        },
    ]
