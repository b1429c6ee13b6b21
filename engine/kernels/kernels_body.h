// The kernels themselves, for vectors of kLanes numbers. Included by kernels_avx2.cpp and
// kernels_plain.cpp, each inside its own anonymous namespace; no function of the standard library
// may be called here: its inline functions would be compiled for one CPU and linked for all.

typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef float Loose __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef int Whole __attribute__((vector_size(4 * kLanes)));

constexpr int64_t kPanel = 2 * kLanes;
constexpr int64_t kDepth = 512;  // a panel of this many rows stays in the first-level cache

inline Vector load(const float* p) { return *reinterpret_cast<const Loose*>(p); }
inline void store(float* p, Vector x) { *reinterpret_cast<Loose*>(p) = x; }
inline Vector all(float x) { return x - Vector{}; }
inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

inline float sum_of(Vector x) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += x[i];
  return sum;
}

/// The first `count` numbers, zeros after them.
inline Vector load_some(const float* p, int64_t count) {
  Vector x = {};
  for (int64_t i = 0; i < count; ++i) x[i] = p[i];
  return x;
}
inline void store_some(float* p, Vector x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) p[i] = x[i];
}

/// Calls body(offset, load, store) for vectors of a row, the last perhaps not full.
template <class Body>
inline void each(int64_t count, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, int64_t{kLanes});
  if (i < count) body(i, count - i);
}
inline Vector take(const float* p, int64_t count) {
  return count == kLanes ? load(p) : load_some(p, count);
}
inline void put(float* p, Vector x, int64_t count) {
  if (count == kLanes)
    store(p, x);
  else
    store_some(p, x, count);
}

/// Rational approximation of degree 13 over 6, as in Eigen's ptanh; within 4e-7 of tanh.
inline Vector tanh_of(Vector x) {
  const Vector bound = all(7.90531110763549805f);
  x = x > bound ? bound : x;
  x = x < -bound ? -bound : x;
  const Vector s = x * x;
  Vector p = s * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = p * s + -8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  Vector q = s * 1.19825839466702e-06f + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return x * p / q;
}

inline Vector sigmoid_of(Vector x) { return tanh_of(x * 0.5f) * 0.5f + 0.5f; }

/// As in Cephes' expf: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2].
inline Vector exp_of(Vector x) {
  x = x < all(-87.0f) ? all(-87.0f) : x;
  x = x > all(88.0f) ? all(88.0f) : x;
  const Vector shift = all(12582912.0f);  // 1.5 * 2^23: adding it rounds to whole numbers
  const Vector n = (x * 1.44269504088896341f + shift) - shift;
  const Vector r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Vector p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Whole bits = (__builtin_convertvector(n, Whole) + 127) << 23;
  return p * (Vector)bits;
}

void pack(int64_t depth, int64_t columns, const float* b, int64_t row, int64_t column, float* out) {
  for (int64_t n = 0; n < columns; n += kPanel) {
    const int64_t width = least(kPanel, columns - n);
    for (int64_t k = 0; k < depth; ++k, out += kPanel) {
      const float* from = b + k * row + n * column;
      for (int64_t i = 0; i < width; ++i) out[i] = from[i * column];
      for (int64_t i = width; i < kPanel; ++i) out[i] = 0;
    }
  }
}

template <int kRows>
inline void block(const float* a, int64_t row, int64_t step, const float* b, int64_t depth,
                  float* c, int64_t stride) {
  Vector sum[kRows][2];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = load(c + r * stride);
    sum[r][1] = load(c + r * stride + kLanes);
  }
  for (int64_t k = 0; k < depth; ++k, b += kPanel, a += step) {
    const Vector left = load(b), right = load(b + kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const float x = a[r * row];
      sum[r][0] += x * left;
      sum[r][1] += x * right;
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    store(c + r * stride, sum[r][0]);
    store(c + r * stride + kLanes, sum[r][1]);
  }
}

inline void rows_of(int64_t rows, const float* a, int64_t row, int64_t step, const float* b,
                    int64_t depth, float* c, int64_t stride) {
  switch (rows) {
    case 1:
      return block<1>(a, row, step, b, depth, c, stride);
    case 2:
      return block<2>(a, row, step, b, depth, c, stride);
    case 3:
      return block<3>(a, row, step, b, depth, c, stride);
    case 4:
      return block<4>(a, row, step, b, depth, c, stride);
    case 5:
      return block<5>(a, row, step, b, depth, c, stride);
    default:
      return block<6>(a, row, step, b, depth, c, stride);
  }
}

