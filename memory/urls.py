"""The addresses of memory."""

from django.urls import path

from memory.views import administration, document, documents, opinions, search, stats

urlpatterns = [
    path("search", search.search, name="search"),
    path("documents", documents.documents, name="documents"),
    path("d/<uuid:document_id>", document.document, name="document"),
    path("d/<uuid:document_id>/row", documents.row, name="document_row"),
    path("d/<uuid:document_id>/cancel", documents.cancel, name="cancel_document"),
    path("d/<uuid:document_id>/retry", documents.retry, name="retry_document"),
    path("d/<uuid:document_id>/describe", document.describe, name="describe_document"),
    path("d/<uuid:document_id>/move", document.move, name="move_document"),
    path("d/<uuid:document_id>/forget", document.forget, name="forget_document"),
    path("d/<uuid:document_id>/original/<int:number>", document.original, name="original"),
    path("stats", stats.stats, name="stats"),
    path("m/<uuid:exchange_id>/opinion", opinions.opinion, name="opinion"),
    path("admin/exchanges", administration.exchanges, name="admin_exchanges"),
    path("admin/exchanges/forget", administration.forget, name="admin_forget"),
    path("admin/jobs", administration.jobs, name="admin_jobs"),
    path("admin/jobs/retry", administration.retry, name="admin_retry"),
]
