// What an operator is told of a server.

#ifndef RUNTIME_SERVER_TELEMETRY_H_
#define RUNTIME_SERVER_TELEMETRY_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/step_output.h"
#include "runtime/server/load_meter.h"
#include "runtime/server/metrics.h"
#include "runtime/server/metrics_server.h"
#include "runtime/server/request_log.h"
#include "scheduler/token_event.h"

namespace folio {

struct TelemetryOptions {
  // ADDR:PORT where Prometheus finds metrics. Absent: there are none.
  std::optional<std::string> metrics_listen;
  std::optional<std::string> request_log;  // A file, or "-" for stderr.
  bool log_prompts = false;
};

// Fed by the publisher's thread. Metrics and the log are there when asked for;
// the load meter always is.
class Telemetry {
 public:
  // Errors are those of MetricsServer::Start and RequestLog::Open. The engine's
  // loop must not have begun; it is looked at only here.
  static absl::StatusOr<std::unique_ptr<Telemetry>> Create(
      const TelemetryOptions& options, Engine& engine);

  // Takes in what the engine handed out, before it is delivered: every output,
  // in order.
  void Observe(const StepOutput& output);

  // Logs a request's end. `end` is the time of the output with its terminal
  // event.
  void LogEnd(const RequestFacts& request, const TokenEvent& terminal,
              absl::Time end) {
    if (request_log_ != nullptr) request_log_->Write(request, terminal, end);
  }

  // Whether a request's facts should have its prompt. Any thread.
  bool wants_prompts() const {
    return request_log_ != nullptr && request_log_->has_prompts();
  }

  // Any thread.
  const LoadMeter& load_meter() const { return load_meter_; }

  // Where metrics are served, with the real port; empty: nowhere.
  std::string metrics_address() const {
    return metrics_server_ == nullptr ? "" : metrics_server_->address();
  }

 private:
  Telemetry() = default;

  LoadMeter load_meter_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<RequestLog> request_log_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_TELEMETRY_H_
