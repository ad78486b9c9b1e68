// `folio inspect`: what a model is and what it takes, without loading it.

#ifndef RUNTIME_CLI_INSPECT_COMMAND_H_
#define RUNTIME_CLI_INSPECT_COMMAND_H_

#include <CLI/CLI.hpp>

#include "runtime/cli/command.h"

namespace folio {

void AddInspectCommand(CLI::App& app, CommandRun& run);

}  // namespace folio

#endif  // RUNTIME_CLI_INSPECT_COMMAND_H_
