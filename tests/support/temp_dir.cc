#include "tests/support/temp_dir.h"

#include <glog/logging.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace folio {

TempDir::TempDir()
    : path_(std::filesystem::temp_directory_path() / "folio-test-XXXXXX") {
  PCHECK(mkdtemp(path_.data()) != nullptr) << path_;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Write(std::string_view name,
                           std::string_view contents) const {
  const std::filesystem::path file = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << contents;
  CHECK(out.flush().good()) << file;
  return file;
}

}  // namespace folio
