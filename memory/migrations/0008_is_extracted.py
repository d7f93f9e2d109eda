from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Q


def mark_extracted(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Mark the exchanges that were read, and statements."""
    exchanges = apps.get_model("memory", "Exchange").objects
    read = apps.get_model("memory", "ExtractedExchange").objects.values("exchange_id")
    exchanges.filter(Q(pk__in=read) | Q(source="knowledge")).update(is_extracted=True)


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0007_knowledge'),
    ]

    operations = [
        migrations.AddField(
            model_name='exchange',
            name='is_extracted',
            field=models.BooleanField(default=False, help_text='extraction has read it, or it is a statement; unset when it is to be read again'),
        ),
        migrations.RunPython(mark_extracted, migrations.RunPython.noop),
        migrations.DeleteModel(name='ExtractedExchange'),
        migrations.AddIndex(
            model_name='exchange',
            index=models.Index(condition=models.Q(('forgotten_at', None), ('is_extracted', False)), fields=['space', 'timestamp'], name='exchange_unread'),
        ),
    ]
