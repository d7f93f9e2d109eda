"""The index that proposes candidates by words: FTS5 on SQLite, GIN on PostgreSQL.

Both see the analyser's terms and nothing else, so neither may have ideas of its own about words: FTS5's `ascii`
tokenizer splits at the spaces alone, as long as a term holds only letters and digits, and an array of terms becomes a
tsvector without a parser. On SQLite the triggers keep the index; a later migration that has to remake memory_words must
make them again.
"""

from django.db import migrations

SQLITE = (
    """CREATE VIRTUAL TABLE memory_words_index USING fts5(
        terms, content='memory_words', content_rowid='id', tokenize='ascii', detail='none', columnsize=0)""",
    "CREATE VIRTUAL TABLE memory_words_vocabulary USING fts5vocab('memory_words_index', 'row')",
    """CREATE TRIGGER memory_words_added AFTER INSERT ON memory_words BEGIN
        INSERT INTO memory_words_index(rowid, terms) VALUES (new.id, new.terms); END""",
    """CREATE TRIGGER memory_words_removed AFTER DELETE ON memory_words BEGIN
        INSERT INTO memory_words_index(memory_words_index, rowid, terms) VALUES ('delete', old.id, old.terms); END""",
    """CREATE TRIGGER memory_words_changed AFTER UPDATE OF terms ON memory_words BEGIN
        INSERT INTO memory_words_index(memory_words_index, rowid, terms) VALUES ('delete', old.id, old.terms);
        INSERT INTO memory_words_index(rowid, terms) VALUES (new.id, new.terms); END""",
)
POSTGRESQL = (
    """CREATE INDEX memory_words_index ON memory_words
        USING gin (array_to_tsvector(string_to_array(terms, ' ')))""",
)


def make_index(apps, schema_editor):
    for statement in SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)


def drop_index(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for trigger in ("added", "removed", "changed"):
            schema_editor.execute(f"DROP TRIGGER memory_words_{trigger}")
        schema_editor.execute("DROP TABLE memory_words_vocabulary")
        schema_editor.execute("DROP TABLE memory_words_index")
    else:
        schema_editor.execute("DROP INDEX memory_words_index")


class Migration(migrations.Migration):
    dependencies = [("memory", "0002_words_and_metadata")]
    operations = [migrations.RunPython(make_index, drop_index)]
