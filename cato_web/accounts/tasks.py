"""Celery tasks: wake-ups without arguments, which can arrive late or twice."""

from celery import shared_task

from cato_web.accounts.export import worker


@shared_task(name="cato_web.accounts.tasks.export_accounts")
def export_accounts() -> None:
    """Run due exports."""
    worker.run_exports()
