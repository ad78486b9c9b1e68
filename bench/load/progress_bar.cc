#include "bench/load/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace folio {
namespace {

constexpr int kBarWidth = 24;

int TerminalColumns() {
  winsize size = {};
  const bool is_known =
      ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

// Back to the line's start, and nothing after it.
constexpr char kEraseLine[] = "\r\x1b[K";

}  // namespace

std::string ProgressLine(const RunProgress& progress, int columns) {
  const double share = progress.total == 0
                           ? 1
                           : static_cast<double>(progress.ended) /
                                 static_cast<double>(progress.total);
  const int filled = static_cast<int>(share * kBarWidth);
  const double seconds = absl::ToDoubleSeconds(progress.elapsed);
  std::string line = absl::StrFormat(
      "[%s%s] %d/%d done, %d on their way, %.0f s, %.0f tokens/s",
      std::string(filled, '#'), std::string(kBarWidth - filled, '.'),
      progress.ended, progress.total, progress.live, seconds,
      seconds > 0 ? static_cast<double>(progress.tokens) / seconds : 0.0);
  if (progress.not_served > 0) {
    absl::StrAppend(&line, ", ", progress.not_served, " not served");
  }
  line.resize(
      std::min(line.size(), static_cast<size_t>(std::max(columns - 1, 0))));
  return line;
}

ProgressBar::ProgressBar() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (is_terminal_) std::cerr << kEraseLine << std::flush;
}

void ProgressBar::Show(const RunProgress& progress) const {
  if (!is_terminal_) return;
  std::cerr << kEraseLine << ProgressLine(progress, TerminalColumns())
            << std::flush;
}

}  // namespace folio
