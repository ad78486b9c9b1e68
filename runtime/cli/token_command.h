// `folio token`: makes the tokens that a server asks for.

#ifndef RUNTIME_CLI_TOKEN_COMMAND_H_
#define RUNTIME_CLI_TOKEN_COMMAND_H_

#include <CLI/CLI.hpp>

#include "runtime/cli/command.h"

namespace folio {

void AddTokenCommand(CLI::App& app, CommandRun& run);

}  // namespace folio

#endif  // RUNTIME_CLI_TOKEN_COMMAND_H_
