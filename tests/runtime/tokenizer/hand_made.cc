#include "tests/runtime/tokenizer/hand_made.h"

#include <cstdint>
#include <random>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/open_tokenizer.h"

namespace folio {
namespace {

using nlohmann::json;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The UTF-8 of a code point.
std::string Utf8(uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  const int num_tails = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr int kMarkers[] = {0, 0xC0, 0xE0, 0xF0};
  std::string bytes(
      1, static_cast<char>(kMarkers[num_tails] | code >> 6 * num_tails));
  for (int i = num_tails - 1; i >= 0; --i) {
    bytes.push_back(static_cast<char>(0x80 | (code >> 6 * i & 0x3F)));
  }
  return bytes;
}

}  // namespace

std::string InByteLevelAlphabet(std::string_view text) {
  const auto is_printed = [](int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
  };
  std::string result;
  for (const char c : text) {
    const int byte = static_cast<uint8_t>(c);
    int others_before = 0;
    for (int i = 0; i < byte; ++i) others_before += !is_printed(i);
    result += Utf8(is_printed(byte) ? byte : 0x100 + others_before);
  }
  return result;
}

json ByteLevelJson() {
  json vocab;
  for (int byte = 0; byte < 256; ++byte) {
    vocab[InByteLevelAlphabet(std::string(1, static_cast<char>(byte)))] = byte;
  }
  const std::string space = InByteLevelAlphabet(" ");
  vocab["ab"] = 256;
  vocab["abc"] = 257;
  vocab[space + "ab"] = 258;
  return {
      {"added_tokens",
       {{{"id", 259}, {"content", "<end>"}, {"special", true}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", vocab},
        {"merges", {"a b", "ab c", space + " ab"}}}}};
}

json SentencePieceJson() {
  json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) {
    vocab[absl::StrFormat("<0x%02X>", byte)] = 3 + byte;
  }
  vocab["a"] = 259;
  vocab["b"] = 260;
  vocab["\u2581"] = 261;
  vocab["ab"] = 262;
  vocab
      ["\u2581"
       "ab"] = 263;
  json added = json::array();
  for (const auto& [name, id] :
       {std::pair("<unk>", 0), std::pair("<s>", 1), std::pair("</s>", 2)}) {
    added.push_back({{"id", id}, {"content", name}, {"special", true}});
  }
  return {
      {"added_tokens", added},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         {{{"type", "Prepend"}, {"prepend", "\u2581"}},
          {{"type", "Replace"},
           {"pattern", {{"String", " "}}},
           {"content", "\u2581"}}}}}},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single",
         {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
        {"special_tokens", {{"<s>", {{"ids", {1}}}}}}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "Replace"},
           {"pattern", {{"String", "\u2581"}}},
           {"content", " "}},
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", vocab},
        {"unk_token", "<unk>"},
        {"byte_fallback", true},
        {"merges", {"a b", "\u2581 ab"}}}}};
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenHandMadeHf(
    const json& tokenizer) {
  return OpenHandMadeHfFiles(tokenizer.dump(), "{}");
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenHandMadeHfFiles(
    const std::string& tokenizer, const std::string& config) {
  return OpenHfTokenizer(ModelFiles::InMemory(
      "hand-made", {{"tokenizer.json", BytesOf(tokenizer)},
                    {"tokenizer_config.json", BytesOf(config)}}));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenHandMadeGguf(
    const std::string& bytes) {
  FOLIO_ASSIGN_OR_RETURN(
      const std::unique_ptr<GgufFile> file,
      GgufFile::Parse(MappedFile::OfMemory("hand-made.gguf", BytesOf(bytes))));
  return OpenGgufTokenizer(*file);
}

std::string RandomText(uint64_t seed, int max_bytes) {
  // Alphabets, digits, marks, spaces, symbols; the last is everything.
  static constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {'a', 'z'},         {'A', 'Z'},       {'0', '9'},
      {' ', ' '},         {'\t', '\r'},     {'!', '/'},
      {0xA0, 0xFF},       {0x300, 0x36F},   {0x391, 0x3C9},
      {0x430, 0x44F},     {0x5D0, 0x5EA},   {0x905, 0x939},
      {0x2000, 0x206F},   {0x2460, 0x24FF}, {0x3041, 0x3096},
      {0x4E00, 0x4FFF},   {0xAC00, 0xACFF}, {0x1F300, 0x1F64F},
      {0x10000, 0x10FFFF}};
  std::mt19937_64 random(seed);
  std::string text;
  const size_t size = random() % (max_bytes + 1);
  while (text.size() < size) {
    const auto& [first, last] = kRanges[random() % std::size(kRanges)];
    for (uint64_t run = random() % 4; run > 0; --run) {
      text +=
          Utf8(first + static_cast<uint32_t>(random() % (last - first + 1)));
    }
  }
  return text;
}

}  // namespace folio
