"""The Django app."""

from django.apps import AppConfig


class ChatConfig(AppConfig):
    """Connects the receivers of memory's signals."""

    name = "chat"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the signal receivers."""
        from chat import receivers  # noqa: F401
