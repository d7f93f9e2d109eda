"""The Django app."""

from django.apps import AppConfig


class ChatConfig(AppConfig):
    """Connects the receivers of memory's signals, and registers the jobs that administrators can retry."""

    name = "chat"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the signal receivers, and register failed imports."""
        from chat import receivers  # noqa: F401
        from chat.imports import jobs  # noqa: F401
