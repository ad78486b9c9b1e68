#include "runtime/server/introspection_service.h"

#include <optional>

#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/duration_conversion.h"
#include "runtime/server/finish_status.h"
#include "runtime/server/info_conversion.h"
#include "runtime/server/report_conversion.h"
#include "runtime/server/status_conversion.h"

namespace folio {
namespace {

// A watcher who may not watch.
class RefusedWatcher final : public grpc::ServerWriteReactor<v1::BatchReport> {
 public:
  explicit RefusedWatcher(const absl::Status& status) {
    Finish(ToGrpc(status));
  }
  void OnDone() override { delete this; }
};

grpc::Status ShuttingDown() {
  return ToGrpc(StatusOfFinish(FinishReason::kShutdown));
}

void NoteDropped(v1::BatchReport& report, int64_t num_dropped) {
  report.set_dropped_reports(num_dropped);
}

}  // namespace

IntrospectionService::IntrospectionService(const BackendSlot* slot,
                                           const Callers* callers,
                                           const RequestRegistry* registry,
                                           int64_t max_message_bytes)
    : slot_(slot),
      callers_(callers),
      registry_(registry),
      max_message_bytes_(max_message_bytes),
      start_(absl::Now()),
      reports_(kMaxQueuedReports, /*initial=*/std::nullopt, NoteDropped) {}

absl::StatusOr<const Backend*> IntrospectionService::BackendFor(
    const grpc::CallbackServerContext& context) const {
  FOLIO_RETURN_IF_ERROR(callers_->Of(context).status());
  return slot_->Get();
}

grpc::ServerUnaryReactor* IntrospectionService::GetModelInfo(
    grpc::CallbackServerContext* context,
    const v1::GetModelInfoRequest* /*request*/, v1::ModelInfo* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<const Backend*> backend = BackendFor(*context);
  if (backend.ok()) {
    *response = ToProto((*backend)->engine->model_info(),
                        (*backend)->tokenizer->info());
  }
  reactor->Finish(ToGrpc(backend.status()));
  return reactor;
}

grpc::ServerUnaryReactor* IntrospectionService::GetServerInfo(
    grpc::CallbackServerContext* context,
    const v1::GetServerInfoRequest* /*request*/, v1::ServerInfo* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<const Backend*> backend = BackendFor(*context);
  if (backend.ok()) {
    *response = ServerInfoOf(*(*backend)->engine);
    SetDuration(start_ - absl::UnixEpoch(), *response->mutable_start());
    response->set_max_message_bytes(max_message_bytes_);
  }
  reactor->Finish(ToGrpc(backend.status()));
  return reactor;
}

// The engine notes its state between two steps, and the publisher makes the
// answer of it.
template <typename Fill>
grpc::ServerUnaryReactor* IntrospectionService::AnswerFromState(
    grpc::CallbackServerContext& context, const Fill& fill) {
  grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
  const absl::StatusOr<const Backend*> found = BackendFor(context);
  if (!found.ok()) {
    reactor->Finish(ToGrpc(found.status()));
    return reactor;
  }
  const Backend& backend = **found;
  const bool will_answer = backend.engine->AskForReport(
      [reactor, fill, &backend](const BatchReport& state) {
        fill(backend, state);
        reactor->Finish(grpc::Status::OK);
      });
  if (!will_answer) reactor->Finish(ShuttingDown());
  return reactor;
}

grpc::ServerUnaryReactor* IntrospectionService::GetLoad(
    grpc::CallbackServerContext* context, const v1::GetLoadRequest* /*request*/,
    v1::Load* response) {
  return AnswerFromState(*context, [this, response](const Backend& backend,
                                                    const BatchReport& state) {
    FillLoad(backend, state, *response);
  });
}

void IntrospectionService::FillLoad(const Backend& backend,
                                    const BatchReport& state,
                                    v1::Load& load) const {
  load.set_requests_live(static_cast<int32_t>(registry_->size()));
  load.set_sequences_running(state.sequences_running);
  load.set_sequences_waiting(state.sequences_waiting);
  load.set_pages_total(state.memory.pages_total);
  load.set_pages_free(state.memory.pages_free);
  load.set_pages_in_use(state.memory.pages_in_use);
  load.set_pages_cached(state.memory.pages_cached);
  const TokenRates rates =
      backend.telemetry->load_meter().Rates(backend.clock->Now());
  load.set_prompt_tokens_per_second(rates.prompt);
  load.set_generated_tokens_per_second(rates.generated);
}

grpc::ServerUnaryReactor* IntrospectionService::GetMemoryReport(
    grpc::CallbackServerContext* context,
    const v1::GetMemoryReportRequest* /*request*/, v1::BatchReport* response) {
  return AnswerFromState(*context, [this, response](const Backend& /*backend*/,
                                                    const BatchReport& state) {
    *response = ToProto(state, *registry_);
  });
}

grpc::ServerWriteReactor<v1::BatchReport>* IntrospectionService::WatchBatches(
    grpc::CallbackServerContext* context,
    const v1::WatchBatchesRequest* /*request*/) {
  const absl::Status allowed = callers_->Of(*context).status();
  if (!allowed.ok()) return new RefusedWatcher(allowed);
  return reports_.Watch();
}

void IntrospectionService::Publish(const BatchReport& report) {
  if (reports_.has_watchers()) reports_.Publish(ToProto(report, *registry_));
}

void IntrospectionService::Close() { reports_.Close(ShuttingDown()); }

}  // namespace folio
