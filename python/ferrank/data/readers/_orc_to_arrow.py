"""ORC to Arrow in a process of its own: ``python -P _orc_to_arrow.py FILE BYTES`` writes to standard output.

The reader of ORC in pyarrow ends the process, or takes any memory, where a file is damaged. Here that harms
nobody: the process may hold ``BYTES`` beside what it starts with.
"""

import contextlib
import sys
import time

import pyarrow as pa
from pyarrow import orc

_BATCH_ROWS = 1 << 16
_SECONDS_OF_STRIPE = 15
"""Of processor time: a reader that takes longer for a stripe, or for the head of the file, is in a loop."""


def _limit(n_bytes: int) -> None:
    """Let the process hold ``n_bytes`` more than now at most, where the system can do that."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource
        from pathlib import Path

        status = Path("/proc/self/status").read_text()
        held = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:"))
        resource.setrlimit(resource.RLIMIT_DATA, (held + n_bytes, held + n_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time() -> None:
    """Let the process work a while from now on, where the system can do that."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + _SECONDS_OF_STRIPE, most))


def _main(path: str, n_bytes: int) -> int:
    pa.set_cpu_count(1)
    _limit(n_bytes)
    try:
        _limit_time()
        file = orc.ORCFile(path)
        with pa.ipc.new_stream(sys.stdout.buffer, file.schema) as writer:
            for stripe in range(file.nstripes):
                _limit_time()
                table = pa.Table.from_batches([file.read_stripe(stripe)], file.schema)
                writer.write_table(table, max_chunksize=_BATCH_ROWS)
        sys.stdout.flush()
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1], int(sys.argv[2])))
