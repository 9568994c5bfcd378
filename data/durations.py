"""Durations as settings write them."""

from __future__ import annotations

from typing import Annotated

import pandas as pd
from pydantic import AfterValidator


def _duration(text: str) -> str:
    try:
        pd.Timedelta(text)
    except ValueError as error:
        raise ValueError(
            f"must be a duration such as '90min' or '1h'; got {text!r}"
        ) from error
    return text


Duration = Annotated[str, AfterValidator(_duration)]
