from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0012_api_origin'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='turn',
            name='is_missing_in_memory',
            field=models.BooleanField(default=False, help_text='answered while the vector store was disabled; `backfill --from-history` stores it'),
        ),
        migrations.AddIndex(
            model_name='turn',
            index=models.Index(condition=models.Q(('is_missing_in_memory', True)), fields=['created_at'], name='turn_missing_in_memory'),
        ),
    ]
