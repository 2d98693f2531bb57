"""Commands as functions, which return data frames, tables and figures."""

from __future__ import annotations  # so that help() shows types as they are written

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hashbench._validation import as_tuple, check_choice
from hashbench.errors import HashbenchError, needing
from hashbench.scoring.compilation import reporting_compilation
from hashbench.scoring.evaluation import DEFAULT_METRICS
from hashbench.scoring.metrics import get_metric, readings
from hashbench.scoring.runs import as_lists

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hashbench.pipeline.one_job import Outcome
    from hashbench.pipeline.study import Study
    from hashbench.reports.diff import Diff
    from hashbench.reports.explain.explained import Explained
    from hashbench.reports.tables import ResultTable
    from hashbench.scoring.problem import Problem


@needing("hashbench.run")
def run(
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]],
    n_bits: int | Sequence[int],
    datasets: str | Path | Sequence[str | Path] = "digits",
    *,
    seeds: int | Sequence[int] = 0,
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    params: Mapping[str, Any] | None = None,
    results: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    n_jobs: int = 1,
    workers: str | None = None,
    trust_workers: bool = False,
) -> pd.DataFrame:
    """Prepare, encode and score a grid of methods and skip finished jobs, as ``hashbench run`` does.

    Parameters
    ----------
    methods : str, sequence of str, or mapping
        Names, or for each name the parameters of that method; several mappings are several settings of it.
    n_bits : int or sequence of int
        Code lengths.
    datasets : str, Path, or sequence of them, default="digits"
        Names, ``NAME:FEATURES``, or dataset files.
    seeds : int or sequence of int, default=0
        Random states; methods without randomness only run with 0, whatever the seeds.
    metrics : str or sequence of str, optional
        Such as ``AP`` or ``NDCG@100``.
    params : mapping, optional
        Parameters of all methods that have them, or of one as ``METHOD:NAME``. Here and in ``methods``, each value of
        a list is run, as with ``--param NAME=20,50``; if a value is itself a list, pass a list of lists.
    results : str or Path, optional
        Folder in whose ``<dataset>/<method>.csv`` files the rows are merged, as the command does.
    force : bool, default=False
        Repeat finished steps.
    resume : bool, default=False
        Continue interrupted training after its last epoch.
    n_jobs : int, default=1
        How many jobs to run at a time, each in its own process; -1 for one per core.
    workers : str, optional
        Dask cluster to run on instead: the address of its scheduler, or the file that the scheduler wrote.
    trust_workers : bool, default=False
        Allow a scheduler on another machine without TLS. Whoever answers there can run code here.

    Returns
    -------
    DataFrame
        One row per job and metric, with the columns of a results file; ``value``, ``low`` and ``high`` are float.

    Warns
    -----
    UserWarning
        For each job that cannot run, or fails; the others still run. For each metric whose name has two meanings. If
        your own dataset was prepared in another way than for the rows in ``results``.

    Raises
    ------
    HashbenchError
        If a name or number is invalid, or no job could run.

    Examples
    --------
    >>> run("lsh", 12, metrics="P@r2")[["dataset", "method", "n_bits", "metric"]].values.tolist()
    [['digits', 'lsh', 12, 'P@r2']]
    """
    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.one_job import write_rows
    from hashbench.pipeline.preparation import prepare_own
    from hashbench.pipeline.runner import in_order, run_all
    from hashbench.pipeline.steps import Demands
    from hashbench.store.result_rows import to_frame

    folder = None if results is None else _as_path(results, "results")
    study = _study(methods, n_bits, datasets, seeds, metrics, params)
    jobs = study.jobs()
    for choices in study.unprepared(folder).values():
        prepare_own(*choices)
    cluster = None if workers is None else Cluster(workers, trust_workers)
    outcomes: list[Outcome] = []
    notes, refusals = [], []
    for outcome in run_all(jobs, Demands(study.metrics, force, resume), n_jobs=n_jobs, cluster=cluster):
        if outcome.evaluation is None:
            refusals.append(outcome.refusal)
            continue
        outcomes.append(outcome)
        if folder is not None:
            _, sentence = write_rows(folder, outcome)
            notes.append(sentence)
    if not outcomes:
        raise HashbenchError(refusals[0] if refusals else "there is nothing to run; name a method.")
    for sentence in (*filter(None, notes), *refusals):
        warnings.warn(sentence, stacklevel=3)
    return to_frame([row for outcome in in_order(outcomes, jobs) for row in outcome.rows])