/// A block whose panel reaches beyond C's last column: by way of a copy.
inline void narrow_rows(int64_t rows, int64_t width, const float* a, int64_t row, int64_t step,
                        const float* b, int64_t depth, float* c, int64_t stride) {
  float copy[6 * kPanel] = {};
  rows_of(rows, a, row, step, b, depth, copy, kPanel);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i) c[r * stride + i] += copy[r * kPanel + i];
}

void multiply(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t row,
              int64_t step, const float* packed, float* c, int64_t stride) {
  const int64_t blocks = (rows + 5) / 6;
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t deep = least(kDepth, depth - k);
    for (int64_t n = 0; n < columns; n += kPanel) {
      const float* b = packed + n * depth + k * kPanel;
      const int64_t width = least(kPanel, columns - n);
      for (int64_t i = 0; i < blocks; ++i) {
        const int64_t first = rows * i / blocks, count = rows * (i + 1) / blocks - first;
        const float* from = a + first * row + k * step;
        float* to = c + first * stride + n;
        if (width == kPanel)
          rows_of(count, from, row, step, b, deep, to, stride);
        else
          narrow_rows(count, width, from, row, step, b, deep, to, stride);
      }
    }
  }
}

template <int kRows>
inline void sparse_block(const int* column, const float* value, int64_t count, const float* b,
                         float* c, int64_t stride, int64_t width) {
  Vector sum[kRows][2] = {};
  for (int64_t k = 0; k < count; ++k, value += 6) {
    const float* from = b + column[k] * kPanel;
    const Vector left = load(from), right = load(from + kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      sum[r][0] += value[r] * left;
      sum[r][1] += value[r] * right;
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    float* to = c + r * stride;
    for (int half = 0; half < 2; ++half) {
      const int64_t n = least(kLanes, width - half * kLanes);
      if (n <= 0) continue;
      put(to + half * kLanes, take(to + half * kLanes, n) + sum[r][half], n);
    }
  }
}

void multiply_sparse(int64_t columns, const SparseView& a, const float* packed, float* c,
                     int64_t stride) {
  const int64_t blocks = (a.rows + 5) / 6;
  for (int64_t n = 0; n < columns; n += kPanel) {
    const float* b = packed + n * a.depth;
    const int64_t width = least(kPanel, columns - n);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t first = a.rows * i / blocks, rows = a.rows * (i + 1) / blocks - first;
      const int64_t begin = i > 0 ? a.end[i - 1] : 0, count = a.end[i] - begin;
      const int* column = a.column + begin;
      const float* value = a.value + begin * 6;
      float* to = c + first * stride + n;
      if (rows == 6)
        sparse_block<6>(column, value, count, b, to, stride, width);
      else if (rows == 5)
        sparse_block<5>(column, value, count, b, to, stride, width);
      else
        for (int64_t r = 0; r < rows; ++r)
          sparse_block<1>(column, value + r, count, b, to + r * stride, stride, width);
    }
  }
}

void cell_forward(int64_t rows, int64_t width, float* gates, const float* cell_before, float* cell,
                  float* tanh_cell, float* hidden, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) {
    float *gi = gates + r * 4 * width, *gf = gi + width, *gc = gf + width, *go = gc + width;
    const float* before = cell_before + r * width;
    each(width, [&](int64_t h, int64_t n) {
      const Vector i = sigmoid_of(take(gi + h, n)), f = sigmoid_of(take(gf + h, n));
      const Vector j = tanh_of(take(gc + h, n)), o = sigmoid_of(take(go + h, n));
      const Vector c = f * take(before + h, n) + i * j, squashed = tanh_of(c);
      put(gi + h, i, n);
      put(gf + h, f, n);
      put(gc + h, j, n);
      put(go + h, o, n);
      put(cell + r * width + h, c, n);
      put(tanh_cell + r * width + h, squashed, n);
      put(hidden + r * stride + h, o * squashed, n);
    });
  }
}

