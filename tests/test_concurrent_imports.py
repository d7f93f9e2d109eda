"""Threads that import packages at the same time do not see one that is imported only in part."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.server import ROOT
from tests.topology import clean_environment

# Everything but httpx is imported. Its import takes three seconds in one thread; meanwhile, another one uses the client of
# an endpoint that cannot be reached.
SLOW_IMPORT = """
import asyncio, sys, threading, time
import django, openai
django.setup()
from chat.llm import client, http
from chat.llm.endpoint import ModelEndpoint
from memory.embeddings.openai import OpenAIEmbedder
http.new_http_client()

class Slow:
    def find_spec(self, name, *_):
        if name == "httpx._client":
            begun.set()
            time.sleep(3)

assert "httpx" not in sys.modules
begun = threading.Event()
sys.meta_path.insert(0, Slow())
threading.Thread(target=__import__, args=["httpx"]).start()
begun.wait()
try:
    {use}
except Exception as error:
    print(error)
"""
LIST_MODELS = 'asyncio.run(client.list_models(ModelEndpoint("http://127.0.0.1:1/v1", "key", "")))'
EMBED = 'OpenAIEmbedder("model", base_url="http://127.0.0.1:1/v1", api_key="key").embed_query("hello")'


@pytest.mark.parametrize("use", [LIST_MODELS, EMBED], ids=["list the models", "embed"])
def test_the_client_of_endpoints_waits_for_the_import_of_httpx(tmp_path, use):
    settings = {"CATO_SERVER_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "cato_web.settings"}
    command = [sys.executable, "-c", SLOW_IMPORT.replace("{use}", use)]
    said = subprocess.check_output(command, cwd=ROOT, env=clean_environment() | settings, text=True)
    assert "cannot be reached" in said
