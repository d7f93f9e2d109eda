"""Tool servers: MCP servers whose tools the model may call."""

from __future__ import annotations

import uuid

from django.db import models


class ToolServer(models.Model):
    """An MCP server that an administrator added, with its tools as they were when the administrator last read them.

    The model is offered these tools only: what a server changes later counts after the next reading.
    """

    PERSONAL = "personal"  # in `allowed_in`: threads in personal spaces

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=40, unique=True)
    address = models.URLField(max_length=300, blank=True, help_text="empty: a command of the configuration file")
    encrypted_token = models.BinaryField(default=b"")
    tools = models.JSONField(default=list, help_text="`ServerTool` as JSON, in the order of the server")
    allowed_in = models.JSONField(default=list, help_text="ids of spaces in which its tools can be switched on")
    read_at = models.DateTimeField(null=True, help_text="when its tools were last read")
    error = models.CharField(max_length=300, blank=True, help_text="why they could not be read since then")

    class Meta:
        ordering = ["name"]
