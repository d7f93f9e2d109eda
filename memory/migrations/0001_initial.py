"""The tables of memory, and the full-text index that lexical search queries."""

import django.db.models.deletion
import memory.models.documents
import uuid
from django.conf import settings
from django.db import migrations, models


# SQLite: FTS5 over the analyser's terms. The `ascii` tokenizer splits at spaces only, since a term contains only letters
# and digits. Triggers update the index; a later migration that rebuilds memory_lexicalentry must create them again.
SQLITE = (
    """CREATE VIRTUAL TABLE memory_terms_index USING fts5(
        terms, content='memory_lexicalentry', content_rowid='id', tokenize='ascii', detail='none', columnsize=0)""",
    "CREATE VIRTUAL TABLE memory_terms_vocabulary USING fts5vocab('memory_terms_index', 'row')",
    """CREATE TRIGGER memory_terms_added AFTER INSERT ON memory_lexicalentry BEGIN
        INSERT INTO memory_terms_index(rowid, terms) VALUES (new.id, new.terms); END""",
    """CREATE TRIGGER memory_terms_removed AFTER DELETE ON memory_lexicalentry BEGIN
        INSERT INTO memory_terms_index(memory_terms_index, rowid, terms)
        VALUES ('delete', old.id, old.terms); END""",
    """CREATE TRIGGER memory_terms_changed AFTER UPDATE OF terms ON memory_lexicalentry BEGIN
        INSERT INTO memory_terms_index(memory_terms_index, rowid, terms)
        VALUES ('delete', old.id, old.terms);
        INSERT INTO memory_terms_index(rowid, terms) VALUES (new.id, new.terms); END""",
)
# PostgreSQL: a stored tsvector with a GIN index. The planner skips the index of a small table and then computes the
# tsvector of each row: 12 ms per term with 1,000 exchanges, .4 ms if it is stored (the table is twice as large).
# Without `fastupdate`, new terms enter the index at once. Otherwise each query reads the whole pending list, which took
# .6 of .7 ms per term with 1,024 pending of 100,000 exchanges.
POSTGRESQL = (
    """ALTER TABLE memory_lexicalentry ADD COLUMN lexemes tsvector
        GENERATED ALWAYS AS (array_to_tsvector(string_to_array(terms, ' '))) STORED""",
    "CREATE INDEX memory_terms_index ON memory_lexicalentry USING gin (lexemes) WITH (fastupdate = off)",
)


