// What is logged as an error while a test runs.

#ifndef TESTS_RUNTIME_SERVER_ERROR_LOG_H_
#define TESTS_RUNTIME_SERVER_ERROR_LOG_H_

#include <glog/logging.h>

#include <mutex>
#include <string>
#include <vector>

namespace folio {

// Gathers the messages that any thread logs while it lives.
class ErrorLog : public google::LogSink {
 public:
  ErrorLog() { google::AddLogSink(this); }
  ~ErrorLog() override { google::RemoveLogSink(this); }

  std::vector<std::string> messages() const {
    std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* message,
            size_t size) override {
    if (severity != google::GLOG_ERROR) return;
    std::lock_guard lock(mutex_);
    messages_.emplace_back(message, size);
  }

  mutable std::mutex mutex_;
  std::vector<std::string> messages_;  // Guarded by mutex_.
};

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_ERROR_LOG_H_
