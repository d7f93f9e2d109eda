"""A project for each channel of a team chat, created by the first import of the channel and used by later ones."""

from __future__ import annotations

import uuid

from django.utils.translation import gettext as _

from chat.imports.formats.conversation import Conversation
from chat.models import Thread
from memory import api as memory
from memory.api import InvalidInputError, Space


def project_of_channel(channel: Conversation, thread_id: uuid.UUID, person_id: uuid.UUID) -> Space:
    """Return the project of a channel that is imported as the thread `thread_id`.

    It is the one that has the thread, else one of the same name, else a new one; the person manages it. Raises
    InvalidInputError if the thread is in another space, if another group or project has the name, or if the project is
    archived.
    """
    projects = list(memory.readable_spaces(person_id).filter(kind=Space.Kind.PROJECT))
    managed_ids = memory.managed_space_ids(person_id, projects)
    managed = [project for project in projects if project.id in managed_ids]
    name = channel.title.removeprefix("#")
    space_id = Thread.objects.filter(id=thread_id).values_list("space_id", flat=True).first()
    if space_id is None:
        project = next((space for space in managed if space.name.casefold() == name.casefold()), None)
    else:
        project = next((space for space in managed if space.id == space_id), None)
        if project is None:
            sentence = _(
                "It was imported before, and its thread is not in a project of yours. Move the thread to one first."
            )
            raise InvalidInputError(sentence)
    if project is None:
        description = _("Channel of %(provider)s") % {"provider": channel.provider}
        return memory.create_project(name, description=description, by=person_id)
    memory.ensure_open(project)
    return project