def create_fulltext_index(apps, schema_editor):
    for statement in SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Collection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=128, unique=True)),
                ('purge_needed_since', models.DateTimeField(help_text='since when its files may contain vectors of forgotten exchanges; null: none', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Evaluation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run', models.UUIDField(help_text='shared by the strategies of one run')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('strategy', models.CharField(max_length=40)),
                ('questions', models.PositiveIntegerField()),
                ('rephrased_by', models.CharField(help_text='the chat model or method that rephrased the questions', max_length=255)),
                ('k', models.PositiveSmallIntegerField()),
                ('recall', models.FloatField(help_text='share of questions whose exchange was among the first k')),
                ('empty', models.FloatField(help_text='share of questions for which the gate passed nothing')),
                ('median_ms', models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name='CachedEmbedding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('content_hash', models.CharField(max_length=64)),
                ('provider', models.CharField(max_length=20)),
                ('model', models.CharField(max_length=255)),
                ('vectors', models.BinaryField(help_text='float32, parts x dimension')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('content_hash', 'provider', 'model'), name='cached_once_a_model')],
            },
        ),
        migrations.CreateModel(
            name='Calibration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider', models.CharField(max_length=20)),
                ('model', models.CharField(max_length=255)),
                ('threshold', models.FloatField()),
                ('sample', models.PositiveIntegerField(help_text='exchanges it was fitted on')),
                ('at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('provider', 'model'), name='one_calibration_a_model')],
            },
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, max_length=255)),
                ('source', models.CharField(choices=[('chat', 'Chat'), ('vadd_command', 'Note'), ('vdoc_command', 'Server Folder'), ('upload', 'Upload'), ('cli', 'Cli'), ('import', 'Import'), ('api', 'Api')], max_length=12)),
                ('source_path', models.TextField(blank=True, help_text='absolute path of a file read from a folder of the server')),
                ('metadata', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('forgotten_at', models.DateTimeField(null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='DocumentVersion',
            fields=[
                ('state', models.CharField(choices=[('pending', 'Pending'), ('done', 'Done'), ('failed', 'Failed')], default='pending', max_length=7)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='incremented by each claim; fences writes of earlier owners')),
                ('due_at', models.DateTimeField()),
                ('locked_until', models.DateTimeField(null=True)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='failures of the work itself, without unavailable dependencies')),
                ('error', models.CharField(blank=True, max_length=300)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('stage', models.CharField(choices=[('received', 'Received'), ('reading', 'Reading'), ('chunking', 'Chunking'), ('embedding', 'Embedding'), ('ready', 'Ready'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('replaced', 'Replaced'), ('removed', 'Removed')], default='received', max_length=9)),
                ('original', models.FileField(blank=True, max_length=200, upload_to=memory.models.documents.storage_path)),
                ('size', models.PositiveBigIntegerField(help_text='bytes')),
                ('sha256', models.CharField(blank=True, help_text='SHA-256 of the bytes', max_length=64)),
                ('kind', models.CharField(blank=True, max_length=20)),
                ('title', models.CharField(blank=True, max_length=255)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('ready_at', models.DateTimeField(null=True)),
                ('removed_at', models.DateTimeField(help_text='when its file and chunks were deleted', null=True)),
                ('total_chunks', models.PositiveIntegerField(help_text='known after extraction', null=True)),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='memory.document')),
                ('uploaded_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddField(
            model_name='document',
            name='live_version',
            field=models.ForeignKey(help_text='the version whose chunks are searchable', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='memory.documentversion'),
        ),
        migrations.CreateModel(
            name='Exchange',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('thread_id', models.UUIDField(db_index=True, null=True)),
                ('session_id', models.UUIDField(db_index=True, null=True)),
                ('turn_id', models.UUIDField(null=True, unique=True)),
                ('thread_continuation_seq', models.PositiveIntegerField(default=0)),
                ('user_message', models.TextField()),
                ('assistant_message', models.TextField(blank=True)),
                ('timestamp', models.DateTimeField(help_text='time of the message, UTC')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('prior_exchange_ids', models.JSONField(default=list)),
                ('source', models.CharField(choices=[('chat', 'Chat'), ('vadd_command', 'Note'), ('vdoc_command', 'Server Folder'), ('upload', 'Upload'), ('cli', 'Cli'), ('import', 'Import'), ('api', 'Api')], max_length=12)),
                ('manual_entry', models.BooleanField(default=False)),
                ('source_file', models.CharField(blank=True, max_length=255)),
                ('chunk_index', models.PositiveIntegerField(null=True)),
                ('total_chunks', models.PositiveIntegerField(null=True)),
                ('metadata', models.JSONField(default=dict)),
                ('size', models.PositiveIntegerField(help_text='characters of both texts')),
                ('content_hash', models.CharField(blank=True, db_index=True, max_length=64)),
                ('version', models.PositiveIntegerField(default=1, help_text='incremented when the text changes; part of the vector ids')),
                ('is_inactive', models.BooleanField(default=False, help_text='on an inactive branch, or a chunk of a document version that is not live')),
                ('forgotten_at', models.DateTimeField(null=True)),
                ('erased_at', models.DateTimeField(null=True)),
                ('forgotten_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('previous', models.ForeignKey(help_text='the exchange before it in its session, or the chunk before it', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='following', to='memory.exchange')),
            ],
        ),
        migrations.CreateModel(
            name='ErasureJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('done', 'Done'), ('failed', 'Failed')], default='pending', max_length=7)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='incremented by each claim; fences writes of earlier owners')),
                ('due_at', models.DateTimeField()),
                ('locked_until', models.DateTimeField(null=True)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='failures of the work itself, without unavailable dependencies')),
                ('error', models.CharField(blank=True, max_length=300)),
                ('exchange', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='erasure', to='memory.exchange')),
            ],
        ),
        migrations.CreateModel(
            name='Chunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.PositiveIntegerField()),
                ('start', models.PositiveIntegerField(help_text='offset in the extracted text, in characters')),
                ('end', models.PositiveIntegerField()),
                ('separator', models.CharField(blank=True, help_text='white space before it, at most two characters', max_length=2)),
                ('location', models.CharField(blank=True, help_text='page, slide, sheet or heading', max_length=300)),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='memory.documentversion')),
                ('exchange', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='memory.exchange')),
            ],
        ),
        migrations.CreateModel(
            name='Feedback',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('pinned', 'always in the running'), ('irrelevant', 'never again for this person')], max_length=10)),
                ('at', models.DateTimeField(auto_now=True)),
                ('exchange', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='feedback', to='memory.exchange')),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='HiddenPassage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('start', models.PositiveIntegerField(help_text='offset in the extracted text, in characters')),
                ('location', models.CharField(blank=True, help_text='page, slide, sheet or heading', max_length=300)),
                ('text', models.TextField()),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='hidden_passages', to='memory.documentversion')),
            ],
        ),
        migrations.CreateModel(
            name='IndexGeneration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider', models.CharField(max_length=20)),
                ('model', models.CharField(max_length=255)),
                ('dimension', models.PositiveIntegerField(help_text='known after the first embedding', null=True)),
                ('state', models.CharField(choices=[('building', 'Building'), ('serving', 'Active'), ('retired', 'Retired')], max_length=8)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'serving')), fields=('state',), name='one_active_generation'), models.UniqueConstraint(condition=models.Q(('state', 'building')), fields=('state',), name='one_building_generation')],
            },
        ),
        migrations.CreateModel(
            name='EmbeddingJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('done', 'Done'), ('failed', 'Failed')], default='pending', max_length=7)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='incremented by each claim; fences writes of earlier owners')),
                ('due_at', models.DateTimeField()),
                ('locked_until', models.DateTimeField(null=True)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='failures of the work itself, without unavailable dependencies')),
                ('error', models.CharField(blank=True, max_length=300)),
                ('version', models.PositiveIntegerField(default=0, help_text='version of the exchange whose vectors are stored')),
                ('parts', models.PositiveSmallIntegerField(default=0, help_text='number of stored vectors')),
                ('collection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='embeddings', to='memory.collection')),
                ('exchange', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='embeddings', to='memory.exchange')),
                ('generation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='embeddings', to='memory.indexgeneration')),
            ],
        ),
        migrations.AddField(
            model_name='collection',
            name='generation',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='collections', to='memory.indexgeneration'),
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('member', 'Member'), ('manager', 'Manager')], default='member', max_length=8)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='MetadataValue',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=100)),
                ('is_member', models.BooleanField(default=False, help_text='a member of a list')),
                ('text', models.CharField(max_length=500, null=True)),
                ('number', models.FloatField(null=True)),
                ('boolean', models.BooleanField(null=True)),
                ('exchange', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='metadata_values', to='memory.exchange')),
            ],
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('state', models.CharField(choices=[('pending', 'Pending'), ('done', 'Done'), ('failed', 'Failed')], default='pending', max_length=7)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='incremented by each claim; fences writes of earlier owners')),
                ('due_at', models.DateTimeField()),
                ('locked_until', models.DateTimeField(null=True)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='failures of the work itself, without unavailable dependencies')),
                ('error', models.CharField(blank=True, max_length=300)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('forget', 'Forget exchanges'), ('documents', 'Delete documents'), ('retention', 'Forget what is too old'), ('backfill', 'Embed what has no vector'), ('reconcile', 'Compare database and index'), ('erase', 'Remove what was forgotten from the files')], max_length=9)),
                ('parameters', models.JSONField(default=dict, help_text='arguments, which depend on the kind')),
                ('created_at', models.DateTimeField()),
                ('total', models.PositiveIntegerField(help_text='number of items to process, if known', null=True)),
                ('processed', models.PositiveIntegerField(default=0)),
                ('counts', models.JSONField(default=dict, help_text='results by kind of item')),
                ('finished_at', models.DateTimeField(null=True)),
                ('cancelled_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddField(
            model_name='exchange',
            name='forgotten_by_operation',
            field=models.ForeignKey(help_text='the bulk operation that forgot it', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='forgotten', to='memory.operation'),
        ),
        migrations.CreateModel(
            name='RecallLogEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('turn_id', models.UUIDField()),
                ('rank', models.PositiveSmallIntegerField(help_text='number of its passage in the prompt')),
                ('similarity', models.FloatField(null=True)),
                ('score', models.FloatField()),
                ('strategy', models.CharField(max_length=40)),
                ('reason', models.CharField(max_length=300)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('exchange', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recalls', to='memory.exchange')),
            ],
        ),
        migrations.CreateModel(
            name='RetentionRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.CharField(choices=[('chat', 'Chat'), ('vadd_command', 'Note'), ('vdoc_command', 'Server Folder'), ('upload', 'Upload'), ('cli', 'Cli'), ('import', 'Import'), ('api', 'Api')], max_length=12, unique=True)),
                ('days', models.PositiveIntegerField()),
                ('set_at', models.DateTimeField(auto_now=True)),
                ('set_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Space',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('own', 'Only you'), ('group', 'Group'), ('team', 'Everyone')], max_length=5)),
                ('name', models.CharField(blank=True, max_length=80)),
                ('members', models.ManyToManyField(related_name='+', through='memory.Membership', to=settings.AUTH_USER_MODEL)),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Reveal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(max_length=300)),
                ('at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('space', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reveals', to='memory.space')),
            ],
        ),
        migrations.CreateModel(
            name='Record',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('vector', models.BinaryField(help_text='float32, as received; null: embedded from the text', null=True)),
                ('exchange', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='record', to='memory.exchange')),
                ('generation', models.ForeignKey(help_text='the generation whose dimension the vector has', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='memory.indexgeneration')),
                ('space', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memory.space')),
            ],
        ),
        migrations.CreateModel(
            name='MembershipChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('created', 'Created'), ('added', 'Added'), ('removed', 'Removed'), ('made_manager', 'Made Manager'), ('made_member', 'Made Member')], max_length=12)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('space', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='membership_changes', to='memory.space')),
            ],
        ),
        migrations.AddField(
            model_name='membership',
            name='space',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='memory.space'),
        ),
        migrations.CreateModel(
            name='LexicalEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('terms', models.TextField(help_text='in text order, separated by spaces')),
                ('length', models.PositiveIntegerField(db_index=True, help_text='number of terms')),
                ('exchange', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='lexical_entry', to='memory.exchange')),
                ('space', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memory.space')),
            ],
        ),
        migrations.AddField(
            model_name='exchange',
            name='space',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='memory.space'),
        ),
        migrations.AddField(
            model_name='document',
            name='space',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memory.space'),
        ),
        migrations.AddField(
            model_name='collection',
            name='space',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='memory.space'),
        ),
        migrations.AddIndex(
            model_name='documentversion',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['due_at'], name='version_due'),
        ),
        migrations.AddIndex(
            model_name='documentversion',
            index=models.Index(fields=['stage'], name='version_stage'),
        ),
        migrations.AddIndex(
            model_name='documentversion',
            index=models.Index(fields=['-ready_at'], name='version_ready'),
        ),
        migrations.AddConstraint(
            model_name='documentversion',
            constraint=models.UniqueConstraint(fields=('document', 'number'), name='one_version_of_a_number'),
        ),
        migrations.AddIndex(
            model_name='erasurejob',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['due_at'], name='erasure_due'),
        ),
        migrations.AddConstraint(
            model_name='chunk',
            constraint=models.UniqueConstraint(fields=('version', 'index'), name='one_chunk_at_a_place'),
        ),
        migrations.AddConstraint(
            model_name='feedback',
            constraint=models.UniqueConstraint(fields=('person', 'exchange'), name='one_feedback_an_exchange'),
        ),
        migrations.AddIndex(
            model_name='embeddingjob',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['due_at'], name='embedding_due'),
        ),
        migrations.AddConstraint(
            model_name='embeddingjob',
            constraint=models.UniqueConstraint(fields=('exchange', 'generation'), name='embedded_once_a_generation'),
        ),
        migrations.AddIndex(
            model_name='metadatavalue',
            index=models.Index(fields=['key', 'text'], name='memory_meta_key_581aee_idx'),
        ),
        migrations.AddIndex(
            model_name='metadatavalue',
            index=models.Index(fields=['key', 'number'], name='memory_meta_key_e3432d_idx'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['-created_at'], name='memory_oper_created_540698_idx'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['due_at'], name='operation_due'),
        ),
        migrations.AddConstraint(
            model_name='recalllogentry',
            constraint=models.UniqueConstraint(fields=('turn_id', 'exchange'), name='recalled_once_a_turn'),
        ),
        migrations.AddConstraint(
            model_name='space',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'own')), fields=('owner',), name='one_own_space_a_person'),
        ),
        migrations.AddConstraint(
            model_name='space',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'team')), fields=('kind',), name='one_team_space'),
        ),
        migrations.AddConstraint(
            model_name='space',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'own'), ('owner__isnull', False)), models.Q(('owner__isnull', True), models.Q(('kind', 'own'), _negated=True)), _connector='OR'), name='only_own_spaces_have_an_owner'),
        ),
        migrations.AddIndex(
            model_name='reveal',
            index=models.Index(fields=['by', 'ends_at'], name='memory_reve_by_id_a156b3_idx'),
        ),
        migrations.AddConstraint(
            model_name='record',
            constraint=models.UniqueConstraint(fields=('space', 'name'), name='one_record_of_a_name'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('space', 'person'), name='in_a_group_once'),
        ),
        migrations.AddIndex(
            model_name='exchange',
            index=models.Index(fields=['space', '-timestamp'], name='memory_exch_space_i_308cf1_idx'),
        ),
        migrations.AddIndex(
            model_name='exchange',
            index=models.Index(fields=['space', 'owner'], name='exchange_authors'),
        ),
        migrations.AddIndex(
            model_name='exchange',
            index=models.Index(condition=models.Q(('erased_at', None)), fields=['forgotten_at'], name='exchange_to_erase'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(fields=['space', '-created_at'], name='memory_docu_space_i_71a256_idx'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('forgotten_at', None)), fields=('space', 'name'), name='one_document_of_a_name'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('forgotten_at', None), models.Q(('source_path', ''), _negated=True)), fields=('space', 'source_path'), name='one_document_of_a_source_path'),
        ),
        migrations.AddConstraint(
            model_name='collection',
            constraint=models.UniqueConstraint(fields=('space', 'generation'), name='one_collection_a_space'),
        ),
        migrations.RunPython(create_fulltext_index, migrations.RunPython.noop),
    ]
