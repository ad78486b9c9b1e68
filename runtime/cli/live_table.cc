#include "runtime/cli/live_table.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/utf8.h"
#include "runtime/cli/memory_printer.h"
#include "runtime/cli/visible_text.h"
#include "runtime/server/duration_conversion.h"

namespace folio {
namespace {

// The first `length` characters of valid UTF-8. (Some take two columns of a
// terminal, and a line with them is cut there.)
std::string_view FirstCharacters(std::string_view text, int length) {
  size_t end = 0;
  for (int i = 0; i < length && end < text.size(); ++i) {
    end += FrontOfUtf8(text.substr(end)).length;
  }
  return text.substr(0, end);
}

std::string Row(std::string_view name, const std::string& value) {
  return absl::StrFormat("%-10s ", std::string(name)) + value;
}

// "12.3 ms", "-" when it is not known.
std::string Milliseconds(const google::protobuf::Duration& duration) {
  const double seconds = ToSeconds(duration);
  return seconds > 0 ? absl::StrFormat("%.1f ms", seconds * 1000) : "-";
}

std::string Heading(const LiveState& state) {
  std::string heading =
      absl::StrCat("folio memory  ", state.server, "  step ",
                   state.report.step(), " at ", StartTime(state.report));
  if (state.age >= absl::Seconds(1)) {
    absl::StrAppend(&heading, ", no batch for ",
                    absl::ToInt64Seconds(state.age), " s");
  }
  if (state.totals.dropped_reports > 0) {
    absl::StrAppend(&heading, ", ", state.totals.dropped_reports,
                    " reports dropped");
  }
  return heading;
}

// One cell stands for pages_total / width pages. Whatever is in use shows.
std::string Bar(const v1::MemoryReport& memory, int width) {
  const int64_t total = std::max(memory.pages_total(), 1);
  const auto cells = [&](int64_t pages) {
    return static_cast<size_t>((pages * width + total - 1) / total);
  };
  const size_t in_use = cells(memory.pages_in_use());
  const size_t taken =
      cells(int64_t{memory.pages_in_use()} + memory.pages_cached());
  return absl::StrCat("[", std::string(in_use, '#'),
                      std::string(taken - in_use, '+'),
                      std::string(width - taken, '.'), "]");
}

std::string PagesRow(std::string_view name, int32_t pages,
                     const v1::MemoryReport& memory) {
  const double share =
      100.0 * pages / std::max<int32_t>(memory.pages_total(), 1);
  return Row(name, absl::StrFormat("%8d pages %10s %6.2f%%", pages,
                                   FormatByteSize(pages * memory.page_bytes()),
                                   share));
}

void AddPool(const v1::MemoryReport& memory, int columns,
             std::vector<std::string>& lines) {
  lines.push_back(
      Row("pool", absl::StrFormat("%s = %d pages of %d tokens, %s each",
                                  FormatByteSize(memory.pool_bytes()),
                                  memory.pages_total(), memory.page_size(),
                                  FormatByteSize(memory.page_bytes()))));
  lines.push_back(Bar(memory, std::max(columns - 3, 1)));
  lines.push_back(
      absl::StrFormat("%s, %.2f%% of it waste",
                      PagesRow("# in use", memory.pages_in_use(), memory),
                      memory.waste_share() * 100));
  lines.push_back(PagesRow("+ cached", memory.pages_cached(), memory));
  lines.push_back(PagesRow(". free", memory.pages_free(), memory));
  lines.push_back(
      Row("shared",
          absl::StrFormat("%8d pages, saving %d pages, %s",
                          memory.pages_shared(), memory.duplicate_pages_saved(),
                          FormatByteSize(memory.shared_saved_bytes()))));
}

void AddBatch(const v1::BatchReport& report, std::vector<std::string>& lines) {
  lines.push_back(Row("batch", absl::StrFormat("%d prefill + %d decode tokens",
                                               report.prefill_tokens(),
                                               report.decode_tokens())));
  lines.push_back(Row(
      "sequences",
      absl::StrFormat("%d running, %d waiting%s", report.sequences_running(),
                      report.sequences_waiting(),
                      report.wait_reason() == v1::WAIT_REASON_UNSPECIFIED
                          ? ""
                          : absl::StrCat(", the next one held up by: ",
                                         std::string(WaitReasonName(
                                             report.wait_reason()))))));
  lines.push_back(
      Row("step time",
          absl::StrFormat("%s predicted, %s measured, %s of it in the model",
                          Milliseconds(report.predicted_duration()),
                          Milliseconds(report.commit_interval()),
                          Milliseconds(report.forward_duration()))));
}

std::string EventsRow(std::string_view name, const LiveTotals& events) {
  return Row(name, absl::StrFormat("%9d %12d of %-10d %9d %9d",
                                   events.preempted, events.prefix_hit_tokens,
                                   events.prefix_query_tokens,
                                   events.pages_evicted, events.pages_copied));
}

void AddEvents(const LiveState& state, std::vector<std::string>& lines) {
  lines.push_back(
      Row("", absl::StrFormat("%9s %26s %9s %9s", "preempted",
                              "prefix hits of tokens", "evicted", "copied")));
  LiveTotals batch;
  batch.Add(state.report);
  lines.push_back(EventsRow("in batch", batch));
  lines.push_back(EventsRow("watched", state.totals));
}

// Those with the most pages, as many as fit into `room` lines.
void AddSequences(const v1::MemoryReport& memory, int room,
                  std::vector<std::string>& lines) {
  if (room < 2 || memory.sequences().empty()) return;
  lines.push_back(absl::StrFormat("%8s %8s %8s %6s  %s", "pages", "shared",
                                  "tokens", "sample", "request"));
  std::vector<const v1::SequenceMemory*> order;
  for (const v1::SequenceMemory& sequence : memory.sequences()) {
    order.push_back(&sequence);
  }
  std::ranges::stable_sort(order, std::greater<>(), &v1::SequenceMemory::pages);
  order.resize(std::min<size_t>(order.size(), room - 1));
  for (const v1::SequenceMemory* sequence : order) {
    lines.push_back(absl::StrFormat(
        "%8d %8d %8d %6d  %s", sequence->pages(), sequence->shared_pages(),
        sequence->tokens(), sequence->sample_index(),
        WithVisibleControls(sequence->request_id())));
  }
}

}  // namespace

void LiveTotals::Add(const v1::BatchReport& report) {
  preempted += report.sequences_preempted();
  prefix_query_tokens += report.prefix_query_tokens();
  prefix_hit_tokens += report.prefix_hit_tokens();
  pages_evicted += report.pages_evicted();
  pages_copied += report.pages_copied();
  dropped_reports += report.dropped_reports();
}

std::vector<std::string> LiveTable(const LiveState& state, TerminalSize size) {
  const v1::MemoryReport& memory = state.report.memory();
  std::vector<std::string> lines = {Heading(state), ""};
  AddPool(memory, size.columns, lines);
  lines.emplace_back();
  AddBatch(state.report, lines);
  AddEvents(state, lines);
  lines.emplace_back();
  AddSequences(memory, size.rows - static_cast<int>(lines.size()), lines);
  lines.resize(std::min<size_t>(lines.size(), std::max(size.rows, 0)));
  for (std::string& line : lines) {
    line = FirstCharacters(line, std::max(size.columns - 1, 0));
  }
  return lines;
}

}  // namespace folio
