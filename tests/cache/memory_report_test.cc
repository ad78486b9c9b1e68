// A report worked out by hand, and identities that must be noticed when broken.

#include "cache/memory_report.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace folio {
namespace {

// 2 (K and V) x 3 layers x 1 head x 5 elements x 4 bytes.
constexpr int64_t kTokenBytes = 120;
// 8 tokens take 960 bytes, which is a multiple of 64.
constexpr int64_t kPageBytes = 960;

class MemoryReportTest : public testing::Test {
 protected:
  MemoryReportTest()
      : cache_(KvLayout({.num_layers = 3, .num_kv_heads = 1, .head_dim = 5},
                        /*page_size=*/8),
               /*num_pages=*/10) {
    EXPECT_TRUE(cache_.Grow(first_, 17));  // 3 pages.
    EXPECT_TRUE(cache_.Grow(second_, 8));  // 1 page.
    MemoryReporter reporter(&cache_, 10 * kPageBytes + 7,
                            /*context_length=*/100);
    reporter.Start(report_);
    reporter.Add(first_, SequenceId{1}, RequestId{1}, 0, 17, report_);
    reporter.Add(second_, SequenceId{2}, RequestId{2}, 0, 5, report_);
  }
  ~MemoryReportTest() override {
    cache_.Release(first_);
    cache_.Release(second_);
  }

  KvCache cache_;
  PageTable first_;
  PageTable second_;
  MemoryReport report_;
};

TEST_F(MemoryReportTest, Numbers) {
  report_.CheckIdentities();
  EXPECT_EQ(report_.bytes_per_token(), kTokenBytes);
  EXPECT_EQ(report_.page_bytes, kPageBytes);
  EXPECT_EQ(report_.page_scale_bytes, 0);
  EXPECT_EQ(report_.page_padding_bytes, 0);
  EXPECT_EQ(report_.remainder_bytes, 7);
  EXPECT_EQ(report_.pages_total, 10);
  EXPECT_EQ(report_.pages_free, 6);
  EXPECT_EQ(report_.pages_in_use, 4);
  EXPECT_EQ(report_.pages_cached, 0);
  EXPECT_EQ(report_.duplicate_pages_saved, 0);
  EXPECT_EQ(report_.tokens_held, 22);
  EXPECT_EQ(report_.bytes_reserved(), 4 * kPageBytes);
  EXPECT_EQ(report_.bytes_holding(), 22 * kTokenBytes);
  EXPECT_EQ(report_.bytes_waste(), 4 * kPageBytes - 22 * kTokenBytes);
  EXPECT_DOUBLE_EQ(report_.waste_share(), 1200.0 / 3840);
  EXPECT_EQ(report_.bytes_contiguous(), 2 * 100 * kTokenBytes);
  ASSERT_EQ(report_.sequences.size(), 2u);
  EXPECT_EQ(report_.sequences[0].pages, 3);
  EXPECT_EQ(report_.sequences[1].tokens, 5);
}

TEST_F(MemoryReportTest, EmptyPoolWastesNothing) {
  KvCache empty(cache_.layout(), 10);
  MemoryReporter(&empty, 10 * kPageBytes, 100).Start(report_);
  report_.CheckIdentities();
  EXPECT_EQ(report_.pages_free, 10);
  EXPECT_EQ(report_.waste_share(), 0);
  EXPECT_EQ(report_.bytes_contiguous(), 0);
}

// A fork of the first table: three pages that both hold, 17 tokens in them.
TEST_F(MemoryReportTest, SharedPagesCountOnce) {
  PageTable fork;
  cache_.Fork(first_, fork);
  MemoryReporter reporter(&cache_, 10 * kPageBytes + 7, 100);
  for (int round = 0; round < 2; ++round) {
    reporter.Start(report_);
    reporter.Add(first_, SequenceId{1}, RequestId{1}, 0, 17, report_);
    reporter.Add(fork, SequenceId{3}, RequestId{1}, 1, 17, report_);
    reporter.Add(second_, SequenceId{2}, RequestId{2}, 0, 5, report_);
    report_.CheckIdentities();
    EXPECT_EQ(report_.pages_in_use, 4);
    EXPECT_EQ(report_.pages_shared, 3);
    EXPECT_EQ(report_.duplicate_pages_saved, 3);
    EXPECT_EQ(report_.bytes_shared(), 3 * kPageBytes);
    EXPECT_EQ(report_.tokens_held, 22);
    EXPECT_EQ(report_.sequences[0].shared_pages, 3);
    EXPECT_EQ(report_.sequences[1].tokens, 17);
    EXPECT_EQ(report_.sequences[2].shared_pages, 0);
  }
  cache_.Release(fork);
}

TEST_F(MemoryReportTest, EveryBrokenIdentityIsNoticed) {
  const std::vector<std::function<void(MemoryReport&)>> breaks = {
      [](MemoryReport& r) { ++r.pages_free; },
      [](MemoryReport& r) { --r.pages_in_use; },
      [](MemoryReport& r) { ++r.pages_cached; },
      [](MemoryReport& r) { ++r.pool_bytes; },
      [](MemoryReport& r) { r.remainder_bytes += kPageBytes; },
      [](MemoryReport& r) { ++r.page_padding_bytes; },
      [](MemoryReport& r) { ++r.page_scale_bytes; },
      [](MemoryReport& r) {  // The sum is right, but not whose bytes they are.
        ++r.page_scale_bytes;
        --r.page_padding_bytes;
      },
      [](MemoryReport& r) { ++r.duplicate_pages_saved; },
      [](MemoryReport& r) { --r.tokens_held; },
      [](MemoryReport& r) { r.pages_shared = 5; },
      [](MemoryReport& r) { r.sequences.pop_back(); },
      [](MemoryReport& r) { r.sequences[0].tokens = 25; },
      [](MemoryReport& r) { r.sequences[0].shared_pages = 4; },
  };
  for (size_t i = 0; i < breaks.size(); ++i) {
    MemoryReport broken = report_;
    breaks[i](broken);
    EXPECT_DEATH(broken.CheckIdentities(), "Check failed") << "break " << i;
  }
}

}  // namespace
}  // namespace folio
