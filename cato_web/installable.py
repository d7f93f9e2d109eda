"""What makes Cato installable as an app: a manifest, and a service worker that shows a page when Cato is unreachable."""

from __future__ import annotations

import hashlib

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from cato_web.templatetags.bundles import addresses_of

ICON = "favicon.svg"


@login_not_required
@require_GET
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon, which browsers request here for what cannot name one, such as JSON or a text file."""
    return redirect(static(ICON))


@login_not_required
@require_GET
def manifest(request: HttpRequest) -> JsonResponse:
    """Return the web app manifest (https://www.w3.org/TR/appmanifest/)."""
    return JsonResponse(
        {
            "id": "/",
            "name": "Cato",
            "description": _("Chat for a team, with a memory."),
            "start_url": reverse("new_thread"),
            "scope": "/",
            "display": "standalone",
            "background_color": "#ffffff",
            "theme_color": "#ffffff",
            "icons": [
                {"src": static(ICON), "type": "image/svg+xml", "sizes": "any"},
                {"src": static("icons/192.png"), "type": "image/png", "sizes": "192x192"},
                {"src": static("icons/512.png"), "type": "image/png", "sizes": "512x512"},
                {"src": static("icons/512.png"), "type": "image/png", "sizes": "512x512", "purpose": "maskable"},
            ],
            "share_target": {
                "action": reverse("notes"),
                "method": "GET",
                "params": {name: name for name in ("title", "text", "url")},
            },
            "shortcuts": [
                {"name": _("New thread"), "url": reverse("new_thread")},
                {"name": _("Search"), "url": reverse("search")},
            ],
        },
        content_type="application/manifest+json",
    )


@login_not_required
@require_GET
def offline(request: HttpRequest) -> HttpResponse:
    """Show that Cato cannot be reached. Browsers keep this page, so it contains nothing of the person."""
    return render(request, "offline.html")


@login_not_required
@require_GET
@never_cache
def service_worker(request: HttpRequest) -> HttpResponse:
    """Return the service worker. Its text changes with the offline page, whose new version is fetched then."""
    page = render_to_string("offline.html")
    return render(
        request,
        "service-worker.js",
        {
            "version": hashlib.sha256(page.encode()).hexdigest()[:16],
            "files": [reverse("offline"), static(ICON), *addresses_of("css/cato.css"), *addresses_of("css/pages.css")],
        },
        content_type="text/javascript",
    )
