"""Deleting one's own account: closed at once, then emptied slice by slice, whatever crashes between; with a receipt.

What was said in shared spaces stays there. Its author's row stays too, without name and e-mail, for turns, tombstones and
the audit log refer to it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from cato_web.accounts import login_sessions, services
from cato_web.accounts.models import ApiToken, AuditEntry, Departure, Identity, User
from chat import services as chat
from chat.models import ReadMark, Thread, Turn
from memory import api as memory
from memory import jobs
from memory.models import Document, Exchange, Space
from memory.spaces import access
from memory.utils.formatting import format_datetime, format_number

FORMER_MEMBER = gettext_noop("Former member")
# How much one sweep removes before others have their turn, and how soon what waits for an answer to stop is tried again.
_SLICES = 5
_SOON = timedelta(seconds=2)
# An upload or import that was under way may still add something; it is looked for once more.
_LATE = timedelta(minutes=10)


class AccountDeletionError(Exception):
    """This account cannot be deleted now; the message says what to do."""


class ReceiptNotFoundError(Exception):
    """There is no receipt behind this link."""


@dataclass(frozen=True, slots=True)
class AccountContents:
    """What goes with an account, and what stays of it in spaces that others read too."""

    threads: int
    exchanges: int
    documents: int
    said_elsewhere: int
    documents_elsewhere: int


def account_contents(person: User) -> AccountContents:
    """What there is of this person now."""
    own = access.personal_space(person.pk)
    shared_turns = Turn.objects.filter(author_id=person.pk, thread__deleted_at=None)
    shared_turns = shared_turns.exclude(thread__space__kind=Space.Kind.OWN)
    return AccountContents(
        threads=Thread.objects.filter(space=own, deleted_at=None).count(),
        exchanges=Exchange.objects.filter(space=own, forgotten_at=None).count(),
        documents=Document.objects.filter(space=own, forgotten_at=None).count(),
        said_elsewhere=shared_turns.count(),
        documents_elsewhere=Document.objects.filter(owner_id=person.pk, forgotten_at=None).exclude(space=own).count(),
    )


def check_can_delete(person: User) -> None:
    """Raises AccountDeletionError where nobody would be left to administer those who stay."""
    others = User.objects.filter(is_active=True).exclude(pk=person.pk)
    count = others.count()
    if person.is_administrator and count and not others.filter(role=User.Role.ADMINISTRATOR).exists():
        sentence = ngettext(
            "You are the only administrator, and %(count)s other person uses this Cato. "
            "Invite another administrator on the page Admin, People; when they have joined, come back here.",
            "You are the only administrator, and %(count)s other people use this Cato. "
            "Invite another administrator on the page Admin, People; when they have joined, come back here.",
            count,
        )
        raise AccountDeletionError(sentence % {"count": format_number(count)})


@transaction.atomic
def delete_account(person: User) -> str:
    """Close the account for good; returns the token of its receipt. What it had is removed by the sweep.

    Raises AccountDeletionError.
    """
    # Two administrators who leave at the same moment see each other here, and who presses the button twice themselves.
    concerned = User.objects.filter(Q(role=User.Role.ADMINISTRATOR) | Q(pk=person.pk))
    list(concerned.select_for_update().order_by("id").values_list("id"))
    if User.objects.filter(pk=person.pk).exclude(left_at=None).exists():
        raise AccountDeletionError(_("This account is deleted already."))
    check_can_delete(person)
    now, token = timezone.now(), secrets.token_urlsafe(32)
    had = account_contents(person)
    Departure.objects.create(
        person=person,
        token_hash=services.hash_token(token),
        asked_at=now,
        due_at=now,
        sign_ins=login_sessions.revoke_all(person),
        threads=had.threads,
        exchanges=had.exchanges,
        documents=had.documents,
    )
    services.expire_links(person)
    Identity.objects.filter(person=person).delete()
    ApiToken.objects.filter(person=person).delete()
    ReadMark.objects.filter(person_id=person.pk).delete()
    memory.remove_from_all_groups(person.pk)
    services.record_audit(person, AuditEntry.Action.ACCOUNT_DELETED, str(person.pk))
    _anonymise(person)
    return token


def run_account_deletions() -> int:
    """Go on emptying the space of one who left; returns how many are empty now. Repeatable, from any process."""
    return sum(_continue(job) for job in jobs.claim(Departure.objects.order_by("due_at", "id"), 1))


def get_receipt(token: str) -> tuple[list[dict[str, str]], bool]:
    """What went, number by number, and whether nothing of it is still under way, but for the files themselves.

    Raises ReceiptNotFoundError.
    """
    left = Departure.objects.filter(token_hash=services.hash_token(token)).first()
    if left is None:
        raise ReceiptNotFoundError
    own = access.personal_space(left.person_id)
    removed, originals = memory.space_receipt(own.pk, since=left.asked_at)
    threads = Thread.objects.filter(space=own).count()
    gone_by = left.asked_at + timedelta(hours=settings.CATO.vector_store.erase_within_hours)
    is_empty = left.emptied_at is not None
    forgotten = "%(count)s" if is_empty else _("%(count)s, under way")
    under_way = _("%(count)s under way") % {"count": format_number(originals)}
    gone = _("by %(moment)s") % {"moment": format_datetime(gone_by)}
    lines = [
        {"label": _("Closed, name and e-mail removed"), "figure": format_datetime(left.asked_at)},
        {"label": _("Sign-ins ended"), "figure": format_number(left.sign_ins)},
        {"label": _("Threads removed"), "figure": _of(left.threads, threads)},
        {"label": _("Exchanges forgotten"), "figure": forgotten % {"count": format_number(removed.exchanges)}},
        {"label": _("Documents deleted"), "figure": format_number(left.documents)},
        {"label": _("Original files removed"), "figure": under_way if originals else _("all")},
        {"label": _("Keyword entries removed"), "figure": format_number(removed.words)},
        {"label": _("Recall log entries cleared"), "figure": format_number(removed.recalls)},
        {"label": _("Cached embeddings removed"), "figure": format_number(removed.cached)},
        {"label": _("Vectors removed"), "figure": _vectors(removed.vectors, removed.under_way, is_empty)},
        {"label": _("Purged from disk"), "figure": gone if removed.in_files or not is_empty else _("yes")},
    ]
    return lines, is_empty and not removed.under_way and not originals


def _continue(job: Departure) -> bool:
    space = access.personal_space(job.person_id)
    for _slice in range(_SLICES):
        # First, so that no worker goes on to add to what is removed here.
        removed = chat.delete_imports_of(job.person_id)
        removed += chat.delete_threads_in_space(space.pk, by=job.person_id)
        removed += memory.delete_space_contents(space.pk, by=job.person_id)
        if not removed:
            break
    now = timezone.now()
    is_empty = not Thread.objects.filter(space=space).exists() and not removed
    again = job.asked_at + _LATE
    lease = jobs.Lease(job)
    try:
        if is_empty and job.emptied_at is None:
            lease.update(emptied_at=now)
        if is_empty and now >= again:
            lease.finish()
        else:
            lease.release(due_at=again if is_empty else now + _SOON)
    except jobs.LeaseLostError:
        return False
    return is_empty


def _anonymise(person: User) -> None:
    person.name, person.email = _(FORMER_MEMBER), f"{person.pk.hex}@former.invalid"
    person.role, person.is_active, person.left_at = User.Role.MEMBER, False, timezone.now()
    person.theme = person.density = person.context_mode = person.default_model = ""
    person.is_notified, person.last_login = False, None
    person.epoch += 1
    person.set_unusable_password()
    person.save()


def _vectors(removed: int, under_way: int, is_empty: bool) -> str:
    if under_way:
        sentence = _("%(count)s, those of %(others)s exchanges under way")
        return sentence % {"count": format_number(removed), "others": format_number(under_way)}
    if not is_empty:
        return _("%(count)s, under way") % {"count": format_number(removed)}
    return _("%(count)s, confirmed by the index") % {"count": format_number(removed)}


def _of(all_of_them: int, left: int) -> str:
    if not left:
        return format_number(all_of_them)
    facts = {"count": format_number(max(0, all_of_them - left)), "all": format_number(all_of_them)}
    return _("%(count)s of %(all)s so far") % facts
