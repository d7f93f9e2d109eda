from django.db import migrations, models

import cato_web.accounts.acting_token


class Migration(migrations.Migration):

    dependencies = [
        ('people', '0003_presence'),
    ]

    operations = [
        migrations.AddField(
            model_name='auditentry',
            name='token_id',
            field=models.UUIDField(default=cato_web.accounts.acting_token.current_token_id, help_text='the API token through which a program acted; it may have been revoked', null=True),
        ),
    ]
