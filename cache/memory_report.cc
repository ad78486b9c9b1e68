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
  CHECK_EQ(tokens_held, tokens);
  CHECK_GE(bytes_waste(), 0);
}

void StartReport(const KvCache& cache, int64_t pool_bytes,
                 int32_t context_length, MemoryReport& report) {
  const KvLayout& layout = cache.layout();
  report.kv_shape = layout.shape();
  report.page_size = layout.page_size();
  report.page_bytes = layout.page_bytes();
  report.page_scale_bytes = layout.scale_bytes();
  report.page_padding_bytes = layout.padding_bytes();
  report.pool_bytes = pool_bytes;
  report.remainder_bytes = pool_bytes - cache.num_pages() * layout.page_bytes();
  report.context_length = context_length;
  report.pages_total = cache.num_pages();
  report.pages_free = cache.num_free();
  report.pages_in_use = cache.allocator().num_in_use();
  report.pages_cached = 0;
  report.duplicate_pages_saved = cache.NumDuplicatesSaved();
  report.tokens_held = 0;
  report.sequences.clear();
}

void AddToReport(const KvCache& cache, const PageTable& table,
                 SequenceId sequence, RequestId request, int32_t tokens,
                 MemoryReport& report) {
  const int32_t shared_pages = cache.NumShared(table);
  // A token in a shared page would have to be counted once.
  CHECK_EQ(shared_pages, 0);
  report.sequences.push_back({.sequence = sequence,
                              .request = request,
                              .pages = table.num_pages(),
                              .shared_pages = shared_pages,
                              .tokens = tokens});
  report.tokens_held += tokens;
}

}  // namespace folio
