#include "parser/json/object_writer.h"

#include "text/json_writer.h"

namespace portico::parser {

void ObjectWriter::Key(std::string_view key) {
  out_ = count_++ == 0 ? "{" : ", ";
  AppendJsonString(key, &out_);
  out_ += ": ";
  call_.Arguments(out_);
}

void ObjectWriter::BeginValue(std::string_view key, TypeSet types) {
  Key(key);
  value_.Begin(types);
}

void ObjectWriter::Value(std::string_view text) {
  out_.clear();
  value_.Push(text, &out_);
  call_.Arguments(out_);
  call_.Stray(value_.TakeStray());
}

void ObjectWriter::EndValue() {
  out_.clear();
  value_.End(&out_);
  call_.Arguments(out_);
}

void ObjectWriter::CutValue() {
  out_.clear();
  value_.Cut(&out_);
  call_.Arguments(out_);
}

void ObjectWriter::End() { call_.Arguments(count_ == 0 ? "{}" : "}"); }

}  // namespace portico::parser
