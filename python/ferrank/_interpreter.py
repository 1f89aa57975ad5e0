"""Whether this is an interpreter in which ferrank works."""

import importlib

__all__ = ["check"]


def check() -> None:
    """Do nothing in the main interpreter.

    Raises
    ------
    ImportError
        This is another interpreter of the process. Threads of the engine ask the main one for its lock, so
        that a ranking would wait without end; NumPy and pyarrow do not serve others either.
    """
    for name in ("_interpreters", "_xxsubinterpreters"):  # of Python 3.13 and later, and before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        break
    else:
        # An implementation that has one interpreter.
        return
    # Numbers; since Python 3.13 with what made it.
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "ferrank works in the main interpreter of a process, and this is a subinterpreter; import it in "
            "the main one, or in a process of its own (with mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
        )
