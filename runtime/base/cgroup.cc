#include "runtime/base/cgroup.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"

namespace folio {
namespace {

// The path of this process's group in the hierarchy of `controller` ("" is
// v2's): lines of /proc/self/cgroup read "<id>:<controllers>:<path>".
std::string PathInHierarchy(const std::string& root,
                            std::string_view controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<std::string> names = absl::StrSplit(fields[1], ',');
    if (std::ranges::find(names, controller) != names.end()) return fields[2];
  }
  return "";
}

// The directories of this process's group and its ancestors. In a container the
// path may not exist below the mount point, which then is the container's own
// group; files that are not there limit nothing.
std::vector<std::string> Directories(const std::string& root,
                                     const std::string& controller) {
  std::string mount = root + "/sys/fs/cgroup";
  if (!controller.empty()) mount += "/" + controller;
  const std::string path = PathInHierarchy(root, controller);
  std::vector<std::string> directories;
  for (size_t end = path.size(); end != path.npos && end > 0;
       end = path.rfind('/', end - 1)) {
    directories.push_back(mount + path.substr(0, end));
  }
  directories.push_back(mount);
  return directories;
}

template <typename T>
std::optional<T> Tightest(std::optional<T> a, std::optional<T> b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() ? a : b;
  return std::min(*a, *b);
}

// `quota` microseconds in each `period`; v1 says -1 for no quota.
std::optional<int> CoresOfQuota(double quota, double period) {
  if (quota <= 0 || period <= 0) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

// "<quota or max> <period>" in one file.
std::optional<int> CoresInV2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  double quota;
  double period;
  if (!(file >> quota >> period)) return std::nullopt;
  return CoresOfQuota(quota, period);
}

// A file each.
std::optional<int> CoresInV1(const std::string& directory) {
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us");
  std::ifstream period_file(directory + "/cpu.cfs_period_us");
  double quota;
  double period;
  if (!(quota_file >> quota) || !(period_file >> period)) return std::nullopt;
  return CoresOfQuota(quota, period);
}

// The number that is all of a file; nothing for "max".
std::optional<int64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t number;
  if (file >> number) return number;
  return std::nullopt;
}

// The sum of the numbers after `keys` in a file of lines "<key> <number>".
int64_t SumOfKeys(const std::string& path,
                  std::initializer_list<std::string_view> keys) {
  std::ifstream file(path);
  int64_t sum = 0;
  std::string key;
  for (int64_t number; file >> key >> number;) {
    if (std::ranges::find(keys, key) != keys.end()) sum += number;
  }
  return sum;
}

std::optional<int64_t> MemoryLeft(std::optional<int64_t> limit,
                                  std::optional<int64_t> usage,
                                  int64_t caches) {
  if (!limit.has_value() || !usage.has_value()) return std::nullopt;
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *usage - caches));
}

std::optional<int64_t> MemoryLeftInV2(const std::string& directory) {
  return MemoryLeft(
      ReadNumber(directory + "/memory.max"),
      ReadNumber(directory + "/memory.current"),
      SumOfKeys(directory + "/memory.stat", {"inactive_file", "active_file"}));
}

std::optional<int64_t> MemoryLeftInV1(const std::string& directory) {
  return MemoryLeft(ReadNumber(directory + "/memory.limit_in_bytes"),
                    ReadNumber(directory + "/memory.usage_in_bytes"),
                    SumOfKeys(directory + "/memory.stat",
                              {"total_inactive_file", "total_active_file"}));
}

}  // namespace

std::optional<int> CgroupCores(const std::string& root) {
  std::optional<int> cores;
  for (const std::string& directory : Directories(root, "")) {
    cores = Tightest(cores, CoresInV2(directory));
  }
  for (const std::string& directory : Directories(root, "cpu")) {
    cores = Tightest(cores, CoresInV1(directory));
  }
  return cores;
}

std::optional<int64_t> CgroupMemoryLeft(const std::string& root) {
  std::optional<int64_t> left;
  for (const std::string& directory : Directories(root, "")) {
    left = Tightest(left, MemoryLeftInV2(directory));
  }
  for (const std::string& directory : Directories(root, "memory")) {
    left = Tightest(left, MemoryLeftInV1(directory));
  }
  return left;
}

}  // namespace folio
