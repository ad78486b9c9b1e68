// folio generate: one prompt, in the process or through a server.

#ifndef RUNTIME_CLI_GENERATE_COMMAND_H_
#define RUNTIME_CLI_GENERATE_COMMAND_H_

#include <CLI/CLI.hpp>

#include "runtime/cli/command.h"

namespace folio {

void AddGenerateCommand(CLI::App& app, CommandRun& run);

}  // namespace folio

#endif  // RUNTIME_CLI_GENERATE_COMMAND_H_
