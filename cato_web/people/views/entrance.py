"""The doors from outside: set-up, joining, signing in and out."""

from __future__ import annotations

from urllib.parse import urlsplit

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

from cato_web.people import openid, services
from cato_web.people.forms import JoinForm, ResetForm, SetUpForm, SignInForm
from cato_web.people.models import Pass
from chat import endpoint
from chat.throttle import within
from memory.shown import listed

_TRIES, _WINDOW = 10, 300
TOO_MANY = gettext_noop("Too many tries. Wait five minutes and try again.")


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def set_up(request: HttpRequest, token: str) -> HttpResponse:
    """The first account, which administers."""
    return _enter(request, token, Pass.Kind.SETUP, SetUpForm(request.POST or None), "people/setup.html")


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """An account for whoever was invited."""
    return _enter(request, token, Pass.Kind.INVITATION, JoinForm(request.POST or None), "people/join.html")


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def reset(request: HttpRequest, token: str) -> HttpResponse:
    """A new password by the link that an administrator made."""
    try:
        person = services.check_pass(token, Pass.Kind.RESET).person
        if person is None:
            raise services.PassRefused
        form = ResetForm(person, request.POST or None)
        if request.method == "POST" and form.is_valid():
            person = services.reset_password(token, form.cleaned_data["password"])
            login(request, person, backend="django.contrib.auth.backends.ModelBackend")
            greeting = _("Welcome back, %(name)s. You are signed out everywhere else.") % {"name": person.name}
            messages.success(request, greeting)
            return redirect("new_thread")
    except services.PassRefused as refused:
        return render(request, "404.html", {"error": str(refused)}, status=404)
    context = {"form": form, "name": person.name}
    return render(request, "people/reset.html", context, status=422 if form.errors else 200)


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """E-mail and password; ten tries in five minutes from one address or for one account."""
    target = here_only(request, request.GET.get("next", ""))
    if request.user.is_authenticated:
        return redirect(target)
    form = SignInForm(request.POST or None)
    if request.method == "POST":
        email = request.POST.get("email", "")[:254].lower().strip()
        if not (may_try(request) and within(f"in:{email}", _TRIES, _WINDOW)):
            return sign_in_page(request, target=target, status=429, error=_(TOO_MANY))
        if form.is_valid() and form.person is not None:
            login(request, form.person)
            return redirect(target)
    return sign_in_page(request, form, target=target, status=422 if form.errors else 200)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("sign_in")


def _enter(request: HttpRequest, token: str, kind: str, form: JoinForm, template: str) -> HttpResponse:
    try:
        services.check_pass(token, kind)
        if request.method == "POST" and form.is_valid():
            fields = {name: form.cleaned_data[name] for name in ("name", "email", "password")}
            person = services.join(token, kind, **fields)
            if form.cleaned_data.get("model_from") == "endpoint":
                endpoint.save(
                    base_url=form.cleaned_data["base_url"],
                    api_key=form.cleaned_data["api_key"],
                    model=form.cleaned_data["model"],
                )
            login(request, person, backend="django.contrib.auth.backends.ModelBackend")
            messages.success(request, _("Welcome, %(name)s.") % {"name": person.name})
            return redirect("new_thread")
    except services.PassRefused as refused:
        return render(request, "404.html", {"error": str(refused)}, status=404)
    status = 422 if form.errors else 200
    if kind == Pass.Kind.INVITATION:
        return join_page(request, form, token=token, status=status)
    return render(request, template, {"form": form, "facts": facts()}, status=status)


def sign_in_page(
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
    return render(request, "people/sign_in.html", context, status=status)


def join_page(request: HttpRequest, form: JoinForm, *, token: str, status: int, error: str = "") -> HttpResponse:
    """The page behind an invitation."""
    context = {"form": form, "facts": facts(), "token": token, "error": error, "openid": openid.name()}
    return render(request, "people/join.html", context, status=status)


def here_only(request: HttpRequest, target: str) -> str:
    """The address to go to afterwards, if it is one of this Cato's."""
    is_here = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_here else "/"


def may_try(request: HttpRequest) -> bool:
    """Count a try from where this request comes; fifty in five minutes are let through."""
    return within(f"in:{request.META.get('REMOTE_ADDR', '')}", 5 * _TRIES, _WINDOW)


def facts() -> list[dict[str, str]]:
    """Where things are kept and what is sent where, from the configuration."""
    conf = settings.CATO
    remote = conf.vector_store.embedding_provider != "local"
    host = urlsplit(conf.vector_store.embedding_base_url or "").netloc or conf.vector_store.embedding_provider
    sent = ([host] if remote else []) + ([answering.host] if (answering := endpoint.current()) else [])
    here = _("on this machine")
    return [
        {"label": _("Memory"), "figure": here if conf.database_url is None else _("in your database")},
        {"label": _("Embeddings"), "figure": host if remote else here},
        {"label": _("Sent elsewhere"), "figure": _("to %(hosts)s") % {"hosts": listed(sent)} if sent else _("nothing")},
    ]
