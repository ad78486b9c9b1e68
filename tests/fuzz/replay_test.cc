// One fuzz target over its seeds and thousands of fixed mutations of them, so
// that every build tries it, sanitizers or not.

#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutate.h"
#include "tests/support/sanitized.h"

namespace folio {
namespace {

void Feed(std::string_view bytes) {
  // Memory of exactly this size, so that AddressSanitizer sees a read past it.
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  EXPECT_EQ(LLVMFuzzerTestOneInput(exact.data(), exact.size()), 0);
}

// FOLIO_FUZZ_SUITE is the target's name, which the build sets.
TEST(FOLIO_FUZZ_SUITE, SurvivesItsSeeds) {
  const std::vector<std::string> seeds = FuzzSeeds();
  ASSERT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) Feed(seed);
}

TEST(FOLIO_FUZZ_SUITE, SurvivesMutations) {
  constexpr uint64_t kMutations = kSanitized ? 10'000 : 50'000;
  const std::vector<std::string> seeds = FuzzSeeds();
  for (uint64_t i = 0; i < kMutations; ++i) {
    // The last line before a crash says where it was.
    if (i % 5000 == 0) std::cout << "mutation " << i << " ..." << std::endl;
    Feed(Mutated(seeds[i % seeds.size()], i));
  }
}

}  // namespace
}  // namespace folio
