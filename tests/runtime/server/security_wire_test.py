#!/usr/bin/python3
"""TLS, client certificates and tokens of `folio serve`, with right and wrong ones.

Usage: security_wire_test.py FOLIO (with the generated stubs in PYTHONPATH)
"""

import os
import subprocess
import sys
import tempfile
import unittest

import grpc
from wire_client import BYTES, Server, TIMEOUT, tokens_of

from folio.v1 import generation_pb2 as generation
from folio.v1 import generation_pb2_grpc as generation_grpc
from folio.v1 import introspection_pb2 as introspection
from folio.v1 import introspection_pb2_grpc as introspection_grpc

folio = None  # The binary.

OK = grpc.StatusCode.OK
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
PERMISSION_DENIED = grpc.StatusCode.PERMISSION_DENIED

OPENSSL_CONFIG = '''
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
[server]
subjectAltName = IP:127.0.0.1
[client]
basicConstraints = CA:FALSE
'''


class Files(tempfile.TemporaryDirectory):

    def path(self, name):
        return os.path.join(self.name, name)

    def write(self, name, contents):
        """As operators replace a file: whole, or not at all."""
        with open(self.path('new'), 'wb') as file:
            file.write(contents)
        os.rename(self.path('new'), self.path(name))
        return self.path(name)

    def read(self, name):
        with open(self.path(name), 'rb') as file:
            return file.read()

    def certify(self, name, kind, signer=None):
        """NAME.crt and NAME.key, signed by an authority or by itself."""
        config = self.write('config', OPENSSL_CONFIG.encode())
        signed = ['-CA', self.path(signer + '.crt'),
                  '-CAkey', self.path(signer + '.key')] if signer else []
        subprocess.run(
            ['openssl', 'req', '-x509', '-config', config, '-extensions', kind,
             '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
             '-subj', '/CN=' + name, '-keyout', self.path(name + '.key'),
             '-out', self.path(name + '.crt'), *signed],
            check=True, capture_output=True, timeout=TIMEOUT)

    def credentials(self, authority, client=None):
        """Of a client that trusts the authority, with a certificate or not."""
        if client is None:
            return grpc.ssl_channel_credentials(self.read(authority + '.crt'))
        return grpc.ssl_channel_credentials(
            self.read(authority + '.crt'), self.read(client + '.key'),
            self.read(client + '.crt'))


class SecurityTestCase(unittest.TestCase):

    def setUp(self):
        self.files = Files()
        self.addCleanup(self.files.cleanup)

    def serve(self, *args):
        self.server = Server(folio, *args)

    def tearDown(self):
        if hasattr(self, 'server'):
            self.server.channel.close()
            self.assertEqual(self.server.close(), 0)

    def connect(self, credentials=None):
        """A channel that shares its connection with no other."""
        options = [('grpc.use_local_subchannel_pool', 1)]
        channel = (grpc.insecure_channel(self.server.address, options)
                   if credentials is None else
                   grpc.secure_channel(self.server.address, credentials,
                                       options))
        self.addCleanup(channel.close)
        return channel

    def code_of(self, channel, metadata=(), **fields):
        call = generation_grpc.GenerationStub(channel).Generate(
            generation.GenerateRequest(text='abc', max_tokens=3, **fields),
            metadata=metadata, timeout=TIMEOUT)
        try:
            self.assertEqual(len(tokens_of(call)), 3)
        except grpc.RpcError:
            pass
        return call.code()

    def code_with(self, credentials=None, **fields):
        """Of a call on a new connection."""
        return self.code_of(self.connect(credentials), **fields)


