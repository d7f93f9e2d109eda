"""Registers people with Django, and lets the audit log hear what memory announces and the list of sign-ins who comes."""

from django.apps import AppConfig


class PeopleConfig(AppConfig):
    name = "cato_web.accounts"
    label = "people"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from cato_web.accounts import audit, login_sessions  # noqa: F401  (connects the signal receivers)
