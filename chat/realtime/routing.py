"""The URLs of the sockets."""

from channels.routing import URLRouter
from django.urls import path, re_path

from chat.realtime.consumers import PageConsumer, UnknownPathConsumer

routes = [
    path("ws", PageConsumer.as_asgi()),
    path("ws/t/<uuid:thread_id>", PageConsumer.as_asgi()),
    re_path("", UnknownPathConsumer.as_asgi()),
]
router = URLRouter(routes)
