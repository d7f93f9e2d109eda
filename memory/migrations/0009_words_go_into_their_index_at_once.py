"""On PostgreSQL the words of an exchange go into the index as it is kept, instead of waiting in a list beside it.

Every term that is looked up reads the whole of that list: .6 of .7 ms each where 1,024 of 100,000 exchanges had come
since it was last emptied, which autovacuum does after a tenth more. To enter the terms of an exchange at once takes
less than a millisecond, and to embed it fifteen.
"""

from django.db import migrations

FORWARDS = (
    "ALTER INDEX memory_words_index SET (fastupdate = off)",
    "SELECT gin_clean_pending_list('memory_words_index'::regclass)",
)


def enter(apps, schema_editor):
    if schema_editor.connection.vendor != "sqlite":
        for statement in FORWARDS:
            schema_editor.execute(statement)


def let_wait(apps, schema_editor):
    if schema_editor.connection.vendor != "sqlite":
        schema_editor.execute("ALTER INDEX memory_words_index RESET (fastupdate)")


class Migration(migrations.Migration):
    dependencies = [("memory", "0008_levels_of_another_gate")]
    operations = [migrations.RunPython(enter, let_wait)]
