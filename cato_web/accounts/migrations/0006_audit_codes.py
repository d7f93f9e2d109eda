"""Audit actions become codes: English sentences as values could not be reworded without losing older entries."""

from django.db import migrations, models

CODES = {
    "activated": "person.activated",
    "added to a group": "group.member_added",
    "began an operation": "operation.started",
    "changed password": "password.changed",
    "changed settings": "settings.changed",
    "deactivated": "person.deactivated",
    "deleted a document": "document.deleted",
    "deleted own account": "account.deleted",
    "dissolved a group": "group.deleted",
    "ended a sign-in": "session.ended",
    "exported a person": "person.exported",
    "exported a thread": "thread.exported",
    "exported exchanges": "exchanges.exported",
    "exported own data": "account.exported",
    "forgot an exchange": "exchange.forgotten",
    "hid a space again": "space.reveal_ended",
    "invited": "invitation.created",
    "joined": "person.joined",
    "left a group": "group.left",
    "made a group": "group.created",
    "made a password link": "password_link.created",
    "made a token": "token.created",
    "made administrator": "person.made_administrator",
    "made group manager": "group.made_manager",
    "made group member": "group.made_member",
    "made member": "person.made_member",
    "moved a document": "document.moved",
    "moved a thread": "thread.moved",
    "renamed a group": "group.renamed",
    "revealed a space": "space.revealed",
    "revoked a link": "link.revoked",
    "revoked links made by": "link.all_revoked",
    "set retention": "retention.changed",
    "signed in by OpenID Connect": "session.started_by_openid",
    "signed out elsewhere": "session.others_ended",
    "took out of a group": "group.member_removed",
    "withdrew a token": "token.revoked",
    "withdrew an invitation": "invitation.revoked",
}


def to_codes(apps, schema_editor):
    entries = apps.get_model("people", "AuditEntry").objects
    for sentence, code in CODES.items():
        entries.filter(action=sentence).update(action=code)


def to_sentences(apps, schema_editor):
    entries = apps.get_model("people", "AuditEntry").objects
    for sentence, code in CODES.items():
        entries.filter(action=code).update(action=sentence)


class Migration(migrations.Migration):
    dependencies = [("people", "0005_api_tokens")]

    operations = [
        migrations.RunPython(to_codes, to_sentences),
        migrations.AlterField(
            model_name='auditentry',
            name='action',
            field=models.CharField(choices=[('person.activated', 'activated'), ('group.member_added', 'added to a group'), ('operation.started', 'began an operation'), ('password.changed', 'changed password'), ('settings.changed', 'changed settings'), ('person.deactivated', 'deactivated'), ('document.deleted', 'deleted a document'), ('account.deleted', 'deleted own account'), ('group.deleted', 'dissolved a group'), ('session.ended', 'ended a sign-in'), ('person.exported', 'exported a person'), ('thread.exported', 'exported a thread'), ('exchanges.exported', 'exported exchanges'), ('account.exported', 'exported own data'), ('exchange.forgotten', 'forgot an exchange'), ('space.reveal_ended', 'hid a space again'), ('invitation.created', 'invited'), ('person.joined', 'joined'), ('group.left', 'left a group'), ('group.created', 'made a group'), ('password_link.created', 'made a password link'), ('token.created', 'made a token'), ('person.made_administrator', 'made administrator'), ('group.made_manager', 'made group manager'), ('group.made_member', 'made group member'), ('person.made_member', 'made member'), ('document.moved', 'moved a document'), ('thread.moved', 'moved a thread'), ('group.renamed', 'renamed a group'), ('space.revealed', 'revealed a space'), ('link.revoked', 'revoked a link'), ('link.all_revoked', 'revoked links made by'), ('retention.changed', 'set retention'), ('session.started_by_openid', 'signed in by OpenID Connect'), ('session.others_ended', 'signed out elsewhere'), ('group.member_removed', 'took out of a group'), ('token.revoked', 'withdrew a token'), ('invitation.revoked', 'withdrew an invitation')], max_length=40),
        ),
    ]
