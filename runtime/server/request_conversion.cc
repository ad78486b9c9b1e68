#include "runtime/server/request_conversion.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/quoted.h"

namespace folio {
namespace {

absl::Status CheckEdgeFields(const v1::GenerateRequest& proto,
                             const ModelInfo& model) {
  if (!proto.model().empty() && proto.model() != model.name) {
    return absl::NotFoundError(absl::StrCat(
        "model is ", Quoted(proto.model()), "; this server serves '",
        model.name, "'. Name that one, or leave the field empty"));
  }
  if (proto.request_id().size() > kMaxRequestIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id has ", proto.request_id().size(),
                     " bytes; it may have ", kMaxRequestIdBytes, " at most"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TokenId>> PromptFromProto(
    const v1::GenerateRequest& proto, const Tokenizer& tokenizer) {
  switch (proto.input_case()) {
    case v1::GenerateRequest::kText:
      return tokenizer.Encode(
          proto.text(),
          {.add_special = true, .parse_special = proto.parse_special()});
    case v1::GenerateRequest::kTokenIds:
      return std::vector<TokenId>(proto.token_ids().ids().begin(),
                                  proto.token_ids().ids().end());
    case v1::GenerateRequest::INPUT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "input is not set; give either text or token_ids");
}

SamplingParams SamplingFromProto(const v1::SamplingParams& proto) {
  SamplingParams sampling;
  sampling.temperature = proto.temperature();  // Absent: 0.
  sampling.top_k = proto.top_k();              // Absent: 0, too.
  if (proto.has_top_p()) sampling.top_p = proto.top_p();
  if (proto.has_seed()) sampling.seed = proto.seed();
  if (proto.has_logprobs()) sampling.logprobs = proto.logprobs();
  sampling.prompt_logprobs = proto.prompt_logprobs();
  return sampling;
}

}  // namespace

absl::StatusOr<Request> RequestFromProto(const v1::GenerateRequest& proto,
                                         const ModelInfo& model,
                                         const Tokenizer& tokenizer) {
  FOLIO_RETURN_IF_ERROR(CheckEdgeFields(proto, model));
  Request request;
  FOLIO_ASSIGN_OR_RETURN(request.prompt, PromptFromProto(proto, tokenizer));
  request.sampling = SamplingFromProto(proto.sampling());
  if (proto.has_max_tokens()) request.max_tokens = proto.max_tokens();
  request.stop_tokens.assign(proto.stop_token_ids().begin(),
                             proto.stop_token_ids().end());
  request.ignore_eos = proto.ignore_eos();
  if (proto.has_n()) request.n = proto.n();
  request.priority = proto.priority();  // Absent: 0.
  request.tenant = proto.tenant();
  return request;
}

}  // namespace folio
