#!/usr/bin/env python3
"""Goal: jobs train on Parquet files, over s3:// and over gs:// to the checksum of the same rows in CSV, and end with one
sentence where a file, a bucket, credentials or a server is missing. Method: the real program, moto's S3 server, and a
server of one object that speaks the part of Google's protocol that reads.

    arrow_test.py DOVETAIL
"""
import contextlib
import datetime
import gzip
import http.server
import ipaddress
import json
import os
import pathlib
import random
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

PROGRAM = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "dovetail").resolve()
SKIPPED = 77  # What ctest counts as skipped.
SECONDS_MAX = 75  # The deadline of a call to a remote file system, and some more.

if not (PROGRAM.parent / "libdovetail_arrow.so").exists():
    print("skipped: this build has no Arrow; scripts/setup.sh installs pyarrow, which brings it")
    sys.exit(SKIPPED)
try:
    import boto3
    import pyarrow as pa
    import pyarrow.parquet as pq
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from moto.server import ThreadedMotoServer
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup.sh installs pyarrow and moto")
    sys.exit(SKIPPED)

JOB = """
job: JOB
seed: 3
data:
  format: FORMAT
  train: [TRAIN]
  columns:
    - {name: click, role: label}
    - {name: user, type: id}
    - {name: city, type: string}
    - {name: history, type: ids, max_len: 3}
    - {name: price, type: float, fill: -1}
    - {name: place, type: float, length: 4}
model:
  tables: {user: {dim: 4}, city: {dim: 4}, item: {dim: 4}}
  graph:
    - {name: u, op: lookup, table: user, inputs: [user]}
    - {name: c, op: lookup, table: city, inputs: [city]}
    - {name: h, op: bag, table: item, inputs: [history]}
    - {name: logit, op: mlp, inputs: [u, c, h, price, place], units: [8, 1]}
  loss: [{type: binary_cross_entropy, input: logit, label: click}]
optimizer: {name: adam, lr: 0.01}
train: {batch_size: 256, slices: 2, epochs: 1}
"""

TYPES = {"click": pa.float32(), "user": pa.uint64(), "city": pa.string(), "history": pa.list_(pa.uint64()),
         "price": pa.float64(), "place": pa.list_(pa.float32(), 4)}


def made_rows(count):
    draw = random.Random(5)
    for i in range(count):
        yield {"click": draw.randrange(2), "user": 2**64 - 1 - draw.randrange(500), "city": f"c{draw.randrange(50)}",
               "history": [draw.randrange(200) for _ in range(draw.randrange(5))],
               "price": None if i % 9 == 0 else draw.randrange(100) / 4,
               "place": [draw.randrange(64) / 8 for _ in range(4)]}


def cell(value):
    if isinstance(value, list):
        return "|".join(str(item) for item in value)
    return "" if value is None else str(value)


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, code, kind, body):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Refusing(Handler):
    """Denies access to everybody, as S3 does."""

    def do_GET(self):
        self.answer(403, "application/xml", b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")

    do_HEAD = do_GET


class OneObject(Handler):
    """Google Cloud Storage with one object, whose bytes the server has. If it changes, it does after it has been read."""
    NAME = "day=1/rows.parquet"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        about = {"kind": "storage#object", "bucket": "shop", "name": self.NAME, "size": str(len(self.server.content)),
                 "generation": "1", "timeCreated": self.server.created, "updated": self.server.created}
        if url.path == "/storage/v1/b/shop/o":
            prefix = urllib.parse.parse_qs(url.query).get("prefix", [""])[0]
            found = [about] if self.NAME.startswith(prefix) else []
            self.answer_json(200, {"kind": "storage#objects", "items": found})
        elif url.path == "/storage/v1/b/shop":
            self.answer_json(200, {"kind": "storage#bucket", "name": "shop", "timeCreated": "2026-01-01T00:00:00Z"})
        elif urllib.parse.unquote(url.path) != f"/storage/v1/b/shop/o/{self.NAME}":
            self.answer_json(404, {"error": {"code": 404, "message": "Not Found"}})
        elif "alt=media" not in url.query:
            self.answer_json(200, about)
        else:
            self.answer_content()
            if self.server.changes:
                self.server.created = "2026-01-02T00:00:00Z"

    def answer_content(self):
        if "Range" not in self.headers:
            self.answer(200, "text/plain", self.server.content)
            return
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers["Range"]).groups()
        self.answer(206, "text/plain", self.server.content[int(first):int(last) + 1 if last else None])

    def answer_json(self, code, body):
        self.answer(code, "application/json", json.dumps(body).encode())


@contextlib.contextmanager
def serving(handler, content=b"", changes=False, certificate=None):
    """Runs a server, over TLS if it has a certificate, and gives its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.content, server.changes, server.created = content, changes, "2026-01-01T00:00:00Z"
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def write_certificate(path):
    """Writes a key and a certificate for 127.0.0.1 that is signed with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "dovetail test")])
    now = datetime.datetime.now(datetime.timezone.utc)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                   .serial_number(1).not_valid_before(now - datetime.timedelta(1))
                   .not_valid_after(now + datetime.timedelta(1)).add_extension(address, critical=False)
                   .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
                   .sign(key, hashes.SHA256()))
    pem = serialization.Encoding.PEM
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()) +
                     certificate.public_bytes(pem))


class ArrowTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="dt_arrow_")
        cls.folder = pathlib.Path(cls.holder.name)
        rows = list(made_rows(3000))
        lines = [",".join(TYPES)] + [",".join(cell(value) for value in row.values()) for row in rows]
        (cls.folder / "rows.csv").write_text("\n".join(lines) + "\n")
        table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
        pq.write_table(table, cls.folder / "zstd.parquet", compression="zstd", row_group_size=300)
        pq.write_table(table, cls.folder / "snappy.parquet", compression="snappy", row_group_size=100000)
        for part in range(3):
            pq.write_table(table.slice(1000 * part, 1000), cls.folder / f"part-{part}.parquet")
        cls.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        cls.server.start()
        cls.endpoint = "http://{}:{}".format(*cls.server.get_host_and_port())
        cls.fill_bucket()
        cls.expected = cls.checksum("csv", "csv", "rows.csv")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.holder.cleanup()

    @classmethod
    def fill_bucket(cls):
        s3 = boto3.client("s3", endpoint_url=cls.endpoint, region_name="us-east-1", aws_access_key_id="k",
                          aws_secret_access_key="s")
        s3.create_bucket(Bucket="shop")
        for name in ("zstd.parquet", "part-0.parquet", "part-1.parquet", "part-2.parquet"):
            s3.upload_file(str(cls.folder / name), "shop", f"day=1/{name}")
        s3.put_object(Bucket="shop", Key="rows.csv.gz", Body=gzip.compress((cls.folder / "rows.csv").read_bytes()))
        s3.put_object(Bucket="shop", Key="day=1/_SUCCESS", Body=b"")

    @classmethod
    def run_job(cls, job, file_format, train, command=("train",), **environment):
        """(exit code, output, seconds) of a job."""
        text = JOB.replace("JOB", job).replace("FORMAT", file_format).replace("TRAIN", f'"{train}"')
        (cls.folder / f"{job}.yaml").write_text(text)
        known = {"AWS_ENDPOINT_URL": cls.endpoint, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s",
                 "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", **environment}
        settings = {name: value for name, value in known.items() if value is not None}
        others = {name: value for name, value in os.environ.items()
                  if not name.startswith("AWS_") and name not in ("SSL_CERT_FILE", "SSL_CERT_DIR")}
        begun = time.monotonic()
        words = [PROGRAM, command[0], f"{job}.yaml", *command[1:], "--result", f"{job}.json", "--no-progress"]
        end = subprocess.run(words,
                             cwd=cls.folder, env={**others, **settings}, text=True, timeout=120,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return end.returncode, end.stdout, time.monotonic() - begun

    @classmethod
    def checksum(cls, *arguments, **options):
        code, output, _ = cls.run_job(*arguments, **options)
        assert code == 0, output
        return json.loads((cls.folder / f"{arguments[0]}.json").read_text())["checksum"]

    def assert_ends(self, code, words, job, *arguments, **environment):
        """The job ends with this exit code and a sentence that has these words, before the deadline."""
        found, output, seconds = self.run_job(job, *arguments, **environment)
        self.assertEqual(found, code, output)
        error = json.loads((self.folder / f"{job}.json").read_text())["error"]
        for word in words:
            self.assertIn(word, f"{error['what']}; {error['hint']}")
        self.assertLess(seconds, SECONDS_MAX)

    def test_parquet_trains_to_the_checksum_of_csv(self):
        for name in ("zstd", "snappy"):
            self.assertEqual(self.checksum(name, "parquet", f"{name}.parquet"), self.expected, name)
        self.assertEqual(self.checksum("parts", "parquet", "part-?.parquet"), self.expected)

    def test_s3_trains_to_the_same_checksum(self):
        self.assertEqual(self.checksum("s3_one", "parquet", "s3://shop/day=1/zstd.parquet"), self.expected)
        self.assertEqual(self.checksum("s3_csv", "csv", "s3://shop/rows.csv.gz"), self.expected)
        launch = ("launch", "--set", "cluster.workers=2")
        self.assertEqual(self.checksum("s3_many", "parquet", "s3://shop/day=*/part-*.parquet", command=launch),
                         self.expected)
        host = self.endpoint.removeprefix("http://")
        self.assertEqual(self.checksum("s3_query", "parquet",
                                       f"s3://shop/day=1/zstd.parquet?scheme=http&endpoint_override={host}",
                                       AWS_ENDPOINT_URL=None), self.expected)

    def test_a_file_that_was_cut_short_is_bad_data(self):
        whole = (self.folder / "zstd.parquet").read_bytes()
        (self.folder / "cut.parquet").write_bytes(whole[:len(whole) // 2])
        self.assert_ends(3, ["cut.parquet: ", "cut short"], "cut", "parquet", "cut.parquet")

    def test_what_is_not_there_is_named(self):
        self.assert_ends(2, ["data.train: s3://shop/none.parquet: ", "the file does not exist"], "no_key", "parquet",
                         "s3://shop/none.parquet")
        self.assert_ends(2, ["s3://nobody/x.parquet: ", 'the bucket "nobody" does not exist'], "no_bucket", "parquet",
                         "s3://nobody/x.parquet")
        self.assert_ends(2, ["s3://shop/day=1/*.orc: no file of this name"], "no_match", "parquet",
                         "s3://shop/day=1/*.orc")
        self.assert_ends(2, ["s3://nobody/*.parquet: ", 'the bucket "nobody" does not exist'], "no_folder", "parquet",
                         "s3://nobody/*.parquet")
        self.assert_ends(2, ["s3://shop/day=1: a folder found"], "folder", "parquet", "s3://shop/day=1")

    def test_a_path_that_is_no_uri_or_has_credentials_is_refused(self):
        self.assert_ends(2, ["Cannot parse URI", "syntax error at character ' '"], "blank", "csv", "s3://shop/a b.csv")
        self.assert_ends(2, ["holds credentials"], "secret", "csv", "s3://key:secret@shop/rows.csv")
        for name in ("secret.json", "secret.yaml"):
            self.assertEqual("key:secret" in (self.folder / name).read_text(), name == "secret.yaml", name)

    def test_google_trains_to_the_same_checksum(self):
        with serving(OneObject, (self.folder / "zstd.parquet").read_bytes()) as address:
            query = f"?endpoint_override={address}&scheme=http"
            train = f"gs://anonymous@shop/day=*/*.parquet{query}"
            self.assertEqual(self.checksum("gs", "parquet", train), self.expected)
            self.assert_ends(2, ["the file does not exist"], "gs_none", "csv", f"gs://anonymous@shop/none{query}")

    def test_a_file_that_changes_while_it_is_read_is_not_trained_on(self):
        with serving(OneObject, (self.folder / "rows.csv").read_bytes(), changes=True) as address:
            train = f"gs://anonymous@shop/day=1/rows.parquet?endpoint_override={address}&scheme=http"
            self.assert_ends(1, ["rows.parquet", "the file changed while it was read"], "changed", "csv", train)

    def test_certificates_are_checked(self):
        certificate = self.folder / "certificate.pem"
        write_certificate(certificate)
        with serving(OneObject, (self.folder / "zstd.parquet").read_bytes(), certificate=certificate) as address:
            train = f"gs://anonymous@shop/day=1/rows.parquet?endpoint_override={address}&scheme=https"
            self.assertEqual(self.checksum("gs_tls", "parquet", train, SSL_CERT_FILE=str(certificate)), self.expected)
        with serving(Refusing, certificate=certificate) as address:
            endpoint = f"https://{address}"
            self.assert_ends(1, ["ACCESS_DENIED"], "s3_tls", "csv", "s3://shop/rows.csv", AWS_ENDPOINT_URL=endpoint,
                             SSL_CERT_FILE=str(certificate))
            self.assert_ends(1, ["cannot be reached", "certificate"], "s3_unknown", "csv", "s3://shop/rows.csv",
                             AWS_ENDPOINT_URL=endpoint)

    def test_hadoop_that_is_not_installed_is_named(self):
        self.assert_ends(1, ["hdfs://nowhere:9000/rows.csv: ", "HADOOP_HOME"], "hdfs", "csv",
                         "hdfs://nowhere:9000/rows.csv", HADOOP_HOME="/nowhere", JAVA_HOME="/nowhere")

    def test_missing_credentials_are_named(self):
        with serving(Refusing) as address:
            endpoint = f"http://{address}"
            self.assert_ends(1, ["there are no credentials", "AWS_ACCESS_KEY_ID"], "no_keys", "csv",
                             "s3://shop/rows.csv", AWS_ENDPOINT_URL=endpoint, AWS_ACCESS_KEY_ID=None,
                             AWS_SECRET_ACCESS_KEY=None)
            self.assert_ends(1, ["ACCESS_DENIED"], "denied", "csv", "s3://shop/rows.csv", AWS_ENDPOINT_URL=endpoint)

    def test_a_server_that_does_not_answer_is_given_up(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = "http://127.0.0.1:{}".format(closed.getsockname()[1])
            self.assert_ends(1, ["cannot be reached", "AWS_ENDPOINT_URL"], "unreached", "csv", "s3://shop/rows.csv",
                             AWS_ENDPOINT_URL=address)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(8)
            address = "http://127.0.0.1:{}".format(silent.getsockname()[1])
            self.assert_ends(1, ["s3://shop/rows.csv: "], "silent", "csv", "s3://shop/rows.csv",
                             AWS_ENDPOINT_URL=address)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
