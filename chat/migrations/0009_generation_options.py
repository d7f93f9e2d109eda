"""Options of the model that an API client requested for an answer."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0008_saved_prompts")]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="generation_options",
            field=models.JSONField(
                default=dict,
                help_text="options of the model that an API client requested, such as `stop` and `response_format`",
            ),
        ),
    ]
