#include "tests/runtime/model/naive_decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace folio {
namespace {

void Add(NaiveDecoder::Rows& x, const NaiveDecoder::Rows& y) {
  for (size_t r = 0; r < x.size(); ++r) {
    for (size_t i = 0; i < x[r].size(); ++i) x[r][i] += y[r][i];
  }
}

double Gelu(double x, bool exact) {
  const double inner =
      std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / 2 *
         (1 + (exact ? std::erf(x / std::sqrt(2.0)) : std::tanh(inner)));
}

}  // namespace

std::string NaiveDecoder::Name(const std::string& part, int layer) const {
  std::string name = source_.names.prefix + part;
  if (const size_t place = name.find("$0"); place != name.npos) {
    name.replace(place, 2, std::to_string(layer));
  }
  return name;
}

NaiveDecoder::Row NaiveDecoder::Tensor(const std::string& name,
                                       size_t size) const {
  std::vector<float> values(size);
  source_.weights->Read(name, 0, values);
  return Row(values.begin(), values.end());
}

NaiveDecoder::Rows NaiveDecoder::Product(const Rows& x, const std::string& name,
                                         int out, bool has_bias) const {
  const size_t in = x[0].size();
  const Row weight = Tensor(name + ".weight", in * out);
  const Row bias = has_bias ? Tensor(name + ".bias", out) : Row(out, 0.0);
  Rows y;
  for (const Row& row : x) {
    Row& result = y.emplace_back(bias);
    for (int c = 0; c < out; ++c) {
      for (size_t k = 0; k < in; ++k) {
        result[c] +=
            row[k] *
            weight[source_.names.transposed ? k * out + c : c * in + k];
      }
    }
  }
  return y;
}

NaiveDecoder::Rows NaiveDecoder::Norm(const Rows& x,
                                      const std::string& name) const {
  const size_t size = x[0].size();
  const Row weight = Tensor(name + ".weight", size);
  const bool centred = config_.norm == NormKind::kLayerNorm;
  const Row bias = centred ? Tensor(name + ".bias", size) : Row(size, 0.0);
  Rows y = x;
  for (Row& row : y) {
    double mean = 0;
    for (const double v : row) mean += centred ? v / size : 0.0;
    double variance = 0;
    for (const double v : row) variance += (v - mean) * (v - mean) / size;
    for (size_t i = 0; i < size; ++i) {
      row[i] = (row[i] - mean) / std::sqrt(variance + config_.norm_epsilon) *
                   weight[i] +
               bias[i];
    }
  }
  return y;
}

void NaiveDecoder::NormaliseHead(const Row& weight, double* head) const {
  double squares = 0;
  for (int i = 0; i < config_.head_dim; ++i) squares += head[i] * head[i];
  const double scale =
      1 / std::sqrt(squares / config_.head_dim + config_.norm_epsilon);
  for (int i = 0; i < config_.head_dim; ++i) head[i] *= scale * weight[i];
}

// (a, b) of each pair as the complex number a + ib, times e^(i angle).
void NaiveDecoder::Rotate(int position, double* head) const {
  const int half = config_.head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const double angle =
        position * std::pow(config_.rope_theta, -double(i) / half);
    const double a = head[i];
    const double b = head[i + half];
    head[i] = a * std::cos(angle) - b * std::sin(angle);
    head[i + half] = a * std::sin(angle) + b * std::cos(angle);
  }
}

