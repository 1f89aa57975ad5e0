"""Rankings as text and as HTML."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrank import _core
from ferrank.escape import visible
from ferrank.ranking.relevance import EVIDENCE, EVIDENCE_DEFINITION

if TYPE_CHECKING:
    from ferrank.ranking.relevance import Relevance
    from ferrank.ranking.result import Ranking
    from ferrank.ranking.scores import ScoreRanking

__all__ = ["heading", "html", "html_table", "labels", "notes", "shorten", "table", "text"]

_NAME_WIDTH = 40
_LEAST_Q = 1e-10
"""The least q-value that is shown as a number."""
_DIGITS = 4
_SCORES = 4
"""Number of scores in a table that also has verdicts."""
_LISTED = 5
"""Number of features of a setting that are named."""
_PAIRS = 3
"""Number of pairs of features that are named."""
_NOTABLE = 0.2
"""Share of the Monte Carlo variance in a squared standard error from which on it is mentioned."""


def shorten(name: str, width: int = _NAME_WIDTH) -> str:
    """Cut the middle out of a long name; control characters are escaped.

    >>> shorten("expression_of_gene_BRCA1_in_tissue_7", 20)
    'expression…_tissue_7'
    """
    name = visible(name)
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[-tail:]}"


def labels(names: Sequence[str], width: int = _NAME_WIDTH) -> list[str]:
    """Shorten names so that they can still be told apart.

    Where the middle makes the difference, the common beginning goes instead; names get longer than
    ``width`` where neither is enough. Names that look the same once they are :func:`visible` stay so.

    >>> labels(["tissue_7_gene_BRCA1_expression", "tissue_7_gene_BRCA2_expression"], 15)
    ['…BRCA1_express…', '…BRCA2_express…']
    """
    longest = max((len(visible(name)) for name in names), default=0)
    while True:
        middle_cut = [shorten(name, width) for name in names]
        if len(set(middle_cut)) == len(middle_cut) or width > longest:
            return middle_cut
        start = _common_words(min(names), max(names))
        end_cut = [f"…{visible(name[start : start + width - 2])}…" for name in names]
        if len(set(end_cut)) == len(end_cut):
            return end_cut
        width *= 2


def _common_words(first: str, last: str) -> int:
    """Return the length of the common beginning, cut back to the end of a word."""
    differ = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return max(first.rfind(mark, 0, differ) for mark in "_ .-/:") + 1


def counted(number: int, noun: str) -> str:
    """Return how many there are.

    >>> counted(1, "row"), counted(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of columns that end below each other.

    >>> table([["w", "error"], ["0.25", "0.5"]])
    ['   w  error', '0.25    0.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.rjust, row, widths)).rstrip() for row in rows]


def text(ranking: "Ranking", top: int) -> str:
    """Return a heading, a table of the best features by the first score, and what was left out."""
    rows = _rows(ranking, top)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if number == 1 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([heading(ranking), "", *lines, *_footer(ranking, top)])


def html(ranking: "Ranking", top: int) -> str:
    """Return the same for notebooks."""
    from html import escape

    footer = "<br>".join(escape(line) for line in _footer(ranking, top) if line)
    title = f"<p><strong>{escape(heading(ranking))}</strong></p>"
    return f"<div>{title}{html_table(ranking, top)}<p>{footer}</p></div>"


def html_table(ranking: "Ranking", top: int) -> str:
    """Return the table of the ``top`` best features as markup."""
    from html import escape

    head, *body = _rows(ranking, top)

    def row(cells: list[str], tag: str) -> str:
        styled = (
            f'<{tag} style="text-align:{"left" if number == 1 else "right"};white-space:nowrap">'
            f"{escape(cell)}</{tag}>"
            for number, cell in enumerate(cells)
        )
        return f"<tr>{''.join(styled)}</tr>"

    rows = "".join(row(cells, "td") for cells in body)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{rows}</tbody></table>"


_PURPOSES = {
    "multi-target": "multi-target prediction",
    "multi-label": "multi-label classification",
    "hierarchical": "hierarchical classification",
}


def heading(ranking: "Ranking") -> str:
    """Return what is ranked, for what, by how many rows, as far as it is known."""
    purpose = f"for {_PURPOSES.get(ranking.task, shorten(ranking.task))}"
    if ranking.targets:
        purpose += " of " + ", ".join(shorten(name) for name in ranking.targets[:3])
        if len(ranking.targets) > 3:
            purpose += f" and {len(ranking.targets) - 3:,} more"
    elif ranking.task == "unsupervised":
        purpose = "without a target"
    rows = f", {counted(ranking.n_rows, 'row')}" if ranking.n_rows else ""
    return f"{counted(len(ranking.features), 'feature')} ranked {purpose}{rows}"


def _shown_q(value: float) -> str:
    """Return a q-value; so far out in its tail it is a matter of extrapolation."""
    return f"{value:.2g}" if value >= _LEAST_Q else f"<{_LEAST_Q:.0e}"


def _rows(ranking: "Ranking", top: int) -> list[list[str]]:
    order = ranking.order()[:top]
    head, columns = ["rank", "feature"], []
    columns.append([str(rank) for rank in ranking.score().rank[order]])
    columns.append(labels([ranking.features[number] for number in order]))
    if ranking.relevance is not None:
        head += ["verdict", "q"]
        columns.append(ranking.relevance.verdict[order].tolist())
        columns.append([_shown_q(value) for value in ranking.relevance.q_value[order]])
    if ranking.clusters is not None:
        head.append("cluster")
        numbers = dict(zip(ranking.clusters.features, ranking.clusters.labels.tolist(), strict=True))
        columns.append([str(numbers.get(ranking.features[number], "")) for number in order])
    for name, score in _shown(ranking).items():
        head.append(visible(name))
        columns.append(_importances(score, order))
        if _has_errors(score):
            head.append("its ranks")
            columns.append(_intervals(score, order))
    return [head, *(list(row) for row in zip(*columns, strict=True))]


def _shown(ranking: "Ranking") -> dict[str, "ScoreRanking"]:
    """Return the scores that have room in a terminal."""
    names = list(ranking.scores)
    if len(names) > _SCORES and ranking.relevance is not None:
        # In joint rankings the last ones are those of other rankers.
        names = [*names[: _SCORES // 2], *names[-_SCORES // 2 :]]
    return {name: ranking.scores[name] for name in names}


def _importances(score: "ScoreRanking", order: np.ndarray) -> list[str]:
    values, errors = score.importance[order], score.standard_error[order]
    largest = np.abs(values).max(initial=0.0)
    magnitude = math.floor(math.log10(largest)) if largest > 0 and np.isfinite(largest) else 0
    style = f".{min(max(_DIGITS - 1 - magnitude, 0), 9)}f" if -5 < magnitude < 7 else f".{_DIGITS - 1}e"
    return [
        f"{value:{style}}" + ("" if math.isnan(error) else f" ± {error:{style}}")
        for value, error in zip(values, errors, strict=True)
    ]


def _intervals(score: "ScoreRanking", order: np.ndarray) -> list[str]:
    return [str(best) if best == worst else f"{best}–{worst}" for best, worst in score.rank_interval[order]]


def _definitions(ranking: "Ranking") -> list[str]:
    """Return a line for each kind of score; `relief_k10` is of the kind `relief`."""
    definitions = {name: definition for _, name, definition in _core.score_definitions()}
    definitions[EVIDENCE] = EVIDENCE_DEFINITION

    def kind(name: str) -> str:
        return max((kind for kind in definitions if f"{name}_".startswith(f"{kind}_")), key=len, default="")

    kinds = dict.fromkeys(map(kind, _shown(ranking)))
    return [f"{kind}: {definitions[kind]}" for kind in kinds if kind]


def _adjustment(settings: Mapping[str, Any]) -> list[str]:
    """Return what importances by Relief are adjusted for, and which features make rows near."""
    lines = []
    covariates = _named(settings.get("covariates"))
    if covariates:
        lines.append(f"adjusted for the differences in {_some(covariates)}; no p-values with covariates")
    near = _named(settings.get("distance_features"))
    if near:
        lines.append(f"rows are near by {_some(near)} alone")
    return lines


def _named(setting: Any) -> list[str]:
    """Return the features in a setting; weights that are not all the same stand beside their names."""
    given = setting if isinstance(setting, list) else []
    if all(isinstance(one, bool) for one in given):
        given = [place for place, counts in enumerate(given) if counts]
    pairs = [one if isinstance(one, list) and len(one) == 2 else [one, 1] for one in given]
    counting = [(one, weight) for one, weight in pairs if weight != 0]
    names = [shorten(one) if isinstance(one, str) else f"feature {one}" for one, _ in counting]
    weights = [weight for _, weight in counting]
    if len(set(weights)) < 2:
        return names
    return [f"{name} ({weight:g})" for name, weight in zip(names, weights, strict=True)]


def _some(names: list[str]) -> str:
    more = [f"{len(names) - _LISTED:,} more"] if len(names) > _LISTED else []
    first = names[:_LISTED] + more
    return first[0] if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]}"


def _has_errors(score: "ScoreRanking") -> bool:
    return bool(np.isfinite(score.standard_error).any())


def _errors(ranking: "Ranking", top: int) -> list[str]:
    """Return what the errors in the table mean."""
    known = [score for score in ranking.scores.values() if _has_errors(score)]
    if not known:
        return ["no standard errors: how far other rows would move the importances is unknown"]
    lines = [
        "±: standard error, how far other rows from the same population would move it; "
        "its ranks: those that it allows, 95 % for all at once"
    ]
    order = ranking.order()[:top]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [(score.monte_carlo_error[order] / score.standard_error[order]) ** 2 for score in known]
    finite = np.sort(np.concatenate(shares)[np.isfinite(np.concatenate(shares))])
    if finite.size:
        # The median; NumPy's imports masked arrays.
        middle = finite[[(finite.size - 1) // 2, finite.size // 2]].mean()
        if middle >= _NOTABLE:
            less = 1 - np.sqrt(max(0.0, 1 - middle))
            lines.append(f"with many more trees or queries, ± would be about {less:.0%} smaller")
    return lines


def _too_many(ranking: "Ranking") -> list[str]:
    """Return which settings ask for more rows than there are, so that they do not do what they say."""
    n_rows, settings = ranking.n_rows, ranking.settings
    lines = []
    leaf = max(_integers(settings.get("min_samples_leaf")), default=1)
    if leaf > max(n_rows / 2, 1):
        lines.append(f"no tree can split: a leaf of {leaf:,} rows is more than half of the {n_rows:,}")
    neighbors = max(_integers(settings.get("n_neighbors")), default=0)
    if settings.get("neighborhood") == "nearest" and neighbors >= n_rows:
        lines.append(f"{neighbors:,} neighbors, but a row has {n_rows - 1:,} others: none is left out")
    return lines


def _integers(setting: Any) -> list[int]:
    """Return the integers in a setting, which may be of any type: from elsewhere, or from a file."""
    given = setting if isinstance(setting, list | tuple) else [setting]
    return [one for one in given if isinstance(one, int)]


def _model_errors(ranking: "Ranking") -> list[str]:
    """Return how well the forest predicts, and which targets no better than guessing."""
    errors = ranking.model_error or {}
    if len(errors) > 1:
        ratios = [error.squared_error for error in errors.values()]
        lines = [
            f"out-of-bag error: {min(ratios):.2g} to {max(ratios):.2g} of guessing (relative squared error), "
            f"median {np.median(ratios):.2g} over {len(ratios):,} targets"
        ]
    else:
        lines = [str(error) for error in errors.values()]
    guessed = [target for target, error in errors.items() if not error.is_better]
    if guessed:
        names = ", ".join(shorten(name) for name in guessed[:3])
        more = f" and {len(guessed) - 3:,} more" if len(guessed) > 3 else ""
        which = "no target" if 1 < len(guessed) == len(errors) else names + more
        no_better = "better" if which == "no target" else "no better"
        # P-values tell by themselves what is noise, also of what another ranker has found.
        noise = ": importances may be noise" if ranking.relevance is None else ""
        lines.append(f"the forest predicts {which} {no_better} than guessing{noise}")
    return lines


def _verdicts(relevance: "Relevance", settings: Mapping[str, Any]) -> str:
    verdicts = relevance.verdict
    counts = {name: int((verdicts == name).sum()) for name in ("relevant", "undecided")}
    if not any(counts.values()):
        return "no feature is better than chance in these rows"
    line = (
        f"{counts['relevant']:,} of {counted(len(verdicts), 'feature')} "
        f"{'is' if counts['relevant'] == 1 else 'are'} relevant: q is at most {relevance.fdr:g}, "
        "the share of false ones to expect among them"
    )
    line += f"; {counts['undecided']:,} undecided: {_what_may_tell(settings)}" if counts["undecided"] else ""
    is_irrelevant = sum(counts.values()) < len(verdicts)
    return line + ("; irrelevant: no better than chance in these rows" if is_irrelevant else "")


def _what_may_tell(settings: Mapping[str, Any]) -> str:
    """Return how to lessen the Monte Carlo errors that leave a feature undecided."""
    ranker = settings.get("ranker")
    if ranker == "relief":
        return "more queries may tell (n_iterations, --iterations)"
    forest = settings.get("forest", settings)
    n = forest.get("n_estimators") if isinstance(forest, Mapping) else None
    if not isinstance(n, int):
        return "more trees may tell"
    if ranker == "joint":
        return f"more trees may tell (JointRanker(n_estimators={2 * n}), --ranker joint --trees {2 * n})"
    return f"more trees may tell (n_estimators={2 * n}, --trees {2 * n})"


def _footer(ranking: "Ranking", top: int) -> list[str]:
    lines = []
    if len(ranking.features) > top:
        lines.append(f"… and {counted(len(ranking.features) - top, 'more feature')}")
    return [*lines, "", *notes(ranking, top)]


def notes(ranking: "Ranking", top: int) -> list[str]:
    """Return what the scores and errors mean, how good the model is, and what is relevant."""
    lines = [f"warning: {visible(one)}" for one in ranking.warnings]
    lines += _definitions(ranking)
    lines += _adjustment(ranking.settings)
    lines += _errors(ranking, top)
    lines += _too_many(ranking)
    lines += _model_errors(ranking)
    if ranking.relevance is not None:
        lines.append(_verdicts(ranking.relevance, ranking.settings))
    if ranking.clusters is not None:
        n_clusters = len(ranking.clusters.representatives())
        lines.append(
            f"cluster: of {n_clusters:,}, in each of which any two features have an association of at least "
            f"{ranking.clusters.threshold:g}"
        )
    if ranking.forest is not None:
        lines += _together(ranking)
    if ranking.stopped is not None:
        lines.append(str(ranking.stopped))
    if ranking.n_unlabelled:
        took_part = ranking.settings.get("unlabelled") == "use" and ranking.settings.get("supervision") != 1
        lines.append(
            f"{ranking.n_unlabelled:,} rows without a target {'took part' if took_part else 'were left out'}"
        )
    return lines


def _together(ranking: "Ranking") -> list[str]:
    """Return the pairs of features that work together most, where the trees are kept."""
    pairs = ranking.forest.interactions(_PAIRS).to_pylist()
    named = ", ".join(
        f"{shorten(pair['feature'])} and {shorten(pair['other'])} ({pair['gain']:.{_DIGITS}g})"
        for pair in pairs
    )
    return [f"on one path of trees, by impurity decrease: {named}"] if pairs else []
