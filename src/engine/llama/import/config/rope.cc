#include "engine/llama/import/config/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace portico::llama {
namespace {

// mscale of YaRN: 0.1 * m * ln(s) + 1 (https://arxiv.org/abs/2309.00071, section 3.4).
double Mscale(double scale, double m) { return scale <= 1 ? 1 : 0.1 * m * std::log(scale) + 1; }

void ParseYarn(ConfigFields* fields, int64_t max_position_embeddings, Rope* rope) {
  rope->factor =
      static_cast<double>(max_position_embeddings) / static_cast<double>(rope->original_context);
  fields->Number("factor", &rope->factor);
  double mscale = 0, mscale_all_dim = 0;
  // Zero means "not used" here, so these two are read leniently.
  if (const Json* m = fields->Find("mscale"); m != nullptr && m->is_number())
    mscale = m->as_double();
  if (const Json* m = fields->Find("mscale_all_dim"); m != nullptr && m->is_number()) {
    mscale_all_dim = m->as_double();
  }
  rope->attention_factor = mscale != 0 && mscale_all_dim != 0
                               ? Mscale(rope->factor, mscale) / Mscale(rope->factor, mscale_all_dim)
                               : Mscale(rope->factor, 1);
  fields->Number("attention_factor", &rope->attention_factor);
  fields->Number("beta_fast", &rope->beta_fast);
  fields->Number("beta_slow", &rope->beta_slow);
  fields->Bool("truncate", &rope->truncate);
}

Status ParseLongrope(ConfigFields* fields, int64_t max_position_embeddings, Rope* rope) {
  rope->factor =
      static_cast<double>(max_position_embeddings) / static_cast<double>(rope->original_context);
  fields->Number("factor", &rope->factor);
  rope->attention_factor =
      rope->factor <= 1 ? 1
                        : std::sqrt(1 + std::log(rope->factor) /
                                            std::log(static_cast<double>(rope->original_context)));
  fields->Number("attention_factor", &rope->attention_factor);
  const Json* list = fields->Find("short_factor");
  if (list == nullptr || !list->is_array()) return fields->Bad("short_factor", "is missing");
  for (const Json& value : list->as_array()) {
    if (!value.is_number() || !(value.as_double() > 0)) {
      return fields->Bad("short_factor", "must be a list of numbers above 0");
    }
    rope->short_factor.push_back(value.as_double());
  }
  rope->max_context = rope->original_context;
  return OkStatus();
}

Status ParseScaling(const std::string& type, int64_t max_position_embeddings, ConfigFields* fields,
                    Rope* rope) {
  if (type == "default" || type == "dynamic") return OkStatus();
  if (type == "linear") {
    rope->scaling = Rope::Scaling::kLinear;
    fields->Number("factor", &rope->factor);
    return OkStatus();
  }
  if (type == "yarn") {
    rope->scaling = Rope::Scaling::kYarn;
    ParseYarn(fields, max_position_embeddings, rope);
    return OkStatus();
  }
  if (type == "llama3") {
    rope->scaling = Rope::Scaling::kLlama3;
    for (const char* name : {"factor", "low_freq_factor", "high_freq_factor"}) {
      if (!fields->Has(name)) return fields->Bad(name, "is missing");
    }
    fields->Number("factor", &rope->factor);
    fields->Number("low_freq_factor", &rope->low_freq_factor);
    fields->Number("high_freq_factor", &rope->high_freq_factor);
    return OkStatus();
  }
  if (type == "longrope" || type == "su") {
    rope->scaling = Rope::Scaling::kLongrope;
    return ParseLongrope(fields, max_position_embeddings, rope);
  }
  return fields->Bad("rope_type",
                     fmt::format("'{}' cannot be imported (default, linear, dynamic, yarn, llama3 "
                                 "and longrope can)",
                                 type));
}

// Dimension whose wave makes `rotations` turns within the original context.
double CorrectionDim(const Rope& rope, double rotations, double head_dim) {
  double context = static_cast<double>(rope.original_context);
  return head_dim * std::log(context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

double YarnDivisor(const Rope& rope, double pair, double head_dim) {
  double low = CorrectionDim(rope, rope.beta_fast, head_dim);
  double high = CorrectionDim(rope, rope.beta_slow, head_dim);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, head_dim - 1);
  if (low == high) high += 0.001;
  double ramp = std::clamp((pair - low) / (high - low), 0.0, 1.0);
  return 1 / (ramp / rope.factor + (1 - ramp));
}

double Llama3Divisor(const Rope& rope, double frequency) {
  double context = static_cast<double>(rope.original_context);
  double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < context / rope.high_freq_factor) return 1;
  if (wavelength > context / rope.low_freq_factor) return rope.factor;
  double smooth = (context / wavelength - rope.low_freq_factor) /
                  (rope.high_freq_factor - rope.low_freq_factor);
  return 1 / ((1 - smooth) / rope.factor + smooth);
}

}  // namespace

