"""Registers chat with Django and lets it hear what memory announces."""

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chat"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from chat import receivers  # noqa: F401  (connects the signal receivers)
