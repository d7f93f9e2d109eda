"""A backup is a consistent snapshot taken while people work; it restores into an empty installation."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from pydantic import SecretStr

from cato_web import VERSION
from cato_web.accounts.models import AuditEntry, AuthenticatorApp, OneTimeLink, Passkey, RecoveryCode, User
from cato_web.accounts.tokens import create_token
from cato_web.backups import rows
from cato_web.backups.errors import BackupWriteError, CorruptBackupError, RestoreError
from cato_web.backups.restoring import restore
from cato_web.backups.writing import atomic_output, back_up
from chat.encryption import encrypt
from chat.llm import endpoint
from chat.models import ModelPrice, Thread, ToolServer, Turn, UsageDay, UsageLimit
from memory import maintenance
from memory.api import NewRecord
from memory.exchanges.feedback import set_feedback
from memory.index import generations, reconcile
from memory.knowledge import decisions
from memory.models import CachedEmbedding, Collection, EmbeddingJob, Exchange, LexicalEntry, SpaceKnowledge
from memory.spaces import access
from tests import server
from tests.backups import create_backup, members, repack, rows_of, stored_file_names, wipe_installation
from tests.factories import (
    PNG,
    PersonFactory,
    ago,
    document,
    exchange,
    group,
    image_of,
    statement,
    thread,
    turn,
    upload,
)
from tests.server import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)

QUERIES = ("Where is the key?", "greenhouse", "anchor in how many fathoms", "colour of the boat", "zarquon")


@pytest.fixture
def alice(memory):
    return PersonFactory(name="Alice Owner", email="alice@halden.example")


@pytest.fixture
def owner(memory, alice):
    """Fill every table with data of two people and index it all; return the owner."""
    bob = PersonFactory(name="Bob Team", email="bob@halden.example")
    crew = group("Boat crew", alice, bob)
    talk = thread(alice, title="The greenhouse")
    first = turn(talk, "Where is the key to the greenhouse?", "Behind the clock.")
    turn(talk, "And the key to the boathouse?", "Under the buoy.", parent=first, is_on_active_branch=False)
    first.attachments.add(image_of(alice))
    Thread.objects.filter(pk=talk.pk).update(head=first)
    stored = exchange(alice, first.message, first.answer, thread_id=talk.id, turn_id=first.id)
    Turn.objects.filter(pk=first.pk).update(exchange_id=stored.id)
    boat = exchange(bob, "Which colour has the boat?", "Signal red.", space=crew, metadata={"zone": "north", "n": 3})
    set_feedback(alice.pk, boat, "pinned")
    buoy = NewRecord(id="buoy-7", text="Buoy 7 lies off the cape.", vector=np.eye(384, dtype=np.float32)[7])
    memory.upsert_records([buoy], space=crew, owner_id=bob.pk)
    add_statements(bob, boat)
    document(alice, "handbook.md", "# Anchoring\n\nDrop the anchor in seven fathoms of water.\n" * 30)
    upload(alice, "later.txt", "This is still to be read.")
    memory.forget([exchange(alice, "The combination is zarquon-4711.").id], by=alice.pk)
    endpoint.save(base_url="https://model.example/v1", api_key="sk-secret", model="m")
    create_token(alice, name="backup test", scopes=["read"], days=None)
    AuditEntry.objects.create(actor=alice, action="person.joined", target="member")
    maintenance.backfill()
    memory.erase_forgotten()
    return alice


def add_statements(person: User, source: Exchange) -> None:
    """Add statements that supersede and contradict each other, in a space whose extraction is on."""
    current, former, other = (
        statement(source, text=f"The boat is {colour}.") for colour in ("signal red", "green", "white")
    )
    decisions.confirm(person.pk, current.pk, revision=1)
    decisions.supersede(former, by_statement=current, by=person.pk)
    decisions.contradict(current, other)
    SpaceKnowledge.objects.create(space=source.space, is_on=True, due_at=ago(), tokens_used=7)


def add_usage_and_second_factor(person: User) -> None:
    """Store usage with its price and limit, and what the person signs in with besides the password."""
    used = {"date": date(2026, 11, 3), "purpose": "answer", "model": "m1", "person_id": person.pk}
    UsageDay.objects.create(**used, requests=3, prompt_tokens=1200, cost=Decimal("0.000300001"))
    ModelPrice.objects.create(model="m1", input_price=Decimal("0.25"), output_price=Decimal("2"))
    UsageLimit.objects.create(target="person", target_id=person.pk, unit="money", soft=Decimal("0.1"))
    AuthenticatorApp.objects.create(person=person, secret=b"encrypted", last_step=7)
    Passkey.objects.create(person=person, name="Key", credential_id=b"\x00id", credential=b"\xffkey", sign_count=2)
    RecoveryCode.objects.create(person=person, code_hash="0" * 64)


def all_rows() -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows, except what restoring resets for the index."""
    contents = {}
    for name, model in rows.backed_up_tables().items():
        columns = [field.attname for field in model._meta.concrete_fields]
        if model is EmbeddingJob:
            columns = ["id", "exchange_id", "generation_id"]
        found = model._base_manager.order_by("pk").values_list(*columns)
        contents[name] = [tuple(bytes(v) if isinstance(v, memoryview) else v for v in row) for row in found]
    return contents


