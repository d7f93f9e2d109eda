"""Celery tasks: wake-ups without arguments, which can arrive late or twice."""

from celery import shared_task

from cato_web.webhooks import delivery


@shared_task(name="cato_web.webhooks.tasks.deliver_webhooks")
def deliver_webhooks() -> None:
    """Send the events of due webhooks."""
    delivery.deliver_due()
