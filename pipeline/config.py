"""The experiment: one YAML file, validated, with every default filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from infoset.data.forecast_times import ForecastTimes
from infoset.data.sources.declaration import SourceDeclaration
from infoset.data.strict import Strict
from infoset.data.targets import Target
from infoset.data.timeline import History
from infoset.models.settings import NetworkSize, Training

from .folds import WalkForward
from .forecaster_specs import ForecasterSpec


class ScaleOptions(Strict):
    """The causal scale: EWMA volatility of each entity's own changes."""

    decay: float = Field(default=0.94, gt=0, lt=1)
    prior_weight: float = Field(default=2.0, gt=0)


class FoldOptions(Strict):
    """Walk-forward spans; see `folds.WalkForward`."""

    test_size: str | int = "1Y"
    train_size: str | int | None = None
    validation_size: str | int = "1Y"
    embargo_size: str | int = "0D"
    expand_train: bool = True
    first_test: str | None = None
    last_test: str | None = None

    def walk_forward(self) -> WalkForward:
        """Return the splitter."""
        return WalkForward(**self.model_dump())


class LatencyOptions(Strict):
    """How forecasts are timed."""

    history_lengths: tuple[int, ...] = (64, 256, 1024)
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
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    description: str = ""
    sources: tuple[SourceDeclaration, ...] = ()
    forecast_times: ForecastTimes
    boundary: Literal["inclusive", "strict"] = "inclusive"
    history: History = History()
    history_lengths: tuple[int, ...] = ()
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

    @model_validator(mode="after")
    def _one_target_each(self) -> Experiment:
        names = [entity for target in self.targets for entity in target.entities]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"targets must name each entity once; got {', '.join(twice)} twice."
            )
        return self

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
    content, base, where = _content(config)
    for override in overrides:
        _override(content, override)
    try:
        return Experiment.model_validate(content), base
    except ValidationError as error:
        lines = [
            _complaint(_place(item["loc"], content), item)
            for item in error.errors(include_url=False)
        ]
        raise ValueError(f"{where}:\n" + "\n".join(f"  {x}" for x in lines)) from error


def shipped_experiments() -> tuple[str, ...]:
    """Return the names of the configurations that come with the package."""
    found = [Path(entry.name) for entry in files("infoset.configs").iterdir()]
    return tuple(sorted(path.stem for path in found if path.suffix == ".yaml"))


def _content(
    config: str | Path | Mapping[str, Any],
) -> tuple[dict[str, Any], Path, str]:
    if isinstance(config, Mapping):
        return json.loads(json.dumps(config)), Path(), "configuration"
    path = Path(config)
    if path.suffix not in {".yaml", ".yml"}:
        if str(config) not in shipped_experiments():
            raise ValueError(
                f"config must be a .yaml file or one of "
                f"{', '.join(shipped_experiments())}; got {str(config)!r}."
            )
        path = Path(str(files("infoset.configs") / f"{config}.yaml"))
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(
            f"config must be a readable file; got {path} ({error.strerror})."
        ) from error
    except yaml.YAMLError as error:
        raise ValueError(f"config must be valid YAML; got {path}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(  # noqa: TRY004 (a file's content, not an argument)
            f"config must hold keys and values; got {path}."
        )
    return content, path.parent, path.name


def _override(content: dict[str, Any], override: str) -> None:
    path, equals, text = override.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise ValueError(f"--set must read path.to.key=value; got {override!r}.")
    place: Any = content
    for key in keys[:-1]:
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise ValueError(  # noqa: TRY004 (a file's content, not an argument)
                f"--set must name a key of a mapping; got {override!r}, but "
                f"{key!r} holds {place!r}."
            )
    try:
        place[keys[-1]] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"--set must hold a YAML value; got {override!r}.") from error


def _place(path: tuple[int | str, ...], content: object) -> str:
    """Return the path as it stands in the file: without the names of a union's kinds."""
    parts = []
    for place, part in enumerate(path):
        is_last = place == len(path) - 1
        if isinstance(content, dict) and part not in content and not is_last:
            continue
        parts.append(str(part))
        if isinstance(content, dict):
            content = content.get(part)
        elif isinstance(content, list) and isinstance(part, int):
            content = content[part]
    return ".".join(parts) or "experiment"


def _complaint(place: str, item: Mapping[str, Any]) -> str:
    context = item.get("ctx", {})
    given = item["input"]
    got = "" if isinstance(given, dict) else f"; got {given!r}"
    match item["type"]:
        case "value_error":
            return f"{place} {context['error']}"
        case "missing":
            return f"{place} must be given."
        case "literal_error":
            return f"{place} must be one of {context['expected']}{got}."
        case "union_tag_invalid":
            tags = context["expected_tags"]
            return f"{place}.kind must be one of {tags}; got {context['tag']!r}."
        case "union_tag_not_found":
            return f"{place} must have a `kind`."
        case _:
            reason = item["msg"].removeprefix("Input should be ")
            return f"{place} must be {reason}{got}."