@needing("hashbench.prepare")
def prepare(
    dataset: str,
    *,
    items: str | Path | None = None,
    features: str | None = None,
    source: str | Path | None = None,
    force: bool = False,
    **own: Any,
) -> Path:
    """Prepare a dataset, as ``hashbench prepare`` does, and return its file.

    Parameters
    ----------
    dataset : str
        Name, or ``NAME:FEATURES``; with ``items``, the name of your own dataset.
    items : str or Path, optional
        File of your own features, texts in .txt, or a folder of images; ``FILE:KEY`` if it holds several arrays.
    features : str, optional
        Kind of features, where there are several.
    source : str or Path, optional
        Raw data that you have.
    force : bool, default=False
        Prepare again, even if the file is current; your own files always are.
    **own
        More on your own items: the fields of `hashbench.plugins.OwnData`, such as ``labels="labels.npy"`` or
        ``neighbours=10, true_distance="cosine"``.

    Returns
    -------
    Path
        The HDF5 file, which all functions take in place of the name.

    Raises
    ------
    HashbenchError
        If there is no such dataset, or the files do not fit together.

    Examples
    --------
    >>> prepare("digits").name
    'digits.h5'
    """
    from hashbench.adapter import Options
    from hashbench.pipeline import preparation
    from hashbench.pipeline.recipes import own_data

    raw = None if source is None else _as_path(source, "source")
    data = own_data(dataset, "" if items is None else str(items), own)
    if items is not None:
        return preparation.prepare_own(data, Options(features, raw))[1]
    if own:
        raise HashbenchError(f"{min(own)} is of your own items; give these as items=, or leave it out.")
    spec = f"{dataset}:{features}" if features else dataset
    return preparation.prepare(spec, Options(None, raw), force=force)[1]


@needing("hashbench.encode")
def encode(
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]],
    n_bits: int | Sequence[int],
    datasets: str | Path | Sequence[str | Path] = "digits",
    *,
    seeds: int | Sequence[int] = 0,
    params: Mapping[str, Any] | None = None,
    keep_model: bool = False,
    force: bool = False,
    resume: bool = False,
    n_jobs: int = 1,
) -> list[Path]:
    """Fit methods and write the codes of queries and database, as ``hashbench encode`` does.

    Parameters
    ----------
    methods, n_bits, datasets, seeds, params, force, resume, n_jobs
        As in `run`.
    keep_model : bool, default=False
        Whether to save each fitted method beside its codes, for `read_model`.

    Returns
    -------
    list of Path
        The codes files, for `read_codes`; a model has its codes' name with ``.model.h5``.

    Warns
    -----
    UserWarning
        For each job that cannot run, or fails; the others still run.

    Raises
    ------
    HashbenchError
        If a name or number is invalid, or no job could run.

    Examples
    --------
    >>> [path.name for path in encode("lsh", [8, 12])]
    ['lsh-8-s0.h5', 'lsh-12-s0.h5']
    """
    from hashbench.pipeline.preparation import prepare_own
    from hashbench.pipeline.runner import in_order, run_all
    from hashbench.pipeline.steps import Demands

    study = _study(methods, n_bits, datasets, seeds, "AP", params)
    jobs = study.jobs()
    for choices in study.unprepared(None).values():
        prepare_own(*choices)
    outcomes = list(run_all(jobs, Demands((), force, resume, keep_model), n_jobs=n_jobs))
    written = [outcome for outcome in in_order(outcomes, jobs) if outcome.codes is not None]
    refusals = [outcome.refusal for outcome in outcomes if outcome.codes is None]
    if not written:
        raise HashbenchError(refusals[0] if refusals else "there is nothing to encode; name a method.")
    for sentence in refusals:
        warnings.warn(sentence, stacklevel=3)
    return [outcome.codes for outcome in written if outcome.codes is not None]


