// folio tokenize: text to token ids and back, line by line.

#ifndef RUNTIME_CLI_TOKENIZE_COMMAND_H_
#define RUNTIME_CLI_TOKENIZE_COMMAND_H_

#include <CLI/CLI.hpp>

#include "runtime/cli/command.h"

namespace folio {

void AddTokenizeCommand(CLI::App& app, CommandRun& run);

}  // namespace folio

#endif  // RUNTIME_CLI_TOKENIZE_COMMAND_H_
