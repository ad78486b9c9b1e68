#include <glog/logging.h>

#include <algorithm>

#include "runtime/tokenizer/open_tokenizer.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/touch.h"
#include "tests/fuzz/use_tokenizer.h"

namespace folio {
namespace {

constexpr char kByteLevel[] = R"json({
  "version": "1.0",
  "added_tokens": [
    {"id": 5, "content": "<s>", "single_word": false, "lstrip": false,
     "rstrip": false, "normalized": false, "special": true},
    {"id": 6, "content": "ab ab", "single_word": true, "lstrip": true,
     "rstrip": true, "normalized": true, "special": false}],
  "normalizer": {"type": "Sequence", "normalizers": [
    {"type": "NFC"}, {"type": "Lowercase"},
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}| ?\\p{L}+|\\s+(?!\\S)"},
     "behavior": "Isolated", "invert": false},
    {"type": "Digits", "individual_digits": true},
    {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
     "use_regex": false}]},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}}},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true,
              "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null,
    "continuing_subword_prefix": null, "end_of_word_suffix": null,
    "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
    "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120ab": 4},
    "merges": ["a b", "\u0120 ab"]}})json";

constexpr char kByteFallback[] = R"json({
  "added_tokens": [
    {"id": 0, "content": "<unk>", "single_word": false, "lstrip": false,
     "rstrip": false, "normalized": false, "special": true}],
  "normalizer": {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "\u2581"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
  "pre_tokenizer": null,
  "post_processor": null,
  "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
  "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>",
    "continuing_subword_prefix": null, "end_of_word_suffix": null,
    "fuse_unk": true, "byte_fallback": true,
    "vocab": {"<unk>": 0, "<0x61>": 1, "a": 2, "b": 3, "ab": 4, "\u2581": 5},
    "merges": [["a", "b"]]}})json";

// The input is tokenizer.json; what follows a zero byte, which JSON can't have,
// is tokenizer_config.json.
ModelFiles FilesOf(std::span<const std::byte> input) {
  const auto zero = std::ranges::find(input, std::byte{0});
  const size_t size = zero - input.begin();
  std::vector<ModelFiles::Embedded> files = {
      {"tokenizer.json", input.first(size)}};
  if (zero != input.end()) {
    files.push_back({"tokenizer_config.json", input.subspan(size + 1)});
  }
  return ModelFiles::InMemory(std::string(kFuzzFile), std::move(files));
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string config =
      R"({"bos_token": "<s>", "eos_token": {"content": "<s>"},)"
      R"( "add_bos_token": true, "add_eos_token": true})";
  return {kByteLevel, kByteFallback, std::string(kByteLevel) + '\0' + config,
          R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})"};
}

}  // namespace folio

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FLAGS_minloglevel = google::GLOG_ERROR;  // What is odd is no news here.
  const auto tokenizer = folio::OpenHfTokenizer(
      folio::FilesOf(std::as_bytes(std::span(data, size))));
  if (tokenizer.ok()) {
    folio::UseTokenizer(**tokenizer);
  } else {
    folio::CheckRefusal(tokenizer.status());
  }
  return 0;
}
