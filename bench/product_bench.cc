// Matrix products by Linear, beside the same ones called on oneDNN directly:
// the layers of a llama of 135 M parameters, each with weights of its own.

#include <benchmark/benchmark.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/element_type.h"
#include "runtime/base/executor.h"
#include "runtime/base/philox.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/linear.h"
#include "runtime/kernels/product_ceiling.h"

namespace folio {
namespace {

constexpr int32_t kLayers = 30;
constexpr int32_t kMaxRows = 512;
constexpr ProductShape kLayer[] = {
    {576, 960}, {576, 576}, {576, 3072}, {1536, 576}};

class Products {
 public:
  Products(ElementType type, Executor* executor) : executor_(*executor) {
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      for (const ProductShape& shape : kLayer) {
        LinearWeights weights{.in = shape.in, .out = shape.out};
        weights.read_rows = [&](int32_t first, std::span<float> rows) {
          for (size_t i = 0; i < rows.size(); ++i) {
            rows[i] = static_cast<float>(
                UniformDouble(/*seed=*/1, first, i % 4096) - 0.5);
          }
        };
        linears_.push_back(std::make_unique<Linear>(weights, type, *executor));
      }
    }
    for (size_t i = 0; i < std::size(kLayer); ++i) {
      x_.emplace_back(type, kMaxRows, kLayer[i].in, executor->num_workers());
      y_.push_back(linears_[i]->MakeOutput(kMaxRows));
      for (int32_t row = 0; row < kMaxRows; ++row) {
        std::fill_n(x_[i].BeginRow(row, 0), kLayer[i].in, 0.5f);
        x_[i].EndRow(row, 0);
      }
    }
  }

  void Run(int32_t rows) {
    for (size_t i = 0; i < linears_.size(); ++i) {
      const size_t part = i % std::size(kLayer);
      linears_[i]->Forward(x_[part], {0, rows}, y_[part], executor_,
                           linears_[(i + 1) % linears_.size()].get());
    }
  }

 private:
  Executor& executor_;
  std::vector<std::unique_ptr<Linear>> linears_;
  std::vector<Activations> x_;
  std::vector<ColumnBlocks> y_;
};

void Multiply(benchmark::State& state, ElementType type) {
  const int32_t rows = static_cast<int32_t>(state.range(0));
  const auto executor = MakeParallelExecutor(NumUsableCores());
  Products products(type, executor.get());
  const CeilingType ceiling_type = *CeilingTypeOf(NameOf(type));
  std::optional<ProductCeiling> ceiling;  // Where oneDNN has such a product.
  if (ProductCeiling::IsPossible(ceiling_type)) {
    ceiling.emplace(std::vector(std::begin(kLayer), std::end(kLayer)), kLayers,
                    ProductShape{576, 64}, ceiling_type, executor.get());
  }
  ReadCeiling reading(executor.get());
  const double bandwidth =
      static_cast<double>(reading.bytes()) / reading.Seconds();
  std::vector<double> limits;
  products.Run(rows);
  for (auto unused : state) {
    products.Run(rows);
    if (!ceiling.has_value()) continue;
    state.PauseTiming();
    limits.push_back(ceiling->LayersSeconds(rows, rows, bandwidth));
    state.ResumeTiming();
  }
  std::ranges::sort(limits);
  if (!limits.empty()) state.counters["limit_s"] = limits[limits.size() / 2];
  state.SetItemsProcessed(state.iterations() * rows);
}

void Register() {
  for (const ElementType type : {ElementType::kF32, ElementType::kBf16,
                                 ElementType::kInt8, ElementType::kInt4}) {
    benchmark::RegisterBenchmark(
        ("Multiply/" + std::string(NameOf(type))).c_str(),
        [type](benchmark::State& state) { Multiply(state, type); })
        ->ArgName("rows")
        ->Arg(1)
        ->Arg(16)
        ->Arg(32)
        ->Arg(128)
        ->Arg(512)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  folio::Register();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
