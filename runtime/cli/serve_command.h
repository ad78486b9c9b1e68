// folio serve: an engine behind a gRPC port, until a signal ends it.

#ifndef RUNTIME_CLI_SERVE_COMMAND_H_
#define RUNTIME_CLI_SERVE_COMMAND_H_

#include <CLI/CLI.hpp>

#include "runtime/cli/command.h"

namespace folio {

void AddServeCommand(CLI::App& app, CommandRun& run);

}  // namespace folio

#endif  // RUNTIME_CLI_SERVE_COMMAND_H_
