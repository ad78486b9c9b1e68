#!/usr/bin/python3
"""A client in another language against `folio serve`, over the wire.

Usage: wire_test.py FOLIO (with the generated stubs in PYTHONPATH)

The reflection service of gRPC 1.51 is v1alpha; its messages are those of v1,
the one that grpc-proto defines, so v1's classes speak it under the other name.
"""

import concurrent.futures
import math
import subprocess
import sys
import time
import unittest

import grpc
from wire_client import Server, TIMEOUT, tokens_of

from folio.v1 import generation_pb2 as generation
from folio.v1 import generation_pb2_grpc as generation_grpc
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
        self.assertEqual(memory.pages_free + memory.pages_cached,
                         memory.pages_total)

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
        for n in (0, -1, 33, 2**31 - 1):
            self.assert_refused(invalid, f'n is {n};', '1 to 32', text='a', n=n)
        for priority in (-101, 101, -2**31):
            self.assert_refused(invalid, f'priority is {priority};',
                                '-100 to 100', text='a', priority=priority)
        self.assert_refused(invalid, 'tenant has 257 bytes', '256', text='a',
                            tenant='x' * 257)
        self.assert_refused(grpc.StatusCode.NOT_FOUND, "'other'", 'random:',
                            text='a', model='other')


class Sample:
    """What a client has of one sample."""

    def __init__(self):
        self.tokens, self.scored, self.text = [], [], ''
        self.finish_reason = generation.FINISH_REASON_UNSPECIFIED

    def add(self, response):
        # Nothing comes after the end.
        assert self.finish_reason == generation.FINISH_REASON_UNSPECIFIED
        self.tokens += response.token_ids
        self.scored += [(s.token_id, s.logprob) for s in response.logprobs]
        self.text += response.text
        self.finish_reason = response.finish_reason


def samples_of(responses):
    samples = {}
    for response in responses:
        samples.setdefault(response.sample_index, Sample()).add(response)
    return [vars(samples[index]) for index in sorted(samples)]


class SamplesTest(ServerTestCase):
    """Several samples of one prompt are what each would be alone."""

    PROMPT = 'One prompt that takes more than a page of the pool, '

    def request(self, seed, **fields):
        # The seed of the last samples may be past the greatest one.
        fields['sampling'] = generation.SamplingParams(
            temperature=1, seed=seed % 2**64, logprobs=20)
        return generation.GenerateRequest(text=self.PROMPT, ignore_eos=True,
                                          **fields)

    def alone(self, seed, max_tokens):
        responses = list(self.server.generation.Generate(
            self.request(seed, max_tokens=max_tokens), timeout=TIMEOUT))
        (sample,) = samples_of(responses)
        return sample

    def assert_complete(self, responses, seed, max_tokens):
        self.assertEqual(samples_of(responses),
                         [self.alone(seed + i, max_tokens) for i in range(4)])
        self.assertEqual([r.HasField('usage') for r in responses],
                         [False] * (len(responses) - 1) + [True])
        usage = responses[-1].usage
        self.assertEqual(usage.prompt_tokens, len(self.PROMPT))
        self.assertEqual(usage.generated_tokens, 4 * max_tokens)
        self.assertEqual(responses[0].seed, seed)

    def test_four_samples_are_four_seeds_alone(self):
        for seed in (7, 2**64 - 2):
            responses = list(self.server.generation.Generate(
                self.request(seed, n=4, max_tokens=40), timeout=TIMEOUT))
            self.assert_complete(responses, seed, 40)
            self.assertEqual(
                len({tuple(s['tokens']) for s in samples_of(responses)}), 4)

    def test_a_slow_reader_gets_the_same(self):
        # Some 250 bytes a token are far more than this channel takes in while
        # nobody reads, so that responses of all four gather.
        channel = grpc.insecure_channel(self.server.address, options=[
            ('grpc.use_local_subchannel_pool', 1), ('grpc.http2.bdp_probe', 0),
            ('grpc.http2.lookahead_bytes', 1 << 16)])
        call = generation_grpc.GenerationStub(channel).Generate(
            self.request(7, n=4, max_tokens=200), timeout=TIMEOUT)
        first = next(call)
        self.wait_until_free()  # All is computed.
        responses = [first, *call]
        channel.close()
        self.assertLess(len(responses), 2 * 200)
        self.assert_complete(responses, 7, 200)

    def test_a_stop_token_ends_its_sample_only(self):
        seed, max_tokens = 7, 40
        free = [self.alone(seed + i, max_tokens)['tokens'] for i in range(4)]
        stop = free[2][3]
        request = self.request(seed, n=4, max_tokens=max_tokens,
                               stop_token_ids=[stop])
        samples = samples_of(self.server.generation.Generate(request,
                                                             timeout=TIMEOUT))
        for sample, tokens in zip(samples, free):
            ends = stop in tokens
            length = tokens.index(stop) + 1 if ends else max_tokens
            self.assertEqual(sample['tokens'], tokens[:length])
            self.assertEqual(sample['finish_reason'],
                             generation.FINISH_REASON_STOP if ends else
                             generation.FINISH_REASON_LENGTH)

    def test_samples_share_the_prompt(self):
        call = self.server.introspection.WatchBatches(
            introspection.WatchBatchesRequest(), timeout=TIMEOUT)
        call.initial_metadata()
        list(self.server.generation.Generate(
            self.request(7, n=4, max_tokens=3), timeout=TIMEOUT))
        report = next(call)  # The first step computes the prompt, once for all.
        while len(report.memory.sequences) < 4:
            report = next(call)
        call.cancel()
        memory = report.memory
        self.assertEqual({s.sample_index for s in memory.sequences},
                         {0, 1, 2, 3})
        full_pages = len(self.PROMPT) // memory.page_size
        self.assertGreaterEqual(memory.pages_shared, full_pages)
        self.assertGreaterEqual(memory.duplicate_pages_saved, 3 * full_pages)
        self.assertEqual(memory.shared_saved_bytes,
                         memory.duplicate_pages_saved * memory.page_bytes)


