// Reads a document of load tests and writes its page: render_report < JSON.

#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/load/report.h"

int main() {
  std::cout << folio::RenderReport(nlohmann::json::parse(std::cin));
}
