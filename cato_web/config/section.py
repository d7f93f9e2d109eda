"""Base class of the sections of the configuration."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from cato_web.config.fields import plain_types


class Section(BaseModel):
    """A frozen section of the configuration. Unknown keys are ignored here; `load` warns about them."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _reject_bool_for_number(cls, value: object, info: ValidationInfo) -> object:
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and {int, float} & set(plain_types(annotation)):
            raise ValueError("it should be a number")
        return value
