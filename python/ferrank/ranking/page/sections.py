"""The parts of a page that are markup alone: heat maps, comparisons, and what a ranking is of."""

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrank.escape import visible
from ferrank.ranking import text

if TYPE_CHECKING:
    from ferrank.ranking.result import Ranking

__all__ = ["breakable", "comparison", "dendrograms", "facts", "heat_map", "heat_maps"]

_MOST = 30
"""Features of a heat map."""
_MOST_TARGETS = 60
_MOST_SCORES = 12
"""Scores that are compared."""
_BEST = 10
"""Features whose overlap is compared."""


def breakable(name: str) -> str:
    """Return a name as markup, in which a line can break after joints.

    >>> breakable("gene_7<x>")
    'gene_<wbr>7&lt;x&gt;'
    """
    return "<wbr>".join(map(escape, re.split(r"(?<=[_.:/-])(?=.)", visible(name))))


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Any,
    style: str = ".3g",
    ends: tuple[float, float] | None = None,
) -> str:
    """Return a table of ``values``, of shape (n_rows, n_columns), with a shade for each.

    Shades go from the first to the second of ``ends``, by default from the least to the greatest value.
    """
    known = values[np.isfinite(values)]
    low, high = ends or ((float(known.min()), float(known.max())) if len(known) else (0.0, 0.0))

    def cell(value: float) -> str:
        if not np.isfinite(value):
            return "<td>–</td>"
        shade = min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0)
        return f'<td style="--shade: {shade:.3f}">{value:z{style}}</td>'

    head = "".join(f'<th scope="col">{breakable(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row" class="name">{breakable(name)}</th>{"".join(map(cell, line))}</tr>\n'
        for name, line in zip(rows, values.tolist(), strict=True)
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="heat"><thead><tr><td></td>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>\n"
    )


def heat_maps(rankings: "Mapping[str, Ranking]") -> str:
    """Return a section for each score that is told apart by target."""
    found = ""
    for name, ranking in rankings.items():
        for score_name, score in ranking.scores.items():
            if score.by_target is None:
                continue
            order = ranking.order(score_name)[:_MOST]
            targets = np.sort(np.argsort(-score.by_target.sum(axis=0), kind="stable")[:_MOST_TARGETS])
            title = f"{name}: {score_name}" if len(rankings) > 1 else score_name
            found += (
                f"<section><h2>Importance by target: {breakable(title)}</h2>\n"
                f"{_left_out(len(ranking.features), len(order), len(ranking.targets), len(targets))}"
                + heat_map(
                    [ranking.features[number] for number in order],
                    [ranking.targets[number] for number in targets],
                    score.by_target[np.ix_(order, targets)],
                )
                + "</section>\n"
            )
    return found


def _left_out(n_features: int, features: int, n_targets: int, targets: int) -> str:
    parts = []
    if features < n_features:
        parts.append(f"the best {features:,} of {n_features:,} features")
    if targets < n_targets:
        parts.append(f"the {targets:,} of {n_targets:,} targets with the greatest importances")
    return f'<p class="soft">Shown are {" and ".join(parts)}.</p>\n' if parts else ""


_LINE = 18
"""Height of a leaf of a dendrogram, in pixels."""
_TREE = 420
"""Width of its lines."""
_LEAVES = 60


def dendrograms(rankings: "Mapping[str, Ranking]") -> str:
    """Return a section for each ranking with clusters: the tree of its best features."""
    found = ""
    for name, ranking in rankings.items():
        if ranking.clusters is None or len(ranking.clusters.features) < 2:
            continue
        clusters = ranking.clusters
        leaves, branches = clusters.tree(_LEAVES)
        title = f": {breakable(name)}" if len(rankings) > 1 else ""
        lines = "".join(
            f'<path class="{"joined" if branch.association >= clusters.threshold else "apart"}" '
            f'd="M{_across(branch.first[1])} {_down(branch.first[0])}H{_across(branch.association)}'
            f'V{_down(branch.second[0])}H{_across(branch.second[1])}"></path>\n'
            for branch in branches
        )
        texts = "".join(
            f'<text x="{_TREE + 8}" y="{_down(place) + 4}">{escape(text.shorten(leaf))}</text>\n'
            for place, leaf in enumerate(leaves)
        )
        threshold, height = _across(clusters.threshold), _LINE * len(leaves) + 24
        found += (
            f"<section><h2>Clusters{title}</h2>\n"
            f"<p>{len(clusters.representatives()):,} clusters of the {len(clusters.features):,} best "
            f"features, in each of which any two have an association of at least {clusters.threshold:g} "
            "(the dashed line): the absolute rank correlation of numbers, Cramér's V of categories, or the "
            "share of variance that categories explain. "
            + (f"The tree is of the best {len(leaves)}." if len(leaves) < len(clusters.features) else "")
            + '</p>\n<div class="scroll" tabindex="0" role="region" aria-label="tree of clusters">'
            f'<svg class="tree" width="{_TREE + 300}" height="{height}" role="img" '
            f'aria-label="dendrogram; merges go from association 1 at the right to 0 at the left">\n'
            f'<path class="threshold" d="M{threshold} 0V{height - 20}"></path>\n{lines}{texts}'
            f'<text x="0" y="{height - 6}">0</text><text x="{_TREE - 10}" y="{height - 6}">1</text>'
            "</svg></div></section>\n"
        )
    return found


