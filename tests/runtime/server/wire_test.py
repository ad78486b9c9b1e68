#!/usr/bin/python3
"""A client in another language against `folio serve`, over the wire.

Usage: wire_test.py FOLIO (with the generated stubs in PYTHONPATH)

The reflection service of gRPC 1.51 is v1alpha; its messages are those of v1,
the one that grpc-proto defines, so v1's classes speak it under the other name.
"""

import concurrent.futures
import math
import signal
import subprocess
import sys
import time
import unittest

import grpc
from wire_client import Server, TIMEOUT, tokens_of

from folio.v1 import generation_pb2 as generation
from folio.v1 import introspection_pb2 as introspection
from grpc.health.v1 import health_pb2 as health
from grpc.reflection.v1 import reflection_pb2 as reflection

folio = None  # The binary.


def text_of(responses):
    return ''.join(response.text for response in responses)


class ServerTestCase(unittest.TestCase):
    """One server for all tests of a class."""

    server_args = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(folio, *cls.server_args)

    @classmethod
    def tearDownClass(cls):
        cls.server.channel.close()
        code = cls.server.close()
        assert code == 0, f'the server exited with {code}'

    def wait_until_free(self):
        deadline = time.monotonic() + TIMEOUT
        while self.server.memory().pages_in_use > 0:
            self.assertLess(time.monotonic(), deadline, 'pages are not freed')
            time.sleep(0.005)
        memory = self.server.memory()
        self.assertEqual(memory.pages_free, memory.pages_total)

    def assert_refused(self, code, *parts, **fields):
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.generate(**fields)
        self.assertEqual(caught.exception.code(), code)
        for part in parts:
            self.assertIn(part, caught.exception.details())


