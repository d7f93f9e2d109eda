from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0011_finish_reason'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='turn',
            name='by_program',
        ),
        migrations.AddField(
            model_name='turn',
            name='api_token_id',
            field=models.UUIDField(help_text='of a turn posted through the API: the token it was posted with', null=True),
        ),
        migrations.AddField(
            model_name='turn',
            name='requested_model',
            field=models.CharField(blank=True, help_text="by an API client; empty: the thread's", max_length=120),
        ),
    ]
