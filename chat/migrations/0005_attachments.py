"""Attach files of all kinds to messages: images become attachments, which may have a text and a document."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0004_receipt")]

    operations = [
        migrations.RenameModel("Image", "Attachment"),
        migrations.RenameField("turn", "images", "attachments"),
        migrations.AlterField(
            "attachment",
            "media_type",
            models.CharField(blank=True, help_text="of an image; empty: a document", max_length=20),
        ),
        migrations.AddField(
            "attachment",
            "text",
            models.TextField(
                blank=True, help_text="beginning of a document's text, for prompts; empty: an image"
            ),
        ),
        migrations.AddField(
            "attachment",
            "document_id",
            models.UUIDField(db_index=True, help_text="its document in memory", null=True),
        ),
        migrations.AddField(
            "attachment",
            "thread_id",
            models.UUIDField(
                db_index=True,
                help_text="first thread in which it was sent: it is stored, moved and forgotten there, not in copies",
                null=True,
            ),
        ),
    ]
