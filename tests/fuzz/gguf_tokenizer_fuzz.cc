#include <glog/logging.h>

#include "runtime/tokenizer/open_tokenizer.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/touch.h"
#include "tests/fuzz/use_tokenizer.h"
#include "tests/support/gguf_builder.h"

namespace folio {
namespace {

// Token types of the format.
constexpr int32_t kNormal = 1;
constexpr int32_t kUnknown = 2;
constexpr int32_t kControl = 3;
constexpr int32_t kByte = 6;

// "Ġ" is the space of GPT-2's alphabet.
GgufBuilder ByteLevel() {
  return GgufBuilder()
      .Add("tokenizer.ggml.model", "gpt2")
      .AddArray<std::string>("tokenizer.ggml.tokens",
                             {"a", "b", "ab", "Ġ", "Ġab", "1", "<s>"})
      .AddArray<int32_t>(
          "tokenizer.ggml.token_type",
          {kNormal, kNormal, kNormal, kNormal, kNormal, kNormal, kControl})
      .AddArray<std::string>("tokenizer.ggml.merges", {"a b", "Ġ ab"})
      .Add("tokenizer.ggml.bos_token_id", uint32_t{6})
      .Add("tokenizer.ggml.eos_token_id", uint32_t{6})
      .Add("tokenizer.ggml.add_bos_token", true)
      .Add("tokenizer.ggml.add_eos_token", true);
}

GgufBuilder SentencePiece() {
  return GgufBuilder()
      .Add("tokenizer.ggml.model", "llama")
      .AddArray<std::string>(
          "tokenizer.ggml.tokens",
          {"<unk>", "<s>", "</s>", "<0x61>", "a", "b", "ab", "▁", "▁ab"})
      .AddArray<float>("tokenizer.ggml.scores",
                       {0, 0, 0, 0, -4, -3, -1, -5, -2})
      .AddArray<int32_t>("tokenizer.ggml.token_type",
                         {kUnknown, kControl, kControl, kByte, kNormal, kNormal,
                          kNormal, kNormal, kNormal})
      .Add("tokenizer.ggml.bos_token_id", uint32_t{1})
      .Add("tokenizer.ggml.eos_token_id", uint32_t{2})
      .Add("tokenizer.ggml.unknown_token_id", uint32_t{0})
      .Add("tokenizer.ggml.add_space_prefix", true);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds = {
      SentencePiece().Build(),
      SentencePiece()
          .Add("tokenizer.ggml.remove_extra_whitespaces", true)
          .Build(),
      ByteLevel().Build()};
  for (const char* name : {"gpt-2", "starcoder", "llama-bpe", "qwen2",
                           "deepseek-coder", "falcon", "unheard-of"}) {
    seeds.push_back(ByteLevel().Add("tokenizer.ggml.pre", name).Build());
  }
  seeds.push_back(GgufBuilder().Add("tokenizer.ggml.model", "bert").Build());
  return seeds;
}

}  // namespace folio

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FLAGS_minloglevel = google::GLOG_ERROR;  // What is odd is no news here.
  const auto file = folio::GgufFile::Parse(folio::FuzzFile(data, size));
  if (!file.ok()) return 0;
  const auto tokenizer = folio::OpenGgufTokenizer(**file);
  if (tokenizer.ok()) {
    folio::UseTokenizer(**tokenizer);
  } else if (!absl::IsNotFound(tokenizer.status())) {
    folio::CheckRefusal(tokenizer.status());
  }
  return 0;
}
