#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trinity {

/// How to read a file.
struct DataOptions {
  double scale = 0;        ///< factor of real numbers; 0: 1, and 1/255 for image bytes
  /// number of training samples, the rest is held out; 0: as the files say
  int64_t train_rows = 0;
};

/// Samples of real numbers with one class each, or a text as a sequence of symbol numbers.
struct DataSet {
  std::string path;                  ///< where it was read from
  bool is_text = false;
  int64_t classes = 0;               ///< largest class or symbol, plus one
  int64_t train = 0, held_out = 0;   ///< number of samples, or symbols; training ones come first
  int64_t width = 0;                 ///< numbers per sample
  std::vector<float> values;         ///< samples, concatenated; or
  std::vector<uint8_t> bytes;        ///< the same as bytes, each to be multiplied by `scale`
  float scale = 1;
  std::vector<int32_t> labels;       ///< per sample
  std::vector<int32_t> symbols;      ///< of a text
};

/// Reads a file or folder; the name selects the format:
///
///   .csv, .csv.gz    no header, numbers separated by commas, one sample per line; the last number
///                    is its class. All rows train unless `train_rows` is smaller.
///   .bin             CIFAR-10's binary batches (Krizhevsky 2009): 3,073 bytes per sample, the
///                    class, then 3 x 32 x 32 pixels. In a folder "data_batch_*.bin" train, in
///                    order of name, and "test_batch.bin" is held out.
///   .safetensors     "inputs" [samples, ...] (F32) and "labels" [samples] (I64)
///   ptb.*.txt        the Penn Treebank's files: words separated by spaces; every line ends with
///                    one additional symbol. In a folder "ptb.train.txt" trains, "ptb.valid.txt" is
///                    held out.
///   others           a text of bytes; the last tenth is held out unless `train_rows` is given.
///
/// Throws FileError with path, position, expected and actual value.
DataSet read_dataset(const std::string& path, const DataOptions& options);

}  // namespace trinity
