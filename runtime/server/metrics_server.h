// Metrics over HTTP.

#ifndef RUNTIME_SERVER_METRICS_SERVER_H_
#define RUNTIME_SERVER_METRICS_SERVER_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace prometheus {
class Collectable;
class Exposer;
}  // namespace prometheus

namespace folio {

// Answers GET /metrics in Prometheus's text format, with two threads of its
// own.
class MetricsServer {
 public:
  // `listen` is ADDR:PORT, as ParseHostPort takes it; port 0: any free one. It
  // serves what `metrics` collects, as long as that lives. INVALID_ARGUMENT or
  // UNAVAILABLE names an address that can't be listened on.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      std::string_view listen, std::weak_ptr<prometheus::Collectable> metrics);

  // Takes up to two seconds: so seldom does the library look whether it is to
  // stop.
  ~MetricsServer();

  // Where it listens: the address as given, with the real port.
  const std::string& address() const { return address_; }

 private:
  MetricsServer(std::unique_ptr<prometheus::Exposer> exposer,
                std::string address);

  const std::unique_ptr<prometheus::Exposer> exposer_;
  const std::string address_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_METRICS_SERVER_H_
