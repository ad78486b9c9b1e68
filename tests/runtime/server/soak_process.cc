#include "tests/runtime/server/soak_process.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace folio {
namespace {

using std::filesystem::directory_iterator;

// The kernel cuts names of threads at 15 characters.
bool IsPoolThread(const std::filesystem::path& task) {
  std::string name;
  std::getline(std::ifstream(task / "comm"), name);
  return name == "grpc_global_tim" || name == "default-executo";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const ProcessUsage& usage) {
  return out << usage.resident_bytes / 1024 << " KiB resident, "
             << usage.heap_bytes / 1024 << " KiB of heap, " << usage.num_threads
             << " + " << usage.num_pool_threads << " threads, "
             << usage.num_descriptors << " descriptors";
}

SoakProcess::SoakProcess(int max_waiting_requests,
                         const std::string& request_log) {
  int to_child[2];
  int from_child[2];
  CHECK_EQ(pipe2(to_child, O_CLOEXEC), 0);
  CHECK_EQ(pipe2(from_child, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  std::string program = FOLIO_SOAK_SERVER;
  std::string waiting = absl::StrCat(max_waiting_requests);
  std::string log = request_log;
  char* const argv[] = {program.data(), waiting.data(), log.data(), nullptr};
  CHECK_EQ(
      posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv, environ), 0)
      << program;
  posix_spawn_file_actions_destroy(&actions);
  close(to_child[0]);
  close(from_child[1]);
  commands_ = fdopen(to_child[1], "w");
  answers_ = fdopen(from_child[0], "r");
  std::istringstream addresses(ReadLine());
  addresses >> address_ >> admin_address_ >> metrics_address_;
  CHECK(!metrics_address_.empty()) << "the server did not start";
}

SoakProcess::~SoakProcess() {
  if (pid_ != -1) Stop();
  fclose(answers_);
}

std::string SoakProcess::ReadLine() {
  std::string line;
  for (int c; (c = std::getc(answers_)) != EOF && c != '\n';) {
    line.push_back(static_cast<char>(c));
  }
  return line;
}

ProcessUsage SoakProcess::Usage() {
  std::fputs("\n", commands_);
  std::fflush(commands_);
  ProcessUsage usage;
  CHECK(absl::SimpleAtoi(ReadLine(), &usage.heap_bytes));
  const std::string folder = absl::StrCat("/proc/", pid_);
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  std::ifstream(folder + "/statm") >> total_pages >> resident_pages;
  usage.resident_bytes = resident_pages * sysconf(_SC_PAGESIZE);
  for (const auto& task : directory_iterator(folder + "/task")) {
    ++(IsPoolThread(task) ? usage.num_pool_threads : usage.num_threads);
  }
  usage.num_descriptors =
      std::distance(directory_iterator(folder + "/fd"), directory_iterator());
  return usage;
}

int SoakProcess::Stop() {
  fclose(commands_);
  int status = 0;
  CHECK_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace folio
