"""Registers the whole with Django; every process that may tell a worker something needs the Celery application."""

from django.apps import AppConfig


class CatoConfig(AppConfig):
    name = "cato_web"

    def ready(self) -> None:
        from cato_web import celery  # noqa: F401  (becomes the current application)
