#include "data/dataset.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "data/gzip.h"
#include "formats/export/safetensors.h"

namespace trinity {
namespace {

constexpr int64_t kImageBytes = 3072;

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw FileError("{}: {}", path, reason);
}

/// True if a number is representable in float32.
bool fits(double value) {
  return std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());
}

/// Lines of numbers; the last of each is a class.
class Table {
 public:
  explicit Table(DataSet& into) : into_(into) {}

  void read(const std::string& text) {
    const char *at = text.data(), *end = at + text.size();
    // UTF-8's byte order mark, written by spreadsheets
    if (text.starts_with("\xEF\xBB\xBF")) at += 3;
    while (at < end) {
      const char* stop = std::find(at, end, '\n');
      ++line_;
      const char* last = stop > at && stop[-1] == '\r' ? stop - 1 : stop;
      if (last > at) read_line(at, last);
      at = stop == end ? end : stop + 1;
    }
    if (into_.labels.empty()) refuse(into_.path, "expected lines of numbers, got none");
  }

 private:
  [[noreturn]] void wrong(size_t field, const std::string& what) const {
    refuse(into_.path, fmt::format("line {}, field {}: {}", line_, field, what));
  }

  double number(const char* at, const char* stop, size_t field) const {
    double value = 0;
    while (at < stop && *at == ' ') ++at;
    while (stop > at && stop[-1] == ' ') --stop;
    const auto [end, error] = std::from_chars(at, stop, value);
    if (error != std::errc() || end != stop || !std::isfinite(value))
      wrong(field, fmt::format("expected a number, got '{}'",
                               printable({at, std::min(stop, at + 40)})));
    return value;
  }

  void read_line(const char* at, const char* end) {
    poll_.step();
    row_.clear();
    while (true) {
      const char* stop = std::find(at, end, ',');
      row_.push_back(number(at, stop, row_.size() + 1));
      if (stop == end) break;
      at = stop + 1;
    }
    const auto width = static_cast<int64_t>(row_.size()) - 1;
    if (width < 1) wrong(1, "expected numbers and a class, separated by commas, got one number");
    if (into_.labels.empty()) into_.width = width;
    if (width != into_.width)
      wrong(row_.size(), fmt::format("expected {} fields, as in the lines before, got {}",
                                     into_.width + 1, width + 1));
    const double label = row_.back();
    if (label < 0 || label != std::floor(label) || label >= 1 << 30)
      wrong(row_.size(), fmt::format("expected a class, a whole number from 0, got {}", label));
    row_.pop_back();
    for (size_t i = 0; i < row_.size(); ++i) {
      const double value = row_[i] * static_cast<double>(into_.scale);
      if (!fits(value)) wrong(i + 1, fmt::format("expected a number of float32, got {}", value));
      into_.values.push_back(static_cast<float>(value));
    }
    into_.labels.push_back(static_cast<int32_t>(label));
  }

  DataSet& into_;
  int64_t line_ = 0;
  std::vector<double> row_;
  StopPoll poll_;
};

void add_images(DataSet& into, const std::string& path) {
  const auto content = read_file(path);
  const auto size = static_cast<int64_t>(content.size());
  if (size == 0 || size % (kImageBytes + 1) != 0)
    refuse(path, fmt::format("byte {}: expected images of {} bytes each, got {} bytes",
                             size - size % (kImageBytes + 1), kImageBytes + 1,
                             size % (kImageBytes + 1)));
  for (int64_t at = 0; at < size; at += kImageBytes + 1) {
    const auto label = static_cast<uint8_t>(content[static_cast<size_t>(at)]);
    if (label > 9)
      refuse(path, fmt::format("byte {}: expected a class from 0 to 9, got {}", at, label));
    into.labels.push_back(label);
    const auto* first = reinterpret_cast<const uint8_t*>(content.data() + at + 1);
    into.bytes.insert(into.bytes.end(), first, first + kImageBytes);
  }
  into.width = kImageBytes;
}

/// Adds words in order of appearance; the end of a line is also a word.
void add_words(DataSet& into, const std::string& path,
               std::unordered_map<std::string, int32_t>& known, bool is_new) {
  const auto content = read_file(path);
  int64_t line = 1;
  const size_t before = into.symbols.size();
  const auto add = [&](const std::string& word) {
    auto found = known.find(word);
    if (found == known.end() && !is_new) found = known.find("<unk>");
    if (found == known.end() && !is_new)
      refuse(path, fmt::format("line {}: word '{}' is not in the training file, which has no <unk>",
                               line, printable(word.substr(0, 40))));
    if (found == known.end())
      found = known.emplace(word, static_cast<int32_t>(known.size())).first;
    into.symbols.push_back(found->second);
  };
  std::string word;
  for (const char letter : content) {
    if (letter != ' ' && letter != '\n' && letter != '\t' && letter != '\r') {
      word += letter;
      continue;
    }
    if (!word.empty()) add(word);
    word.clear();
    if (letter != '\n') continue;
    add("<eos>");
    ++line;
  }
  if (!word.empty()) add(word);
  if (into.symbols.size() == before) refuse(path, "expected words, got none");
}