void cell_backward(int64_t rows, int64_t width, const float* gates, const float* cell_before,
                   const float* tanh_cell, const float* d_hidden, float* d_cell, float* d_gates) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *gi = gates + r * 4 * width, *gf = gi + width, *gc = gf + width, *go = gc + width;
    float* d = d_gates + r * 4 * width;
    each(width, [&](int64_t h, int64_t n) {
      const int64_t at = r * width + h;
      const Vector i = take(gi + h, n), f = take(gf + h, n), j = take(gc + h, n);
      const Vector o = take(go + h, n), squashed = take(tanh_cell + at, n);
      const Vector dh = take(d_hidden + at, n);
      const Vector dc = take(d_cell + at, n) + dh * o * (1.0f - squashed * squashed);
      put(d + h, dc * j * i * (1.0f - i), n);
      put(d + width + h, dc * take(cell_before + at, n) * f * (1.0f - f), n);
      put(d + 2 * width + h, dc * i * (1.0f - j * j), n);
      put(d + 3 * width + h, dh * squashed * o * (1.0f - o), n);
      put(d_cell + at, dc * f, n);
    });
  }
}

/// Bounded so that the product of two stays a number: 42 is exp's argument at x = 21.
void doubled_exponential(int64_t count, const float* from, float* to) {
  const Vector bound = all(42.0f);
  each(count, [&](int64_t i, int64_t n) {
    Vector x = take(from + i, n) * 2.0f;
    x = x > bound ? bound : x;
    put(to + i, exp_of(x < -bound ? -bound : x), n);
  });
}

/// With r = 1 / (1 + exp(2 query_t) exp(2 memory_j)), tanh(query_t + memory_j) = 1 - 2 r.
void attention_scores(int64_t steps, int64_t keys, int64_t width, const float* query,
                      const float* memory, const float* v, float* scores) {
  float all_v = 0;
  for (int64_t h = 0; h < width; ++h) all_v += v[h];
  for (int64_t t = 0; t < steps; ++t, query += width) {
    const float* m = memory;
    for (int64_t j = 0; j < keys; ++j, m += width) {
      Vector sum = {};
      each(width, [&](int64_t h, int64_t n) {
        sum += take(v + h, n) / (take(query + h, n) * take(m + h, n) + 1.0f);
      });
      *scores++ = all_v - 2.0f * sum_of(sum);
    }
  }
}

/// With r as above and x = 1 - 2 r the tanh: v (1 - x^2) = 4 v r (1 - r) times the score's gradient
/// goes to the query and the memory, x times that gradient to v. A column of vectors at a time, so
/// that its sums stay in registers and its memory in the first-level cache.
void attention_backward(int64_t steps, int64_t keys, int64_t width, const float* query,
                        const float* memory, const float* v, const float* d_scores, float* d_query,
                        float* d_memory, float* d_v, float* scratch) {
  float all_gradients = 0;
  for (int64_t i = 0; i < steps * keys; ++i) all_gradients += d_scores[i];
  each(width, [&](int64_t h, int64_t n) {
    const Vector weight = take(v + h, n) * 4.0f;
    Vector to_v = {};
    for (int64_t j = 0; j < keys; ++j) {
      store(scratch + 2 * j * kLanes, take(memory + j * width + h, n));
      store(scratch + (2 * j + 1) * kLanes, Vector{});
    }
    for (int64_t t = 0; t < steps; ++t) {
      const Vector q = take(query + t * width + h, n);
      const float* g = d_scores + t * keys;
      Vector to_query = {};
      for (int64_t j = 0; j < keys; ++j) {
        float* m = scratch + 2 * j * kLanes;
        const Vector r = 1.0f / (q * load(m) + 1.0f);
        const Vector scaled = all(g[j]) * r, y = scaled - scaled * r;
        to_query += y;
        to_v += scaled;
        store(m + kLanes, load(m + kLanes) + y);
      }
      put(d_query + t * width + h, to_query * weight, n);
    }
    put(d_v + h, take(d_v + h, n) + all_gradients - to_v * 2.0f, n);
    for (int64_t j = 0; j < keys; ++j) {
      float* to = d_memory + j * width + h;
      put(to, take(to, n) + load(scratch + (2 * j + 1) * kLanes) * weight, n);
    }
  });
}