class GenerateTest(ServerTestCase):
    server_args = ('--kv-pool', '8MiB')

    def test_streams_tokens_text_and_usage(self):
        responses = self.server.generate(text='Hello', max_tokens=20,
                                         request_id='hello')
        tokens = tokens_of(responses)
        self.assertEqual(len(tokens), 20)
        # The embedded model's tokens are the ASCII bytes.
        self.assertEqual(text_of(responses), bytes(tokens).decode('ascii'))
        self.assertEqual({r.request_id for r in responses}, {'hello'})
        self.assertTrue(responses[0].HasField('seed'))
        self.assertFalse(any(r.HasField('usage') for r in responses[:-1]))
        usage = responses[-1].usage
        self.assertEqual(usage.prompt_tokens, 5)
        self.assertEqual(usage.generated_tokens, 20)
        self.assertEqual(responses[-1].finish_reason,
                         generation.FINISH_REASON_LENGTH)

    def test_text_and_its_token_ids_are_the_same_prompt(self):
        from_text = self.server.generate(text='abc', max_tokens=10)
        from_ids = self.server.generate(
            token_ids=generation.TokenIds(ids=list(b'abc')), max_tokens=10)
        self.assertEqual(tokens_of(from_text), tokens_of(from_ids))

    def test_of_two_inputs_the_last_one_counts(self):
        # Messages one after the other are what their merged fields would be.
        generate = self.server.channel.unary_stream(
            '/folio.v1.Generation/Generate',
            response_deserializer=generation.GenerateResponse.FromString)
        ids = generation.TokenIds(ids=list(b'abc'))
        requests = [generation.GenerateRequest(text='Hello', max_tokens=10),
                    generation.GenerateRequest(token_ids=ids, max_tokens=10)]
        for first, last in (requests, requests[::-1]):
            both = first.SerializeToString() + last.SerializeToString()
            alone = self.server.generation.Generate(last, timeout=TIMEOUT)
            self.assertEqual(tokens_of(generate(both, timeout=TIMEOUT)),
                             tokens_of(alone))

    def test_seeds_repeat_and_differ(self):
        def sample(seed):
            return tokens_of(self.server.generate(
                text='abc', max_tokens=30,
                sampling=generation.SamplingParams(temperature=1, seed=seed)))
        self.assertEqual(sample(1), sample(1))
        self.assertNotEqual(sample(1), sample(2))

    def test_a_drawn_seed_can_be_used_again(self):
        sampling = generation.SamplingParams(temperature=1)
        drawn = self.server.generate(text='abc', max_tokens=30,
                                     sampling=sampling)
        sampling.seed = drawn[0].seed
        again = self.server.generate(text='abc', max_tokens=30,
                                     sampling=sampling)
        self.assertEqual(tokens_of(drawn), tokens_of(again))

    def test_logprobs(self):
        responses = self.server.generate(
            text='abcd', max_tokens=8,
            sampling=generation.SamplingParams(logprobs=20,
                                               prompt_logprobs=True))
        prompt = [s for r in responses for s in r.prompt_logprobs]
        self.assertEqual([s.token_id for s in prompt], list(b'bcd'))
        sampled = [s for r in responses for s in r.logprobs]
        self.assertEqual([s.token_id for s in sampled], tokens_of(responses))
        for scored in prompt + sampled:
            self.assertEqual(len(scored.top), 20)
            values = [top.logprob for top in scored.top]
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertLessEqual(sum(map(math.exp, values)), 1 + 1e-5)
        for scored in sampled:  # Greedy.
            self.assertEqual(scored.token_id, scored.top[0].token_id)
            self.assertEqual(scored.logprob, scored.top[0].logprob)

    def test_stop_tokens(self):
        free = tokens_of(self.server.generate(text='abc', max_tokens=20))
        stop = free[7]
        responses = self.server.generate(text='abc', max_tokens=20,
                                         stop_token_ids=[stop])
        self.assertEqual(tokens_of(responses),
                         free[:free.index(stop) + 1])
        self.assertEqual(responses[-1].finish_reason,
                         generation.FINISH_REASON_STOP)

    def test_output_does_not_depend_on_the_company(self):
        prompts = [f'prompt {i} ' * (i + 1) for i in range(8)]

        def run(prompt):
            responses = self.server.generate(
                text=prompt, max_tokens=40,
                sampling=generation.SamplingParams(logprobs=0))
            return [(s.token_id, s.logprob)
                    for r in responses for s in r.logprobs]
        alone = [run(prompt) for prompt in prompts]
        with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
            together = list(pool.map(run, prompts))
        self.assertEqual(alone, together)  # To the last bit.

    def test_many_dropped_clients(self):
        def run(i):
            call = self.server.generation.Generate(
                generation.GenerateRequest(text=f'{i}', max_tokens=100),
                timeout=TIMEOUT)
            if i % 3:
                return len(tokens_of(call))
            next(call)
            call.cancel()
            return None
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            lengths = list(pool.map(run, range(60)))
        self.assertEqual([n for n in lengths if n is not None], [100] * 40)
        self.wait_until_free()

    def test_errors_name_the_field(self):
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        sampling = generation.SamplingParams
        self.assert_refused(invalid, 'input', 'text', 'token_ids')
        self.assert_refused(
            invalid, 'token_ids[1] is 128', '0 to 127',
            token_ids=generation.TokenIds(ids=[1, 128]))
        self.assert_refused(invalid, '0xc3', 'offset 3', text='caf\u00e9')
        self.assert_refused(invalid, 'sampling.temperature is nan', text='a',
                            sampling=sampling(temperature=math.nan))
        self.assert_refused(invalid, 'sampling.logprobs is 21', '0 to 20',
                            text='a', sampling=sampling(logprobs=21))
        self.assert_refused(invalid, 'max_tokens is -5', text='a',
                            max_tokens=-5)
        self.assert_refused(invalid, 'stop_token_ids[0] is -1', text='a',
                            stop_token_ids=[-1])
        self.assert_refused(invalid, 'n is 3', text='a', n=3)
        self.assert_refused(grpc.StatusCode.NOT_FOUND, "'other'", 'random:',
                            text='a', model='other')