class TlsTest(SecurityTestCase):

    def setUp(self):
        super().setUp()
        for authority in ('ours', 'theirs'):
            self.files.certify(authority, 'authority')
            self.files.certify(authority + '-server', 'server', authority)
            self.files.certify(authority + '-client', 'client', authority)
        self.show('ours-server')

    def show(self, identity):
        """Puts it into the server's files: the certificate's comes last."""
        for kind in ('key', 'crt'):
            self.files.write(f'server.{kind}',
                             self.files.read(f'{identity}.{kind}'))

    def serve_tls(self, *args):
        self.serve('--tls-cert', self.files.path('server.crt'),
                   '--tls-key', self.files.path('server.key'), *args)

    def test_tls(self):
        self.serve_tls()
        self.assertEqual(self.code_with(self.files.credentials('ours')), OK)
        self.assertEqual(self.code_with(self.files.credentials('theirs')),
                         UNAVAILABLE)
        self.assertEqual(self.code_with(), UNAVAILABLE)

    def test_a_new_certificate_is_shown_without_a_restart(self):
        self.serve_tls('--model', 'random:hidden=512,layers=8,context=8192')
        old = self.connect(self.files.credentials('ours'))
        stream = generation_grpc.GenerationStub(old).Generate(
            generation.GenerateRequest(text='abc', max_tokens=200,
                                       ignore_eos=True), timeout=TIMEOUT)
        first = next(stream)
        self.show('theirs-server')
        self.assertEqual(self.code_with(self.files.credentials('theirs')), OK)
        self.assertEqual(self.code_with(self.files.credentials('ours')),
                         UNAVAILABLE)
        # Connections that are there already stay, with what is on them.
        self.assertEqual(len(tokens_of([first, *stream])), 200)
        self.assertEqual(self.code_of(old), OK)

    def test_a_broken_certificate_changes_nothing(self):
        self.serve_tls()
        self.files.write('server.crt', b'nonsense')
        self.assertEqual(self.code_with(self.files.credentials('ours')), OK)
        self.show('theirs-server')
        self.assertEqual(self.code_with(self.files.credentials('theirs')), OK)

    def test_client_certificates(self):
        self.files.write('clients.crt', self.files.read('ours.crt'))
        self.serve_tls('--tls-client-ca', self.files.path('clients.crt'))

        def expect(ours, theirs):
            for client, code in (('ours-client', ours),
                                 ('theirs-client', theirs),
                                 (None, UNAVAILABLE)):
                self.assertEqual(self.code_with(
                    self.files.credentials('ours', client)), code, client)
            self.assertEqual(self.code_with(), UNAVAILABLE)
        expect(ours=OK, theirs=UNAVAILABLE)
        # The certificate names the tenant.
        credentials = self.files.credentials('ours', 'ours-client')
        self.assertEqual(self.code_with(credentials, tenant='ours-client'), OK)
        self.assertEqual(self.code_with(credentials, tenant='other'),
                         PERMISSION_DENIED)
        self.files.write('clients.crt', self.files.read('theirs.crt'))
        expect(ours=UNAVAILABLE, theirs=OK)

    def test_tokens_over_tls_by_the_command_line(self):
        made = new_token('alice')
        self.serve_tls('--token-file',
                       self.files.write('tokens', made.stdout))
        args = [folio, 'generate', '--server', self.server.address,
                '--prompt', 'abc', '--max-tokens', '3']

        def run(ca, token):
            return subprocess.run(
                [*args, '--tls-ca', self.files.path(ca), '--token-file',
                 self.files.write('token', token)],
                timeout=TIMEOUT, capture_output=True)
        self.assertEqual(run('ours.crt', made.stderr).returncode, 0)
        wrong = run('ours.crt', new_token('alice').stderr)
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn(b'token file', wrong.stderr)
        self.assertNotEqual(run('theirs.crt', made.stderr).returncode, 0)


def new_token(tenant):
    """The line for the server in stdout, the token in stderr."""
    return subprocess.run([folio, 'token', '--tenant', tenant], check=True,
                          timeout=TIMEOUT, capture_output=True)


def bearer(made):
    return [('authorization', 'Bearer ' + made.stderr.decode().strip())]


