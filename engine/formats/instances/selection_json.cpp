#include "formats/instances/selection_json.h"

#include <rapidjson/reader.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/stop.h"
#include "formats/json/json_reader.h"
#include "formats/json/json_stream.h"

namespace trinity {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxNumbers = size_t{1} << 27;

/// A list of lists of numbers, flat.
struct Table {
  const char* path;
  const char* row;  // meaning of a row
  bool seen = false;
  std::vector<double> values = {};
  std::vector<int64_t> offset = {0};

  size_t rows() const { return offset.size() - 1; }
  std::span<const double> at(size_t i) const {
    return std::span(values).subspan(static_cast<size_t>(offset[i]),
                                     static_cast<size_t>(offset[i + 1] - offset[i]));
  }
};

/// Data that has been read but not checked for consistency.
struct Tables {
  std::string name;
  bool has_name = false, has_problem = false, has_nodes = false, has_edges = false;
  bool has_limit = false;
  std::optional<double> limit;
  Table intervals{"problem.nodes.intervals", "node"}, costs{"problem.nodes.costs", "node"};
  Table usages{"problem.nodes.usages", "node"};
  Table ends{"problem.edges.nodes", "edge"}, edge_costs{"problem.edges.costs", "edge"};
  std::vector<std::string> unknown;  // paths of fields that were skipped

  size_t numbers() const {
    return intervals.values.size() + costs.values.size() + usages.values.size() +
           ends.values.size() + edge_costs.values.size();
  }
};

[[noreturn]] void fail(const std::string& source, const std::string& path,
                       const std::string& what) {
  throw FileError("{}: {}{}{}", source, path, path.empty() ? "" : ": ", what);
}

/// Fills tables from the events of RapidJSON's reader. Ends parsing by throwing.
class Handler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Handler> {
 public:
  Handler(const std::string& source, const JsonStream& stream, Tables& tables)
      : source_(source), stream_(stream), tables_(tables) {}

  bool StartObject() { return open(true); }
  bool StartArray() { return open(false); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool EndArray(rapidjson::SizeType) { return close(); }

  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (size > JsonStream::kLongestString) return false;
    key_.assign(text, size);
    const Where where = open_.back();
    if (where == Where::root && key_ == "problem") mark(tables_.has_problem);
    if (where == Where::problem && key_ == "name") mark(tables_.has_name);
    if (where == Where::problem && key_ == "usage_limit") mark(tables_.has_limit);
    if (where == Where::problem && key_ == "nodes") mark(tables_.has_nodes);
    if (where == Where::problem && key_ == "edges") mark(tables_.has_edges);
    if (where == Where::nodes || where == Where::edges)
      if (auto* table = table_of(key_)) mark(table->seen);
    if (where != Where::skipped && !expected() && tables_.unknown.size() < 100 && key_.size() < 100)
      tables_.unknown.push_back(path());
    return true;
  }

  bool String(const char* text, rapidjson::SizeType size, bool) {
    if (size > JsonStream::kLongestString) return false;
    if (!open_.empty() && open_.back() == Where::problem && key_ == "name")
      tables_.name.assign(text, size);
    else
      refuse(in_quotes({text, size}));
    return true;
  }

  bool RawNumber(const char*, rapidjson::SizeType, bool) {
    const auto value = stream_.number();
    if (!value) [[unlikely]] refuse_number();
    return number(*value);
  }
  bool Bool(bool value) { return refuse(value ? "true" : "false"); }
  bool Null() { return is_limit() || refuse("null"); }

 private:
  enum class Where { skipped, root, problem, nodes, edges, table, row };

  bool open(bool object) {
    const char* wanted = expected();
    if (wanted && std::string_view(wanted) != (object ? "an object" : "a list"))
      refuse(object ? "an object" : "a list");
    if (open_.size() >= kMaxDepth)
      fail(source_, path(), fmt::format("nested more than {} levels deep", kMaxDepth));
    const Where where = inside();
    if (where == Where::table) table_ = table_of(key_);
    open_.push_back(where);
    return true;
  }

  bool close() {
    if (open_.back() == Where::row)
      table_->offset.push_back(static_cast<int64_t>(table_->values.size()));
    open_.pop_back();
    return true;
  }

  bool number(double value) {
    if (!open_.empty() && open_.back() == Where::row)
      table_->values.push_back(value);
    else if (is_limit())
      tables_.limit = value;
    else
      refuse("a number");
    return true;
  }
  bool is_limit() const {
    return !open_.empty() && open_.back() == Where::problem && key_ == "usage_limit";
  }
  /// Handles a value that is not used: throws if another type is required here.
  bool refuse(const std::string& got) {
    const char* wanted = expected();
    if (wanted) fail(source_, path(), fmt::format("expected {}, got {}", wanted, got));
    return true;
  }
  [[noreturn, gnu::noinline]] void refuse_number() const {
    fail(source_, path(),
         fmt::format("the number is too large, or longer than {} characters",
                     JsonStream::kLongestNumber));
  }

