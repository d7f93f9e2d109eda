"""Context of every page: the user, their threads and the most important warning."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _

from cato_web.accounts import login_sessions
from chat.llm import endpoint
from chat.rows.sidebar import ThreadList, thread_list
from memory import api as memory
from memory.api import VectorStoreUnavailableError

_STORE_CHECK_INTERVAL = 5.0
_store_state: tuple[float, bool] = (0.0, True)
_progress: tuple[float, memory.ReindexProgress | None] = (0.0, None)


@dataclass(frozen=True, slots=True)
class Banner:
    """A warning, optionally with a link."""

    title: str
    text: str
    action_url: str = ""
    action_label: str = ""


@dataclass(frozen=True, slots=True)
class PageContext:
    """Data of the base template; `person` is None before login."""

    person: object
    thread_list: ThreadList | None
    banner: Banner | None
    theme: str
    density: str
    context_mode: str
    is_notified: bool
    new_thread_url: str


def page_context(request: HttpRequest) -> dict[str, object]:
    """Return the page context under the name `shell`; it is read when a template uses it, which fragments do not."""
    return {"shell": SimpleLazyObject(lambda: _read_context(request))}


def _read_context(request: HttpRequest) -> PageContext:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return PageContext(None, None, None, "", "", settings.CATO.vector_store.context_mode, False, "")
    login_sessions.touch(request, user)
    return PageContext(
        person=user,
        thread_list=thread_list(user.pk, _open_thread(request)),
        banner=banner(request, user.is_administrator),
        theme=user.theme,
        density=user.density,
        context_mode=user.context_mode or settings.CATO.vector_store.context_mode,
        is_notified=user.is_notified,
        new_thread_url=reverse("new_thread"),
    )


def _open_thread(request: HttpRequest) -> uuid.UUID | None:
    match = request.resolver_match
    return match.kwargs.get("thread_id") if match is not None and match.url_name == "thread" else None


def banner(request: HttpRequest, is_administrator: bool) -> Banner | None:
    """Return the most important warning, or None."""
    if not settings.CATO.vector_store.enabled:
        return Banner(
            _("Memory is disabled."),
            _("The configuration disables it (vector_store.enabled): nothing is saved to memory or recalled."),
        )
    if not is_vector_store_up():
        return Banner(
            _("The search index is down."),
            _("Recall uses keywords only until it is back. New exchanges are kept and indexed then."),
        )
    models = memory.embedding_model_status()
    if not models.is_active_installed:
        return _missing_model_banner(models)
    if models.differ and memory.is_reindexing():
        text = _("The search index is being rebuilt with %(configured)s; %(serving)s is used until then.")
        facts = {"serving": models.active, "configured": models.configured}
        return Banner(_("Embedding model changed."), text % facts + _progress_text())
    if models.differ:
        text = _("%(configured)s is configured. Run `reembed` to switch; %(serving)s is used until then.")
        facts = {"serving": models.active, "configured": models.configured}
        return Banner(_("Embedding model changed."), text % facts)
    if endpoint.of_request(request) is None:
        link = (reverse("model_settings"), _("Connect a model")) if is_administrator else ("", "")
        text = _("No model is connected: answers are placeholders and are not remembered.")
        return Banner(_("Dummy mode."), text, *link)
    return None


def _missing_model_banner(models: memory.EmbeddingModelStatus) -> Banner:
    """Return the warning that the model of the index is no longer installed, and what happens now."""
    if not models.is_configured_installed:
        text = _(
            "Until it is installed with `make model`, or vector_store.embedding_model names another one, search and recall "
            "compare keywords instead of meaning. Nothing is lost."
        )
        return Banner(_("The embedding model %(model)s is not installed.") % {"model": models.configured}, text)
    text = _(
        "Its embedding model is no longer installed, so a new index is built. Until it is complete, search and recall "
        "compare keywords instead of meaning. Nothing is lost."
    )
    return Banner(_("The search index is being rebuilt."), text + _progress_text())


def _progress_text() -> str:
    """Return how far the new index is and how long it still takes, cached for five seconds."""
    global _progress
    checked_at, progress = _progress
    if time.monotonic() - checked_at > _STORE_CHECK_INTERVAL:
        progress = memory.reindex_progress()
        _progress = (time.monotonic(), progress)
    if progress is None:
        return ""
    facts = {
        "done": memory.format_number(progress.total - progress.waiting),
        "total": memory.format_number(progress.total),
        "remaining": memory.format_remaining(progress.remaining),
    }
    text = (
        _("%(done)s of %(total)s exchanges are indexed, %(remaining)s.")
        if facts["remaining"]
        else _("%(done)s of %(total)s exchanges are indexed.")
    )
    return f" {text % facts}"


def is_vector_store_up() -> bool:
    """Return whether the vector store responds, cached for five seconds."""
    global _store_state
    checked_at, is_up = _store_state
    if time.monotonic() - checked_at > _STORE_CHECK_INTERVAL:
        try:
            memory.ping_vector_store()
            is_up = True
        except VectorStoreUnavailableError:
            is_up = False
        _store_state = (time.monotonic(), is_up)
    return is_up
