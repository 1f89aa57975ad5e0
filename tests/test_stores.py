"""Tables in object stores and behind TLS, by servers of this machine."""

import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ferrank as fr

moto = pytest.importorskip("moto.server")
trustme = pytest.importorskip("trustme")

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
TABLE = pa.table({"a": RNG.normal(size=200), "b": RNG.normal(size=200)})
TABLE = TABLE.append_column("y", TABLE["a"])


def importances(data: object) -> list[float]:
    found: list[float] = fr.rank(data, "y", n_estimators=8).importances().tolist()
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    pq.write_table(TABLE, folder / "t.parquet")
    (folder / "parts").mkdir()
    for number in range(2):
        pq.write_table(TABLE.slice(100 * number, 100), folder / "parts" / f"{number}.parquet")
    return folder


@pytest.fixture
def bucket(files: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the query of URLs that leads to a store of S3 with the files in the bucket "tables"."""
    import boto3  # type: ignore[import-untyped]

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    service = moto.ThreadedMotoServer(port=0, verbose=False)
    service.start()
    _, port = service.get_host_and_port()
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
    client.create_bucket(Bucket="tables")
    for path in files.rglob("*.parquet"):
        client.upload_file(str(path), "tables", path.relative_to(files).as_posix())
    where = urllib.parse.quote(f"127.0.0.1:{port}")
    yield f"scheme=http&endpoint_override={where}&region=us-east-1"
    service.stop()


def test_files_folders_and_patterns_of_s3(bucket: str, tmp_path: Path) -> None:
    expected = importances(TABLE)
    for key in ("t.parquet", "parts", "parts/*.parquet"):
        assert importances(f"s3://tables/{key}?{bucket}") == expected
    ranker = fr.ForestRanker(n_estimators=8, temp_dir=tmp_path)
    fr.rank(f"s3://tables/t.parquet?{bucket}", "y", ranker=ranker)
    assert list(tmp_path.iterdir()) == []


def test_a_file_comes_in_blocks_and_many_files_at_once(
    bucket: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferrank.data.remote._BLOCK", 1_000)
    for streams in (1, 4):
        monkeypatch.setattr("ferrank.data.remote._STREAMS", streams)
        for key in ("t.parquet", "parts"):
            assert importances(f"s3://tables/{key}?{bucket}") == importances(TABLE)


@pytest.mark.parametrize("key", ["tables/none.parquet", "tables/none/*.parquet", "nowhere/t.parquet"])
def test_what_s3_does_not_have_is_named(bucket: str, key: str) -> None:
    with pytest.raises(fr.ResourceError, match=f"s3://{key.replace('*', '.')}"):
        fr.rank(f"s3://{key}?{bucket}", "y")


@pytest.fixture
def secure(files: Path) -> Iterator[tuple[str, trustme.CA]]:
    """Return the address of a server of the files by HTTPS, and who vouches for it."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    handler = partial(SimpleHTTPRequestHandler, directory=str(files))
    with ThreadingHTTPServer(("localhost", 0), handler) as service:
        service.socket = context.wrap_socket(service.socket, server_side=True)
        threading.Thread(target=service.serve_forever, daemon=True).start()
        yield f"https://localhost:{service.server_port}", authority
        service.shutdown()


def test_https(secure: tuple[str, trustme.CA], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, authority = secure
    with pytest.raises(fr.ResourceError, match=rf"{address}/t.parquet: .*certificate verify failed"):
        fr.rank(f"{address}/t.parquet", "y")
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    assert importances(f"{address}/t.parquet") == importances(TABLE)
