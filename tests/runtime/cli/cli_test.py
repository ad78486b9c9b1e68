"""The commands of `folio`, on a small model whose tokens are bytes.

Usage: cli_test.py FOLIO INTROSPECTION_PROTO
"""

import hashlib
import json
import os
import re
import signal
import struct
import sys
import tempfile
import time
import unittest

from folio_binary import Folio, Server, Terminal, TIMEOUT_SECONDS

COMMANDS = ("serve", "generate", "memory", "inspect", "tokenize", "token",
            "bench")
PROMPT = "Where is every byte of this?"
LOGPROBS = ("--logprobs", "3", "--prompt-logprobs")
# A request without a limit takes this one very long.
SLOW = ("--model", "random:hidden=512,layers=8,context=8192")
# Making this one takes seconds.
SLOW_TO_LOAD = ("--model", "random:vocab=50257,hidden=1024,heads=16,layers=12")

folio = None
proto_path = None


def generate(*args):
    return folio.json_lines("generate", *args)


def counts_of(last):
    """The last object of `generate --json`, without what differs each time."""
    usage = {name: value for name, value in last["usage"].items()
             if not name.endswith("_duration")}
    return {**last, "usage": usage}


def fields_of(message):
    """Names of a message's fields, as the .proto files have them."""
    folder = os.path.dirname(proto_path)
    text = ""
    for name in ("generation", "introspection"):
        with open(os.path.join(folder, name + ".proto"),
                  encoding="utf-8") as file:
            text += file.read()
    body = re.search(rf"^message {message} {{\n(.*?)^}}", text, re.M | re.S)[1]
    body = re.sub(r"//.*", "", body)
    return re.findall(r"(\w+) = \d+;", body)


def interrupt(process):
    """Returns the exit status."""
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_SECONDS)
    return process.returncode


