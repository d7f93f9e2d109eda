"""The models of memory."""

from memory.models.documents import Chunk, Document, DocumentVersion, HiddenPassage
from memory.models.exchanges import Exchange, MetadataValue, Opinion, Recall, Words
from memory.models.index import CachedEmbedding, Embedding, Erasure, Generation, Index
from memory.models.jobs import Job
from memory.models.operations import Operation, Retention, Reveal
from memory.models.records import Record
from memory.models.spaces import Membership, MembershipChange, Space
from memory.models.tuning import Calibration, Evaluation

__all__ = [
    "CachedEmbedding",
    "Calibration",
    "Chunk",
    "Document",
    "DocumentVersion",
    "Embedding",
    "Erasure",
    "Evaluation",
    "Exchange",
    "Generation",
    "HiddenPassage",
    "Index",
    "Job",
    "Membership",
    "MembershipChange",
    "MetadataValue",
    "Operation",
    "Opinion",
    "Recall",
    "Record",
    "Retention",
    "Reveal",
    "Space",
    "Words",
]
