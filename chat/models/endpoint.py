"""Model endpoints, and the models that new threads of a space use."""

from __future__ import annotations

from django.db import models


class Endpoint(models.Model):
    """A model endpoint with an encrypted API key, and which spaces' text it may receive.

    The first endpoint has an empty name; its address, key and model may be configured elsewhere. A removed one keeps its
    row, so that a model that was chosen from it is never taken for one of another endpoint.
    """

    class Policy(models.TextChoices):
        ALL = "all"
        NONE = "none"
        LISTED = "listed"

    name = models.CharField(max_length=30, blank=True, default="", unique=True)
    base_url = models.URLField(max_length=300, blank=True)
    encrypted_key = models.BinaryField(default=b"")
    model = models.CharField(max_length=120, blank=True)
    location = models.CharField(max_length=60, blank=True, help_text="where it runs, as people read it")
    policy = models.CharField(max_length=6, choices=Policy.choices, default=Policy.ALL)
    allowed_in = models.JSONField(
        default=list, help_text='if listed: ids of the spaces whose text it may receive, and "personal"'
    )
    fallback = models.CharField(
        max_length=30,
        null=True,
        help_text="name of the endpoint that is asked if this one does not answer; empty: the first one; null: none",
    )
    changed_at = models.DateTimeField(auto_now=True)
    removed_at = models.DateTimeField(null=True)


class SpaceModel(models.Model):
    """The model of new threads in a space, as threads store it; it precedes the default of the person who writes."""

    space = models.OneToOneField("memory.Space", on_delete=models.CASCADE, primary_key=True, related_name="+")
    model = models.CharField(max_length=120)
