#include "tests/runtime/server/report_identities.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace folio {

void ExpectIdentities(const v1::BatchReport& report) {
  const v1::MemoryReport& memory = report.memory();
  EXPECT_EQ(memory.pages_total(), memory.pages_free() + memory.pages_in_use() +
                                      memory.pages_cached());
  EXPECT_EQ(memory.pool_bytes(), memory.pages_total() * memory.page_bytes() +
                                     memory.remainder_bytes());
  EXPECT_EQ(memory.page_bytes(), memory.bytes_per_token() * memory.page_size() +
                                     memory.page_scale_bytes() +
                                     memory.page_padding_bytes());
  EXPECT_EQ(memory.reserved_bytes(),
            memory.pages_in_use() * memory.page_bytes());
  EXPECT_EQ(memory.reserved_bytes(),
            memory.holding_bytes() + memory.waste_bytes());
  EXPECT_EQ(memory.holding_bytes(),
            memory.tokens_held() * memory.bytes_per_token());
  EXPECT_GE(memory.waste_bytes(), 0);

  EXPECT_EQ(memory.shared_saved_bytes(),
            memory.duplicate_pages_saved() * memory.page_bytes());
  EXPECT_LE(memory.pages_shared(), memory.pages_in_use());

  int64_t sequence_pages = 0;
  int64_t sequence_tokens = 0;
  for (const v1::SequenceMemory& sequence : memory.sequences()) {
    sequence_pages += sequence.pages();
    sequence_tokens += sequence.tokens();
    EXPECT_LE(sequence.tokens(), sequence.pages() * memory.page_size());
    EXPECT_GT(sequence.tokens(), (sequence.pages() - 1) * memory.page_size());
    EXPECT_FALSE(sequence.request_id().empty());
  }
  EXPECT_EQ(sequence_pages - memory.pages_in_use(),
            memory.duplicate_pages_saved());
  // Tokens of shared pages are held once; each page has one at least.
  const int64_t twice = sequence_tokens - memory.tokens_held();
  EXPECT_GE(twice, memory.duplicate_pages_saved());
  EXPECT_LE(twice, memory.duplicate_pages_saved() * memory.page_size());
  EXPECT_EQ(memory.sequences_size(), report.sequences_running());
  EXPECT_EQ(memory.contiguous_bytes(), int64_t{memory.sequences_size()} *
                                           memory.context_length() *
                                           memory.bytes_per_token());
}

}  // namespace folio
