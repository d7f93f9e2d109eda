"""Messages to people if the data policy of a model endpoint forbids a request.

Text belongs to the space in which it is stored: a message and its answer to the space of their thread, a passage to that
of its exchange, a standing instruction to its own.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from memory.api import Space


def refusal_text(label: str, space: Space, *, is_removed: bool = False) -> str:
    """Return why the endpoint with this label is not sent text of this space, and what to do."""
    if is_removed:
        return _("%(name)s was removed by an administrator. Choose another model.") % {"name": label}
    if space.kind == Space.Kind.PERSONAL:
        return _("%(name)s may not receive text of personal threads. Choose another model.") % {"name": label}
    if space.kind == Space.Kind.TEAM:
        sentence = _("%(name)s may not receive text of the space for everyone. Choose another model.")
        return sentence % {"name": label}
    facts = {"name": label, "space": space.name}
    return _("%(name)s may not receive text of %(space)s. Choose another model.") % facts


def changed_text(label: str) -> str:
    """Return the error of an answer whose prompt may not be sent any more, because the policy was changed meanwhile."""
    sentence = _("%(name)s may no longer receive everything in this prompt. Try again, or choose another model.")
    return sentence % {"name": label}
