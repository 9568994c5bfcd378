"""The code of a served model: MLflow loads this file, nothing else imports it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext

from infoset.models.attention_forecaster import AttentionForecaster
from infoset.pipeline.served_frames import served_output


class ServedForecaster(PythonModel):
    """Forecast from tables of events; see `served_frames.served_input`."""

    def load_context(self, context: PythonModelContext) -> None:
        """Read the weights and the description; nothing is unpickled."""
        files = context.artifacts
        self._forecaster = AttentionForecaster.from_files(
            Path(files["spec"]), Path(files["weights"])
        )

    def predict(
        self,
        context: PythonModelContext,  # noqa: ARG002 (MLflow's signature)
        model_input: pd.DataFrame,
        params: dict[str, object] | None = None,  # noqa: ARG002
    ) -> pd.DataFrame:
        """Return the quantiles of each point."""
        return served_output(self._forecaster, model_input)


set_model(ServedForecaster())
