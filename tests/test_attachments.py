"""Images in messages: sent to the model, visible to readers of the thread, and deleted with the last turn."""

from __future__ import annotations

import base64
import re
import uuid

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from chat import access, services
from chat.attachments import own_attachments, store_image
from chat.errors import InvalidMessageError
from chat.llm.prompts import build_prompt, fit_history
from chat.models import Attachment, Thread, Turn
from memory.errors import NotFoundError
from memory.models import Membership
from memory.spaces import access as spaces
from tests.factories import PNG, PersonFactory, ago, group, image_of, thread, turn
from tests.server import wait_for

KEY = "cato"
JPEG = b"\xff\xd8\xff\xe0" + bytes(60)


def turn_with_image(person, in_thread=None) -> Turn:
    thread_ = in_thread or thread(person)
    one = turn(thread_, "What is this?", "A red dot.")
    one.attachments.add(image_of(person))
    thread_.head = one
    thread_.save()
    return one


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "media_type"),
    [(PNG, "image/png"), (JPEG, "image/jpeg"), (b"GIF89a" + PNG, "image/gif"), (b"RIFF1234WEBPVP8 ", "image/webp")],
)
def test_an_image_is_detected_by_its_content(person, content, media_type):
    assert image_of(person, "drawing.txt", content).media_type == media_type


@pytest.mark.django_db
@pytest.mark.parametrize("content", [b"", b"<svg onload=alert(1)>", b"RIFF1234WAVE", b"%PDF-1.7"])
def test_a_file_that_is_no_image_is_refused_whatever_its_name(person, content):
    with pytest.raises(InvalidMessageError, match=r"key\.png is not a supported image"):
        image_of(person, "key.png", content)
    assert not Attachment.objects.exists()


@pytest.mark.django_db
def test_a_too_large_image_is_refused_and_the_limit_named(person):
    large = ContentFile(PNG, name="large.png")
    large.size = 11_000_000
    with pytest.raises(InvalidMessageError, match=r"11 MB; a picture may have 10 \(chat.max_image_mb\)"):
        store_image(large, owner_id=person.id)


@pytest.mark.django_db
def test_the_model_receives_the_image_unchanged_and_those_of_the_previous_turns(person):
    thread_ = thread(person)
    turns = [turn_with_image(person, thread_) for _ in range(4)]
    prompt = build_prompt(
        history=fit_history(turns[:3], max_tokens=10_000),
        prompt_context="",
        turn=turns[3],
        attachments=turns[3].attachments.all(),
    )

    kinds = [type(message["content"]).__name__ for message in prompt if message["role"] == "user"]
    assert kinds == ["str", "list", "list", "list"]
    assert prompt[1]["content"] == "What is this?\n[picture: key.png]"
    text, image = prompt[-1]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    assert base64.b64decode(image["image_url"]["url"].removeprefix("data:image/png;base64,")) == PNG


@pytest.mark.django_db
def test_only_own_images_can_be_attached_up_to_the_limit(person, settings):
    bob = PersonFactory()
    for images, message in (([image_of(bob).id], "An attachment has expired"), ([uuid.uuid4()] * 9, "at most 8 files")):
        with pytest.raises(InvalidMessageError, match=message):
            services.post_message(
                thread(person).id, author_id=person.id, message="Look", client_key=uuid.uuid4(), attachments=images
            )


@pytest.mark.django_db
@pytest.mark.parametrize("ends", ["", "left", "moved", "deleted"])
def test_an_own_image_can_be_sent_again_while_its_thread_can_be_read(person, ends):
    in_group = turn_with_image(person, thread(person, space=group("Pilots", person)))
    image, talk = in_group.attachments.get(), in_group.thread
    if ends == "left":
        Membership.objects.all().delete()
    elif ends == "moved":
        Thread.objects.filter(id=talk.id).update(space=spaces.personal_space(PersonFactory().id))
    elif ends == "deleted":
        Thread.objects.filter(id=talk.id).update(deleted_at=ago())

    def send() -> Turn:
        posted = services.post_message(
            thread(person).id, author_id=person.id, message="Look", client_key=uuid.uuid4(), attachments=[image.id]
        )
        return posted.turn

    if ends:
        with pytest.raises(InvalidMessageError, match="An attachment has expired"):
            send()
        assert not own_attachments([image.id], owner_id=person.id)
    else:
        assert list(send().attachments.all()) == [image]


