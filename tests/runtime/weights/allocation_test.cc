// Malformed files take no more memory than their size justifies, whatever
// counts and lengths they claim.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "runtime/weights/gguf.h"
#include "runtime/weights/json_file.h"
#include "runtime/weights/model_files.h"
#include "runtime/weights/safetensors.h"
#include "tests/support/bytes.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/malformed_gguf.h"
#include "tests/support/safetensors_builder.h"

namespace {

// What all allocations so far asked for, freed or not.
std::atomic<size_t> allocated_bytes = 0;

void* Allocate(size_t size) {
  allocated_bytes += size;
  // NOLINTNEXTLINE: this is what operator new is made of.
  if (void* memory = std::malloc(std::max<size_t>(size, 1))) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace folio {
namespace {

// What `work` allocates.
size_t BytesDuring(const std::function<void()>& work) {
  const size_t before = allocated_bytes;
  work();
  return allocated_bytes - before;
}

// What parsing a file of this size may allocate, counting everything once, even
// when it is freed again: a document of JSON takes 16 bytes for each element of
// an array (two bytes of the file, and vectors that double have twice that in
// all), 100 for each member of an object (six bytes); an entry of GGUF about
// 200 (13 bytes or more). Twice 16 to 1 is enough; messages take a few KiB.
size_t Allowance(size_t file_bytes) { return 32 * 1024 + 32 * file_bytes; }

std::shared_ptr<const MappedFile> FileOf(const std::string& bytes) {
  return MappedFile::OfMemory("some/file", AsBytes(bytes));
}

TEST(Allocation, IsCounted) {
  EXPECT_GE(BytesDuring([] { std::vector<char> block(12'345); }), 12'345u);
}

TEST(Allocation, MalformedGgufTakesLittle) {
  for (const MalformedGguf& malformed : MalformedGgufs()) {
    EXPECT_LE(BytesDuring([&] {
                EXPECT_FALSE(GgufFile::Parse(FileOf(malformed.bytes)).ok());
              }),
              Allowance(malformed.bytes.size()))
        << malformed.what;
  }
}

// Counts that the rest of the file could just hold, of the smallest elements.
TEST(Allocation, LargeGgufCountsTakeInProportion) {
  constexpr uint64_t kCount = 100'000;
  const std::string zeros(8 * kCount, '\0');
  const std::string files[] = {
      // An array of empty strings; a good file.
      GgufBuilder()
          .AddRaw("a", static_cast<uint32_t>(GgufType::kArray),
                  BytesOf(static_cast<uint32_t>(GgufType::kString)) +
                      BytesOf(kCount) + zeros)
          .Build(),
      // As many entries, and as many tensors, as fit: the second is refused.
      "GGUF" + BytesOf(3) + BytesOf(uint64_t{0}) + BytesOf(8 * kCount / 13) +
          zeros,
      "GGUF" + BytesOf(3) + BytesOf(8 * kCount / 32) + BytesOf(uint64_t{0}) +
          zeros,
  };
  for (const std::string& file : files) {
    EXPECT_LE(BytesDuring([&] { (void)GgufFile::Parse(FileOf(file)); }),
              Allowance(file.size()));
  }
}

TEST(Allocation, MalformedSafetensorsTakeLittle) {
  const std::string data(16, 'd');
  const std::string files[] = {
      BytesOf(~uint64_t{0}) + "{}",
      BytesOf(uint64_t{1} << 40) + "{}",
      BytesOf(uint64_t{99'999'999}) + "{}",
      SafetensorsOf(R"({"t": {"dtype": "F32", "shape": [4611686018427387904],
                        "data_offsets": [0, 16]}})",
                    data),
      SafetensorsOf(R"({"t": {"dtype": "F32", "shape": [9223372036854775807],
                        "data_offsets": [0, 9223372036854775807]}})",
                    data),
      SafetensorsOf(std::string(100'000, '['), data),
      SafetensorsOf("{\"t\": [" + std::string(100'000, '1') + "]}", data),
  };
  for (const std::string& file : files) {
    EXPECT_LE(
        BytesDuring([&] { EXPECT_FALSE(ReadSafetensors(FileOf(file)).ok()); }),
        Allowance(file.size()))
        << file.substr(0, 100);
  }
}

TEST(Allocation, JsonTakesInProportion) {
  std::string zeros = "[0";
  std::string members = "{\"\":0";
  for (int i = 0; i < 50'000; ++i) {
    zeros += ",0";
    members += ",\"" + std::to_string(i) + "\":0";
  }
  for (const std::string& file : {zeros + "]", members + "}", zeros, members}) {
    EXPECT_LE(BytesDuring([&] { (void)ParseJson(*FileOf(file)); }),
              Allowance(file.size()));
  }
}

}  // namespace
}  // namespace folio