class TenantTest(ServerTestCase):

    server_args = ('--model', 'random:hidden=512,layers=8,context=8192',
                   '--max-tenant-requests', '1')

    def usage(self, **fields):
        return self.server.generate(max_tokens=1, **fields)[-1].usage

    def test_cached_prompts_are_for_the_same_tenant(self):
        prompt = 'A prompt that this server has not seen before. ' * 2
        first, again, other = [self.usage(text=prompt, tenant=tenant)
                               for tenant in ('a', 'a', 'b')]
        self.assertEqual(first.cached_tokens, 0)
        # Full pages, and at least one token is left to compute.
        self.assertEqual(again.cached_tokens, (len(prompt) - 1) // 16 * 16)
        self.assertEqual(other.cached_tokens, 0)
        for usage in (first, again, other):
            self.assertEqual(usage.peak_pages, -(-len(prompt) // 16))
            self.assertGreater(usage.prefill_duration.ToNanoseconds(), 0)
            self.assertGreater(usage.queue_duration.ToNanoseconds(), 0)
        # Half a prompt is found, too.
        half = self.usage(text=prompt[:40] + '!', tenant='a')
        self.assertEqual(half.cached_tokens, 32)

    def test_one_tenant_has_so_many_requests_at_most(self):
        call = self.server.generation.Generate(
            generation.GenerateRequest(text='x', tenant='many',
                                       ignore_eos=True), timeout=TIMEOUT)
        next(call)  # It would go on for minutes.
        self.assert_refused(grpc.StatusCode.RESOURCE_EXHAUSTED,
                            'this tenant has 1', text='y',
                            tenant='many')
        self.usage(text='y', tenant='other')
        self.usage(text='y')
        call.cancel()
        self.wait_until_free()
        self.usage(text='y', tenant='many')


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

    # Fault 33 of those that wire_fault_test.cc is about.

    def test_fault33_special_tokens_only_when_asked_for(self):
        (end,) = self.tokenize('<|end|>', parse_special=True)
        self.assertGreater(len(self.tokenize('<|end|>')), 1)
        self.assertEqual(self.detokenize([end]), '')
        (begin,) = self.tokenize('', add_special=True)
        self.assertEqual(self.tokenize('x', add_special=True),
                         [begin] + self.tokenize('x'))

    def test_fault33_generate_takes_the_same_tokens(self):
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

    def test_fault33_long_runs_of_one_letter(self):
        for letter in 'e', ' ', '\n', '\u00e9', '\U0001f999':
            text = letter * 100000
            self.assertEqual(self.detokenize(self.tokenize(text)), text)
        # Whole, or not at all.
        ids = self.tokenize('e' * 100000, add_special=True)
        self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT,
                            f'the prompt has {len(ids)} tokens',
                            text='e' * 100000)

    def test_fault33_text_that_is_not_utf8(self):
        # Python's own library would not send it.
        text = generation.GenerateRequest(text='a??').SerializeToString()
        bad = text.replace(b'??', b'\xc3(')
        generate = self.server.channel.unary_stream(
            '/folio.v1.Generation/Generate',
            response_deserializer=generation.GenerateResponse.FromString)
        with self.assertRaises(grpc.RpcError) as caught:
            list(generate(bad, timeout=TIMEOUT))
        self.assertEqual(caught.exception.code(),
                         grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn('UTF-8', caught.exception.details())

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
        self.assertEqual(memory.pages_free + memory.pages_cached,
                         memory.pages_total)
        self.assertEqual(memory.pages_in_use, 0)
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
