#include "runtime/cli/bench_ceiling.h"

#include <algorithm>
#include <map>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace folio {
namespace {

std::vector<ProductShape> LayerShapes(const DecoderConfig& config) {
  const int32_t up = (config.ffn == FfnKind::kSwiGlu ? 2 : 1) * config.ffn_size;
  return {{config.hidden_size, config.qkv_size()},
          {config.num_heads * config.head_dim, config.hidden_size},
          {config.hidden_size, up},
          {config.ffn_size, config.hidden_size}};
}

// The median of what as many runs return as fit into a tenth of a second, at
// least one.
double MedianSeconds(absl::FunctionRef<double()> run) {
  const absl::Time end = absl::Now() + absl::Seconds(0.1);
  std::vector<double> runs;
  do {
    runs.push_back(run());
  } while (absl::Now() < end);
  std::ranges::nth_element(runs, runs.begin() + runs.size() / 2);
  return runs[runs.size() / 2];
}

CeilingType TypeOf(ElementType weights) {
  return *CeilingTypeOf(NameOf(weights));
}

}  // namespace

bool BenchCeiling::IsPossible(ElementType weights) {
  return ProductCeiling::IsPossible(TypeOf(weights));
}

BenchCeiling::BenchCeiling(const DecoderConfig& config, ElementType weights,
                           Executor* executor)
    : reading_(executor),
      products_(LayerShapes(config), config.num_layers,
                {config.hidden_size, config.vocab_size}, TypeOf(weights),
                executor) {}

CeilingSeconds BenchCeiling::Measure(const std::vector<BenchStep>& steps) {
  read_bandwidth_ = static_cast<double>(reading_.bytes()) /
                    MedianSeconds([&] { return reading_.Seconds(); });
  std::map<int32_t, double> layers;  // Seconds, by rows.
  std::map<int32_t, double> head;
  CeilingSeconds seconds;
  for (const BenchStep& step : steps) {
    if (!layers.contains(step.rows)) {
      layers[step.rows] = MedianSeconds(
          [&] { return products_.LayersSeconds(step.rows, read_bandwidth_); });
    }
    if (step.sampled_rows > 0 && !head.contains(step.sampled_rows)) {
      head[step.sampled_rows] = MedianSeconds([&] {
        return products_.HeadSeconds(step.sampled_rows, read_bandwidth_);
      });
    }
    seconds.products += layers[step.rows] + head[step.sampled_rows];
    seconds.kv_reading += static_cast<double>(step.kv_bytes) / read_bandwidth_;
  }
  return seconds;
}

}  // namespace folio
