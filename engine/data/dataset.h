#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trinity {

/// How a file is read.
struct DataOptions {
  double scale = 0;        ///< factor of real numbers; 0: 1, of images' bytes 1/255
  int64_t train_rows = 0;  ///< so many samples train, the rest is held out; 0: what the files say
};

/// Samples of real numbers with a class each, or a text: a row of numbered symbols.
struct DataSet {
  std::string path;                  ///< where it was read
  bool is_text = false;
  int64_t classes = 0;               ///< the largest class, or symbol, and one
  int64_t train = 0, held_out = 0;   ///< samples, or symbols, of each; training ones come first
  int64_t width = 0;                 ///< numbers of a sample
  std::vector<float> values;         ///< samples one behind the other, or
  std::vector<uint8_t> bytes;        ///< the same, each times `scale`
  float scale = 1;
  std::vector<int32_t> labels;       ///< of samples
  std::vector<int32_t> symbols;      ///< of a text
};

/// Reads a file or folder, by its name:
///
///   .csv, .csv.gz    no header, numbers separated by commas, a line a sample; the last is its
///                    class. All rows train unless `train_rows` says less.
///   .bin             CIFAR-10's binary batches (Krizhevsky 2009): 3,073 bytes a sample, the class,
///                    then 3 x 32 x 32 pixels. Of a folder "data_batch_*.bin" train, in order of
///                    name, and "test_batch.bin" is held out.
///   .safetensors     "inputs" [samples, ...] (F32) and "labels" [samples] (I64)
///   ptb.*.txt        the Penn Treebank's files: words between spaces, a line ends with one more
///                    symbol. Of a folder "ptb.train.txt" trains, "ptb.valid.txt" is held out.
///   others           a text of bytes; the last tenth is held out unless `train_rows` says where.
///
/// Throws FileError that names path, place, what was expected and what came.
DataSet read_dataset(const std::string& path, const DataOptions& options);

}  // namespace trinity
