"""The sockets' addresses."""

from channels.routing import URLRouter
from django.urls import path

from chat.consumers import ThreadConsumer

routes = [path("ws/t/<uuid:thread_id>", ThreadConsumer.as_asgi())]
router = URLRouter(routes)
