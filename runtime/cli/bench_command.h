// folio bench: how fast a model runs here, by number of streams.

#ifndef RUNTIME_CLI_BENCH_COMMAND_H_
#define RUNTIME_CLI_BENCH_COMMAND_H_

#include <CLI/CLI.hpp>

#include "runtime/cli/command.h"

namespace folio {

void AddBenchCommand(CLI::App& app, CommandRun& run);

}  // namespace folio

#endif  // RUNTIME_CLI_BENCH_COMMAND_H_
