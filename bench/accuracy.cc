// What the types of weights and of K/V cost in accuracy, on a text that the
// model has not seen: perplexity, the mean KL divergence from the distribution
// in f32, and how often the likeliest token is the same one.

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cache/kv_layout.h"
#include "cache/kv_storage.h"
#include "runtime/base/executor.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model_tokenizer.h"
#include "runtime/model/model_registry.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  python3 runtime/model/folio_tiny/bible.py > held_out.txt
  accuracy --text held_out.txt
  accuracy --text held_out.txt --model my-model.gguf

Each line of the text is a passage of its own, as long as the model's context
at most.)";

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kBf16 = ElementType::kBf16;
constexpr ElementType kInt8 = ElementType::kInt8;
constexpr ElementType kInt4 = ElementType::kInt4;

constexpr ModelTypes kTypes[] = {{kF32, kF32},   {kF32, kBf16},  {kF32, kInt8},
                                 {kBf16, kBf16}, {kInt8, kBf16}, {kInt8, kInt8},
                                 {kInt4, kBf16}, {kInt4, kInt8}};
constexpr int32_t kMostTokens = 1024;  // Of a passage.
constexpr int32_t kPageSize = 16;

using Passages = std::vector<std::vector<TokenId>>;

absl::StatusOr<Passages> ReadPassages(const std::string& path,
                                      const Tokenizer& tokenizer,
                                      const DecoderConfig& config) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("'", path, "' can't be read"));
  }
  Passages passages;
  for (std::string line; std::getline(file, line);) {
    FOLIO_ASSIGN_OR_RETURN(std::vector<TokenId> tokens,
                           tokenizer.Encode(line, {}));
    if (config.bos_token.has_value()) {
      tokens.insert(tokens.begin(), *config.bos_token);
    }
    tokens.resize(std::min<size_t>(
        tokens.size(), std::min(config.context_length, kMostTokens)));
    if (tokens.size() > 1) passages.push_back(std::move(tokens));
  }
  if (passages.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has no line of two tokens or more"));
  }
  return passages;
}

// A model that reads one passage at a time, from its first token.
class Reader {
 public:
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const ModelSource& source,
                                                      const ModelTypes& types,
                                                      Executor* executor) {
    const ModelLimits limits{.max_batch_tokens = kMostTokens,
                             .max_logits_rows = kMostTokens};
    auto reader = std::make_unique<Reader>();
    reader->model_ = LoadModel(source, types, limits, executor);
    const KvLayout layout(reader->model_->info().kv_shape, kPageSize);
    FOLIO_ASSIGN_OR_RETURN(
        reader->storage_,
        KvStorage::Create(layout,
                          layout.PagesFor(kMostTokens) * layout.page_bytes(),
                          *executor));
    return reader;
  }

  // Logits of every token but the last, which has nothing to predict.
  const ColumnBlocks& Read(std::span<const TokenId> passage) {
    const int32_t count = static_cast<int32_t>(passage.size()) - 1;
    std::vector<int32_t> positions(count);
    std::iota(positions.begin(), positions.end(), 0);
    std::vector<PageId> pages;
    for (int32_t page = 0; page <= count / kPageSize; ++page) {
      pages.push_back(PageId{page});
    }
    std::vector<Slot> slots;
    for (const int32_t position : positions) {
      slots.push_back({pages[position / kPageSize], position % kPageSize});
    }
    const SequenceInput sequence{
        .first_row = 0, .num_rows = count, .first_position = 0, .pages = pages};
    model_->Forward({.tokens = passage.first(count),
                     .positions = positions,
                     .slots = slots,
                     .sequences = {&sequence, 1},
                     .logits_rows = positions},
                    *storage_);
    return model_->Logits(0, count);
  }

 private:
  std::unique_ptr<Model> model_;
  std::unique_ptr<KvStorage> storage_;
};

struct Scores {
  int64_t tokens = 0;
  double nats = 0;        // Sum of -log p of the text.
  double divergence = 0;  // Sum of KL(f32 || this).
  int64_t same_top = 0;

  double perplexity() const { return std::exp(nats / tokens); }
};

// Log-probabilities of one row.
std::vector<double> Logprobs(const ColumnBlocks& logits, int32_t row) {
  std::vector<float> values(logits.cols());
  logits.CopyRow(row, 0, values);
  const float max = *std::ranges::max_element(values);
  double sum = 0;
  for (const float value : values) sum += std::exp(double{value} - max);
  std::vector<double> logprobs;
  for (const float value : values) {
    logprobs.push_back(value - max - std::log(sum));
  }
  return logprobs;
}

void Score(const ColumnBlocks& exact, const ColumnBlocks& logits,
           std::span<const TokenId> passage, Scores& scores) {
  for (int32_t row = 0; row + 1 < static_cast<int32_t>(passage.size()); ++row) {
    const std::vector<double> p = Logprobs(exact, row);
    const std::vector<double> q = Logprobs(logits, row);
    ++scores.tokens;
    scores.nats -= q[passage[row + 1]];
    for (size_t i = 0; i < p.size(); ++i) {
      scores.divergence += std::exp(p[i]) * (p[i] - q[i]);
    }
    scores.same_top += std::ranges::max_element(p) - p.begin() ==
                       std::ranges::max_element(q) - q.begin();
  }
}

absl::Status Compare(const std::string& model, const std::string& text,
                     int threads) {
  const std::unique_ptr<Executor> executor = MakeParallelExecutor(threads);
  FOLIO_ASSIGN_OR_RETURN(const ModelLocation location, FindModel(model));
  FOLIO_ASSIGN_OR_RETURN(const ModelSource source, OpenModelSource(location));
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                         OpenTokenizerOf(location, source.config));
  FOLIO_ASSIGN_OR_RETURN(const Passages passages,
                         ReadPassages(text, *tokenizer, source.config));
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Reader> exact,
                         Reader::Open(source, kTypes[0], executor.get()));
  std::cout << "weights  K/V   perplexity  of f32's  KL, nats    same top\n";
  double of_f32 = 0;
  for (const ModelTypes& types : kTypes) {
    FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Reader> reader,
                           Reader::Open(source, types, executor.get()));
    Scores scores;
    for (const std::vector<TokenId>& passage : passages) {
      Score(exact->Read(passage), reader->Read(passage), passage, scores);
    }
    if (of_f32 == 0) of_f32 = scores.perplexity();
    std::cout << absl::StreamFormat(
                     "%-7s  %-4s  %10.4f  %+7.3f%%  %9.6f  %8.3f%%\n",
                     std::string(NameOf(types.weights)),
                     std::string(NameOf(types.kv)), scores.perplexity(),
                     (scores.perplexity() / of_f32 - 1) * 100,
                     scores.divergence / scores.tokens,
                     100.0 * scores.same_top / scores.tokens)
              << std::flush;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  CLI::App app("What the types of weights and K/V cost in accuracy");
  app.footer(folio::kExamples);
  std::string model;
  std::string text;
  int threads = folio::NumUsableCores();
  app.add_option("--model", model,
                 "As `folio serve` has it. Default: the "
                 "embedded model");
  app.add_option("--text", text, "File with a passage in each line")
      ->required();
  app.add_option("--threads", threads)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = folio::Compare(model, text, threads);
  if (status.ok()) return 0;
  std::cerr << std::string(status.message()) << "\n";
  return 1;
}
