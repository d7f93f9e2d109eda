"""The models of chat."""

from chat.models.additions import Addition
from chat.models.attachments import ATTACHMENTS, Attachment, place_of_attachment, place_of_image
from chat.models.digests import Digest
from chat.models.endpoint import Endpoint, SpaceModel
from chat.models.imports import IMPORTS, ImportJob, place_of_import
from chat.models.instructions import Instruction, SavedPrompt
from chat.models.receipts import Receipt
from chat.models.threads import ReaderMarks, Thread, ThreadSession
from chat.models.tools import ToolServer
from chat.models.turns import Mention, Turn, load_attachments
from chat.models.usage import ModelPrice, UsageDay, UsageLimit, UsageSettings
