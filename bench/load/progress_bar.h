// How far a run is, for whoever waits.

#ifndef BENCH_LOAD_PROGRESS_BAR_H_
#define BENCH_LOAD_PROGRESS_BAR_H_

#include <string>

#include "bench/load/run.h"

namespace folio {

// One line of less than `columns` characters: a bar, and numbers as far as
// there is room.
std::string ProgressLine(const RunProgress& progress, int columns);

// On stderr, if that is a terminal: the line is drawn over the one before, and
// goes when the bar does.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();

  void Show(const RunProgress& progress) const;

 private:
  const bool is_terminal_;
};

}  // namespace folio

#endif  // BENCH_LOAD_PROGRESS_BAR_H_