/// Writes exp(value - largest) of a row to `out`; returns the largest and the sum.
inline float exponentials(int64_t columns, const float* row, float* out, float& largest) {
  largest = row[0];
  for (int64_t i = 1; i < columns; ++i) largest = row[i] > largest ? row[i] : largest;
  float sum = 0;
  const float shift = largest;
  each(columns, [&](int64_t i, int64_t n) {
    const Vector e = exp_of(take(row + i, n) - shift);
    put(out + i, e, n);
    for (int64_t k = 0; k < n; ++k) sum += e[k];
  });
  return sum;
}

void softmax(int64_t rows, int64_t columns, float* values) {
  float largest = 0;
  for (int64_t r = 0; r < rows; ++r, values += columns) {
    const float share = 1.0f / exponentials(columns, values, values, largest);
    each(columns, [&](int64_t i, int64_t n) { put(values + i, take(values + i, n) * share, n); });
  }
}

void log_softmax(int64_t rows, int64_t columns, float* values, float* probability) {
  float largest = 0;
  for (int64_t r = 0; r < rows; ++r, values += columns, probability += columns) {
    const float sum = exponentials(columns, values, probability, largest);
    const float share = 1.0f / sum, shift = largest + __builtin_logf(sum);
    each(columns, [&](int64_t i, int64_t n) {
      put(values + i, take(values + i, n) - shift, n);
      put(probability + i, take(probability + i, n) * share, n);
    });
  }
}

void scaled_tanh(int64_t count, float scale, float* values) {
  each(count,
       [&](int64_t i, int64_t n) { put(values + i, tanh_of(take(values + i, n) * scale), n); });
}

/// In tiles, so that both sides use whole cache lines.
void transpose(int64_t rows, int64_t columns, const float* from, int64_t stride, float* to) {
  constexpr int64_t kTile = 16;
  for (int64_t r = 0; r < rows; r += kTile)
    for (int64_t c = 0; c < columns; c += kTile)
      for (int64_t i = c; i < least(c + kTile, columns); ++i)
        for (int64_t k = r; k < least(r + kTile, rows); ++k)
          to[i * rows + k] = from[k * stride + i];
}

void rectify(int64_t count, float* values) {
  each(count, [&](int64_t i, int64_t n) {
    const Vector x = take(values + i, n);
    put(values + i, x > Vector{} ? x : Vector{}, n);
  });
}

void rectify_backward(int64_t count, const float* result, float* gradient) {
  each(count, [&](int64_t i, int64_t n) {
    const Vector open = take(result + i, n);
    put(gradient + i, open > Vector{} ? take(gradient + i, n) : Vector{}, n);
  });
}

void add(int64_t count, const float* x, float* y) {
  each(count, [&](int64_t i, int64_t n) { put(y + i, take(y + i, n) + take(x + i, n), n); });
}

void skip_gram(int64_t width, float rate, float label, const float* v, float* c, float* step) {
  Vector dot = {};
  each(width, [&](int64_t i, int64_t n) { dot += take(v + i, n) * take(c + i, n); });
  const float g = rate * (label - sigmoid_of(all(sum_of(dot)))[0]);
  each(width, [&](int64_t i, int64_t n) {
    const Vector other = take(c + i, n);
    put(step + i, take(step + i, n) + g * other, n);
    put(c + i, other + g * take(v + i, n), n);
  });
}

double square_sum(int64_t count, const float* x) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int64_t k = 0; k < 8; ++k)
      sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
  for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

void adam(int64_t count, float* weight, const float* gradient, float* m, float* v, float scale,
          float rate, float root) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * scale;
    m[i] = 0.9f * m[i] + 0.1f * g;
    v[i] = 0.999f * v[i] + 0.001f * (g * g);
    weight[i] -= rate * m[i] / (__builtin_sqrtf(v[i]) / root + 1e-8f);
  }
}

const Kernels kKernels = {kName,
                          kPanel,
                          pack,
                          multiply,
                          multiply_sparse,
                          cell_forward,
                          cell_backward,
                          doubled_exponential,
                          attention_scores,
                          attention_backward,
                          softmax,
                          log_softmax,
                          scaled_tanh,
                          transpose,
                          rectify,
                          rectify_backward,
                          add,
                          skip_gram,
                          square_sum,
                          adam};