  /// The type required here; null: any.
  const char* expected() const {
    if (open_.empty()) return "an object";
    switch (open_.back()) {
      case Where::root:
        return key_ == "problem" ? "an object" : nullptr;
      case Where::problem:
        if (key_ == "nodes" || key_ == "edges") return "an object";
        if (key_ == "name") return "a string";
        return key_ == "usage_limit" ? "a number" : nullptr;
      case Where::nodes:
      case Where::edges:
        return table_of(key_) ? "a list" : nullptr;
      case Where::table:
        return "a list";
      case Where::row:
        return "a number";
      case Where::skipped:
        break;
    }
    return nullptr;
  }

  /// The content of a container that opens here.
  Where inside() const {
    if (open_.empty()) return Where::root;
    switch (open_.back()) {
      case Where::root:
        return key_ == "problem" ? Where::problem : Where::skipped;
      case Where::problem:
        return key_ == "nodes" ? Where::nodes : key_ == "edges" ? Where::edges : Where::skipped;
      case Where::nodes:
      case Where::edges:
        return table_of(key_) ? Where::table : Where::skipped;
      case Where::table:
        return Where::row;
      default:
        return Where::skipped;
    }
  }

  Table* table_of(std::string_view key) const {
    const bool nodes = open_.back() == Where::nodes;
    if (nodes && key == "intervals") return &tables_.intervals;
    if (nodes && key == "costs") return &tables_.costs;
    if (nodes && key == "usages") return &tables_.usages;
    if (!nodes && key == "nodes") return &tables_.ends;
    if (!nodes && key == "costs") return &tables_.edge_costs;
    return nullptr;
  }

  void mark(bool& seen) const {
    if (seen) fail(source_, path(), "this field is repeated in its object");
    seen = true;
  }

  std::string path() const {
    if (open_.empty()) return "";
    std::string word = key_;
    if (word.size() > 60) word.replace(57, word.npos, "...");
    switch (open_.back()) {
      case Where::root:
        return word;
      case Where::problem:
        return "problem." + word;
      case Where::nodes:
        return "problem.nodes." + word;
      case Where::edges:
        return "problem.edges." + word;
      case Where::table:
        return fmt::format("{}[{}]", table_->path, table_->rows());
      case Where::row:
        return fmt::format("{}[{}][{}]", table_->path, table_->rows(),
                           table_->values.size() - static_cast<size_t>(table_->offset.back()));
      case Where::skipped:
        break;
    }
    return "";
  }

  const std::string& source_;
  const JsonStream& stream_;
  Tables& tables_;
  std::vector<Where> open_;
  Table* table_ = nullptr;  // being read
  std::string key_;
};

const char* reason(rapidjson::ParseErrorCode code) {
  switch (code) {
    case rapidjson::kParseErrorDocumentEmpty:
      return "the text ends early";
    case rapidjson::kParseErrorDocumentRootNotSingular:
      return "expected the end of the text";
    case rapidjson::kParseErrorValueInvalid:
      return "expected a value";
    case rapidjson::kParseErrorObjectMissName:
      return "expected a field's name in quotes";
    case rapidjson::kParseErrorObjectMissColon:
      return "expected ':'";
    case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
      return "expected ',' or '}'";
    case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
      return "expected ',' or ']'";
    case rapidjson::kParseErrorNumberTooBig:
      return "the number is too large";
    case rapidjson::kParseErrorNumberMissFraction:
    case rapidjson::kParseErrorNumberMissExponent:
      return "not a number";
    case rapidjson::kParseErrorTermination:
      return "the string is too long";
    default:
      return "not a string: an escape, a control character or bytes that are not UTF-8";
  }
}

void parse(JsonStream& stream, const std::string& source, Handler& handler) {
  constexpr unsigned kFlags = rapidjson::kParseInsituFlag |
                              rapidjson::kParseNumbersAsStringsFlag |
                              rapidjson::kParseValidateEncodingFlag;
  rapidjson::Reader reader;
  const auto result = reader.Parse<kFlags>(stream, handler);
  if (!result.IsError() && stream.ended()) return;
  const char* what = "expected the end of the text";  // if a zero byte follows
  if (result.IsError()) what = stream.ended() ? "the text ends early" : reason(result.Code());
  throw FileError("{}:{}: not valid JSON ({})", source, stream.position(), what);
}

/// Puts tables together into a problem.
class Assembly {
 public:
  Assembly(Tables& tables, const std::string& source) : tables_(tables), source_(source) {}

