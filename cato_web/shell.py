"""What stands around every page: who is signed in, their threads, and the gravest thing to know."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from chat import access, endpoint
from chat.models import Thread, Turn
from memory import services as memory
from memory import store
from memory.errors import StoreDown

_MOST_THREADS = 60
_ASK_STORE_EVERY = 5.0
_store_state: tuple[float, bool] = (0.0, True)


@dataclass(frozen=True, slots=True)
class Banner:
    title: str
    text: str
    action_url: str = ""
    action_label: str = ""


@dataclass(frozen=True, slots=True)
class ThreadLink:
    id: uuid.UUID
    title: str
    url: str
    is_open: bool
    is_answering: bool
    is_remembered: bool
    space_kind: str
    space_name: str


@dataclass(frozen=True, slots=True)
class ThreadGroup:
    label: str
    threads: list[ThreadLink]


@dataclass(frozen=True, slots=True)
class Shell:
    person: object
    thread_groups: list[ThreadGroup]
    banner: Banner | None
    theme: str
    context_mode: str


def shell(request: HttpRequest) -> dict[str, Shell]:
    """The context processor: one object named `shell`."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"shell": Shell(None, [], None, "", settings.CATO.vector_store.context_mode)}
    return {
        "shell": Shell(
            person=user,
            thread_groups=_thread_groups(user.pk, request.path),
            banner=banner(user.is_administrator),
            theme=user.theme,
            context_mode=user.context_mode or settings.CATO.vector_store.context_mode,
        )
    }


def banner(is_administrator: bool) -> Banner | None:
    """The gravest of what is degraded, or None."""
    if not settings.CATO.vector_store.enabled:
        return Banner("Memory is switched off.", "Nothing is remembered or recalled, by the configuration.")
    if not store_answers():
        return Banner(
            "The index is down.", "Nothing can be recalled for now. What you say is kept and indexed when it is back."
        )
    models = memory.models_in_use()
    if models.differ:
        text = f"Memory answers with {models.serving}; {models.configured} is configured. Run reembed to change over."
        return Banner("The index is of another model.", text)
    if endpoint.current() is None:
        link = (reverse("model_settings"), "Connect a model") if is_administrator else ("", "")
        return Banner("Dummy mode.", "No model is connected: answers are placeholders and are not remembered.", *link)
    return None


def store_answers() -> bool:
    """Whether the vector store answered, asked at most every few seconds."""
    global _store_state
    asked, answered = _store_state
    if time.monotonic() - asked > _ASK_STORE_EVERY:
        try:
            store.ping()
            answered = True
        except StoreDown:
            answered = False
        _store_state = (time.monotonic(), answered)
    return answered


def _thread_groups(person_id: uuid.UUID, path: str) -> list[ThreadGroup]:
    listed = access.threads_of(person_id).filter(archived_at=None).select_related("space")
    pinned = list(listed.exclude(pinned_at=None).order_by("-pinned_at")[:_MOST_THREADS])
    rows = [*pinned, *listed.filter(pinned_at=None).order_by("-spoken_at")[:_MOST_THREADS]]
    answering = set(
        Turn.objects.filter(thread__in=[t.id for t in rows], state__in=Turn.ACTIVE).values_list("thread_id", flat=True)
    )
    groups: dict[str, list[ThreadLink]] = {}
    for thread in rows:
        link = _link(thread, path, thread.id in answering)
        groups.setdefault("Pinned" if thread.pinned_at else _group(thread.spoken_at), []).append(link)
    return [ThreadGroup(label, links) for label, links in groups.items()]


def _link(thread: Thread, path: str, is_answering: bool) -> ThreadLink:
    url = reverse("thread", args=[thread.id])
    return ThreadLink(
        id=thread.id,
        title=thread.title,
        url=url,
        is_open=path == url,
        is_answering=is_answering,
        is_remembered=thread.is_remembered,
        space_kind=thread.space.kind,
        space_name=thread.space.name,
    )


def _group(spoken_at: datetime) -> str:
    now = timezone.localtime()
    then = timezone.localtime(spoken_at)
    days = (now.date() - then.date()).days
    if days <= 0:
        return "Today"
    if days == 1:
        return "Yesterday"
    if days < 7:
        return "This week"
    return f"{then:%B}" if then.year == now.year else f"{then:%B %Y}"
