"""Access to threads, turns, attachments, exchanges, instructions and saved prompts: each function checks who asks.

A function raises NotFoundError for what is missing or forbidden, and PermissionDeniedError where its docstring says so.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session as LoginSession
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import ConflictError, PermissionDeniedError
from chat.mentions import unseen_in_thread
from chat.models import Attachment, Instruction, SavedPrompt, Thread, ToolServer, Turn
from chat.threads.reader_marks import with_marks
from chat.usage.limits import any_limit
from memory import api as memory
from memory.api import Exchange, NotFoundError, Space

R = TypeVar("R")


class SocketIdentity(NamedTuple):
    """The person, login session and account epoch of a socket, and its thread, if any."""

    person_id: uuid.UUID
    session_key: str
    epoch: int
    thread_id: uuid.UUID | None


def readable_threads(person_id: uuid.UUID) -> QuerySet[Thread]:
    """Return every thread this person may read."""
    return Thread.objects.filter(space_id__in=list(memory.readable_space_ids(person_id)), deleted_at=None)


def get_thread(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """Return the thread, if this person may read it."""
    return _get(_thread_read_by(person_id, thread_id).select_related("space", "owner"))


def get_marked_thread(person_id: uuid.UUID, thread_id: uuid.UUID) -> Any:
    """Return the thread with this person's marks, if they may read it.

    It also has `has_unseen_mention`, `has_tool_servers`: whether any can be switched on somewhere, and `has_usage_limits`.
    """
    rows = with_marks(_thread_read_by(person_id, thread_id).select_related("space", "owner"), person_id)
    rows = rows.annotate(
        has_unseen_mention=Exists(unseen_in_thread(person_id)),
        has_tool_servers=Exists(ToolServer.objects.exclude(allowed_in=[])),
        has_usage_limits=any_limit(),
    )
    return _get(rows)


def get_locked_thread(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """Return the thread with its space, if this person may read it; its row is locked until the transaction ends."""
    rows = _thread_read_by(person_id, thread_id).select_related("space")
    return _get(rows.select_for_update(of=("self",)))


def get_turn(person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID) -> Turn:
    """Return the turn of that thread, if this person may read the thread."""
    turns = get_thread(person_id, thread_id).turns.select_related("author", "thread__space")
    return _get(turns.filter(id=turn_id))


def turn_by_id(person_id: uuid.UUID, turn_id: uuid.UUID) -> Turn:
    """Return the turn, if this person may read its thread."""
    thread_id = _get(Turn.objects.filter(id=turn_id).values_list("thread_id", flat=True))
    return get_turn(person_id, thread_id, turn_id)


def own_turn(person_id: uuid.UUID, turn_id: uuid.UUID) -> Turn:
    """Return the turn, if this person wrote its message and may read its thread."""
    turn = turn_by_id(person_id, turn_id)
    if turn.author_id != person_id:
        raise NotFoundError
    return turn


def turn_to_change(person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID) -> Turn:
    """Return the turn of that thread, if this person may edit, regenerate, retry or resume it, or switch its version.

    Only the author of the message and the owner of the thread may, because this hides exchanges from memory. Raises
    NotFoundError, and PermissionDeniedError for other readers.
    """
    turn = get_turn(person_id, thread_id, turn_id)
    if turn.author_id != person_id and "owner" not in roles_in_thread(person_id, turn.thread):
        raise PermissionDeniedError(
            _("Only the author of this message or the owner of the thread can do this. You can fork the thread.")
        )
    return turn


def turn_to_decide(person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID) -> Turn:
    """Return the turn of that thread, if this person may allow a tool for its answer.

    Only the author of the message and the managers of the thread's space may. Raises NotFoundError, and
    PermissionDeniedError for other readers.
    """
    turn = get_turn(person_id, thread_id, turn_id)
    if turn.author_id != person_id and not memory.manages_space(person_id, turn.thread.space):
        raise PermissionDeniedError(_("Only the author of this message and the managers of its space decide this."))
    return turn


def get_owned_thread(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """Return the thread, if this person has the rights of its owner."""
    thread = get_thread(person_id, thread_id)
    if "owner" not in roles_in_thread(person_id, thread):
        raise NotFoundError
    return thread


def roles_in_thread(person_id: uuid.UUID, thread: Thread) -> frozenset[str]:
    """Return {"owner"}, else {"manager"} if this person manages the space of the thread, else no role.

    The managers of the space have the rights of an owner who cannot read it any more, so that somebody can end the thread.
    """
    if thread.owner_id == person_id:
        return frozenset({"owner"})
    if not memory.manages_space(person_id, thread.space):
        return frozenset()
    owner = get_user_model().objects.filter(pk=thread.owner_id, left_at=None)
    return frozenset({"manager" if memory.readers(thread.space, owner).exists() else "owner"})


def can_configure(person_id: uuid.UUID, thread: Thread) -> bool:
    """Return whether this person may set the thread's model and recall filter, as its owner or a manager of its space."""
    return bool(roles_in_thread(person_id, thread))


