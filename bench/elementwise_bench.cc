// What happens to activations between the products, beside a plain copy of as
// many floats: 32 rows of a llama of 135 M parameters, one core.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/base/executor.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/column_blocks.h"
#include "runtime/kernels/elementwise.h"

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
    AddAndRmsNorm(y, kRows, x, weight, 1e-5f, out, executor);
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
    SwiGlu(y, kRows, out, executor);
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
    GeluErf(y, kRows, out, executor);
    benchmark::ClobberMemory();
  }
  Count(state, kFfn);
}
BENCHMARK(GeluErfOf);

}  // namespace
}  // namespace folio