def catches(process, sig):
    """Whether the process has a handler for the signal."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        caught = re.search(r"^SigCgt:\s*(\w+)$", file.read(), re.M)[1]
    return int(caught, 16) >> (sig - 1) & 1 == 1


class HelpTest(unittest.TestCase):
    def test_every_command_has_help_with_examples(self):
        for command in [(), *((name,) for name in COMMANDS)]:
            result = folio.run(*command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertEqual(result.stderr, "")
            example = " ".join(("  folio", *command))
            self.assertIn("Examples:\n" + example, result.stdout)

    def test_version(self):
        result = folio.run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"\Afolio \d+\.\d+\.\d+\n\Z")

    def test_help_names_every_command(self):
        text = folio.run("--help").stdout
        for command in COMMANDS:
            self.assertRegex(text, rf"\n  {command} +\w")


class ErrorTest(unittest.TestCase):
    def assert_refused(self, args, status, needle):
        result = folio.run(*args)
        self.assertEqual(result.returncode, status, (args, result.stderr))
        self.assertEqual(result.stdout, "", args)
        self.assertRegex(result.stderr, r"\Afolio: [^\n]+\n\Z", args)
        self.assertIn(needle, result.stderr, args)

    def test_unknown_flags_are_refused(self):
        for args in [("serve",), ("generate", "--prompt", "x"),
                     ("memory", "--server", "127.0.0.1:1"), ("bench",)]:
            self.assert_refused((*args, "--bogus"), 2, "--bogus")
        self.assert_refused(("--bogus",), 2, "")
        for word in ("gen", "help"):
            self.assert_refused((word, "--prompt", "x"), 2,
                                f"'{word}' is not a command; the commands are "
                                "serve, generate, memory, inspect, tokenize, "
                                "token, bench ")
        self.assert_refused(("serve", "80", "--port"), 2,
                            "not expected: 80 --port ")

    def test_usage(self):
        here = ("generate", "--prompt", "x")
        there = (*here, "--server", "127.0.0.1:1")
        for args, needle in [
                ((), "folio --help"),
                (("generate",), "--prompt"),
                ((*here, "--token-ids", "1"), "--token-ids"),
                (("generate", "--token-ids", "1,b,3"), "'b'"),
                (("generate", "--token-ids", "1,"), "''"),
                (("generate", "--token-ids", "4294967296"), "4294967296"),
                ((*here, "--kv-pool", "256 MiB"), "--kv-pool"),
                # A shell's variable that is not set must open no doors.
                (("serve", "--token-file", ""), "--token-file"),
                (("serve", "--tls-client-ca", ""), "--tls-client-ca"),
                (("serve", "--admin-listen", ""), "--admin-listen"),
                ((*there, "--token-file", ""), "--token-file"),
                ((*here, "--seed", "-1"), "--seed"),
                ((*here, "--seed", "18446744073709551616"), "--seed"),
                ((*here, "--max-tokens", "many"), "--max-tokens"),
                ((*here, "--threads", "0"), "--threads"),
                ((*here, "--weights-dtype", "f16"), "auto, f32, bf16"),
                ((*here, "--kv-dtype", "int3"), "auto, f32, bf16"),
                (("inspect", "--layers", "2"), "--kv-heads"),
                (("inspect", "m", "--layers", "2", "--kv-heads", "1",
                  "--head-dim", "8"), "not both"),
                ((*here, "--max-batch-tokens", "2000000000"), "1048576"),
                ((*here, "--max-batch-sequences", "0"), "65536"),
                ((*there, "--no-cache"), "--no-cache"),
                ((*there, "--model", "folder"), "--model"),
                ((*there, "--page-size", "8"), "--page-size"),
                (("memory",), "--server"),
                (("memory", "--server", ""), "--server"),
                (("memory", "--server", "nowhere"), "'nowhere'"),
                ((*here, "--server", "127.0.0.1:0"), "from 1 to 65535"),
                ((*here, "--server", "::1:80"), "'::1:80'"),
                (("serve", "--listen", "nowhere"), "'nowhere'"),
                (("serve", "--listen", "127.0.0.1:65536"), "0 to 65535"),
                (("serve", "--policy", "lifo"), "fcfs,priority,fair"),
                (("serve", "--target-itl", "50"), "such as 50ms"),
                (("serve", "--target-itl", "-1s"), "above zero"),
                (("serve", "--priority-ageing", "0s"), "above zero"),
                (("serve", "--max-prefill-share", "0"), "--max-prefill-share"),
                (("serve", "--max-prefill-share", "1.5"), "1.5"),
                (("serve", "--watermark", "-1"), "--watermark"),
                (("serve", "--watermark", "1.5"), "--watermark"),
                (("serve", "--max-waiting-requests", "-1"),
                 "--max-waiting-requests"),
                (("serve", "--max-waiting-tokens", "-1"),
                 "--max-waiting-tokens"),
                (("serve", "--max-tenant-requests", "x"),
                 "--max-tenant-requests"),
                (("serve", "--no-prefix-cache=maybe"), "--no-prefix-cache"),
                ((*there, "--no-prefix-cache"), "--no-prefix-cache"),
                ((*here, "--token-file", "f"), "--server"),
                ((*here, "--tls-ca", "f"), "--server"),
                ((*there, "--tls-client-key", "f"), "--tls-client-cert"),
                ((*there, "--tls-client-cert", "f", "--tls-client-key", "f"),
                 "--tls-ca"),
                (("token",), "--tenant"),
                # Of no use to one request.
                ((*here, "--policy", "fair"), "--policy"),
                ((*here, "--n", "0"), "--n"),
                ((*here, "--n", "65537"), "65536"),
                ((*here, "--priority", "high"), "--priority"),
                (("bench", "--streams", "99999999"), "65536"),
                (("bench", "--streams", "1,0"), "--streams"),
                (("bench", "--streams", ""), "--streams"),
                (("bench", "--generate-tokens", "1"), "--generate-tokens"),
                (("bench", "--prompt-tokens", "0"), "--prompt-tokens")]:
            self.assert_refused(args, 2, needle)

    def test_what_cannot_be_done(self):
        here = ("generate", "--prompt", "x")
        for args, needle in [
                (("generate", "--token-ids", "1,128"), "token_ids[1] is 128"),
                (("generate", "--token-ids", "-1"), "token_ids[0] is -1"),
                (("generate", "--token-ids", "2147483647"), "2147483647"),
                (("generate", "--prompt", "\u00e9"), "0xc3"),
                (("generate", "--prompt", ""), "empty"),
                (("generate", "--token-ids", ""), "empty"),
                ((*here, "--temperature", "nan"), "temperature"),
                ((*here, "--temperature", "-0.5"), "temperature"),
                ((*here, "--top-k", "-1"), "top_k is -1"),
                ((*here, "--top-p", "1.5"), "top_p is 1.5"),
                ((*here, "--logprobs", "21"), "logprobs"),
                ((*here, "--max-tokens", "-1"), "max_tokens"),
                ((*here, "--n", "33"), "n is 33; it must be 1 to 32"),
                ((*here, "--priority", "101"), "priority is 101"),
                ((*here, "--tenant", "x" * 257), "tenant has 257 bytes"),
                (("serve", "--max-prefill-share", "nan"),
                 "max_prefill_share is nan"),
                ((*here, "--page-size", "12"), "12"),
                ((*here, "--kv-pool", "1KiB"), "pool"),
                ((*here, "--max-batch-tokens", "4", "--max-batch-sequences", "8"), "4"),
                ((*here, "--model", "no-such-folder"), "no-such-folder"),
                ((*here, "--model", "x"), "expected a GGUF file, or a folder"),
                ((*here, "--model", "random:arch=mamba"), "mamba"),
                (("inspect", "no-such-folder"), "no-such-folder"),
                (("token", "--tenant", "a b"), "tenant's name"),
                (("token", "--tenant", "x" * 257), "257 bytes"),
                (("bench", "--streams", "2", "--max-batch-sequences", "1"), "2"),
                (("bench", "--streams", "4", "--kv-pool", "64KiB"), "64KiB"),
                (("bench", "--prompt-tokens", "1000000"), "context"),
                (("bench", "--write-gguf", "m", "--gguf-type", "q4_K"),
                 "not one of bf16, f32, q8_0, q4_0"),
                (("bench", "--write-gguf", "m"), "is a TinyCausalLM")]:
            self.assert_refused(args, 1, needle)

    def test_bytes_that_are_no_text(self):
        self.assert_refused(("generate", "--prompt", b"\xff"), 1, "UTF-8")
        self.assert_refused(("generate", "--prompt", "x", "--tenant", b"\xff"),
                            1, "--tenant is not valid UTF-8")

    def test_token_and_tls_files(self):
        there = ("memory", "--server", "127.0.0.1:1")
        with tempfile.TemporaryDirectory() as folder:
            empty = os.path.join(folder, "empty")
            with open(empty, "wb"):
                pass
            missing = os.path.join(folder, "missing")
            for flag in ("--token-file", "--tls-ca"):
                self.assert_refused((*there, flag, missing), 1, missing)
                self.assert_refused((*there, flag, empty), 1, empty)

    def test_token_does_not_go_into_the_clear(self):
        # (A block of addresses that nobody has: RFC 5737.)
        there = ("memory", "--server", "192.0.2.1:1")
        with tempfile.NamedTemporaryFile("w") as token, \
                tempfile.NamedTemporaryFile("w") as ca:
            token.write("secret\n")
            token.flush()
            with_token = (*there, "--token-file", token.name)
            self.assert_refused(with_token, 1, "could read the token")
            ca.write("-----BEGIN CERTIFICATE-----\n")
            ca.flush()
            for more in (("--insecure",), ("--tls-ca", ca.name)):
                self.assert_refused((*with_token, *more), 1, "no server answered")

    def test_nobody_listens(self):
        for args in [("memory",), ("generate", "--prompt", "x")]:
            self.assert_refused((*args, "--server", "127.0.0.1:1"), 1,
                                "127.0.0.1:1")

    def test_where_nobody_can_listen(self):
        with Server(folio) as server:
            result = folio.run("serve", "--listen", server.address)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        # After what serve has logged; gRPC says nothing of its own.
        *log, last = result.stderr.splitlines()
        self.assertTrue(last.startswith("folio: "), last)
        self.assertIn(server.address, last)
        for line in log:
            self.assertRegex(line, r"^I\d{8} .* \w+\.cc:\d+\] ")


class TokenTest(unittest.TestCase):
    def test_stdout_has_the_hash_and_stderr_the_token(self):
        results = [folio.run("token", "--tenant", "alice") for _ in range(2)]
        for result in results:
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stderr, r"\A[0-9a-f]{64}\n\Z")
            token = result.stderr.strip().encode()
            digest = hashlib.sha256(token).hexdigest()
            self.assertEqual(result.stdout, f"{digest} alice\n")
        self.assertNotEqual(results[0].stderr, results[1].stderr)


class StdoutTest(unittest.TestCase):
    """Output that can't be written is an error."""

    def assert_fails(self, process, reason):
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, errors)
        self.assertEqual(errors.splitlines()[-1],
                         f"folio: can't write to stdout: {reason}")

    def test_no_space(self):
        with Server(folio) as server, open("/dev/full", "w") as full:
            for args in [("--help",), ("--version",), ("serve", "--help"),
                         ("generate", "--prompt", "x", "--max-tokens", "4"),
                         ("generate", "--prompt", "x", "--json",
                          "--server", server.address),
                         ("memory", "--server", server.address),
                         ("memory", "--server", server.address, "--json"),
                         ("bench", "--streams", "1", "--generate-tokens", "2"),
                         ("serve", "--listen", "127.0.0.1:0")]:
                with self.subTest(args):
                    self.assert_fails(folio.start(*args, stdout=full),
                                      "No space left on device")

    def test_a_reader_that_is_gone(self):
        # Python ignores SIGPIPE; children that inherit this get EPIPE.
        with Server(folio, *SLOW) as server:
            ends = [folio.start(*args, "--server", server.address,
                                restore_signals=False)
                    for args in [("memory", "--follow"),
                                 ("generate", "--prompt", PROMPT)]]
            for process in ends:
                process.stdout.read(1)
                process.stdout.close()
                process.stdout = None
            # There have to be batches for the follower to notice.
            third = folio.start("generate", "--prompt", PROMPT, "--server",
                                server.address)
            for process in ends:
                self.assert_fails(process, "Broken pipe")
            interrupt(third)


