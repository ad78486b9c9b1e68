#include "runtime/server/request_conversion.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/field_error.h"
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
    return FieldError(
        "request_id",
        absl::StrCat(" has ", proto.request_id().size(), " bytes; it may have ",
                     kMaxRequestIdBytes, " at most"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TokenId>> PromptFromProto(
    const v1::GenerateRequest& proto, const Tokenizer& tokenizer) {
  switch (proto.input_case()) {
    case v1::GenerateRequest::kText: {
      absl::StatusOr<std::vector<TokenId>> prompt = tokenizer.Encode(
          proto.text(),
          {.add_special = true, .parse_special = proto.parse_special()});
      if (!prompt.ok()) return OfField("text", prompt.status());
      return prompt;
    }
    case v1::GenerateRequest::kTokenIds:
      return std::vector<TokenId>(proto.token_ids().ids().begin(),
                                  proto.token_ids().ids().end());
    case v1::GenerateRequest::INPUT_NOT_SET:
      break;
  }
  return FieldError("input", " is not set; give either text or token_ids");
}

// Each word's tokens at the start of a text, and after a space.
absl::StatusOr<std::vector<std::vector<TokenId>>> BadWordsFromProto(
    const v1::SamplingParams& proto, const Tokenizer& tokenizer) {
  std::vector<std::vector<TokenId>> words;
  if (proto.bad_words_size() > kMaxBadWords) {
    return FieldError(
        "sampling.bad_words",
        absl::StrCat(" has ", proto.bad_words_size(), " entries; at most ",
                     kMaxBadWords, " are allowed"));
  }
  for (int i = 0; i < proto.bad_words_size(); ++i) {
    const std::string& word = proto.bad_words(i);
    const std::string field = absl::StrCat("sampling.bad_words[", i, "]");
    if (word.empty() || word.size() > kMaxBadWordBytes) {
      return FieldError(
          field, absl::StrCat(" has ", word.size(),
                              " bytes; it must have 1 to ", kMaxBadWordBytes));
    }
    for (const std::string& text : {word, absl::StrCat(" ", word)}) {
      absl::StatusOr<std::vector<TokenId>> tokens = tokenizer.Encode(text, {});
      if (!tokens.ok()) return OfField(field, tokens.status());
      if (!tokens->empty() &&
          std::ranges::find(words, *tokens) == words.end()) {
        words.push_back(*std::move(tokens));
      }
    }
  }
  return words;
}

absl::StatusOr<SamplingParams> SamplingFromProto(
    const v1::SamplingParams& proto, const Tokenizer& tokenizer) {
  SamplingParams sampling;
  // Absent numbers are 0, which is their default, save for these.
  if (proto.has_top_p()) sampling.top_p = proto.top_p();
  if (proto.has_repetition_penalty()) {
    sampling.repetition_penalty = proto.repetition_penalty();
  }
  sampling.temperature = proto.temperature();
  sampling.top_k = proto.top_k();
  sampling.min_p = proto.min_p();
  sampling.presence_penalty = proto.presence_penalty();
  sampling.frequency_penalty = proto.frequency_penalty();
  sampling.allowed_tokens.assign(proto.allowed_token_ids().begin(),
                                 proto.allowed_token_ids().end());
  FOLIO_ASSIGN_OR_RETURN(sampling.bad_words,
                         BadWordsFromProto(proto, tokenizer));
  sampling.logit_bias.assign(proto.logit_bias().begin(),
                             proto.logit_bias().end());
  std::ranges::sort(sampling.logit_bias);  // A map has no order.
  if (proto.has_seed()) sampling.seed = proto.seed();
  if (proto.has_logprobs()) sampling.logprobs = proto.logprobs();
  sampling.prompt_logprobs = proto.prompt_logprobs();
  sampling.processed_logprobs = proto.processed_logprobs();
  return sampling;
}

}  // namespace

absl::Status OfField(std::string_view field, const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return FieldError(field, absl::StrCat(": ", std::string(status.message())));
}

absl::StatusOr<Request> RequestFromProto(const v1::GenerateRequest& proto,
                                         const ModelInfo& model,
                                         const Tokenizer& tokenizer) {
  FOLIO_RETURN_IF_ERROR(CheckEdgeFields(proto, model));
  Request request;
  FOLIO_ASSIGN_OR_RETURN(request.prompt, PromptFromProto(proto, tokenizer));
  FOLIO_ASSIGN_OR_RETURN(request.sampling,
                         SamplingFromProto(proto.sampling(), tokenizer));
  if (proto.has_max_tokens()) request.max_tokens = proto.max_tokens();
  request.stop_tokens.assign(proto.stop_token_ids().begin(),
                             proto.stop_token_ids().end());
  request.ignore_eos = proto.ignore_eos();
  request.stop_strings.assign(proto.stop().begin(), proto.stop().end());
  request.include_stop = proto.include_stop();
  request.min_tokens = proto.min_tokens();  // Absent: 0.
  if (proto.has_n()) request.n = proto.n();
  request.priority = proto.priority();  // Absent: 0.
  request.tenant = proto.tenant();
  return request;
}

}  // namespace folio
