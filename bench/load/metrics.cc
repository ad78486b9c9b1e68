#include "bench/load/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

int64_t OutputTokens(const RequestRecord& record) {
  if (record.told_output_tokens.has_value()) return *record.told_output_tokens;
  int64_t count = 0;
  for (const auto& times : record.samples) {
    count += static_cast<int64_t>(times.size());
  }
  return count;
}

std::optional<absl::Duration> TimeToFirstToken(const RequestRecord& record) {
  std::optional<absl::Duration> first;
  for (const auto& times : record.samples) {
    if (times.empty()) continue;
    first = std::min(first.value_or(times.front()), times.front());
  }
  return first;
}

std::vector<absl::Duration> Gaps(const RequestRecord& record) {
  std::vector<absl::Duration> gaps;
  for (const auto& times : record.samples) {
    for (size_t i = 1; i < times.size(); ++i) {
      gaps.push_back(times[i] - times[i - 1]);
    }
  }
  return gaps;
}

std::optional<absl::Duration> EndToEnd(const RequestRecord& record) {
  return record.status.ok() ? record.end : std::nullopt;
}

std::optional<absl::Duration> TimePerOutputToken(const RequestRecord& record) {
  const std::optional<absl::Duration> e2e = EndToEnd(record);
  const std::optional<absl::Duration> ttft = TimeToFirstToken(record);
  size_t longest = 0;
  for (const auto& times : record.samples) {
    longest = std::max(longest, times.size());
  }
  if (!e2e.has_value() || !ttft.has_value() || longest < 2) return std::nullopt;
  return (*e2e - *ttft) / static_cast<int64_t>(longest - 1);
}

bool IsGood(const RequestRecord& record, const LatencyLimits& limits) {
  const auto keeps = [](std::optional<absl::Duration> value,
                        std::optional<absl::Duration> limit) {
    return !value.has_value() || !limit.has_value() || *value <= *limit;
  };
  if (!record.status.ok()) return false;
  std::vector<absl::Duration> gaps = Gaps(record);
  std::ranges::sort(gaps);
  return keeps(TimeToFirstToken(record), limits.ttft) &&
         keeps(Percentile(gaps, 99), limits.itl) &&
         keeps(TimePerOutputToken(record), limits.tpot) &&
         keeps(EndToEnd(record), limits.e2e);
}

namespace {

// The values of all requests, before they are summarised.
struct Collected {
  std::vector<absl::Duration> ttft;
  std::vector<absl::Duration> itl;
  std::vector<absl::Duration> tpot;
  std::vector<absl::Duration> e2e;
  std::vector<absl::Duration> queue;
  absl::Duration begin = absl::InfiniteDuration();
  absl::Duration end;  // The last token's time.
};

void Append(std::optional<absl::Duration> value,
            std::vector<absl::Duration>& values) {
  if (value.has_value()) values.push_back(*value);
}

void Collect(const RequestRecord& record, Collected& all) {
  Append(TimeToFirstToken(record), all.ttft);
  Append(TimePerOutputToken(record), all.tpot);
  Append(EndToEnd(record), all.e2e);
  Append(record.queue_duration, all.queue);
  const std::vector<absl::Duration> gaps = Gaps(record);
  all.itl.insert(all.itl.end(), gaps.begin(), gaps.end());
  all.begin = std::min(all.begin, record.arrival);
  for (const auto& times : record.samples) {
    if (times.empty()) continue;
    all.end = std::max(all.end, record.arrival + times.back());
  }
}

void Count(const RequestRecord& record, const LatencyLimits& limits,
           LoadMetrics& metrics) {
  ++metrics.requests;
  metrics.served += record.status.ok();
  if (!record.status.ok()) {
    ++(!record.sent.has_value()   ? metrics.not_sent
       : record.end_was_asked_for ? metrics.ended_as_asked
                                  : metrics.failed);
  }
  metrics.good += IsGood(record, limits);
  ++metrics.statuses[absl::StatusCodeToString(record.status.code())];
  metrics.output_tokens += OutputTokens(record);
  if (TimeToFirstToken(record).has_value()) {
    metrics.input_tokens += record.prompt_tokens;
    metrics.cached_input_tokens += record.cached_tokens.value_or(0);
  }
}

}  // namespace

LoadMetrics Measure(std::span<const RequestRecord> records,
                    const LatencyLimits& limits) {
  LoadMetrics metrics;
  Collected all;
  for (const RequestRecord& record : records) {
    Count(record, limits, metrics);
    Collect(record, all);
  }
  if (!all.ttft.empty()) metrics.duration = all.end - all.begin;
  metrics.ttft = Summarise(std::move(all.ttft));
  metrics.itl = Summarise(std::move(all.itl));
  metrics.tpot = Summarise(std::move(all.tpot));
  metrics.e2e = Summarise(std::move(all.e2e));
  metrics.queue = Summarise(std::move(all.queue));
  const double seconds = absl::ToDoubleSeconds(metrics.duration);
  if (seconds <= 0) return metrics;
  const auto per_second = [seconds](int64_t count) {
    return static_cast<double>(count) / seconds;
  };
  metrics.output_tokens_per_second = per_second(metrics.output_tokens);
  metrics.input_tokens_per_second = per_second(metrics.input_tokens);
  metrics.total_tokens_per_second =
      per_second(metrics.input_tokens + metrics.output_tokens);
  metrics.requests_per_second = per_second(metrics.served);
  metrics.goodput = per_second(metrics.good);
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