  SelectionProblem run() {
    require(tables_.has_problem, "problem");
    require(tables_.has_nodes, "problem.nodes");
    require(tables_.costs.seen, "problem.nodes.costs");
    if (tables_.intervals.seen) require(tables_.usages.seen, "problem.nodes.usages");
    if (tables_.usages.seen) require(tables_.intervals.seen, "problem.nodes.intervals");
    if (!tables_.usages.seen) refuse_near("problem.nodes.usages");
    if (!tables_.has_limit) refuse_near("problem.usage_limit");
    require(tables_.has_edges, "problem.edges");
    require(tables_.ends.seen, "problem.edges.nodes");
    require(tables_.edge_costs.seen, "problem.edges.costs");
    nodes();
    edges();
    problem_.name = std::move(tables_.name);
    if (tables_.limit) problem_.usage_limit = whole(*tables_.limit, "problem.usage_limit");
    try {
      problem_.check();
    } catch (const ArgumentError& error) {
      throw FileError("{}: problem.{}", source_, error.what());
    }
    return std::move(problem_);
  }

 private:
  static std::string_view last_word(std::string_view path) {
    return path.substr(path.rfind('.') + 1);
  }
  /// Throws for a skipped field whose name is similar to a missing one.
  void refuse_near(std::string_view path) const {
    const auto dot = path.rfind('.');
    const auto object = path.substr(0, dot == std::string_view::npos ? 0 : dot);
    for (const auto& other : tables_.unknown) {
      const auto other_dot = other.rfind('.');
      if (std::string_view(other).substr(0, other_dot == std::string::npos ? 0 : other_dot) !=
          object)
        continue;
      const auto hint = suggestion(last_word(other), {std::string(last_word(path))});
      if (!hint.empty()) fail(source_, other, "unknown field" + hint);
    }
  }
  void require(bool seen, std::string_view path) const {
    if (seen) return;
    refuse_near(path);
    fail(source_, "", fmt::format("field '{}' is missing", path));
  }

  int64_t whole(double value, const std::string& path) const {
    if (!(std::abs(value) <= 0x1p53) || std::trunc(value) != value || value < 0)
      fail(source_, path, fmt::format("expected a whole number from 0 to 2^53, got {}", value));
    return static_cast<int64_t>(value);
  }
  int64_t whole(const Table& table, size_t row, size_t i) const {
    return whole(table.at(row)[i], fmt::format("{}[{}][{}]", table.path, row, i));
  }

  void same_rows(const Table& table, const Table& as) const {
    if (table.rows() != as.rows())
      fail(source_, table.path,
           fmt::format("expected {} lists (one for each {}, as in {}), got {}", as.rows(), as.row,
                       as.path, table.rows()));
  }
  void check_pair(const Table& table, size_t row, const char* what) const {
    if (table.at(row).size() != 2)
      fail(source_, fmt::format("{}[{}]", table.path, row),
           fmt::format("expected [{}], got {} numbers", what, table.at(row).size()));
  }

  void nodes() {
    const auto& costs = tables_.costs;
    const bool used = tables_.usages.seen;
    if (used) same_rows(tables_.usages, costs);
    if (used) same_rows(tables_.intervals, costs);
    problem_.live.resize(costs.rows());
    for (size_t v = 0; used && v < costs.rows(); ++v) {
      if (tables_.usages.at(v).size() != costs.at(v).size())
        fail(source_, fmt::format("{}[{}]", tables_.usages.path, v),
             fmt::format("expected {} entries (one per strategy, as in {}), got {}",
                         costs.at(v).size(), costs.path, tables_.usages.at(v).size()));
      check_pair(tables_.intervals, v, "start, end");
      problem_.live[v] = {whole(tables_.intervals, v, 0), whole(tables_.intervals, v, 1)};
      for (size_t i = 0; i < costs.at(v).size(); ++i)
        problem_.usages.push_back(whole(tables_.usages, v, i));
    }
    if (!used) problem_.usages.assign(costs.values.size(), 0);
    problem_.node_costs = std::move(tables_.costs.values);
    problem_.node_offset = std::move(tables_.costs.offset);
  }

  void edges() {
    const auto& ends = tables_.ends;
    same_rows(tables_.edge_costs, ends);
    problem_.edges.reserve(ends.rows());
    for (size_t e = 0; e < ends.rows(); ++e) {
      check_pair(ends, e, "node, node");
      const int64_t from = whole(ends, e, 0), to = whole(ends, e, 1);
      if (std::max(from, to) >= problem_.nodes())
        fail(source_, fmt::format("{}[{}]", ends.path, e),
             fmt::format("node {} does not exist (there are {}, counted from 0)",
                         std::max(from, to), problem_.nodes()));
      problem_.edges.push_back({static_cast<int32_t>(from), static_cast<int32_t>(to)});
    }
    problem_.edge_costs = std::move(tables_.edge_costs.values);
    problem_.edge_offset = std::move(tables_.edge_costs.offset);
  }