def search_results(memory: Any, *people: Any) -> list[tuple[object, ...]]:
    """Return the search results of these people, in order."""
    return [
        (query, hit.exchange.id, hit.similarity and round(hit.similarity, 5), hit.explanation)
        for person in people
        for query in QUERIES
        for hit in memory.search(query, spaces=access.readable_space_ids(person.pk), count=20).results
    ]


def test_a_restored_installation_has_all_data_and_finds_the_same(memory, owner):
    bob = User.objects.get(name="Bob Team")
    add_usage_and_second_factor(owner)
    before, found = all_rows(), search_results(memory, owner, bob)
    stored = {name: content for name, content in members(create_backup()).items() if name.startswith("files/")}
    assert len(stored) == 3
    assert PNG in stored.values()
    assert len(found) > 15

    restored = restore(wipe_installation(create_backup()))

    assert all_rows() == before
    assert {f"files/{name}": default_storage.open(name).read() for name in stored_file_names()} == stored
    assert (restored.people, restored.files, restored.lost_secrets) == (2, 3, [])
    assert not Collection.objects.exists()
    reconcile.drop_orphan_collections()
    maintenance.backfill()
    assert search_results(memory, owner, bob) == found
    assert reconcile.measure_drift() == reconcile.Drift(0, 0)


def test_people_sign_in_and_continue_after_a_restore(memory, owner):
    restore(wipe_installation(create_backup()))

    client = Client()
    assert client.post("/sign-in", {"email": "alice@halden.example", "password": PASSWORD}).status_code == 302
    assert "The greenhouse" in client.get("/threads").content.decode()
    assert endpoint.current().api_key == "sk-secret"
    # Sequences continue after the restored rows.
    AuditEntry.objects.create(actor=owner, action="person.joined", target="again")
    exchange(owner, "The ladder stands in the shed.")
    assert maintenance.backfill().failed == 0
    memory.read_documents()
    assert any("still to be read" in e.user_message for e in Exchange.objects.all())


def test_restored_texts_are_only_embedded_again_if_their_vectors_were_left_out(memory, owner, monkeypatch):
    embedded: list[str] = []
    embedder = type(generations.embedder_for(generations.active_generation()))
    whole = embedder.embed_documents
    monkeypatch.setattr(embedder, "embed_documents", lambda self, texts: embedded.extend(texts) or whole(self, texts))
    with_vectors, without_member = create_backup(), create_backup(with_vectors=False)
    assert len(without_member) < len(with_vectors)

    restore(wipe_installation(with_vectors))
    maintenance.backfill()
    assert embedded == []

    restore(wipe_installation(without_member))
    maintenance.backfill()
    assert len(embedded) >= CachedEmbedding.objects.count() > 0


def test_concurrent_writes_do_not_wait_and_are_not_in_the_snapshot(owner):
    """The writers commit in the middle of the backup, which then continues."""

    def write() -> None:
        for _ in range(3):
            talk = thread(owner, title="Meanwhile")
            turn(talk, "Said meanwhile", "Heard meanwhile.")
            exchange(owner, "Said meanwhile", "Heard meanwhile.", thread_id=talk.id)
        connection.close()

    def meanwhile(stage: str, count: int) -> None:
        if not writers:
            writers.append(writer := threading.Thread(target=write))
            writer.start()
            writer.join(15)

    writers: list[threading.Thread] = []
    data = create_backup(progress=meanwhile)

    assert not writers[0].is_alive()
    assert Thread.objects.filter(title="Meanwhile").count() == 3
    assert b"eanwhile" not in gzip.decompress(data)
    counts = json.loads(members(data)["manifest.json"])["rows"]
    assert {table: len(rows_of(data, table)) for table in counts} == counts


def test_a_file_removed_meanwhile_is_skipped_and_counted(owner):
    def remove(stage: str, count: int) -> None:
        if stage == "rows":
            default_storage.delete(stored_file_names()[0])

    out = io.BytesIO()
    written = back_up(out, progress=remove)

    assert (written.files, written.vanished) == (2, 1)
    assert restore(wipe_installation(out.getvalue())).files == 2


