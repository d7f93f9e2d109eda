"""The door by which workers come in: it takes nothing, decides nothing, may be gone through twice or late."""

from celery import shared_task

from chat.services import import_runs


@shared_task(name="chat.tasks.import_conversations")
def import_conversations() -> None:
    import_runs.work_on_imports()
