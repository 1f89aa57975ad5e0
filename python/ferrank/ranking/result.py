"""The result: importances of all features under each score, with standard errors and ranks."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from ferrank.data.parameters import count_of, floats_of, kind_of, names_of
from ferrank.errors import DataError, SettingError, UnavailableError
from ferrank.ranking import storage, text
from ferrank.ranking.clusters import Clusters, check_association, clusters_of, least_redundant
from ferrank.ranking.model_error import ModelError
from ferrank.ranking.relevance import FDR, Dependence, Relevance, check_fdr
from ferrank.ranking.scores import Floats, ScoreRanking, not_utf8, rank_importances
from ferrank.ranking.stopping import Stop

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ferrank.ranking.page import Report

__all__ = ["Ranking"]


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """A ranking of features.

    Attributes
    ----------
    task : str
        What was predicted.
    n_rows : int
        Rows that took part.
    n_unlabelled : int
        Rows of which all targets are missing. They took part if the setting ``unlabelled`` is "use" and
        ``supervision`` is not 1, else they were left out.
    features : list of str
        Names of the features, in input order, which is the order of all arrays.
    targets : list of str
        Names of the targets.
    scores : dict of str to ScoreRanking
        In the order asked for; the first is the main one.
    settings : dict
        What the ranker was told.
    seconds : float or None
        Wall time of the run.
    stopped : Stop or None
        Why the run ended, with ``until="stable"``.
    model_error : dict of str to ModelError or None
        By target, how well the forest predicts rows that are out of bag, beside guessing; measured on a
        sample of up to 1,000 rows. A constant target has no entry. None where it is not known: for Relief,
        without a bootstrap or a target, with ``supervision=0``, with ``scope="partition"``, and after
        ``partial_fit``.
    no_model_error : str or None
        Why ``model_error`` is None.
    relevance : Relevance or None
        P-values and what follows from them, with ``shadows=True``.
    source : str or None
        What was ranked: the name of a file, or "table" and the like.
    clusters : Clusters or None
        Features that say the same, of ``rank(..., clusters=True)``.
    forest : Forest or None
        The trees, with ``keep_trees``. They are not saved with the ranking: see :meth:`Forest.save`.
    warnings : list of str
        What :func:`rank` warned of, such as leaks. Pages and text have them, files of other formats do not.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 100))
    >>> ranking = ferrank.rank({"a": a, "b": b, "y": a}, "y", n_estimators=10)
    >>> ranking.features, ranking.targets, ranking.scores["genie3"].rank.tolist()
    (['a', 'b'], ['y'], [1, 2])
    """

    task: str
    n_rows: int
    features: list[str]
    targets: list[str]
    scores: dict[str, ScoreRanking]
    n_unlabelled: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    stopped: Stop | None = None
    model_error: dict[str, ModelError] | None = None
    no_model_error: str | None = None
    relevance: Relevance | None = None
    source: str | None = None
    clusters: Clusters | None = None
    forest: Any = None
    warnings: list[str] = field(default_factory=list)

    @property
    def interactions(self) -> pa.Table | None:
        """The 20 pairs of features that occur together most on paths of trees; None without ``keep_trees``.

        See :meth:`Forest.interactions`, which tells more pairs.
        """
        return None if self.forest is None else self.forest.interactions()

    def with_forest(self, forest: Any) -> Self:
        """Return the same ranking with the trees that it comes from."""
        return replace(self, forest=forest)

    @classmethod
    def from_core(cls, result: dict[str, Any], settings: dict[str, Any], seconds: float | None) -> Self:
        """Return the ranking in the engine's ``result``."""
        scores = {
            score["score"]: ScoreRanking(
                score["importance"],
                score["standard_error"],
                score["monte_carlo_error"],
                score["rank"],
                np.column_stack([score["rank_best"], score["rank_worst"]]),
                score["by_target"],
            )
            for score in result["scores"]
        }
        names = ("task", "n_rows", "features", "targets", "n_unlabelled")
        return cls(
            **{name: result[name] for name in names},
            scores=scores,
            settings=settings,
            seconds=seconds,
            stopped=None if result["stopped"] is None else Stop(**result["stopped"]),
            model_error=storage.model_error(result["model_error"]),
            no_model_error=result["no_model_error"],
            relevance=None if result["relevance"] is None else Relevance(*result["relevance"]),
        )

    @classmethod
    def from_importances(
        cls,
        features: Sequence[str],
        importances: Mapping[str, Any],
        *,
        task: str,
        targets: Sequence[str] = (),
        n_rows: int = 0,
        standard_errors: Mapping[str, Any] | None = None,
        settings: dict[str, Any] | None = None,
        seconds: float | None = None,
    ) -> Self:
        """Return the ranking by importances from elsewhere.

        Parameters
        ----------
        features : sequence of str
            Names.
        importances : mapping of str to array of shape (n_features,)
            By score; the greatest is the best. Finite numbers.
        task, targets, n_rows, settings, seconds
            As the attributes.
        standard_errors : mapping of str to array of shape (n_features,), optional
            By score; NaN by default, and then every rank is possible.

        Examples
        --------
        >>> Ranking.from_importances(["a", "b"], {"weight": [0.1, 0.7]}, task="regression").top(1)
        ['b']

        Raises
        ------
        DataError
            Two features have the same name, a name is not UTF-8, or an importance is missing or infinite.
        """
        features, targets = names_of(features, "features", "names"), names_of(targets, "targets", "names")
        kind_of(importances, Mapping, "importances", "a mapping of scores to arrays")
        if not importances:
            raise DataError("importances: there are none; give those of one score at least")
        errors = {} if standard_errors is None else standard_errors
        kind_of(errors, Mapping, "standard_errors", "a mapping of scores to arrays")
        unknown = next((name for name in errors if name not in importances), None)
        if unknown is not None:
            raise SettingError(f"standard_errors: no score {unknown!r} among the importances")
        kind_of(task, str, "task", "a name")
        n_rows = count_of(n_rows, "n_rows", "rows")
        if len(set(features)) < len(features):
            raise DataError("features: two have the same name; rename one")
        for what, names in (("features", features), ("targets", targets), ("importances", importances)):
            unfit = not_utf8(name for name in names if isinstance(name, str))
            if unfit is not None:
                raise DataError(f"{what}: the name {unfit!r} is not UTF-8; give another one")
        scores = {}
        for name, given in importances.items():
            values = floats_of(given, f"importances: {name}")
            bad = np.flatnonzero(~np.isfinite(values.ravel()[: len(features)]))
            if len(bad):
                raise DataError(
                    f"importances: feature '{features[bad[0]]}' has {values.flat[bad[0]]} under the score "
                    f"'{name}'; give a finite number, or leave the feature out"
                )
            scores[name] = rank_importances(values, errors.get(name), len(features))
        return cls(task, n_rows, list(features), list(targets), scores, 0, settings or {}, seconds)

    def score(self, score: str | None = None) -> ScoreRanking:
        """Return the importances under ``score``, by default the first one.

        Raises
        ------
        SettingError
            The score was not asked for.
        """
        if score is None:
            return next(iter(self.scores.values()))
        if not isinstance(score, str) or score not in self.scores:
            raise SettingError(f"score: no {score!r} in this ranking; it has {', '.join(self.scores)}")
        return self.scores[score]

    def importances(self, score: str | None = None) -> Floats:
        """Return the importances under ``score``, of shape (n_features,) in input order."""
        return self.score(score).importance

    def ranks(self, score: str | None = None) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the ranks under ``score``, of shape (n_features,) in input order; 1 is best.

        >>> import ferrank
        >>> ranking = ferrank.Ranking.from_importances(["a", "b"], {"w": [0.1, 0.7]}, task="regression")
        >>> ranking.ranks().tolist()
        [2, 1]
        """
        return self.score(score).rank.astype(np.int64)

    def by_target(self, score: str | None = None) -> Floats:
        """Return the importances by target, of shape (n_features, n_targets).

        Raises
        ------
        SettingError
            They were not asked for with ``by_target=True``, which holds for ``genie3`` and ``mdi_oob``.
        """
        parts = self.score(score).by_target
        if parts is None:
            raise SettingError(
                "by_target: was not asked for; use by_target=True with the score genie3 or mdi_oob"
            )
        return parts

    def order(self, score: str | None = None) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Return the numbers of the features, best first; equals in input order."""
        return np.argsort(self.score(score).rank, kind="stable")

    def top(self, k: int = 10, score: str | None = None) -> list[str]:
        """Return the names of the ``k`` best features, best first."""
        return [self.features[number] for number in self.order(score)[: count_of(k, "k")]]

    def relevant(self, fdr: float = FDR, dependence: Dependence = "positive") -> list[str]:
        """Return the names of the relevant features, best first.

        A feature is relevant if it is more important than a feature without any information is by chance. At
        most a share of ``fdr`` of those that are returned is expected to be irrelevant.

        The rate is verified by simulation of tables with 40 to 5,000 features.

        Parameters
        ----------
        fdr : float, default=0.1
            The false discovery rate, above 0 and below 1.
        dependence : {"positive", "any"}, default="positive"
            As in :meth:`Relevance.q_values`.

        Raises
        ------
        SettingError
            The ranking has no p-values, or a setting is not valid.
        """
        verdicts = self._known_relevance().verdicts(fdr, dependence)
        return [self.features[number] for number in self.order() if verdicts[number] == "relevant"]

    def at_rate(self, fdr: float) -> Self:
        """Return the ranking with verdicts at the false discovery rate ``fdr`` in its tables.

        Raises
        ------
        SettingError
            The ranking has no p-values, or ``fdr`` is not above 0 and below 1.
        """
        return replace(self, relevance=replace(self._known_relevance(), fdr=check_fdr(fdr)))

    def _known_relevance(self) -> Relevance:
        if self.relevance is None:
            if self.settings.get("covariates"):
                raise UnavailableError(
                    "relevant: there are no p-values with covariates, as targets that are drawn anew lose "
                    "what they have to do with them; go by the importances and their standard errors, or "
                    "rank without covariates"
                )
            by = str(self.settings.get("ranker") or "")
            made = {"forest": "shadows=True gives it some", "relief": "target_draws=60 gives it some"}
            raise UnavailableError(
                f"relevant: this ranking{f' by the ranker {by}' if by else ''} has no p-values; "
                + (f"{made[by]}, and " if by in made else "")
                + "ranker='joint' has them by default"
            )
        return self.relevance

    @property
    def p_value(self) -> Floats:
        """(n_features,); the p-value of each feature, as of :class:`Relevance`."""
        return self._known_relevance().p_value

    @property
    def q_value(self) -> Floats:
        """(n_features,); the least false discovery rate at which each feature is relevant."""
        return self._known_relevance().q_value

    @property
    def verdict(self) -> Any:
        """(n_features,); "relevant", "irrelevant" or "undecided"."""
        return self._known_relevance().verdict

    @property
    def standard_error(self) -> Floats:
        """(n_features,); how far other rows would move the importance, of :meth:`score_with_errors`."""
        return self.score_with_errors().standard_error

    @property
    def monte_carlo_error(self) -> Floats:
        """(n_features,); how far more trees or queries would move it, of :meth:`score_with_errors`."""
        return self.score_with_errors().monte_carlo_error

    @property
    def rank_interval(self) -> Any:
        """(n_features, 2); the best and the worst possible rank, of :meth:`score_with_errors`."""
        return self.score_with_errors().rank_interval

    def with_clusters(self, data: Any, threshold: float = 0.7) -> Self:
        """Return the ranking with clusters of its best features, as ``rank(..., clusters=...)`` finds them.

        For rankings without clusters, such as those of estimators (``ranker.result_``), of dask
        collections, and from files.

        Parameters
        ----------
        data : path, frame, table, array or Dataset
            Rows with the features, such as those that were ranked, or a sample of them. At most 10,000 rows
            are looked at. The columns of an array are called ``x0``, ``x1`` ….
        threshold : float, default=0.7
            The least association of any two features of a cluster.

        Raises
        ------
        DataError
            A feature is not among the columns.
        SettingError
            The data are a dask collection, or the threshold is none.

        Examples
        --------
        >>> import numpy as np
        >>> from ferrank import ForestRanker
        >>> a, b = np.random.default_rng(0).normal(size=(2, 100))
        >>> X = np.column_stack([a, b, a + 0.01 * b])
        >>> forest = ForestRanker(n_estimators=20).fit(X, a)
        >>> sorted(forest.result_.with_clusters(X).clusters.members("x0"))
        ['x0', 'x2']
        """
        from ferrank.data.dataset import Dataset

        association = check_association(threshold)
        dataset = data if isinstance(data, Dataset) else Dataset(data, task="unsupervised")
        if dataset.is_lazy:
            raise SettingError(
                "data: a dask collection; give a sample of its rows: collection.sample(frac=0.01).compute()"
            )
        if association is None:
            raise SettingError("threshold: clusters need the least association within them; use 0.7")
        source, roles = dataset.source(), dataset.roles()
        missing = next((name for name in self.features if name not in source.columns), None)
        if missing is not None:
            raise DataError(
                f"{source.name}: no column '{missing}', which is ranked; give rows with all features"
            )
        return replace(self, clusters=clusters_of(source, roles, self.top(len(self)), association))

    def representatives(self, fdr: float | None = None) -> list[str]:
        """Return the best feature of each cluster, best first.

        Parameters
        ----------
        fdr : float, optional
            Only features that are relevant at this false discovery rate; see :meth:`relevant`.

        Raises
        ------
        SettingError
            The ranking has no clusters; or no p-values, and ``fdr`` is given.

        Examples
        --------
        >>> import ferrank, numpy as np
        >>> a, b = np.random.default_rng(0).normal(size=(2, 100))
        >>> table = {"a": a, "b": b, "a_too": a + 0.01 * b, "y": 2 * a + b}
        >>> ranking = ferrank.rank(table, "y", n_estimators=50, clusters=0.9)
        >>> len(ranking.representatives()), sorted(ranking.clusters.members("a"))
        (2, ['a', 'a_too'])
        """
        best = self._known_clusters().representatives()
        if fdr is None:
            return best
        relevant = set(self.relevant(fdr))
        return [name for name in best if name in relevant]

    def without_redundancy(self, k: int = 10, score: str | None = None) -> list[str]:
        """Return ``k`` features that are important and say little that those before them have said.

        After the best one, each is the one with the greatest quotient of its importance and its mean
        association, at least 0.1, with those that are chosen (the variant RFCQ of mRMR: Zhao, Anand and
        Wang 2019; mRMR: Ding and Peng 2005). Features whose importance is not above 0 come last.

        Parameters
        ----------
        k : int, default=10
            Number of features, of those that are clustered.
        score : str, optional
            By default the first one.

        Raises
        ------
        SettingError
            ``k`` is no number of features, or the ranking has no clusters, or was loaded from a file, which
            has no associations.
        """
        k = count_of(k, "k")
        clusters = self._known_clusters()
        if clusters.association is None:
            raise SettingError(
                "without_redundancy: files of rankings do not have the associations of features; rank again"
            )
        place = {name: number for number, name in enumerate(self.features)}
        importance = self.importances(score)[[place[name] for name in clusters.features]]
        return [clusters.features[number] for number in least_redundant(importance, clusters.association, k)]

    def _known_clusters(self) -> Clusters:
        if self.clusters is None:
            raise SettingError(
                "clusters: this ranking has none; rank(..., clusters=True) finds some, and so does "
                "ranking.with_clusters(data)"
            )
        return self.clusters

    def score_with_errors(self) -> ScoreRanking:
        """Return the first score that has standard errors; the first one if none has.

        The evidence of a joint ranking has none.
        """
        scores = list(self.scores.values())
        return next((score for score in scores if np.isfinite(score.standard_error).any()), scores[0])

    def __len__(self) -> int:
        """Return the number of features."""
        return len(self.features)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the table of :meth:`to_arrow` as an Arrow stream."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return a table with a row for each feature, best first.

        Its columns are ``feature`` and ``rank`` (by the first score), with p-values also ``p_value``,
        ``q_value`` and ``verdict`` (at a false discovery rate of 0.1, or as :meth:`at_rate` says), and for
        each score ``S`` the importance ``S``, ``S_standard_error``, ``S_monte_carlo_error``, ``S_rank``,
        ``S_rank_best``, ``S_rank_worst`` and, where asked for, ``S[target]`` for each target.
        """
        return storage.to_table(self)

    def to_pandas(self) -> Any:
        """Return the table of :meth:`to_arrow` as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the table of :meth:`to_arrow` as a polars frame."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``ferrank rank --json`` prints; arrays are lists in input order."""
        return storage.to_dict(self)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema (draft 2020-12) of :meth:`to_dict`, of .json files, and of ``--json``.

        Objects name its version as ``schema``. Within a version, members are added at most.

        >>> Ranking.json_schema()["properties"]["schema"]
        {'description': 'version of this schema', 'const': 1}
        """
        return storage.json_schema()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as .csv, .parquet, .arrow, .json or .html, told by the suffix; replaces a file in one step.

        A CSV has the columns ``feature, rank``, with p-values ``p_value, q_value, verdict``, and for each
        score ``S, S_standard_error, S_monte_carlo_error``, best first. An .html file is the page of
        :meth:`report`. The other formats can be read again by :meth:`load`; what is in a .json file is in
        :meth:`json_schema`.
        """
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Ranking":
        """Load a ranking saved as .parquet, .arrow or .json."""
        return cls(**storage.load(path))

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        top: int = 30,
        scores: Sequence[str] | None = None,
        ax: Any = None,
    ) -> "Figure":
        """Draw the importances of the best features as bars, with standard errors.

        Parameters
        ----------
        path : path, optional
            Where to save it; .png, .svg or .pdf.
        top : int, default=30
            Number of features in a panel.
        scores : sequence of str, optional
            The scores, a panel each; by default all, with ``ax`` the first one.
        ax : matplotlib.axes.Axes, optional
            Where to draw one score.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from ferrank.ranking import plot

        return plot.plot(self, path, top=count_of(top, "top", least=1), scores=scores, ax=ax)

    def report(self, others: Mapping[str, "Ranking"] | None = None, *, title: str | None = None) -> "Report":
        """Return a page about the ranking that can be worked with, which notebooks show.

        All features can be sorted and searched; the page also has importances by target, how alike the scores
        are, and what the ranking is of. It loads nothing from elsewhere.

        Parameters
        ----------
        others : mapping of str to Ranking, optional
            Rankings of the same features to compare with, by name.
        title : str, optional
            Of the page.

        Returns
        -------
        Report
            With the methods ``save(path)`` and the page as ``html``.

        Raises
        ------
        DataError
            The others rank other features.
        """
        from ferrank.ranking.page import Report

        own = str(self.settings.get("ranker") or "ranking")
        compared = {} if others is None else others
        for name, one in kind_of(compared, Mapping, "others", "a mapping of names to rankings").items():
            kind_of(one, Ranking, f"others: {name}", "a ranking")
        return Report({own: self, **compared}, title=title)

    def plot_clusters(self, path: str | os.PathLike[str] | None = None, *, top: int = 40) -> "Figure":
        """Draw the tree of the best features: where they merge, any two have that association or more.

        Parameters
        ----------
        path : path, optional
            Where to save it; .png, .svg or .pdf.
        top : int, default=40
            Number of features.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        SettingError
            The ranking has no clusters.
        """
        from ferrank.ranking import plot

        return plot.plot_clusters(self._known_clusters(), path, top=count_of(top, "top", least=1))

    def to_text(self, top: int = 10) -> str:
        """Return a table of the ``top`` best features as text."""
        return text.text(self, count_of(top, "top"))

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return text.html(self, 20)
