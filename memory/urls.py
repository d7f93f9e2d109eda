"""The addresses of memory."""

from django.urls import path

from memory.views import document, documents, feedback, notes
from memory.views.administration import documents as admin_documents
from memory.views.administration import exchanges, jobs, operations, retention, reveals

urlpatterns = [
    path("documents", documents.documents, name="documents"),
    path("notes", notes.notes, name="notes"),
    path("d/<uuid:document_id>", document.document, name="document"),
    path("d/<uuid:document_id>/row", documents.row, name="document_row"),
    path("d/<uuid:document_id>/cancel", documents.cancel, name="cancel_document"),
    path("d/<uuid:document_id>/retry", documents.retry, name="retry_document"),
    path("d/<uuid:document_id>/describe", document.describe, name="set_document_metadata"),
    path("d/<uuid:document_id>/move", document.move, name="move_document"),
    path("d/<uuid:document_id>/forget", document.forget, name="forget_document"),
    path("d/<uuid:document_id>/original/<int:number>", document.original, name="document_original"),
    path("m/<uuid:exchange_id>/feedback", feedback.feedback, name="feedback"),
    path("m/<uuid:exchange_id>/superseded/<uuid:later_id>", feedback.supersession, name="supersession"),
    path("admin/exchanges", exchanges.exchanges, name="admin_exchanges"),
    path("admin/exchanges/forget", exchanges.forget, name="admin_forget"),
    path("admin/exchanges/export", exchanges.export, name="admin_export"),
    path("admin/documents", admin_documents.documents, name="admin_documents"),
    path("admin/documents/forget", admin_documents.forget, name="admin_forget_documents"),
    path("admin/jobs", jobs.jobs, name="admin_jobs"),
    path("admin/jobs/retry", jobs.retry, name="admin_retry"),
    path("admin/operations", operations.all_operations, name="admin_operations"),
    path("admin/operations/<uuid:operation_id>", operations.operation, name="admin_operation"),
    path("admin/operations/<uuid:operation_id>/cancel", operations.cancel, name="cancel_operation"),
    path("admin/operations/<uuid:operation_id>/retry", operations.retry, name="retry_operation"),
    path("admin/retention", retention.rules, name="admin_retention"),
    path("admin/reveal/<uuid:space_id>", reveals.reveal, name="reveal"),
    path("admin/reveals/<int:reveal_id>/end", reveals.end_reveal, name="end_reveal"),
]
