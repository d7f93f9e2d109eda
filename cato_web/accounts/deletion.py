"""Delete an account: close it at once, then remove its contents in resumable batches, with a receipt.

Contributions to shared spaces remain. The user's row remains without name and email, because turns, tombstones and
the audit log refer to it.
"""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from cato_web.accounts import login_sessions, services
from cato_web.accounts.export.jobs import delete_export_of
from cato_web.accounts.models import AccountDeletion, ApiToken, AuditEntry, Identity, User
from cato_web.accounts.second_factor import services as second_factor
from chat import prompt_library
from chat import services as chat
from chat.models import Mention, ReaderMarks, Thread, Turn
from memory import api as memory
from memory.api import Document, Exchange, Space, format_datetime, format_number, jobs

FORMER_MEMBER = gettext_noop("Former member")
# Batches that one sweep removes before other work, and the delay before the next try while an answer is stopping.
_BATCHES_PER_RUN = 5
_RETRY_DELAY = timedelta(seconds=2)
# A running upload or import may still add rows, so the space is checked again.
_RECHECK_AFTER = timedelta(minutes=10)


class AccountDeletionError(Exception):
    """The account cannot be deleted now."""


class ReceiptNotFoundError(Exception):
    """The link has no receipt."""


@dataclass(frozen=True, slots=True)
class AccountContents:
    """The contents of an account, and its contributions to shared spaces, which remain."""

    threads: int
    exchanges: int
    documents: int
    turns_elsewhere: int
    documents_elsewhere: int


def account_contents(person: User) -> AccountContents:
    """Count what the user has now."""
    own = memory.personal_space(person.pk)
    shared_turns = Turn.objects.filter(author_id=person.pk, thread__deleted_at=None)
    shared_turns = shared_turns.exclude(thread__space__kind=Space.Kind.PERSONAL)
    return AccountContents(
        threads=Thread.objects.filter(space=own, deleted_at=None).count(),
        exchanges=Exchange.objects.filter(space=own, forgotten_at=None).count(),
        documents=Document.objects.filter(space=own, forgotten_at=None).count(),
        turns_elsewhere=shared_turns.count(),
        documents_elsewhere=Document.objects.filter(owner_id=person.pk, forgotten_at=None).exclude(space=own).count(),
    )


def check_can_delete(person: User) -> None:
    """Raise AccountDeletionError if the remaining users, also deactivated ones, would have no administrator."""
    others = User.objects.filter(left_at=None).exclude(pk=person.pk)
    count = others.count()
    if person.is_administrator and count and not others.filter(role=User.Role.ADMINISTRATOR, is_active=True).exists():
        sentence = ngettext(
            "You are the only active administrator, and %(count)s other person has an account. "
            "Invite another administrator on the page Admin, People; when they have joined, come back here.",
            "You are the only active administrator, and %(count)s other people have an account. "
            "Invite another administrator on the page Admin, People; when they have joined, come back here.",
            count,
        )
        raise AccountDeletionError(sentence % {"count": format_number(count)})


@transaction.atomic
def delete_account(person: User) -> str:
    """Close the account and return the token of its receipt. The sweep removes its contents.

    Raises AccountDeletionError.
    """
    # Serializes two administrators who leave at the same time, and repeated clicks.
    accounts = User.objects.filter(Q(role=User.Role.ADMINISTRATOR) | Q(pk=person.pk))
    list(accounts.select_for_update().order_by("id").values_list("id"))
    if User.objects.filter(pk=person.pk).exclude(left_at=None).exists():
        raise AccountDeletionError(_("This account is already deleted."))
    check_can_delete(person)
    now, token = timezone.now(), secrets.token_urlsafe(32)
    contents = account_contents(person)
    AccountDeletion.objects.create(
        person=person,
        token_hash=services.hash_token(token),
        created_at=now,
        due_at=now,
        login_sessions=login_sessions.revoke_all(person),
        threads=contents.threads,
        exchanges=contents.exchanges,
        documents=contents.documents,
    )
    services.expire_links(person, by=person)
    Identity.objects.filter(person=person).delete()
    chat.delete_limits_of([person.pk, *person.api_tokens.values_list("pk", flat=True)])
    ApiToken.objects.filter(person=person).delete()
    _remove_from_usage(person.pk)
    second_factor.delete_all(person)
    ReaderMarks.objects.filter(person_id=person.pk).delete()
    Mention.objects.filter(person_id=person.pk).delete()
    memory.remove_from_all_groups(person.pk)
    chat.delete_instructions_of(person.pk)
    prompt_library.delete_of_person(person.pk)
    chat.delete_receipts_of(person.pk)
    chat.delete_digest_of(person.pk)
    delete_export_of(person)
    services.record_audit(person, AuditEntry.Action.ACCOUNT_DELETED, str(person.pk))
    _anonymise(person)
    return token


