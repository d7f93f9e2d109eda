"""Celery tasks: wake-ups without arguments, which can arrive late or twice."""

from celery import shared_task

from chat.digests import worker as digest_worker
from chat.imports import worker
from chat.knowledge import worker as knowledge_worker


@shared_task(name="chat.tasks.import_conversations")
def import_conversations() -> None:
    """Run due imports."""
    worker.run_imports()


@shared_task(name="chat.tasks.extract_statements")
def extract_statements() -> None:
    """Extract statements from the spaces that are due."""
    knowledge_worker.run_extractions()


@shared_task(name="chat.tasks.post_digests")
def post_digests() -> None:
    """Post and answer the digests that are due."""
    digest_worker.run_digests()
