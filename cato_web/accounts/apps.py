"""App configuration of accounts."""

from django.apps import AppConfig


class PeopleConfig(AppConfig):
    """The app; its label keeps the names of tables and migrations."""

    name = "cato_web.accounts"
    label = "people"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the signal receivers of the audit log, of login sessions and of exports, and register failed exports."""
        from cato_web.accounts import audit, login_sessions  # noqa: F401
        from cato_web.accounts.export import jobs, receivers  # noqa: F401
