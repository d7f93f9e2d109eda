"""Celery tasks: wake-ups without arguments, which can arrive late or twice."""

from celery import shared_task

from chat.imports import worker


@shared_task(name="chat.tasks.import_conversations")
def import_conversations() -> None:
    """Run due imports."""
    worker.run_imports()
