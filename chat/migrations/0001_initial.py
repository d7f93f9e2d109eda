"""The tables of chat."""

import chat.models
import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('memory', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('base_url', models.URLField(blank=True, max_length=300)),
                ('encrypted_key', models.BinaryField(default=b'')),
                ('model', models.CharField(blank=True, max_length=120)),
                ('changed_at', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.CreateModel(
            name='Image',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('file', models.FileField(max_length=120, upload_to=chat.models.place_of_attachment)),
                ('name', models.CharField(max_length=200)),
                ('media_type', models.CharField(max_length=20)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['created_at'],
            },
        ),
        migrations.CreateModel(
            name='Thread',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('title', models.CharField(max_length=200)),
                ('title_source', models.CharField(choices=[('first', 'the first message'), ('model', 'the model'), ('own', 'a user')], default='first', max_length=5)),
                ('is_remembered', models.BooleanField(default=True)),
                ('model', models.CharField(blank=True, help_text='empty: the configured model', max_length=120)),
                ('recall_filter', models.JSONField(default=dict, help_text='documents and metadata that recall is limited to; empty: no limit')),
                ('instructions', models.TextField(blank=True, help_text='system messages of an API client, added to the base prompt')),
                ('opening_hash', models.CharField(blank=True, help_text="hash of the first message of an API client's conversation, used to find it", max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('last_message_at', models.DateTimeField(help_text='time of the last message')),
                ('changed_at', models.DateTimeField(help_text='when a message or answer was last completed', null=True)),
                ('pinned_at', models.DateTimeField(help_text='when it was pinned to the top of the list', null=True)),
                ('archived_at', models.DateTimeField(help_text='when it was removed from the list', null=True)),
                ('deleted_at', models.DateTimeField(help_text='hidden since then; can be restored for a short time, then deleted', null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('space', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memory.space')),
            ],
        ),
        migrations.CreateModel(
            name='ThreadSession',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('seq', models.PositiveIntegerField(default=0)),
                ('started_at', models.DateTimeField()),
                ('started_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('thread', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='chat.thread')),
            ],
        ),
        migrations.CreateModel(
            name='Turn',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('position', models.PositiveIntegerField(help_text="position in the thread from 0, after its parent's")),
                ('is_on_active_branch', models.BooleanField(default=True, help_text='on the branch that is shown, continued and remembered')),
                ('client_key', models.UUIDField(help_text='idempotency key chosen by the page')),
                ('api_token_id', models.UUIDField(help_text='token of the API client that posted the turn', null=True)),
                ('message', models.TextField()),
                ('answer', models.TextField(blank=True)),
                ('reasoning', models.TextField(blank=True, help_text="the model's reasoning; shown, never remembered or sent")),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('recalling', 'Recalling'), ('answering', 'Answering'), ('complete', 'Complete'), ('stopped', 'Stopped'), ('interrupted', 'Interrupted'), ('failed', 'Failed')], default='queued', max_length=11)),
                ('revision', models.PositiveIntegerField(default=0, help_text='incremented with each change that pages show')),
                ('attempt', models.PositiveIntegerField(default=0, help_text='incremented with each try; fences older writers')),
                ('heartbeat_at', models.DateTimeField(null=True)),
                ('stop_requested', models.BooleanField(default=False)),
                ('requested_model', models.CharField(blank=True, help_text="requested by an API client; empty: the thread's model", max_length=120)),
                ('model', models.CharField(blank=True, max_length=120)),
                ('is_dummy', models.BooleanField(default=False)),
                ('usage', models.JSONField(default=dict)),
                ('finish_reason', models.CharField(blank=True, choices=[('stop', 'Stop'), ('length', 'Length'), ('content_filter', 'Content Filter')], help_text='empty: not complete, or unknown', max_length=14)),
                ('error_code', models.CharField(blank=True, max_length=40)),
                ('error', models.CharField(blank=True, max_length=300)),
                ('recall_ms', models.PositiveIntegerField(help_text='duration of recall in milliseconds', null=True)),
                ('recall_note', models.CharField(blank=True, help_text='reason for missing or limited recall', max_length=20)),
                ('images_dropped', models.BooleanField(default=False, help_text='the model does not accept images and answered without them')),
                ('exchange_id', models.UUIDField(help_text="the turn's exchange in memory", null=True)),
                ('is_missing_in_memory', models.BooleanField(default=False, help_text='answered while the vector store was disabled; `backfill --from-history` stores it')),
                ('copied_exchange_id', models.UUIDField(help_text="of a copied turn: the original turn's exchange", null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('completed_at', models.DateTimeField(null=True)),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('images', models.ManyToManyField(related_name='turns', to='chat.image')),
                ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='children', to='chat.turn')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='turns', to='chat.threadsession')),
                ('thread', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='turns', to='chat.thread')),
            ],
            options={
                'ordering': ['position'],
            },
        ),
        migrations.AddField(
            model_name='thread',
            name='head',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chat.turn'),
        ),
        migrations.CreateModel(
            name='ImportJob',
            fields=[
                ('state', models.CharField(choices=[('pending', 'Pending'), ('done', 'Done'), ('failed', 'Failed')], default='pending', max_length=7)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='incremented by each claim; fences writes of earlier owners')),
                ('due_at', models.DateTimeField()),
                ('locked_until', models.DateTimeField(null=True)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='failures of the work itself, without unavailable dependencies')),
                ('error', models.CharField(blank=True, max_length=300)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('file', models.FileField(blank=True, max_length=120, upload_to=chat.models.place_of_import)),
                ('name', models.CharField(help_text='original name of the file', max_length=255)),
                ('total', models.PositiveIntegerField(help_text='number of conversations in the file, once counted', null=True)),
                ('read', models.PositiveIntegerField(default=0, help_text='number of processed conversations')),
                ('found', models.PositiveIntegerField(default=0)),
                ('imported', models.PositiveIntegerField(default=0)),
                ('already_there', models.PositiveIntegerField(default=0)),
                ('turns', models.PositiveIntegerField(default=0)),
                ('skipped_count', models.PositiveIntegerField(default=0)),
                ('skipped', models.JSONField(default=list, help_text='titles of skipped conversations with reasons')),
                ('left_out', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('cancelled_at', models.DateTimeField(null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', '-created_at'], name='chat_import_owner_i_0e70ef_idx'), models.Index(condition=models.Q(('state', 'pending')), fields=['due_at'], name='import_due')],
            },
        ),
        migrations.CreateModel(
            name='ReadMarker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('last_read_at', models.DateTimeField()),
                ('last_present_at', models.DateTimeField(help_text='when one of their pages last reported the thread as open', null=True)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('thread', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='read_marks', to='chat.thread')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('person', 'thread'), name='one_mark_for_each_reader')],
            },
        ),
        migrations.AddConstraint(
            model_name='threadsession',
            constraint=models.UniqueConstraint(fields=('thread', 'seq'), name='sessions_are_numbered_once'),
        ),
        migrations.AddIndex(
            model_name='turn',
            index=models.Index(fields=['thread', 'position'], name='chat_turn_thread__13f244_idx'),
        ),
        migrations.AddIndex(
            model_name='turn',
            index=models.Index(condition=models.Q(('is_missing_in_memory', True)), fields=['created_at'], name='turn_missing_in_memory'),
        ),
        migrations.AddIndex(
            model_name='turn',
            index=models.Index(condition=models.Q(('state__in', ['recalling', 'answering'])), fields=['heartbeat_at'], name='turn_active'),
        ),
        migrations.AddConstraint(
            model_name='turn',
            constraint=models.UniqueConstraint(fields=('thread', 'client_key'), name='a_message_sent_twice_is_one_turn'),
        ),
        migrations.AddConstraint(
            model_name='turn',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['recalling', 'answering'])), fields=('thread',), name='one_answer_at_a_time'),
        ),
        migrations.AddIndex(
            model_name='thread',
            index=models.Index(fields=['space', '-last_message_at'], name='chat_thread_space_i_0dff1e_idx'),
        ),
        migrations.AddIndex(
            model_name='thread',
            index=models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='thread_to_remove'),
        ),
        migrations.AddIndex(
            model_name='thread',
            index=models.Index(condition=models.Q(('pinned_at__isnull', False)), fields=['space', '-pinned_at'], name='thread_pinned'),
        ),
        migrations.AddIndex(
            model_name='thread',
            index=models.Index(fields=['owner', 'opening_hash'], name='chat_thread_owner_i_799086_idx'),
        ),
    ]
