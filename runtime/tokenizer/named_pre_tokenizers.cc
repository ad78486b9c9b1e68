#include "runtime/tokenizer/named_pre_tokenizers.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace folio {

// English contractions, words, numbers and anything else, each with one space
// before it; of white space, all but the space that goes with what follows.
const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
    R"(|\s+(?!\S)|\s+)";

namespace {

// Llama 3 and Qwen differ only in how many digits stay together. Any one
// character may go with the word after it, and line ends with what is before.
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Row {
  std::string_view name;
  std::vector<std::string_view> patterns;  // Each isolates its matches.
  bool composes_text = false;
  bool takes_whole_pieces = false;
  bool adds_bos = false;
};

// The tokenizer.json of each family's first model describes these steps; what
// ByteLevel and Digits stand for is written out.
const std::vector<Row>& Rows() {
  static const auto* const rows = new std::vector<Row>{
      {.name = "gpt-2", .patterns = {kGpt2Pattern}},
      {.name = "starcoder", .patterns = {R"(\p{N})", kGpt2Pattern}},
      {.name = "llama-bpe",
       .patterns = {kLlama3Pattern},
       .takes_whole_pieces = true,
       .adds_bos = true},
      {.name = "qwen2", .patterns = {kQwen2Pattern}, .composes_text = true},
      // The ranges are of Chinese, Japanese and Korean characters.
      {.name = "deepseek-coder",
       .patterns = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
                    R"(\p{N})"}},
      {.name = "falcon",
       .patterns = {R"([\p{P}$+<=>^~|`]+)", kGpt2Pattern, "[0-9][0-9][0-9]"}},
  };
  return *rows;
}

absl::StatusOr<NamedPreTokenizer> Build(const Row& row) {
  std::vector<PreTokenizerStep> steps;
  for (const std::string_view regex : row.patterns) {
    FOLIO_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Compile(regex));
    steps.push_back(Split{.pattern = std::move(pattern)});
  }
  return NamedPreTokenizer{.pre_tokenizer = PreTokenizer(std::move(steps)),
                           .composes_text = row.composes_text,
                           .takes_whole_pieces = row.takes_whole_pieces,
                           .adds_bos = row.adds_bos};
}

}  // namespace

absl::StatusOr<NamedPreTokenizer> FindNamedPreTokenizer(std::string_view name) {
  for (const Row& row : Rows()) {
    if (row.name == name) return Build(row);
  }
  const std::string names = absl::StrJoin(
      Rows(), ", ",
      [](std::string* out, const Row& row) { out->append(row.name); });
  return absl::InvalidArgumentError(
      absl::StrCat("found \"", std::string(name), "\"; supported are ", names));
}

}  // namespace folio
