// What each file FOO_fuzz.cc defines: a parser fed with any bytes at all.
//
// Three programs are made of one such file: FOO_fuzz, which libFuzzer drives
// (tests/run.sh --fuzz); FOO_seeds, which writes the files that it begins with;
// and, in every other build, FOO_replay_test.

#ifndef TESTS_FUZZ_FUZZ_TARGET_H_
#define TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Parses the bytes, touches all of the result, and returns 0. Crashes (CHECK, a
// sanitizer) where the parser breaks its word; bad bytes alone are no crash.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace folio {

// Small files, most of them good.
std::vector<std::string> FuzzSeeds();

}  // namespace folio

#endif  // TESTS_FUZZ_FUZZ_TARGET_H_
