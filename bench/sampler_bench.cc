// What choosing a token costs on one core, against reading its row of logits
// and against plain ways to do the same.
//
// "row" is the time to compare: Sample/... is the engine's sampler, Read
// is the limit (each element loaded once), Plain/... is what one would write
// with the standard library.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/executor.h"
#include "runtime/engine/sampler.h"
#include "runtime/kernels/column_blocks.h"

namespace folio {
namespace {

constexpr int32_t kVocabSize = 50257;
// Rows are taken in turn from so many, 13 MB of them, as far from the core as
// what a product has just written.
constexpr int32_t kRows = 64;

// Normal logits with a deviation of 3 are about as peaked as a language model's
// at a place where much is possible: the nucleus of 0.9 has about 2,200 tokens.
// With 0.01 they are nearly flat, which takes longer.
constexpr float kUsual = 3;
constexpr float kFlat = 0.01f;

ColumnBlocks RandomLogits(float deviation) {
  ColumnBlocks logits(kRows, ColumnBlocks::EvenCuts(kVocabSize, 2));
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0, deviation);
  for (int32_t b = 0; b < logits.num_blocks(); ++b) {
    const int64_t size = int64_t{kRows} * logits.block_cols(b);
    std::generate_n(logits.block_data(b), size, [&] { return normal(random); });
  }
  return logits;
}

// Adds "row": the time of one.
void CountRows(benchmark::State& state) {
  state.counters["row"] = benchmark::Counter(
      static_cast<double>(state.iterations() * state.range(0)),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// kRows sequences that each sample a row.
struct Batch {
  explicit Batch(const SamplingParams& params) : logits_rows(kRows) {
    std::iota(logits_rows.begin(), logits_rows.end(), 0);
    for (int32_t i = 0; i < kRows; ++i) {
      auto request = std::make_shared<Request>();
      request->prompt = {1};
      request->sampling = params;
      request->sampling.seed = i;
      live.push_back(std::make_unique<LiveRequest>(std::move(request)));
      owned.push_back(std::make_unique<Sequence>(SequenceId{1},
                                                 live.back().get(),
                                                 /*number=*/1,
                                                 /*token_limit=*/100));
      sequences.push_back(owned.back().get());
      samples.push_back({.logits_row = i, .sequence = i});
    }
    input.logits_rows = logits_rows;
    input.samples = samples;
  }

  std::vector<std::unique_ptr<LiveRequest>> live;
  std::vector<std::unique_ptr<Sequence>> owned;
  std::vector<const Sequence*> sequences;
  std::vector<int32_t> logits_rows;
  std::vector<SampleInput> samples;
  StepInput input;
};

// Steps of `range(0)` rows each.
void Sample(benchmark::State& state, const SamplingParams& params,
            float deviation) {
  const int32_t rows = static_cast<int32_t>(state.range(0));
  const ColumnBlocks logits = RandomLogits(deviation);
  const Batch batch(params);
  SerialExecutor executor;
  Sampler sampler(&executor, kVocabSize);
  StepResult result;
  int32_t end = kRows;
  for (auto _ : state) {
    if (end == kRows) {
      sampler.Start(batch.input, batch.sequences, result);
      end = 0;
    }
    end += rows;
    // (What earlier tiles have sampled is not sampled again.)
    sampler.SampleTile(logits, /*first=*/0, /*count=*/end, result);
  }
  CountRows(state);
}

// Calls body(row) for `range(0)` rows in each iteration.
template <typename Body>
void ForRows(benchmark::State& state, const Body& body) {
  const ColumnBlocks logits = RandomLogits(kUsual);
  std::vector<float> copies(int64_t{kRows} * kVocabSize);
  const auto row = [&](int32_t i) {
    return std::span(copies).subspan(int64_t{i} * kVocabSize, kVocabSize);
  };
  for (int32_t i = 0; i < kRows; ++i) logits.CopyRow(i, 0, row(i));
  int32_t next = 0;
  for (auto _ : state) {
    for (int64_t i = 0; i < state.range(0); ++i) {
      benchmark::DoNotOptimize(body(row(next)));
      next = (next + 1) % kRows;
    }
  }
  CountRows(state);
}

// The bits of a row, combined in a way that every compiler vectorises.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint32_t ReadRow(
    const float* row) {
  uint32_t bits = 0;
  for (int32_t i = 0; i < kVocabSize; ++i) {
    bits ^= std::bit_cast<uint32_t>(row[i]);
  }
  return bits;
}

void Read(benchmark::State& state) {
  ForRows(state,
          [](std::span<const float> row) { return ReadRow(row.data()); });
}

void PlainGreedy(benchmark::State& state) {
  ForRows(state, [](std::span<const float> row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
  });
}

double SumOfExps(std::span<const float> row, float max,
                 std::vector<float>& weights) {
  double sum = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    weights[i] = std::exp(row[i] - max);
    sum += weights[i];
  }
  return sum;
}

void PlainSampling(benchmark::State& state) {
  std::vector<float> weights(kVocabSize);
  ForRows(state, [&](std::span<const float> row) {
    const float max = *std::max_element(row.begin(), row.end());
    double left = 0.5 * SumOfExps(row, max, weights);
    size_t token = 0;
    while ((left -= weights[token]) > 0) ++token;
    return token;
  });
}

void PlainTopK(benchmark::State& state) {
  std::vector<int32_t> order(kVocabSize);
  ForRows(state, [&](std::span<const float> row) {
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + 50, order.end(),
                      [&](int32_t a, int32_t b) { return row[a] > row[b]; });
    double sum = 0;
    for (int i = 0; i < 50; ++i) sum += std::exp(row[order[i]] - row[order[0]]);
    return sum;
  });
}

