#include "runtime/server/admission.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/field_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/finish_status.h"
#include "runtime/server/request_conversion.h"
#include "runtime/server/request_facts.h"

namespace folio {
namespace {

// For the log, in the form that it came in.
std::string PromptOf(const v1::GenerateRequest& proto) {
  if (proto.input_case() == v1::GenerateRequest::kText) return proto.text();
  return absl::StrCat("[", absl::StrJoin(proto.token_ids().ids(), ","), "]");
}

}  // namespace

absl::Duration TimeLeft(const grpc::ServerContextBase& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return absl::InfiniteDuration();
  }
  return absl::FromChrono(deadline - std::chrono::system_clock::now());
}

absl::StatusOr<Admission::Checked> Admission::Check(
    const v1::GenerateRequest& proto, const Caller& caller,
    absl::Duration time_left) {
  FOLIO_ASSIGN_OR_RETURN(const Backend* const backend, slot_->Get());
  Engine& engine = *backend->engine;
  if (time_left <= absl::ZeroDuration()) {
    return StatusOfFinish(FinishReason::kDeadline);
  }
  if (proto.text().size() > backend->max_text_bytes) {
    return FieldError(
        "text", absl::StrCat(" has ", proto.text().size(),
                             " bytes; the longest prompt that fits here has ",
                             engine.request_limits().MaxPromptTokens(),
                             " tokens, and no text of more than ",
                             backend->max_text_bytes, " bytes"));
  }
  FOLIO_ASSIGN_OR_RETURN(
      Request request,
      RequestFromProto(proto, engine.model_info(), *backend->tokenizer));
  FOLIO_ASSIGN_OR_RETURN(request.tenant, TenantOf(caller, proto.tenant()));
  request.deadline = backend->clock->Now() + time_left;
  FOLIO_RETURN_IF_ERROR(engine.Prepare(request));

  RequestFacts facts = {
      .name = proto.request_id(), .tenant = request.tenant, .n = request.n};
  if (keep_prompts_) facts.prompt = PromptOf(proto);
  FOLIO_ASSIGN_OR_RETURN(std::string name,
                         registry_->Add(request.id, std::move(facts)));
  ResponseQueue responses(std::move(name), request);
  if (proto.echo()) responses.AddEcho(*backend->tokenizer, request.prompt);
  return Checked{.engine = &engine,
                 .request = std::move(request),
                 .responses = std::move(responses)};
}

absl::Status Admission::Submit(Engine& engine, Request request,
                               EventSink* sink) {
  const RequestId id = request.id;
  registry_->SetSink(id, sink);
  const absl::Status submitted = engine.Submit(std::move(request));
  if (submitted.ok()) {
    // Abort may have come before there was something to end.
    if (registry_->IsAborted(id)) engine.Abort(id, FinishReason::kAborted);
    return submitted;
  }
  registry_->Remove(id);
  // Clients know a server that ends by one status, wherever it refuses them.
  return absl::IsUnavailable(submitted)
             ? StatusOfFinish(FinishReason::kShutdown)
             : submitted;
}

}  // namespace folio
