"""The models of memory."""

from memory.models.documents import Chunk, Document, DocumentVersion, HiddenPassage
from memory.models.events import Event, EventFeed
from memory.models.exchanges import (
    Exchange,
    Feedback,
    LexicalEntry,
    MetadataValue,
    RecallLogEntry,
    Record,
    Supersession,
    is_findable,
)
from memory.models.index import (
    CachedEmbedding,
    Collection,
    EmbeddingJob,
    EmbeddingPolicy,
    ErasureJob,
    IndexGeneration,
    Placement,
)
from memory.models.jobs import Job
from memory.models.knowledge import SpaceKnowledge, Statement, StatementConflict, Support
from memory.models.operations import Operation, RetentionRule, Reveal
from memory.models.spaces import Membership, MembershipChange, Space
from memory.models.tuning import Calibration, Evaluation, Probe
