"""Backup and restore of a filled Cato: duration, size and memory, compared with a plain copy of its database.

    python -m benchmarks.backup [EXCHANGES]

Vectors are random, since this measures moving rows, not embedding them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILL = """
import random, sys
import numpy as np
import django; django.setup()
from django.core.management import call_command
call_command("migrate", interactive=False, verbosity=0)
from cato_web.accounts.services import create_person
from memory import generations, services, spaces
from memory.embeddings import cache
from memory.models import Exchange
from memory.api import NewExchange
chance = random.Random(1)
words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(3, 9))) for _ in range(5000)]
text = lambda n: " ".join(chance.choices(words, k=n))
ada = create_person(name="Ada", email="ada@halden.example", password="four plain words are fine")
space, count = spaces.own(ada.pk), int(sys.argv[1])
for start in range(0, count, 500):
    services.remember_many([
        NewExchange(space=space, owner_id=ada.pk, source="import", user_message=text(30), assistant_message=text(120))
        for _ in range(500)
    ])
serving, made = generations.serving(), np.random.default_rng(1)
generations.check_dimension(serving, 384)
hashes = list(Exchange.objects.values_list("content_hash", flat=True))
for start in range(0, count, 500):
    some = {digest: made.standard_normal((3, 384)).astype("f4") for digest in hashes[start : start + 500]}
    cache.keep_documents(serving.provider, serving.model, some)
"""
# Resources of a command, measured in a process without other children.
MEASURED = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=2)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"CPU s": round(used.ru_utime + used.ru_stime, 1), "MB of memory": used.ru_maxrss // 1024}))
"""


def main(count: int) -> None:
    """Print the figures as JSON."""
    home = Path(tempfile.mkdtemp(prefix="cato-backup-"))
    usual = os.environ | {"DJANGO_SETTINGS_MODULE": "cato_web.settings", "CATO_CONFIG_FILE": ""}
    one, other = (usual | {"CATO_DATA_DIR": str(home / name)} for name in ("one", "other"))
    archive = home / "cato.tar.gz"
    try:
        subprocess.run([sys.executable, "-c", FILL, str(count)], cwd=ROOT, env=one, check=True)
        database = home / "one" / "cato.sqlite3"
        began = time.monotonic()
        shutil.copyfile(database, home / "copy")
        copied, size = time.monotonic() - began, database.stat().st_size
        figures = {
            "exchanges": count,
            "copying the database, seconds": round(copied, 2),
            "start of a command": measure_command(one, "showmigrations", "people"),
            "backup": measure_command(one, "backup", str(archive)),
            "restore": measure_command(other, "restore", "--index-later", str(archive)),
            "database, MB": round(size / 1e6, 1),
            "backup, share of that": round(archive.stat().st_size / size, 2),
        }
        sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    finally:
        shutil.rmtree(home)


def measure_command(environment: dict[str, str], *arguments: str) -> dict[str, float]:
    """Run `manage.py` with these arguments; return CPU seconds and megabytes of memory."""
    command = [sys.executable, "-c", MEASURED, sys.executable, "manage.py", *arguments]
    result = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    figures: dict[str, float] = json.loads(result.stdout)
    return figures


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
