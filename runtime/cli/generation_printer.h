// What `folio generate` writes, wherever the tokens come from.

#ifndef RUNTIME_CLI_GENERATION_PRINTER_H_
#define RUNTIME_CLI_GENERATION_PRINTER_H_

#include <cstdint>
#include <map>
#include <string>

#include "folio/v1/generation.pb.h"
#include "runtime/cli/json_line.h"

namespace folio {

// Writes to stdout, at once, what each response brings. With `json`: an object
// a line, and a last one about everything. Without: the text of sample 0, after
// the end that of each further one under a line with its number, and after each
// text its logprobs where there are some.
class GenerationPrinter {
 public:
  // `many`: more than one sample was asked for, so objects say whose they are.
  GenerationPrinter(bool json, bool many);

  // The responses of one stream, in order.
  void Add(const v1::GenerateResponse& response);

  // After the last one. `with_logprobs` and `with_prompt_logprobs`: these were
  // asked for.
  void Finish(bool with_logprobs, bool with_prompt_logprobs);

 private:
  // One sample so far.
  struct Sample {
    // Its responses merged, but for the text: merging replaces that.
    v1::GenerateResponse merged;
    std::string text;
  };

  static Json ToJson(const Sample& sample);

  void PrintText(const std::string& text) const;
  void PrintPiece(const v1::GenerateResponse& piece) const;
  void FinishJson(bool with_logprobs, bool with_prompt_logprobs);
  void FinishText() const;

  const bool json_;
  const bool many_;
  const bool is_terminal_;
  // By index. Usage, seed, and the prompt with its logprobs are the whole
  // request's, in whichever sample's responses they came.
  std::map<int32_t, Sample> samples_;
  v1::Usage usage_;
  uint64_t seed_ = 0;
  google::protobuf::RepeatedPtrField<v1::ScoredToken> prompt_logprobs_;
  google::protobuf::RepeatedField<int32_t> prompt_token_ids_;  // With --echo.
  std::string prompt_text_;
};

}  // namespace folio

#endif  // RUNTIME_CLI_GENERATION_PRINTER_H_
