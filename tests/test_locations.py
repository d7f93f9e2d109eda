"""/vdoc reads files on the server, only below the configured folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chat import commands
from memory.documents import server_folders
from memory.errors import InvalidInputError
from memory.models import Document
from memory.spaces import access
from tests.factories import process_documents


@pytest.fixture
def root(tmp_path: Path, settings) -> Path:
    """Return the folder of the alias `docs`, next to a secret file."""
    root = tmp_path / "shared"
    (root / "manuals").mkdir(parents=True)
    (root / "rent.txt").write_text("The rent of the barn is 950 euros. " * 10)
    (root / "manuals" / "saw.md").write_text("The band saw is serviced by Ingrid each spring. " * 10)
    (tmp_path / "secret.txt").write_text("The safe opens with 4711.")
    settings.CATO = settings.CATO.model_copy(update={"locations": {"docs": root}})
    return root


def names(root: Path, location: str) -> list[str]:
    return [found.name for found in server_folders.resolve_server_path({"docs": root}, location)]


def test_files_and_folders_are_named_by_alias_and_path(root):
    assert names(root, "docs:rent.txt") == ["docs/rent.txt"]
    assert names(root, "docs:") == ["docs/rent.txt", "docs/manuals/saw.md"]
    assert names(root, "docs:manuals") == ["docs/manuals/saw.md"]


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("docs:../secret.txt", "without .."),
        ("docs:manuals/../../secret.txt", "without .."),
        ("docs:/etc/passwd", "leading slash"),
        ("other:rent.txt", "Configured here: docs:"),
        ("rent.txt", "alias:path"),
        ("docs:none.txt", "nothing at"),
        ("docs:ou\x00t", "nothing at"),
        ("docs:way-out", "is outside its folder"),
        ("docs:way-out/secret.txt", "is outside its folder"),
        ("docs:link.txt", "is outside its folder"),
    ],
)
def test_paths_outside_the_folders_are_refused(root, location, expected):
    (root / "way-out").symlink_to(root.parent)
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    with pytest.raises(InvalidInputError, match=expected):
        names(root, location)


def test_links_and_hidden_files_in_a_folder_are_skipped(root):
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    (root / "way-out").symlink_to(root.parent)
    (root / ".env").write_text("TOKEN=4711")
    assert names(root, "docs:") == ["docs/rent.txt", "docs/manuals/saw.md"]


def test_pipes_and_devices_are_refused(root):
    os.mkfifo(root / "pipe")
    with (
        pytest.raises(InvalidInputError, match="not a regular file"),
        server_folders.open_server_file(server_folders.ServerFile("pipe", root / "pipe")),
    ):
        pass
    with (
        pytest.raises(InvalidInputError, match="not a regular file"),
        server_folders.open_server_file(server_folders.ServerFile("z", Path("/dev/zero"))),
    ):
        pass


def test_a_file_replaced_by_a_link_before_it_is_opened_is_refused(root):
    (found,) = server_folders.resolve_server_path({"docs": root}, "docs:rent.txt")
    (root / "rent.txt").unlink()
    (root / "rent.txt").symlink_to(root.parent / "secret.txt")
    with pytest.raises(InvalidInputError, match="cannot be read"), server_folders.open_server_file(found):
        pass


@pytest.fixture
def caller(person):
    return commands.CommandContext(
        person_id=person.id, is_administrator=False, context_mode="summary", set_context_mode=lambda mode: None
    )


@pytest.mark.django_db(transaction=True)
def test_vdoc_adds_a_folder_with_a_chip_for_each_file(memory, person, caller, root):
    (root / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")

    card = commands.run("/vdoc docs:", caller)

    assert card.title == "2 of 3 files added"
    assert [(chip.name, bool(chip.error)) for chip in card.chips] == [
        ("docs/picture.png", True),
        ("docs/rent.txt", False),
        ("docs/manuals/saw.md", False),
    ]
    process_documents()
    found = memory.search("who services the saw", spaces=access.readable_space_ids(person.id)).results
    assert found[0].exchange.source_file == "docs/manuals/saw.md"
    assert set(Document.objects.values_list("source", flat=True)) == {"vdoc_command"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("message", ["/vdoc docs:../secret.txt", "/vdoc none:x", '/vdoc "docs:none.txt"'])
def test_vdoc_explains_invalid_arguments(memory, person, caller, root, message):
    with pytest.raises(InvalidInputError):
        commands.run(message, caller)
    assert not Document.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_vadd_stores_a_note(memory, person, caller):
    commands.run('/vadd "The greenhouse key hangs behind the clock."', caller)
    memory.index_pending()

    (found, *_) = memory.search("greenhouse key", spaces=access.readable_space_ids(person.id)).results
    assert found.exchange.user_message == "The greenhouse key hangs behind the clock."
    assert found.exchange.source == "vadd_command"
