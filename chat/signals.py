"""The signals of chat."""

from django.dispatch import Signal

exported = Signal()  # a thread was exported; by: UUID of the person, thread_id: UUID, kind: file extension
tool_server_changed = Signal()  # a tool server was added, changed or removed; by: UUID of the person, name: its name
knowledge_set = Signal()  # the extraction from a space was changed; by: UUID of the person, knowledge: SpaceKnowledge
embedding_policy_set = Signal()  # what the embedding provider may receive was changed; by: UUID of the person
endpoint_set = Signal()  # a model endpoint was changed; by: UUID of the person, name: its name, "" for the first one
