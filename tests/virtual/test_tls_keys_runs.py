"""Tests, in virtual time, that the keys of a program's TLS connections are kept and decrypt its captures, and
that the lines of its log have times.
"""

from __future__ import annotations

import shutil

import pytest
from virtual_place import Place

FILE = """\
name: keys
segments: {lan: {subnet: 10.60.0.0/24}}
nodes:
  server:
    segment: lan
    software:
      web:
        command: [python3, -u, server.py]
        role: server
        tls: lab
        ready: {tcp: 443}
        files:
          server.py: |
            import http.server, ssl
            made = http.server.HTTPServer(("", 443), http.server.SimpleHTTPRequestHandler)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain("web/server.pem", "web/server.key")
            made.socket = context.wrap_socket(made.socket, server_side=True)
            made.serve_forever()
  client:
    segment: lan
    software:
      load:
        command: [python3, -u, client.py, "{{ addresses.server }}"]
        role: client
        start: hold
        at_end: exited
        tls: lab
        tls_keys: true
        files:
          client.py: |
            import sys, time, ssl, urllib.request
            context = ssl.create_default_context(cafile="load/ca.pem")
            context.check_hostname = False
            url = f"https://{sys.argv[1]}/secret-place/../"
            print("first", urllib.request.urlopen(url, context=context).status)
            time.sleep(2)
            print("second")
captures:
  server: {at: node server}
run: {hold: 5 s, drain: 1 s}
"""


def test_the_keys_of_a_client_decrypt_the_capture_of_the_server(place: Place) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    (place.cwd / "keys.yaml").write_text(FILE)
    ran = place.run(file="keys.yaml")
    logs = ran.run_dir / "raw" / "logs"
    assert "CLIENT_HANDSHAKE_TRAFFIC_SECRET" in (logs / "client.load.keys").read_text()
    assert not (logs / "server.web.keys").exists()
    done = place.vnet("packets", str(ran.run_dir), "--point", "server", "--filter", "http.request")
    assert done.returncode == 0 and "secret-place" in done.stdout, done.stderr

    said = (logs / "client.load.log").read_bytes()
    times = [line.split(",") for line in (logs / "client.load.times").read_text().splitlines()]
    at = {int(offset): int(time) for time, offset in times}
    second = said.index(b"second")
    assert 1.9e9 < at[second] - at[0] < 2.2e9, times


def test_keys_without_a_capture_are_refused(place: Place) -> None:
    (place.cwd / "keys.yaml").write_text(FILE.replace("captures:\n  server: {at: node server}\n", ""))
    done = place.vnet("check", "keys.yaml")
    line = FILE[: FILE.index("tls_keys")].count("\n") + 1
    assert done.returncode != 0
    assert f"keys.yaml:{line}: nodes.client.software.load.tls_keys: keeps keys" in done.stderr + done.stdout
