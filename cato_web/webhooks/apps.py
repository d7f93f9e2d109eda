"""App configuration of webhooks."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """The app with the table of webhooks."""

    name = "cato_web.webhooks"
    label = "webhooks"
