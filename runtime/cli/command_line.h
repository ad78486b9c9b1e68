// How programs of Folio begin and end.

#ifndef RUNTIME_CLI_COMMAND_LINE_H_
#define RUNTIME_CLI_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>

#include "runtime/cli/command.h"

namespace folio {

// The `folio` binary.
int RunCommandLine(int argc, char** argv);

// Parses the command line, calls `run`, and returns the exit status of the
// process: 0, 1 for an error, 2 for a command line that means nothing. An error
// is one line on stderr that begins with the name of `app`. Called once, at the
// start of the program.
int RunProgram(CLI::App& app, int argc, char** argv, const CommandRun& run);

// Its second half: calls `run`, and returns the exit status. An exception of a
// library (no memory, no thread) is an error like any other, and so is output
// that could not be written.
int RunToExitStatus(const std::string& program, const CommandRun& run);

}  // namespace folio

#endif  // RUNTIME_CLI_COMMAND_LINE_H_
