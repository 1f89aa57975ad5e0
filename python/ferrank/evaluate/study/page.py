"""A page about a study: its tables, comparisons and figures."""

import base64
import os
import re
from html import escape
from itertools import groupby
from pathlib import Path

from ferrank.errors import DataError, ResourceError
from ferrank.evaluate.study.results import PAGE, Results
from ferrank.evaluate.study.study import figures_in
from ferrank.output import check_path, path_of, replace

__all__ = ["report_study"]

_TEXTS = (".md", ".txt")
_CELLS = re.compile(r"(?<!\\)\|")
_BOLD = re.compile(r"\*\*(.+?)\*\*")
_MOST_BYTES = 1 << 24
"""Of a figure that is put on the page."""


def report_study(
    folder: str | os.PathLike[str], path: str | os.PathLike[str], *, title: str | None = None
) -> None:
    """Write a page about the study in a folder, with the figures that lie there.

    Parameters
    ----------
    folder : path
        Where ``ferrank study`` or :class:`Study` wrote ``results.arrow``.
    path : path
        The page, a file with the suffix .html.
    title : str, optional
        By default the name of the folder.

    Raises
    ------
    DataError, ResourceError, SettingError
        There are no results in the folder, or the page cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import ferrank as fr
    >>> from ferrank.evaluate import Study, report_study, synthesize
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = Study({"pairs": synthesize("pair", 100)}, {"relief": "relief"}, folder=folder)
    ...     _ = study.run()
    ...     page = pathlib.Path(folder) / "page.html"
    ...     report_study(folder, page)
    ...     "relief" in page.read_text()
    True
    """
    target, start = check_path(path, (".html",)), path_of(folder, "folder")
    found = Results.load(start / "results.arrow")
    parts = [f"<h1>{escape(title or start.resolve().name)}</h1>", f"<p>{escape(repr(found)[1:-1])}.</p>"]
    for measure in found.main_measures:
        parts += found.sections(measure)
    parts += _figures(start)
    replace(target, lambda partial: partial.write_text(PAGE.format("\n".join(parts)), encoding="utf-8"))


def _figures(folder: Path) -> list[str]:
    """Return the pictures and texts of the figures that the study made."""
    files: dict[str, list[Path]] = {}
    for file in (folder / name for name in figures_in(folder)):
        if file.suffix in (".svg", *_TEXTS) and file.is_file():
            files.setdefault(file.stem, []).append(file)
    parts = []
    for name, of_figure in files.items():
        parts.append(f"<h2>{escape(name)}</h2>")
        for file in of_figure:
            content = _content(file)
            if file.suffix == ".svg":
                image = base64.b64encode(content).decode()
                parts.append(f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{image}">')
            else:
                text = content.decode(errors="replace")
                parts.append(_tables(text) if file.suffix == ".md" else f"<pre>{escape(text)}</pre>")
    return parts


def _content(file: Path) -> bytes:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise DataError(f"{file}: is larger than {_MOST_BYTES:,} bytes; do the study anew")
        return file.read_bytes()
    except OSError as error:
        raise ResourceError(f"{file}: {error.strerror}; the page needs to read it") from error


def _tables(text: str) -> str:
    """Return Markdown as figures write it, lines and tables, as HTML."""
    parts = []
    for is_table, lines in groupby(text.splitlines(), lambda line: line.startswith("|")):
        if not is_table:
            around = "\n".join(lines).strip()
            parts += [f"<pre>{_plain(around)}</pre>"] if around else []
            continue
        rows = [[_plain(cell.strip()) for cell in _CELLS.split(line)[1:-1]] for line in lines]
        top = "".join(f"<th>{cell}</th>" for cell in rows[0])
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows[2:])
        parts.append(f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>")
    return "\n".join(parts)


def _plain(text: str) -> str:
    """Return text of Markdown as HTML, with its bold words and escaped characters."""
    plain = text.replace("\\|", "|").replace("\\*", "*").replace("&lt;", "<")
    return _BOLD.sub(r"<b>\1</b>", escape(plain))
