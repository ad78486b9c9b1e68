#include "cache/kv_storage.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace folio {
namespace {

using ::testing::HasSubstr;

// Two parts of 2 x 5 x 4 x 4 tokens = 160 bytes and padding: 384 bytes a page.
const KvLayout& SmallLayout() {
  static const KvLayout layout(
      {.num_layers = 2, .num_kv_heads = 1, .head_dim = 5}, 4);
  return layout;
}

TEST(KvStorage, DividesThePoolExactly) {
  SerialExecutor executor;
  ASSERT_EQ(SmallLayout().page_bytes(), 384);
  const auto storage = KvStorage::Create(SmallLayout(), 1000, executor);
  ASSERT_TRUE(storage.ok()) << storage.status();
  EXPECT_EQ((*storage)->pool_bytes(), 1000);
  EXPECT_EQ((*storage)->num_pages(), 2);
  EXPECT_EQ((*storage)->remainder_bytes(), 232);
}

// A pool whose pages' parts hold each its own number.
std::unique_ptr<KvStorage> NumberedParts(int num_pages) {
  SerialExecutor executor;
  auto storage = KvStorage::Create(SmallLayout(), num_pages * 384, executor);
  CHECK(storage.ok()) << storage.status();
  for (int page = 0; page < num_pages; ++page) {
    for (int part = 0; part < 2; ++part) {
      std::byte* const data =
          (*storage)->PageData(PageId{page}) + part * (*storage)->part_stride();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
      std::memset(data, 2 * page + part, 192);
    }
  }
  return *std::move(storage);
}

// Whether a page holds what NumberedParts wrote to page `written`.
bool Holds(const KvStorage& storage, PageId page, int written) {
  for (int part = 0; part < 2; ++part) {
    const std::byte* const data =
        storage.PageData(page) + part * storage.part_stride();
    if (!std::all_of(data, data + 192, [&](std::byte b) {
          return b == static_cast<std::byte>(2 * written + part);
        })) {
      return false;
    }
  }
  return true;
}

TEST(KvStorage, PartsAreApartAlignedAndWritable) {
  const auto storage = NumberedParts(64);
  ASSERT_EQ(storage->num_pages(), 64);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(Holds(*storage, PageId{i}, i)) << i;
}

TEST(KvStorage, CopiesAllPartsOfAPageAndNothingElse) {
  const auto storage = NumberedParts(8);
  storage->CopyPage(PageId{3}, PageId{5});
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(Holds(*storage, PageId{i}, i == 5 ? 3 : i)) << i;
  }
}

TEST(KvStorage, EveryByteIsInMemoryFromTheStart) {
  // It is touched in parts: less than one, and some and a rest.
  for (const int64_t pool_bytes :
       {(int64_t{1} << 20) + 123, (int64_t{40} << 20) + 4097}) {
    SerialExecutor executor;
    const auto storage = KvStorage::Create(SmallLayout(), pool_bytes, executor);
    ASSERT_TRUE(storage.ok()) << storage.status();
    const int64_t os_page_bytes = sysconf(_SC_PAGESIZE);
    std::vector<unsigned char> resident((pool_bytes + os_page_bytes - 1) /
                                        os_page_bytes);
    ASSERT_EQ(
        mincore((*storage)->PageData(PageId{0}), pool_bytes, resident.data()),
        0);
    EXPECT_TRUE(std::ranges::all_of(resident, [](int r) { return r & 1; }));
  }
}

TEST(KvStorage, RefusesAPoolWithoutAPage) {
  SerialExecutor executor;
  for (const int64_t pool_bytes : {int64_t{319}, int64_t{0}, int64_t{-1},
                                   std::numeric_limits<int64_t>::min()}) {
    const auto storage = KvStorage::Create(SmallLayout(), pool_bytes, executor);
    EXPECT_EQ(storage.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(storage.status().message()),
                HasSubstr("384 bytes"));
  }
}

TEST(KvStorage, RefusesMorePagesThanHaveNumbers) {
  SerialExecutor executor;
  const auto storage =
      KvStorage::Create(SmallLayout(), int64_t{1} << 62, executor);
  EXPECT_EQ(storage.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(storage.status().message()), HasSubstr("2147483647"));
}

TEST(KvStorage, SaysHowMuchMemoryThereIs) {
  SerialExecutor executor;
  const KvLayout large({.num_layers = 64, .num_kv_heads = 64, .head_dim = 128},
                       128);
  const auto storage = KvStorage::Create(large, int64_t{1} << 50, executor);
  ASSERT_EQ(storage.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(storage.status().message()), HasSubstr("1024TiB"));
  EXPECT_THAT(std::string(storage.status().message()), HasSubstr("available"));
}

}  // namespace
}  // namespace folio
