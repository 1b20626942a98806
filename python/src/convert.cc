#include "convert.h"

#include <nanobind/ndarray.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "text/big_integer.h"
#include "tokenizer/compiled/zeroed_memory.h"

namespace portico::python {
namespace {

constexpr int kMaxDepth = 128;

TokenId IdOf(int64_t value) {
  if (value < 0 || value > UINT32_MAX) {
    PyErr_SetString(PyExc_OverflowError, "a token id must be between 0 and 2^32 - 1");
    throw nb::python_error();
  }
  return value > INT32_MAX ? -1 : static_cast<TokenId>(value);
}

int64_t IntOf(PyObject* value) {
  int64_t out = PyLong_AsLongLong(value);
  if (out == -1 && PyErr_Occurred()) throw nb::python_error();
  return out;
}

template <typename T>
void AppendIds(const Py_buffer& view, std::vector<TokenId>* out) {
  auto count = static_cast<size_t>(view.len) / sizeof(T);
  out->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(view.buf) + i * sizeof(T), sizeof(T));
    out->push_back(IdOf(static_cast<int64_t>(value)));
  }
}

// False: no array of integers.
bool IdsOfBuffer(PyObject* ids, std::vector<TokenId>* out) {
  if (!PyObject_CheckBuffer(ids) || PyBytes_Check(ids)) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(ids, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  char format = view.format == nullptr ? 'B' : view.format[std::strlen(view.format) - 1];
  bool known = view.ndim == 1 && std::strchr("ilqILQ", format) != nullptr;
  try {
    if (known) {
      bool is_signed = format >= 'a';
      if (view.itemsize == 4) {
        is_signed ? AppendIds<int32_t>(view, out) : AppendIds<uint32_t>(view, out);
      } else {
        AppendIds<int64_t>(view, out);
      }
    }
  } catch (...) {
    PyBuffer_Release(&view);
    throw;
  }
  PyBuffer_Release(&view);
  return known;
}

// An int of each id, made when it is first asked for and kept as long as the process, 10 MB at most. Most of what an encode
// from Python costs would else be the making of thousands of ints, and to free them again.
class SharedInts {
 public:
  // A new reference.
  PyObject* Of(TokenId id) {
    if (id < 0 || id >= kIds) return Made(id);
    PyObject*& shared = ints_[static_cast<size_t>(id)];
    if (shared == nullptr) [[unlikely]]
      shared = Made(id);
    return Py_NewRef(shared);
  }

 private:
  static constexpr TokenId kIds = 1 << 18;

  static PyObject* Made(TokenId id) {
    PyObject* made = PyLong_FromLong(id);
    if (made == nullptr) throw nb::python_error();
    return made;
  }

  tokenizer::ZeroedArray<PyObject*> ints_{kIds};
};

Json Convert(PyObject* value, int depth);

Json ConvertInt(PyObject* value) {
  int overflow = 0;
  int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) return Json(number);
  const nb::object digits = nb::steal(PyObject_Str(value));
  if (!digits.is_valid()) throw nb::python_error();
  const std::string_view text = TextOf(digits.ptr(), "an int");
  if (text.size() - (text.front() == '-' ? 1 : 0) > JsonBigInteger::kMaxDigits) {
    throw nb::value_error("an int has too many digits");
  }
  return Json(JsonBigInteger::Read(text));
}

Json ConvertSequence(PyObject* value, int depth) {
  JsonArray out;
  Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
  out.reserve(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
    out.push_back(Convert(PySequence_Fast_GET_ITEM(value, i), depth + 1));
  }
  return Json(std::move(out));
}

Json ConvertDict(PyObject* value, int depth) {
  JsonObject out;
  out.reserve(static_cast<size_t>(PyDict_Size(value)));
  Py_ssize_t at = 0;
  PyObject *key, *member;
  while (PyDict_Next(value, &at, &key, &member)) {
    if (!PyUnicode_Check(key)) throw nb::type_error("the keys of a dict must be str");
    out.emplace_back(std::string(TextOf(key, "a key")), Convert(member, depth + 1));
  }
  return Json(std::move(out));
}

