"""Rankings as tables, JSON and files."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import pyarrow as pa

from ferrank._core import __version__
from ferrank.data.opening import regular
from ferrank.errors import DataError, ResourceError, SettingError
from ferrank.output import check_path, path_of, replace
from ferrank.ranking.clusters import Clusters
from ferrank.ranking.model_error import MEASURES, ModelError
from ferrank.ranking.relevance import Relevance, check_fdr
from ferrank.ranking.scores import Floats, ScoreRanking, not_utf8
from ferrank.ranking.stopping import REASONS, Stop

if TYPE_CHECKING:
    from ferrank.ranking.result import Ranking

__all__ = ["SUFFIXES", "json_schema", "load", "save", "to_dict", "to_table"]

_SCHEMA = 1
"""The version of the JSON object; described in ``ranking.schema.json``."""
_METADATA = b"ferrank"
_DERIVED = ("p_value", "q_value", "verdict")
"""Columns of tables that follow from the evidence of features."""


def to_dict(ranking: "Ranking") -> dict[str, Any]:
    """Return the ranking as plain lists and numbers, NaN as None."""
    result = {
        "ferrank": __version__,
        "schema": _SCHEMA,
        "task": ranking.task,
        "n_rows": ranking.n_rows,
        "n_features": len(ranking.features),
        "targets": ranking.targets,
        "features": ranking.features,
        "scores": {name: _score_to_dict(score) for name, score in ranking.scores.items()},
        "settings": _without_infinite(ranking.settings),
        "seconds": ranking.seconds,
    }
    if ranking.source is not None:
        result["source"] = ranking.source
    if ranking.clusters is not None:
        result["clusters"] = {
            "threshold": ranking.clusters.threshold,
            "features": ranking.clusters.features,
            "labels": ranking.clusters.labels.tolist(),
            "merges": ranking.clusters.merges.tolist(),
        }
    if ranking.n_unlabelled:
        result["n_unlabelled"] = ranking.n_unlabelled
    if ranking.stopped is not None:
        result["stopped"] = asdict(ranking.stopped)
    if ranking.model_error is not None:
        result["model_error"] = {target: asdict(error) for target, error in ranking.model_error.items()}
    if ranking.no_model_error is not None:
        result["no_model_error"] = ranking.no_model_error
    if ranking.relevance is not None:
        result["relevance"] = {
            "fdr": ranking.relevance.fdr,
            "evidence": ranking.relevance.evidence.tolist(),
            "most_evidence": ranking.relevance.most_evidence.tolist(),
            **{name: values.tolist() for name, values in _derived(ranking.relevance).items()},
        }
    return result


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of :func:`to_dict`."""
    from importlib import resources

    text = resources.files("ferrank.ranking").joinpath("ranking.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _derived(relevance: Relevance) -> dict[str, Any]:
    """Return what follows from the evidence, by feature."""
    return {name: getattr(relevance, name) for name in _DERIVED}


def _score_to_dict(score: "ScoreRanking") -> dict[str, Any]:
    result = {
        "importance": score.importance.tolist(),
        "standard_error": _without_nan(score.standard_error),
        "monte_carlo_error": _without_nan(score.monte_carlo_error),
        "rank": score.rank.tolist(),
        "rank_interval": score.rank_interval.tolist(),
    }
    if score.by_target is not None:
        result["by_target"] = score.by_target.tolist()
    return result


def _relevance(values: dict[str, Any]) -> Relevance:
    evidence, most = (np.asarray(values[name], dtype=np.float64) for name in ("evidence", "most_evidence"))
    return Relevance(evidence, most, values["fdr"])


def _clusters(values: dict[str, Any]) -> Clusters:
    labels, merges = np.asarray(values["labels"], np.int64), np.asarray(values["merges"], np.float64)
    return Clusters(values["features"], values["threshold"], labels, merges.reshape(-1, 3))


def _without_infinite(value: Any) -> Any:
    """Return a setting of any form, with None for NaN and infinite numbers, which JSON has not."""
    if isinstance(value, dict):
        return {key: _without_infinite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _without_nan(values: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def to_table(ranking: "Ranking") -> pa.Table:
    """Return a row for each feature, best first; the metadata hold what is not by feature."""
    order = ranking.order()
    columns: dict[str, Any] = {
        "feature": pa.array(ranking.features).take(pa.array(order)),
        "rank": ranking.score().rank[order],
    }
    if ranking.relevance is not None:
        columns |= {name: values[order].tolist() for name, values in _derived(ranking.relevance).items()}
    if ranking.clusters is not None:
        labels = dict(zip(ranking.clusters.features, ranking.clusters.labels.tolist(), strict=True))
        columns["cluster"] = pa.array([labels.get(ranking.features[number]) for number in order], pa.int32())
    for name, score in ranking.scores.items():
        columns[name] = score.importance[order]
        columns[f"{name}_standard_error"] = score.standard_error[order]
        columns[f"{name}_monte_carlo_error"] = score.monte_carlo_error[order]
        columns[f"{name}_rank"] = score.rank[order]
        columns[f"{name}_rank_best"], columns[f"{name}_rank_worst"] = score.rank_interval[order].T
        if score.by_target is not None:
            columns |= zip(_parts(name, ranking.targets), score.by_target[order].T, strict=True)
    about = to_dict(ranking)
    about["scores"] = list(ranking.scores)
    for name in _DERIVED if ranking.relevance is not None else ():
        del about["relevance"][name]
    return pa.table(columns).replace_schema_metadata({_METADATA: json.dumps(about)})


def _parts(score: str, targets: list[str]) -> list[str]:
    return [f"{score}[{target}]" for target in targets]


def _write_csv(ranking: "Ranking", path: Path) -> None:
    kept = ["feature", "rank"]
    if ranking.relevance is not None:
        kept += _DERIVED
    if ranking.clusters is not None:
        kept.append("cluster")
    for name, score in ranking.scores.items():
        kept += [name, f"{name}_standard_error", f"{name}_monte_carlo_error"]
        if score.by_target is not None:
            kept += _parts(name, ranking.targets)
    columns = to_table(ranking).select(kept).to_pydict().values()
    with path.open("w", newline="", encoding="utf-8") as file:
        import csv

        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(kept)
        writer.writerows(zip(*columns, strict=True))


def _write_parquet(ranking: "Ranking", path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(to_table(ranking), path)


def _write_arrow(ranking: "Ranking", path: Path) -> None:
    from pyarrow import feather

    feather.write_feather(to_table(ranking), str(path), compression="uncompressed")


def _write_json(ranking: "Ranking", path: Path) -> None:
    path.write_text(json.dumps(to_dict(ranking), allow_nan=False) + "\n", encoding="utf-8")


def _write_html(ranking: "Ranking", path: Path) -> None:
    ranking.report().save(path)


_WRITERS: dict[str, Callable[["Ranking", Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".json": _write_json,
    ".html": _write_html,
}


SUFFIXES = tuple(_WRITERS)
"""Suffixes of the files that rankings are saved in."""


def save(ranking: "Ranking", path: str | os.PathLike[str]) -> None:
    """Write the ranking in the format of the suffix."""
    path = check_path(path, SUFFIXES)
    replace(path, lambda partial: _WRITERS[path.suffix.lower()](ranking, partial))


_MADE_BY = "as Ranking.save and ferrank rank --output write them"


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the fields of a ranking that :func:`save` wrote."""
    path = path_of(path)
    readers = {".json": _read_json, ".parquet": _read_table, ".arrow": _read_table}
    if path.suffix.lower() not in readers:
        what = f"not read from '{path.suffix}' files" if path.suffix else "read from files with a suffix"
        raise SettingError(f"{path}: rankings are {what}; use one of {', '.join(readers)}, {_MADE_BY}")
    regular(path)
    try:
        return readers[path.suffix.lower()](path)
    except OSError as error:
        raise ResourceError(f"{path}: {error}") from error
    except Exception as error:
        raise DataError(
            f"{path}: is not a saved ranking ({type(error).__name__}: {error}); name a file {_MADE_BY}"
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    about = json.loads(path.read_text(encoding="utf-8"))
    return _fields(about, about["scores"])


def _read_table(path: Path) -> dict[str, Any]:
    from pyarrow import feather, parquet

    table = parquet.read_table(path) if path.suffix.lower() == ".parquet" else feather.read_table(path)
    about = json.loads((table.schema.metadata or {})[_METADATA])
    row_of = {name: row for row, name in enumerate(table["feature"].to_pylist())}
    rows = [row_of[name] for name in about["features"]]

    def column(name: str) -> Any:
        return table[name].to_numpy()[rows]

    scores = {}
    for name in about["scores"]:
        parts = _parts(name, about["targets"])
        scores[name] = {
            "importance": column(name),
            "standard_error": column(f"{name}_standard_error"),
            "monte_carlo_error": column(f"{name}_monte_carlo_error"),
            "rank": column(f"{name}_rank"),
            "rank_interval": np.column_stack([column(f"{name}_rank_best"), column(f"{name}_rank_worst")]),
            "by_target": np.column_stack([column(part) for part in parts])
            if parts[0] in table.column_names
            else None,
        }
    return _fields(about, scores)


def _fields(about: dict[str, Any], scores: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of a ranking."""

    def score(values: dict[str, Any]) -> ScoreRanking:
        parts = values.get("by_target")
        return ScoreRanking(
            np.asarray(values["importance"], dtype=np.float64),
            np.asarray(values["standard_error"], dtype=np.float64),
            np.asarray(values["monte_carlo_error"], dtype=np.float64),
            np.asarray(values["rank"], dtype=np.uint32),
            np.asarray(values["rank_interval"], dtype=np.uint32).reshape(-1, 2),
            None if parts is None else np.asarray(parts, dtype=np.float64),
        )

    fields = {
        "task": about["task"],
        "n_rows": about["n_rows"],
        "features": about["features"],
        "targets": about["targets"],
        "scores": {name: score(values) for name, values in scores.items()},
        "n_unlabelled": about.get("n_unlabelled", 0),
        "source": about.get("source"),
        "clusters": _clusters(about["clusters"]) if "clusters" in about else None,
        "settings": about["settings"],
        "seconds": about["seconds"],
        "stopped": Stop(**about["stopped"]) if "stopped" in about else None,
        "model_error": model_error(about.get("model_error")),
        "no_model_error": about.get("no_model_error"),
        "relevance": _relevance(about["relevance"]) if "relevance" in about else None,
    }
    _check(fields)
    return fields


_MAY_BE_NAN = ("standard_error", "monte_carlo_error")
"""Arrays in which NaN stands for what is not known."""
_TYPES = {
    "task": str,
    "n_rows": int,
    "features": list,
    "targets": list,
    "n_unlabelled": int,
    "settings": dict,
    "seconds": float | None,
    "no_model_error": str | None,
    "source": str | None,
}


def _check(fields: dict[str, Any]) -> None:
    """Raise a ValueError if the fields of a ranking do not fit together: anybody may have written them."""
    _check_types(fields, _TYPES)
    features, targets, scores = fields["features"], fields["targets"], fields["scores"]
    names = [*features, *targets, *scores]
    if not all(isinstance(name, str) for name in names):
        raise ValueError("a name is no text")
    unfit = not_utf8(names)
    if unfit is not None:
        raise ValueError(f"the name {unfit!r} is not UTF-8")
    if len(set(features)) < len(features):
        raise ValueError("a feature has a row twice")
    shape = (len(features),)
    arrays = {"rank": shape, "rank_interval": (*shape, 2), "by_target": (*shape, len(targets))}
    for name, score in scores.items():
        for field, values in vars(score).items():
            if values is not None and values.shape != arrays.get(field, shape):
                raise ValueError(f"'{field}' of the score '{name}' has the shape {values.shape}")
            if values is not None and not _is_known(values, may_be_nan=field in _MAY_BE_NAN):
                raise ValueError(f"'{field}' of the score '{name}' has a number that is not finite")
        ranks = np.column_stack([score.rank, score.rank_interval])
        if ranks.size and not 1 <= ranks.min() <= ranks.max() <= len(features):
            raise ValueError(f"the score '{name}' has a rank outside 1 to {len(features)}")
    if not scores:
        raise ValueError("there is no score")
    _check_clusters(fields["clusters"], set(features))
    relevance, stopped = fields["relevance"], fields["stopped"]
    if relevance is not None:
        _check_types(vars(relevance), {"fdr": float})
        if relevance.evidence.shape != shape or relevance.most_evidence.shape != shape:
            raise ValueError("'relevance' is not of these features")
        if not _is_known(relevance.evidence) or not _is_known(relevance.most_evidence):
            raise ValueError("'relevance' has a number that is not finite")
        check_fdr(relevance.fdr)
    for error in (fields["model_error"] or {}).values():
        _check_types(vars(error), get_type_hints(ModelError))
        _check_known("measure", error.measure, MEASURES)
    if stopped is not None:
        _check_types(vars(stopped), get_type_hints(Stop))
        _check_known("reason", stopped.reason, REASONS)


def _check_clusters(clusters: Clusters | None, features: set[str]) -> None:
    """Raise a ValueError if clusters are not of ``features``, or if their merges make no tree."""
    if clusters is None:
        return
    _check_types(vars(clusters), {"threshold": float, "features": list})
    n = len(clusters.features)
    if not features.issuperset(clusters.features) or len(set(clusters.features)) < n:
        raise ValueError("'clusters' are of other features")
    if clusters.labels.shape != (n,) or clusters.merges.shape != (max(n - 1, 0), 3):
        raise ValueError("'clusters' are not of these features")
    nodes = clusters.merges[:, :2]
    made = n + np.arange(len(nodes))[:, None]
    # All comparisons with NaN are false.
    is_node = (nodes >= 0) & (nodes < made) & (nodes == np.floor(nodes))
    if not _is_known(clusters.merges) or not is_node.all() or len(np.unique(nodes)) < nodes.size:
        raise ValueError("the merges of 'clusters' make no tree")


def _is_known(values: Any, *, may_be_nan: bool = False) -> bool:
    """Return whether all numbers are finite, or also NaN: JSON has no others."""
    return bool((np.isfinite(values) | (np.isnan(values) & may_be_nan)).all())


def _check_types(values: dict[str, Any], types: dict[str, Any]) -> None:
    for name, kind in types.items():
        value = values[name]
        if isinstance(value, bool):
            fits = kind is bool
        elif isinstance(value, float) and not math.isfinite(value):
            fits = False
        else:
            fits = isinstance(value, kind) or (isinstance(value, int) and isinstance(0.0, kind))
        if not fits:
            raise ValueError(f"{name!r} is {value!r}")


def _check_known(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name!r} is {value!r}; it is one of {', '.join(known)}")


def model_error(errors: dict[str, dict[str, Any]] | None) -> dict[str, ModelError] | None:
    """Return the errors whose fields are given, by target."""
    return None if errors is None else {target: ModelError(**error) for target, error in errors.items()}
