// What `folio serve` is to tell an operator.

#ifndef RUNTIME_CLI_TELEMETRY_FLAGS_H_
#define RUNTIME_CLI_TELEMETRY_FLAGS_H_

#include <CLI/CLI.hpp>

#include "runtime/server/telemetry.h"

namespace folio {

// --metrics-listen, --request-log and --log-prompts, into `options`, which must
// outlive the parsing.
void AddTelemetryFlags(CLI::App& app, TelemetryOptions& options);

}  // namespace folio

#endif  // RUNTIME_CLI_TELEMETRY_FLAGS_H_
