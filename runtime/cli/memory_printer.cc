#include "runtime/cli/memory_printer.h"

#include <cstdint>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "runtime/base/byte_size.h"
#include "runtime/cli/json_line.h"
#include "runtime/cli/visible_text.h"
#include "runtime/server/duration_conversion.h"

namespace folio {
namespace {

// "1.5MiB (1572864 bytes)", "512B"
std::string Bytes(int64_t bytes) {
  if (bytes < 1024) return FormatByteSize(bytes);
  return absl::StrCat(FormatByteSize(bytes), " (", bytes, " bytes)");
}

void PrintRow(std::string_view name, const std::string& value) {
  std::cout << absl::StreamFormat("%-12s ", std::string(name)) << value << '\n';
}

void PrintSchedulerRows(const v1::BatchReport& report) {
  PrintRow("at",
           absl::StrCat(StartTime(report), ", after step ", report.step()));
  PrintRow("sequences",
           absl::StrFormat("%d running, %d waiting", report.sequences_running(),
                           report.sequences_waiting()));
}

void PrintPoolRows(const v1::MemoryReport& memory) {
  PrintRow("pool",
           absl::StrFormat("%s = %d pages x %d bytes + remainder %d",
                           Bytes(memory.pool_bytes()), memory.pages_total(),
                           memory.page_bytes(), memory.remainder_bytes()));
  PrintRow("page",
           absl::StrFormat("%s = %d tokens x %d bytes + scales %d + padding %d",
                           Bytes(memory.page_bytes()), memory.page_size(),
                           memory.bytes_per_token(), memory.page_scale_bytes(),
                           memory.page_padding_bytes()));
  PrintRow("pages",
           absl::StrFormat("%d total = %d free + %d in use + %d cached",
                           memory.pages_total(), memory.pages_free(),
                           memory.pages_in_use(), memory.pages_cached()));
  PrintRow("cached",
           absl::StrFormat("%s = %d pages x %d bytes, kept for requests to "
                           "come and free when needed",
                           Bytes(memory.pages_cached() * memory.page_bytes()),
                           memory.pages_cached(), memory.page_bytes()));
}

void PrintUseRows(const v1::MemoryReport& memory) {
  PrintRow("reserved",
           absl::StrFormat("%s = %d pages in use x %d bytes",
                           Bytes(memory.reserved_bytes()),
                           memory.pages_in_use(), memory.page_bytes()));
  PrintRow("holding",
           absl::StrFormat(
               "%s = %d tokens held x %d bytes (2 * layers * KV heads * head "
               "dimension * bytes per element)",
               Bytes(memory.holding_bytes()), memory.tokens_held(),
               memory.bytes_per_token()));
  PrintRow("waste", absl::StrFormat("%s = reserved - holding, %.2f%% of what "
                                    "is reserved",
                                    Bytes(memory.waste_bytes()),
                                    memory.waste_share() * 100));
  PrintRow(
      "shared",
      absl::StrFormat("%d of the pages in use; saves %s = %d pages x %d "
                      "bytes",
                      memory.pages_shared(), Bytes(memory.shared_saved_bytes()),
                      memory.duplicate_pages_saved(), memory.page_bytes()));
  PrintRow("contiguous",
           absl::StrFormat("%s would be reserved by %d buffers of %d tokens "
                           "(the context), in place of pages",
                           Bytes(memory.contiguous_bytes()),
                           memory.sequences_size(), memory.context_length()));
}

void PrintSequenceRows(const v1::MemoryReport& memory) {
  if (memory.sequences().empty()) return;
  std::cout << absl::StreamFormat("\n%-24s %6s %8s %8s %8s\n", "request",
                                  "sample", "pages", "shared", "tokens");
  for (const v1::SequenceMemory& sequence : memory.sequences()) {
    std::cout << absl::StreamFormat("%-24s %6d %8d %8d %8d\n",
                                    WithVisibleControls(sequence.request_id()),
                                    sequence.sample_index(), sequence.pages(),
                                    sequence.shared_pages(), sequence.tokens());
  }
}

Json SequencesJson(const v1::MemoryReport& memory) {
  Json sequences = Json::array();
  for (const v1::SequenceMemory& sequence : memory.sequences()) {
    sequences.push_back({{"request_id", sequence.request_id()},
                         {"sample_index", sequence.sample_index()},
                         {"pages", sequence.pages()},
                         {"shared_pages", sequence.shared_pages()},
                         {"tokens", sequence.tokens()}});
  }
  return sequences;
}

Json MemoryJson(const v1::MemoryReport& memory) {
  return {{"page_size", memory.page_size()},
          {"page_bytes", memory.page_bytes()},
          {"page_scale_bytes", memory.page_scale_bytes()},
          {"page_padding_bytes", memory.page_padding_bytes()},
          {"bytes_per_token", memory.bytes_per_token()},
          {"pool_bytes", memory.pool_bytes()},
          {"remainder_bytes", memory.remainder_bytes()},
          {"context_length", memory.context_length()},
          {"pages_total", memory.pages_total()},
          {"pages_free", memory.pages_free()},
          {"pages_in_use", memory.pages_in_use()},
          {"pages_cached", memory.pages_cached()},
          {"duplicate_pages_saved", memory.duplicate_pages_saved()},
          {"pages_shared", memory.pages_shared()},
          {"shared_saved_bytes", memory.shared_saved_bytes()},
          {"tokens_held", memory.tokens_held()},
          {"reserved_bytes", memory.reserved_bytes()},
          {"holding_bytes", memory.holding_bytes()},
          {"waste_bytes", memory.waste_bytes()},
          {"waste_share", memory.waste_share()},
          {"contiguous_bytes", memory.contiguous_bytes()},
          {"sequences", SequencesJson(memory)}};
}

}  // namespace

std::string_view WaitReasonName(v1::WaitReason reason) {
  switch (reason) {
    case v1::WAIT_REASON_UNSPECIFIED:
      return "none";
    case v1::WAIT_REASON_TOKENS:
      return "tokens";
    case v1::WAIT_REASON_SEQUENCES:
      return "sequences";
    case v1::WAIT_REASON_PAGES:
      return "pages";
    case v1::WAIT_REASON_WATERMARK:
      return "watermark";
    case v1::WAIT_REASON_POLICY:
      return "policy";
    default:
      return "unknown";  // What a newer server may say.
  }
}

std::string StartTime(const v1::BatchReport& report) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ",
                          absl::UnixEpoch() + ToDuration(report.start()),
                          absl::UTCTimeZone());
}