def test_forgotten_data_is_not_in_the_backup_and_stays_forgotten(memory, alice):
    """The second exchange is forgotten but not yet erased: its row still has its text."""
    for text in ("The combination is zarquon-4711.", "The pin is hyzenthlay-99."):
        overrides = exchange(alice, text)
        memory.index_pending()
        assert text.encode() in gzip.decompress(create_backup())
        memory.forget([overrides.id], by=alice.pk)
        if "zarquon" in text:
            memory.erase_forgotten()
    assert Exchange.objects.filter(user_message__contains="hyzenthlay").exists()
    vectors = CachedEmbedding.objects.get().vectors

    data = create_backup()
    restore(wipe_installation(data))
    maintenance.backfill()
    memory.erase_forgotten()

    inside = gzip.decompress(data)
    assert b"zarquon" not in inside
    assert b"hyzenthlay" not in inside
    assert bytes(vectors) not in [bytes(stored.vectors) for stored in CachedEmbedding.objects.all()]
    assert list(Exchange.objects.values_list("user_message", "content_hash")) == [("", "")] * 2
    assert not Exchange.objects.filter(erased_at=None).exists()
    assert (LexicalEntry.objects.count(), EmbeddingJob.objects.count()) == (0, 0)
    # The tombstone also prevents that an import of the same conversation restores it.
    assert Exchange.objects.exclude(forgotten_at=None).count() == 2


def test_a_forgotten_passage_is_recognised_after_a_restore_and_its_backup_has_no_hash_of_its_text(memory, alice):
    document(alice, "pins.txt", "The pin of the boathouse is hyzenthlay-99.")
    passage = Exchange.objects.get()
    memory.forget([passage.pk], by=alice.pk)
    mark = Exchange.objects.get().content_hash

    data = create_backup()
    restore(wipe_installation(data))
    memory.erase_forgotten()

    assert passage.content_hash.encode() not in gzip.decompress(data)
    assert (Exchange.objects.get().content_hash, Exchange.objects.get().user_message) == (mark, "")


def flip_byte(data: bytes) -> bytes:
    middle = len(data) * 2 // 3
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def without_member(name: str) -> Callable[[bytes], bytes]:
    """Return a change that removes the first member whose name starts with `name`."""
    return lambda data: repack(data, lambda inside: inside.pop(next(n for n in inside if n.startswith(name))))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda data: data[: len(data) // 3],
    "almost whole": lambda data: data[:-9],
    "a bit flipped": flip_byte,
    "empty": lambda data: b"",
    "text": lambda data: b"no backup at all",
    "a gzip of something": lambda data: gzip.compress(b"nor this"),
    "no end": without_member("end.json"),
    "no manifest": without_member("manifest.json"),
    "a part missing": without_member("rows/memory.exchange/"),
    "a table missing": without_member("rows/people.user/"),
    "a file missing": without_member("files/"),
    "a row cut": lambda data: repack(data, lambda inside: inside.update({"rows/memory.space/00002": b"{not json"})),
    "a name that leads out": lambda data: repack(data, lambda inside: inside.update({"files/../../../out": b"x"})),
}


def test_a_damaged_backup_is_refused_and_changes_nothing(owner):
    whole = create_backup()
    key = settings.CATO.server.data_dir / "secret_key"
    key_before = key.read_text()
    wipe_installation(whole)
    files_before = sorted(stored_files())

    for name, damage in DAMAGES.items():
        with pytest.raises(CorruptBackupError, match="Nothing was changed"):
            restore(io.BytesIO(damage(whole)))
        assert (User.objects.count(), Exchange.objects.count(), Thread.objects.count()) == (0, 0, 0), name
        assert (sorted(stored_files()), key.read_text()) == (files_before, key_before), name
    assert restore(io.BytesIO(whole)).people == 2


def stored_files() -> Iterator[Path]:
    return (path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file())


def test_an_installation_with_people_is_not_overwritten(owner):
    data = create_backup()
    before = all_rows()

    with pytest.raises(RestoreError, match="This installation is not empty"):
        restore(io.BytesIO(data))

    assert all_rows() == before


def test_a_set_up_link_and_rows_of_the_first_start_are_replaced(owner):
    data = wipe_installation(create_backup())
    call_command("prepare")
    access.team_space()
    generations.active_generation()
    assert OneTimeLink.objects.filter(kind="setup").exists()

    restore(data)

    assert not OneTimeLink.objects.filter(kind="setup").exists()
    assert generations.active_generation().state == "serving"


def test_a_backup_of_an_older_version_is_migrated(owner):
    """This one is of a version that had no tables of chat yet."""

    def make_older(inside: dict[str, bytes]) -> None:
        manifest = json.loads(inside["manifest.json"])
        del manifest["migrations"]["chat"]
        manifest["rows"] = {name: n for name, n in manifest["rows"].items() if not name.startswith("chat.")}
        inside["manifest.json"] = json.dumps(manifest).encode()
        for name in [name for name in inside if name.startswith("rows/chat.")]:
            del inside[name]

    before = all_rows()
    old = repack(create_backup(), make_older)

    restore(wipe_installation(old))

    assert all_rows() == {name: [] if name.startswith("chat.") else rows for name, rows in before.items()}
    assert ("chat", "0001_initial") in MigrationRecorder(connection).applied_migrations()


