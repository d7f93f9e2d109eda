"""Levels that were fitted go: the gate measures its evidence against other ranks now, and they mean nothing to it."""

from django.db import migrations


def remove(apps, schema_editor):
    apps.get_model("memory", "Calibration").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [("memory", "0007_operations")]
    operations = [migrations.RunPython(remove, migrations.RunPython.noop)]
