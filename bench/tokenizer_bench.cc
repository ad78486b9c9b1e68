// How fast a tokenizer encodes, on one core.
//
//   tokenizer_bench [Google Benchmark's flags] [--tokenizer FILE.gguf|FOLDER]
//
// Without --tokenizer: byte-level BPE with a vocabulary made here. The text is
// made-up English prose of a megabyte, and then a run of one letter.

#include <benchmark/benchmark.h>
#include <glog/logging.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/open_tokenizer.h"

namespace folio {
namespace {

constexpr size_t kTextBytes = 1 << 20;
constexpr int kNumWords = 20'000;

// Made-up words of English syllables; the commoner, the shorter.
std::vector<std::string> MakeWords(std::mt19937_64& random) {
  static constexpr const char* kSyllables[] = {
      "the", "an", "in", "er", "on", "re", "ti", "es", "or",  "te",
      "of",  "ed", "is", "it", "al", "ar", "st", "to", "nt",  "ng",
      "se",  "ha", "as", "ou", "io", "le", "ve", "co", "me",  "de",
      "hi",  "ri", "ro", "ic", "ne", "ea", "ra", "ce", "li",  "ch",
      "ll",  "be", "ma", "si", "om", "ur", "ba", "wa", "pre", "tion"};
  std::vector<std::string> words;
  for (int i = 0; i < kNumWords; ++i) {
    std::string word;
    const int num_syllables = 1 + static_cast<int>(std::log10(i + 1));
    for (int j = 0; j < num_syllables; ++j) {
      word += kSyllables[random() % std::size(kSyllables)];
    }
    words.push_back(word);
  }
  return words;
}

// Plain prose: the word of rank r comes up with a frequency of 1/r (Zipf).
std::string MakeText(const std::vector<std::string>& words,
                     std::mt19937_64& random) {
  std::vector<double> weights;
  for (int rank = 1; rank <= kNumWords; ++rank) weights.push_back(1.0 / rank);
  std::discrete_distribution<int> draw(weights.begin(), weights.end());
  std::string text;
  for (int length = 1; text.size() < kTextBytes; ++length) {
    text += words[draw(random)];
    text += length % 97 == 0 ? ".\n\n" : length % 11 == 0 ? ", " : " ";
  }
  return text;
}

// GPT-2's alphabet has U+0120 for a space.
std::string InAlphabet(char c) {
  return c == ' ' ? "\u0120" : std::string(1, c);
}

// A tokenizer.json of byte-level BPE in which the commoner half of the words
// are tokens, as are their beginnings, and runs of one letter double.
nlohmann::json MakeTokenizer(const std::vector<std::string>& words) {
  nlohmann::json vocab;
  nlohmann::json merges = nlohmann::json::array();
  const auto add = [&vocab](const std::string& token) {
    return vocab.emplace(token, vocab.size()).second;
  };
  for (char c = '!'; c <= '~'; ++c) add(InAlphabet(c));
  add(InAlphabet(' '));
  add("\u010A");  // A line feed.
  for (std::string run = "a"; run.size() < 64; run += run) {
    if (add(run + run)) merges.push_back({run, run});
  }
  for (size_t i = 0; i < words.size() / 2; ++i) {
    std::string beginning = InAlphabet(' ');
    for (const char c : words[i]) {
      if (add(beginning + c)) {
        merges.push_back({beginning, std::string(1, c)});
      }
      beginning += c;
    }
  }
  return {
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"decoder", {{"type", "ByteLevel"}}}};
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenMadeTokenizer(
    const std::vector<std::string>& words) {
  const std::string json = MakeTokenizer(words).dump();
  return OpenHfTokenizer(ModelFiles::InMemory(
      "made here", {{"tokenizer.json", std::as_bytes(std::span(json))}}));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(
    const std::string& path) {
  if (!path.ends_with(".gguf")) {
    return OpenHfTokenizer(ModelFiles::Folder(path));
  }
  absl::StatusOr<std::unique_ptr<GgufFile>> file = GgufFile::Open(path);
  if (!file.ok()) return file.status();
  return OpenGgufTokenizer(**file);
}

void Encode(benchmark::State& state, const Tokenizer& tokenizer,
            const std::string& text) {
  size_t num_tokens = 0;
  for (auto _ : state) {
    const auto tokens = tokenizer.Encode(text, {});
    CHECK(tokens.ok()) << tokens.status();
    num_tokens = tokens->size();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(text.size()));
  state.counters["tokens"] = static_cast<double>(num_tokens);
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::mt19937_64 random(1);
  const std::vector<std::string> words = MakeWords(random);
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      OpenMadeTokenizer(words);
  if (argc == 3 && std::string_view(argv[1]) == "--tokenizer") {
    tokenizer = OpenTokenizer(argv[2]);
  } else if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  CHECK(tokenizer.ok()) << tokenizer.status();
  const std::string prose = MakeText(words, random);
  const std::string run(kTextBytes, 'a');
  benchmark::RegisterBenchmark("Encode/prose", Encode, std::cref(**tokenizer),
                               std::cref(prose));
  benchmark::RegisterBenchmark("Encode/one_letter", Encode,
                               std::cref(**tokenizer), std::cref(run));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) { return folio::Main(argc, argv); }
