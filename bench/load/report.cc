#include "bench/load/report.h"

#include <glog/logging.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "runtime/base/embed.h"

// FOLIO_PAGE_DIR is the folder of the page's parts.
FOLIO_EMBED(char, folio_page_html, FOLIO_PAGE_DIR "/page.html");
FOLIO_EMBED(char, folio_page_css, FOLIO_PAGE_DIR "/page.css");
FOLIO_EMBED(char, folio_page_format, FOLIO_PAGE_DIR "/format.js");
FOLIO_EMBED(char, folio_page_scale, FOLIO_PAGE_DIR "/scale.js");
FOLIO_EMBED(char, folio_page_layers, FOLIO_PAGE_DIR "/layers.js");
FOLIO_EMBED(char, folio_page_chart, FOLIO_PAGE_DIR "/chart.js");
FOLIO_EMBED(char, folio_page_run_data, FOLIO_PAGE_DIR "/run_data.js");
FOLIO_EMBED(char, folio_page_life_lines, FOLIO_PAGE_DIR "/life_lines.js");
FOLIO_EMBED(char, folio_page_page_map, FOLIO_PAGE_DIR "/page_map.js");
FOLIO_EMBED(char, folio_page_tables, FOLIO_PAGE_DIR "/tables.js");
FOLIO_EMBED(char, folio_page_comparison, FOLIO_PAGE_DIR "/comparison.js");
FOLIO_EMBED(char, folio_page_batches, FOLIO_PAGE_DIR "/batches.js");
FOLIO_EMBED(char, folio_page_details, FOLIO_PAGE_DIR "/details.js");
FOLIO_EMBED(char, folio_page_page, FOLIO_PAGE_DIR "/page.js");

namespace folio {
namespace {

// In the order in which they need one another.
std::string Script() {
  std::string script;
  for (const std::string_view part :
       {std::string_view(folio_page_format_begin, folio_page_format_end),
        std::string_view(folio_page_scale_begin, folio_page_scale_end),
        std::string_view(folio_page_layers_begin, folio_page_layers_end),
        std::string_view(folio_page_chart_begin, folio_page_chart_end),
        std::string_view(folio_page_run_data_begin, folio_page_run_data_end),
        std::string_view(folio_page_life_lines_begin,
                         folio_page_life_lines_end),
        std::string_view(folio_page_page_map_begin, folio_page_page_map_end),
        std::string_view(folio_page_tables_begin, folio_page_tables_end),
        std::string_view(folio_page_comparison_begin,
                         folio_page_comparison_end),
        std::string_view(folio_page_batches_begin, folio_page_batches_end),
        std::string_view(folio_page_details_begin, folio_page_details_end),
        std::string_view(folio_page_page_begin, folio_page_page_end)}) {
    script.append(part).append("\n");
  }
  return script;
}

// JSON as the text of a <script> element: without "<", which could end it, or
// begin a comment in it, and without U+2028 and U+2029, which end lines of
// JavaScript; all of them occur in strings alone, where an escape stands for
// them.
std::string EmbeddedJson(const nlohmann::json& document) {
  const std::string json =
      document.dump(-1, ' ', /*ensure_ascii=*/false,
                    nlohmann::json::error_handler_t::replace);
  return absl::StrReplaceAll(
      json, {{"<", "\\u003c"}, {"\u2028", "\\u2028"}, {"\u2029", "\\u2029"}});
}

// Moves from `page`, up to `mark`, which goes, to the end of `out`.
void TakeUntil(std::string_view mark, std::string_view& page,
               std::string& out) {
  const size_t end = page.find(mark);
  CHECK_NE(end, page.npos) << mark;
  out.append(page.substr(0, end));
  page.remove_prefix(end + mark.size());
}

}  // namespace

std::string RenderReport(const nlohmann::json& document) {
  std::string_view page(folio_page_html_begin, folio_page_html_end);
  std::string out;
  TakeUntil("<!--folio:style-->", page, out);
  out.append(folio_page_css_begin, folio_page_css_end);
  TakeUntil("<!--folio:document-->", page, out);
  out.append(EmbeddedJson(document));
  TakeUntil("<!--folio:script-->", page, out);
  out.append(Script());
  return out.append(page);
}

}  // namespace folio
