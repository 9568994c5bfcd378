"""The experiment: one YAML file, validated, with every default filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from hashlib import sha256
from importlib.resources import files
from operator import not_
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from infoset.data.forecast_times import ForecastTimes, TimeTable
from infoset.data.sources import AnySource
from infoset.data.sources.nearest import did_you_mean
from infoset.data.strict import Strict
from infoset.data.targets import Target
from infoset.data.timeline import History
from infoset.data.universe import Universe
from infoset.models.settings import NetworkSize, Training

from .config_blame import refusal
from .config_complaints import complaints
from .config_text import override, plain, read_mapping
from .folds import WalkForward
from .folds.sizes import date_text, parse_date, parse_size
from .forecaster_specs import ForecasterSpec

# A complaint starts with the setting's place, so that no checker has to name it.
_HERE = ""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def _name(text: str) -> str:
    # It becomes a folder and a part of MLflow's names.
    if not _NAME.fullmatch(text):
        raise ValueError(
            "must consist of letters, digits, - and _, and start with a letter or "
            f"digit; got {text!r}."
        )
    return text


def _size(given: object, *, least: int = 1) -> object:
    if not isinstance(given, int | str):
        raise ValueError(  # noqa: TRY004 (pydantic wants it)
            "must be a calendar term or a count of forecast dates, such as 2Y, 6M, 1W, "
            f"90D or 250; got {given!r}."
        )
    parse_size(given, _HERE, least=least)
    return given


def _gap(given: object) -> object:
    return _size(given, least=0)


def _iso_date(given: object) -> object:
    # YAML reads 2012-01-01 without quotes as a date.
    if not isinstance(given, str | date):
        raise ValueError(  # noqa: TRY004 (pydantic wants it)
            f"must be a date (UTC) such as 2012-01-01; got {given!r}."
        )
    return date_text(parse_date(given, _HERE))


Name = Annotated[str, AfterValidator(_name)]
Size = Annotated[str | int, BeforeValidator(_size)]
Gap = Annotated[str | int, BeforeValidator(_gap)]
IsoDate = Annotated[str, BeforeValidator(_iso_date)]
Lengths = tuple[Annotated[int, Field(ge=1)], ...]


class ScaleOptions(Strict):
    """The causal scale: EWMA volatility of each entity's own changes."""

    decay: float = Field(default=0.94, gt=0, lt=1)
    prior_weight: float = Field(default=2.0, gt=0)


class FoldOptions(Strict):
    """Walk-forward spans; see `folds.WalkForward`."""

    test_size: Size = "1Y"
    train_size: Size | None = None
    validation_size: Size = "1Y"
    embargo_size: Gap = "0D"
    expand_train: bool = True
    first_test: IsoDate | None = None
    last_test: IsoDate | None = None

    @model_validator(mode="after")
    def _bounded(self) -> FoldOptions:
        if not self.expand_train and self.train_size is None:
            raise ValueError(
                "must have a `train_size` where `expand_train` is false; got none."
            )
        return self

    def walk_forward(self) -> WalkForward:
        """Return the splitter."""
        return WalkForward(**self.model_dump())


class LatencyOptions(Strict):
    """How forecasts are timed."""

    history_lengths: Lengths = (64, 256, 1024)
    num_forecasts: int = Field(default=200, ge=10)
    num_warm_up: int = Field(default=20, ge=1)


class CertificateOptions(Strict):
    """How many forecast times the look-ahead check rebuilds."""

    num_points: int = Field(default=20, ge=1)


class ExecutorOptions(Strict):
    """Where tasks run; the numbers do not depend on it."""

    kind: Literal["serial", "processes"] = "serial"
    num_workers: int = Field(default=2, ge=1)


