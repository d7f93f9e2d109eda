"""Small spaces share collections; each existing collection stays dedicated to its space."""

import django.db.models.deletion
from django.db import migrations, models


def place_spaces(apps, schema_editor):
    Placement = apps.get_model("memory", "Placement")
    collections = apps.get_model("memory", "Collection").objects.all()
    Placement.objects.bulk_create(
        Placement(collection_id=pk, space_id=space_id, generation_id=generation_id)
        for pk, space_id, generation_id in collections.values_list("pk", "space_id", "generation_id")
    )
    # PostgreSQL does not alter a table while a check of its foreign keys is pending.
    schema_editor.connection.check_constraints()


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Placement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_current', models.BooleanField(default=True)),
                ('vector_count', models.PositiveIntegerField(default=0, help_text='vectors of the space when last counted')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='placements', to='memory.collection')),
                ('generation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='placements', to='memory.indexgeneration')),
                ('space', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='placements', to='memory.space')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('is_current', False)), fields=['collection'], name='former_placement')],
                'constraints': [
                    models.UniqueConstraint(fields=('space', 'collection'), name='one_placement_a_collection'),
                    models.UniqueConstraint(condition=models.Q(('is_current', True)), fields=('space', 'generation'), name='one_current_placement'),
                ],
            },
        ),
        migrations.RunPython(place_spaces, migrations.RunPython.noop),
        migrations.RemoveConstraint(
            model_name='collection',
            name='one_collection_a_space',
        ),
        migrations.RemoveField(
            model_name='collection',
            name='space',
        ),
        migrations.AddField(
            model_name='collection',
            name='is_shared',
            field=models.BooleanField(default=False, help_text='holds the vectors of many small spaces'),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='collection',
            name='last_marked_at',
            field=models.DateTimeField(help_text='when it was last marked for purging', null=True),
        ),
        migrations.AlterField(
            model_name='collection',
            name='name',
            field=models.CharField(max_length=200, unique=True),
        ),
    ]
