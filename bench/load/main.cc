// folio-load: load tests and their reports.

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/str_join.h"
#include "bench/load/load_command.h"
#include "bench/load/load_flags.h"
#include "runtime/cli/command_line.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio-load --target folio://127.0.0.1:50051
  folio-load --target folio://127.0.0.1:50051 --rate 4 --requests 200 \
    --report run.html --json run.json
  folio-load --target folio://127.0.0.1:50051 --sweep rate=1:8:1 \
    --goodput ttft:500,itl:100
  folio-load --target openai://127.0.0.1:8080/v1 --concurrency 16 --json peer.json
  folio-load --target inproc: --model random:llama-135m --turns 4 --think-ms 500
  folio-load --compare run.json peer.json --report both.html

A line of a trace is an object such as
  {"arrival_s": 0.5, "prompt_tokens": 100, "output_tokens": 20, "token_seed": 7}
with "prompt": "a text" instead of prompt_tokens and token_seed, if you like, and
with tenant, priority, n, deadline_s, cancel_s, read_delay_s, prefix_tokens,
prefix_seed, previous (the line of the turn before, from 0) and think_s.

Latencies count from the scheduled arrival of a request: a server that is late
can't hide it. The exit status is 0 when the run came to its end and a request
was served, 1 when not (what was measured before is printed and written all the
same), 2 for a command line that means nothing.)";

int Main(int argc, char** argv) {
  LoadFlags flags;
  flags.command = absl::StrJoin(argv, argv + argc, " ");
  CLI::App app("Load tests of servers of language models, and their reports.",
               "folio-load");
  app.footer(kExamples);
  AddLoadFlags(app, flags);
  return RunProgram(app, argc, argv,
                    [&flags] { return RunLoadCommand(flags); });
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) { return folio::Main(argc, argv); }
