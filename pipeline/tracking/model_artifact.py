"""A trained forecaster as an MLflow model: code and plain files, no pickle, no trace."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from .store import TrackingStore, refuse_missing

__all__ = ["ServedModel", "log_model"]

_REQUIREMENTS = ("infoset", "mlflow", "numpy", "pandas", "safetensors", "torch")


@dataclass(frozen=True)
class ServedModel:
    """What MLflow needs to load and serve a model as a `python_function`.

    Attributes
    ----------
    name : str
        Name of the model.
    code_path : Path
        Python file that passes a `mlflow.pyfunc.PythonModel` to
        `mlflow.models.set_model`.
    artifacts : mapping of str to Path
        Files, such as weights and specification, that the model finds by these names in
        `context.artifacts`.
    inputs, outputs : DataFrame
        Some rows of what the model takes and returns, with instants as ISO 8601 text.
        They give the signature; `inputs` is kept as an example.

    Raises
    ------
    ValueError
        If a column has a time zone.
    """

    name: str
    code_path: Path
    artifacts: Mapping[str, Path]
    inputs: pd.DataFrame
    outputs: pd.DataFrame

    def __post_init__(self) -> None:
        for frame in (self.inputs, self.outputs):
            if zoned := list(frame.select_dtypes("datetimetz").columns):
                raise ValueError(
                    f"columns of a served model must have no time zone, which MLflow "
                    f"does not know; got {', '.join(map(str, zoned))}. Pass instants "
                    f"as ISO 8601 text that ends in Z."
                )


def log_model(store: TrackingStore, run_id: str, model: ServedModel) -> str:
    """Store a model as the output of a run.

    The code is executed once, to see that it defines a model. No weights are loaded and
    nothing is predicted; the requirements are the installed versions, so that nothing
    is left to infer.

    Parameters
    ----------
    store : TrackingStore
        A connected store.
    run_id : str
        Run that the model belongs to.
    model : ServedModel
        The model.

    Returns
    -------
    str
        Id of the model; `models:/<id>` loads it.

    Raises
    ------
    ValueError
        If a file is missing.
    """
    refuse_missing([model.code_path, *model.artifacts.values()])
    from mlflow.entities import LoggedModelOutput  # noqa: PLC0415 (takes a second)

    client = store.client
    with store.calls(), ExitStack() as on_failure, tempfile.TemporaryDirectory() as tmp:
        model_id = client.create_logged_model(
            store.experiment_id, name=model.name, source_run_id=run_id
        ).model_id
        on_failure.callback(client.finalize_logged_model, model_id, "FAILED")
        _write_model(Path(tmp), run_id, model_id, model)
        client.log_model_artifacts(model_id, str(Path(tmp, "model")))
        client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])
        client.finalize_logged_model(model_id, "READY")
        on_failure.pop_all()
    return str(model_id)


def _write_model(place: Path, run_id: str, model_id: str, model: ServedModel) -> None:
    import mlflow.pyfunc  # noqa: PLC0415
    from mlflow.models import Model, infer_signature  # noqa: PLC0415

    uris = {name: path.absolute().as_uri() for name, path in model.artifacts.items()}
    mlflow.pyfunc.save_model(
        place / "model",
        python_model=model.code_path,
        artifacts=uris,
        signature=infer_signature(model.inputs, model.outputs),
        input_example=model.inputs,
        pip_requirements=_pinned_requirements(),
        mlflow_model=Model(run_id=run_id, model_uuid=model_id, model_id=model_id),
        # Without this, files of an uv project in the working directory would join in.
        uv_project_path=place,
    )


def _pinned_requirements() -> list[str]:
    """Installed versions; a local label such as `+cpu` is no part of a release."""
    return [f"{name}=={version(name).partition('+')[0]}" for name in _REQUIREMENTS]
