#include "bench/load/load.h"

#include <glog/logging.h>

#include <string_view>

#include "absl/strings/str_cat.h"
#include "bench/load/random.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

void AppendRandomTokens(uint64_t seed, int32_t count, int32_t vocab_size,
                        std::vector<TokenId>& tokens) {
  for (int32_t i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<TokenId>(DrawBelow(vocab_size, seed, /*stream=*/0, i)));
  }
}

// What keeps the request from being a plain one; empty if nothing does.
std::string_view MoreThanPlain(const LoadRequest& load) {
  if (!load.prompt_text.empty()) return "a text as its prompt";
  if (load.n != 1) return "several samples";
  if (load.deadline.has_value()) return "a deadline";
  if (load.cancel_after.has_value()) return "a time to be cancelled";
  if (load.read_delay != absl::ZeroDuration()) return "a slow reader";
  if (load.previous.has_value()) return "a turn before it";
  return {};
}

}  // namespace

std::vector<TokenId> RandomTokens(uint64_t seed, int32_t count,
                                  int32_t vocab_size) {
  std::vector<TokenId> tokens;
  tokens.reserve(count);
  AppendRandomTokens(seed, count, vocab_size, tokens);
  return tokens;
}

std::vector<TokenId> PromptTokens(const LoadRequest& load, int32_t vocab_size) {
  CHECK(load.prompt_text.empty()) << "the prompt is a text";
  std::vector<TokenId> tokens;
  tokens.reserve(size_t{0} + load.prefix_tokens + load.prompt_tokens);
  AppendRandomTokens(load.prefix_seed, load.prefix_tokens, vocab_size, tokens);
  AppendRandomTokens(load.token_seed, load.prompt_tokens, vocab_size, tokens);
  return tokens;
}

Request ToRequest(const LoadRequest& load, int32_t vocab_size) {
  CHECK(MoreThanPlain(load).empty())
      << "the request has " << MoreThanPlain(load);
  Request request;
  request.prompt = PromptTokens(load, vocab_size);
  request.max_tokens = load.output_tokens;
  request.ignore_eos = true;
  request.tenant = load.tenant;
  request.priority = load.priority;
  return request;
}

absl::Status CheckPlain(std::span<const LoadRequest> load) {
  for (size_t i = 0; i < load.size(); ++i) {
    const std::string_view more = MoreThanPlain(load[i]);
    if (more.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "request ", i, " of the load (from 0) has ", std::string(more),
        "; here a request has only tokens, an output length, a tenant and a "
        "priority"));
  }
  return absl::OkStatus();
}

}  // namespace folio
