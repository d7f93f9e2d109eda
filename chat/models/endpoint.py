"""The model endpoint."""

from __future__ import annotations

from django.db import models


class Endpoint(models.Model):
    """The model endpoint of the settings page, with an encrypted API key."""

    base_url = models.URLField(max_length=300, blank=True)
    encrypted_key = models.BinaryField(default=b"")
    model = models.CharField(max_length=120, blank=True)
    changed_at = models.DateTimeField(auto_now=True)
