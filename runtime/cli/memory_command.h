// folio memory: where the memory of a server is.

#ifndef RUNTIME_CLI_MEMORY_COMMAND_H_
#define RUNTIME_CLI_MEMORY_COMMAND_H_

#include <CLI/CLI.hpp>

#include "runtime/cli/command.h"

namespace folio {

void AddMemoryCommand(CLI::App& app, CommandRun& run);

}  // namespace folio

#endif  // RUNTIME_CLI_MEMORY_COMMAND_H_
