// Values made of files that may change while the process runs.

#ifndef RUNTIME_SERVER_RELOADED_H_
#define RUNTIME_SERVER_RELOADED_H_

#include <glog/logging.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/small_file.h"

namespace folio {

// What `read` makes of the files, as they are now. When they become something
// that it can't read, the value stays as it was, and the error is logged, once
// for each way in which they are wrong. Any thread may call, also at the same
// time.
template <typename T>
class Reloaded {
 public:
  // `read` fails with INVALID_ARGUMENT for what a file says, so that only
  // another file could be better, and with anything else for what may pass.
  using Read = std::function<absl::StatusOr<T>()>;

  // The status of the first `read`, when that is an error.
  static absl::StatusOr<std::unique_ptr<Reloaded>> Load(
      std::vector<std::string> paths, Read read) {
    std::unique_ptr<Reloaded> loaded(
        new Reloaded(std::move(paths), std::move(read)));
    loaded->versions_ = loaded->Versions();
    FOLIO_ASSIGN_OR_RETURN(T value, loaded->read_());
    loaded->value_ = std::make_shared<const T>(std::move(value));
    return loaded;
  }

  Reloaded(const Reloaded&) = delete;
  Reloaded& operator=(const Reloaded&) = delete;

  // A stat for each file; where one has changed, the files are read first. The
  // lock is held meanwhile: whoever comes then waits for the new value.
  std::shared_ptr<const T> Current() {
    std::lock_guard lock(mutex_);
    // Before they are read, so that a change meanwhile is another version.
    const FileVersions versions = Versions();
    if (versions == versions_) return value_;
    absl::StatusOr<T> value = read_();
    if (value.ok()) {
      value_ = std::make_shared<const T>(*std::move(value));
      LogChanges(versions);
    } else if (value.status() != error_) {
      LOG(ERROR) << "what was read before stays in force: "
                 << value.status().message();
    }
    error_ = value.status();
    if (value.ok() || absl::IsInvalidArgument(error_)) versions_ = versions;
    return value_;
  }

 private:
  using FileVersions = std::vector<std::optional<FileVersion>>;

  Reloaded(std::vector<std::string> paths, Read read)
      : paths_(std::move(paths)), read_(std::move(read)) {}

  FileVersions Versions() const {
    FileVersions versions;
    for (const std::string& path : paths_) versions.push_back(VersionOf(path));
    return versions;
  }

  void LogChanges(const FileVersions& versions) const {
    for (size_t i = 0; i < paths_.size(); ++i) {
      LOG_IF(INFO, versions[i] != versions_[i])
          << "read '" << paths_[i] << "' anew";
    }
  }

  const std::vector<std::string> paths_;
  const Read read_;

  std::mutex mutex_;
  // Guarded by mutex_.
  FileVersions versions_;  // When they were last read and judged.
  std::shared_ptr<const T> value_;
  absl::Status error_;  // Of the last reading; OK: value_ is what they say.
};

}  // namespace folio

#endif  // RUNTIME_SERVER_RELOADED_H_
