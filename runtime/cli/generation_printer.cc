#include "runtime/cli/generation_printer.h"

#include <unistd.h>

#include <iostream>
#include <string_view>

#include "absl/strings/str_format.h"
#include "runtime/cli/visible_text.h"

namespace folio {
namespace {

constexpr std::string_view FinishReasonName(v1::FinishReason reason) {
  switch (reason) {
    case v1::FINISH_REASON_STOP:
      return "stop";
    case v1::FINISH_REASON_LENGTH:
      return "length";
    default:
      return "unknown";
  }
}

Json ToJson(const v1::ScoredToken& token) {
  Json top = Json::array();
  for (const v1::TokenLogprob& entry : token.top()) {
    top.push_back(
        {{"token_id", entry.token_id()}, {"logprob", double{entry.logprob()}}});
  }
  return {{"token_id", token.token_id()},
          {"logprob", double{token.logprob()}},
          {"top", std::move(top)}};
}

template <typename Tokens>
void AppendScored(const Tokens& tokens, Json& list) {
  for (const v1::ScoredToken& token : tokens) list.push_back(ToJson(token));
}

template <typename Tokens>
void PrintScored(std::string_view title, const Tokens& tokens) {
  if (tokens.empty()) return;
  std::cout << title << " (token id, logprob; likeliest)\n";
  for (const v1::ScoredToken& token : tokens) {
    std::cout << absl::StreamFormat("%8d %9.5f ;", token.token_id(),
                                    token.logprob());
    for (const v1::TokenLogprob& entry : token.top()) {
      std::cout << absl::StreamFormat(" %d %.5f", entry.token_id(),
                                      entry.logprob());
    }
    std::cout << '\n';
  }
}

}  // namespace

GenerationPrinter::GenerationPrinter(bool json)
    : json_(json), is_terminal_(isatty(STDOUT_FILENO) != 0) {}

void GenerationPrinter::Add(const v1::GenerateResponse& response) {
  all_.MergeFrom(response);
  text_ += response.text();
  if (response.token_ids().empty() && response.text().empty()) return;
  if (!json_) return PrintText(response.text());
  PrintJsonLine(
      {{"token_ids", response.token_ids()}, {"text", response.text()}});
}

void GenerationPrinter::PrintText(const std::string& text) const {
  // A model must not be able to move the cursor or worse.
  std::cout << (is_terminal_ ? WithVisibleControls(text, /*keep=*/"\n\t")
                             : text)
            << std::flush;
}

void GenerationPrinter::Finish(bool with_logprobs, bool with_prompt_logprobs) {
  if (json_) {
    FinishJson(with_logprobs, with_prompt_logprobs);
  } else {
    FinishText();
  }
}

void GenerationPrinter::FinishJson(bool with_logprobs,
                                   bool with_prompt_logprobs) const {
  const v1::Usage& usage = all_.usage();
  Json last = {{"token_ids", all_.token_ids()},
               {"text", text_},
               {"finish_reason", FinishReasonName(all_.finish_reason())},
               {"usage",
                {{"prompt_tokens", usage.prompt_tokens()},
                 {"generated_tokens", usage.generated_tokens()},
                 {"preemptions", usage.preemptions()}}},
               {"seed", all_.seed()}};
  if (with_logprobs) {
    last["logprobs"] = Json::array();
    AppendScored(all_.logprobs(), last["logprobs"]);
  }
  if (with_prompt_logprobs) {
    last["prompt_logprobs"] = Json::array({nullptr});  // Nothing is before it.
    AppendScored(all_.prompt_logprobs(), last["prompt_logprobs"]);
  }
  PrintJsonLine(last);
}

void GenerationPrinter::FinishText() const {
  std::cout << '\n';
  PrintScored("prompt logprobs", all_.prompt_logprobs());
  PrintScored("logprobs", all_.logprobs());
  std::cout << std::flush;
}

}  // namespace folio
