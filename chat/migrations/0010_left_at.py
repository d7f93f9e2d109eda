"""When a person last closed a page of a thread."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0009_generation_options"),
    ]

    operations = [
        migrations.AddField(
            model_name="readermarks",
            name="left_at",
            field=models.DateTimeField(help_text="when they last closed a page of the thread", null=True),
        ),
    ]
