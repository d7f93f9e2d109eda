"""App configuration of the web application."""

from django.apps import AppConfig


class CatoConfig(AppConfig):
    """The app with commands, template tags and static files."""

    name = "cato_web"

    def ready(self) -> None:
        """Make the Celery application the current one, which every process that sends wake-ups needs."""
        from cato_web import celery  # noqa: F401
