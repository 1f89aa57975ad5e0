"""The command line: a module for each command, ``ferrank rank`` and its like.

Results go to stdout, progress and messages to stderr. Exit codes: 0 done, 2 bad usage or bad input,
130 interrupted, 1 anything else.
"""

import sys

try:
    from ferrank.cli.main import main
except KeyboardInterrupt:  # the imports take a tenth of a second
    print("ferrank: interrupted", file=sys.stderr)
    sys.exit(130)

__all__ = ["main"]
