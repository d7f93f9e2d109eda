"""URLs of the whole site."""

from django.urls import include, path

from cato_web import health, installable
from cato_web.cli import views as cli
from cato_web.stats import views as stats

urlpatterns = [
    path("healthz", health.healthz, name="alive"),
    path("readyz", health.readyz, name="ready"),
    path("metrics", health.metrics, name="metrics"),
    path("cli", cli.run_command, name="cli"),
    path("favicon.ico", installable.favicon, name="favicon"),
    path("manifest.webmanifest", installable.manifest, name="manifest"),
    path("service-worker.js", installable.service_worker, name="service_worker"),
    path("offline", installable.offline, name="offline"),
    path("stats", stats.stats, name="stats"),
    path("", include("cato_web.api.urls")),
    path("", include("chat.urls")),
    path("", include("memory.urls")),
    path("v1/", include("cato_web.openai_api.urls")),
    path("", include("cato_web.accounts.urls")),
    path("", include("cato_web.usage.urls")),
    path("", include("cato_web.oauth.urls")),
]

handler400 = "cato_web.errors.bad_request"
handler403 = "cato_web.errors.forbidden"
handler404 = "cato_web.errors.not_found"
