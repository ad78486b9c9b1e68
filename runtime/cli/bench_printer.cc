#include "runtime/cli/bench_printer.h"

#include <algorithm>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "runtime/cli/json_line.h"

namespace folio {
namespace {

double Median(Rounds rounds) {
  std::ranges::sort(rounds);
  const size_t middle = rounds.size() / 2;
  return rounds.size() % 2 == 1 ? rounds[middle]
                                : (rounds[middle - 1] + rounds[middle]) / 2;
}

int64_t TotalRows(const std::vector<BenchStep>& steps) {
  int64_t rows = 0;
  for (const BenchStep& step : steps) rows += step.rows;
  return rows;
}

// "1234.5" and "88.1%", or dashes without a ceiling.
std::string CeilingText(const Rounds& ceiling) {
  return ceiling.empty() ? "-" : absl::StrFormat("%.1f", Median(ceiling));
}
std::string ShareText(const Rounds& rate, const Rounds& ceiling) {
  return ceiling.empty()
             ? "-"
             : absl::StrFormat("%.1f%%", 100 * Median(rate) / Median(ceiling));
}

Json JsonOf(const BenchLoad& load, const BenchResult& result) {
  Json json{{"streams", load.streams},
            {"prompt_tokens", load.prompt_tokens},
            {"generate_tokens", load.generate_tokens},
            {"rounds", result.decode_rate.size()},
            {"prefill_tokens_per_second", Median(result.prefill_rate)},
            {"decode_tokens_per_second", Median(result.decode_rate)},
            {"decode_steps", result.decode_steps},
            {"outside_forward_share", Median(result.outside_share)},
            {"outside_forward_microseconds", Median(result.outside_us)}};
  if (result.decode_ceiling.empty()) return json;
  const double prefill = Median(result.prefill_ceiling);
  const double decode = Median(result.decode_ceiling);
  json["prefill_ceiling_tokens_per_second"] = prefill;
  json["prefill_share"] = Median(result.prefill_rate) / prefill;
  json["decode_ceiling_tokens_per_second"] = decode;
  json["decode_share"] = Median(result.decode_rate) / decode;
  json["read_bytes_per_second"] = Median(result.read_bandwidth);
  json["attention_bytes_per_second_at_least"] =
      Median(result.attention_bandwidth);
  return json;
}

}  // namespace

void BenchResult::AddRound(const BenchLoad& load, const BenchSteps& steps,
                           BenchCeiling* ceiling) {
  const double prompt_tokens = double{1} * load.streams * load.prompt_tokens;
  const double prefill = absl::ToDoubleSeconds(TotalDuration(steps.prefill));
  const double decode = absl::ToDoubleSeconds(TotalDuration(steps.decode));
  const auto decode_tokens = static_cast<double>(TotalRows(steps.decode));
  double outside = decode;
  double kv_bytes = 0;
  for (const BenchStep& step : steps.decode) {
    outside -= absl::ToDoubleSeconds(step.forward);
    kv_bytes += static_cast<double>(step.kv_bytes);
  }
  decode_steps = static_cast<int64_t>(steps.decode.size());
  prefill_rate.push_back(prompt_tokens / prefill);
  decode_rate.push_back(decode_tokens / decode);
  outside_share.push_back(outside / decode);
  outside_us.push_back(outside * 1e6 / static_cast<double>(decode_steps));
  if (ceiling == nullptr) return;
  prefill_ceiling.push_back(prompt_tokens /
                            ceiling->Measure(steps.prefill).total());
  const CeilingSeconds least = ceiling->Measure(steps.decode);
  decode_ceiling.push_back(decode_tokens / least.total());
  read_bandwidth.push_back(ceiling->read_bandwidth());
  // Noise can make the products alone look slower than all of a step.
  attention_bandwidth.push_back(
      kv_bytes / std::max(decode - least.products, least.kv_reading));
}

void BenchPrinter::PrintHeader(const BenchLoad& load) const {
  if (json_) return;
  std::cout << absl::StreamFormat(
                   "%s: weights in %s, K/V in %s, %d prompt and %d generated "
                   "tokens a stream, %d threads\n"
                   "%7s %29s %29s %18s\n"
                   "%7s %11s %9s %7s %11s %9s %7s %7s %10s\n",
                   model_.name, std::string(NameOf(model_.weights_type)),
                   std::string(NameOf(model_.kv_type)), load.prompt_tokens,
                   load.generate_tokens, threads_, "", "prefill", "decode",
                   "outside the model", "streams", "tokens/s", "ceiling",
                   "share", "tokens/s", "ceiling", "share", "share", "a step")
            << std::flush;
}

void BenchPrinter::Print(const BenchLoad& load,
                         const BenchResult& result) const {
  if (json_) {
    Json json = JsonOf(load, result);
    json["threads"] = threads_;
    json["weights_dtype"] = std::string(NameOf(model_.weights_type));
    json["kv_dtype"] = std::string(NameOf(model_.kv_type));
    PrintJsonLine(json);
    return;
  }
  std::cout << absl::StreamFormat(
                   "%7d %11.1f %9s %7s %11.1f %9s %7s %6.2f%% %7.1f us\n",
                   load.streams, Median(result.prefill_rate),
                   CeilingText(result.prefill_ceiling),
                   ShareText(result.prefill_rate, result.prefill_ceiling),
                   Median(result.decode_rate),
                   CeilingText(result.decode_ceiling),
                   ShareText(result.decode_rate, result.decode_ceiling),
                   100 * Median(result.outside_share),
                   Median(result.outside_us))
            << std::flush;
}

}  // namespace folio
