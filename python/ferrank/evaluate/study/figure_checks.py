"""What can be wrong with the figures of a plan, found before the first ranking is made.

The forms of settings and the names of measures are checked by themselves, names of data sets, rankers and
judges against the study, and measures against those that its results will have.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrank.errors import SettingError, hint
from ferrank.evaluate.evaluation import UNWEIGHTED
from ferrank.evaluate.measures import MEASURES, check_measure
from ferrank.evaluate.study.judges import KeptImportances
from ferrank.evaluate.study.results import MAIN_MEASURES, TIME

if TYPE_CHECKING:
    from ferrank.evaluate.study.study import Study

__all__ = [
    "DESCRIBED",
    "NO_QUALITIES",
    "check_forms",
    "check_keys",
    "check_measures",
    "check_name",
    "check_with_study",
]

NO_QUALITIES = ("forward_error", "reverse_error", "relevance", "importance", "splits_by_relief", TIME)
"""What figures of all measures leave out: curves, and what does not say how good a method is."""
DESCRIBED = ("rows", "features", "nominal", "targets")
"""What a study says of its data sets."""
Form = tuple[Callable[[Any], bool], str]
"""Whether a value has the form, and what the form is called."""


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_str(value: Any) -> bool:
    return isinstance(value, str)


def _list_of(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(of, value))


def _table_of(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Mapping) and all(map(of, value.values()))


_TEXT: Form = (_is_str, "a text")
_NAMES: Form = (_list_of(_is_str), "a list of names")
_NUMBER: Form = (_is_int, "a whole number")
_COLUMNS: Form = (
    _table_of(_table_of(_is_str)),
    "a table of tables of texts, { ours = { column = 'theirs' } }",
)
_FORMS: dict[str, Form] = {
    **dict.fromkeys(
        ("measure", "judge", "control", "x", "by", "pattern", "row_title", "column_title"), _TEXT
    ),
    **dict.fromkeys(("published", "path", "trees", "value"), _TEXT),
    **dict.fromkeys(("methods", "data", "measures", "describe"), _NAMES),
    **dict.fromkeys(("labelled", "folds", "max_depth", "min_samples_leaf"), _NUMBER),
    "n_trees": (
        lambda value: _is_int(value) or _table_of(_is_int)(value),
        "a whole number, nor a table with one for each method",
    ),
    "groups": (_table_of(_NAMES[0]), "a table of lists of methods"),
    "pairs": (_table_of(_is_str), "a table of methods, { first = 'second' }"),
    "rows": (_list_of(lambda one: isinstance(one, str | int | float)), "a list of texts or numbers"),
    "columns": (_list_of(lambda one: isinstance(one, str | int | float)), "a list of texts or numbers"),
    "shape": (
        lambda value: _list_of(lambda one: _is_int(one) and one > 0)(value) and len(value) == 2,
        "two whole numbers of at least 1, [rows, columns]",
    ),
}
_FORMS_OF: dict[tuple[str, str], Form] = {
    **{("published", key): _COLUMNS for key in ("data", "methods", "measures")},
    ("published", "n_trees"): (_list_of(_is_int), "a list of whole numbers"),
    ("curve", "n_trees"): _NUMBER,
}


def check_keys(given: Iterable[str], known: Iterable[str], prefix: str) -> None:
    """Raise an error that starts with ``prefix`` if one of the ``given`` keys of a plan is not ``known``."""
    names = sorted(known)
    unknown = next((key for key in given if key not in names), None)
    if unknown is not None:
        raise SettingError(f"{prefix}{unknown}: no such key; {hint(unknown, names)}")


def check_name(name: str, where: str) -> None:
    """Raise an error that starts with ``where`` if no files of results can have the name."""
    if not re.fullmatch(r"\w[\w .,+-]*", name) or len(name.encode(errors="replace")) > _MOST_BYTES:
        raise SettingError(
            f"{where}: the files of a figure have its name; use letters, digits and any of '-_.,+ ', at most "
            f"{_MOST_BYTES} bytes that start with a letter or a digit, as in [figures.ranks-of-trees]"
        )
    if re.match(r"(results(-.*)?|study|cells)$", name.casefold()):
        raise SettingError(f"{where}: files of the study itself have this name; use another one")


_MOST_BYTES = 100


def check_forms(kind: str, settings: Mapping[str, Any], where: str) -> None:
    """Raise an error that starts with ``where`` if a setting has the wrong form, or names no measure."""
    for key, value in settings.items():
        has_form, form = _FORMS_OF.get((kind, key)) or _FORMS[key]
        if key == "measure":
            check_measure(value, MEASURES, f"{where}.measure")
        if not has_form(value):
            raise SettingError(f"{where}.{key}: {value!r} is not {form}")
        if key == "measures":
            for one in value:
                check_measure(one, MEASURES, f"{where}.measures")


def check_with_study(figure: Any, study: "Study", missing: Sequence[str], where: str) -> None:
    """Raise an error that starts with ``where`` if the figure names or needs what the study has not.

    ``missing`` are data sets that the plan names and that were left out.
    """
    sets = [*study.data, *missing]
    judges = list(study.judge) if isinstance(study.judge, Mapping) else []
    is_time = getattr(figure, "measure", None) == TIME
    for key, name in _methods(figure):
        known = _known_methods(study, name, is_time)
        if known is not None:
            raise SettingError(f"{where}.{key}: no method '{name}' in this study; {hint(name, known)}")
    for name in figure.data:
        if name not in sets:
            raise SettingError(f"{where}.data: no data set '{name}' in this study; {hint(name, sets)}")
    for key in ("methods", "data", "measures"):
        _check_once(getattr(figure, key, ()), f"{where}.{key}")
    for group, methods in getattr(figure, "groups", {}).items():
        _check_once(methods, f"{where}.groups.{group}")
    control, methods = getattr(figure, "control", None), getattr(figure, "methods", ())
    if methods and control is not None:
        if not set(methods) - {control}:
            raise SettingError(f"{where}.methods: there is none but the control; name others")
        if control not in methods and "measures" not in vars(figure):
            raise SettingError(f"{where}.control: '{control}' is not among the methods; add it")
    judge = figure.judge
    if judge is not None and judge not in judges:
        raise SettingError(f"{where}.judge: no judge '{judge}' in this study; {hint(judge, judges)}")
    labelled = getattr(figure, "labelled", None)
    if labelled is not None and labelled not in study.labelled:
        there = [str(one) for one in study.labelled if one is not None]
        raise SettingError(f"{where}.labelled: {labelled} is not in the plan; {hint(labelled, there)}")
    for n in _counts(figure.n_trees):
        if n not in study.n_trees:
            known_counts = hint(n, map(str, study.n_trees))
            raise SettingError(f"{where}.n_trees: {n} is not in the plan; {known_counts}")
    for one in getattr(figure, "describe", ()):
        if one not in DESCRIBED:
            raise SettingError(f"{where}.describe: no '{one}' here; {hint(one, DESCRIBED)}")
    _check_needs(figure, study, sets, where)


def _check_once(names: Any, where: str) -> None:
    """Raise an error if a list has a name twice."""
    names = list(names)
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise SettingError(f"{where}: '{twice[0]}' is named twice; name it once")


def _check_needs(figure: Any, study: "Study", sets: Sequence[str], where: str) -> None:
    needs = figure.needs()
    if "data" in needs and len(figure.data or sets) < 2:
        raise SettingError(f"{where}.data: methods are compared on at least 2 data sets; here is 1")
    if "methods" in needs and len(figure.methods) == 1:
        raise SettingError(f"{where}.methods: one is named, and nothing to compare it with; name 2 at least")
    if "labelled" in needs and study.labelled == [None]:
        raise SettingError(f"{where}: the plan has no numbers of labelled rows; add labelled = [50, 100]")
    if "n_trees" in needs and len(study.n_trees) < 2:
        raise SettingError(f"{where}: the plan has fewer than 2 numbers of trees; add n_trees = [10, 50]")
    if "importances" in needs:
        all_judges = study.judge.values() if isinstance(study.judge, Mapping) else [study.judge]
        # A judge of your own may keep the importances, too.
        if not any(isinstance(one, KeptImportances) or not hasattr(one, "measures") for one in all_judges):
            raise SettingError(f"{where}: no judge keeps the importances; add one of the kind importances")


def _methods(figure: Any) -> Iterator[tuple[str, str]]:
    """Give the names of methods in a figure, each with its key."""
    for key in ("methods", "pairs", "n_trees"):
        named = getattr(figure, key, ())
        if key != "n_trees" or isinstance(named, Mapping):
            yield from ((key, one) for one in named)
    yield from (("pairs", one) for one in getattr(figure, "pairs", {}).values())
    for group, methods in getattr(figure, "groups", {}).items():
        yield from ((f"groups.{group}", one) for one in methods)
    if getattr(figure, "control", None) is not None:
        yield "control", figure.control
    if hasattr(figure, "pattern"):
        yield from (("pattern", one) for one in figure.called().values())


def _known_methods(study: "Study", name: str, is_time: bool) -> list[str] | None:
    """Return None if the study may have the method, and else those that it has, as far as they are known.

    How the scores of a ranker are called depends on its settings; what is after the colon is looked at where
    the ranker lists its scores.
    """
    known = [UNWEIGHTED]
    for ranker, one in study.rankers.items():
        scores = getattr(one, "scores", None)
        several = isinstance(scores, list | tuple) and len(scores) > 1
        if name == ranker and (is_time or not several):
            return None
        start, _, score = name.partition(f"{ranker}:")
        if start == "" and score and not is_time and _may_have(one, score):
            return None
        known += [f"{ranker}:{one}" for one in scores or ()] if several and not is_time else [ranker]
    return None if name == UNWEIGHTED else known


def _may_have(ranker: Any, score: str) -> bool:
    """Return whether results of a ranker may have a method for this score."""
    scores = getattr(ranker, "scores", None)
    if not isinstance(scores, list | tuple):
        return True
    # A single score is the ranker itself, but for several decays, numbers of neighbors or of iterations.
    lists = [name for name, value in ranker.get_params().items() if isinstance(value, list | tuple)]
    is_several = len(scores) > 1 or lists != ["scores"]
    return is_several and any(score.startswith(str(one)) for one in scores)


def _counts(n_trees: Any) -> list[int]:
    if n_trees is None:
        return []
    if isinstance(n_trees, Mapping):
        return list(n_trees.values())
    return [n_trees] if isinstance(n_trees, int) else list(n_trees)


def check_measures(figures: Mapping[str, Any], there: Sequence[str], where: str) -> None:
    """Raise an error that starts with ``where`` if the results will not have a measure of a figure.

    Parameters
    ----------
    figures : mapping of str to Figure
        By name.
    there : sequence of str
        What :meth:`Study.measures` gives.
    where : str
        The plan.
    """
    main = [one for one in MAIN_MEASURES if one in there]
    for name, figure in figures.items():
        measures = getattr(figure, "measures", None)
        for one in measures or ():
            check_measure(one, there, f"{where}: figures.{name}.measures")
        if measures is not None:
            if not measures and all(one in NO_QUALITIES for one in there):
                raise SettingError(f"{where}: figures.{name}.measures: name some of {', '.join(there)}")
        elif figure.measure is not None:
            check_measure(figure.measure, there, f"{where}: figures.{name}.measure")
        elif "measure" not in figure.ignored and len(main) > 1:
            raise SettingError(f"{where}: figures.{name}.measure: name one of {', '.join(there)}")