Json Convert(PyObject* value, int depth) {
  if (depth > kMaxDepth) throw nb::value_error("the value is nested too deeply");
  if (PyUnicode_Check(value)) return Json(std::string(TextOf(value, "a text")));
  if (value == Py_None) return Json();
  if (PyBool_Check(value)) return Json(value == Py_True);
  if (PyLong_Check(value)) return ConvertInt(value);
  if (PyFloat_Check(value)) return Json(PyFloat_AS_DOUBLE(value));
  if (PyList_Check(value) || PyTuple_Check(value)) return ConvertSequence(value, depth);
  if (PyDict_Check(value)) return ConvertDict(value, depth);
  std::string message = std::string("a template cannot be given a ") + Py_TYPE(value)->tp_name;
  throw nb::type_error(message.c_str());
}

}  // namespace

void Raise(const Status& status) {
  std::string message(MessageOf(status));
  PyObject* type = PyExc_ValueError;
  switch (status.code()) {
    case StatusCode::kNotFound:
      type = PyExc_FileNotFoundError;
      break;
    case StatusCode::kUnimplemented:
      type = PyExc_NotImplementedError;
      break;
    case StatusCode::kResourceExhausted:
      type = PyExc_MemoryError;
      break;
    default:
      break;
  }
  PyErr_SetString(type, message.c_str());
  throw nb::python_error();
}

std::string_view TextOf(nb::handle text, const char* what) {
  if (!PyUnicode_Check(text.ptr())) {
    std::string message = std::string(what) + " must be a str, not " + Py_TYPE(text.ptr())->tp_name;
    throw nb::type_error(message.c_str());
  }
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

nb::object ToStr(std::string_view text) {
  PyObject* str =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (str == nullptr) throw nb::python_error();
  return nb::steal(str);
}

Json JsonOf(nb::handle value) { return Convert(value.ptr(), 0); }

nb::list ToList(std::span<const TokenId> ids) {
  static SharedInts* ints = new SharedInts;
  nb::list list = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(ids.size())));
  if (!list.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < ids.size(); ++i) {
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), ints->Of(ids[i]));
  }
  return list;
}

nb::object ToNumpy(std::vector<TokenId> ids) {
  auto owned = std::make_unique<std::vector<TokenId>>(std::move(ids));
  TokenId* data = owned->data();
  size_t size = owned->size();
  nb::capsule owner(owned.get(),
                    [](void* p) noexcept { delete static_cast<std::vector<TokenId>*>(p); });
  owned.release();
  return nb::cast(nb::ndarray<nb::numpy, TokenId, nb::ndim<1>>(data, {size}, owner));
}

TokenId IdOf(nb::handle id) {
  if (PyLong_Check(id.ptr())) [[likely]]
    return IdOf(IntOf(id.ptr()));
  nb::object index = nb::steal(PyNumber_Index(id.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  return IdOf(IntOf(index.ptr()));
}

std::vector<TokenId> IdsOf(nb::handle ids) {
  std::vector<TokenId> out;
  PyObject* object = ids.ptr();
  if (PyLong_Check(object)) return {IdOf(ids)};
  if (IdsOfBuffer(object, &out)) return out;
  if (PyIndex_Check(object) && !PySequence_Check(object)) return {IdOf(ids)};  // of NumPy
  nb::object fast = nb::steal(PySequence_Fast(object, "ids must be a list of ints or an array"));
  if (!fast.is_valid()) throw nb::python_error();
  out.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(fast.ptr())));
  // What counts as an int may change the list while it is asked.
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.ptr()); ++i) {
    out.push_back(IdOf(nb::handle(PySequence_Fast_GET_ITEM(fast.ptr(), i))));
  }
  return out;
}

}  // namespace portico::python
