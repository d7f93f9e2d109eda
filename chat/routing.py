"""The sockets' addresses."""

from channels.routing import URLRouter
from django.urls import path

from chat.consumers import PageConsumer

routes = [path("ws", PageConsumer.as_asgi()), path("ws/t/<uuid:thread_id>", PageConsumer.as_asgi())]
router = URLRouter(routes)