@needing("hashbench.export")
def export(
    file: str | Path,
    target: str,
    output: str | Path,
    *,
    role: str | None = None,
    precision: str | None = None,
    items: str | Path | None = None,
) -> int:
    """Write a model or codes for another program, as ``hashbench export`` does, and check what was written.

    Parameters
    ----------
    file : str or Path
        A model (``.model.h5``) or a codes file.
    target : str
        Of a model ``faiss``, ``npz`` or ``onnx``; of codes ``faiss``, ``hex``, ``npy``, ``pgvector`` or ``usearch``.
    output : str or Path
        File to write.
    role : {"database", "query"}, optional
        Codes to write, by default the database.
    precision : {"float64", "float32"}, optional
        Of numbers in ONNX and npz, by default float64.
    items : str or Path, optional
        Items to compare codes on, by default those of the model's dataset.

    Returns
    -------
    int
        The number of bits that differ where the program's own library reads the file: 0 unless its numbers are rounded.

    Raises
    ------
    HashbenchError
        If the file is neither, cannot be written for the target, or a library is missing.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     export(encode("lsh", 8)[0], "hex", Path(folder, "codes.txt"))
    0
    """
    from hashbench.pipeline import exporting

    path, written = _as_path(file, "file"), _as_path(output, "output")
    given = None if items is None else str(items)
    return exporting.export(path, target, written, role=role, precision=precision, items=given).n_differing


@needing("hashbench.tune")
def tune(
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]],
    n_bits: int | Sequence[int],
    datasets: str | Path | Sequence[str | Path] = "digits",
    *,
    output: str | Path,
    n_trials: int = 9,
    seeds: int | Sequence[int] = 0,
    metrics: str | Sequence[str] = "AP",
    params: Mapping[str, Any] | None = None,
    resume: bool = False,
    n_jobs: int = 1,
    workers: str | None = None,
    trust_workers: bool = False,
) -> pd.DataFrame:
    """Choose settings on held-out training items, never on queries, as ``hashbench tune`` does.

    Parameters
    ----------
    methods : str, sequence of str, or mapping
        Names, or for each name the parameters of that method: a single value is fixed, and each value of a list is
        tried in place of those that the method declares.
    n_bits : int or sequence of int
        Code lengths, at each of which all settings are tried.
    output : str or Path
        Folder for rows of all trials, and for ``grid.toml``, which ``hashbench run --grid`` takes.
    n_trials : int, default=9
        How many settings of each method to try, its defaults among them.
    seeds : int or sequence of int, default=0
        Random states of held-out items, of drawn settings and of training.
    metrics : str or sequence of str, default="AP"
        What settings are judged by, with equal weights.
    params : mapping, optional
        Parameters of all methods, or of one as ``METHOD:NAME``, like those in ``methods``.
    resume : bool, default=False
        Continue interrupted training after its last epoch.
    datasets, n_jobs, workers, trust_workers
        As in `run`.

    Returns
    -------
    DataFrame
        One row per method: ``method``, the chosen ``params``, the ``best`` ones, ``best_score`` and ``default_score``,
        ``lead``, ``n_trials``, ``n_failed`` and ``at_edge``: the parameters whose chosen value is the least or the
        greatest that was tried. ``params`` are as `run` takes them and ``grid.toml`` holds them, with
        ``tuned``, the number of settings tried; None if no settings finished. The defaults are chosen unless
        the best lead by more than 0.01. The lowest score is the best if all metrics count errors; beside others, errors
        are taken as 1 - metric.

    Warns
    -----
    UserWarning
        If the name of a metric has two meanings, a method has fewer settings than trials, listed values are not all
        tried, or no settings of a method finished all their trials.

    Raises
    ------
    HashbenchError
        If a name or number is invalid, or no settings finished all their trials.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     tune({"itq": {"n_iter": [1, 50]}}, 12, output=folder, n_trials=2)["method"].tolist()
    ['itq']

    Rows of the chosen settings record the trials:

    >>> with TemporaryDirectory() as folder:
    ...     chosen = tune({"itq": {"n_iter": [1, 50]}}, 12, output=folder, n_trials=2).set_index("method")["params"]
    ...     frame = run(chosen.dropna().to_dict(), 12, metrics="AP", results=folder)
    >>> chosen.to_dict()
    {'itq': {'tuned': 2}}
    """
    import pandas as pd

    from hashbench.pipeline import tuning
    from hashbench.pipeline.cluster import Cluster

    if not isinstance(n_trials, Integral) or n_trials < 1:
        raise HashbenchError(f"n_trials is {n_trials!r}, expected a whole number from 1.")
    study = _study(methods, n_bits, datasets, seeds, metrics, params)
    names = [get_metric(name).name for name in study.metrics]
    folder = _as_path(output, "output")
    tuning.check_folder(folder)
    search = tuning.Search(study, n_trials, names)
    for sentence in search.about_effort("n_trials="):
        warnings.warn(sentence, stacklevel=3)
    cluster = None if workers is None else Cluster(workers, trust_workers)
    for _ in search.run(folder, n_jobs, resume=resume, cluster=cluster):
        pass
    choices = tuning.conclude(search, folder)
    if left_out := tuning.about_left_out(choices):
        warnings.warn(left_out, stacklevel=3)
    return pd.DataFrame([vars(choice) | {"params": tuning.variant_of(choice)} for choice in choices])


