"""Whether this process is alive, whether all it leans on is there, and its figures for Prometheus."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from cato_web import readiness
from cato_web.config.schema import is_loopback


@login_not_required
@require_GET
def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
@require_GET
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Each dependency with its state: 503 where no page can be served, 200 where less is said to work."""
    found = readiness.check_readiness()
    return JsonResponse(found.as_json(), status=503 if found.state == readiness.DOWN else 200)


@login_not_required
@require_GET
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Figures only, no names: for whoever knows the token, or, where none is set, asks on this machine itself."""
    if not _is_authorized_scraper(request):
        return HttpResponse("The figures are for who watches over this Cato.\n", status=403, content_type="text/plain")
    from cato_web.metrics import CONTENT_TYPE, exposition

    return HttpResponse(exposition(), content_type=CONTENT_TYPE)


def _is_authorized_scraper(request: HttpRequest) -> bool:
    token = settings.CATO.server.metrics_token
    if token is not None:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode("utf-8", "replace"), token.get_secret_value().encode())
    # What a proxy hands on comes from elsewhere, even where the proxy is on this machine.
    is_handed_on = "X-Forwarded-For" in request.headers or "X-Forwarded-Proto" in request.headers
    return not is_handed_on and is_loopback(request.META.get("REMOTE_ADDR", ""))
