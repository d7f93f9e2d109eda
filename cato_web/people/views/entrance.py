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
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.people import services
from cato_web.people.forms import JoinForm, ResetForm, SetUpForm, SignInForm
from cato_web.people.models import Pass
from chat import endpoint
from chat.throttle import within

_TRIES, _WINDOW = 10, 300


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
            messages.success(request, f"Welcome back, {person.name}. You are signed out everywhere else.")
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
    target = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}):
        target = "/"
    if request.user.is_authenticated:
        return redirect(target)
    form = SignInForm(request.POST or None)
    if request.method == "POST":
        address = request.META.get("REMOTE_ADDR", "")
        email = request.POST.get("email", "")[:254].lower().strip()
        if not (within(f"in:{address}", 5 * _TRIES, _WINDOW) and within(f"in:{email}", _TRIES, _WINDOW)):
            form = SignInForm()
            context = {"form": form, "error": "Too many tries. Wait five minutes and try again."}
            return render(request, "people/sign_in.html", context, status=429)
        if form.is_valid() and form.person is not None:
            login(request, form.person)
            return redirect(target)
    context = {"form": form, "is_set_up": services.is_set_up()}
    return render(request, "people/sign_in.html", context, status=422 if form.errors else 200)


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
            messages.success(request, f"Welcome, {person.name}.")
            return redirect("new_thread")
    except services.PassRefused as refused:
        return render(request, "404.html", {"error": str(refused)}, status=404)
    context = {"form": form, "facts": facts()}
    return render(request, template, context, status=422 if form.errors else 200)


def facts() -> list[dict[str, str]]:
    """Where things are kept and what is sent where, from the configuration."""
    conf = settings.CATO
    remote = conf.vector_store.embedding_provider != "local"
    host = urlsplit(conf.vector_store.embedding_base_url or "").netloc or conf.vector_store.embedding_provider
    sent = ([host] if remote else []) + ([answering.host] if (answering := endpoint.current()) else [])
    return [
        {"label": "Memory", "figure": "on this machine" if conf.database_url is None else "in your database"},
        {"label": "Embeddings", "figure": host if remote else "on this machine"},
        {"label": "Sent elsewhere", "figure": f"to {' and '.join(sent)}" if sent else "nothing"},
    ]