double YarnAttentionFactor(double factor) { return Mscale(factor, 1); }

StatusOr<Rope> ParseRope(const ConfigFields& config, int64_t max_position_embeddings) {
  Rope rope;
  static const Json kEmpty = JsonObject{};
  std::string name = "rope_scaling";
  const Json* parameters = config.Find(name);
  if (parameters == nullptr) parameters = config.Find(name = "rope_parameters");
  if (parameters == nullptr) parameters = &kEmpty;
  if (!parameters->is_object()) return config.Bad(name, "must be an object");
  if (const Json* nested = parameters->Find("full_attention")) {
    if (parameters->as_object().size() > 1 || !nested->is_object()) {
      return config.Bad(name, "differs between layers, which cannot be imported");
    }
    parameters = nested;
  }

  ConfigFields fields(*parameters, config.path(), name + ".");
  ConfigFields top(config.object(), config.path());
  top.Number("rope_theta", &rope.theta);
  fields.Number("rope_theta", &rope.theta);
  double rotary = 1;
  top.Number("partial_rotary_factor", &rotary);
  fields.Number("partial_rotary_factor", &rotary);
  rope.original_context = max_position_embeddings;
  fields.Int("original_max_position_embeddings", &rope.original_context);
  top.Int("original_max_position_embeddings", &rope.original_context);

  std::string type = "default";
  fields.Text("type", &type);
  fields.Text("rope_type", &type);
  PORTICO_RETURN_IF_ERROR(ParseScaling(type, max_position_embeddings, &fields, &rope));
  PORTICO_RETURN_IF_ERROR(top.status());
  PORTICO_RETURN_IF_ERROR(fields.status());
  if (rotary != 1) return config.Bad("partial_rotary_factor", "other than 1 cannot be imported");
  if (rope.theta <= 1) return config.Bad("rope_theta", "must be above 1");
  return rope;
}

StatusOr<std::vector<float>> FrequencyDivisors(const Rope& rope, int64_t head_dim,
                                               const ConfigFields& config) {
  const size_t pairs = static_cast<size_t>(head_dim / 2);
  if (rope.scaling == Rope::Scaling::kLongrope && rope.short_factor.size() != pairs) {
    return config.Bad("rope_scaling.short_factor",
                      fmt::format("has {} values for a head of {} dimensions",
                                  rope.short_factor.size(), head_dim));
  }
  std::vector<float> divisors(pairs);
  for (size_t i = 0; i < pairs; ++i) {
    double pair = static_cast<double>(i);
    double divisor = 1;
    switch (rope.scaling) {
      case Rope::Scaling::kNone:
        break;
      case Rope::Scaling::kLinear:
        divisor = rope.factor;
        break;
      case Rope::Scaling::kYarn:
        divisor = YarnDivisor(rope, pair, static_cast<double>(head_dim));
        break;
      case Rope::Scaling::kLlama3:
        divisor =
            Llama3Divisor(rope, std::pow(rope.theta, -2 * pair / static_cast<double>(head_dim)));
        break;
      case Rope::Scaling::kLongrope:
        divisor = rope.short_factor[i];
        break;
    }
    divisors[i] = static_cast<float>(divisor);
  }
  return divisors;
}

}  // namespace portico::llama
