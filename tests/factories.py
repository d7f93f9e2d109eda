"""Factories for people, threads, turns, exchanges and documents in the test's process."""

from __future__ import annotations

import io
import uuid
import zipfile
from datetime import datetime
from typing import Any

import factory
from django.core.files.base import ContentFile
from django.test import Client
from django.utils import timezone

from cato_web.accounts.export.worker import run_exports
from cato_web.accounts.models import ApiToken, User
from cato_web.accounts.services import create_person
from cato_web.accounts.tokens import create_token
from chat.answers.job import AnswerJob, build_job
from chat.attachments import store_image as receive_image
from chat.models import Attachment, Thread, ThreadSession, Turn
from memory import api
from memory.documents.uploads import UploadResult
from memory.knowledge.statements import NewStatement, NewSupport, add_statements
from memory.models import Document, Exchange, Membership, Space, Statement
from memory.spaces import access


class PersonFactory(factory.Factory[User]):
    """An account with its personal space."""

    class Meta:
        model = User

    name = factory.Sequence(lambda n: f"Person {n}")
    email = factory.Sequence(lambda n: f"person{n}@halden.example")
    password = "four plain words are fine"

    @classmethod
    def _create(cls, model_class: type[User], *args: Any, **kwargs: Any) -> User:
        return create_person(**kwargs)


class AdministratorFactory(PersonFactory):
    role = User.Role.ADMINISTRATOR


def group(name: str, *members: User) -> Space:
    """Create a group with these members."""
    space = Space.objects.create(kind=Space.Kind.GROUP, name=name)
    Membership.objects.bulk_create([Membership(space=space, person=person) for person in members])
    return space


def exchange(
    owner: User, message: str, answer: str = "Noted.", *, space: Space | None = None, **fields: Any
) -> Exchange:
    """Remember an exchange that is not embedded yet."""
    return api.remember(
        api.NewExchange(
            space=space or access.personal_space(owner.id),
            owner_id=owner.id,
            user_message=message,
            assistant_message=answer,
            source=fields.pop("source", "chat"),
            **fields,
        )
    )


def statement(
    *sources: Exchange, text: str = "A buoy makes at most 28 retries a day.", kind: str = "fact", topic: str = "Uplink"
) -> Statement:
    """Store a statement that these exchanges support, each with its whole message."""
    supports = [NewSupport(source.pk, source.user_message, source.version) for source in sources]
    new = NewStatement(text=text, kind=kind, topic=topic, supports=supports)
    (added,) = add_statements(sources[0].space, [new], read=supports)
    return added


def thread(owner: User, *, space: Space | None = None, title: str = "A thread", **fields: Any) -> Thread:
    return Thread.objects.create(
        owner=owner,
        space=space or access.personal_space(owner.id),
        title=title,
        last_message_at=timezone.now(),
        **fields,
    )


def turn(in_thread: Thread, message: str = "A question", answer: str = "An answer", **fields: Any) -> Turn:
    """Append a turn to the thread, complete by default."""
    session = in_thread.sessions.first() or ThreadSession.objects.create(
        thread=in_thread, started_by=in_thread.owner, started_at=timezone.now()
    )
    return Turn.objects.create(
        thread=in_thread,
        session=session,
        position=in_thread.turns.count(),
        author=fields.pop("author", in_thread.owner),
        client_key=fields.pop("client_key", uuid.uuid4()),
        message=message,
        answer=answer,
        state=fields.pop("state", Turn.State.COMPLETE),
        **fields,
    )


def answer_job(one: Turn) -> AnswerJob:
    """Return the job of this turn, in whichever state it is."""
    row = Turn.objects.select_related("author", "session", "thread__space").get(id=one.id)
    return build_job(row, tuple(row.attachments.all()))


def signed_in(person: User) -> Client:
    """Return a client that is signed in as this person."""
    client = Client()
    client.force_login(person)
    return client


def exported_archive(person: User) -> zipfile.ZipFile:
    """Return the archive that this person requests on the page, a worker writes, and the person downloads."""
    client = signed_in(person)
    assert client.post("/settings/export").status_code == 302
    run_exports()
    response = client.get("/settings/export/file")
    assert response.headers.get("Content-Type") == "application/zip"
    archive = zipfile.ZipFile(io.BytesIO(b"".join(response)))
    assert archive.testzip() is None
    return archive


def api_client(person: User, *scopes: str) -> Client:
    """Return a client with an API token of this person, with all scopes by default."""
    token = create_token(person, name="a program", scopes=scopes or ApiToken.Scope.values, days=30)
    return Client(headers={"Authorization": f"Bearer {token}"})


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c6338c1c00000025c00c943c812460000000049454e44ae426082"
)


def image_of(owner: User, name: str = "key.png", content: bytes = PNG) -> Attachment:
    """Store an image that no message contains yet: one red pixel by default."""
    return receive_image(ContentFile(content, name=name), owner_id=owner.id)


def ago(**units: float) -> datetime:
    return timezone.now() - timezone.timedelta(**units)


def upload(owner: User, name: str, content: str | bytes, *, space: Space | None = None, **fields: Any) -> UploadResult:
    """Upload a file that is not read yet."""
    data = content.encode() if isinstance(content, str) else content
    return api.upload_document(
        ContentFile(data),
        name=name,
        space=space or access.personal_space(owner.id),
        owner_id=owner.id,
        source="upload",
        **fields,
    )


def document(owner: User, name: str, content: str | bytes, **fields: Any) -> Document:
    """Upload a document, extract, embed and publish it."""
    version = upload(owner, name, content, **fields).version
    process_documents()
    return Document.objects.get(pk=version.document_id)


def sweep_memory() -> None:
    """Do what a sweep does in memory, once; unlike in a worker, an error ends the sweep."""
    for step in api.SWEEP_STEPS:
        step()


def process_documents() -> None:
    """Do the workers' work for documents until none is left."""
    api.read_documents()
    api.index_pending()
    api.publish_ready_versions()
    api.cleanup_documents()
    api.erase_forgotten()
