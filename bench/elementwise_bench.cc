// What happens to activations between the products, beside a plain copy of as
// many floats: 32 rows of a llama of 135 M parameters, one core.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/base/executor.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/column_blocks.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/rotary.h"
#include "runtime/kernels/split_qkv.h"

namespace folio {
namespace {

constexpr int32_t kRows = 32;
constexpr int32_t kHidden = 576;
constexpr int32_t kFfn = 1536;

void Count(benchmark::State& state, int32_t floats) {
  state.SetItemsProcessed(state.iterations() * kRows * floats);
}

void Copy(benchmark::State& state) {
  std::vector<float> from(kRows * kHidden, 0.5f);
  std::vector<float> to(from.size());
  for (auto unused : state) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  Count(state, kHidden);
}
BENCHMARK(Copy);

// Into activations for weights of the type that is the argument.
void AddAndNorm(benchmark::State& state) {
  SerialExecutor executor;
  std::vector<float> x(kRows * kHidden, 0.5f);
  const std::vector<float> weight(kHidden, 1.0f);
  const ColumnBlocks y(kRows, ColumnBlocks::EvenCuts(kHidden, 2));
  Activations out(static_cast<ElementType>(state.range(0)), kRows, kHidden, 1);
  for (auto unused : state) {
    AddAndRmsNorm(y, {0, kRows}, x, weight, 1e-5f, out, executor);
    benchmark::ClobberMemory();
  }
  Count(state, kHidden);
}
BENCHMARK(AddAndNorm)->ArgName("type")->DenseRange(0, 3);

void SwiGluOf(benchmark::State& state) {
  SerialExecutor executor;
  const ColumnBlocks y(kRows, ColumnBlocks::EvenCuts(2 * kFfn, 2));
  Activations out(static_cast<ElementType>(state.range(0)), kRows, kFfn, 1);
  for (auto unused : state) {
    SwiGlu(y, {0, kRows}, out, executor);
    benchmark::ClobberMemory();
  }
  Count(state, kFfn);
}
BENCHMARK(SwiGluOf)->ArgName("type")->DenseRange(0, 3);

void GeluErfOf(benchmark::State& state) {
  SerialExecutor executor;
  const ColumnBlocks y(kRows, ColumnBlocks::EvenCuts(kFfn, 2));
  Activations out(ElementType::kF32, kRows, kFfn, 1);
  for (auto unused : state) {
    GeluErf(y, {0, kRows}, out, executor);
    benchmark::ClobberMemory();
  }
  Count(state, kFfn);
}
BENCHMARK(GeluErfOf);

// 9 heads and 3 KV heads of 64, to pages of 16 slots.
void SplitQkvOf(benchmark::State& state) {
  constexpr int32_t kPage = 16;
  const AttentionShape shape{.num_heads = 9, .num_kv_heads = 3, .head_dim = 64};
  SerialExecutor executor;
  const ColumnBlocks qkv(kRows, ColumnBlocks::EvenCuts(15 * 64, 2));
  Rotary rotary(RopeFrequencies(64, 10000, {}), /*context_length=*/512, kRows);
  std::vector<int32_t> positions(kRows);
  std::iota(positions.begin(), positions.end(), 100);
  rotary.SetPositions(positions, executor);
  const ElementType type = static_cast<ElementType>(state.range(0));
  const int64_t array_bytes = int64_t{kPage} * 64 * BytesOf(type);
  const int64_t scale_bytes = kPage * sizeof(float);
  const PagedKv kv{.type = type,
                   .page_size = kPage,
                   .value_offset = array_bytes,
                   .head_stride = 2 * (array_bytes + scale_bytes),
                   .key_scale_offset = 2 * array_bytes,
                   .value_scale_offset = 2 * array_bytes + scale_bytes};
  // Every row is another sequence's.
  std::vector<AlignedArray<std::byte>> pages;
  std::vector<KvSlot> slots;
  for (int32_t row = 0; row < kRows; ++row) {
    pages.emplace_back(3 * kv.head_stride);
    slots.push_back({pages.back().data(), row % kPage});
  }
  std::vector<float> q(kRows * kHidden);
  for (auto unused : state) {
    SplitQkv(qkv, {0, kRows}, shape, {.rotary = &rotary}, kv, slots, q,
             executor);
    benchmark::ClobberMemory();
  }
  Count(state, 15 * 64);
}
BENCHMARK(SplitQkvOf)->ArgName("kv")->DenseRange(0, 2);

}  // namespace
}  // namespace folio
