// The JSON of OpenAI's completions interface, as llama.cpp's server and vLLM
// speak it.

#ifndef BENCH_LOAD_OPENAI_PROTOCOL_H_
#define BENCH_LOAD_OPENAI_PROTOCOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/load/target.h"

namespace folio {

// The body of POST /completions: greedy, streamed, with the usage at the end.
// `model` is left out where it is empty, `n` where it is 1, and `user` (the
// tenant) and `priority` (of which a smaller one goes first, as in Folio) where
// they are not set. Bytes of a prompt that are not UTF-8 become U+FFFD.
std::string CompletionBody(const TargetRequest& request,
                           std::string_view model);

// One message of a stream of completions.
struct CompletionChunk {
  struct Choice {
    int32_t sample = 0;
    std::string text;
    bool is_last = false;  // Of its sample.

    // Whether it stands for a token. vLLM sends one for each token (or for
    // several, when the client is slow), with empty text while bytes of a
    // character are missing. llama.cpp's server sends none for such a token,
    // and one without text at the end that is no token.
    bool HasToken() const { return !text.empty() || !is_last; }
  };
  std::vector<Choice> choices;

  struct Usage {
    std::optional<int32_t> prompt_tokens;
    std::optional<int32_t> completion_tokens;
  };
  std::optional<Usage> usage;
};

// INTERNAL when it is not JSON; for an error of the server's, what
// StatusOfHttp says for its code, INTERNAL where it has none.
absl::StatusOr<CompletionChunk> ParseCompletionChunk(std::string_view data);

// What an answer of HTTP status `http` means that is not 200, with the message
// that its body holds, cut at 300 bytes: UNAUTHENTICATED for 401,
// PERMISSION_DENIED for 403, NOT_FOUND for 404, RESOURCE_EXHAUSTED for 429,
// INVALID_ARGUMENT for any other 4xx, UNAVAILABLE for 503, else INTERNAL.
absl::Status StatusOfHttp(int http, std::string_view body);

// What the body of GET /models tells of `model`, or of the first one where that
// is empty: llama.cpp's server says "llamacpp" and gives sizes under "meta",
// vLLM "vllm" and "max_model_len". The server is `header`, that of its answer's
// "Server", where the body does not tell. INVALID_ARGUMENT when it is no list.
absl::StatusOr<TargetInfo> ParseModels(std::string_view body,
                                       std::string_view model,
                                       std::string_view header);

// What a completion took, out of the usages among its chunks. One that stands
// beside a choice is of that sample so far (each sample of llama.cpp's ends in
// one), one without choices or beside several is of the whole request.
class UsageCount {
 public:
  void Add(const CompletionChunk& chunk);

  std::optional<int32_t> prompt_tokens() const { return prompt_tokens_; }
  std::optional<int32_t> completion_tokens() const;

 private:
  std::optional<int32_t> prompt_tokens_;
  std::optional<int32_t> all_;
  std::vector<int32_t> of_samples_;
};

}  // namespace folio

#endif  // BENCH_LOAD_OPENAI_PROTOCOL_H_
