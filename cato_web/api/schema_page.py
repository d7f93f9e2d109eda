"""The rows of the page that shows the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_CONSTRAINTS = ("format", "default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "enum")


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """A parameter in the path, the query or a header."""

    name: str
    place: str
    schema: str


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """A status with the name of its schema, if it has one."""

    status: str
    link: str


@dataclass(frozen=True, slots=True)
class OperationRow:
    """An operation. `body_link` is the name of the body's schema, if it has one."""

    id: str
    method: str
    path: str
    description: str
    scope: str
    parameters: list[ParameterRow]
    body: str
    body_link: str
    responses: list[ResponseRow]


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """A schema as JSON."""

    name: str
    text: str


def operation_rows(document: dict[str, Any]) -> list[OperationRow]:
    """Return the operations in the order of the document."""
    return [
        _operation_row(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def schema_rows(document: dict[str, Any]) -> list[SchemaRow]:
    """Return the schemas by name."""
    schemas = document["components"]["schemas"]
    return [SchemaRow(name, json.dumps(schemas[name], indent=2, ensure_ascii=False)) for name in sorted(schemas)]


def _operation_row(method: str, path: str, operation: dict[str, Any]) -> OperationRow:
    scopes = [scope for requirement in operation["security"] for names in requirement.values() for scope in names]
    content = operation.get("requestBody", {}).get("content", {})
    media_type, body = next(iter(content.items()), ("", {}))
    return OperationRow(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        description=operation["description"],
        scope=", ".join(scopes),
        parameters=[_parameter_row(parameter) for parameter in operation.get("parameters", ())],
        body=_link(body) or media_type,
        body_link=_link(body),
        responses=[
            ResponseRow(status, _link(next(iter(response.get("content", {}).values()), {})))
            for status, response in ((str(status), response) for status, response in operation["responses"].items())
        ],
    )


def _parameter_row(parameter: dict[str, Any]) -> ParameterRow:
    facts = [*_facts(parameter["schema"])]
    if parameter.get("required"):
        facts.insert(0, "required")
    text = "; ".join(dict.fromkeys(filter(None, [", ".join(dict.fromkeys(facts)), parameter.get("description", "")])))
    return ParameterRow(parameter["name"], parameter["in"], text)


def _facts(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the types and constraints of a schema and of its alternatives, without null."""
    for alternative in schema.get("anyOf", ()):
        yield from _facts(alternative)
    kind = schema.get("type", _name(schema))
    if kind and kind != "null":
        yield str(kind)
    yield from (f"{name} {json.dumps(schema[name])}" for name in _CONSTRAINTS if schema.get(name) is not None)


def _link(content: dict[str, Any]) -> str:
    return _name(content.get("schema", {}))


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
