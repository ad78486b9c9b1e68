// soak_server, as a child process.

#ifndef TESTS_RUNTIME_SERVER_SOAK_PROCESS_H_
#define TESTS_RUNTIME_SERVER_SOAK_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>

namespace folio {

// What the server's process takes of the system.
struct ProcessUsage {
  int64_t resident_bytes = 0;
  int64_t heap_bytes = 0;  // Allocated and not freed.
  // gRPC starts threads for timers and for its executor when all that it has
  // are busy, and keeps them; and the others.
  int64_t num_pool_threads = 0;
  int64_t num_threads = 0;
  int64_t num_descriptors = 0;
};

std::ostream& operator<<(std::ostream& out, const ProcessUsage& usage);

class SoakProcess {
 public:
  SoakProcess(int max_waiting_requests, const std::string& request_log);
  ~SoakProcess();
  SoakProcess(const SoakProcess&) = delete;
  SoakProcess& operator=(const SoakProcess&) = delete;

  const std::string& address() const { return address_; }
  const std::string& admin_address() const { return admin_address_; }
  const std::string& metrics_address() const { return metrics_address_; }

  // After the process has given back the memory that it does not use.
  ProcessUsage Usage();

  // Ends it; the exit status, or -1 when a signal ended it.
  int Stop();

 private:
  std::string ReadLine();

  pid_t pid_ = -1;
  std::FILE* commands_ = nullptr;
  std::FILE* answers_ = nullptr;
  std::string address_;
  std::string admin_address_;
  std::string metrics_address_;
};

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_SOAK_PROCESS_H_
