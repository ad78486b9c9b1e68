// The command line of the `folio` binary.

#ifndef RUNTIME_CLI_COMMAND_LINE_H_
#define RUNTIME_CLI_COMMAND_LINE_H_

#include "runtime/cli/command.h"

namespace folio {

// Parses the command line, runs the command that it names, and returns the exit
// status of the process: 0, 1 for an error, 2 for a command line that means
// nothing. An error is one line on stderr that begins with "folio: ".
int RunCommandLine(int argc, char** argv);

// Its second half: runs the command, and returns the exit status. An exception
// of a library (no memory, no thread) is an error like any other, and so is
// output that could not be written.
int RunToExitStatus(const CommandRun& run);

}  // namespace folio

#endif  // RUNTIME_CLI_COMMAND_LINE_H_