void read_tensors(DataSet& into) {
  const auto saved = read_arrays(into.path, false);
  const auto *inputs = saved.find("inputs"), *labels = saved.find("labels");
  if (!inputs || !labels) saved.refuse("expected tensors 'inputs' and 'labels'");
  if (inputs->dtype != "F32" || labels->dtype != "I64")
    saved.refuse("expected F32 'inputs' and I64 'labels', got {} and {}", inputs->dtype, labels->dtype);
  const auto rows = static_cast<int64_t>(labels->bytes.size() / sizeof(int64_t));
  const auto count = static_cast<int64_t>(inputs->bytes.size() / sizeof(float));
  if (labels->shape.size() != 1 || inputs->shape.empty() || inputs->shape[0] != rows || rows == 0)
    saved.refuse("expected 'labels' [samples] and 'inputs' [samples, ...] of the same number of samples, got [{}] and "
                 "[{}]", fmt::join(labels->shape, ", "), fmt::join(inputs->shape, ", "));
  into.width = count / rows;
  into.values.resize(static_cast<size_t>(count));
  std::memcpy(into.values.data(), inputs->bytes.data(), inputs->bytes.size());
  for (size_t i = 0; i < into.values.size(); ++i) {
    const double value = static_cast<double>(into.values[i]) * static_cast<double>(into.scale);
    if (!fits(value))
      saved.refuse("'inputs' [{}, {}]: expected a number of float32, got {}", static_cast<int64_t>(i) / into.width,
                   static_cast<int64_t>(i) % into.width, value);
    into.values[i] = static_cast<float>(value);
  }
  for (int64_t i = 0; i < rows; ++i) {
    int64_t label = 0;
    std::memcpy(&label, labels->bytes.data() + i * 8, sizeof label);
    if (label < 0 || label >= 1 << 30)
      saved.refuse("'labels' [{}]: expected a class from 0, got {}", i, label);
    into.labels.push_back(static_cast<int32_t>(label));
  }
}

std::string name_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

void read_folder(DataSet& into, const std::vector<std::string>& names) {
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (has("ptb.train.txt")) {
    into.is_text = true;
    std::unordered_map<std::string, int32_t> known;
    add_words(into, into.path + "/ptb.train.txt", known, true);
    into.train = static_cast<int64_t>(into.symbols.size());
    if (has("ptb.valid.txt")) add_words(into, into.path + "/ptb.valid.txt", known, false);
    return;
  }
  for (const auto& name : names)
    if (name.starts_with("data_batch_") && name.ends_with(".bin"))
      add_images(into, into.path + "/" + name);
  if (into.labels.empty())
    refuse(into.path, "expected a folder with data_batch_1.bin (CIFAR-10) or ptb.train.txt in it");
  into.train = static_cast<int64_t>(into.labels.size());
  if (has("test_batch.bin")) add_images(into, into.path + "/test_batch.bin");
}

void read_one(DataSet& into) {
  const auto name = name_of(into.path);
  if (name.ends_with(".csv") || name.ends_with(".csv.gz")) {
    auto content = read_file(into.path);
    Table(into).read(name.ends_with(".gz") ? decompressed(into.path, content) : content);
  } else if (name.ends_with(".bin")) {
    add_images(into, into.path);
  } else if (name.ends_with(".safetensors")) {
    read_tensors(into);
  } else if (name.starts_with("ptb.") && name.ends_with(".txt")) {
    into.is_text = true;
    std::unordered_map<std::string, int32_t> known;
    add_words(into, into.path, known, true);
  } else {
    into.is_text = true;
    for (const char byte : read_file(into.path))
      into.symbols.push_back(static_cast<uint8_t>(byte));
  }
}

void share_out(DataSet& into, int64_t train_rows) {
  const auto all = static_cast<int64_t>(into.is_text ? into.symbols.size() : into.labels.size());
  if (train_rows > all)
    refuse(into.path, fmt::format("expected at least the {} that 'train_rows' says, got {} {}",
                                  train_rows, all, into.is_text ? "symbols" : "samples"));
  if (train_rows > 0)
    into.train = train_rows;
  else if (into.train == 0)
    into.train = into.is_text ? all - all / 10 : all;
  into.held_out = all - into.train;
  for (const int32_t number : into.is_text ? into.symbols : into.labels)
    into.classes = std::max<int64_t>(into.classes, number + 1);
}

}  // namespace

DataSet read_dataset(const std::string& path, const DataOptions& options) {
  DataSet made;
  made.path = path;
  const auto name = name_of(path);
  const auto names = list_folder(path);
  const bool images = name.ends_with(".bin") || !names.empty();
  made.scale = static_cast<float>(options.scale != 0 ? options.scale : images ? 1.0 / 255 : 1.0);
  if (names.empty() && !std::filesystem::is_directory(path))
    read_one(made);
  else
    read_folder(made, names);
  share_out(made, options.train_rows);
  return made;
}

}  // namespace trinity
