// What `folio generate` writes, wherever the tokens come from.

#ifndef RUNTIME_CLI_GENERATION_PRINTER_H_
#define RUNTIME_CLI_GENERATION_PRINTER_H_

#include <cstdint>
#include <string>

#include "folio/v1/generation.pb.h"
#include "runtime/cli/json_line.h"

namespace folio {

// Writes to stdout, at once, what each response brings. With `json`: an object
// a line, and a last one about everything. Without: the text, and after it
// logprobs where there are some.
class GenerationPrinter {
 public:
  explicit GenerationPrinter(bool json);

  // The responses of one stream, in order.
  void Add(const v1::GenerateResponse& response);

  // After the last one. `with_logprobs` and `with_prompt_logprobs`: these were
  // asked for.
  void Finish(bool with_logprobs, bool with_prompt_logprobs);

 private:
  void PrintText(const std::string& text) const;
  void FinishJson(bool with_logprobs, bool with_prompt_logprobs) const;
  void FinishText() const;

  const bool json_;
  const bool is_terminal_;
  // Every response so far, merged, but for the text: merging replaces that.
  v1::GenerateResponse all_;
  std::string text_;
};

}  // namespace folio

#endif  // RUNTIME_CLI_GENERATION_PRINTER_H_
