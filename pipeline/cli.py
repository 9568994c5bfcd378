"""The command line: thin, and slow imports only where they are used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
_PIPE_WIDTH = 150

app = typer.Typer(
    help="Point-in-time forecasting: what was knowable, and what a forecast costs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
study = typer.Typer(
    help="Questions about the method, answered on the shipped data.",
    no_args_is_help=True,
)
app.add_typer(study, name="study")

Config = Annotated[
    str, typer.Argument(help="A YAML file, or the name of a shipped experiment.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting: path.to.key=value."),
]


@app.command()
def run(config: Config, set_: Overrides = None) -> None:
    """Run an experiment: fit, forecast, compare, measure, report.

    Example: infoset run treasury --set training.max_steps=100
    """
    from .experiment import run as run_experiment  # noqa: PLC0415
    from .results_table import results_table  # noqa: PLC0415

    finished = run_experiment(config, overrides=set_ or [], show_progress=True)
    console = _console()
    console.print(results_table(finished.folder, width=console.width))
    if finished.is_new:
        reused, total = finished.num_reused_tasks, finished.num_tasks
        console.print(f"Reused {reused} of {total} tasks.", highlight=False)
    else:
        console.print("Nothing was redone: every result was there already.")
    console.print(f"Report:  {finished.report}", soft_wrap=True, highlight=False)


@app.command()
def report(
    run_folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
) -> None:
    """Write a run's report anew from its files.

    Example: infoset report runs/treasury
    """
    from .report import write_report  # noqa: PLC0415

    print(write_report(run_folder))


@app.command()
def latency(
    run_folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")
    ],
    *,
    lengths: Annotated[
        str, typer.Option(help="Events of history, apart by commas.")
    ] = "64,256,1024,4096,16384,65536",
    forecasts: Annotated[
        int, typer.Option(help="In each loop; p99.9 needs 10000.")
    ] = 10_000,
    seconds: Annotated[
        float, typer.Option(help="For each loop; slow ones make fewer forecasts.")
    ] = 60.0,
    rate: Annotated[
        float | None,
        typer.Option(help="Requests a second; default: the slowest is half busy."),
    ] = None,
    limit_us: Annotated[
        float, typer.Option(help="Limit of p99 for the throughput.")
    ] = 10_000.0,
    threads: Annotated[str, typer.Option(help="Threads of torch.")] = "1",
    entities: Annotated[str, typer.Option(help="Streams that take turns.")] = "1",
    instances: Annotated[str, typer.Option(help="Processes side by side.")] = "1",
    backends: Annotated[
        str | None, typer.Option(help="torch, numba; default: both.")
    ] = None,
) -> None:
    """Measure what forecasts of a run take, into its files, report and MLflow run.

    Every combination is measured.
    Example: infoset latency runs/treasury --lengths 64,4096 --instances 1,2
    """
    from .latency.asked import Asked  # noqa: PLC0415
    from .latency.run_latency import measure_run, scored_length_of  # noqa: PLC0415
    from .progress import Progress  # noqa: PLC0415
    from .results_table import latency_results  # noqa: PLC0415

    asked = Asked(
        lengths=lengths,
        forecasts=forecasts,
        seconds=seconds,
        rate=rate,
        limit_us=limit_us,
        threads=threads,
        entities=entities,
        instances=instances,
        backends=backends,
    )
    plan = asked.plan(scored_length_of(run_folder))
    measured = measure_run(run_folder, plan, Progress(enabled=True))
    console = _console()
    for part in latency_results(run_folder):
        console.print(part, highlight=False)
    if not measured.is_logged:
        console.print("The MLflow store no longer has this run: nothing was logged.")
    console.print(f"Report:  {measured.report}", soft_wrap=True, highlight=False)


@app.command()
def asof(
    config: Config,
    *,
    at: Annotated[str, typer.Option(help="An instant with a zone, or a UTC date.")],
    entity: Annotated[
        str | None, typer.Option(help="Whose information; default: all.")
    ] = None,
    stream: Annotated[str | None, typer.Option(help="One stream only.")] = None,
    periods: Annotated[
        int, typer.Option(min=1, help="How many of the newest periods to show.")
    ] = 1,
    ragged: Annotated[
        bool,
        typer.Option(
            "--ragged", help="How far each stream reaches and how late it is, instead."
        ),
    ] = False,
    set_: Overrides = None,
) -> None:
    """Show what was known at an instant, as it read then.

    Example: infoset asof treasury --at 2008-03-07T18:00-05:00 --stream macro/PAYEMS
    --periods 3
    """
    from .known import known_at  # noqa: PLC0415
    from .ragged_edge import ragged_edge  # noqa: PLC0415

    changed = set_ or []
    if ragged and periods > 1:
        raise ValueError(
            "--ragged must stand without --periods, because it shows no values; got "
            "both. Leave one out."
        )
    if ragged:
        known = ragged_edge(
            config, at=at, entity=entity, stream=stream, overrides=changed
        )
    else:
        known = known_at(
            config,
            at=at,
            entity=entity,
            stream=stream,
            periods=periods,
            overrides=changed,
        )
    table = Table(*known.columns, title=f"Known at {known.attrs['at']}")
    for row in known.itertuples(index=False):
        table.add_row(*(str(cell) for cell in row))
    _console().print(table)


@app.command()
def ingest(
    source: Annotated[
        Path,
        typer.Argument(help="A YAML file: one source, or several under `sources:`."),
    ],
    *,
    into: Annotated[
        str | None,
        typer.Option(help="A store (folder or URI); without it nothing is stored."),
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for another writer.")
    ] = 60.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the account as JSON.")
    ] = False,
) -> None:
    """Read sources, account for every row, and store what is new.

    Example: infoset ingest prices.yaml --into store
    """
    import json  # noqa: PLC0415

    from .ingest import ingest as ingest_sources  # noqa: PLC0415
    from .ingest_table import ingest_table  # noqa: PLC0415

    done = ingest_sources(source, into=into, wait_seconds=wait)
    if as_json:
        print(json.dumps(done.to_json(), indent=1, allow_nan=False))
        return
    console = _console()
    console.print(ingest_table(done), highlight=False)
    console.print(done.result, soft_wrap=True, highlight=False)


@app.command()
def stream(
    run_folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")
    ],
    *,
    events: Annotated[
        str, typer.Option(help="JSON lines or a Parquet tape; - = standard input.")
    ],
    forecaster: Annotated[
        str, typer.Option(help="Which of the run's attention forecasters.")
    ] = "linear",
    fold: Annotated[int, typer.Option(help="Of which fold; -1 = the newest.")] = -1,
    seed: Annotated[
        int | None, typer.Option(help="Of which seed; default: the run's first.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Folder of what is remembered; default: in the run's."),
    ] = None,
    entity: Annotated[
        list[str] | None, typer.Option(help="Only this one; repeatable.")
    ] = None,
    on_request: Annotated[
        bool,
        typer.Option("--on-request", help="Forecast only where a line asks for it."),
    ] = False,
    replay: Annotated[
        float | None,
        typer.Option(min=0, help="Recorded speed times this; 0 = as fast as possible."),
    ] = None,
    settle: Annotated[
        float,
        typer.Option(min=0, help="Seconds of silence after which an instant is whole."),
    ] = 0.25,
    backend: Annotated[
        Literal["auto", "torch", "numba"],
        typer.Option(help="What computes; auto = numba where it can."),
    ] = "auto",
) -> None:
    """Forecast live: events in as JSON lines, forecasts out as JSON lines.

    Example: infoset stream runs/treasury --events - < events.jsonl
    """
    from .live.command import StreamOptions, stream_events  # noqa: PLC0415
    from .live.stored_model import stored_model  # noqa: PLC0415

    model = stored_model(run_folder, forecaster=forecaster, fold=fold, seed=seed)
    options = StreamOptions(
        events=events,
        state=state,
        entities=entity or (),
        on_request=on_request,
        replay=replay,
        settle_seconds=settle,
        backend=backend,
    )
    code = stream_events(model, run_folder, options)
    if code:
        raise typer.Exit(code)


@study.command()
def kernels(
    config: Annotated[
        str, typer.Option(help="A YAML file, or the name of a shipped experiment.")
    ] = "treasury",
    set_: Overrides = None,
) -> None:
    """Replace softmax by random features, and count what states of fixed width forget.

    Settings of the study itself start with `study.`.
    Example: infoset study kernels --set study.num_features=[16,64]
    """
    from .studies import run_kernel_study  # noqa: PLC0415
    from .studies.kernel_tables import all_cells, forecaster_sentence  # noqa: PLC0415

    done = run_kernel_study(config, overrides=set_ or [], show_progress=True)
    numbers, console = done.read(), _console()
    for cells in all_cells(numbers):
        console.print(cells.rich())
    console.print(forecaster_sentence(numbers), highlight=False)
    for path in done.files:
        console.print(f"Written: {path}", soft_wrap=True, highlight=False)


def _console() -> Console:
    # A pipe has no width of its own: tables must not be squeezed there.
    console = Console()
    return console if console.is_terminal else Console(width=_PIPE_WIDTH)


def main() -> None:
    """Run the command line; bad input ends with exit code 2 and one clear error."""
    try:
        app(standalone_mode=True)
    except (ValueError, TypeError, OSError) as error:
        lines = [str(error), *getattr(error, "__notes__", ())]
        print("infoset: " + "\n".join(lines), file=sys.stderr)
        sys.exit(FAILED if isinstance(error, ChildProcessError) else BAD_INPUT)
    except (KeyboardInterrupt, SystemExit) as end:
        # Typer turns Ctrl-C into an exit without a word.
        code = INTERRUPTED if isinstance(end, KeyboardInterrupt) else end.code
        if code == INTERRUPTED:
            print(
                "infoset: interrupted. Finished tasks are kept; run again to go on.",
                file=sys.stderr,
            )
        sys.exit(code)


if __name__ == "__main__":
    main()
