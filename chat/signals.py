"""What chat announces to whoever listens."""

from django.dispatch import Signal

# by: the person; thread_id: UUID; kind: the file's ending. A thread was taken out as a file.
exported = Signal()
# by: the person. Another model endpoint answers from now on.
endpoint_set = Signal()
