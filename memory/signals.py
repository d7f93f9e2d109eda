"""What memory announces to whoever listens."""

from django.dispatch import Signal

# exchange_ids: list of UUID. The exchanges are searchable now (or, failed, will not be without help).
indexed = Signal()
indexing_failed = Signal()
# exchange_ids: list of UUID; by: the person; by_itself: bool (not as a piece of a document, nor as one of many).
# They are out of every read, and their erasure is under way.
forgotten = Signal()
# document_ids: list of UUID; by: the person. As above, with all their versions.
documents_forgotten = Signal()
# operation: Operation. An administrator asked for it; it was not begun yet.
operation_asked = Signal()
# reveal: Reveal. The text of a space is shown to an administrator; or no longer, before its time was over.
revealed = Signal()
reveal_ended = Signal()
# by: the person; thread_id or document_id: what it is; to: Space. It moved with all that is remembered of it.
moved = Signal()
# by: the person; count: how many exchanges were taken out as a file.
exported = Signal()
# by: the person; days: dict of source to days. What is older is forgotten from now on.
retention_set = Signal()
# space and generation changed what serves; no arguments.
switched = Signal()
