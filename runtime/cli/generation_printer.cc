#include "runtime/cli/generation_printer.h"

#include <unistd.h>

#include <iostream>
#include <string_view>

#include "absl/strings/str_format.h"
#include "runtime/cli/visible_text.h"
#include "runtime/server/duration_conversion.h"

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

Json ToJson(const v1::Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens()},
          {"generated_tokens", usage.generated_tokens()},
          {"preemptions", usage.preemptions()},
          {"cached_tokens", usage.cached_tokens()},
          {"peak_pages", usage.peak_pages()},
          {"queue_duration", ToSeconds(usage.queue_duration())},
          {"prefill_duration", ToSeconds(usage.prefill_duration())},
          {"decode_duration", ToSeconds(usage.decode_duration())}};
}

template <typename Tokens>
Json ScoredJson(const Tokens& tokens) {
  Json list = Json::array();
  for (const v1::ScoredToken& token : tokens) list.push_back(ToJson(token));
  return list;
}

}  // namespace

GenerationPrinter::GenerationPrinter(bool json, bool many)
    : json_(json), many_(many), is_terminal_(isatty(STDOUT_FILENO) != 0) {}

void GenerationPrinter::Add(const v1::GenerateResponse& response) {
  Sample& sample = samples_[response.sample_index()];
  sample.merged.MergeFrom(response);
  sample.text += response.text();
  if (response.has_usage()) usage_ = response.usage();
  if (response.has_seed()) seed_ = response.seed();
  prompt_logprobs_.MergeFrom(response.prompt_logprobs());
  prompt_token_ids_.MergeFrom(response.prompt_token_ids());
  prompt_text_ += response.prompt_text();
  if (!json_) PrintText(response.prompt_text());
  if (response.token_ids().empty() && response.text().empty()) return;
  if (json_) return PrintPiece(response);
  if (response.sample_index() == 0) PrintText(response.text());
}

void GenerationPrinter::PrintPiece(const v1::GenerateResponse& piece) const {
  Json line;
  if (many_) line["sample_index"] = piece.sample_index();
  line["token_ids"] = piece.token_ids();
  line["text"] = piece.text();
  PrintJsonLine(line);
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

Json GenerationPrinter::ToJson(const Sample& sample) {
  Json json = {
      {"token_ids", sample.merged.token_ids()},
      {"text", sample.text},
      {"finish_reason", FinishReasonName(sample.merged.finish_reason())}};
  if (!sample.merged.stop().empty()) json["stop"] = sample.merged.stop();
  return json;
}

void GenerationPrinter::FinishJson(bool with_logprobs,
                                   bool with_prompt_logprobs) {
  Json last;
  if (many_) {
    last["samples"] = Json::array();
    for (const auto& [index, sample] : samples_) {
      Json& entry = last["samples"].emplace_back(ToJson(sample));
      if (with_logprobs)
        entry["logprobs"] = ScoredJson(sample.merged.logprobs());
    }
  } else {
    last = ToJson(samples_[0]);
  }
  last["usage"] = folio::ToJson(usage_);
  last["seed"] = seed_;
  if (with_logprobs && !many_) {
    last["logprobs"] = ScoredJson(samples_[0].merged.logprobs());
  }
  if (!prompt_token_ids_.empty()) {
    last["prompt_token_ids"] = prompt_token_ids_;
    last["prompt_text"] = prompt_text_;
  }
  if (with_prompt_logprobs) {
    Json& list = last["prompt_logprobs"];
    list = ScoredJson(prompt_logprobs_);
    list.insert(list.begin(), nullptr);  // Nothing is before the first token.
  }
  PrintJsonLine(last);
}

void GenerationPrinter::FinishText() const {
  for (const auto& [index, sample] : samples_) {
    if (index > 0) {
      std::cout << "--- sample " << index << '\n';
      PrintText(sample.text);
    }
    std::cout << '\n';
    if (index == 0) PrintScored("prompt logprobs", prompt_logprobs_);
    PrintScored("logprobs", sample.merged.logprobs());
  }
  std::cout << std::flush;
}

}  // namespace folio
