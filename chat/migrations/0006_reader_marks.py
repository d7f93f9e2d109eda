"""Pin, mute and archive threads per person: marks of the thread become those of its owner."""

from __future__ import annotations

from django.conf import settings
from django.db import migrations, models


def copy_to_owners(apps, schema_editor):
    """Give the owner of a pinned or archived thread a row with these marks."""
    Thread, ReaderMarks = apps.get_model("chat", "Thread"), apps.get_model("chat", "ReaderMarks")
    marked = Thread.objects.exclude(pinned_at=None, archived_at=None)
    rows = [
        ReaderMarks(
            person_id=thread.owner_id, thread=thread, pinned_at=thread.pinned_at, archived_at=thread.archived_at
        )
        for thread in marked.only("owner_id", "pinned_at", "archived_at").iterator()
    ]
    ReaderMarks.objects.bulk_create(
        rows,
        batch_size=200,
        update_conflicts=True,
        unique_fields=["person", "thread"],
        update_fields=["pinned_at", "archived_at"],
    )
    if schema_editor.connection.vendor == "postgresql":
        # Else the foreign keys of these rows are checked at the commit, and no table can be changed until then.
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0005_attachments"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RenameModel("ReadMarker", "ReaderMarks"),
        migrations.AlterField(
            "ReaderMarks",
            "thread",
            models.ForeignKey("chat.thread", on_delete=models.CASCADE, related_name="reader_marks"),
        ),
        migrations.AlterField("ReaderMarks", "last_read_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "ReaderMarks",
            "pinned_at",
            models.DateTimeField(null=True, help_text="when they pinned it to the top of their list"),
        ),
        migrations.AddField(
            "ReaderMarks",
            "muted_at",
            models.DateTimeField(null=True, help_text="when they muted it: no unread marks, no notifications"),
        ),
        migrations.AddField(
            "ReaderMarks",
            "archived_at",
            models.DateTimeField(null=True, help_text="when they removed it from their list"),
        ),
        migrations.RunPython(copy_to_owners, migrations.RunPython.noop),
        migrations.RemoveIndex("Thread", "thread_pinned"),
        migrations.RemoveField("Thread", "pinned_at"),
        migrations.RemoveField("Thread", "archived_at"),
        migrations.AddIndex(
            "ReaderMarks",
            models.Index(fields=["person"], condition=models.Q(pinned_at__isnull=False), name="thread_pinned_by"),
        ),
        migrations.AddIndex(
            "ReaderMarks",
            models.Index(fields=["person"], condition=models.Q(archived_at__isnull=False), name="thread_archived_by"),
        ),
    ]
