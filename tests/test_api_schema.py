"""A running Cato answers every API operation as its OpenAPI schema says, whatever is sent."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server import Cato, Client
from tests.test_api_access import OPERATIONS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}


@pytest.fixture(scope="session")
def anna(cato: Cato, administrator: Client) -> Client:
    return cato.join(administrator, "Anna Program")


@pytest.fixture(scope="session")
def token(anna: Client) -> str:
    return anna.create_token()


@pytest.fixture(scope="session")
def api_schema(cato: Cato) -> Any:
    config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
    return schemathesis.openapi.from_url(f"{cato.url}/api/openapi.json", config=config)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_conforms_to_the_schema(name: str, api_schema: Any, token: str) -> None:
    method, path = name.split()
    operation = api_schema["/api" + path][method]
    cases = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

    @settings(max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(cases))
    def check_case(case: Any) -> None:
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=CHECKS)

    check_case()


def test_the_schema_is_public_and_complete(cato: Cato) -> None:
    described = httpx.get(f"{cato.url}/api/openapi.json").json()

    assert described["servers"] == [{"url": "/"}]
    assert len(described["components"]["schemas"]["NewExchange"]["oneOf"]) == 2
    parameters = {each["name"]: each["schema"] for each in described["paths"]["/api/search"]["get"]["parameters"]}
    assert [each["format"] for each in parameters["since"]["anyOf"][0]["anyOf"]] == ["date-time", "date"]
    assert described["components"]["securitySchemes"]["TokenAuth"]["scheme"] == "bearer"
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (method, path)
            assert operation["security"], (method, path)
            assert {"401", "403", "422", "429"} <= set(operation["responses"]), (method, path)
            assert "{" not in path or "404" in operation["responses"], (method, path)
            errors = [response["content"] for status, response in operation["responses"].items() if status >= "400"]
            assert errors == [ERROR] * len(errors), (method, path)
    assert described["components"]["schemas"]["Error"]["properties"]["error"]["$ref"].endswith("ErrorBody")
    assert "http" not in httpx.get(f"{cato.url}/api/docs").text