class GenerateTest(unittest.TestCase):
    def test_shape_of_json(self):
        *deltas, last = generate("--prompt", PROMPT, "--max-tokens", "12",
                                 *LOGPROBS)
        self.assertEqual(
            list(last), ["token_ids", "text", "finish_reason", "usage", "seed",
                         "logprobs", "prompt_logprobs"])
        self.assertEqual(len(last["token_ids"]), 12)
        self.assertEqual(last["text"], bytes(last["token_ids"]).decode())
        self.assertEqual(last["finish_reason"], "length")
        usage = last["usage"]
        self.assertEqual(list(usage), fields_of("Usage"))
        self.assertEqual(counts_of(last)["usage"], {
            "prompt_tokens": len(PROMPT), "generated_tokens": 12,
            "preemptions": 0, "cached_tokens": 0,
            # The last token's K/V is never needed.
            "peak_pages": -(-(len(PROMPT) + 11) // 16)})
        for name in ("queue_duration", "prefill_duration", "decode_duration"):
            self.assertGreater(usage[name], 0)
            self.assertLess(usage[name], TIMEOUT_SECONDS)
        for delta in deltas:
            self.assertEqual(list(delta), ["token_ids", "text"])
        self.assertGreater(len(deltas), 1)
        self.assertEqual(sum((d["token_ids"] for d in deltas), []),
                         last["token_ids"])
        self.assertEqual("".join(d["text"] for d in deltas), last["text"])

    def test_logprobs(self):
        last = generate("--prompt", PROMPT, "--max-tokens", "5", *LOGPROBS)[-1]
        self.assertEqual([e["token_id"] for e in last["logprobs"]],
                         last["token_ids"])
        self.assertIsNone(last["prompt_logprobs"][0])
        self.assertEqual([e["token_id"] for e in last["prompt_logprobs"][1:]],
                         list(PROMPT.encode()[1:]))
        for entry in last["logprobs"] + last["prompt_logprobs"][1:]:
            self.assertEqual(list(entry), ["token_id", "logprob", "top"])
            values = [e["logprob"] for e in entry["top"]]
            self.assertEqual(len(values), 3)
            self.assertEqual(values, sorted(values, reverse=True))
            for value in [entry["logprob"], *values]:
                self.assertLessEqual(value, 0)
                # A float, to the last bit.
                self.assertEqual(struct.unpack("f", struct.pack("f", value)),
                                 (value,))
        for entry in last["logprobs"]:  # Greedy takes the likeliest.
            self.assertEqual(entry["logprob"], entry["top"][0]["logprob"])

    def test_logprobs_only_when_asked_for(self):
        last = generate("--prompt", "x", "--max-tokens", "1")[-1]
        self.assertNotIn("logprobs", last)
        self.assertNotIn("prompt_logprobs", last)
        last = generate("--prompt", "x", "--max-tokens", "1", "--logprobs",
                        "0")[-1]
        self.assertEqual(last["logprobs"][0]["top"], [])

    def test_no_tokens(self):
        lines = generate("--prompt", PROMPT, "--max-tokens", "0",
                         "--prompt-logprobs")
        self.assertEqual(len(lines), 1)
        self.assertEqual(lines[0]["token_ids"], [])
        self.assertEqual(lines[0]["finish_reason"], "length")
        self.assertEqual(len(lines[0]["prompt_logprobs"]), len(PROMPT))

    def test_text_is_what_json_says(self):
        args = ("--prompt", PROMPT, "--max-tokens", "20")
        result = folio.run("generate", *args)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.stdout, generate(*args)[-1]["text"] + "\n")

    def test_text_and_token_ids_are_the_same_prompt(self):
        ids = ",".join(map(str, PROMPT.encode()))
        args = ("--max-tokens", "9", "--seed", "1")
        *deltas, last = generate("--prompt", PROMPT, *args)
        *same_deltas, same = generate("--token-ids", ids, *args)
        self.assertEqual(deltas, same_deltas)
        self.assertEqual(counts_of(last), counts_of(same))

    def test_a_drawn_seed_can_be_used_again(self):
        args = ("--prompt", PROMPT, "--max-tokens", "24", "--temperature", "1")
        first, second = generate(*args)[-1], generate(*args)[-1]
        self.assertNotEqual(first["seed"], second["seed"])
        self.assertNotEqual(first["token_ids"], second["token_ids"])
        again = generate(*args, "--seed", str(first["seed"]))[-1]
        self.assertEqual(counts_of(again), counts_of(first))

    def test_here_there_and_without_a_cache(self):
        common = ("--prompt", PROMPT, "--max-tokens", "40", *LOGPROBS)
        with Server(folio, "--page-size", "8", "--threads", "1") as server:
            for temperature in ("0", "0.9"):
                args = (*common, "--temperature", temperature, "--seed",
                        "18446744073709551615")
                here = generate(*args)[-1]
                self.assertEqual(here["seed"], 2**64 - 1)
                # (Another tenant for each, so that nothing is cached.)
                there = generate(*args, "--tenant", temperature, "--server",
                                 server.address)[-1]
                # Not a bit depends on when keys and values were computed.
                again = generate(*args, "--no-cache")[-1]
                for last in (here, there, again):
                    # Pages are smaller there, and taken again and again
                    # without a cache.
                    for name in ("peak_pages", "preemptions"):
                        del last["usage"][name]
                self.assertEqual(counts_of(there), counts_of(here))
                self.assertEqual(counts_of(again), counts_of(here))

    SAMPLES = ("--prompt", PROMPT, "--max-tokens", "12", "--temperature", "1")

    def test_samples_are_those_of_their_seeds(self):
        seed = 2**64 - 2  # The third sample's is 0.
        alone = [generate(*self.SAMPLES, *LOGPROBS, "--seed",
                          str((seed + i) % 2**64))[-1] for i in range(3)]
        args = (*self.SAMPLES, *LOGPROBS, "--seed", str(seed), "--n", "3")
        with Server(folio) as server:
            for where in ((), ("--no-cache",), ("--server", server.address)):
                *pieces, last = generate(*args, *where)
                self.assertEqual(list(last), ["samples", "usage", "seed",
                                              "prompt_logprobs"])
                self.assertEqual(last["samples"], [
                    {key: one[key] for key in ("token_ids", "text",
                                               "finish_reason", "logprobs")}
                    for one in alone])
                self.assertEqual(last["prompt_logprobs"],
                                 alone[0]["prompt_logprobs"])
                self.assertEqual(last["usage"]["generated_tokens"], 36)
                self.assertEqual(last["seed"], seed)
                for piece in pieces:
                    self.assertEqual(list(piece),
                                     ["sample_index", "token_ids", "text"])
                for index, one in enumerate(alone):
                    own = [p for p in pieces if p["sample_index"] == index]
                    self.assertEqual(sum((p["token_ids"] for p in own), []),
                                     one["token_ids"])
                    self.assertEqual("".join(p["text"] for p in own),
                                     one["text"])

    def test_text_of_samples_comes_sample_after_sample(self):
        args = (*self.SAMPLES, "--seed", "5", "--n", "3")
        samples = generate(*args)[-1]["samples"]
        self.assertEqual(len({sample["text"] for sample in samples}), 3)
        result = folio.run("generate", *args)
        self.assertEqual(
            result.stdout,
            "{}\n--- sample 1\n{}\n--- sample 2\n{}\n".format(
                *(sample["text"] for sample in samples)))

    def test_samples_without_tokens(self):
        *pieces, last = generate("--prompt", PROMPT, "--max-tokens", "0",
                                 "--n", "2")
        self.assertEqual(pieces, [])
        self.assertEqual(last["samples"], 2 * [
            {"token_ids": [], "text": "", "finish_reason": "length"}])

    def test_cached_prompts(self):
        with Server(folio) as server:
            cached = [generate("--server", server.address, "--prompt", PROMPT,
                               "--max-tokens", "1", "--priority", "-7",
                               "--tenant", tenant)[-1]["usage"]["cached_tokens"]
                      for tenant in ("a", "a", "b")]
        self.assertEqual(cached, [0, len(PROMPT) // 16 * 16, 0])

    def test_errors_of_a_server(self):
        with Server(folio) as server:
            result = folio.run("generate", "--server", server.address,
                               "--token-ids", "500")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Afolio: token_ids\[0\] is 500;.*\n\Z")


class ServeTest(unittest.TestCase):
    def test_signals_end_it(self):
        for sig in (signal.SIGINT, signal.SIGTERM):
            with Server(folio) as server:
                status, seconds = server.stop(sig)
                self.assertEqual(status, 0)
                self.assertLess(seconds, 30)

    def test_a_signal_while_loading_ends_it(self):
        for sig in (signal.SIGINT, signal.SIGTERM):
            process = folio.start("serve", "--listen", "127.0.0.1:0",
                                  *SLOW_TO_LOAD)
            while not catches(process, sig):  # Long before the model is there.
                self.assertIsNone(process.poll())
            process.send_signal(sig)
            output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
            self.assertEqual((process.returncode, output), (128 + sig, ""))

    def test_a_second_signal_ends_it_at_once(self):
        with Server(folio, *SLOW) as server:
            client = folio.start("generate", "--server", server.address,
                                 "--prompt", PROMPT)
            client.stdout.read(1)  # It would go on for minutes.
            server.process.send_signal(signal.SIGTERM)
            while "shutting down" not in server.process.stderr.readline():
                pass
            status, seconds = server.stop(signal.SIGINT)
            self.assertEqual(status, 128 + signal.SIGINT)
            self.assertLess(seconds, 5)
            client.communicate(timeout=TIMEOUT_SECONDS)
            self.assertEqual(client.returncode, 1)

    def test_the_log_has_the_time_of_the_signal(self):
        with Server(folio) as server:
            time.sleep(1.5)
            server.process.send_signal(signal.SIGTERM)
            _, log = server.process.communicate(timeout=TIMEOUT_SECONDS)
        (begun, ended) = [
            sum(float(part) * scale for part, scale in
                zip(re.search(r"(\d\d):(\d\d):([\d.]+) ", line).groups(),
                    (3600, 60, 1)))
            for line in log.splitlines() if "KV pool" in line
            or "shutting down" in line]
        self.assertGreaterEqual((ended - begun) % 86400, 1.5)

    def test_a_server_that_is_killed(self):
        with Server(folio, *SLOW) as server:
            clients = [folio.start(*args, "--server", server.address)
                       for args in [("memory", "--follow"),
                                    ("generate", "--prompt", PROMPT)]]
            for client in clients:
                client.stdout.read(1)
            server.stop(signal.SIGKILL)
            for client in clients:
                _, errors = client.communicate(timeout=TIMEOUT_SECONDS)
                self.assertEqual(client.returncode, 1)
                self.assertRegex(
                    errors, rf"\Afolio: the connection to {server.address} "
                    r"broke \(.+\); the output above is incomplete; check that "
                    r"the server still runs\n\Z")

    def test_a_client_that_is_gone_leaves_no_pages(self):
        with Server(folio, *SLOW) as server:
            client = folio.start("generate", "--server", server.address,
                                 "--prompt", PROMPT)
            client.stdout.read(1)  # It has begun.
            self.assertNotEqual(interrupt(client), 0)
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while True:
                report = folio.json_lines("memory", "--server",
                                          server.address)[0]
                if report["sequences_running"] == 0:
                    break
                self.assertLess(time.monotonic(), deadline)
            self.assertEqual(report["memory"]["pages_in_use"], 0)


class MemoryTest(unittest.TestCase):
    def assert_identities(self, m):
        self.assertEqual(m["pages_total"], m["pages_free"] + m["pages_in_use"] +
                         m["pages_cached"])
        self.assertEqual(m["pool_bytes"], m["pages_total"] * m["page_bytes"] +
                         m["remainder_bytes"])
        self.assertEqual(m["page_bytes"], m["page_size"] *
                         m["bytes_per_token"] + m["page_scale_bytes"] +
                         m["page_padding_bytes"])
        self.assertEqual(m["reserved_bytes"],
                         m["holding_bytes"] + m["waste_bytes"])
        self.assertEqual(m["holding_bytes"],
                         m["tokens_held"] * m["bytes_per_token"])
        self.assertEqual(sum(s["pages"] for s in m["sequences"]) -
                         m["pages_in_use"], m["duplicate_pages_saved"])

    def test_json_has_every_field_of_the_proto(self):
        with Server(folio, *SLOW) as server:
            request = folio.start("generate", "--server", server.address,
                                  "--prompt", PROMPT)
            follower = folio.start("memory", "--server", server.address,
                                   "--follow", "--json")
            reports = [json.loads(follower.stdout.readline()) for _ in range(5)]
            interrupt(follower)
            interrupt(request)
        for report in reports:
            self.assertCountEqual(report, fields_of("BatchReport"))
            self.assertEqual(report["wait_reason"], "none")
            self.assertGreaterEqual(report["prefix_query_tokens"],
                                    report["prefix_hit_tokens"])
            memory = report["memory"]
            self.assertCountEqual(memory, fields_of("MemoryReport"))
            self.assertEqual(len(memory["sequences"]), 1)
            self.assertCountEqual(memory["sequences"][0],
                                  fields_of("SequenceMemory"))
            self.assert_identities(memory)
            self.assertGreater(report["duration"], report["forward_duration"])
            # The first step computes the prompt, each further one a token.
            self.assertEqual(memory["tokens_held"],
                             len(PROMPT) + report["step"] - 1)
        first = reports[0]["step"]  # Following may begin anywhere.
        self.assertEqual([r["step"] for r in reports],
                         list(range(first, first + 5)))

    def test_says_why_the_next_one_waits(self):
        with Server(folio, *SLOW, "--max-batch-sequences", "1") as server:
            requests = [folio.start("generate", "--server", server.address,
                                    "--prompt", PROMPT) for _ in range(2)]
            follower = folio.start("memory", "--server", server.address,
                                   "--follow", "--json")
            while True:
                report = json.loads(follower.stdout.readline())
                if report["sequences_waiting"] == 1 and report["step"] > 1:
                    break
            for process in (follower, *requests):
                interrupt(process)
        self.assertEqual(report["wait_reason"], "sequences")
        # There was a step before, to measure from.
        self.assertGreater(report["commit_interval"], 0)

    def test_at_rest(self):
        with Server(folio, "--kv-pool", "8MiB") as server:
            (report,) = folio.json_lines("memory", "--server", server.address)
            table = folio.run("memory", "--server", server.address)
        memory = report["memory"]
        self.assertEqual(memory["pool_bytes"], 8 << 20)
        self.assertEqual(memory["pages_in_use"], 0)
        self.assert_identities(memory)
        self.assertEqual(table.returncode, 0)
        self.assertRegex(table.stdout, r"\Aat +[-\d]+T[:\d]+\.\d{3}Z, after ")
        for needle in ("8MiB (8388608 bytes)", "contiguous",
                       f" pages x {memory['page_bytes']} bytes + remainder",
                       "waste        0B = ",
                       "cached       0B = 0 pages x ",
                       "shared       0 of the pages in use; saves 0B = ",
                       f"{memory['pages_total']} total",
                       f"0 tokens held x {memory['bytes_per_token']} bytes "):
            self.assertIn(needle, table.stdout)

    def test_follow_is_a_line_for_each_batch_after_the_header(self):
        num_tokens = 8  # As many as steps.
        with Server(folio) as server:
            follower = folio.start("memory", "--server", server.address,
                                   "--follow")
            self.assertRegex(follower.stdout.readline(), "^ *step .* waste ")
            generate("--server", server.address, "--prompt", PROMPT,
                     "--max-tokens", str(num_tokens))
            server.stop(signal.SIGTERM)
            lines, errors = follower.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual((follower.returncode, errors), (0, ""))
        self.assertEqual([int(line.split()[0]) for line in lines.splitlines()],
                         list(range(1, num_tokens + 1)))


class LiveTest(unittest.TestCase):
    """`folio memory --follow` on a terminal."""

    ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l"
    LEAVE = b"\x1b[?7h\x1b[?25h\x1b[?1049l"

    def follow(self, server):
        return Terminal(folio, "memory", "--server", server.address, "--follow")

    def assert_restored(self, terminal, times=1):
        self.assertEqual(terminal.shown.count(self.ENTER), times)
        self.assertEqual(terminal.shown.count(self.LEAVE), times)
        # What stays is the last table, with no sequence that moves the cursor.
        rest = terminal.shown.rpartition(self.LEAVE)[2]
        self.assertIn(b"folio memory", rest)
        self.assertNotIn(b"\x1b", rest.replace(b"^C", b""))

    def test_draws_and_ends_with_ctrl_c(self):
        with Server(folio, *SLOW) as server:
            with self.follow(server) as terminal:
                terminal.read_until(b"0 running, 0 waiting")
                request = folio.start("generate", "--server", server.address,
                                      "--prompt", PROMPT, "--n", "2")
                terminal.read_until(b"2 running, 0 waiting")
                frame = terminal.read_until(b"\x1b[J")
                terminal.write(b"\x03")
                self.assertEqual(terminal.read_to_end(), -signal.SIGINT)
                self.assertEqual(terminal.errors, b"")
            interrupt(request)
        self.assert_restored(terminal)
        for needle in (b"# in use", b"+ cached", b". free", b"prefix hits",
                       b"0 prefill + 2 decode tokens"):
            self.assertIn(needle, terminal.shown)
        for frame in terminal.shown.split(b"\x1b[H")[1:]:
            self.assertLess(frame.count(b"\n"), 2 * Terminal.ROWS)

    def test_is_drawn_ten_times_a_second_at_most(self):
        with Server(folio) as server, self.follow(server) as terminal:
            terminal.read_until(b"\x1b[J")
            start = time.monotonic()
            for _ in range(3):
                generate("--server", server.address, "--prompt", PROMPT,
                         "--max-tokens", "300", "--ignore-eos")
            server.stop(signal.SIGTERM)
            self.assertEqual(terminal.read_to_end(), 0)
            seconds = time.monotonic() - start
            self.assertEqual(terminal.errors, b"")
        self.assert_restored(terminal)
        # And once more at the end.
        self.assertLessEqual(terminal.shown.count(b"\x1b[H"),
                             10 * seconds + 3)
        # The last batch is shown, however soon it came after others.
        rest = terminal.shown.rpartition(self.LEAVE)[2]
        self.assertIn(b"step 900 ", rest)

    def test_stops_and_goes_on(self):
        with Server(folio) as server, self.follow(server) as terminal:
            terminal.read_until(b"\x1b[J")
            terminal.write(b"\x1a")  # Ctrl-Z
            terminal.read_until(self.LEAVE)
            _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(status))
            terminal.process.send_signal(signal.SIGCONT)
            terminal.read_until(b"\x1b[J")
            terminal.process.send_signal(signal.SIGTERM)
            self.assertEqual(terminal.read_to_end(), -signal.SIGTERM)
        self.assert_restored(terminal, times=2)

    def test_a_server_that_is_gone(self):
        with Server(folio) as server:
            with self.follow(server) as terminal:
                terminal.read_until(b"\x1b[J")
                server.stop(signal.SIGKILL)
                self.assertEqual(terminal.read_to_end(), 1)
                self.assertIn(b"the connection to ", terminal.errors)
        self.assert_restored(terminal)
        # One that was never there changes no screen.
        with self.follow(server) as terminal:
            self.assertEqual(terminal.read_to_end(), 1)
            self.assertEqual(terminal.shown, b"")

    def test_follows_the_size_of_the_terminal(self):
        with Server(folio) as server, self.follow(server) as terminal:
            terminal.read_until(b"[" + 97 * b"." + b"]")
            terminal.resize(60)
            terminal.read_until(b"[" + 57 * b"." + b"]")
            terminal.write(b"\x03")
            terminal.read_to_end()
        self.assert_restored(terminal)

    def test_a_terminal_that_cannot_gets_lines(self):
        with Server(folio) as server:
            with Terminal(folio, "memory", "--server", server.address,
                          "--follow", term="dumb") as terminal:
                terminal.read_until(b" waste ")
                terminal.write(b"\x03")
                terminal.read_to_end()
            self.assertNotIn(b"\x1b", terminal.shown)


class EmbeddedModelTest(unittest.TestCase):
    """The one that is there when none is named."""

    PROMPT = "And the king said unto his servants,"

    def generate(self, *args):
        result = folio.run_as_is("generate", "--prompt", self.PROMPT,
                                 "--max-tokens", "40", *args, "--json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout.splitlines()[-1])

    def test_writes_words(self):
        last = self.generate()
        # Letters, digits and the few marks that its text has.
        self.assertRegex(last["text"], r"\A[A-Za-z ,.;:'?!()\n-]+\Z")
        self.assertGreater(len(last["text"].split()), 10)

    def test_says_what_the_readme_shows(self):
        readme = os.path.join(os.path.dirname(proto_path), "../../../README.md")
        with open(readme, encoding="utf-8") as file:
            quoted = re.search(r"says:\n\n((?:> .*\n)+)", file.read())[1]
        shown = " ".join(line[2:] for line in quoted.splitlines())
        result = folio.run_as_is(
            "generate", "--prompt", self.PROMPT, "--max-tokens", "60",
            "--temperature", "0.5", "--seed", "10", "--weights-dtype", "f32")
        self.assertEqual(result.stdout.strip(), shown)

    def test_types_are_chosen_by_flags(self):
        f32 = self.generate("--weights-dtype", "f32", "--logprobs", "0")
        bf16 = self.generate("--weights-dtype", "bf16", "--logprobs", "0")
        kv = self.generate("--weights-dtype", "f32", "--kv-dtype", "bf16",
                           "--logprobs", "0")
        first = [run["logprobs"][0]["logprob"] for run in (f32, bf16, kv)]
        # Near, and not the same.
        self.assertEqual(len(set(first)), 3, first)
        for value in first[1:]:
            self.assertAlmostEqual(value, first[0], delta=0.1)

    def test_special_tokens_only_when_asked_for(self):
        def prompt_tokens(*args):
            result = folio.run_as_is("generate", "--prompt", "<|end|>",
                                     "--max-tokens", "0", *args, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout)["usage"]["prompt_tokens"]
        # BOS comes first in both.
        self.assertGreater(prompt_tokens(), 2)
        self.assertEqual(prompt_tokens("--parse-special"), 2)


class InspectTest(unittest.TestCase):
    def test_the_designs_two_gibibytes(self):
        (line,) = folio.json_lines(
            "inspect", "--layers", "32", "--kv-heads", "32", "--head-dim",
            "128", "--kv-dtype", "bf16", "--context", "4096", "--kv-pool",
            "8GiB")
        self.assertEqual(line["kv"]["sequence_bytes"], 2 << 30)
        self.assertEqual(line["kv"]["bytes_per_token"], 512 << 10)
        self.assertEqual(line["kv"]["sequences_that_fit"], 4)
        table = folio.run(
            "inspect", "--layers", "32", "--kv-heads", "32", "--head-dim",
            "128", "--kv-dtype", "bf16", "--context", "4096").stdout
        self.assertIn("of 4096 tokens has 2GiB of K/V", table)

    def test_a_model(self):
        (line,) = folio.json_lines(
            "inspect", "random:arch=mistral,vocab=300,hidden=64,heads=4,"
            "kv_heads=2,ffn=100,layers=3,window=24", "--page-size", "8",
            "--sequences", "5", "--context", "100")
        self.assertEqual(line["architecture"], "MistralForCausalLM")
        self.assertEqual(line["layers"], 3)
        self.assertEqual(line["kv_heads"], 2)
        self.assertEqual(line["window"], 24)
        matrices = 2 * 300 * 64 + 3 * (2 * 64 * 64 + 2 * 32 * 64 +
                                       3 * 64 * 100)
        self.assertEqual(line["parameters"], matrices + 7 * 64)
        self.assertEqual(line["weights"],
                         {"dtype": "f32", "bytes": 4 * line["parameters"]})
        kv = line["kv"]
        self.assertEqual(kv["bytes_per_token"], 2 * 3 * 2 * 16 * 4)
        self.assertEqual(kv["page_bytes"], 8 * kv["bytes_per_token"])
        self.assertEqual(kv["page_scale_bytes"], 0)
        self.assertEqual(kv["page_padding_bytes"], 0)
        self.assertEqual(kv["sequence_bytes"], 100 * kv["bytes_per_token"])
        self.assertEqual(kv["sequences_bytes"], 5 * kv["sequence_bytes"])
        # A window of 24 lies in four pages of 8 at most.
        self.assertEqual(kv["sequence_pages"], 4)
        self.assertEqual(kv["sequences_that_fit"], kv["pool_pages"] // 4)

    def test_the_embedded_model(self):
        (line,) = folio.json_lines("inspect")
        self.assertEqual(line["model"], "folio-tiny")
        self.assertEqual(line["tokenizer"]["kind"], "byte-level BPE")
        self.assertEqual(set(line["stored_elements"]), {"BF16"})
        table = folio.run("inspect")
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        for needle in ("folio-tiny, a LlamaForCausalLM", "byte-level BPE",
                       f"{line['parameters']}", "such sequences fit"):
            self.assertIn(needle, table.stdout)


class BenchTest(unittest.TestCase):
    ARGS = ("bench", "--streams", "1,3", "--prompt-tokens", "20",
            "--generate-tokens", "6")

    def test_json(self):
        for model in ((), ("--model", "random:vocab=300,hidden=32,heads=2")):
            lines = folio.json_lines(*self.ARGS, *model)
            self.assertEqual([line["streams"] for line in lines], [1, 3])
            for line in lines:
                self.assertGreater(line["prefill_tokens_per_second"], 0)
                self.assertGreater(line["decode_tokens_per_second"], 0)
                self.assertGreater(line["outside_forward_microseconds"], 0)
                self.assertGreater(line["outside_forward_share"], 0)
                self.assertLess(line["outside_forward_share"], 1)
                # The first of the 6 tokens comes with the prefill.
                self.assertEqual(line["decode_steps"], 5)
                for phase in ("prefill", "decode"):
                    share = line[f"{phase}_tokens_per_second"] / \
                        line[f"{phase}_ceiling_tokens_per_second"]
                    self.assertAlmostEqual(line[f"{phase}_share"], share)
                self.assertGreater(line["read_bytes_per_second"], 0)
                self.assertGreater(
                    line["attention_bytes_per_second_at_least"], 0)

    def test_without_ceiling(self):
        for line in folio.json_lines(*self.ARGS, "--no-ceiling"):
            self.assertNotIn("decode_share", line)

    def test_streams_that_are_ahead(self):
        # Two prompts a step: the first streams are two steps ahead of the last.
        (line,) = folio.json_lines(
            "bench", "--streams", "6", "--prompt-tokens", "8",
            "--generate-tokens", "2", "--max-batch-tokens", "18")
        self.assertGreater(line["decode_tokens_per_second"], 0)

    def test_table(self):
        result = folio.run(*self.ARGS)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        # Three lines of heading.
        self.assertEqual(len(result.stdout.splitlines()), 5)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            gguf = os.path.join(folder, "m.gguf")
            prompts = os.path.join(folder, "prompts.jsonl")
            result = folio.run(
                "bench", "--model", "random:arch=llama,hidden=64,ffn=96",
                "--write-gguf", gguf, "--gguf-type", "q8_0",
                "--write-prompts", prompts, "--streams", "2,3",
                "--prompt-tokens", "7")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            with open(prompts, encoding="utf-8") as file:
                rows = [json.loads(line) for line in file]
            self.assertEqual([len(row) for row in rows], [7, 7, 7])
            self.assertTrue(all(0 <= id < 256 for row in rows for id in row))
            # It has no tokenizer, and needs none.
            lines = folio.json_lines(*self.ARGS, "--model", gguf)
            self.assertEqual(len(lines), 2)


if __name__ == "__main__":
    folio = Folio(sys.argv[1])
    proto_path = sys.argv[2]
    unittest.main(argv=sys.argv[:1], verbosity=2)
