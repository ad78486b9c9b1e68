// Metrics as Prometheus sees them.

#ifndef TESTS_RUNTIME_SERVER_SCRAPE_H_
#define TESTS_RUNTIME_SERVER_SCRAPE_H_

#include <map>
#include <string>
#include <string_view>

namespace folio {

struct HttpResponse {
  int status = 0;  // 0: no connection.
  std::string headers;
  std::string body;
};

// GET of `path` from `address`, an IPv4 ADDR:PORT, over a socket of its own.
HttpResponse HttpGet(const std::string& address, const std::string& path);

// A page in the text format
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
struct Scrape {
  std::map<std::string, std::string> types;  // Of families.
  std::map<std::string, std::string> helps;
  // By name and labels, as in `a:b{k="v",le="1"}`, with the labels in the order
  // of their names.
  std::map<std::string, double> samples;

  // The sample of model "scripted" with these further labels, such as
  // state="free". Fails the test when there is none.
  double Value(std::string_view name, std::string_view labels = "") const;
  double Sum(const std::string& name, std::string_view labels = "") const {
    return Value(name + "_sum", labels);
  }
  double Count(const std::string& name, std::string_view labels = "") const {
    return Value(name + "_count", labels);
  }
  // Observations of a histogram up to `bound`.
  double UpTo(const std::string& name, const std::string& bound) const {
    return Value(name + "_bucket", "le=\"" + bound + "\"");
  }
};

// Fails the test where `text` breaks a rule of the format: syntax, names, one
// HELP and TYPE before each family, no sample twice, buckets that grow up to
// +Inf, which is the count.
Scrape ParseScrape(std::string_view text);

// What is served at `address` now.
Scrape ScrapeOf(const std::string& address);

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_SCRAPE_H_
