"""The door by which workers come in: it takes nothing, decides nothing, may be gone through twice or late."""

from celery import shared_task

from chat.imports import worker


@shared_task(name="chat.tasks.import_conversations")
def import_conversations() -> None:
    worker.run_imports()
