"""The doors by which workers come in: they take nothing, decide nothing, may run twice or late."""

from celery import shared_task

from memory import services
from memory.services import operations


@shared_task(name="memory.tasks.index_pending")
def index_pending() -> None:
    services.index_pending()
    services.serve_complete()


@shared_task(name="memory.tasks.erase_forgotten")
def erase_forgotten() -> None:
    services.erase_forgotten()


@shared_task(name="memory.tasks.read_documents")
def read_documents() -> None:
    services.read_documents()


@shared_task(name="memory.tasks.run_operations")
def run_operations() -> None:
    operations.run_operations()


@shared_task(name="memory.tasks.tidy_documents")
def tidy_documents() -> None:
    services.tidy_documents()