@needing("hashbench.tables")
def tables(
    *names: str,
    results: str | Path = "results",
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    metrics: Sequence[str] = (),
    features: Sequence[str] = (),
    n_bits: Sequence[int] = (),
    variants: bool = False,
    name: str = "selection",
    rename: Mapping[str, str] | None = None,
    rename_from: str | Path | None = None,
    digits: int | None = None,
) -> dict[str, ResultTable]:
    """Lay out results like the papers' tables, as ``hashbench tables`` does; nothing is written.

    Parameters
    ----------
    *names : str
        Such as ``table1``; by default all, or a table of what is chosen by dataset, method, metric or features.
    results : str or Path, default="results"
        Folder of the result files.
    datasets, methods, metrics, features : sequence of str
        Which rows; empty for all.
    n_bits : sequence of int
        Columns other than the papers'.
    variants : bool, default=False
        Show all parameters and versions of a method, not only one line of each.
    name : str, default="selection"
        Name of a table of chosen rows, also in its LaTeX label.
    rename : mapping of str to str, optional
        Texts to show for rows, methods, datasets and metrics of the tables, such as ``{"itq": "ITQ"}``; that of
        ``caption`` is the caption in LaTeX.
    rename_from : str or Path, optional
        TOML file, such as a grid, whose table ``[rename]`` holds more of them.
    digits : int, optional
        Decimal places, from 1 to 6; by default 4 in Markdown, 3 in LaTeX and 6 in CSV.

    Returns
    -------
    dict of str to ResultTable
        Tables by name, with ``cells`` (a DataFrame), ``to_markdown()`` and ``to_latex()``; notebooks display them.

    Raises
    ------
    HashbenchError
        If a name is unknown, also one to rename, or no row is chosen.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = run("lsh", 12, metrics="AP", results=folder)
    ...     tables("table1", results=folder)["table1"].cells["method"].tolist()
    ['lsh']
    """
    from hashbench.reports.selection import Selection
    from hashbench.reports.tables import DisplayNames, make_tables

    if digits is not None and (not isinstance(digits, Integral) or not 1 <= digits <= 6):
        raise HashbenchError(f"digits is {digits!r}, expected a whole number from 1 to 6.")
    chosen = {"datasets": datasets, "methods": methods, "metrics": metrics, "features": features, "n_bits": n_bits}
    rows: dict[str, Any] = {key: as_tuple(value) for key, value in chosen.items()}
    shown = DisplayNames(rename, None if rename_from is None else _as_path(rename_from, "rename_from"))
    laid_out = make_tables(_as_path(results, "results"), names, Selection(**rows, variants=variants), name, shown)
    return {key: replace(table, digits=digits) for key, table in laid_out.items()}


