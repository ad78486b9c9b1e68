#include "runtime/cli/telemetry_flags.h"

#include "runtime/cli/flags.h"

namespace folio {

void AddTelemetryFlags(CLI::App& app, TelemetryOptions& options) {
  app.add_option("--metrics-listen", options.metrics_listen,
                 "Where Prometheus finds metrics, at http://ADDR:PORT/metrics; "
                 "port 0: any free one (default: nowhere)")
      ->check(HostPortCheck(/*min_port=*/0))
      ->type_name("ADDR:PORT");
  CLI::Option* const log =
      app.add_option("--request-log", options.request_log,
                     "Append a line of JSON for each finished request; "
                     "- for stderr (default: none)")
          ->type_name("FILE");
  app.add_flag("--log-prompts", options.log_prompts,
               "Have prompts in the request log")
      ->needs(log);
}

}  // namespace folio
