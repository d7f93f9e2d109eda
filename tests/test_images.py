"""Pictures with messages: shown to the model and to who may read the thread, and gone when the last turn is."""

from __future__ import annotations

import base64
import re
import uuid

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from chat import access, services
from chat.errors import InvalidMessageError
from chat.images import store_image
from chat.llm.prompts import build_prompt, fit_history
from chat.models import Image, Turn
from memory.errors import NotFoundError
from memory.spaces import access as spaces
from tests.factories import PNG, PersonFactory, ago, image_of, thread, turn
from tests.server import wait_for

KEY = "cato"
JPEG = b"\xff\xd8\xff\xe0" + bytes(60)


def said_with_picture(person, in_thread=None) -> Turn:
    here = in_thread or thread(person)
    one = turn(here, "What is this?", "A red dot.")
    one.images.add(image_of(person))
    here.head = one
    here.save()
    return one


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "media_type"),
    [(PNG, "image/png"), (JPEG, "image/jpeg"), (b"GIF89a" + PNG, "image/gif"), (b"RIFF1234WEBPVP8 ", "image/webp")],
)
def test_a_picture_is_known_by_its_content(person, content, media_type):
    assert image_of(person, "drawing.txt", content).media_type == media_type


@pytest.mark.django_db
@pytest.mark.parametrize("content", [b"", b"<svg onload=alert(1)>", b"RIFF1234WAVE", b"%PDF-1.7"])
def test_what_is_no_picture_is_refused_whatever_its_name_says(person, content):
    with pytest.raises(InvalidMessageError, match=r"key\.png is not a supported image"):
        image_of(person, "key.png", content)
    assert not Image.objects.exists()


@pytest.mark.django_db
def test_a_picture_that_is_too_large_is_refused_with_what_is_allowed(person):
    large = ContentFile(PNG, name="large.png")
    large.size = 11_000_000
    with pytest.raises(InvalidMessageError, match=r"11 MB; a picture may have 10 \(chat.max_image_mb\)"):
        store_image(large, owner_id=person.id)


@pytest.mark.django_db
def test_the_model_gets_the_picture_as_it_is_and_those_of_the_turns_just_before(person):
    here = thread(person)
    turns = [said_with_picture(person, here) for _ in range(4)]
    prompt = build_prompt(history=fit_history(turns[:3], max_tokens=10_000), prompt_context="", turn=turns[3])

    kinds = [type(message["content"]).__name__ for message in prompt if message["role"] == "user"]
    assert kinds == ["str", "list", "list", "list"]
    assert prompt[1]["content"] == "What is this?\n[picture: key.png]"
    text, picture = prompt[-1]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    assert base64.b64decode(picture["image_url"]["url"].removeprefix("data:image/png;base64,")) == PNG


@pytest.mark.django_db
def test_only_ones_own_pictures_go_with_a_message_and_only_so_many(person, settings):
    bob = PersonFactory()
    for images, why in (([image_of(bob).id], "An image has expired"), ([uuid.uuid4()] * 9, "At most 8 pictures")):
        with pytest.raises(InvalidMessageError, match=why):
            services.post_message(
                thread(person), author_id=person.id, message="Look", client_key=uuid.uuid4(), images=images
            )


@pytest.mark.django_db
def test_who_may_read_the_thread_sees_its_pictures_and_nobody_else(person):
    bob = PersonFactory()
    unsent, own, shared = image_of(person), said_with_picture(person), said_with_picture(person)
    shared.thread.space = spaces.team_space()
    shared.thread.save()

    assert access.get_image(person.id, unsent.id)
    assert access.get_image(bob.id, shared.images.get().id)
    for image in (unsent, own.images.get()):
        with pytest.raises(NotFoundError):
            access.get_image(bob.id, image.id)


@pytest.mark.django_db(transaction=True)
def test_a_picture_goes_with_the_last_turn_that_has_it(person):
    one = said_with_picture(person)
    image = one.images.get()
    fork = services.fork_thread(one, person_id=person.id)
    services.delete_last_turns(one.thread, 1, by=person.id)
    assert default_storage.exists(image.file.name)

    services.delete_last_turns(fork, 1, by=person.id)
    assert not Image.objects.exists()
    assert not default_storage.exists(image.file.name)


@pytest.mark.django_db(transaction=True)
def test_what_was_never_sent_is_removed_after_a_while(person):
    old, young, sent = image_of(person), image_of(person), said_with_picture(person).images.get()
    Image.objects.exclude(id=young.id).update(created_at=ago(days=3))

    assert services.delete_unsent_images() == 1
    assert set(Image.objects.values_list("id", flat=True)) == {young.id, sent.id}
    assert not default_storage.exists(old.file.name)


@pytest.mark.django_db
def test_an_edited_message_keeps_its_pictures(person):
    one = said_with_picture(person)
    edited = services.edit_message(one, person_id=person.id, message="And this?", client_key=uuid.uuid4()).posted.turn

    assert list(edited.images.all()) == list(one.images.all())


def add_picture(client) -> str:
    page = client.post("/images", files={"images": ("key.png", PNG, "image/png")}, htmx=True).text
    return re.search(r'name="image" value="([0-9a-f-]+)"', page)[1]


def test_a_picture_is_asked_about_and_shown(alice, bob, endpoint):
    endpoint.script(KEY, answer="A red dot.")
    begun = alice.send_message("Hello")
    wait_for(lambda: "A red dot." in alice.thread_page(begun), "the first answer")
    picture = add_picture(alice)
    endpoint.clear(KEY)
    sent = {"message": "What is this?", "client_key": str(uuid.uuid4()), "image": picture}
    alice.post(f"/t/{begun}/say", sent)

    asked = wait_for(lambda: endpoint.requests(KEY), "the model to be asked")
    assert asked[0]["messages"][-1]["content"][1]["type"] == "image_url"
    assert f'src="/images/{picture}"' in alice.thread_page(begun)
    shown = alice.get(f"/images/{picture}")
    assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
    assert shown.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert shown.headers["cross-origin-resource-policy"] == "same-origin"
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert bob.get(f"/images/{picture}").status_code == 404


def test_a_model_that_takes_no_pictures_answers_without_and_the_turn_says_so(alice, endpoint):
    endpoint.script(KEY, answer="I cannot see it.", mode="blind")
    picture = add_picture(alice)
    data = {"message": "What is this?", "client_key": str(uuid.uuid4()), "image": picture}
    begun = alice.post("/", data).headers["location"].split("/")[-1]

    page = wait_for(lambda: (p := alice.thread_page(begun)) and "I cannot see it." in p and p, "the answer")
    assert "This model does not support images; they were not sent." in page
    assert "[a picture that you cannot see]" in str(endpoint.requests(KEY)[-1])
