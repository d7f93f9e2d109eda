"""Schema of the configuration: sections, keys and allowed values. The defaults are in defaults.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, model_validator

from cato_web.config.fields import (
    NO_REPR,
    Count,
    FilePath,
    Fraction,
    Origins,
    Similarity,
    WebUrl,
    check_collection_prefix,
    mode_from_bool,
    split_list,
    split_pairs,
    url_with_scheme,
)
from cato_web.config.section import Section
from cato_web.config.sign_in import Ldap, OpenId, SignInPolicy

Origin = Literal["command line", "environment", "file", "default"]


class Server(Section):
    """Address and number of the web processes, and location of all data."""

    data_dir: FilePath
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=1, le=65535)]
    web_processes: Annotated[int, Field(ge=1, le=64)]
    public_url: WebUrl | None
    language: Literal["en", "de"]
    trusted_proxies: Annotated[list[str], BeforeValidator(split_list)]
    metrics_token: SecretStr | None


class Llm(Section):
    """The chat model and its prompt."""

    model: str | None
    base_url: Annotated[WebUrl | None, NO_REPR]
    api_key: SecretStr | None
    temperature: Annotated[float, Field(ge=0, le=2)]
    max_tokens: Count
    context_tokens: Count
    tools: Annotated[Literal["auto", "on", "off"], BeforeValidator(mode_from_bool)]
    timeout_seconds: Annotated[float, Field(gt=0)]
    system_prompt_files: Annotated[list[FilePath], BeforeValidator(split_list)]
    base_prompt_file: FilePath | None
    override_base_prompt: bool
    transcription_model: str | None
    speech_model: str | None
    speech_voice: str | None

    @model_validator(mode="after")
    def _require_voice(self) -> Llm:
        if bool(self.speech_model) != bool(self.speech_voice):
            raise ValueError(
                "speech_model and speech_voice should both be set: answers are read aloud by a model with a voice"
            )
        return self


class Hnsw(Section):
    """Parameters of the HNSW graph, named as in its paper."""

    M: Annotated[int, Field(ge=2)]
    ef_construction: Count
    ef_search: Count


class EmbeddingPrefixes(Section):
    """The prefixes of texts for an embedding model; None for those that the model declares."""

    query: str | None
    passage: str | None


class VectorStore(Section):
    """Memory: recall, chunking and embedding."""

    enabled: bool
    path: FilePath
    collection_name: Annotated[str, AfterValidator(check_collection_prefix)]
    context_results: Annotated[int, Field(ge=1, le=100)]
    context_max_tokens: Count
    context_mode: Annotated[Literal["off", "summary", "on"], BeforeValidator(mode_from_bool)]
    inject_context: bool
    search_context_window: Annotated[int, Field(ge=1, le=50)]
    retrieval_strategy: Annotated[str, Field(min_length=1)]
    searches_per_minute: Count
    retrieval_timeout: Annotated[float, Field(gt=0)]
    similarity_threshold: Similarity | None
    subject_similarity: Similarity | None
    dynamic_threshold: bool
    dynamic_threshold_min: Similarity
    dynamic_threshold_max: Similarity
    dynamic_threshold_full_at: Count
    temporal_decay: Annotated[float, Field(gt=0, le=1)]
    mmr_lambda: Fraction
    lexical_weight: Fraction
    reranker: FilePath | None
    chat_window: Annotated[int, Field(ge=-1)]
    erase_within_hours: Annotated[float, Field(gt=0)]
    chunking_strategy: Literal["truncate", "fixed_size", "semantic", "hybrid"]
    chunk_size: Annotated[int, Field(ge=50)]
    chunk_overlap: Annotated[int, Field(ge=0)]
    max_chunk_size: Annotated[int, Field(ge=50)]
    preserve_sentence_boundaries: bool
    embedding_provider: Literal["local", "openai", "ollama"]
    embedding_model: str | None
    embedding_base_url: Annotated[WebUrl | None, NO_REPR]
    embedding_api_key: SecretStr | None
    embedding_dimensions: Count | None
    embedding_batch_size: Annotated[int, Field(ge=1, le=2048)]
    embedding_prefixes: EmbeddingPrefixes
    embedding_threads: Count | None
    hnsw: Hnsw

    @model_validator(mode="after")
    def _check_bounds(self) -> VectorStore:
        if self.chunk_size > self.max_chunk_size:
            raise ValueError(
                f"chunk_size ({self.chunk_size}) should not be above max_chunk_size ({self.max_chunk_size})"
            )
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(f"chunk_overlap ({self.chunk_overlap}) should be below chunk_size ({self.chunk_size})")
        if self.dynamic_threshold_min > self.dynamic_threshold_max:
            low, high = self.dynamic_threshold_min, self.dynamic_threshold_max
            raise ValueError(f"dynamic_threshold_min ({low}) should not be above dynamic_threshold_max ({high})")
        return self


class Documents(Section):
    """Limits of uploads and of text extraction."""

    max_file_mb: Count
    max_files: Count
    max_characters: Count
    keep_versions: Count
    reader_memory_mb: Annotated[int, Field(ge=128)]
    reader_processor_seconds: Count
    reader_seconds: Count


class Chat(Section):
    """Limits of conversations."""

    session_idle_hours: Annotated[float, Field(gt=0)]
    max_message_chars: Count
    max_answer_chars: Count
    messages_per_minute: Count
    concurrent_answers: Count
    sockets_per_person: Count
    titles: bool
    max_attachments: Count
    max_image_mb: Count
    max_import_mb: Count


class Knowledge(Section):
    """Extraction of statements."""

    daily_tokens: Annotated[int, Field(ge=1, le=1_000_000_000)]
    quiet_minutes: Annotated[float, Field(gt=0)]
    max_cluster: Annotated[int, Field(ge=1, le=30)]


class Api(Section):
    """Access of API clients."""

    enabled: bool
    requests_per_minute: Count
    keep_events_days: Count
    cors_origins: Origins
    webhook_origins: Origins


class ToolCommand(Section):
    """A command that is a tool server, spoken to through its standard input and output."""

    name: Annotated[str, Field(min_length=1, max_length=40)]
    command: Annotated[list[str], Field(min_length=1)]
    environment: dict[str, SecretStr] = Field(default_factory=dict)


class Tools(Section):
    """Tool servers, whose tools the model may call."""

    timeout_seconds: Annotated[float, Field(gt=0)]
    internal_hosts: Annotated[list[str], BeforeValidator(split_list)]
    commands: list[ToolCommand]


class WebSearch(Section):
    """Searches of the web for messages, with a SearXNG; off without its address."""

    searxng_url: WebUrl | None
    searches_per_hour: Count
    internal_hosts: Annotated[list[str], BeforeValidator(split_list)]


class Logging(Section):
    """Level and format of the log."""

    format: Literal["text", "json"]
    requests: bool
    level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        BeforeValidator(lambda level: level.upper() if isinstance(level, str) else level),
    ]


class Config(Section):
    """The whole configuration, with the origin of each value."""

    server: Server
    llm: Llm
    vector_store: VectorStore
    documents: Documents
    chat: Chat
    knowledge: Knowledge
    sign_in: SignInPolicy
    openid: OpenId
    ldap: Ldap
    api: Api
    tools: Tools
    web_search: WebSearch
    logging: Logging
    locations: Annotated[dict[str, FilePath], BeforeValidator(split_pairs)]
    database_url: Annotated[Annotated[str, url_with_scheme("postgresql", "postgres")] | None, NO_REPR]
    redis_url: Annotated[Annotated[str, url_with_scheme("redis", "rediss", "unix")] | None, NO_REPR]
    chroma_url: Annotated[WebUrl | None, NO_REPR]
    chroma_tenant: str
    chroma_database: str
    chroma_token: SecretStr | None
    secret_key: SecretStr | None
    dummy_mode: bool

    _origins: dict[str, Origin] = PrivateAttr(default_factory=dict)
    _warnings: tuple[str, ...] = PrivateAttr(default=())
    _file: Path | None = PrivateAttr(default=None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each unknown key; the caller prints them."""
        return self._warnings

    @property
    def file(self) -> Path | None:
        """Return the user's configuration file, if one was read."""
        return self._file

    def origin(self, key: str) -> Origin:
        """Return the origin of the value of a dotted key such as "llm.model"."""
        return self._origins.get(key, "default")


def _keys(section: type[Section], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from _keys(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field.annotation


KEYS: dict[str, Any] = dict(_keys(Config))
SECTIONS = {key.rpartition(".")[0] for key in KEYS} - {""}
