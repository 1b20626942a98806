// The encoders of one library each, for encoder.cc.
#pragma once

#include <memory>

#include "media/encoder.h"

namespace portico::media {

Status CanEncodeMp3();
StatusOr<std::unique_ptr<Encoder>> NewMp3Encoder(int32_t sample_rate);
Status CanEncodeOpus();
StatusOr<std::unique_ptr<Encoder>> NewOpusEncoder(int32_t sample_rate);
Status CanEncodeFlac();
StatusOr<std::unique_ptr<Encoder>> NewFlacEncoder(int32_t sample_rate);
Status CanEncodeAac();
// INVALID_ARGUMENT (field "sample_rate") for a rate that AAC has not.
StatusOr<std::unique_ptr<Encoder>> NewAacEncoder(int32_t sample_rate);

}  // namespace portico::media
