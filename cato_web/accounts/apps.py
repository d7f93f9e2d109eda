"""App configuration of accounts."""

from django.apps import AppConfig


class PeopleConfig(AppConfig):
    """The app; its label keeps the names of tables and migrations."""

    name = "cato_web.accounts"
    label = "people"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the signal receivers of the audit log and of login sessions."""
        from cato_web.accounts import audit, login_sessions  # noqa: F401
