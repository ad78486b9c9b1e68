"""What an example of a client has to do, in whichever language it is.

tests/runtime/cli is to be in PYTHONPATH, for folio_binary.
"""

import concurrent.futures
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import grpc
from folio_binary import Folio, Server, TIMEOUT_SECONDS

# Every byte is a token, so that characters take several tokens, or never become
# complete. Its context takes a minute or more to fill.
MODEL = ("--model", "random:vocab=256,context=200000")

PROMPT = "And the king said"


class Example:
    """`command` runs it; `env` is what it needs in its environment."""

    def __init__(self, command, env):
        self.command = [str(word) for word in command]
        self.env = {**os.environ, **env}
        self.env.pop("FOLIO_TOKEN", None)

    def start(self, *args, **env):
        return subprocess.Popen(
            [*self.command, "--prompt", PROMPT, *args], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**self.env, **env})

    def run(self, *args, **env):
        """Returns its exit status, what it generated, and what else it said."""
        with self.start(*args, **env) as process:
            try:
                out, err = process.communicate(timeout=TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            return process.returncode, out.decode(), err.decode()


def check_text(example, folio, address):
    greedy = ("--temperature", "0")
    drawn = ("--temperature", "1", "--top-p", "0.9", "--seed", "7")
    # The one response to a request for no tokens has no text.
    for count, sampling in (("40", greedy), ("40", drawn), ("0", greedy)):
        flags = ("--max-tokens", count, *sampling)
        expected = folio.run("generate", "--prompt", PROMPT, *MODEL, *flags)
        assert expected.returncode == 0, expected
        assert bool(expected.stdout.strip()) == (count != "0"), expected
        found = example.run("--server", address, *flags)
        usage = f"{len(PROMPT)} tokens of prompt, {count} generated\n"
        assert found == (0, expected.stdout, usage), (found, expected)


def check_errors(example, address):
    status, out, err = example.run("--server", address, "--top-p", "2")
    assert (status, out) == (1, ""), (status, out, err)
    assert err.startswith("INVALID_ARGUMENT: "), err
    assert "top_p" in err, err

    status, _, err = example.run("--server", address, "--timeout", "0.5")
    assert status == 1, (status, err)
    assert err.startswith("DEADLINE_EXCEEDED: "), err


def pages_in_use(folio, address):
    return folio.json_lines("memory", "--server", address)[-1]["memory"][
        "pages_in_use"]


def check_interrupt(example, folio, address):
    """Ctrl-C ends it, and with it the request on the server."""
    with example.start("--server", address) as process:
        assert process.stdout.read(1)
        assert pages_in_use(folio, address) > 0
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        assert (process.returncode, err) == (130, b""), (process.returncode, err)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while pages_in_use(folio, address) > 0:
        assert time.monotonic() < deadline, "the request goes on"
        time.sleep(0.02)


class TlsServer(grpc.GenericRpcHandler):
    """Stands in for a server with TLS: it answers TOKEN, and nobody else."""

    TOKEN = "secret"
    # A GenerateResponse: text "hi", usage of 3 tokens of prompt, 2 generated.
    ANSWER = b"\x22\x02hi" b"\x42\x04\x08\x03\x10\x02"

    def __init__(self, folder):
        self.certificate = folder / "certificate.pem"
        key = folder / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
             "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-keyout", key,
             "-out", self.certificate], check=True, capture_output=True)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(1), (self,))
        port = self._server.add_secure_port(
            "localhost:0", grpc.ssl_server_credentials(
                [(key.read_bytes(), self.certificate.read_bytes())]))
        self.address = f"localhost:{port}"
        self._server.start()

    def service(self, details):
        del details
        return grpc.unary_stream_rpc_method_handler(self._generate)

    def _generate(self, request, context):
        del request
        metadata = dict(context.invocation_metadata())
        if metadata.get("authorization") != f"Bearer {self.TOKEN}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")
        yield self.ANSWER

    def stop(self):
        self._server.stop(None).wait()


def check_tls(example):
    with tempfile.TemporaryDirectory() as folder:
        server = TlsServer(pathlib.Path(folder))
        flags = ("--server", server.address, "--tls-ca", str(server.certificate))
        found = example.run(*flags, FOLIO_TOKEN=server.TOKEN)
        assert found == (0, "hi\n", "3 tokens of prompt, 2 generated\n"), found
        found = example.run(*flags)
        assert found == (1, "", "UNAUTHENTICATED: who are you?\n"), found
        server.stop()


def check_all(folio, example):
    folio = Folio(folio)
    with Server(folio, *MODEL) as server:
        check_text(example, folio, server.address)
        check_errors(example, server.address)
        check_interrupt(example, folio, server.address)
    status, out, err = example.run("--server", server.address)
    assert (status, out) == (1, ""), (status, out, err)
    assert err.startswith("UNAVAILABLE: "), err
    check_tls(example)
