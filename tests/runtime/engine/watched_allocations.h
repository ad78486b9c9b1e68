// Sees every allocation of the process while it watches.

#ifndef TESTS_RUNTIME_ENGINE_WATCHED_ALLOCATIONS_H_
#define TESTS_RUNTIME_ENGINE_WATCHED_ALLOCATIONS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace folio {

// An executable that links this has its own malloc, operator new and their
// like, for all libraries in it; they hand on to glibc's.

// Who called one of them. By operator new's caller, when it was that.
struct AllocationCall {
  enum class Kind { kAllocate, kFree };

  const void* caller;
  size_t bytes;  // 0 for kFree.
  Kind kind;
  bool marked;  // Between SetMark(true) and SetMark(false).
};

// From now on, of all threads. Forgets what was seen before.
void StartWatching();
void StopWatching();

// Marks what is seen from now on, of all threads.
void SetMark(bool marked);

// What was seen. REQUIRES: not watching. CHECKs that everything found a place.
std::vector<AllocationCall> SeenCalls();

// The file name of the library, or of the executable, that holds the code.
std::string LibraryOf(const void* code);

// "libfoo.so.1 symbol+0x12", or an offset where there is no symbol.
std::string PlaceOf(const void* code);

}  // namespace folio

#endif  // TESTS_RUNTIME_ENGINE_WATCHED_ALLOCATIONS_H_
