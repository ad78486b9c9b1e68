// FOO_seeds FOLDER: writes the seeds of FOO into the folder, a file each.

#include <glog/logging.h>

#include <filesystem>
#include <fstream>

#include "tests/fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2) << "the one argument is the folder to write to";
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : folio::FuzzSeeds()) {
    const std::filesystem::path path =
        folder / ("seed-" + std::to_string(number++));
    std::ofstream file(path, std::ios::binary);
    file << seed;
    CHECK(file.flush().good()) << path;
  }
  return 0;
}
