"""What a person chooses for themselves."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from cato_web.people import services
from cato_web.people.forms import ChoicesForm, PasswordForm
from cato_web.people.requests import PeoplePageRequest


@require_http_methods(["GET", "POST"])
def settings_page(request: PeoplePageRequest) -> HttpResponse:
    form = ChoicesForm(request.POST or None, instance=request.user)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, "Saved.")
        return redirect("settings")
    context = {"section": "settings", "form": form}
    return render(request, "people/settings.html", context, status=422 if form.errors else 200)


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password(request: PeoplePageRequest) -> HttpResponse:
    form = PasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        services.change_password(request.user, form.cleaned_data["new"])
        update_session_auth_hash(request, request.user)
        messages.success(request, "Your password is changed. Other sign-ins have ended.")
        return redirect("settings")
    context = {"section": "settings", "form": form}
    return render(request, "people/password.html", context, status=422 if form.errors else 200)
