#include "runtime/cli/bench_ceiling.h"

#include <algorithm>
#include <vector>

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

CeilingSeconds BenchCeiling::Measure(const BenchStep& step) {
  read_bandwidth_ = static_cast<double>(reading_.bytes()) / reading_.Seconds();
  CeilingSeconds seconds;
  seconds.products =
      products_.LayersSeconds(step.rows, step.sampled_rows, read_bandwidth_);
  if (step.sampled_rows > 0) {
    seconds.products +=
        products_.HeadSeconds(step.sampled_rows, read_bandwidth_);
  }
  seconds.kv_reading = static_cast<double>(step.kv_bytes) / read_bandwidth_;
  return seconds;
}

void PhaseCeiling::After(const BenchStep& step) {
  const double seconds = absl::ToDoubleSeconds(step.duration);
  ++num_steps_;
  rows_ += step.rows;
  seconds_ += seconds;
  outside_seconds_ += absl::ToDoubleSeconds(step.duration - step.forward);
  if (ceiling_ == nullptr) return;
  if (num_steps_ > 1 && measuring_seconds_ > seconds_) return;
  const absl::Time start = absl::Now();
  const CeilingSeconds least = ceiling_->Measure(step);
  measuring_seconds_ += absl::ToDoubleSeconds(absl::Now() - start);
  shares_.push_back({least.total() / seconds, step.rows});
  // Noise can make the products alone look slower than all of a step.
  const double attention = std::max(seconds - least.products, least.kv_reading);
  attention_.push_back(
      {static_cast<double>(step.kv_bytes) / attention, step.rows});
}

double PhaseCeiling::MedianOf(std::vector<Weighted> numbers) {
  std::ranges::sort(numbers, {}, &Weighted::value);
  int64_t left = 0;
  for (const Weighted& number : numbers) left += number.weight;
  left /= 2;
  size_t i = 0;
  while (numbers[i].weight <= left) left -= numbers[i++].weight;
  return numbers[i].value;
}

}  // namespace folio