  Tables& tables_;
  const std::string& source_;
  SelectionProblem problem_;
};

/// A file, decompressed if it is gzip.
class CompressedFile {
 public:
  CompressedFile(const std::string& path, const ReadProgress& progress)
      : path_(path), progress_(progress) {
    auto file = open_to_read(path);
    struct stat about = {};
    if (fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode))  // for others progress stays 0
      size_ = static_cast<uintmax_t>(about.st_size);
    if (S_ISREG(about.st_mode) && size_ >= sizeof end_ &&
        pread(file.get(), end_, sizeof end_, about.st_size - 4) != sizeof end_)
      size_ = 0;
    errno = 0;
    file_.reset(gzdopen(file.get(), "rb"));
    if (!file_) fail(path, "", fmt::format("cannot read: {}", std::strerror(errno)));
    file.release();
    gzbuffer(file_.get(), 1 << 16);
  }


  /// Estimated length of the text: for gzip the number at the end of the file, which is untrusted
  /// and limited by gzip's maximum ratio of about 1000.
  size_t text_bytes() const {
    uintmax_t bytes = size_;
    if (size_ >= 4 && !gzdirect(file_.get())) {
      bytes = end_[0] | end_[1] << 8 | end_[2] << 16 | uintmax_t{end_[3]} << 24;
      bytes = std::min(bytes, 1000 * size_);
    }
    return static_cast<size_t>(std::min<uintmax_t>(bytes, kMaxFileBytes));
  }

  size_t read(char* buffer, size_t size) {
    poll_stop();
    const int got = gzread(file_.get(), buffer, static_cast<unsigned>(size));
    if (got <= 0) check_end();
    total_ += static_cast<size_t>(std::max(got, 0));
    if (total_ > kMaxFileBytes)
      fail(path_, "", fmt::format("more than {} bytes of JSON are not supported", kMaxFileBytes));
    if (progress_ && size_ > 0)
      progress_(static_cast<double>(gzoffset(file_.get())) / static_cast<double>(size_));
    return static_cast<size_t>(std::max(got, 0));
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose_r(file); }
  };

  /// Throws if the file does not end properly here.
  void check_end() {
    poll_stop();
    int code = Z_OK;
    std::string text = gzerror(file_.get(), &code);
    text.erase(0, text.find(": ") == std::string::npos ? 0 : text.find(": ") + 2);
    if (code == Z_ERRNO) fail(path_, "", fmt::format("cannot read: {}", std::strerror(errno)));
    if (code != Z_OK && code != Z_STREAM_END)
      fail(path_, "",
           fmt::format("cannot decompress: {}", code == Z_BUF_ERROR ? "it ends early" : text));
  }

  const std::string& path_;
  const ReadProgress& progress_;
  uintmax_t size_ = 0;  // of the file, in bytes
  unsigned char end_[4] = {};  // of the file
  size_t total_ = 0;    // bytes of JSON read
  std::unique_ptr<gzFile_s, Close> file_;
};

/// text_bytes: estimated length of the text. Memory for most numbers is reserved at once, because a
/// growing list would touch three times the memory.
SelectionProblem scan_selection(const JsonSource& read, const std::string& source,
                                size_t text_bytes) {
  constexpr size_t kBytesPerNumber = 8;
  Tables tables;
  tables.edge_costs.values.reserve(text_bytes / kBytesPerNumber);
  const JsonSource read_on = [&](char* buffer, size_t size) {
    if (tables.numbers() > kMaxNumbers)
      fail(source, "", fmt::format("more than {} numbers are not supported", kMaxNumbers));
    return read(buffer, size);
  };
  JsonStream stream(read_on);
  Handler handler(source, stream, tables);
  parse(stream, source, handler);
  return Assembly(tables, source).run();
}

}  // namespace

SelectionProblem parse_selection(std::string_view text, const std::string& source) {
  const auto read = [&text](char* buffer, size_t size) {
    const size_t count = std::min(size, text.size());
    std::copy_n(text.data(), count, buffer);
    text.remove_prefix(count);
    return count;
  };
  return scan_selection(read, source, text.size());
}

SelectionProblem read_selection(const std::string& path, const ReadProgress& progress) {
  CompressedFile file(path, progress);
  return scan_selection([&file](char* buffer, size_t size) { return file.read(buffer, size); },
                        path, file.text_bytes());
}

}  // namespace trinity
