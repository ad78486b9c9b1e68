// What the commands of `folio` have in common.

#ifndef RUNTIME_CLI_COMMAND_H_
#define RUNTIME_CLI_COMMAND_H_

#include <functional>

#include "absl/status/status.h"

namespace folio {

// What the command line asks for, with all its flags, ready to run. Each
// command's Add...Command(app, run) adds its subcommand to `app`; parsing the
// command line then sets `run` to the work of the one that was named. `run`
// must live as long as `app`.
using CommandRun = std::function<absl::Status()>;

}  // namespace folio

#endif  // RUNTIME_CLI_COMMAND_H_
