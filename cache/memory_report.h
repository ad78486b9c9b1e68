// Where every byte of the KV pool is, at one moment.

#ifndef CACHE_MEMORY_REPORT_H_
#define CACHE_MEMORY_REPORT_H_

#include <cstdint>
#include <vector>

#include "cache/kv_cache.h"
#include "runtime/base/types.h"

namespace folio {

// One sequence's part. Its pages hold `tokens` tokens' K/V: those computed,
// less those whose pages have left the window.
struct SequenceMemory {
  SequenceId sequence{};
  RequestId request{};
  int32_t pages = 0;
  int32_t shared_pages = 0;  // Of `pages`, those that others hold too.
  int32_t tokens = 0;
};

// The identities that CheckIdentities states hold in every report, exactly.
// "Reserved" is what pages in use take, "holding" what tokens in them take.
struct MemoryReport {
  // Of the pool, constant while the engine lives.
  KvShape kv_shape;
  int32_t page_size = 0;  // Token slots.
  int64_t page_bytes = 0;
  int64_t page_scale_bytes = 0;  // Of int8 elements.
  int64_t page_padding_bytes = 0;
  int64_t pool_bytes = 0;
  int64_t remainder_bytes = 0;  // Too few for one more page.
  int32_t context_length = 0;   // The most tokens of one sequence.

  // Pages. A shared page counts once in `pages_in_use`.
  int32_t pages_total = 0;
  int32_t pages_free = 0;
  int32_t pages_in_use = 0;
  int32_t pages_cached = 0;  // Held by the prefix index alone.
  int64_t duplicate_pages_saved = 0;

  // Tokens whose K/V is in pages in use.
  int64_t tokens_held = 0;

  std::vector<SequenceMemory> sequences;

  int64_t bytes_per_token() const { return kv_shape.BytesPerToken(); }
  int64_t bytes_reserved() const { return pages_in_use * page_bytes; }
  int64_t bytes_holding() const { return tokens_held * bytes_per_token(); }
  int64_t bytes_waste() const { return bytes_reserved() - bytes_holding(); }
  // Of what is reserved; 0 when nothing is.
  double waste_share() const {
    return bytes_reserved() == 0
               ? 0.0
               : static_cast<double>(bytes_waste()) / bytes_reserved();
  }
  // What one contiguous buffer of the context length for each of the same
  // sequences would take.
  int64_t bytes_contiguous() const {
    return kv_shape.Bytes(static_cast<int64_t>(sequences.size()),
                          context_length);
  }

  // Ends the process, naming the numbers, when an identity does not hold. Free
  // pages, pages in use and references are counted by the allocator each on its
  // own, and sequences' pages are those of their tables. O(sequences).
  void CheckIdentities() const;
};

// Starts a report: everything that does not depend on the sequences.
// `report.sequences` is emptied but keeps its memory.
void StartReport(const KvCache& cache, int64_t pool_bytes,
                 int32_t context_length, MemoryReport& report);

// Adds one sequence that holds pages. O(1).
// REQUIRES: none of them is shared; nothing makes shared pages yet.
void AddToReport(const KvCache& cache, const PageTable& table,
                 SequenceId sequence, RequestId request, int32_t tokens,
                 MemoryReport& report);

}  // namespace folio

#endif  // CACHE_MEMORY_REPORT_H_