NaiveDecoder::Rows NaiveDecoder::Attention(const Rows& x, int layer) const {
  const DecoderNames& names = source_.names;
  const int d = config_.head_dim;
  const int q_size = config_.num_heads * d;
  const int kv_size = config_.num_kv_heads * d;
  Rows q, k, v;
  if (names.qkv.empty()) {
    q = Product(x, Name(names.q, layer), q_size, config_.qkv_bias);
    k = Product(x, Name(names.k, layer), kv_size, config_.qkv_bias);
    v = Product(x, Name(names.v, layer), kv_size, config_.qkv_bias);
  } else {
    for (const Row& row : Product(x, Name(names.qkv, layer),
                                  q_size + 2 * kv_size, config_.qkv_bias)) {
      q.emplace_back(row.begin(), row.begin() + q_size);
      k.emplace_back(row.begin() + q_size, row.begin() + q_size + kv_size);
      v.emplace_back(row.begin() + q_size + kv_size, row.end());
    }
  }
  const auto transform = [&](Rows& rows, const std::string& norm) {
    const Row weight =
        config_.qk_norm ? Tensor(Name(norm, layer) + ".weight", d) : Row();
    for (size_t t = 0; t < rows.size(); ++t) {
      for (size_t head = 0; head < rows[t].size(); head += d) {
        if (config_.qk_norm) NormaliseHead(weight, &rows[t][head]);
        if (config_.positions == PositionKind::kRotary) {
          Rotate(static_cast<int>(t), &rows[t][head]);
        }
      }
    }
  };
  transform(q, names.q_norm);
  transform(k, names.k_norm);

  const int group = config_.num_heads / config_.num_kv_heads;
  Rows out(x.size(), Row(q_size, 0.0));
  for (int t = 0; t < static_cast<int>(x.size()); ++t) {
    const int first =
        config_.window.has_value() ? std::max(0, t - *config_.window + 1) : 0;
    for (int h = 0; h < config_.num_heads; ++h) {
      const int kv = h / group * d;
      Row weights(t + 1, 0.0);
      double total = 0;
      for (int j = first; j <= t; ++j) {
        for (int i = 0; i < d; ++i)
          weights[j] += q[t][h * d + i] * k[j][kv + i];
        total += weights[j] = std::exp(weights[j] / std::sqrt(double(d)));
      }
      for (int j = first; j <= t; ++j) {
        for (int i = 0; i < d; ++i) {
          out[t][h * d + i] += weights[j] / total * v[j][kv + i];
        }
      }
    }
  }
  return Product(out, Name(names.out, layer), config_.hidden_size,
                 config_.out_bias);
}

NaiveDecoder::Rows NaiveDecoder::Ffn(const Rows& x, int layer) const {
  const DecoderNames& names = source_.names;
  Rows wide =
      Product(x, Name(names.up, layer), config_.ffn_size, config_.ffn_bias);
  if (config_.ffn == FfnKind::kSwiGlu) {
    const Rows gate =
        Product(x, Name(names.gate, layer), config_.ffn_size, config_.ffn_bias);
    for (size_t r = 0; r < wide.size(); ++r) {
      for (size_t i = 0; i < wide[r].size(); ++i) {
        wide[r][i] *= gate[r][i] / (1 + std::exp(-gate[r][i]));
      }
    }
  } else {
    for (Row& row : wide) {
      for (double& v : row) v = Gelu(v, config_.ffn == FfnKind::kGeluErf);
    }
  }
  return Product(wide, Name(names.down, layer), config_.hidden_size,
                 config_.ffn_bias);
}

NaiveDecoder::Rows NaiveDecoder::Run(std::span<const TokenId> tokens) const {
  const DecoderNames& names = source_.names;
  const size_t hidden = config_.hidden_size;
  const std::string embedding = Name(names.token_embedding, 0);
  const Row table = Tensor(embedding + ".weight", config_.vocab_size * hidden);
  Row positions;
  if (config_.positions == PositionKind::kLearned) {
    positions = Tensor(Name(names.position_embedding, 0) + ".weight",
                       config_.context_length * hidden);
  }
  Rows x;
  for (size_t t = 0; t < tokens.size(); ++t) {
    Row& row = x.emplace_back(hidden);
    for (size_t i = 0; i < hidden; ++i) {
      row[i] = table[tokens[t] * hidden + i] +
               (positions.empty() ? 0.0 : positions[t * hidden + i]);
    }
  }
  for (int layer = 0; layer < config_.num_layers; ++layer) {
    Add(x, Attention(Norm(x, Name(names.attn_norm, layer)), layer));
    Add(x, Ffn(Norm(x, Name(names.ffn_norm, layer)), layer));
  }
  const Rows last = Norm(x, Name(names.final_norm, 0));
  const Row head =
      config_.tied_head ? table : Tensor(names.head + ".weight", table.size());
  Rows logits;
  for (const Row& row : last) {
    Row& result = logits.emplace_back(config_.vocab_size, 0.0);
    for (size_t c = 0; c < result.size(); ++c) {
      for (size_t i = 0; i < hidden; ++i) {
        result[c] += row[i] * head[c * hidden + i];
      }
    }
  }
  return logits;
}

}  // namespace folio