def run_account_deletions() -> int:
    """Continue one due account deletion; return how many accounts are now empty. Can be repeated in any process."""
    return sum(_continue(job) for job in jobs.claim(AccountDeletion.objects.order_by("due_at", "id"), 1))


def get_receipt(token: str) -> tuple[list[dict[str, str]], bool]:
    """Return the lines of the receipt, and whether removal is complete apart from the index files.

    Raises ReceiptNotFoundError.
    """
    deletion = AccountDeletion.objects.filter(token_hash=services.hash_token(token)).first()
    if deletion is None:
        raise ReceiptNotFoundError
    own = memory.personal_space(deletion.person_id)
    receipt, originals = memory.space_receipt(own.pk, since=deletion.created_at)
    threads = Thread.objects.filter(space=own).count()
    purged_by = deletion.created_at + timedelta(hours=settings.CATO.vector_store.erase_within_hours)
    is_empty = deletion.emptied_at is not None
    forgotten = "%(count)s" if is_empty else _("%(count)s, in progress")
    in_progress = _("%(count)s in progress") % {"count": format_number(originals)}
    purge_text = _("by %(moment)s") % {"moment": format_datetime(purged_by)}
    lines = [
        {"label": _("Closed, name and email removed"), "figure": format_datetime(deletion.created_at)},
        {"label": _("Sign-ins ended"), "figure": format_number(deletion.login_sessions)},
        {"label": _("Threads removed"), "figure": _progress_text(deletion.threads, threads)},
        {"label": _("Exchanges forgotten"), "figure": forgotten % {"count": format_number(receipt.exchanges)}},
        {"label": _("Documents deleted"), "figure": format_number(deletion.documents)},
        {"label": _("Original files removed"), "figure": in_progress if originals else _("all")},
        {"label": _("Keyword entries removed"), "figure": format_number(receipt.words)},
        {"label": _("Recall log entries cleared"), "figure": format_number(receipt.recalls)},
        {"label": _("Cached embeddings removed"), "figure": format_number(receipt.cached)},
        {"label": _("Vectors removed"), "figure": _vectors_text(receipt.vectors, receipt.under_way, is_empty)},
        {"label": _("Purged from disk"), "figure": purge_text if receipt.in_files or not is_empty else _("yes")},
    ]
    return lines, is_empty and not receipt.under_way and not originals


def _continue(job: AccountDeletion) -> bool:
    space = memory.personal_space(job.person_id)
    for _slice in range(_BATCHES_PER_RUN):
        # First, so that no worker adds rows to the spaces that are emptied here.
        removed = chat.delete_imports_of(job.person_id)
        removed += chat.delete_unsent_attachments_of(job.person_id)
        removed += chat.delete_threads_in_space(space.pk, by=job.person_id)
        removed += memory.delete_space_contents(space.pk, by=job.person_id)
        if not removed:
            break
    _remove_from_usage(job.person_id)
    chat.rename_in_tool_uses(job.person_id, job.person.name)
    now = timezone.now()
    is_empty = not Thread.objects.filter(space=space).exists() and not removed
    recheck_at = job.created_at + _RECHECK_AFTER
    lease = jobs.Lease(job)
    try:
        if is_empty and job.emptied_at is None:
            lease.update(emptied_at=now)
        if is_empty and now >= recheck_at:
            lease.finish()
        else:
            lease.release(due_at=recheck_at if is_empty else now + _RETRY_DELAY)
    except jobs.LeaseLostError:
        return False
    return is_empty


def _remove_from_usage(person_id: uuid.UUID) -> None:
    """Keep the sums of usage without the person; answers that still run are counted later, so this is repeated."""
    chat.count_ended_answers()
    chat.remove_person_from_usage(person_id, personal_space_id=memory.personal_space(person_id).pk)


def _anonymise(person: User) -> None:
    person.name, person.email = _(FORMER_MEMBER), f"{person.pk.hex}@former.invalid"
    person.role, person.is_active, person.left_at = User.Role.MEMBER, False, timezone.now()
    person.theme = person.density = person.context_mode = person.default_model = ""
    person.is_notified, person.last_login = False, None
    person.detects_instructions = person.shows_presence = True
    person.epoch += 1
    person.set_unusable_password()
    person.save()


def _vectors_text(removed: int, under_way: int, is_empty: bool) -> str:
    if under_way:
        sentence = _("%(count)s, those of %(others)s exchanges in progress")
        return sentence % {"count": format_number(removed), "others": format_number(under_way)}
    if not is_empty:
        return _("%(count)s, in progress") % {"count": format_number(removed)}
    return _("%(count)s, confirmed by the index") % {"count": format_number(removed)}


def _progress_text(total: int, remaining: int) -> str:
    if not remaining:
        return format_number(total)
    facts = {"count": format_number(max(0, total - remaining)), "all": format_number(total)}
    return _("%(count)s of %(all)s so far") % facts
