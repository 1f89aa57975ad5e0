"""A Parquet file in an object store and behind HTTPS beside the same file on disk.

The servers run on this machine, each in a process of its own: moto for S3, Python's own for HTTPS. So does
each ranking, in turn with the others. Seconds are of the wall clock, because a store is waited for; the rate
is the time from disk over that from the store. Needs the packages of `pip install 'ferrank[test]'`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import trustme
from measure import anonymous_memory
from outofcore import forget, write
from pyarrow import parquet as pq
from recording import Record, add_option

N_FEATURES = 100
TARGETS = ["y", "kind"]
#: Bytes of a row: float32 features and a target, and a bit.
ROW_BYTES = 4 * (N_FEATURES + 1)
#: Files in the object store, as clusters write them; moto takes time in proportion to a file for each block.
N_FILES = 16
ROW = "{:<8} {:>9} {:>9} {:>9} {:>9} {:>9}"
RECORD = Record("stores")
RANK = """
import sys, ferrank as fr
url, trees, limit = sys.argv[1:]
ranking = fr.rank(url, "y", drop=["kind"], n_estimators=int(trees), ranker="forest", memory_limit=int(limit))
print(ranking.importances().tolist())
"""
HTTPS = """
import functools, http.server, ssl, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
service = http.server.ThreadingHTTPServer(("localhost", 0), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2])
service.socket = context.wrap_socket(service.socket, server_side=True)
print(service.server_port, flush=True)
service.serve_forever()
"""
S3 = """
import pathlib, sys, threading, boto3, moto.server
service = moto.server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
service.start()
port = service.get_host_and_port()[1]
client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
client.create_bucket(Bucket="tables")
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    client.upload_file(str(path), "tables", f"parts/{path.name}")
print(port, flush=True)
threading.Event().wait()
"""


@contextmanager
def serving(code: str, *arguments: Path) -> Iterator[int]:
    """Run a server in a process of its own, and yield its port."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            yield int(server.stdout.readline())
        finally:
            server.kill()


def ranked(url: str, trees: int, limit: int) -> tuple[float, int, str]:
    """Rank in a process of its own: seconds, most bytes of anonymous memory, what it found."""
    started, peak = time.perf_counter(), 0
    command = [sys.executable, "-c", RANK, url, str(trees), str(limit)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, anonymous_memory(process.pid))
            time.sleep(0.01)
        assert process.stdout is not None
        if process.returncode != 0:
            raise SystemExit(f"{url}: exit status {process.returncode}")
        return time.perf_counter() - started, peak, process.stdout.read()


def split(path: Path, folder: Path) -> None:
    """Write the row groups of a file to several files."""
    folder.mkdir()
    file = pq.ParquetFile(path)
    groups = np.array_split(np.arange(file.num_row_groups), min(N_FILES, file.num_row_groups))
    for number, part in enumerate(groups):
        pq.write_table(file.read_row_groups(part.tolist()), folder / f"{number:02}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=1e9, help="bytes of the file (default: 1e9)")
    parser.add_argument("--limit", type=float, default=1e9, help="memory_limit in bytes (default: 1e9)")
    parser.add_argument("--trees", type=int, default=10, help="trees of a forest (default: 10)")
    parser.add_argument("--runs", type=int, default=2, help="turns, of which the fastest counts (default: 2)")
    add_option(parser)
    options = parser.parse_args()
    os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        write(path, int(options.size / ROW_BYTES), N_FEATURES)
        authority, chain = trustme.CA(), Path(folder) / "server.pem"
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(chain)
        os.environ["SSL_CERT_FILE"] = str(Path(folder) / "authority.pem")
        authority.cert_pem.write_to_path(os.environ["SSL_CERT_FILE"])
        parts = Path(folder) / "parts"
        split(path, parts)
        with serving(S3, parts) as s3, serving(HTTPS, Path(folder), chain) as https:
            where = urllib.parse.quote(f"127.0.0.1:{s3}")
            urls = {
                "disk": str(path),
                "S3": f"s3://tables/parts?scheme=http&endpoint_override={where}&region=us-east-1",
                "HTTPS": f"https://localhost:{https}/t.parquet",
            }
            compare(urls, path, options)
    if options.record:
        print(RECORD.write(options.record))


def compare(urls: dict[str, str], path: Path, options: argparse.Namespace) -> None:
    print(ROW.format("store", "file MB", "limit MB", "peak MB", "wall s", "rate"))
    found: dict[str, list[tuple[float, int, str]]] = {name: [] for name in urls}
    for _ in range(options.runs):
        for name, url in urls.items():
            forget(path)
            found[name].append(ranked(url, options.trees, int(options.limit)))
    size = path.stat().st_size
    disk = min(seconds for seconds, _, _ in found["disk"])
    for name, runs in found.items():
        seconds, peak = min(run[0] for run in runs), max(run[1] for run in runs)
        assert {run[2] for run in runs} == {found["disk"][0][2]}, f"{name} has another ranking"
        cells = [f"{size / 1e6:.0f}", f"{options.limit / 1e6:.0f}", f"{peak / 1e6:.0f}", f"{seconds:.1f}"]
        rate = f"{disk / seconds:.2f}"
        print(ROW.format(name, *cells, rate))
        if name != "disk":
            RECORD.add(case=name, size=f"{size / 1e9:.1f} GB", baseline="disk", ratio=rate, peak_mb=cells[2])


if __name__ == "__main__":
    main()
