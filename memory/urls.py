"""The addresses of memory."""

from django.urls import path

from memory.views import administration, opinions, search, stats

urlpatterns = [
    path("search", search.search, name="search"),
    path("stats", stats.stats, name="stats"),
    path("m/<uuid:exchange_id>/opinion", opinions.opinion, name="opinion"),
    path("admin/exchanges", administration.exchanges, name="admin_exchanges"),
    path("admin/exchanges/forget", administration.forget, name="admin_forget"),
    path("admin/jobs", administration.jobs, name="admin_jobs"),
    path("admin/jobs/retry", administration.retry, name="admin_retry"),
]
