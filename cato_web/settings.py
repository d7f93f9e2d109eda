"""Django's settings, derived from Cato's configuration."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.urls import reverse

from cato_web.config import loader

CATO = loader.load()
loader.ensure_data_dir(CATO)
# Without secrets, for display.
CATO_SHOWN = loader.redact(CATO)
BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = loader.secret_key(CATO)
DEBUG = False
ROOT_URLCONF = "cato_web.urls"
ASGI_APPLICATION = "cato_web.asgi.application"
AUTH_USER_MODEL = "people.User"
# chat checks the API token of a turn, and counts exports in the audit log, without importing accounts.
AUDIT_ENTRY_MODEL = "people.AuditEntry"
API_TOKEN_MODEL = "people.ApiToken"  # noqa: S105  (a model, not a secret)
# One language per installation: rendered frames go to all readers of a thread.
LANGUAGE_CODE = CATO.server.language
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "cato_web.formats"
USE_I18N = USE_THOUSAND_SEPARATOR = True
TIME_ZONE = "UTC"
USE_TZ = True

# The view is in chat, because it may redirect to the thread; memory links to it through the model.
ABSOLUTE_URL_OVERRIDES = {"memory.exchange": lambda exchange: reverse("exchange", args=[exchange.pk])}

INSTALLED_APPS = [
    "cato_web",
    "cato_web.accounts",
    "cato_web.oauth",
    "cato_web.webhooks",
    "chat",
    "memory",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_htmx",
]

MIDDLEWARE = [
    "cato_web.logs.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "cato_web.middleware.PermissionsPolicyMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "cato_web.middleware.CompressionMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "cato_web.middleware.LoginMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "cato_web.accounts.second_factor.confirmation.ConfirmationMiddleware",
    "cato_web.errors.ErrorPageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.messages.context_processors.messages",
                "cato_web.context_processors.page_context",
            ],
            "builtins": ["django.templatetags.i18n", "django.templatetags.l10n"],
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        "django.template.loaders.filesystem.Loader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
        },
    }
]


def _database(url: str | None) -> dict[str, object]:
    if url is None:
        return {
            "ENGINE": "cato_web.sqlite",
            "NAME": CATO.server.data_dir / "cato.sqlite3",
            # Deferred transactions that read before they write fail with several writers; WAL does not block readers.
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;",
            },
            "TEST": {"NAME": CATO.server.data_dir / "test.sqlite3"},
        }
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "pool": {"min_size": 1, "max_size": 16, "timeout": 10},
            # Compiling a statement takes longer than running it: half of the server's processor time in the tests.
            "options": "-c jit=off",
        },
    }


DATABASES = {"default": _database(CATO.database_url)}

# Uploaded files, under generated names; any Django storage can replace this folder.
MEDIA_ROOT = CATO.server.data_dir / "uploads"
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
STORAGES = {
    "default": {"BACKEND": "cato_web.storage.DurableStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

REDIS_URL = CATO.redis_url
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"pool_class": "cato_web.cache_connections.SharedConnectionPool"},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# kombu has its own URL scheme for unix sockets.
CELERY_BROKER_URL = (REDIS_URL or "memory://").replace("unix://", "redis+socket://")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 1, "retry_on_timeout": True, "visibility_timeout": 3600}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

ALLOWED_HOSTS = ["*"] if CATO.server.public_url is None else ["127.0.0.1", "localhost", "[::1]"]
CSRF_TRUSTED_ORIGINS: list[str] = []
_secure = False
if CATO.server.public_url:
    _public = urlsplit(CATO.server.public_url)
    ALLOWED_HOSTS.append(_public.hostname or "")
    CSRF_TRUSTED_ORIGINS.append(f"{_public.scheme}://{_public.netloc}")
    _secure = _public.scheme == "https"
    if _secure:
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
elif CATO.server.host in ("127.0.0.1", "localhost", "::1"):
    ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _secure
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "cato_session"
CSRF_COOKIE_NAME = "cato_csrf"
CSRF_FAILURE_VIEW = "cato_web.errors.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "new_thread"

AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]

# A character is up to 12 bytes in a form; slightly longer messages still get an error beside the composer.
DATA_UPLOAD_MAX_MEMORY_SIZE = 12 * CATO.chat.max_message_chars + 1_000_000

# Browsers apply form-action to redirects, too, and sign-in with OpenID Connect redirects to the provider.
_provider = urlsplit(CATO.openid.issuer or "")
_sends_to = [f"{_provider.scheme}://{_provider.netloc}"] if CATO.openid.issuer else []

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        "manifest-src": ["'self'"],
        # The page plays what it has received.
        **({"media-src": ["blob:"]} if CATO.llm.speech_model else {}),
        "form-action": ["'self'", *_sends_to],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = CATO.server.data_dir / "static"
SERVESTATIC_AUTOREFRESH = False
# `prepare` collects the assets before pages are served; commands and tests work without.
IS_GATHERED = (STATIC_ROOT / "staticfiles.json").exists()
SERVESTATIC_USE_FINDERS = not IS_GATHERED
if IS_GATHERED:
    STORAGES["staticfiles"] = {"BACKEND": "cato_web.assets.BundledStaticFilesStorage"}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"text": {"()": "cato_web.logs.TextFormatter"}, "json": {"()": "cato_web.logs.JsonFormatter"}},
    "filters": {"request": {"()": "cato_web.logs.RequestIdFilter"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": CATO.logging.format, "filters": ["request"]},
    },
    "root": {"handlers": ["stderr"], "level": CATO.logging.level},
    "loggers": {
        "cato.requests": {"level": "INFO" if CATO.logging.requests else "CRITICAL"},
        # Their INFO lines contain every request or URLs with query strings.
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        "chromadb": {"level": "WARNING"},
        "uvicorn": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
        # Logs the ids of passkeys.
        "fido2": {"level": "WARNING"},
        # Logs PKCE keys at DEBUG level.
        "authlib": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
    },
}
