"""The signals of chat."""

from django.dispatch import Signal

exported = Signal()  # a thread was exported; by: UUID of the person, thread_id: UUID, kind: file extension
endpoint_set = Signal()  # the model endpoint was changed; by: UUID of the person
