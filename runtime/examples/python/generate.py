#!/usr/bin/python3
"""Streams a completion from `folio serve`, with Debian's python3-grpcio.

Its stubs are generated, into any folder, from the repository's root:

  export PYTHONPATH=build/python
  mkdir -p $PYTHONPATH
  protoc --proto_path=proto --python_out=$PYTHONPATH --grpc_out=$PYTHONPATH \\
      --plugin=protoc-gen-grpc=$(which grpc_python_plugin) \\
      $(find proto -name '*.proto')
  runtime/examples/python/generate.py --prompt "Once upon a time"
"""

import argparse
import os
import pathlib
import sys

import grpc
from folio.v1 import generation_pb2, generation_pb2_grpc


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Streams a completion to stdout; Ctrl-C cancels it.",
        epilog="A token in the environment variable FOLIO_TOKEN is sent along.")
    parser.add_argument("--server", default="127.0.0.1:50051")
    parser.add_argument("--tls-ca", type=pathlib.Path,
                        help="certificates to trust; makes it a TLS connection")
    parser.add_argument("--timeout", type=float, help="seconds for all of it")
    parser.add_argument("--prompt", default="Once upon a time")
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--top-p", type=float)
    parser.add_argument("--seed", type=int)
    return parser.parse_args()


def connect(args):
    if args.tls_ca is None:
        return grpc.insecure_channel(args.server)
    return grpc.secure_channel(
        args.server, grpc.ssl_channel_credentials(args.tls_ca.read_bytes()))


def generate(channel, args):
    # What is None is left out: the server has defaults.
    request = generation_pb2.GenerateRequest(
        text=args.prompt, max_tokens=args.max_tokens,
        sampling=generation_pb2.SamplingParams(
            temperature=args.temperature, top_p=args.top_p, seed=args.seed))
    token = os.environ.get("FOLIO_TOKEN")
    call = generation_pb2_grpc.GenerationStub(channel).Generate(
        request, timeout=args.timeout,
        metadata=[("authorization", f"Bearer {token}")] if token else None)
    try:
        for response in call:
            print(response.text, end="", flush=True)
        print()
        usage = response.usage  # The last response has it.
        print(f"{usage.prompt_tokens} tokens of prompt, "
              f"{usage.generated_tokens} generated", file=sys.stderr)
    except KeyboardInterrupt:
        call.cancel()
        return 130
    except grpc.RpcError as error:
        print(f"{error.code().name}: {error.details()}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    arguments = parse_arguments()
    with connect(arguments) as opened:
        sys.exit(generate(opened, arguments))