def _across(association: float) -> float:
    return round(4 + (_TREE - 4) * association, 1)


def _down(place: float) -> float:
    return round(_LINE * (place + 0.5), 1)


def comparison(rankings: "Mapping[str, Ranking]") -> str:
    """Return how alike the scores of all rankings are; nothing where there is one score."""
    scores = [
        (f"{name}: {score_name}" if len(rankings) > 1 else score_name, ranking, score_name)
        for name, ranking in rankings.items()
        for score_name in ranking.scores
    ]
    if len(scores) < 2 or len(scores[0][1].features) < 2:
        return ""
    left_out = len(scores) - _MOST_SCORES
    scores = scores[:_MOST_SCORES]
    features = scores[0][1].features
    names = [name for name, _, _ in scores]
    ranks = np.array([_mid_ranks(ranking, score, features) for _, ranking, score in scores])
    best = min(_BEST, len(features))
    tops = [set(ranking.top(best, score)) for _, ranking, score in scores]
    overlap = np.array([[len(one & other) for other in tops] for one in tops], dtype=float)
    note = f'<p class="soft">The first {_MOST_SCORES} scores of {left_out + _MOST_SCORES}.</p>\n'
    return (
        "<section><h2>How alike the scores are</h2>\n"
        + (note if left_out > 0 else "")
        + "<h3>Rank correlation (Spearman)</h3>\n"
        + heat_map(names, names, _correlations(ranks), ".2f", (0.0, 1.0))
        + f"<h3>Features that both have among their best {best}</h3>\n"
        + heat_map(names, names, overlap, ".0f", (0.0, best))
        + '<div id="scatter" hidden></div>\n</section>\n'
    )


def _mid_ranks(ranking: "Ranking", score: str, features: Sequence[str]) -> Any:
    """Return the ranks of ``features``, equal ones with the mean of theirs."""
    _, codes, counts = np.unique(ranking.ranks(score), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[codes]
    place = {feature: number for number, feature in enumerate(ranking.features)}
    return ranks[[place[feature] for feature in features]]


def _correlations(ranks: Any) -> Any:
    """Return Pearson's correlation of all pairs of rows; NaN where one does not vary."""
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return centred @ centred.T / np.outer(norms, norms)


def facts(name: str, ranking: "Ranking") -> str:
    """Return what a ranking is of, how it was made, and how good the model behind it is."""
    targets = ", ".join(text.shorten(target) for target in ranking.targets[:_BEST])
    if len(ranking.targets) > _BEST:
        targets += f" and {len(ranking.targets) - _BEST:,} more"
    settings = ranking.settings
    told = {
        "data set": ranking.source,
        "task": ranking.task,
        "targets": targets,
        "rows": f"{ranking.n_rows:,}",
        "features": f"{len(ranking.features):,}",
        "ranker": settings.get("ranker"),
        "seed": _seed(settings),
        "seconds": None if ranking.seconds is None else f"{ranking.seconds:.3g}",
    }
    lines = "".join(
        f"<dt>{label}</dt><dd>{escape(visible(str(value)))}</dd>\n"
        for label, value in told.items()
        if value not in (None, "")
    )
    notes = "".join(f"<li>{escape(line)}</li>\n" for line in text.notes(ranking, len(ranking.features)))
    title = f": {breakable(name)}" if name else ""
    return (
        f"<section><h2>About the ranking{title}</h2>\n<dl>\n{lines}</dl>\n<ul>\n{notes}</ul>\n"
        f"{_settings(settings)}</section>\n"
    )


def _seed(settings: dict[str, Any]) -> Any:
    parts = [part for part in settings.values() if isinstance(part, dict)]
    return settings.get("seed", next((part["seed"] for part in parts if "seed" in part), None))


def _settings(settings: dict[str, Any]) -> str:
    if not settings:
        return ""
    told = escape(visible(json.dumps(settings, indent=2, ensure_ascii=False)).replace("\\n", "\n"))
    return f'<details><summary>All settings</summary><pre tabindex="0">{told}</pre></details>\n'
