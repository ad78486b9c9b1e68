"""A server process and a client of it, for the tests of the wire.

The stubs that the build generates are to be in PYTHONPATH. After this module's
import, theirs below grpc/ can be imported, too: they would be hidden behind the
package grpc, which is grpcio's.
"""

import atexit
import pkgutil
import re
import signal
import subprocess

import grpc

grpc.__path__ = pkgutil.extend_path(grpc.__path__, 'grpc')

from folio.v1 import generation_pb2 as generation
from folio.v1 import generation_pb2_grpc as generation_grpc
from folio.v1 import introspection_pb2 as introspection
from folio.v1 import introspection_pb2_grpc as introspection_grpc
from grpc.health.v1 import health_pb2_grpc as health_grpc

# A small model whose tokens are bytes, so that tests know them.
BYTES = ('--model', 'random:')

TIMEOUT = 60  # Seconds; what never takes that long, even on a busy machine.


class Server:
    """`folio serve` on a free port, until close(); of BYTES by default."""

    def __init__(self, folio, *args):
        if '--model' not in args:
            args += BYTES
        self.process = subprocess.Popen(
            [folio, 'serve', '--listen', '127.0.0.1:0', *args],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        match = re.fullmatch(r'listening on (127\.0\.0\.1:[1-9]\d*)\n', line)
        if not match:
            self.close()
            raise AssertionError(f'the server said {line!r}')
        self.address = match[1]
        self.channel = grpc.insecure_channel(self.address)
        self.generation = generation_grpc.GenerationStub(self.channel)
        self.introspection = introspection_grpc.IntrospectionStub(self.channel)
        self.health = health_grpc.HealthStub(self.channel)
        # Not for a test to forget, whatever becomes of it.
        atexit.register(self.process.kill)

    def generate(self, **fields):
        return list(self.generation.Generate(
            generation.GenerateRequest(**fields), timeout=TIMEOUT))

    def memory(self):
        report = self.introspection.GetMemoryReport(
            introspection.GetMemoryReportRequest(), timeout=TIMEOUT)
        return report.memory

    def close(self):
        """Ends the process as an operator would; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(TIMEOUT)
        self.process.stdout.close()
        return code


def tokens_of(responses):
    return [token for response in responses for token in response.token_ids]