@pytest.mark.django_db
def test_only_readers_of_the_thread_can_open_its_images(person):
    bob = PersonFactory()
    unsent, own, shared = image_of(person), turn_with_image(person), turn_with_image(person)
    shared.thread.space = spaces.team_space()
    shared.thread.save()

    assert access.get_attachment(person.id, unsent.id)
    assert access.get_attachment(bob.id, shared.attachments.get().id)
    for image in (unsent, own.attachments.get()):
        with pytest.raises(NotFoundError):
            access.get_attachment(bob.id, image.id)


@pytest.mark.django_db(transaction=True)
def test_an_image_is_deleted_with_the_last_turn_that_contains_it(person):
    one = turn_with_image(person)
    image = one.attachments.get()
    fork = services.fork_thread(one, person_id=person.id)
    services.delete_last_turns(one.thread, 1, by=person.id)
    assert default_storage.exists(image.file.name)

    services.delete_last_turns(fork, 1, by=person.id)
    assert not Attachment.objects.exists()
    assert not default_storage.exists(image.file.name)


@pytest.mark.django_db(transaction=True)
def test_an_image_that_was_never_sent_is_deleted_later(person):
    old, young, sent = image_of(person), image_of(person), turn_with_image(person).attachments.get()
    Attachment.objects.exclude(id=young.id).update(created_at=ago(days=3))

    assert services.delete_unsent_attachments() == 1
    assert set(Attachment.objects.values_list("id", flat=True)) == {young.id, sent.id}
    assert not default_storage.exists(old.file.name)


@pytest.mark.django_db
def test_an_edited_message_keeps_its_images(person):
    one = turn_with_image(person)
    edited = services.edit_message(one, person_id=person.id, message="And this?", client_key=uuid.uuid4()).posted.turn

    assert list(edited.attachments.all()) == list(one.attachments.all())


def add_image(client) -> str:
    page = client.post("/attachments", files={"attachments": ("key.png", PNG, "image/png")}, htmx=True).text
    return re.search(r'name="attachment"\s+value="([0-9a-f-]+)"', page)[1]


def test_an_image_is_sent_and_shown(alice, bob, endpoint):
    endpoint.script(KEY, answer="A red dot.")
    thread_id = alice.send_message("Hello")
    wait_for(lambda: "A red dot." in alice.thread_page(thread_id), "the first answer")
    attachment_id = add_image(alice)
    endpoint.clear(KEY)
    sent = {"message": "What is this?", "client_key": str(uuid.uuid4()), "attachment": attachment_id}
    alice.post(f"/t/{thread_id}/messages", sent)

    requests = wait_for(lambda: endpoint.requests(KEY), "the model to be asked")
    assert requests[0]["messages"][-1]["content"][1]["type"] == "image_url"
    assert f'src="/attachments/{attachment_id}"' in alice.thread_page(thread_id)
    response = alice.get(f"/attachments/{attachment_id}")
    assert (response.content, response.headers["content-type"]) == (PNG, "image/png")
    assert response.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert response.headers["cross-origin-resource-policy"] == "same-origin"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert bob.get(f"/attachments/{attachment_id}").status_code == 404


def test_an_answer_that_has_begun_is_not_repeated_without_its_images(alice, endpoint):
    """What is rejected after the first text, such as a prompt that has grown too long, has another reason."""
    search = ["search_memory", '{"query": "lighthouse"}']
    endpoint.script(KEY, answer="I see a lighthouse.", calls=[[search]], mode="overfull")
    attachment_id = add_image(alice)
    data = {"message": "What is this?", "client_key": str(uuid.uuid4()), "attachment": attachment_id}
    thread_id = alice.post("/", data).headers["location"].split("/")[-1]

    page = wait_for(lambda: (p := alice.thread_page(thread_id)) and "turn__status--failed" in p and p, "the failure")
    assert page.count("I see a lighthouse.") == 1
    assert "does not support images" not in page


def test_a_model_without_image_support_answers_without_it_and_the_turn_reports_it(alice, endpoint):
    endpoint.script(KEY, answer="I cannot see it.", mode="blind")
    attachment_id = add_image(alice)
    data = {"message": "What is this?", "client_key": str(uuid.uuid4()), "attachment": attachment_id}
    thread_id = alice.post("/", data).headers["location"].split("/")[-1]

    page = wait_for(lambda: (p := alice.thread_page(thread_id)) and "I cannot see it." in p and p, "the answer")
    assert "This model does not support images; they were not sent." in page
    assert "[a picture that you cannot see]" in str(endpoint.requests(KEY)[-1])