class TokenizeTest(ServerTestCase):
    """The embedded model's tokenizer."""

    server_args = ('--model', '')

    def tokenize(self, text, **fields):
        return list(self.server.generation.Tokenize(
            generation.TokenizeRequest(text=text, **fields),
            timeout=TIMEOUT).ids)

    def detokenize(self, ids):
        return self.server.generation.Detokenize(
            generation.DetokenizeRequest(ids=ids), timeout=TIMEOUT).text

    def test_there_and_back(self):
        for text in ('', 'And it came to pass', 'caf\u00e9 \U0001f999\n\t',
                     '<|end|>'):
            self.assertEqual(self.detokenize(self.tokenize(text)), text)

    def test_special_tokens_only_when_asked_for(self):
        (end,) = self.tokenize('<|end|>', parse_special=True)
        self.assertGreater(len(self.tokenize('<|end|>')), 1)
        self.assertEqual(self.detokenize([end]), '')
        (begin,) = self.tokenize('', add_special=True)
        self.assertEqual(self.tokenize('x', add_special=True),
                         [begin] + self.tokenize('x'))

    def test_generate_takes_the_same_tokens(self):
        for parse_special in (False, True):
            text = 'And<|end|> he'
            ids = self.tokenize(text, add_special=True,
                                parse_special=parse_special)
            usage = self.server.generate(text=text, max_tokens=1,
                                         parse_special=parse_special)[-1].usage
            self.assertEqual(usage.prompt_tokens, len(ids))
            self.assertEqual(
                tokens_of(self.server.generate(text=text, max_tokens=8,
                                               parse_special=parse_special)),
                tokens_of(self.server.generate(
                    token_ids=generation.TokenIds(ids=ids), max_tokens=8)))

    def test_ids_outside_the_vocabulary_are_refused(self):
        for ids in ([1, -1], [1, 1 << 30]):
            with self.assertRaises(grpc.RpcError) as caught:
                self.detokenize(ids)
            self.assertEqual(caught.exception.code(),
                             grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn(f'ids[1] is {ids[1]}', caught.exception.details())


class IntrospectionTest(ServerTestCase):

    def test_reports_add_up_and_name_the_request(self):
        call = self.server.introspection.WatchBatches(
            introspection.WatchBatchesRequest(), timeout=TIMEOUT)
        call.initial_metadata()  # From now on, every batch is reported.
        self.server.generate(text='x' * 20, max_tokens=5, request_id='mine')
        last_step = 0
        for report in call:
            self.assertEqual(report.step, last_step + 1)
            last_step = report.step
            memory = report.memory
            self.assertEqual(memory.pages_total, memory.pages_free +
                             memory.pages_in_use + memory.pages_cached)
            self.assertEqual(memory.pool_bytes, memory.remainder_bytes +
                             memory.pages_total * memory.page_bytes)
            self.assertEqual(memory.reserved_bytes,
                             memory.holding_bytes + memory.waste_bytes)
            (sequence,) = memory.sequences
            self.assertEqual(sequence.request_id, 'mine')
            self.assertEqual(sequence.tokens, 20 + last_step - 1)
            self.assertEqual(memory.tokens_held, sequence.tokens)
            if last_step == 5:
                break
        call.cancel()

    def test_memory_report_of_an_idle_server(self):
        memory = self.server.memory()
        self.assertEqual(memory.pages_free, memory.pages_total)
        self.assertEqual(memory.page_size, 16)
        self.assertEqual(len(memory.sequences), 0)

    def test_health(self):
        for service in ('', 'folio.v1.Generation', 'folio.v1.Introspection'):
            response = self.server.health.Check(
                health.HealthCheckRequest(service=service), timeout=TIMEOUT)
            self.assertEqual(response.status,
                             health.HealthCheckResponse.SERVING)
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.health.Check(health.HealthCheckRequest(service='none'),
                                     timeout=TIMEOUT)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_reflection_describes_every_service(self):
        ask = self.server.channel.stream_stream(
            '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
            request_serializer=(
                reflection.ServerReflectionRequest.SerializeToString),
            response_deserializer=(
                reflection.ServerReflectionResponse.FromString))

        def answer(**fields):
            request = reflection.ServerReflectionRequest(**fields)
            (response,) = ask(iter([request]), timeout=TIMEOUT)
            return response
        listed = answer(list_services='').list_services_response.service
        names = {service.name for service in listed}
        self.assertEqual(names, {
            'folio.v1.Generation', 'folio.v1.Introspection',
            'grpc.health.v1.Health',
            'grpc.reflection.v1alpha.ServerReflection'})
        for name in names:
            response = answer(file_containing_symbol=name)
            files = response.file_descriptor_response.file_descriptor_proto
            self.assertTrue(files, f'{name}: {response.error_response}')
            short_name = name.rsplit('.', 1)[1].encode()
            self.assertTrue(any(short_name in file for file in files))


class EndTest(ServerTestCase):
    """Requests that end before they have all their tokens."""

    # Slow enough that no machine is done in time.
    server_args = ('--model', 'random:hidden=512,layers=8,context=8192')

    def test_deadline(self):
        start = time.monotonic()
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.server.generation.Generate(
                generation.GenerateRequest(text='a', ignore_eos=True),
                timeout=0.3))
        self.assertEqual(caught.exception.code(),
                         grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertLess(time.monotonic() - start, TIMEOUT / 2)
        self.wait_until_free()

    def test_cancelling_frees_the_memory(self):
        call = self.server.generation.Generate(
            generation.GenerateRequest(text='abc', ignore_eos=True))
        next(call)
        call.cancel()
        with self.assertRaises(grpc.RpcError):
            for _ in call:
                pass
        self.assertEqual(call.code(), grpc.StatusCode.CANCELLED)
        self.wait_until_free()


class LifeTest(unittest.TestCase):
    """Each test has a server of its own, and ends it."""

    def test_sigterm_lets_live_requests_finish(self):
        server = Server(folio)
        call = server.generation.Generate(
            generation.GenerateRequest(text='a', max_tokens=200))
        first = next(call)
        server.process.send_signal(signal.SIGTERM)
        tokens = tokens_of([first, *call])
        self.assertEqual(len(tokens), 200)
        self.assertEqual(call.code(), grpc.StatusCode.OK)
        server.channel.close()
        self.assertEqual(server.process.wait(TIMEOUT), 0)
        server.process.stdout.close()

    def test_a_busy_port_is_an_error_that_names_it(self):
        server = Server(folio)
        second = subprocess.run(
            [folio, 'serve', '--listen', server.address], timeout=TIMEOUT,
            capture_output=True, text=True)
        self.assertNotEqual(second.returncode, 0)
        self.assertIn(server.address, second.stderr)
        server.channel.close()
        self.assertEqual(server.close(), 0)


class TerminalTest(unittest.TestCase):

    def test_a_request_id_moves_no_cursor(self):
        server = Server(folio, '--model',
                        'random:hidden=512,layers=8,context=8192')
        stream = server.generation.Generate(generation.GenerateRequest(
            text='x', request_id='a\x1b[2J\n\x9bb\u00e9'))
        next(stream)  # It would go on for minutes.
        table = subprocess.run(
            [folio, 'memory', '--server', server.address], check=True,
            stdout=subprocess.PIPE, timeout=TIMEOUT).stdout.decode()
        stream.cancel()
        server.channel.close()
        self.assertEqual(server.close(), 0)
        self.assertIn('\na\\x1b[2J\\x0a\\xc2\\x9bb\u00e9 ', table)


if __name__ == '__main__':
    folio = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
