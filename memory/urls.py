"""The addresses of memory."""

from django.urls import path

from memory.views import administration, search, stats

urlpatterns = [
    path("search", search.search, name="search"),
    path("stats", stats.stats, name="stats"),
    path("admin/exchanges", administration.exchanges, name="admin_exchanges"),
    path("admin/exchanges/forget", administration.forget, name="admin_forget"),
    path("admin/jobs", administration.jobs, name="admin_jobs"),
    path("admin/jobs/retry", administration.retry, name="admin_retry"),
]