void PrintReportTable(const v1::BatchReport& report) {
  PrintSchedulerRows(report);
  PrintPoolRows(report.memory());
  PrintUseRows(report.memory());
  PrintSequenceRows(report.memory());
  std::cout << std::flush;
}

void PrintBatchHeader() {
  std::cout << absl::StreamFormat(
                   "%6s %8s %7s %6s %8s %8s %10s %15s %7s %8s %10s %7s %9s",
                   "step", "prefill", "decode", "hits", "running", "waiting",
                   "preempted", "pages in use", "cached", "tokens", "reserved",
                   "waste", "ms")
            << std::endl;
}

void PrintBatchLine(const v1::BatchReport& report) {
  const v1::MemoryReport& memory = report.memory();
  if (report.dropped_reports() > 0) {
    std::cout << "(" << report.dropped_reports() << " reports were dropped)\n";
  }
  std::cout
      << absl::StreamFormat(
             "%6d %8d %7d %6d %8d %8d %10d %15s %7d %8d %10s %6.2f%% "
             "%9.3f",
             report.step(), report.prefill_tokens(), report.decode_tokens(),
             report.prefix_hit_tokens(), report.sequences_running(),
             report.sequences_waiting(), report.sequences_preempted(),
             absl::StrCat(memory.pages_in_use(), " of ", memory.pages_total()),
             memory.pages_cached(), memory.tokens_held(),
             FormatByteSize(memory.reserved_bytes()),
             memory.waste_share() * 100, ToSeconds(report.duration()) * 1000)
      << std::endl;
}

void PrintBatchJson(const v1::BatchReport& report) {
  PrintJsonLine(
      {{"step", report.step()},
       {"start", StartTime(report)},
       {"duration", ToSeconds(report.duration())},
       {"forward_duration", ToSeconds(report.forward_duration())},
       {"prefill_tokens", report.prefill_tokens()},
       {"decode_tokens", report.decode_tokens()},
       {"sequences_running", report.sequences_running()},
       {"sequences_waiting", report.sequences_waiting()},
       {"sequences_preempted", report.sequences_preempted()},
       {"wait_reason", std::string(WaitReasonName(report.wait_reason()))},
       {"prefix_query_tokens", report.prefix_query_tokens()},
       {"prefix_hit_tokens", report.prefix_hit_tokens()},
       {"pages_evicted", report.pages_evicted()},
       {"pages_copied", report.pages_copied()},
       {"predicted_duration", report.has_predicted_duration()
                                  ? Json(ToSeconds(report.predicted_duration()))
                                  : Json()},
       {"commit_interval", report.has_commit_interval()
                               ? Json(ToSeconds(report.commit_interval()))
                               : Json()},
       {"memory", MemoryJson(report.memory())},
       {"dropped_reports", report.dropped_reports()}});
}

}  // namespace folio