class TokenTest(SecurityTestCase):

    def setUp(self):
        super().setUp()
        self.alice, self.bob = new_token('alice'), new_token('bob')
        self.files.write('tokens', self.alice.stdout)
        self.serve('--token-file', self.files.path('tokens'))
        self.channel = self.connect()

    def code(self, metadata, **fields):
        return self.code_of(self.channel, metadata, **fields)

    def test_right_and_wrong_ones(self):
        token = self.alice.stderr.decode().strip()
        self.assertEqual(self.code(bearer(self.alice)), OK)
        for value in (f'Bearer {token}x', f'Bearer {token[:-1]}', 'Bearer ',
                      f'Basic {token}', token, 'Bearer ' + 'x' * 1000):
            self.assertEqual(self.code([('authorization', value)]),
                             UNAUTHENTICATED, value)
        self.assertEqual(self.code(()), UNAUTHENTICATED)
        self.assertEqual(self.code(bearer(self.alice) + bearer(self.bob)),
                         UNAUTHENTICATED)
        self.assertEqual(self.code(bearer(self.alice)), OK)

    def test_a_token_is_for_its_tenant(self):
        self.assertEqual(self.code(bearer(self.alice), tenant='alice'), OK)
        self.assertEqual(self.code(bearer(self.alice), tenant='bob'),
                         PERMISSION_DENIED)

    def test_the_file_is_read_anew_when_it_changes(self):
        self.assertEqual(self.code(bearer(self.bob)), UNAUTHENTICATED)
        self.files.write('tokens', self.alice.stdout + self.bob.stdout)
        self.assertEqual(self.code(bearer(self.bob)), OK)
        self.assertEqual(self.code(bearer(self.alice)), OK)
        self.files.write('tokens', self.bob.stdout)
        self.assertEqual(self.code(bearer(self.alice)), UNAUTHENTICATED)
        # What can't be read changes nothing.
        self.files.write('tokens', b'nonsense\n')
        self.assertEqual(self.code(bearer(self.bob)), OK)
        self.assertEqual(self.code(bearer(self.alice)), UNAUTHENTICATED)

    def test_every_call_needs_one(self):
        calls = generation_grpc.GenerationStub(self.channel)
        looks = introspection_grpc.IntrospectionStub(self.channel)
        batch = generation.GenerateBatchRequest(
            generate=generation.GenerateRequest(request_id='a', text='abc'))
        for call in (
                lambda: list(calls.GenerateBatch(iter([batch]),
                                                 timeout=TIMEOUT)),
                lambda: calls.Abort(generation.AbortRequest(request_id='a'),
                                    timeout=TIMEOUT),
                lambda: calls.Tokenize(generation.TokenizeRequest(text='a'),
                                       timeout=TIMEOUT),
                lambda: calls.Detokenize(generation.DetokenizeRequest(ids=[1]),
                                         timeout=TIMEOUT),
                lambda: looks.GetModelInfo(introspection.GetModelInfoRequest(),
                                           timeout=TIMEOUT),
                lambda: looks.GetServerInfo(
                    introspection.GetServerInfoRequest(), timeout=TIMEOUT),
                lambda: looks.GetLoad(introspection.GetLoadRequest(),
                                      timeout=TIMEOUT),
                lambda: looks.GetMemoryReport(
                    introspection.GetMemoryReportRequest(), timeout=TIMEOUT),
                lambda: next(looks.WatchBatches(
                    introspection.WatchBatchesRequest(), timeout=TIMEOUT))):
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(caught.exception.code(), UNAUTHENTICATED)


class AddressTest(SecurityTestCase):
    """Addresses that the network reaches need TLS and authentication."""

    ANY = '0.0.0.0:0'

    def run_serve(self, *args):
        """What the process says before it ends, or serves and is ended."""
        process = subprocess.Popen(
            [folio, 'serve', '--listen', self.ANY, *BYTES, *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=TIMEOUT)
        return line, errors, process.returncode

    def assert_serves(self, *args):
        line, errors, code = self.run_serve(*args)
        self.assertRegex(line, r'^listening on 0\.0\.0\.0:[1-9]\d*\n$', errors)
        self.assertEqual(code, 0)

    def assert_refuses(self, *args):
        line, errors, code = self.run_serve(*args)
        self.assertEqual(line, '')
        self.assertNotEqual(code, 0)
        self.assertIn('--insecure', errors)

    def test_what_is_needed(self):
        self.files.certify('ours', 'authority')
        self.files.certify('server', 'server', 'ours')
        tls = ('--tls-cert', self.files.path('server.crt'),
               '--tls-key', self.files.path('server.key'))
        client_ca = ('--tls-client-ca', self.files.path('ours.crt'))
        tokens = ('--token-file',
                  self.files.write('tokens', new_token('alice').stdout))
        self.assert_refuses()
        self.assert_refuses(*tokens)
        self.assert_refuses(*tls)
        self.assert_serves(*tls, *tokens)
        self.assert_serves(*tls, *client_ca)
        self.assert_serves('--insecure')


if __name__ == '__main__':
    folio = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
