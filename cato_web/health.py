"""Endpoints for liveness, readiness and Prometheus metrics."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from cato_web import readiness
from cato_web.config.fields import is_loopback


@login_not_required
@require_GET
def healthz(request: HttpRequest) -> HttpResponse:
    """Respond with 200 while the process is alive."""
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
@require_GET
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Show the state of each dependency: 503 without the database, otherwise 200."""
    result = readiness.check_readiness()
    return JsonResponse(result.as_json(), status=503 if result.state == readiness.DOWN else 200)


@login_not_required
@require_GET
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return metrics without names, to clients with the metrics token or, if none is configured, on this machine."""
    if not _is_authorized_scraper(request):
        return HttpResponse(
            "Send the configured metrics token, or ask from this machine.\n", status=403, content_type="text/plain"
        )
    from cato_web.metrics import CONTENT_TYPE, exposition

    return HttpResponse(exposition(), content_type=CONTENT_TYPE)


def _is_authorized_scraper(request: HttpRequest) -> bool:
    token = settings.CATO.server.metrics_token
    if token is not None:
        sent_token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(sent_token.encode("utf-8", "replace"), token.get_secret_value().encode())
    return is_from_this_machine(request)


def is_from_this_machine(request: HttpRequest) -> bool:
    """Return whether the request was sent on this machine; one that a proxy forwarded comes from elsewhere."""
    is_forwarded = "X-Forwarded-For" in request.headers or "X-Forwarded-Proto" in request.headers
    return not is_forwarded and is_loopback(request.META.get("REMOTE_ADDR", ""))
