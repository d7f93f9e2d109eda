"""What a person chooses for themselves, where they are signed in, and all of theirs as a file."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.people import offers, own_data, services, sign_ins
from cato_web.people.forms import ChoicesForm, PasswordForm
from cato_web.people.groups import groups_of
from cato_web.people.requests import PeoplePageRequest


@dataclass(frozen=True, slots=True)
class SignInRow:
    id: uuid.UUID
    browser: str
    since: datetime
    seen_at: datetime
    is_this: bool


@require_http_methods(["GET", "POST"])
def settings_page(request: PeoplePageRequest) -> HttpResponse:
    form = ChoicesForm(request.POST or None, instance=request.user, offer=offers.current())
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, "Saved.")
        return redirect("settings")
    sign_ins.note_seen(request, request.user)
    context = {"section": "settings", "form": form, "sign_ins": _rows(request), "groups": groups_of(request.user)}
    return render(request, "people/settings.html", context, status=422 if form.errors else 200)


@require_POST
def notify(request: PeoplePageRequest) -> HttpResponse:
    """Tell of answers that end while this person is elsewhere, or no longer."""
    request.user.is_notified = request.POST.get("notify") == "yes"
    request.user.save(update_fields=["is_notified"])
    messages.success(request, "You will be told." if request.user.is_notified else "You will not be told any more.")
    return redirect("settings")


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password(request: PeoplePageRequest) -> HttpResponse:
    form = PasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        services.change_password(request.user, form.cleaned_data["new"])
        sign_ins.renew(request, request.user)
        messages.success(request, "Your password is changed. Other sign-ins have ended.")
        return redirect("settings")
    context = {"section": "settings", "form": form}
    return render(request, "people/password.html", context, status=422 if form.errors else 200)


@require_POST
def end_sign_in(request: PeoplePageRequest) -> HttpResponse:
    """End the sign-in named, or all but this one."""
    which = request.POST.get("sign_in", "")
    if which == "others":
        services.sign_out_elsewhere(request.user)
        ended = sign_ins.renew(request, request.user)
        messages.success(request, f"Signed out everywhere else: {ended} ended." if ended else "There was no other.")
    elif _is_uuid(which) and sign_ins.end(request.user, uuid.UUID(which)):
        messages.success(request, "Signed out there.")
    else:
        messages.error(request, "That sign-in has ended already.")
    return redirect("settings")


@require_POST
def export_own(request: PeoplePageRequest) -> StreamingHttpResponse:
    """Everything of this person as a zip file, written as it is sent."""
    services.note(request.user, "exported own data", str(request.user.pk))
    response = StreamingHttpResponse(_in_turn(own_data.as_zip(request.user)), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="cato-{timezone.now():%Y-%m-%d}.zip"'
    response["Cache-Control"] = "private, no-store"
    return response


async def _in_turn(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces, each made beside the loop when the one before it was sent."""
    make = sync_to_async(lambda: next(pieces, None))
    while (piece := await make()) is not None:
        yield piece


def _rows(request: PeoplePageRequest) -> list[SignInRow]:
    this = request.session.session_key
    rows = [SignInRow(s.id, s.browser, s.since, s.seen_at, s.session_id == this) for s in sign_ins.listed(request.user)]
    return sorted(rows, key=lambda row: not row.is_this)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
