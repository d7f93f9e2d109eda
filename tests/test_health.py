"""Monitoring: health, metrics, and logs without personal texts."""

from __future__ import annotations

import io
import json
import logging
import re
import signal
import sys
import time
from datetime import timedelta

import httpx
import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone
from pydantic import SecretStr

from cato_web import logs, readiness
from memory import jobs
from memory.models import EmbeddingJob, IndexGeneration, Job
from tests.factories import ago, exchange
from tests.server import running, wait_for
from tests.topology import free_port


@pytest.fixture(autouse=True)
def uncached(monkeypatch):
    monkeypatch.setattr(readiness, "_last", None)


def queue_of(kind: str) -> jobs.QueueStats:
    (found,) = (queue for queue in jobs.queue_stats() if queue.kind == f"{kind}job")
    return found


def figure(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
    assert found, f"{name} is not among\n{text}"
    return float(found[1])


def test_a_running_cato_reports_every_component_as_ready(cato):
    for url in cato.urls:
        assert httpx.get(f"{url}/healthz").text == "ok"
        answer = wait_for(
            lambda url=url: (a := httpx.get(f"{url}/readyz")) and a.json()["state"] == "ok" and a, f"{url} to be ready"
        )
        assert answer.status_code == 200
        assert set(answer.json()["checks"]) == {"database", "redis", "vector_store", "worker"}
        assert "sessionid" not in answer.headers.get("set-cookie", "")


def test_without_the_index_it_is_degraded_and_names_it(tmp_path, endpoint):
    with running(tmp_path, CHROMA_URL=f"http://127.0.0.1:{free_port()}") as cato:
        answer = httpx.get(f"{cato.url}/readyz")
        assert (answer.status_code, answer.json()["state"]) == (200, "degraded")
        assert answer.json()["checks"]["vector_store"]["state"] == "down"
        assert answer.json()["checks"]["database"]["state"] == "ok"


@pytest.mark.django_db(transaction=True)
def test_without_its_database_it_is_not_ready(client, monkeypatch):
    def away() -> readiness.Check:
        raise DatabaseError("connection to 10.0.0.3 refused")

    monkeypatch.setitem(readiness._CHECKS, "database", away)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["state"] == "down"
    assert "10.0.0.3" not in answer.text


@pytest.mark.django_db(transaction=True)
def test_jobs_without_a_worker_make_it_degraded_and_report_for_how_long(client, person):
    waits = exchange(person, "Nobody has embedded me for an hour")
    EmbeddingJob.objects.filter(exchange=waits).update(due_at=timezone.now() - timedelta(hours=1))
    worker = client.get("/readyz").json()["checks"]["worker"]
    assert worker["state"] == "degraded"
    assert worker["oldest_due_seconds"] >= 3600


def without_store(settings):
    store = settings.CATO.vector_store.model_copy(update={"enabled": False})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": store})


def retired(settings):
    IndexGeneration.objects.update(state=IndexGeneration.State.RETIRED)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", [without_store, retired])
@pytest.mark.parametrize("state", [Job.State.PENDING, Job.State.FAILED])
def test_embeddings_that_no_worker_may_compute_are_no_reason_for_an_alert(client, person, settings, change, state):
    waits = exchange(person, "Nobody may embed me")
    EmbeddingJob.objects.filter(exchange=waits).update(state=state, error="HTTP 500", due_at=ago(hours=1))
    assert queue_of("embedding").oldest_due_at or queue_of("embedding").failed

    change(settings)

    assert queue_of("embedding") == jobs.QueueStats("embeddingjob", pending=0, failed=0, oldest_due_at=None)
    assert client.get("/readyz").json()["checks"]["worker"]["state"] == "ok"


def test_metrics_count_answers_recalls_streams_and_queues(cato, alice, endpoint):
    endpoint.script("cato", answer="The valve is blue.")
    before = sum(figure(httpx.get(f"{url}/metrics").text, "cato_recall_seconds_count") for url in cato.urls)
    thread = alice.send_message("Which colour has the valve of the fountain?")
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread), "it to be remembered")
    pages = [httpx.get(f"{url}/metrics").text for url in cato.urls]
    assert sum(figure(page, "cato_recall_seconds_count") for page in pages) > before
    assert figure(pages[0], "cato_exchanges") >= 1
    for name in ('cato_jobs_pending{kind="embedding"}', 'cato_jobs_oldest_due_seconds{kind="erasure"}', "cato_streams"):
        figure(pages[0], name)
    assert figure(pages[0], 'cato_index_drift{side="vectors_without_row"}') >= 0
    assert any('cato_answers_total{state="complete"}' in page for page in pages)
    assert "fountain" not in "".join(pages)


