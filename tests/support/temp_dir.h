// A folder of its own for a test that needs files.

#ifndef TESTS_SUPPORT_TEMP_DIR_H_
#define TESTS_SUPPORT_TEMP_DIR_H_

#include <string>
#include <string_view>

namespace folio {

// An empty folder that nobody else uses; removed, with all that is in it, at
// the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  // Writes a file at `name` below the folder, with the folders on the way, and
  // returns its full path.
  std::string Write(std::string_view name, std::string_view contents) const;

 private:
  std::string path_;
};

}  // namespace folio

#endif  // TESTS_SUPPORT_TEMP_DIR_H_
