// The target that --target names.

#ifndef BENCH_LOAD_OPEN_TARGET_H_
#define BENCH_LOAD_OPEN_TARGET_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bench/load/target.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/security_flags.h"

namespace folio {

// How --target says which kind it is.
inline constexpr char kFolio[] = "folio://";
inline constexpr char kOpenAi[] = "openai://";
inline constexpr char kInProcess[] = "inproc:";

// Whether `target` is of a known kind.
bool IsTarget(std::string_view target);

struct TargetFlags {
  // folio://ADDR:PORT, openai://ADDR:PORT/v1 or inproc:
  std::string target;
  EngineFlags engine;            // Of inproc:
  ClientSecurityFlags security;  // Of folio://; the token of openai://, too.
  std::string api_model;         // Of openai://; empty: the server's first.
};

// INVALID_ARGUMENT names what is wrong with the flags. Whether it answers,
// Describe tells. REQUIRES: IsTarget(flags.target).
absl::StatusOr<std::unique_ptr<Target>> OpenTarget(const TargetFlags& flags);

}  // namespace folio

#endif  // BENCH_LOAD_OPEN_TARGET_H_
