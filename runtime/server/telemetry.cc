#include "runtime/server/telemetry.h"

#include <prometheus/registry.h>

#include "runtime/base/status_macros.h"

namespace folio {
namespace {

CacheConfig CacheConfigOf(Engine& engine) {
  const KvCache& cache = engine.scheduler().cache();
  return {.page_size = engine.options().page_size,
          .num_pages = cache.num_pages(),
          .pool_bytes = engine.options().kv_pool_bytes,
          .kv_type = engine.model_info().kv_type,
          .prefix_cache = cache.has_prefix_cache()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Telemetry>> Telemetry::Create(
    const TelemetryOptions& options, Engine& engine) {
  const std::string& model_name = engine.model_info().name;
  std::unique_ptr<Telemetry> telemetry(new Telemetry);
  if (options.request_log.has_value()) {
    FOLIO_ASSIGN_OR_RETURN(telemetry->request_log_,
                           RequestLog::Open({.path = *options.request_log,
                                             .prompts = options.log_prompts},
                                            model_name));
  }
  if (options.metrics_listen.has_value()) {
    telemetry->metrics_ =
        std::make_unique<Metrics>(model_name, CacheConfigOf(engine));
    FOLIO_ASSIGN_OR_RETURN(
        telemetry->metrics_server_,
        MetricsServer::Start(*options.metrics_listen,
                             telemetry->metrics_->registry()));
  }
  return telemetry;
}

void Telemetry::Observe(const StepOutput& output) {
  if (metrics_ != nullptr) metrics_->Observe(output);
  if (!output.stepped) return;
  load_meter_.Add(output.time, output.report.prefill_tokens,
                  output.report.generated_tokens);
}

}  // namespace folio