@needing("hashbench.plot")
def plot(
    name: str,
    *,
    results: str | Path = "results",
    datasets: str | Sequence[str] = (),
    methods: str | Sequence[str] = (),
    n_bits: int | Sequence[int] = (),
    metric: str = "AP",
    features: str | Sequence[str] = (),
    variants: bool = False,
    width: float = 6.9,
    has_title: bool = True,
) -> Figure:
    """Draw one figure of the results, as ``hashbench plot`` does.

    Parameters
    ----------
    name : str
        Such as ``ap-bits`` or ``tie-ranges``.
    results : str or Path, default="results"
        Folder of the result files.
    datasets, methods, features : str or sequence of str
        Which lines; empty for all.
    n_bits : int or sequence of int
        Code lengths; by default all, or one in some figures.
    metric : str, default="AP"
        What methods are judged by.
    variants : bool, default=False
        Show all parameters and versions of a method, not only one line of each.
    width : float, default=6.9
        Width in inches; a column has 3.3.
    has_title : bool, default=True
        Whether there is a title above the panels.

    Returns
    -------
    matplotlib.figure.Figure
        Independent of pyplot: ``figure.savefig(...)`` writes it, a notebook displays it.

    Raises
    ------
    HashbenchError
        If a name is unknown, or the choice leaves no figure or several.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = run(["lsh", "pcah"], 12, metrics="AP", results=folder)
    ...     float(plot("tie-ranges", results=folder).get_figwidth())
    6.9
    """
    from hashbench.reports.plots import draw_figures
    from hashbench.reports.plots.style import FigureLayout
    from hashbench.reports.selection import Selection

    chosen = {"datasets": datasets, "methods": methods, "n_bits": n_bits, "features": features}
    names: dict[str, Any] = {key: as_tuple(value) for key, value in chosen.items()}
    selection = Selection(**names, metrics=[metric], variants=variants)
    drawings = list(draw_figures(_as_path(results, "results"), [name], selection, FigureLayout(width, has_title)))
    figures = [drawing.figure for drawing in drawings if drawing.figure is not None]
    if len(figures) > 1:
        raise HashbenchError(
            f"{name} is {len(figures)} figures of these results: {', '.join(drawing.stem for drawing in drawings)}. "
            "Choose one by datasets and features."
        )
    return figures[0]


@needing("hashbench.compare_results")
def compare_results(
    *names: str | Sequence[str],
    results: str | Path = "results",
    datasets: str | Sequence[str] = (),
    metrics: str | Sequence[str] = "AP",
    n_bits: int | Sequence[int] = (),
    features: str | Sequence[str] = (),
    by: str = "query",
) -> pd.DataFrame:
    """Compare the first of some methods with the others by their results, as ``hashbench compare`` does.

    Parameters
    ----------
    *names : str
        Methods, or labels of their settings, such as ``"csq epochs=3"``; also as one list.
    results : str or Path, default="results"
        Folder of the result files.
    datasets, n_bits, features : str or int, or sequence of them
        Which rows; empty for all.
    metrics : str or sequence of str, default="AP"
        Metrics to compare in; ``()`` is AP too.
    by : {"query", "class"}, default="query"
        What the interval generalises to: other queries, or other classes of queries.

    Returns
    -------
    DataFrame
        One row per dataset, metric, code length and other method: the difference as ``value``, its interval from
        ``low`` to ``high``, ``p``, ``p_holm`` corrected for all of several rows, ``tie_sd``, ``is_shown``, the
        ``answer`` and the ``sentence`` to quote. Where nothing can be tested, p is NaN and the sentence says why.

    Warns
    -----
    UserWarning
        If only seeds can be compared, or rows may be of different code.

    Raises
    ------
    HashbenchError
        If a name is unknown, or there is nothing to compare.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = run(["itq", "lsh"], 12, metrics="AP", results=folder)
    ...     compare_results("itq", "lsh", results=folder)["answer"].tolist()
    ['better']
    """
    from hashbench.reports.comparison import read_and_compare
    from hashbench.reports.selection import Selection

    check_choice(by, ("query", "class"), "by")
    methods: tuple[Any, ...] = as_tuple(names[0]) if len(names) == 1 else names
    if not all(isinstance(name, str) for name in methods):
        raise HashbenchError(f"methods are names, got {[*methods]}.")
    selection = Selection(
        datasets=as_tuple(datasets),
        features=as_tuple(features),
        n_bits=as_tuple(n_bits),
        metrics=as_tuple(metrics),
    )
    comparison = read_and_compare(_as_path(results, "results"), methods, selection, by == "class")
    for note in comparison.notes:
        warnings.warn(note, stacklevel=3)
    return comparison.to_frame()