void PlainTopP(benchmark::State& state) {
  std::vector<std::pair<float, int32_t>> sorted(kVocabSize);
  std::vector<float> weights(kVocabSize);
  ForRows(state, [&](std::span<const float> row) {
    for (int32_t i = 0; i < kVocabSize; ++i) sorted[i] = {-row[i], i};
    std::sort(sorted.begin(), sorted.end());
    double left = 0.9 * SumOfExps(row, -sorted[0].first, weights);
    size_t count = 0;
    while ((left -= weights[sorted[count].second]) > 0) ++count;
    return count;
  });
}

void PlainLogprobs(benchmark::State& state) {
  std::vector<int32_t> order(kVocabSize);
  std::vector<float> weights(kVocabSize);
  ForRows(state, [&](std::span<const float> row) {
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + 5, order.end(),
                      [&](int32_t a, int32_t b) { return row[a] > row[b]; });
    return std::log(SumOfExps(row, row[order[0]], weights));
  });
}

void Register(const char* name, const SamplingParams& params, float deviation) {
  benchmark::RegisterBenchmark(
      name, [=](benchmark::State& state) { Sample(state, params, deviation); })
      ->Arg(1)
      ->Arg(32)
      ->Unit(benchmark::kMicrosecond);
}

void RegisterPlain(const char* name, void (*run)(benchmark::State&)) {
  benchmark::RegisterBenchmark(name, run)->Arg(1)->Arg(32)->Unit(
      benchmark::kMicrosecond);
}

int Main(int argc, char** argv) {
  RegisterPlain("Read", Read);
  Register("Sample/greedy", {}, kUsual);
  RegisterPlain("Plain/greedy", PlainGreedy);
  Register("Sample/temperature", {.temperature = 1}, kUsual);
  RegisterPlain("Plain/temperature", PlainSampling);
  Register("Sample/top_k_50", {.temperature = 1, .top_k = 50}, kUsual);
  RegisterPlain("Plain/top_k_50", PlainTopK);
  Register("Sample/top_p_0.9", {.temperature = 1, .top_p = 0.9f}, kUsual);
  Register("Sample/top_p_0.9_flat", {.temperature = 1, .top_p = 0.9f}, kFlat);
  RegisterPlain("Plain/top_p_0.9", PlainTopP);
  Register("Sample/logprobs_5", {.logprobs = 5}, kUsual);
  RegisterPlain("Plain/logprobs_5", PlainLogprobs);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) { return folio::Main(argc, argv); }
