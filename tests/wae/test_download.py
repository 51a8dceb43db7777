"""Downloads from a server on this machine: whole, verified, resumed, and their failures."""

import hashlib
import http.server
import threading

import pytest

from smmd.wae import published

CONTENT = {"a.gz": bytes(range(256)) * 500, "b.gz": b"labels" * 100}


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        name = self.path.rsplit("/", 1)[1]
        server.asked.append((self.path, self.headers.get("Range")))
        if self.path.startswith("/gone/") or name not in server.content:
            self.send_error(404)
            return
        data, start = server.content[name], 0
        if self.headers.get("Range") and server.ranges:
            start = int(self.headers["Range"][6:-1])
            if start >= len(data):
                self.send_error(416)
                return
            self.send_response(206)
        else:
            self.send_response(200)
        body = data[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else None
        self.wfile.write(body[:cut])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    made.content, made.asked, made.cuts, made.ranges = dict(CONTENT), [], [], True
    home = f"http://127.0.0.1:{made.server_port}"
    files = {name: hashlib.md5(raw).hexdigest() for name, raw in CONTENT.items()}
    source = published.Published((f"{home}/gone/", f"{home}/here/"), files, ())
    monkeypatch.setitem(published.SETS, "toy", source)
    monkeypatch.setenv("SMMD_CACHE", str(tmp_path))
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def _whole(folder):
    assert {p.name for p in folder.iterdir()} == set(CONTENT)
    assert all((folder / name).read_bytes() == raw for name, raw in CONTENT.items())


def test_the_second_home_serves_where_the_first_does_not(server, tmp_path):
    folder = published.fetch("toy")
    assert folder == tmp_path / "toy"
    _whole(folder)
    count = len(server.asked)
    published.fetch("toy")
    assert len(server.asked) == count  # nothing is fetched twice


def test_a_broken_transfer_is_continued(server):
    server.cuts = [1000]
    _whole(published.fetch("toy"))
    assert ("/here/a.gz", "bytes=1000-") in server.asked


def test_without_ranges_it_starts_again(server):
    server.ranges, server.cuts = False, [1000]
    _whole(published.fetch("toy"))


def test_what_an_earlier_process_left_is_continued(server, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/a.gz.part").write_bytes(CONTENT["a.gz"][:70000])
    _whole(published.fetch("toy"))
    assert ("/here/a.gz", "bytes=70000-") in server.asked


def test_a_whole_part_is_taken(server, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/a.gz.part").write_bytes(CONTENT["a.gz"])
    _whole(published.fetch("toy"))


def test_a_wrong_part_is_thrown_away(server, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/a.gz.part").write_bytes(b"something else")
    _whole(published.fetch("toy"))


def test_a_damaged_file_in_the_cache_is_fetched_again(server, tmp_path):
    published.fetch("toy")
    (tmp_path / "toy/b.gz").write_bytes(b"bitrot")
    _whole(published.fetch("toy"))


def test_other_bytes_than_published_are_refused(server, tmp_path):
    server.content["a.gz"] = b"not the digits"
    with pytest.raises(ConnectionError, match=r"(?s)not the published file.*data_dir"):
        published.fetch("toy")
    assert not (tmp_path / "toy/a.gz").exists()


def test_no_network_says_what_to_do(server):
    server.content.clear()
    with pytest.raises(ConnectionError, match=r"(?s)404.*by hand.*mnist-subset needs no network"):
        published.fetch("toy")
