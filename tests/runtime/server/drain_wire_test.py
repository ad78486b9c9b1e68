#!/usr/bin/python3
"""How `folio serve` ends: live and queued requests, signals, and Admin.Drain.

Usage: drain_wire_test.py FOLIO (with the generated stubs in PYTHONPATH)

This is fault 36 of those that wire_fault_test.cc is about: SIGTERM cuts live
streams, or the shutdown never ends.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import grpc
from wire_client import Server, TIMEOUT, tokens_of

from folio.v1 import admin_pb2 as admin
from folio.v1 import admin_pb2_grpc as admin_grpc
from folio.v1 import generation_pb2 as generation
from folio.v1 import introspection_pb2 as introspection
from google.protobuf import duration_pb2 as duration
from grpc.health.v1 import health_pb2 as health

folio = None  # The binary.

# Slow enough that no machine is done with thousands of tokens meanwhile.
SLOW = ('--model', 'random:hidden=512,layers=8,context=8192')


class DrainTest(unittest.TestCase):

    def setUp(self):
        self.calls = []

    def serve(self, *args):
        """A server that runs two requests at a time, and its Admin."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        socket = 'unix:' + os.path.join(folder.name, 'admin')
        self.server = Server(folio, *SLOW, '--max-batch-sequences', '2',
                             '--admin-listen', socket, *args)
        channel = grpc.insecure_channel(socket)
        self.addCleanup(channel.close)
        self.admin = admin_grpc.AdminStub(channel)

    def load_four(self, max_tokens):
        """Two requests that run, and then two that wait."""
        request = generation.GenerateRequest(text='abc', ignore_eos=True,
                                             max_tokens=max_tokens)
        for i in range(4):
            self.calls.append(self.server.generation.Generate(
                request, timeout=TIMEOUT))
            self.wait_for(lambda load: load.requests_live == i + 1)
        self.wait_for(lambda load: (load.sequences_running,
                                    load.sequences_waiting) == (2, 2))

    def wait_for(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while True:
            load = self.server.introspection.GetLoad(
                introspection.GetLoadRequest(), timeout=TIMEOUT)
            if condition(load):
                return
            self.assertLess(time.monotonic(), deadline, load)
            time.sleep(0.002)

    def wait_until_not_serving(self):
        deadline = time.monotonic() + TIMEOUT
        while self.server.health.Check(
                health.HealthCheckRequest(), timeout=TIMEOUT
                ).status == health.HealthCheckResponse.SERVING:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)

    def assert_new_ones_are_refused(self):
        self.wait_until_not_serving()
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.generate(text='late')
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn('shutting down', caught.exception.details())

    def assert_all_finish(self, max_tokens):
        for call in self.calls:
            self.assertEqual(len(tokens_of(call)), max_tokens)
            self.assertEqual(call.code(), grpc.StatusCode.OK)

    def assert_all_end(self):
        for call in self.calls:
            with self.assertRaises(grpc.RpcError) as caught:
                list(call)
            self.assertEqual(caught.exception.code(),
                             grpc.StatusCode.UNAVAILABLE)
            self.assertIn('shutting down', caught.exception.details())

    def assert_exits(self, code):
        self.server.channel.close()
        self.assertEqual(self.server.process.wait(TIMEOUT), code)
        self.server.process.stdout.close()

    def test_live_and_queued_ones_finish_after_sigterm(self):
        self.serve('--drain-timeout', '1h')
        self.load_four(max_tokens=300)
        self.server.process.send_signal(signal.SIGTERM)
        self.assert_new_ones_are_refused()
        self.assert_all_finish(max_tokens=300)
        self.assert_exits(0)

    def test_the_rest_ends_at_the_drain_timeout(self):
        self.serve('--drain-timeout', '300ms')
        self.load_four(max_tokens=8000)
        self.server.process.send_signal(signal.SIGINT)
        self.assert_all_end()
        self.assert_exits(0)

    def test_a_second_signal_ends_it_at_once(self):
        for first, second in ((signal.SIGTERM, signal.SIGTERM),
                              (signal.SIGTERM, signal.SIGINT)):
            with self.subTest(second=second):
                self.calls.clear()
                self.serve('--drain-timeout', '1h')
                self.load_four(max_tokens=8000)
                self.server.process.send_signal(first)
                self.assert_new_ones_are_refused()
                self.server.process.send_signal(second)
                self.assertEqual(self.server.process.wait(TIMEOUT),
                                 128 + second)
                for call in self.calls:
                    with self.assertRaises(grpc.RpcError) as caught:
                        list(call)
                    self.assertEqual(caught.exception.code(),
                                     grpc.StatusCode.UNAVAILABLE)
                self.assert_exits(128 + second)

    def test_admin_drain_lets_them_finish(self):
        self.serve('--drain-timeout', '1h')
        self.load_four(max_tokens=300)
        answer = self.admin.Drain(admin.DrainRequest(), timeout=TIMEOUT)
        self.assertEqual(answer.requests_live, 4)
        # At once, not when somebody has looked.
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.generate(text='late')
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assert_new_ones_are_refused()
        self.assert_all_finish(max_tokens=300)
        self.assert_exits(0)

    def test_admin_drain_while_loading_counts_when_that_is_done(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, 'admin')
        socket = 'unix:' + path
        # It takes the better part of a second to load, or more.
        process = subprocess.Popen(
            [folio, 'serve', '--listen', '127.0.0.1:0', '--admin-listen',
             socket, '--model', 'random:llama-135m'], stdout=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        # A first attempt that fails would be repeated after a second only.
        deadline = time.monotonic() + TIMEOUT
        while not os.path.exists(path) and time.monotonic() < deadline:
            time.sleep(0.01)
        with grpc.insecure_channel(socket) as channel:
            admin_grpc.AdminStub(channel).Drain(
                admin.DrainRequest(), timeout=TIMEOUT, wait_for_ready=True)
        printed, _, _ = select.select([process.stdout], [], [], 0)
        self.assertFalse(printed, 'it had been loaded already')
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_a_signal_after_a_drain_is_the_first_signal(self):
        self.serve('--drain-timeout', '1h')
        self.load_four(max_tokens=300)
        self.admin.Drain(admin.DrainRequest(), timeout=TIMEOUT)
        self.server.process.send_signal(signal.SIGTERM)
        self.assert_all_finish(max_tokens=300)
        self.assert_exits(0)

    def test_admin_drain_may_set_the_timeout(self):
        self.serve('--drain-timeout', '1h')
        self.load_four(max_tokens=8000)
        self.admin.Drain(admin.DrainRequest(timeout=duration.Duration(
            nanos=300 * 10**6)), timeout=TIMEOUT)
        self.assert_all_end()
        self.assert_exits(0)


if __name__ == '__main__':
    folio = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
