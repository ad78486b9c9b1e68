#include "runtime/cli/memory_live.h"

#include <glog/logging.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/cli/visible_text.h"

namespace folio {
namespace {

constexpr timespec kTick = {.tv_sec = 0, .tv_nsec = 100'000'000};

// What xterm and those like it understand: the other screen, without cursor and
// without wrapping of lines that are too long.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";   // From the cursor on.
constexpr std::string_view kClearBelow = "\x1b[J";  // From the cursor on.

// Those that end or stop a process, unless they are ignored, as nohup has it.
sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) {
    struct sigaction action;
    PCHECK(sigaction(signal, nullptr, &action) == 0);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  return signals;
}

TerminalSize SizeOfTerminal() {
  winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 ||
      size.ws_col == 0) {
    return {};  // It does not know.
  }
  return {.rows = size.ws_row, .columns = size.ws_col};
}

}  // namespace

MemoryLive::MemoryLive(const std::string& server) : signals_(EndSignals()) {
  state_.server = WithVisibleControls(server);
  PCHECK(pthread_sigmask(SIG_BLOCK, &signals_, &blocked_before_) == 0);
  thread_ = std::thread([this] { Run(); });
}

MemoryLive::~MemoryLive() {
  ending_ = true;
  thread_.join();
  PCHECK(pthread_sigmask(SIG_SETMASK, &blocked_before_, nullptr) == 0);
}

bool MemoryLive::Show(const v1::BatchReport& report) {
  std::lock_guard lock(mutex_);
  state_.report = report;
  state_.totals.Add(report);
  last_shown_ = absl::Now();
  has_news_ = true;
  return can_write_;
}

void MemoryLive::Run() {
  while (!ending_) {
    const int signal = sigtimedwait(&signals_, nullptr, &kTick);
    if (signal > 0) OnSignal(signal);
    if (TakeNews()) Draw();
  }
  if (TakeNews()) Draw();  // What came since the last tick.
  LeaveScreen();
  PrintLastTable();
}

void MemoryLive::OnSignal(int signal) {
  LeaveScreen();
  if (signal == SIGTSTP) {
    raise(SIGSTOP);
    return;  // Somebody has continued the process.
  }
  PrintLastTable();
  // Ends the process as if nobody had waited for the signal.
  PCHECK(pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr) == 0);
  raise(signal);
}

bool MemoryLive::TakeNews() {
  const TerminalSize size = SizeOfTerminal();
  std::lock_guard lock(mutex_);
  if (!last_shown_.has_value()) return false;
  const absl::Duration age = absl::Now() - *last_shown_;
  if (on_screen_ && !has_news_ && size == size_ &&
      absl::ToInt64Seconds(age) == absl::ToInt64Seconds(state_.age)) {
    return false;
  }
  has_news_ = false;
  size_ = size;
  state_.age = age;
  table_ = LiveTable(state_, size);
  return true;
}

void MemoryLive::Draw() {
  std::string frame;
  if (!on_screen_) frame += kEnter;
  on_screen_ = true;
  frame += kHome;
  for (size_t i = 0; i < table_.size(); ++i) {
    // (A new line after the last row would scroll.)
    absl::StrAppend(&frame, i == 0 ? "" : "\r\n", table_[i],
                    std::string(kClearLine));
  }
  frame += kClearBelow;
  std::cout << frame << std::flush;
  can_write_ = std::cout.good();
}

void MemoryLive::LeaveScreen() {
  if (on_screen_) std::cout << kLeave << std::flush;
  on_screen_ = false;
}

void MemoryLive::PrintLastTable() const {
  for (const std::string& line : table_) std::cout << line << '\n';
  std::cout << std::flush;
}

}  // namespace folio
