// What is known of a request beside what the engine knows.

#ifndef RUNTIME_SERVER_REQUEST_FACTS_H_
#define RUNTIME_SERVER_REQUEST_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace folio {

struct RequestFacts {
  std::string name;  // What the client calls it: unique among its tenant's.
  std::string tenant;
  int32_t n = 1;
  std::optional<std::string> prompt;  // Only where it is to be logged.
};

}  // namespace folio

#endif  // RUNTIME_SERVER_REQUEST_FACTS_H_
