"""Saved prompts: add, edit, delete and find them; callers have checked who may change them."""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Sequence

from django.db import transaction
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import access, commands
from chat.errors import ConflictError, InvalidMessageError, InvalidNameError
from chat.models import SavedPrompt
from memory.api import Space, clean_text, contains, ensure_open, format_number, has_visible_text

MAX_PROMPTS = 200  # of a space
MAX_OFFERED = 50
# The personal prompt first where several spaces have one of the same name.
_SPACE_ORDER = Case(
    When(space__kind=Space.Kind.PERSONAL, then=Value(0)),
    When(space__kind__in=Space.WITH_MEMBERS, then=Value(1)),
    default=Value(2),
    output_field=IntegerField(),
)


@transaction.atomic
def add(space: Space, *, name: str, text: str, by: uuid.UUID) -> SavedPrompt:
    """Add a prompt. Raises InvalidInputError, and ConflictError at the limit of the space."""
    ensure_open(space)
    name, text = _validate_name(name), _validate_text(text)
    _lock(space.id)
    if SavedPrompt.objects.filter(space=space).count() >= MAX_PROMPTS:
        sentence = _("Limit of %(count)s prompts in this space reached. Delete one first.")
        raise ConflictError(sentence % {"count": format_number(MAX_PROMPTS)})
    _ensure_free(space.id, name)
    return SavedPrompt.objects.create(space=space, author_id=by, name=name, text=text)


@transaction.atomic
def edit(prompt: SavedPrompt, *, name: str, text: str) -> None:
    """Change the name and text of a prompt. Raises InvalidNameError, InvalidMessageError."""
    name, text = _validate_name(name), _validate_text(text)
    _lock(prompt.space_id)
    _ensure_free(prompt.space_id, name, besides=prompt.id)
    SavedPrompt.objects.filter(id=prompt.id).update(name=name, text=text, edited_at=timezone.now())


def find_text_error(text: str) -> str:
    """Return why a prompt cannot have this text, or ""."""
    try:
        _validate_text(text)
    except InvalidMessageError as error:
        return str(error)
    return ""


def delete(prompt: SavedPrompt) -> None:
    """Delete a prompt."""
    SavedPrompt.objects.filter(id=prompt.id).delete()


def delete_of_person(person_id: uuid.UUID) -> None:
    """Delete the prompts in the personal space of a person whose account is deleted."""
    SavedPrompt.objects.filter(space__owner_id=person_id).delete()


def list_readable(person_id: uuid.UUID, *, space: Space | None = None, query: str = "") -> QuerySet[SavedPrompt]:
    """Return the prompts that this person may read, whose names contain the query, with their spaces and authors.

    Those of the person come first, then those of groups and projects, then those of the team; each by name.
    """
    prompts = access.readable_prompts(person_id).filter(contains("name", _normalise_name(query)))
    if space is not None:
        prompts = prompts.filter(space=space)
    return prompts.select_related("space", "author").order_by(
        _SPACE_ORDER, Lower("space__name"), "space_id", "name", "id"
    )


def find_offered(person_id: uuid.UUID, beginning: str = "") -> Sequence[SavedPrompt]:
    """Return the prompts that this person may read whose names begin so, at most 50, by name, with their spaces."""
    return list(_by_name(person_id).filter(name__startswith=_normalise_name(beginning))[:MAX_OFFERED])


def list_from(person_id: uuid.UUID, *, after: str = "", limit: int) -> Sequence[SavedPrompt]:
    """Return the prompts that this person may read by name, after the name `after`, each name once as `find_text` does."""
    names = access.readable_prompts(person_id).filter(name__gt=after).order_by("name").values_list("name", flat=True)
    first: dict[str, SavedPrompt] = {}
    for prompt in _by_name(person_id).filter(name__in=list(names.distinct()[:limit])):
        first.setdefault(prompt.name, prompt)
    return list(first.values())


def find_text(person_id: uuid.UUID, message: str) -> str:
    """Return the text of the prompt whose name begins a message with a slash, with what follows the name.

    It is "" if the name is that of a command, or of no prompt that this person may read.
    """
    name, rest = commands.split_name(message)
    if not name or commands.is_command_name(name):
        return ""
    prompt = _by_name(person_id).filter(name=_normalise_name(name)).first()
    if prompt is None:
        return ""
    return f"{prompt.text}\n\n{rest.strip()}" if rest.strip() else prompt.text


def _by_name(person_id: uuid.UUID) -> QuerySet[SavedPrompt]:
    prompts = access.readable_prompts(person_id).select_related("space")
    return prompts.order_by("name", _SPACE_ORDER, "space__name", "id")


def _lock(space_id: uuid.UUID) -> None:
    """Lock the row of the space, so that two people do not add the same name or exceed the limit."""
    Space.objects.select_for_update(no_key=True).get(id=space_id)


def _ensure_free(space_id: uuid.UUID, name: str, besides: uuid.UUID | None = None) -> None:
    others = Q() if besides is None else ~Q(id=besides)
    if SavedPrompt.objects.filter(others, space_id=space_id, name=name).exists():
        sentence = _("This space already has a prompt /%(name)s. Choose another name, or edit that prompt.")
        raise InvalidNameError(sentence % {"name": name})


def _normalise_name(name: str) -> str:
    """Return the name in lower case and in one form of Unicode, without a slash and with hyphens for blanks."""
    normalised = unicodedata.normalize("NFKC", clean_text(name))
    return unicodedata.normalize("NFKC", "-".join(normalised.strip().removeprefix("/").split()).lower())


def _validate_name(name: str) -> str:
    name = _normalise_name(name)
    if not name:
        raise InvalidNameError(_("Give the prompt a name, e.g. weekly-report."))
    if len(name) > SavedPrompt.MAX_NAME_LENGTH:
        sentence = _("Name too long: %(count)s of at most %(most)s characters. Shorten it.")
        counts = {"count": format_number(len(name)), "most": format_number(SavedPrompt.MAX_NAME_LENGTH)}
        raise InvalidNameError(sentence % counts)
    if not has_visible_text(name.replace("-", "")) or not all(_is_allowed(character) for character in name):
        raise InvalidNameError(_("A name consists of letters, digits and hyphens, e.g. weekly-report. Change it."))
    if commands.is_command_name(name):
        raise InvalidNameError(_("/%(name)s is a command. Choose another name.") % {"name": name})
    return name


def _is_allowed(character: str) -> bool:
    """Return whether a name may have this character; marks are parts of letters in many scripts."""
    return character == "-" or unicodedata.category(character)[0] in "LM" or character.isdecimal()


def _validate_text(text: str) -> str:
    text = clean_text(text).strip()
    if not has_visible_text(text):
        raise InvalidMessageError(_("Write the text of the prompt; it is empty."))
    if len(text) > SavedPrompt.MAX_LENGTH:
        sentence = _("Prompt too long: %(count)s of at most %(most)s characters. Shorten it.")
        counts = {"count": format_number(len(text)), "most": format_number(SavedPrompt.MAX_LENGTH)}
        raise InvalidMessageError(sentence % counts)
    if commands.is_command(text):
        raise InvalidMessageError(
            _("A prompt cannot begin with a slash, because it would be run as a command. Begin it with a word.")
        )
    return text
