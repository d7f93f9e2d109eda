"""Configuration of the Django application."""

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    """The application `memory`."""

    name = "memory"
    default_auto_field = "django.db.models.BigAutoField"