class Experiment(Strict):
    """Everything that defines a run.

    `history` is the main one; `history_lengths` lists further `last` values at which
    the attention forecasters are fitted as well, to show what older events add.
    `universe` restricts forecasts to members. `encoders` names, for streams whose source
    cannot (a store, a log given from Python), the encoder that reads their `text`.
    """

    name: Name
    description: str = ""
    sources: tuple[AnySource, ...] = ()
    # What is not used is not written: older configurations keep their digests.
    encoders: dict[str, str] = Field(default_factory=dict, exclude_if=not_)
    universe: Universe | None = Field(default=None, exclude_if=not_)
    forecast_times: ForecastTimes
    boundary: Literal["inclusive", "strict"] = "inclusive"
    history: History = History()
    history_lengths: Lengths = ()
    targets: tuple[Target, ...] = Field(min_length=1)
    scale: ScaleOptions = ScaleOptions()
    folds: FoldOptions = FoldOptions()
    forecasters: dict[str, ForecasterSpec] = Field(default_factory=dict)
    baseline: str | None = None
    network: NetworkSize = NetworkSize()
    training: Training = Training()
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    latency: LatencyOptions = LatencyOptions()
    certificate: CertificateOptions = CertificateOptions()
    executor: ExecutorOptions = ExecutorOptions()
    runs: Path = Path("runs")
    tracking_uri: str = "sqlite:///mlflow.db"

    @field_validator("history", mode="before")
    @classmethod
    def _all(cls, given: object) -> object:
        return History() if given == "all" else given

    @field_validator("targets")
    @classmethod
    def _one_target_each(cls, targets: tuple[Target, ...]) -> tuple[Target, ...]:
        names = [entity for target in targets for entity in target.entities]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"must name each entity once; got {', '.join(twice)} twice."
            )
        return targets

    @field_validator("forecasters")
    @classmethod
    def _named(cls, given: dict[str, ForecasterSpec]) -> dict[str, ForecasterSpec]:
        wrong = [name for name in given if not _NAME.fullmatch(name)]
        if wrong:
            raise ValueError(
                "must have names of letters, digits, - and _, each starting with a "
                f"letter or digit; got {', '.join(map(repr, wrong))}."
            )
        return given

    @property
    def entities(self) -> tuple[str, ...]:
        """Who is forecast, sorted."""
        return tuple(sorted(e for target in self.targets for e in target.entities))

    @property
    def run_dir(self) -> Path:
        """Where the run's files are."""
        return self.runs / self.name

    def to_yaml(self) -> str:
        """Return the resolved configuration."""
        plain = self.model_dump(mode="json")
        text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
        return text

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that change with any setting but where files go."""
        plain = self.model_dump(mode="json", exclude={"runs", "tracking_uri"})
        return content_digest(plain)


def content_digest(content: object) -> str:
    """Return 16 hexadecimal digits of anything JSON can hold."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return sha256(text.encode()).hexdigest()[:16]


def load_experiment(
    config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()
) -> tuple[Experiment, Path]:
    """Read, override and validate a configuration.

    Parameters
    ----------
    config : str, Path or mapping
        A file, the name of a shipped experiment (``treasury``), or its content.
    overrides : sequence of str
        ``path.to.key=value``, the value in YAML.

    Returns
    -------
    experiment : Experiment
    base : Path
        The folder that relative paths in it start from.

    Raises
    ------
    ValueError
        If the file cannot be read, or a setting is wrong; every wrong one is listed.
    """
    given, base, where = _content(config)
    content = plain(given)
    for text in overrides:
        override(content, text)
    try:
        experiment = Experiment.model_validate(content)
    except ValidationError as error:
        raise ValueError(
            refusal(given, overrides, where=where, wrong_settings=_wrong_settings)
        ) from error
    return _based_at(experiment, base), base


def _wrong_settings(content: object) -> list[str]:
    try:
        Experiment.model_validate(content)
    except ValidationError as error:
        return complaints(error, content)
    return []


def shipped_experiments() -> tuple[str, ...]:
    """Return the names of the configurations that come with the package."""
    found = [Path(entry.name) for entry in files("infoset.configs").iterdir()]
    return tuple(sorted(path.stem for path in found if path.suffix == ".yaml"))


def _content(
    config: str | Path | Mapping[str, Any],
) -> tuple[dict[str, Any], Path, str]:
    if isinstance(config, Mapping):
        return plain(config), Path(), "configuration"
    path = Path(config)
    if path.suffix not in {".yaml", ".yml"}:
        shipped = shipped_experiments()
        if str(config) not in shipped:
            raise ValueError(
                f"config must be a .yaml file or one of {', '.join(shipped)}; got "
                f"{str(config)!r}. {did_you_mean(str(config), shipped)}".rstrip()
            )
        path = Path(str(files("infoset.configs") / f"{config}.yaml"))
    return read_mapping(path), path.parent, path.name


def _based_at(experiment: Experiment, base: Path) -> Experiment:
    rule, universe = experiment.forecast_times, experiment.universe
    based: dict[str, object] = {}
    if isinstance(rule, TimeTable):
        based["forecast_times"] = rule.based_at(base)
    if universe is not None:
        based["universe"] = universe.based_at(base)
    return experiment.model_copy(update=based) if based else experiment
