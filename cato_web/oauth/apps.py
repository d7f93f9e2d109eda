"""App configuration of the authorization server."""

from django.apps import AppConfig


class OAuthConfig(AppConfig):
    """The app with the tables of registered clients and grants."""

    name = "cato_web.oauth"
    label = "oauth"
    default_auto_field = "django.db.models.BigAutoField"