def thread_to_configure(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """Return the thread whose model and recall filter this person may set. Raises NotFoundError, PermissionDeniedError."""
    thread = get_thread(person_id, thread_id)
    if not can_configure(person_id, thread):
        raise PermissionDeniedError(
            _("Only the owner of this thread and the managers of its space change this. Fork the thread to change it.")
        )
    return thread


def get_deleted_thread(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """Return a deleted thread, if this person has the rights of its owner."""
    readable = Thread.objects.filter(space_id__in=list(memory.readable_space_ids(person_id))).select_related("space")
    thread = _get(readable.filter(id=thread_id).exclude(deleted_at=None))
    if "owner" not in roles_in_thread(person_id, thread):
        raise NotFoundError
    return thread


def get_attachment(person_id: uuid.UUID, attachment_id: uuid.UUID) -> Attachment:
    """Return the attachment, if it is in a thread this person may read, or is their own and not sent yet."""
    readable = Q(turns__thread__in=readable_threads(person_id)) | Q(turns=None, owner_id=person_id)
    return _get(Attachment.objects.filter(readable, id=attachment_id))


def own_attachments(person_id: uuid.UUID) -> QuerySet[Attachment]:
    """Return those that this person uploaded, if they are not sent yet or are in a thread that this person may read."""
    threads = Thread.objects.filter(deleted_at=None, space__in=memory.readable_spaces(person_id))
    sent = Turn.attachments.through.objects.filter(attachment_id=OuterRef("pk"))
    return Attachment.objects.filter(~Exists(sent) | Exists(sent.filter(turn__thread__in=threads)), owner_id=person_id)


def get_exchange(person_id: uuid.UUID, exchange_id: uuid.UUID) -> Exchange:
    """Return the exchange, if this person may read it and it is not forgotten. Raises NotFoundError."""
    rows = memory.in_spaces(Exchange.objects.citable().filter(id=exchange_id), memory.readable_space_ids(person_id))
    return _get(rows.select_related("owner", "space"))


def can_forget(person_id: uuid.UUID, exchange: Exchange, *, is_administrator: bool) -> bool:
    """Return whether this person may forget the exchange, as its owner, administrator, or in place of its thread's owner."""
    if is_administrator or exchange.owner_id == person_id:
        return True
    if exchange.thread_id is None:
        return False
    thread = Thread.objects.select_related("space").filter(id=exchange.thread_id).first()
    return thread is not None and "owner" in roles_in_thread(person_id, thread)


def exchange_to_forget(
    person_id: uuid.UUID, exchange_id: uuid.UUID, *, is_administrator: bool, is_forgotten: bool = False
) -> Exchange:
    """Return the exchange, if this person may forget it. Raises NotFoundError.

    An own exchange is returned even if its thread was moved to a space that this person cannot read. `is_forgotten`: so is
    one that is forgotten already, whose text may be left in its thread.
    """
    found = Exchange.objects.filter(forgotten_at__isnull=False) if is_forgotten else Exchange.objects.none()
    rows = (Exchange.objects.citable() | found).filter(id=exchange_id).select_related("owner", "space")
    readable = memory.in_spaces(rows, memory.readable_space_ids(person_id))
    exchange: Exchange | None = rows.filter(owner_id=person_id).first() or readable.first()
    if exchange is None or not can_forget(person_id, exchange, is_administrator=is_administrator):
        raise NotFoundError
    return exchange


def readable_instructions(person_id: uuid.UUID) -> QuerySet[Instruction]:
    """Return the instructions of the spaces that this person may read, suggested ones of their personal space included."""
    return Instruction.objects.present().filter(space__in=memory.readable_spaces(person_id))


def get_instruction(person_id: uuid.UUID, instruction_id: uuid.UUID) -> Instruction:
    """Return the instruction, if this person may read it. Raises NotFoundError."""
    return _get(readable_instructions(person_id).select_related("space").filter(id=instruction_id))


def instruction_to_change(person_id: uuid.UUID, instruction_id: uuid.UUID) -> Instruction:
    """Return the instruction, if this person manages its space. Raises NotFoundError, PermissionDeniedError."""
    row = get_instruction(person_id, instruction_id)
    _ensure_manages(person_id, row.space)
    return row


def space_to_instruct(person_id: uuid.UUID, space_id: uuid.UUID) -> Space:
    """Return the space, if this person may set its instructions. Raises NotFoundError, PermissionDeniedError."""
    space = memory.get_space(person_id, space_id)
    _ensure_manages(person_id, space)
    return space


def spaces_to_instruct(person_id: uuid.UUID) -> list[Space]:
    """Return the spaces to which this person may add instructions, their personal space first."""
    spaces = memory.list_open_spaces(person_id)
    managed = memory.managed_space_ids(person_id, spaces)
    return [space for space in spaces if space.id in managed]


def _ensure_manages(person_id: uuid.UUID, space: Space) -> None:
    if not memory.manages_space(person_id, space):
        raise PermissionDeniedError(_("Only the managers of this space change its instructions."))


def readable_prompts(person_id: uuid.UUID) -> QuerySet[SavedPrompt]:
    """Return the saved prompts of the spaces that this person may read. They may add prompts to these spaces as well."""
    return SavedPrompt.objects.filter(space__in=memory.readable_spaces(person_id))


def get_prompt(person_id: uuid.UUID, prompt_id: uuid.UUID) -> SavedPrompt:
    """Return the saved prompt, if this person may read it. Raises NotFoundError."""
    return _get(readable_prompts(person_id).select_related("space").filter(id=prompt_id))


def prompt_to_change(person_id: uuid.UUID, prompt_id: uuid.UUID) -> SavedPrompt:
    """Return the saved prompt, if this person may edit and delete it, as its author or a manager of its space.

    Raises NotFoundError, and PermissionDeniedError for other readers of the space.
    """
    prompt = get_prompt(person_id, prompt_id)
    if prompt.author_id != person_id and not memory.manages_space(person_id, prompt.space):
        raise PermissionDeniedError(_("Only its author and the managers of its space change this prompt."))
    return prompt


def can_receive(person_id: uuid.UUID, thread_id: uuid.UUID, api_token_id: uuid.UUID | None = None) -> bool:
    """Return whether this active person may read the thread now, with an API token that is still valid, if any."""
    people = get_user_model().objects.filter(id=person_id, is_active=True)
    if api_token_id is not None:
        people = people.filter(Exists(_valid_tokens().filter(pk=api_token_id)))
    return people.filter(Exists(_thread_read_by(person_id, thread_id))).exists()


def ensure_can_receive(author_id: uuid.UUID, thread: Thread, api_token_id: uuid.UUID | None = None) -> None:
    """Raise ConflictError if an answer in this author's name would end at once, for lack of access."""
    if not can_receive(author_id, thread.pk, api_token_id):
        raise ConflictError(
            _("Its author can no longer read this thread, or the API token is revoked. Fork the thread to ask again.")
        )


def turns_without_access(turn_ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Return those of the turns whose author may no longer read the thread, or whose API token is no longer valid."""
    turns = Turn.objects.filter(id__in=list(turn_ids))
    allowed = turns.filter(author_has_access()).values("id")
    return set(turns.exclude(id__in=allowed).values_list("id", flat=True))


def author_has_access() -> Q:
    """Return the condition of turns whose active author may read the thread, with a token that is still valid, if any."""
    return Q(
        Q(api_token_id=None) | Q(api_token_id__in=_valid_tokens().values("pk")),
        author__is_active=True,
        thread__deleted_at=None,
        thread__space__in=memory.readable_spaces(OuterRef("author_id")),
    )


def is_socket_authorized(socket: SocketIdentity) -> bool:
    """Return whether the person is active, in the same epoch and login session, and reads the thread, if any.

    The same as `authorize_sockets` of one socket, with one statement, for a page that connects.
    """
    people = get_user_model().objects.filter(id=socket.person_id, epoch=socket.epoch, is_active=True)
    people = people.filter(Exists(_valid_sessions([socket.session_key])))
    if socket.thread_id is not None:
        people = people.filter(Exists(_thread_read_by(socket.person_id, socket.thread_id)))
    return people.exists()


def authorize_sockets(sockets: Iterable[SocketIdentity]) -> set[SocketIdentity]:
    """Return the authorized ones of these sockets.

    Four statements for all of them: a condition for each socket took a quarter of the processor time of 50 streams.
    """
    sockets = set(sockets)
    people = get_user_model().objects.filter(id__in={socket.person_id for socket in sockets}, is_active=True)
    epochs = dict(people.values_list("id", "epoch"))
    valid = _valid_sessions({socket.session_key for socket in sockets})
    keys = set(valid.values_list("session_key", flat=True))
    threads = Thread.objects.filter(id__in={socket.thread_id for socket in sockets}, deleted_at=None)
    spaces = dict(threads.values_list("id", "space_id"))
    readable = memory.readable_pairs(set(spaces.values()), set(epochs))
    return {
        socket
        for socket in sockets
        if epochs.get(socket.person_id) == socket.epoch
        and socket.session_key in keys
        and (socket.thread_id is None or (spaces.get(socket.thread_id), socket.person_id) in readable)
    }


def _get(rows: QuerySet[Any, R]) -> R:
    """Return the only one of these rows. Raises NotFoundError if there is none."""
    row = rows.first()
    if row is None:
        raise NotFoundError
    return row


def _valid_sessions(session_keys: Iterable[str]) -> QuerySet[LoginSession]:
    return LoginSession.objects.filter(session_key__in=list(session_keys), expire_date__gt=timezone.now())


def _thread_read_by(person_id: uuid.UUID, thread_id: uuid.UUID) -> QuerySet[Thread]:
    return Thread.objects.filter(id=thread_id, deleted_at=None, space__in=memory.readable_spaces(person_id))


def _valid_tokens() -> QuerySet[Any]:
    tokens: QuerySet[Any] = apps.get_model(settings.API_TOKEN_MODEL).objects.valid()
    return tokens
