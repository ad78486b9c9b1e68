#!/usr/bin/python3
"""`folio-load` as users run it, on real servers.

Usage: load_wire_test.py FOLIO FOLIO_LOAD
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

folio = None  # The binaries.
folio_load = None

TIMEOUT = 120  # Seconds; what never takes that long, even on a busy machine.

# Small, and any id below its vocabulary is a token.
MODEL = ('--model', 'random:')

# Slow enough that no machine is done with thousands of tokens meanwhile.
SLOW = ('--model', 'random:hidden=512,layers=8,context=8192')


class Server:
    """`folio serve` on a free port."""

    def __init__(self, *args):
        self.process = subprocess.Popen(
            [folio, 'serve', '--listen', '127.0.0.1:0', *args],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.target = 'folio://' + re.fullmatch(r'listening on (\S+)\n',
                                                line)[1]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def total(run, key):
    return next(t['value'] for t in run['totals'] if t['key'] == key)


class LoadTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def serve(self, *args):
        server = Server(*args)
        self.addCleanup(server.kill)
        return server

    def load(self, *args, code=0):
        """Its stdout and stderr."""
        done = subprocess.run([folio_load, *args], capture_output=True,
                              text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def runs(self, *args):
        """What a load writes as JSON."""
        self.load(*args, '--json', self.path('runs.json'))
        with open(self.path('runs.json')) as file:
            document = json.load(file)
        self.assertEqual(document['format'], 'folio-load 1')
        return document['runs']

    def run_of(self, *args):
        runs = self.runs(*args)
        self.assertEqual(len(runs), 1)
        return runs[0]

    # What is measured.

    def check_complete(self, run, count):
        requests = run['requests']
        self.assertTrue(run['complete'])
        self.assertEqual(run['statuses'], {'OK': count})
        self.assertEqual(total(run, 'requests'), count)
        self.assertEqual(total(run, 'served'), count)
        self.assertEqual(total(run, 'output_tokens'),
                         sum(requests['output_tokens']))
        for i in range(count):
            self.assertEqual(len(requests['gaps'][i]),
                             requests['output_tokens'][i] - 1)
            self.assertGreater(requests['first_token_ms'][i], 0)
            self.assertGreaterEqual(requests['end_ms'][i],
                                    requests['first_token_ms'][i])

    def check_batches(self, run):
        batches = run['batches']
        columns = batches['columns']
        self.assertEqual(batches['dropped'], 0)
        # Each prompt is computed once; each token but a request's last one
        # goes through the model again.
        requests = run['requests']
        computed = sum(columns['prefill_tokens']) + sum(
            columns['decode_tokens'])
        self.assertEqual(computed, sum(requests['prompt_tokens']) + sum(
            requests['output_tokens']) - len(requests['name']))
        pages = batches['pool']['pages_total']
        for free, in_use, cached in zip(columns['pages_free'],
                                        columns['pages_in_use'],
                                        columns['pages_cached']):
            self.assertEqual(free + in_use + cached, pages)
        for page_map in batches['maps']:
            for name, _, _, _ in page_map['sequences']:
                self.assertIn(name, requests['name'])

    SMALL = ('--requests', '20', '--prompt-tokens', 'uniform:5-50',
             '--output-tokens', 'uniform:2-20')

    def test_same_load_on_each_kind_of_folio_target(self):
        target = self.serve(*MODEL, '--no-prefix-cache').target
        served = self.run_of('--target', target, *self.SMALL)
        inproc = self.run_of('--target', 'inproc:', *MODEL,
                             '--no-prefix-cache', *self.SMALL)
        for run in (served, inproc):
            self.check_complete(run, 20)
            self.check_batches(run)
            self.assertIn('queue', [d['key'] for d in run['distributions']])
        for column in ('prompt_tokens', 'output_tokens', 'arrival_ms'):
            self.assertEqual(served['requests'][column],
                             inproc['requests'][column])

    def test_seed_makes_the_load(self):
        def lengths(seed):
            run = self.run_of('--target', 'inproc:', *MODEL, *self.SMALL,
                              '--seed', seed)
            self.assertEqual(run['seed'], int(seed))
            return run['requests']['prompt_tokens']
        self.assertEqual(lengths('5'), lengths('5'))
        self.assertNotEqual(lengths('5'), lengths('6'))

    def test_conversations_send_their_history(self):
        target = self.serve(*MODEL).target
        run = self.run_of('--target', target, '--requests', '6', '--turns',
                          '3', '--prompt-tokens', '10', '--output-tokens',
                          '7', '--think-ms', '5')
        self.check_complete(run, 6)
        self.assertEqual(sorted(run['requests']['prompt_tokens']),
                         [10, 10, 27, 27, 44, 44])

    def test_default_lengths_fit_the_context(self):
        run = self.run_of('--target', 'inproc:', '--model',
                          'random:context=256', '--requests', '100')
        self.check_complete(run, 100)
        self.assertLessEqual(max(run['requests']['prompt_tokens']), 128)
        self.assertGreater(max(run['requests']['output_tokens']), 100)

    def test_warns_of_requests_that_do_not_fit(self):
        _, err = self.load('--target', 'inproc:', '--model',
                           'random:context=256', '--requests', '2',
                           '--prompt-tokens', '200', '--output-tokens', '100')
        self.assertIn('2 of 2 requests are longer than', err)

    def test_samples(self):
        target = self.serve(*MODEL).target
        run = self.run_of('--target', target, '--requests', '4', '--n', '3',
                          '--prompt-tokens', '10', '--output-tokens', '6')
        self.assertEqual(run['requests']['output_tokens'], [18] * 4)
        self.assertEqual([len(gaps) for gaps in run['requests']['gaps']],
                         [15] * 4)

    def test_cancels_and_deadlines_are_no_failures(self):
        target = self.serve(*SLOW).target
        self.load('--target', target, '--requests', '20', '--prompt-tokens',
                  '10', '--output-tokens', '3000', '--cancel-share', '0.5',
                  '--cancel-within', '1s', '--deadline-share', '1',
                  '--deadline', '1500ms', '--json', self.path('runs.json'),
                  code=1)  # Nobody was served.
        with open(self.path('runs.json')) as file:
            run = json.load(file)['runs'][0]
        self.assertEqual(total(run, 'failed'), 0)
        self.assertEqual(total(run, 'ended_as_asked'), 20)
        self.assertEqual(set(run['statuses']),
                         {'CANCELLED', 'DEADLINE_EXCEEDED'})

    def test_texts_and_tenants_of_a_trace(self):
        with open(self.path('trace'), 'w') as file:
            for i in range(4):
                file.write(json.dumps({
                    'arrival_s': 0.01 * i, 'output_tokens': 3,
                    'prompt': 'In the beginning', 'tenant': f't{i % 2}'})
                    + '\n')
        target = self.serve().target
        run = self.run_of('--target', target, '--trace', self.path('trace'))
        self.assertEqual(run['requests']['tenant'], ['t0', 't1', 't0', 't1'])
        self.assertEqual(run['requests']['arrival_ms'], [0, 10, 20, 30])
        self.assertEqual(run['requests']['output_tokens'], [3] * 4)
        self.check_complete(run, 4)

    def test_written_trace_is_the_load(self):
        trace = self.path('trace')
        made = self.run_of('--target', 'inproc:', *MODEL, *self.SMALL,
                           '--rate', '200', '--write-trace', trace)
        replayed = self.run_of('--target', 'inproc:', *MODEL, '--trace',
                               trace)
        for column in ('prompt_tokens', 'output_tokens', 'arrival_ms'):
            self.assertEqual(made['requests'][column],
                             replayed['requests'][column])

    def test_a_thousand_open_streams(self):
        target = self.serve(*MODEL).target
        run = self.run_of('--target', target, '--requests', '1000',
                          '--prompt-tokens', '4', '--output-tokens', '4')
        self.check_complete(run, 1000)

    def test_two_loads_at_once_do_not_meet(self):
        target = self.serve(*MODEL).target
        both = [subprocess.Popen(
            [folio_load, '--target', target, *self.SMALL, '--json',
             self.path(str(i))], stdout=subprocess.DEVNULL) for i in range(2)]
        for i, process in enumerate(both):
            self.assertEqual(process.wait(TIMEOUT), 0)
            with open(self.path(str(i))) as file:
                self.check_complete(json.load(file)['runs'][0], 20)

    def test_cancels_do_not_wait_for_slow_readers(self):
        target = self.serve(*MODEL).target
        start = time.monotonic()
        self.load('--target', target, '--requests', '4', '--output-tokens',
                  '100', '--prompt-tokens', '5', '--slow-reader-share', '1',
                  '--read-delay', '1h', '--cancel-share', '1',
                  '--cancel-within', '100ms', code=1)
        self.assertLess(time.monotonic() - start, TIMEOUT)

    def test_long_conversations_that_fail_at_once(self):
        target = self.serve(*MODEL).target
        run = self.load('--target', target, '--requests', '200000', '--turns',
                        '200000', '--prompt-tokens', '100000',
                        '--output-tokens', '1', code=1)
        self.assertIn('no request was served', run[1])

    def test_server_that_drains_is_told(self):
        server = self.serve(*SLOW)
        process = self.start_slow_run(server)
        server.process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 1, out + err)
        self.assertRegex(err, 'broke off|was not there for')

    def test_sweep_names_the_highest_rate(self):
        out, _ = self.load('--target', 'inproc:', *MODEL, *self.SMALL,
                           '--sweep', 'rate=100:300:100', '--goodput',
                           'e2e:100000', '--json', self.path('sweep.json'),
                           '--report', self.path('sweep.html'))
        self.assertIn('The highest value at which 90% of the requests kept '
                      'the limits: rate=300', out)
        with open(self.path('sweep.json')) as file:
            runs = json.load(file)['runs']
        self.assertEqual([run['offered_rate'] for run in runs],
                         [100, 200, 300])
        # None has its prompts from the one before.
        self.assertEqual([total(run, 'cached_input_tokens') for run in runs],
                         [0, 0, 0])

    def test_compares_runs_of_files(self):
        for name in ('a', 'b'):
            self.load('--target', 'inproc:', *MODEL, *self.SMALL, '--name',
                      name, '--json', self.path(name))
        out, _ = self.load('--compare', self.path('a'), self.path('b'),
                           '--report', self.path('both.html'))
        self.assertRegex(out, r'(?m)^a +20 ')
        self.assertRegex(out, r'(?m)^b +20 ')
        self.assertGreater(os.path.getsize(self.path('both.html')), 10000)

    # What goes wrong.

    def assert_error(self, args, *words, code=1):
        _, err = self.load(*args, code=code)
        self.assertRegex(err, r'\Afolio-load: .*\n\Z')
        for word in words:
            self.assertIn(word, err)

    def test_unreachable_targets(self):
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        for target in (f'folio://127.0.0.1:{port}',
                       f'openai://127.0.0.1:{port}/v1'):
            self.assert_error(('--target', target), f'127.0.0.1:{port}',
                              'check')

    def test_impossible_flags(self):
        target = ('--target', 'inproc:')
        for args, words in (
                ((*target, '--rate', '0'), ['--rate']),
                ((*target, '--rate', 'nan'), ['--rate']),
                ((*target, '--requests', '0'), ['--requests']),
                ((*target, '--prompt-tokens', 'uniform:9-2'),
                 ['--prompt-tokens', '9-2']),
                ((*target, '--sweep', 'rate=8:1:1'), ['--sweep', '8:1:1']),
                ((*target, '--goodput', 'ttft:-1'), ['--goodput', 'ttft:-1']),
                ((*target, '--cancel-share', '1.5'), ['--cancel-share']),
                ((*target, 'more'), ['more'])):
            with self.subTest(args):
                self.assert_error(args, *words, '--help', code=2)
        for args, words in (
                ((), ['--target']),
                (('--target', 'http://x'), ['http://x', 'folio://']),
                (('--target', 'folio://x:1', *MODEL), ['--model', 'inproc:']),
                ((*target, '--slow-reader-share', '0.5'), ['inproc:']),
                ((*target, '--rate', '1', '--concurrency', '2'),
                 ['rate', 'concurrency']),
                ((*target, '--burstiness', '2'), ['--rate']),
                (('--target', 'openai://x:1/v1', '--tls-ca', 'ca'),
                 ['--tls-ca', 'openai://x:1/v1']),
                ((*target, '--trace', 'x', '--requests', '5'),
                 ['--trace', '--requests']),
                (('--compare', 'x', '--rate', '5'), ['--compare', '--rate']),
                ((*target, '--json', 'x', '--report', 'x'),
                 ['--json', '--report'])):
            with self.subTest(args):
                self.assert_error(args, *words, code=2)

    def test_broken_files(self):
        trace = self.path('trace')
        with open(trace, 'w') as file:
            file.write('{"arrival_s": 0, "prompt_tokens": 1, '
                       '"output_tokens": 1, "token_seed": 1}\n{"arrival_s"\n')
        self.assert_error(('--target', 'inproc:', '--trace', trace),
                          f'{trace}:2')
        for nested in ('{"arrival_s": ' + '[' * 200000, '[' * 200000):
            with open(trace, 'w') as file:
                file.write(nested)
            self.assert_error(('--target', 'inproc:', '--trace', trace),
                              f'{trace}:1')
        self.assert_error(('--target', 'inproc:', '--trace', self.folder),
                          self.folder)
        self.assert_error(('--target', 'inproc:', '--trace',
                           self.path('none')), self.path('none'))
        self.assert_error(('--compare', trace), trace, 'folio-load --json')
        self.assert_error(
            ('--target', 'inproc:', *MODEL, '--requests', '1', '--json',
             self.path('no/such/folder')), self.path('no/such/folder'))

    def start_slow_run(self, server):
        """A run that has served a request, and has more than it can do."""
        with open(self.path('trace'), 'w') as file:
            for i in range(40):
                file.write(json.dumps({
                    'arrival_s': 0 if i < 8 else 0.5 * i,
                    'prompt_tokens': 5, 'token_seed': i,
                    'output_tokens': 1 if i == 0 else 4000}) + '\n')
        process = subprocess.Popen(
            [folio_load, '--target', server.target, '--trace',
             self.path('trace'), '--json', self.path('runs.json'),
             '--report', self.path('run.html')],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        # (Long enough for the first one, and not for the others.)
        time.sleep(3)
        return process

    def check_broken_off(self, process, *words):
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 1, out + err)
        self.assertIn('the run broke off', err)
        for word in (*words, self.path('runs.json'), self.path('run.html')):
            self.assertIn(word, err)
        with open(self.path('runs.json')) as file:
            run = json.load(file)['runs'][0]
        self.assertFalse(run['complete'])
        self.assertEqual(run['statuses']['OK'], 1)
        self.assertGreater(run['statuses']['ABORTED'], 10)
        self.assertEqual(sum(run['statuses'].values()), 40)
        self.assertGreater(total(run, 'output_tokens'), 1)
        self.assertIn('the run broke off', out)

    def test_server_dies_in_the_middle(self):
        server = self.serve(*SLOW)
        process = self.start_slow_run(server)
        server.process.send_signal(signal.SIGKILL)
        self.check_broken_off(process, server.target)

    def test_interrupted(self):
        server = self.serve(*SLOW)
        process = self.start_slow_run(server)
        process.send_signal(signal.SIGINT)
        self.check_broken_off(process, 'interrupted')


if __name__ == '__main__':
    folio, folio_load = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
