"""The base of everything that a configuration file can say."""

from __future__ import annotations

from difflib import get_close_matches

from pydantic import BaseModel, ConfigDict, model_validator


class Strict(BaseModel):
    """Frozen, finite, and unknown keys are refused with the nearest right one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        names = [field.alias or name for name, field in cls.model_fields.items()]
        for key in given:
            if key not in names:
                near = get_close_matches(str(key), names, n=1)
                hint = f"Did you mean {near[0]!r}? " if near else ""
                raise ValueError(
                    f"has no key {key!r}. {hint}Known keys: {', '.join(names)}."
                )
        return given