@needing("hashbench.diff")
def diff(
    old: str | Path = "HEAD",
    new: str | Path | None = None,
    *,
    metrics: str | Sequence[str] = (),
    results: str | Path | None = None,
) -> Diff:
    """Compare results on two sides, by default the last commit and the working tree, as ``hashbench diff`` does.

    Parameters
    ----------
    old, new : str or Path
        Revisions, tags, folders or files; ``A..B`` and ``A...B`` as in git. By default the working tree is new.
    metrics : str or sequence of str
        Which rows; empty for all.
    results : str or Path, optional
        Folder of the result files at a revision; by default the nearest ``results``, here or above.

    Returns
    -------
    Diff
        With ``counts``, ``to_frame()`` of all rows that differ, ``over_seeds()``, and ``drops(0.01)`` of values that
        are worse by more than 0.01.

    Raises
    ------
    HashbenchError
        If a side does not exist, or there is nothing to compare.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = run("lsh", 12, metrics="AP", results=folder)
    ...     diff(folder, folder).counts["unchanged"]
    1
    """
    from hashbench.reports.diff import read_diff

    folder = None if results is None else _as_path(results, "results")
    return read_diff(str(old), None if new is None else str(new), as_tuple(metrics), folder)


@needing("hashbench.explain")
@reporting_compilation()
def explain(
    problem: Problem,
    metrics: str | Sequence[str] = (),
    *,
    scripts: str | Sequence[str] = (),
    database_order: str | None = None,
    value: str | None = None,
) -> Explained:
    """Show why other scripts give other numbers for the same codes, as ``hashbench explain`` does.

    Parameters
    ----------
    problem : Problem
        Codes and what is relevant to them, such as ``Problem.of_codes(query_codes, database_codes, affinity)``.
    metrics : str or sequence of str, optional
        By default AP and AP@1000; with ``value``, those that papers report.
    scripts : str or sequence of str, optional
        Scripts that ``hashbench list scripts`` lists; by default all.
    database_order : str, optional
        Order of the database, which breaks ties: ``given``, ``by-class`` or ``shuffled``, with a seed as in
        ``shuffled:7``. By default ``given``; with ``value`` and without ``metrics``, each of the three.
    value : str, optional
        Number to look for, such as ``"0.731"``, or ``"73.1"`` in percent; its digits count. Scripts that cannot give it
        are ruled out by bounds or samples of queries, and have estimates instead of values.

    Returns
    -------
    Explained
        Data frames ``scripts`` and ``causes``, and ``notes`` on what was left out.

    Raises
    ------
    HashbenchError
        If there are no binary codes, or no script gives a metric.

    Examples
    --------
    >>> from hashbench import Problem
    >>> problem = Problem.of_codes([[0, 0]], [[0, 1], [1, 0], [1, 1]], ([5], [7, 5, 5]))
    >>> explained = explain(problem, "AP", value="0.58")
    >>> found = explained.scripts
    >>> "sklearn-ap" in set(found.loc[found["verdict"] == "gives", "script"])
    True
    """
    from hashbench.reports.explain.explained import explain_problem

    return explain_problem(problem, as_tuple(metrics), as_tuple(scripts), database_order, value)


