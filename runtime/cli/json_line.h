// The output of --json: one object a line.

#ifndef RUNTIME_CLI_JSON_LINE_H_
#define RUNTIME_CLI_JSON_LINE_H_

#include <iostream>
#include <nlohmann/json.hpp>

namespace folio {

// Keeps the order in which members were added, so that lines are easy to read.
using Json = nlohmann::ordered_json;

// Writes `object` to stdout at once. Floats have to go into it as doubles,
// which is exact; parsing the line gives the same floats again.
inline void PrintJsonLine(const Json& object) {
  std::cout << object.dump() << std::endl;
}

}  // namespace folio

#endif  // RUNTIME_CLI_JSON_LINE_H_
