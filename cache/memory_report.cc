#include "cache/memory_report.h"

#include <glog/logging.h>

namespace folio {

void MemoryReport::CheckIdentities() const {
  CHECK_EQ(pages_total, pages_free + pages_in_use + pages_cached);
  CHECK_EQ(pool_bytes, pages_total * page_bytes + remainder_bytes);
  CHECK_GE(remainder_bytes, 0);
  CHECK_LT(remainder_bytes, page_bytes);
  CHECK_EQ(page_bytes, bytes_per_token() * page_size + page_scale_bytes +
                           page_padding_bytes);
  CHECK_EQ(page_scale_bytes, kv_shape.ScaleBytesPerToken() * page_size);

  int64_t pages = 0;
  int64_t tokens = 0;
  for (const SequenceMemory& sequence : sequences) {
    CHECK_LE(sequence.tokens, int64_t{sequence.pages} * page_size);
    CHECK_LE(sequence.shared_pages, sequence.pages);
    pages += sequence.pages;
    tokens += sequence.tokens;
  }
  CHECK_EQ(pages - pages_in_use, duplicate_pages_saved);
  CHECK_GE(duplicate_pages_saved, 0);
  CHECK_LE(pages_shared, pages_in_use);
  // Each saved page holds at most a page's tokens, which then count once.
  CHECK_LE(tokens_held, tokens);
  CHECK_GE(tokens_held, tokens - duplicate_pages_saved * page_size);
  CHECK_GE(bytes_waste(), 0);
}

MemoryReporter::MemoryReporter(const KvCache* cache, int64_t pool_bytes,
                               int32_t context_length)
    : cache_(cache),
      pool_bytes_(pool_bytes),
      context_length_(context_length),
      counted_in_(cache->num_pages(), 0) {}

void MemoryReporter::Start(MemoryReport& report) {
  ++num_reports_;
  const KvLayout& layout = cache_->layout();
  report.kv_shape = layout.shape();
  report.page_size = layout.page_size();
  report.page_bytes = layout.page_bytes();
  report.page_scale_bytes = layout.scale_bytes();
  report.page_padding_bytes = layout.padding_bytes();
  report.pool_bytes = pool_bytes_;
  report.remainder_bytes =
      pool_bytes_ - cache_->num_pages() * layout.page_bytes();
  report.context_length = context_length_;
  report.pages_total = cache_->num_pages();
  report.pages_free = cache_->num_free();
  report.pages_in_use = cache_->num_in_use();
  report.pages_cached = cache_->num_cached();
  report.duplicate_pages_saved = cache_->NumDuplicatesSaved();
  report.pages_shared = cache_->num_shared();
  // Each holder of a shared page but one holds the same tokens again: a page
  // full of them, or what Add puts right.
  report.tokens_held = -report.duplicate_pages_saved * layout.page_size();
  report.sequences.clear();
}

void MemoryReporter::Add(const PageTable& table, SequenceId sequence,
                         RequestId request, int32_t sample_index,
                         int32_t num_computed, MemoryReport& report) {
  SequenceMemory& entry = report.sequences.emplace_back();
  entry = {
      .sequence = sequence,
      .request = request,
      .sample_index = sample_index,
      .pages = table.num_pages(),
      .shared_pages = cache_->NumShared(table),
      .tokens = static_cast<int32_t>(cache_->TokensHeld(table, num_computed))};
  report.tokens_held += entry.tokens;
  const int64_t tail_tokens = num_computed % report.page_size;
  if (tail_tokens == 0 || entry.shared_pages == 0) return;
  const PageId tail = table.pages()[num_computed / report.page_size];
  if (cache_->NumHolders(tail) == 1) return;
  int64_t& counted_in = counted_in_[ToIndex(tail)];
  if (counted_in == num_reports_) {
    report.tokens_held += report.page_size - tail_tokens;
  }
  counted_in = num_reports_;
}

}  // namespace folio
