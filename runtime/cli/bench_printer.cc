#include "runtime/cli/bench_printer.h"

#include <algorithm>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/cli/json_line.h"

namespace folio {
namespace {

double Median(Rounds rounds) {
  std::ranges::sort(rounds);
  const size_t middle = rounds.size() / 2;
  return rounds.size() % 2 == 1 ? rounds[middle]
                                : (rounds[middle - 1] + rounds[middle]) / 2;
}

// What the rate would be with a share of 1.
double Ceiling(const Rounds& rate, const Rounds& share) {
  return Median(rate) / Median(share);
}

// "1234.5" and "88.1%", or dashes without a ceiling.
std::string CeilingText(const Rounds& rate, const Rounds& share) {
  return share.empty() ? "-" : absl::StrFormat("%.1f", Ceiling(rate, share));
}
std::string ShareText(const Rounds& share) {
  return share.empty() ? "-" : absl::StrFormat("%.1f%%", 100 * Median(share));
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
  if (result.decode_share.empty()) return json;
  json["prefill_ceiling_tokens_per_second"] =
      Ceiling(result.prefill_rate, result.prefill_share);
  json["prefill_share"] = Median(result.prefill_share);
  json["decode_ceiling_tokens_per_second"] =
      Ceiling(result.decode_rate, result.decode_share);
  json["decode_share"] = Median(result.decode_share);
  json["read_bytes_per_second"] = Median(result.read_bandwidth);
  json["attention_bytes_per_second_at_least"] =
      Median(result.attention_bandwidth);
  return json;
}

}  // namespace

void BenchResult::AddRound(const BenchLoad& load, const PhaseCeiling& prefill,
                           const PhaseCeiling& decode, bool has_ceiling) {
  const double prompt_tokens = double{1} * load.streams * load.prompt_tokens;
  decode_steps = decode.num_steps();
  prefill_rate.push_back(prompt_tokens / prefill.seconds());
  decode_rate.push_back(static_cast<double>(decode.rows()) / decode.seconds());
  outside_share.push_back(decode.outside_seconds() / decode.seconds());
  outside_us.push_back(decode.outside_seconds() * 1e6 /
                       static_cast<double>(decode_steps));
  if (!has_ceiling) return;
  prefill_share.push_back(prefill.share());
  decode_share.push_back(decode.share());
  read_bandwidth.push_back(decode.read_bandwidth());
  attention_bandwidth.push_back(decode.attention_bandwidth());
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
                   CeilingText(result.prefill_rate, result.prefill_share),
                   ShareText(result.prefill_share), Median(result.decode_rate),
                   CeilingText(result.decode_rate, result.decode_share),
                   ShareText(result.decode_share),
                   100 * Median(result.outside_share),
                   Median(result.outside_us))
            << std::flush;
}

}  // namespace folio
