"""The tables of accounts."""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('sessions', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='User',
            fields=[
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('email', models.EmailField(max_length=254, unique=True)),
                ('name', models.CharField(max_length=80)),
                ('role', models.CharField(choices=[('member', 'Member'), ('administrator', 'Administrator')], default='member', max_length=16)),
                ('is_active', models.BooleanField(default=True)),
                ('epoch', models.PositiveIntegerField(default=0)),
                ('theme', models.CharField(blank=True, choices=[('', 'System'), ('light', 'Light'), ('dark', 'Dark')], default='', max_length=8)),
                ('density', models.CharField(blank=True, choices=[('', 'Comfortable'), ('compact', 'Compact')], default='', max_length=8)),
                ('context_mode', models.CharField(blank=True, choices=[('summary', 'Collapsed'), ('on', 'Expanded'), ('off', 'Nothing')], default='', max_length=8)),
                ('default_model', models.CharField(blank=True, default='', help_text='model of new threads; empty: the configured model', max_length=120)),
                ('is_notified', models.BooleanField(default=False, help_text='notify about answers that complete while the person is elsewhere')),
                ('joined_at', models.DateTimeField(auto_now_add=True)),
                ('left_at', models.DateTimeField(help_text='when the account was deleted', null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='AccountDeletion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('done', 'Done'), ('failed', 'Failed')], default='pending', max_length=7)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='incremented by each claim; fences writes of earlier owners')),
                ('due_at', models.DateTimeField()),
                ('locked_until', models.DateTimeField(null=True)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='failures of the work itself, without unavailable dependencies')),
                ('error', models.CharField(blank=True, max_length=300)),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField()),
                ('emptied_at', models.DateTimeField(help_text='when all contents had been removed', null=True)),
                ('login_sessions', models.PositiveIntegerField()),
                ('threads', models.PositiveIntegerField()),
                ('exchanges', models.PositiveIntegerField()),
                ('documents', models.PositiveIntegerField()),
                ('person', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(help_text='purpose, entered by the owner', max_length=80)),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('prefix', models.CharField(help_text='first characters, shown to the owner', max_length=12)),
                ('scopes', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('used_at', models.DateTimeField(help_text='accurate to a minute', null=True)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('action', models.CharField(choices=[('person.activated', 'activated'), ('group.member_added', 'added to a group'), ('operation.started', 'began an operation'), ('password.changed', 'changed password'), ('settings.changed', 'changed settings'), ('person.deactivated', 'deactivated'), ('document.deleted', 'deleted a document'), ('account.deleted', 'deleted own account'), ('group.deleted', 'dissolved a group'), ('session.ended', 'ended a sign-in'), ('person.exported', 'exported a person'), ('thread.exported', 'exported a thread'), ('exchanges.exported', 'exported exchanges'), ('account.exported', 'exported own data'), ('exchange.forgotten', 'forgot an exchange'), ('space.reveal_ended', 'hid a space again'), ('invitation.created', 'invited'), ('person.joined', 'joined'), ('group.left', 'left a group'), ('group.created', 'made a group'), ('password_link.created', 'made a password link'), ('token.created', 'made a token'), ('person.made_administrator', 'made administrator'), ('group.made_manager', 'made group manager'), ('group.made_member', 'made group member'), ('person.made_member', 'made member'), ('document.moved', 'moved a document'), ('thread.moved', 'moved a thread'), ('group.renamed', 'renamed a group'), ('space.revealed', 'revealed a space'), ('link.revoked', 'revoked a link'), ('link.all_revoked', 'revoked links made by'), ('retention.changed', 'set retention'), ('session.started_by_openid', 'signed in by OpenID Connect'), ('session.others_ended', 'signed out elsewhere'), ('group.member_removed', 'took out of a group'), ('token.revoked', 'withdrew a token'), ('invitation.revoked', 'withdrew an invitation')], max_length=40)),
                ('target', models.CharField(max_length=200)),
                ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='LoginSession',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('browser', models.CharField(help_text='name of browser and system', max_length=80)),
                ('since', models.DateTimeField()),
                ('last_seen_at', models.DateTimeField()),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='login_sessions', to=settings.AUTH_USER_MODEL)),
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sessions.session')),
            ],
        ),
        migrations.CreateModel(
            name='OneTimeLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('kind', models.CharField(choices=[('setup', 'Setup'), ('invitation', 'Invitation'), ('reset', 'Reset')], max_length=12)),
                ('role', models.CharField(choices=[('member', 'Member'), ('administrator', 'Administrator')], default='member', max_length=16)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('person', models.ForeignKey(help_text='the account of a reset link', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('used_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Identity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(max_length=255)),
                ('subject', models.CharField(max_length=255)),
                ('since', models.DateTimeField(auto_now_add=True)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='one_person_per_identity'), models.UniqueConstraint(fields=('person', 'issuer'), name='one_identity_per_issuer')],
            },
        ),
    ]