@needing("hashbench.explain_run")
@reporting_compilation()
def explain_run(
    run: Mapping[str, Mapping[str, float]] | pd.DataFrame,
    qrels: Mapping[str, Mapping[str, int]] | pd.DataFrame,
    metrics: str | Sequence[str] = (),
    *,
    scripts: str | Sequence[str] = (),
    value: str | None = None,
) -> Explained:
    """Show why tools for runs give other numbers for the same run, as ``hashbench explain --run`` does.

    Parameters
    ----------
    run, qrels
        As in `hashbench.evaluate_run`, documents in the order of the file.
    metrics : str or sequence of str, optional
        By default AP and NDCG:trec; ``NDCG`` is ``NDCG:trec``, as in `hashbench.evaluate_run`.
    scripts : str or sequence of str, optional
        Some of trec_eval, pytrec_eval, ir_measures, ranx-here, ranx-run-here and ranx-comparable-here.
    value : str, optional
        Number to look for, as in `explain`.

    Returns
    -------
    Explained
        As of `explain`.

    Raises
    ------
    HashbenchError
        If run, qrels and metrics do not fit together, or no tool gives a metric.

    Examples
    --------
    >>> explained = explain_run({"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1}}, "AP", scripts="trec_eval")
    >>> explained.scripts[["value", "exact_mean"]].values.tolist()
    [[0.5, 0.75]]
    """
    from hashbench.reports.explain.explained import explain_lists

    return explain_lists(*as_lists(run, qrels), as_tuple(metrics), as_tuple(scripts), value)


@needing("hashbench.read_codes")
def read_codes(path: str | Path, dataset: str | Path | None = None) -> Problem:
    """Read a codes file of hashbench and its dataset, to evaluate or explain.

    Parameters
    ----------
    path : str or Path
        Such as ``codes/digits/itq-32-s0.h5`` in the data folder.
    dataset : str or Path, optional
        Name or file of its dataset; by default the one whose content the file records.

    Returns
    -------
    Problem
        Its ``codes`` are packed: ``unpack(problem.codes.query, problem.codes.n_bits)`` of ``hashbench.bits`` has bits.

    Raises
    ------
    HashbenchError
        If this is another file, or its dataset is not found.

    Examples
    --------
    >>> _ = run("lsh", 12, metrics="AP")
    >>> from hashbench.store.files import data_dir
    >>> problem = read_codes(data_dir() / "codes/digits/lsh-12-s0.h5")
    >>> problem.codes.n_queries, problem.codes.n_bits
    (200, 12)
    """
    from hashbench.pipeline.own_codes import dataset_of, read_file

    path = _as_path(path, "path")
    return read_file(path, dataset_of(path, None if dataset is None else str(dataset))).problem


def _study(methods: Any, n_bits: Any, datasets: Any, seeds: Any, metrics: Any, params: Any) -> Study:
    from hashbench.pipeline.study import Study, nonempty_tuple, read_methods, read_params

    metrics = _names(metrics, "metrics")
    for note in readings(map(get_metric, metrics)):
        warnings.warn(note, stacklevel=4)
    settings = methods if isinstance(methods, Mapping) else {name: {} for name in _names(methods, "methods")}
    return Study(
        datasets=_names(datasets, "datasets"),
        methods=read_methods(settings, "methods"),
        n_bits=nonempty_tuple(n_bits, "n_bits"),
        seeds=nonempty_tuple(seeds, "seeds"),
        metrics=metrics,
        params=read_params(params or {}, "params"),
    )


def _as_path(path: str | Path, what: str) -> Path:
    """Return a path; refuse an empty text, which `Path` takes for the working folder."""
    if not str(path):
        raise HashbenchError(f"{what} is an empty path; give a name, or '.' for the folder that you are in.")
    return Path(path)


def _names(value: Any, what: str) -> tuple[str, ...]:
    """Return names, or paths of files, as texts; unknown names are refused later."""
    from hashbench.pipeline.study import nonempty_tuple

    return tuple(map(str, nonempty_tuple(value, what)))