@pytest.mark.django_db
def test_metrics_require_this_machine_or_the_token(client, settings, monkeypatch):
    monkeypatch.setattr("cato_web.metrics._drift_counts", lambda: {})
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.7").status_code == 403
    assert client.get("/metrics", headers={"X-Forwarded-For": "127.0.0.1"}).status_code == 403
    server = settings.CATO.server.model_copy(update={"metrics_token": SecretStr("watch")})
    settings.CATO = settings.CATO.model_copy(update={"server": server})
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"Authorization": "Bearer catch"}).status_code == 403
    response = client.get("/metrics", REMOTE_ADDR="192.0.2.7", headers={"Authorization": "Bearer watch"})
    assert response.status_code == 200


def test_log_lines_are_json_objects_with_a_request_id_and_no_texts(tmp_path, endpoint):
    endpoint.script("json-logs", answer="A perfectly private answer.")
    with running(
        tmp_path,
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY="json-logs",
        CATO_LOGGING_FORMAT="json",
        CATO_LOGGING_REQUESTS="true",
    ) as cato:
        ada = cato.set_up()
        thread = ada.send_message("A perfectly private question")
        wait_for(lambda: "private answer" in ada.thread_page(thread), "the answer")
        ada.get("/search", params={"q": "perfectly private"})
        identified = ada.get("/stats", headers={"X-Request-ID": "from-the-proxy-1"})
        assert identified.headers["X-Request-ID"] == "from-the-proxy-1"
        forged = ada.get("/stats", headers={"X-Request-ID": 'a"b\\c'})
        assert re.fullmatch(r"[0-9a-f]{32}", forged.headers["X-Request-ID"])
        output = "\n".join(process.log.read_text() for process in cato.processes)
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["logger"] == "cato.requests"]
    assert {"method", "route", "status", "ms", "request_id", "time", "level"} <= set(requests[0])
    assert any(line["request_id"] == "from-the-proxy-1" and line["route"] == "/stats" for line in requests)
    assert any(line["route"] == "/setup/<str:token>" for line in requests), "the pattern, not the link"
    assert "private" not in output
    assert thread not in output


@pytest.mark.django_db
def test_an_error_page_is_logged_without_its_referrer(monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError

    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.addFilter(logs.RequestIdFilter())
    handler.setFormatter(logs.JsonFormatter())
    monkeypatch.setattr("cato_web.accounts.services.validate_link", broken)
    logging.getLogger("django.request").addHandler(handler)
    try:
        answer = Client(raise_request_exception=False).get("/reset/a-link-for-one-person")
    finally:
        logging.getLogger("django.request").removeHandler(handler)
    assert answer.status_code == 500
    assert "/reset/<str:token>" in output.getvalue()
    assert "a-link-for-one-person" not in output.getvalue()


def test_an_exception_is_logged_with_class_and_location_not_its_message():
    output = " ".join(["what", "somebody", "said"])
    for formatter in (logs.JsonFormatter(), logs.TextFormatter()):
        try:
            raise ValueError(output)
        except ValueError:
            record = logging.LogRecord("cato", logging.ERROR, __file__, 1, "it broke", (), sys.exc_info())
        line = formatter.format(record)
        assert "builtins.ValueError" in line
        assert "test_health.py" in line
        assert output not in line


def test_a_terminated_web_process_finishes_running_answers(tmp_path, endpoint):
    endpoint.script("ending", answer="One two three four five six seven eight nine ten.", token_delay=0.15)
    with running(tmp_path, OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY="ending") as cato:
        ada = cato.set_up()
        thread = ada.send_message("Count to ten")
        wait_for(lambda: "three" in ada.thread_page(thread), "the answer to begin")
        for process in cato.processes:
            if process.name in ("serve", "web1"):
                process.popen.send_signal(signal.SIGTERM)
                if process.name == "serve":  # make passes on what systemd sends to both
                    time.sleep(0.2)
                    process.popen.send_signal(signal.SIGTERM)
                process.popen.wait(30)
        assert cato.sql("SELECT state, answer FROM chat_turn") == [
            ("complete", "One two three four five six seven eight nine ten.")
        ]
