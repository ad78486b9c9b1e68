// A Folio server, over gRPC.

#ifndef BENCH_LOAD_FOLIO_TARGET_H_
#define BENCH_LOAD_FOLIO_TARGET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/load/target.h"
#include "runtime/client/client_options.h"

namespace folio {

// `address` is ADDR:PORT. Connects when it is used first. Requests are spread
// over a few connections; their callbacks come on gRPC's threads.
// INVALID_ARGUMENT says what is wrong with the options.
absl::StatusOr<std::unique_ptr<Target>> OpenFolioTarget(
    const std::string& address, const ClientOptions& options);

}  // namespace folio

#endif  // BENCH_LOAD_FOLIO_TARGET_H_
