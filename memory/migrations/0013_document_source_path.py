from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0012_group_managers'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='document',
            name='source_path',
            field=models.TextField(blank=True, help_text='absolute, of a file read from a folder of this machine'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('forgotten_at', None), models.Q(('source_path', ''), _negated=True)), fields=('space', 'source_path'), name='one_document_of_a_source_path'),
        ),
    ]
