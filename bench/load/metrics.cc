#include "bench/load/metrics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace folio {

absl::Duration Percentile(std::span<const absl::Duration> sorted,
                          double percent) {
  if (sorted.empty()) return absl::ZeroDuration();
  // Ranks count from 1. Multiplied first, so that whole results are exact.
  const auto rank = static_cast<size_t>(
      std::ceil(percent * static_cast<double>(sorted.size()) / 100.0));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

DurationSummary Summarise(std::vector<absl::Duration> values) {
  DurationSummary summary;
  if (values.empty()) return summary;
  std::ranges::sort(values);
  absl::Duration sum;
  for (const absl::Duration value : values) sum += value;
  summary.count = static_cast<int64_t>(values.size());
  summary.mean = sum / summary.count;
  summary.p50 = Percentile(values, 50);
  summary.p90 = Percentile(values, 90);
  summary.p95 = Percentile(values, 95);
  summary.p99 = Percentile(values, 99);
  summary.max = values.back();
  return summary;
}

std::vector<absl::Duration> Gaps(const RequestRecord& record) {
  std::vector<absl::Duration> gaps;
  for (size_t i = 1; i < record.token_times.size(); ++i) {
    gaps.push_back(record.token_times[i] - record.token_times[i - 1]);
  }
  return gaps;
}

LoadMetrics Measure(std::span<const RequestRecord> records) {
  LoadMetrics metrics;
  std::vector<absl::Duration> first_tokens;
  std::vector<absl::Duration> gaps;
  absl::Duration begin = absl::InfiniteDuration();
  absl::Duration end;
  for (const RequestRecord& record : records) {
    ++metrics.requests;
    if (!record.status.ok()) ++metrics.failed;
    begin = std::min(begin, record.arrival);
    if (record.token_times.empty()) continue;
    metrics.output_tokens += static_cast<int64_t>(record.token_times.size());
    first_tokens.push_back(record.token_times.front());
    end = std::max(end, record.arrival + record.token_times.back());
    const std::vector<absl::Duration> more = Gaps(record);
    gaps.insert(gaps.end(), more.begin(), more.end());
  }
  metrics.ttft = Summarise(std::move(first_tokens));
  metrics.itl = Summarise(std::move(gaps));
  if (metrics.output_tokens == 0) return metrics;
  metrics.duration = end - begin;
  if (metrics.duration > absl::ZeroDuration()) {
    metrics.output_tokens_per_second =
        static_cast<double>(metrics.output_tokens) /
        absl::ToDoubleSeconds(metrics.duration);
  }
  return metrics;
}

absl::Status FirstFailure(std::span<const RequestRecord> records) {
  for (size_t i = 0; i < records.size(); ++i) {
    const absl::Status& status = records[i].status;
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat("request ", i, ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace folio