def test_a_backup_of_a_newer_version_is_refused_and_names_it(owner):
    def make_newer(inside: dict[str, bytes]) -> None:
        manifest = json.loads(inside["manifest.json"]) | {"cato": "9.1"}
        manifest["migrations"]["memory"].append("0999_telepathy")
        inside["manifest.json"] = json.dumps(manifest).encode()

    later = repack(create_backup(), make_newer)

    with pytest.raises(RestoreError, match=r"of Cato 9\.1.*that version or a later one"):
        restore(wipe_installation(later))
    assert not User.objects.exists()


def test_a_restore_with_another_secret_key_names_what_is_lost(owner, settings):
    settings.CATO = settings.CATO.model_copy(update={"secret_key": SecretStr("one" * 20)})
    AuthenticatorApp.objects.create(person=owner, secret=encrypt("JBSWY3DPEHPK3PXP"))
    ToolServer.objects.create(name="Files", encrypted_token=encrypt("a token"))
    ToolServer.objects.create(name="Without a token")
    data = wipe_installation(create_backup())
    assert "secret_key" not in members(data.getvalue())
    settings.SECRET_KEY = "another" * 10
    lost = restore(data).lost_secrets

    assert [line.split(" (")[0] for line in lost] == ["model endpoints: 1", "tool servers: 1", "authenticator apps: 1"]
    assert "remove_second_factor" in lost[-1]
    assert endpoint.current().api_key == ""


def test_the_backup_contains_the_package_version(db):
    project = tomllib.loads((server.ROOT / "pyproject.toml").read_text())
    assert project["project"]["version"] == VERSION


@pytest.fixture(params=[None, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def hard_links(request, monkeypatch) -> None:
    """Let hard links work, or fail as on file systems that have none."""

    def fail(*_: Any) -> None:
        raise OSError(request.param, os.strerror(request.param))

    if request.param is not None:
        monkeypatch.setattr(os, "link", fail)


def test_a_backup_gets_its_name_once_it_is_complete_on_any_file_system(hard_links, tmp_path):
    path = tmp_path / "cato.backup"
    with atomic_output(path) as out:
        out.write(b"all of it")
        assert not path.exists()
    assert path.read_bytes() == b"all of it"
    assert list(tmp_path.iterdir()) == [path]


def test_a_backup_replaces_no_file_that_was_written_meanwhile(hard_links, tmp_path):
    path = tmp_path / "cato.backup"
    with pytest.raises(BackupWriteError, match="cannot be written: File exists"), atomic_output(path):
        path.write_bytes(b"another")
    assert path.read_bytes() == b"another"
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(params=["full disk", "closed pipe"])
def unwritable(request) -> Iterator[tuple[IO[str], str]]:
    """Return a file that refuses what is written to it, and the reason."""
    if request.param == "full disk":
        handle, reason = os.open("/dev/full", os.O_WRONLY), errno.ENOSPC
    else:
        reader, handle = os.pipe()
        os.close(reader)
        reason = errno.EPIPE
    with os.fdopen(handle, "w") as out:
        yield out, os.strerror(reason)


def test_a_backup_whose_output_cannot_be_written_is_an_error(unwritable, monkeypatch):
    out, reason = unwritable
    messages = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(CommandError, match=reason):
        call_command("backup", "-", stderr=messages)
    assert "Wrote" not in messages.getvalue()


def test_a_path_below_a_file_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match=r"cato.backup cannot be written: Not a directory"):
        call_command("backup", str(tmp_path / "file" / "cato.backup"))


def test_a_stored_file_that_cannot_be_read_is_named(owner, monkeypatch):
    name = stored_file_names()[0]
    monkeypatch.setattr(default_storage, "open", failing(PermissionError(errno.EACCES, "Permission denied")))
    with pytest.raises(BackupWriteError, match=f"{name} cannot be read: Permission denied"):
        create_backup()


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ((rows, "load_table"), OperationalError("database or disk is full")),
        ((default_storage, "save"), OSError(errno.ENOSPC, "No space left on device")),
    ],
)
def test_a_restore_onto_a_full_disk_does_not_blame_the_backup(owner, monkeypatch, where, error):
    source = wipe_installation(create_backup())
    monkeypatch.setattr(*where, failing(error))
    with pytest.raises(RestoreError, match=f"not restored completely: .*{error.args[-1]}"):
        restore(source)
    assert not User.objects.exists()


def failing(error: Exception) -> Callable[..., None]:
    """Return a function that raises the error."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail
